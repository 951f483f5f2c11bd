"""`guardhook install HARNESS`: puts the hook program in place and registers it."""

from __future__ import annotations

import os
import stat
import sys

import click

from guardhook.commands import folders as where
from guardhook.commands.output import emit, fail, say
from guardhook.harness import apply, machine, model, places, table
from guardhook.harness.errors import HarnessError


@click.command(name="install")
@click.argument("harness", type=click.Choice(sorted(table.MODULES)))
@click.option(
    "--scope", type=click.Choice(model.SCOPES), default="user", show_default=True, help="Whose settings to write."
)
@click.option(
    "--project",
    type=click.Path(file_okay=False),
    help="The project of --scope project (default: the enclosing repository).",
)
@click.option("--capture-only", is_flag=True, help="Record everything, never stop anything.")
@click.option("--dry-run", is_flag=True, help="Print the changes as a diff and touch nothing.")
@click.option(
    "--dir", "directory", type=click.Path(), help="One folder for configuration, policies, journal and program."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    harness: str,
    scope: str,
    project: str | None,
    capture_only: bool,
    dry_run: bool,
    directory: str | None,
    as_json: bool,
) -> None:
    """Register guardhook in a harness: claude-code, codex or gemini.

    Only guardhook's own entries are added to the settings; everything else in them stays as it is, byte for byte.
    Running it again changes nothing, or brings the registration up to date.
    """
    module = table.load(harness)
    here = machine.here(project)
    if here.windows:  # the gate reads its input and keeps its time by means of POSIX
        fail(
            "the gate does not run on Windows itself: a registration would guard nothing",
            hints=("install guardhook and the harness inside WSL",),
            as_json=as_json,
        )
    own = where.resolve(directory)
    folders = places.of_scope(here, scope, own)
    from guardhook.harness import program, prompts

    try:
        launchers = model.Launchers(*(program.launcher_path(folders, harness, mode) for mode in program.MODES))
        mode = model.CAPTURE if capture_only else model.ENFORCE
        request = model.Request(scope, mode, launchers, prompts=not capture_only and prompts.judged(own))
        apply.install(module, here, folders, request, dry_run=True)  # refuses before the program is placed
        placed = None if dry_run else program.place(folders, shared=scope == "system")
        if placed and scope != "system":
            program.prepare(folders)
        done = apply.install(module, here, folders, request, dry_run=dry_run)
        others = [s for s in model.SCOPES if s != scope and _registered(module, here, s, besides=scope)]
    except HarnessError as error:
        fail(error.message, hints=error.hints, as_json=as_json)
    except program.ProgramError as error:
        fail(str(error), code=1, as_json=as_json)
    notes = list(done.notes)
    notes += [f"also registered in {other} scope: every call is judged once for each" for other in others]
    if placed and placed.note:
        notes.append(f"the launcher is the weaker sh form: {placed.note}")
    if scope == "system" and (closed := _closed_to_others()):
        notes.append(
            f"other users can't reach {closed}, which the hook needs: their calls are blocked; use the built executable"
        )
    if scope != "system" and not capture_only:
        notes.append("what runs as you can undo this; `--scope system`, as root, resists that")
    failed = any(f.ok is False for f in done.findings)
    if as_json:
        emit(
            {
                "ok": not failed,
                "harness": harness,
                "scope": scope,
                "mode": mode,
                "dry_run": dry_run,
                "files": [{"path": path, "what": what} for path, what in done.files.items()],
                "backups": done.backups,
                "notes": notes,
                "findings": [f.plain() for f in done.findings],
                "diff": done.diff,
            }
        )
    else:
        if dry_run:
            click.echo(done.diff, nl=False)
        for path, what in done.files.items():
            say(f"{what:9}  {path}{' (dry run: not done)' if dry_run and what != 'unchanged' else ''}")
        for path in done.backups:
            say(f"backup     {path}")
        for finding in done.findings:
            say(
                f"{'ok' if finding.ok else 'FAILED' if finding.ok is False else 'note':9}  {finding.check}: {finding.detail}"
            )
        for note in notes:
            say(f"note       {note}")
        if not dry_run:
            say(f"Next: `guardhook doctor {harness}` proves that it works.")
    if failed:
        raise click.exceptions.Exit(1)


def _registered(module: model.Harness, here: machine.Machine, scope: str, besides: str) -> bool:
    """Whether a scope has us in files of its own: in the home folder, project and user scope share them."""
    try:
        found = module.registrations(here, scope, apply.files_of(here, scope).read)
        shared = module.places(here, besides)
        return any(row.file not in shared for row in found)
    except HarnessError:
        return False


def _closed_to_others() -> str | None:
    """A part of the path to interpreter or package that only its owner can pass: in a system-wide installation all must."""
    if getattr(sys, "frozen", False) or os.name != "posix":
        return None
    for start in (os.path.realpath(sys.executable), os.path.dirname(os.path.realpath(apply.__file__))):
        at = start
        while at != "/":
            if not os.stat(at).st_mode & stat.S_IXOTH:
                return at
            at = os.path.dirname(at)
    return None
