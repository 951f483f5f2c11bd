"""`guardhook policy`: compile, list, show and test policy files."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.commands.policy_new import command as new
from guardhook.core.folders import Folders

# After so long a compiler that a hook started ends, whatever it does.
COMPILER_SECONDS = 60


@click.group(name="policy")
def command() -> None:
    """Write, show, test and compile policy files."""


command.add_command(new)


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
    """Check all policy files, and compile them for the hook."""
    from guardhook.journal.rules import freeze_rules
    from guardhook.policy import compile as compiler

    if to_stdout:
        # A hook started this, has gone on without it when it is slow, and left it the lock: one that never ends (a disk that hangs)
        # would keep every later hook waiting for a lock that nobody gives back.
        signal.alarm(COMPILER_SECONDS)
    if project is not None and not to_stdout and not os.path.isdir(project):
        fail(f"--project {project}: there is no such folder", as_json=as_json)
    if config and data and system:
        folders = Folders(config, data, system)
    else:
        folders = resolve(directory)
        if system:
            folders.system = os.path.abspath(system)
    results = [compiler.compile_main(folders, redact=freeze_rules)]
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


@command.command(name="list")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--project", metavar="DIR", help="Show the policies of this project too.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def list_(ctx: click.Context, directory: str | None, project: str | None, as_json: bool) -> None:
    """List all policies (the same as `guard list`)."""
    from guardhook.commands import guard_list

    ctx.invoke(guard_list.command, directory=directory, project=project, as_json=as_json)


@command.command()
@click.argument("policy")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the policy as JSON.")
def show(policy: str, directory: str | None, as_json: bool) -> None:
    """Show one policy, by id or name."""
    import msgspec
    import tomlkit

    from guardhook.core.jsontext import printable
    from guardhook.policy import load
    from guardhook.policy.compile import policy_id

    loaded = load.load(resolve(directory), time.time())
    rows = [f for f in loaded.ordered() if policy_id(f.layer, f.policy.name) == policy]
    rows = rows or [f for f in loaded.ordered() if f.policy.name == policy]
    if not rows:
        fail(
            f"there is no policy with the id or name {policy!r}; `guardhook policy list` shows all",
            code=1,
            as_json=as_json,
        )
    found = rows[0]
    given = msgspec.to_builtins(found.policy)
    if as_json:
        emit(
            {
                "ok": True,
                "id": policy_id(found.layer, found.policy.name),
                "layer": found.layer,
                "file": found.path,
                "line": found.line,
                "on": found.on,
                "why_off": found.why_off or None,
                "policy": given,
            }
        )
        return
    # The files of the executable's own policies are unpacked for one run only.
    inside = found.layer == "shipped" and getattr(sys, "frozen", False)
    path = os.path.basename(found.path) if inside else found.path
    click.echo(f"# {printable(path, 400)}:{found.line} ({found.layer}, {'on' if found.on else found.why_off})")
    for line in tomlkit.dumps({"policy": [given]}).splitlines():
        click.echo(printable(line, 4000))


@command.command()
@click.argument("path", required=False)
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def test(path: str | None, directory: str | None, as_json: bool) -> None:
    """Run the examples of all policies, or of a policy file or folder. Status 1 when one fails."""
    from guardhook.commands import reading
    from guardhook.policy import examples, layers, load

    loaded = layers.Loaded()
    if path is not None and not os.path.exists(path):
        fail(f"{path}: there is no such file or folder", as_json=as_json)
    if path is None:
        loaded = load.load(resolve(directory), time.time())
    elif os.path.isdir(path):
        load.read_layer(loaded, os.path.abspath(path), "user", loaded.errors.append)
    else:
        load.read_file(loaded, os.path.abspath(path), "user", loaded.errors.append)
    if loaded.errors:
        fail(str(loaded.errors[0]), hints=[str(e) for e in loaded.errors[1:]], as_json=as_json)
    outcomes = [examples.run(found, example) for found in loaded.ordered() for example in found.policy.example]
    failed = [o for o in outcomes if not o.passed]
    table = examples.confusion(outcomes)
    with reading.heard():
        if as_json:
            emit(
                {
                    "ok": not failed,
                    "examples": len(outcomes),
                    "failed": [
                        {"policy": o.policy, "example": o.text, "expected": o.expected, "got": o.got} for o in failed
                    ],
                    "confusion": table,
                }
            )
        else:
            for o in failed:
                say(f"FAILED {o.policy}: {o.text}: expected {o.expected}, got {o.got}")
            click.echo(examples.render(table))
            click.echo(f"{len(outcomes)} examples, {len(failed)} failed")
    if failed:
        raise SystemExit(1)
