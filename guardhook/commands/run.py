"""`guardhook run -- CMD`: a program with a trace around it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.commands.record import redaction, tag_list

if TYPE_CHECKING:
    from guardhook.intake.run import Outcome

GRACE_SECONDS = 5.0


@click.command("run", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option("--agent", "--agent-name", "agent", metavar="NAME", help="The trace's agent (default: the command).")
@click.option("--tags", metavar="LIST", help="Tags, with commas between.")
@click.option("--grace", type=reading.Number(least=0, most=86_400, whole=False), default=GRACE_SECONDS, metavar="SECONDS", help="After a SIGTERM or SIGHUP was passed on, until the program is killed (5; 0: never).")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Say nothing at the end.")
@click.argument("words", nargs=-1, metavar="-- COMMAND [ARGUMENT]...")
@reading.directory
def command(
    agent: str | None, tags: str | None, grace: float, quiet: bool, words: tuple[str, ...], directory: str | None
) -> None:
    """Run a program and record it. Its exit status is passed on (128 + number when a signal killed it), and so are signals; its streams and its terminal are the caller's.

    The program may append events of the native protocol to the file in GUARDHOOK_EVENTS.
    """
    from guardhook.intake import record, recording, run

    if not words or not words[0]:
        fail("no command to run", hints=["guardhook run -- COMMAND [ARGUMENT]..."])
    if agent is not None and not agent.strip():
        fail("--agent needs a value")
    folders = resolve(directory)
    # Handed on only when a folder was named: the program then finds the same store, and else its own default.
    named = directory if directory and directory.strip() else os.environ.get("GUARDHOOK_DIR", "")
    last: list[str] = []

    def warn(message: str) -> None:
        last[:] = [message]
        if not quiet:
            say(f"guardhook run: {message}")

    try:
        wrapped = run.Run(
            folders, words, agent=agent, tags=tag_list(tags), root=recording.project_here(),
            redaction=redaction(folders, False), warn=record.Told(warn),
        )  # fmt: skip
    except run.NotRecorded:
        fail(f"the trace could not be begun, and {words[0]!r} was not started", code=1, hints=last if quiet else [])
    outcome = wrapped.go(grace=grace or None, directory=folders.data if named.strip() else None, last=True)
    if not quiet:
        say(_last_line(outcome))
    raise SystemExit(outcome.code)


def _last_line(outcome: Outcome) -> str:
    status = outcome.status
    if outcome.declared and (outcome.code != 0) != (status != "completed"):
        status += f" (as it declared; it ended with {outcome.code})"
    lost = f", {outcome.lost:,} not stored" if outcome.lost else ""
    return f"guardhook run: trace {outcome.trace[:12]} {status}, {outcome.events:,} event(s) recorded{lost}"
