"""`guardhook coverage`: was the guard awake?"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from guardhook.commands import progress, reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say

if TYPE_CHECKING:
    from guardhook.intake.coverage import SessionCoverage

SINCE = "7d"


@click.command("coverage")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--since", default=SINCE, show_default=True, metavar="TIME", help="Calls since a date (2026-08-16) or for a while (30d).")  # fmt: skip
@click.option("--fail-under", type=reading.Number(least=0, most=100, whole=False), metavar="N", help="Status 1 when fewer than N percent of the calls reached the gate.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Show sessions without a gap, too.")
@reading.project
@reading.as_json
@reading.directory
@reading.printing()
def command(
    paths: tuple[str, ...],
    since: str,
    fail_under: float | None,
    every: bool,
    project: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Hold the tool calls in the harnesses' own session logs against what reached the gate.

    Looks where Claude Code, Codex, Gemini CLI and Qwen Code keep their logs, or at PATH (files and folders). Tells per session which calls never reached
    the gate, and which ran although they were blocked.
    """
    from guardhook.intake import coverage
    from guardhook.store import BadQuery, instants

    if any(not path.strip() for path in paths) or (project is not None and not project.strip()):
        fail("a path is empty", as_json=as_json)
    try:
        bound = instants.since(since, time.time_ns() // 1000)
    except BadQuery as error:
        fail(error.message, as_json=as_json)
    problems: list[tuple[str, str]] = []
    bar = progress.Bar("reading session logs")
    found = coverage.measure(
        resolve(directory), bound, paths=paths or None, project=None if project is None else reading.project_root(project),
        problem=lambda path, why: problems.append((path, why)), progress=bar,
    )  # fmt: skip
    told = _total(found)
    failed = _failed(found, fail_under, len(problems))
    with reading.heard():
        if as_json:
            reading.print_json({
                "ok": failed is None, "since": since, **told, "sessions": [s.as_dict() for s in found],
                "problems": [{"path": path, "reason": why} for path, why in problems],
            })  # fmt: skip
        else:
            _print(found, every, bool(paths), since)
    for path, why in problems if not as_json else ():
        say(f"{path}: {why}")
    if failed is not None:
        if not as_json:
            say(failed)
        raise SystemExit(1)
    if paths and problems and not found:
        raise SystemExit(1)


def _total(found: list[SessionCoverage]) -> dict[str, object]:
    calls, reached = sum(s.calls for s in found), sum(s.reached for s in found)
    return {
        "calls": calls,
        "reached": reached,
        "judged": sum(s.judged for s in found),
        "percent": round(100 * reached / calls, 2) if calls else None,
        "never": sum(len(s.never) for s in found),
        "ran_although_blocked": sum(len(s.ran_although_blocked) for s in found),
        "refused": sum(s.refused for s in found),
        "without_hook": sum(s.without_hook for s in found),
    }


def _failed(found: list[SessionCoverage], least: float | None, unread: int) -> str | None:
    """Why the gate of --fail-under is not met."""
    if least is None:
        return None
    calls, reached = sum(s.calls for s in found), sum(s.reached for s in found)
    if not calls:
        return "--fail-under: there are no calls to measure"
    if 100 * reached < least * calls:
        return f"--fail-under {least:g}: only {100 * reached / calls:.2f}% of the calls reached the gate"
    although = sum(len(s.ran_although_blocked) for s in found)
    if although:
        return f"--fail-under: {although} call(s) ran although they were blocked"
    return f"--fail-under: {unread} log(s) can't be read, so nobody knows what is in them" if unread else None


def _print(found: list[SessionCoverage], every: bool, given: bool, since: str) -> None:
    from guardhook.intake.coverage import default_places
    from guardhook.views import coverage as view

    if not found and not given and not default_places(os.environ):
        click.echo(
            "No session logs of Claude Code, Codex, Gemini CLI or Qwen Code were found; name files or folders to look at."
        )
        return
    if not found:
        click.echo(f"No tool calls since {since}.")
        return
    for told in view.lines(found, reading.width(), reading.paint(), every=every):
        click.echo(told)
