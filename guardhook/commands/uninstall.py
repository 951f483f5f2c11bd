"""`guardhook uninstall HARNESS|--all`: takes our entries out of the settings, and with --all the program away."""

from __future__ import annotations

import os

import click

from guardhook.commands import folders as where
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders
from guardhook.harness import apply, machine, model, places, record, table
from guardhook.harness.errors import HarnessError


@click.command(name="uninstall")
@click.argument("harness", type=click.Choice(sorted(table.MODULES)), required=False)
@click.option("--all", "everything", is_flag=True, help="Every harness, and then the program itself.")
@click.option("--scope", type=click.Choice(model.SCOPES), help="Only this scope (default: wherever it is registered).")
@click.option(
    "--project",
    type=click.Path(file_okay=False),
    help="The project of project scope (default: the enclosing repository).",
)
@click.option("--dry-run", is_flag=True, help="Print the changes as a diff and touch nothing.")
@click.option("--dir", "directory", type=click.Path(), help="The folder that it was installed with.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    harness: str | None,
    everything: bool,
    scope: str | None,
    project: str | None,
    dry_run: bool,
    directory: str | None,
    as_json: bool,
) -> None:
    """Take guardhook out of a harness.

    Only guardhook's own entries go. Journal, policies and configuration stay.
    """
    if everything == (harness is not None):
        fail("name one harness, or say --all", as_json=as_json)
    here = machine.here(project)
    own = where.resolve(directory)
    files: list[tuple[str, str]] = []
    notes: list[str] = []
    diffs: list[str] = []
    problems: list[HarnessError] = []
    for name in sorted(table.MODULES) if everything else [str(harness)]:
        for one in (scope,) if scope else model.SCOPES:
            try:
                if scope is None and not _wanted(name, here, own, one, notes):
                    continue
                done = apply.uninstall(table.load(name), here, places.of_scope(here, one, own), one, dry_run=dry_run)
            except HarnessError as error:
                problems.append(error)
                continue
            files += done.files.items()
            notes += done.notes
            diffs.append(done.diff)
    remain = _elsewhere(own, notes, everything)
    if everything and not dry_run and not problems and not remain and scope is None:
        files += _program(own, as_json)
        shared = places.shared(here)
        if (
            os.path.isdir(shared.data)
            and hasattr(os, "geteuid")
            and os.geteuid() == 0
            and not record.registrations(shared)
        ):
            files += _program(shared, as_json)
    for what, folder in (("journal and records", own.data), ("policies and configuration", own.config)):
        if os.path.isdir(folder):
            notes.append(f"kept: {what} in {folder}")
    if as_json:
        emit(
            {
                "ok": not problems,
                "dry_run": dry_run,
                "files": [{"path": path, "what": what} for path, what in files],
                "notes": notes,
                "errors": [p.message for p in problems],
                "diff": "".join(diffs),
            }
        )
    else:
        if dry_run:
            click.echo("".join(diffs), nl=False)
        for path, what in files:
            say(f"{what:9}  {path}{' (dry run: not done)' if dry_run else ''}")
        if not files and not problems:
            say("nothing of guardhook was registered there")
        for problem in problems:
            say(f"guardhook: {problem.message}")
            for hint in problem.hints:
                say(f"  {hint}")
        for note in notes:
            say(f"note       {note}")
    if problems:
        raise click.exceptions.Exit(2)


def _wanted(name: str, here: machine.Machine, own: Folders, scope: str, notes: list[str]) -> bool:
    """Whether a scope has anything of ours. System scope is left alone, and told of, when we are not root."""
    module = table.load(name)
    if scope == "system" and here.windows and name == "codex":
        return False
    found = module.registrations(here, scope, apply.files_of(here, scope).read)
    remembered = record.known(places.of_scope(here, scope, own), name, scope)
    if not found and not any(r.path in module.places(here, scope) for r in remembered):
        return False
    if scope == "system" and hasattr(os, "geteuid") and os.geteuid() != 0:
        notes.append(
            f"{found[0].file if found else name} still registers guardhook; only root can take it out: `sudo guardhook uninstall {name} --scope system`"
        )
        return False
    return True


def _elsewhere(own: Folders, notes: list[str], everything: bool) -> bool:
    """Registrations that are still listed: other harnesses, other projects."""
    rows = record.registrations(own)
    if everything:
        notes += [
            f"still registered: {dialect} in {path} (run `guardhook uninstall {dialect} --project FOLDER`)"
            for dialect, _, path in rows
        ]
    return bool(rows)


def _program(own: Folders, as_json: bool) -> list[tuple[str, str]]:
    from guardhook.harness import program

    try:
        gone = program.remove(own)
        try:
            os.rmdir(own.data)
        except OSError:
            pass  # the journal is in it
        # The launchers, two for each dialect, are told of as the folder that they were in.
        binaries = os.path.join(own.data, program.BIN)
        return [(p, "removed") for p in dict.fromkeys(binaries if os.path.dirname(p) == binaries else p for p in gone)]
    except program.ProgramError as error:
        fail(str(error), code=1, as_json=as_json)
