"""`guardhook doctor`: proves, per harness, that a call would really be stopped, and says what can't be."""

from __future__ import annotations

import click

from guardhook.commands import folders as where
from guardhook.commands.output import emit
from guardhook.core.jsontext import printable
from guardhook.harness import machine, places, table
from guardhook.harness.examine import Report, examine
from guardhook.policy import settings_check

_MARK = {True: "ok", False: "FAILED", None: "note"}


@click.command(name="doctor")
@click.argument("harness", type=click.Choice(sorted(table.MODULES)), required=False)
@click.option(
    "--project", type=click.Path(file_okay=False), help="The project to look at (default: the enclosing repository)."
)
@click.option("--dir", "directory", type=click.Path(), help="The folder that it was installed with.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(harness: str | None, project: str | None, directory: str | None, as_json: bool) -> None:
    """Prove that each harness is registered, trusted and fails closed.

    Runs the very command that is registered, with calls that must be denied, must pass, and must be denied with the
    hook program out of reach. Exit status 1 when anything is wrong. With a HARNESS it also shows how each verdict is
    answered there, what the client makes of it, and on which of its versions that was measured.
    """
    here = machine.here(project)
    own, shared = where.resolve(directory), places.shared(here)
    names = [harness] if harness else sorted(table.MODULES)
    reports = [examine(table.load(n), here, own, shared, asked=harness is not None) for n in names]
    ok = all(r.ok for r in reports) and any(r.registered for r in reports)
    settings = [str(problem) for problem in settings_check.problems(own)]
    if as_json:
        emit({"ok": ok, "harnesses": [r.plain() for r in reports], "settings": settings})
    else:
        for report in reports:
            _print(report, answers=harness is not None)
        if not any(r.registered for r in reports):
            _line("guardhook is registered nowhere; run `guardhook install HARNESS`")
        for text in settings:
            _line(f"settings: {text}")
    if not ok:
        raise click.exceptions.Exit(1)


def _print(report: Report, *, answers: bool) -> None:
    if not report.findings:
        _line(f"{report.title}: not here")
        return
    _line(
        f"{report.title}: {'all good' if report.ok and report.registered else 'not registered' if report.ok else 'NOT SAFE'}"
    )
    for finding in report.findings:
        _line(f"  {_MARK[finding.ok]:6}  {finding.check}: {finding.detail}")
    if report.registered:
        for text in report.open:
            _line(f"  open    {text}")
    if answers:
        for row in report.answers:
            _line("  answer  {event} {verdict}: {answer} -> {outcome} ({measured})".format(**row))


def _line(text: str) -> None:
    click.echo(printable(text, 2000))
