"""`guardhook policy`: compile, list, show and test policy files."""

from __future__ import annotations

import contextlib
import os
import sys

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders


@click.group(name="policy")
def command() -> None:
    """Compile and test policy files."""


def redaction_rows() -> tuple[object, ...]:
    """The journal's redaction rules, frozen into the compiled policies so that the hook need not build them."""
    from guardhook.journal.rules import freeze_rules

    return tuple(freeze_rules())


@command.command(name="compile")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--config", hidden=True)
@click.option("--data", hidden=True)
@click.option("--system", hidden=True)
@click.option("--project", metavar="DIR", help="Compile the policies of this project too.")
@click.option("--stdout", "to_stdout", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def compile_(
    directory: str | None,
    config: str | None,
    data: str | None,
    system: str | None,
    project: str | None,
    to_stdout: bool,
    as_json: bool,
) -> None:
    """Check all policy files and put them into the form that the hook reads."""
    from guardhook.policy import compile as compiler

    if config and data and system:
        folders = Folders(config, data, system)
    else:
        folders = resolve(directory)
        if system:
            folders.system = os.path.abspath(system)
    results = [compiler.compile_main(folders, redact=redaction_rows())]
    if project is not None:
        if to_stdout:
            results.clear()
        results.append(compiler.compile_project(folders, os.path.abspath(project)))
    if to_stdout:
        # The hook asks: it needs the bytes now, and the file for the next time where that can be had.
        with contextlib.suppress(compiler.CompileError):
            compiler.write(results[-1])
        sys.stdout.buffer.write(results[-1].blob)
        sys.stdout.buffer.flush()
    else:
        for result in results:
            try:
                compiler.write(result)
            except compiler.CompileError as error:
                fail(str(error), code=1, as_json=as_json)
    notes = [line for result in results for line in [*result.loaded.problems, *compiler.notes(result.loaded)]]
    errors = [str(error) for result in results for error in result.loaded.errors]
    if errors:
        if as_json:
            emit({"ok": False, "error": errors[0], "hints": errors[1:]})
        for line in errors if not as_json else ():
            say(f"guardhook: {line}")
        raise SystemExit(2)
    count = sum(found.on for result in results for found in result.loaded.policies)
    if as_json:
        emit({"ok": True, "policies": count, "files": [r.path for r in results], "notes": notes})
    elif not to_stdout:
        for line in notes:
            say(line)
        say(f"{count} policies compiled")
