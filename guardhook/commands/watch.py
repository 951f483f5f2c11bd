"""`guardhook watch`: a trace while it happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import say
from guardhook.store.watch import Follower


@click.command("watch")
@click.argument("trace_id", metavar="[ID]", required=False)
@click.option("--interval", type=reading.Number(least=1, most=2147483647), default=50, show_default=True, metavar="MS", help="How often to look, in milliseconds.")  # fmt: skip
@click.option("--follow", is_flag=True, help="Go on after the agent has finished a turn, until interrupted.")
@reading.directory
def command(trace_id: str | None, interval: int, follow: bool, directory: str | None) -> None:
    """Follow a trace: ID, or else the newest one that is running. Ends when the trace does."""
    try:
        with reading.opened(directory, False, nothing={} if trace_id is None else None) as store:
            trace = store.get(trace_id) if trace_id is not None else store.newest_running()
            if trace is None:
                say("no trace is running")
                return
            follower = Follower(store, trace, resolve(directory).journal)
            _print(_heading(follower))
            while True:
                if follower.stale():
                    _show(follower)
                    if follower.trace.status != "running" and not follow:
                        _show(follower)  # what came between
                        _print(_ending(follower))
                        return
                time.sleep(interval / 1000)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _show(follower: Follower) -> None:
    from guardhook.views import timeline
    from guardhook.views.text import count, duration, one_line

    paint, width = reading.paint(), reading.width()
    for seen in follower.look():
        step = seen.step
        if not seen.ended:
            _print(timeline.step_lines(step, width, paint))
            continue
        word = paint.red("failed") if step.error is not None else paint.green("done")
        said = [f"{paint.dim('└─')} {step.step_number} {word}"]
        if step.duration_ms is not None:
            said.append(duration(step.duration_ms))
        if step.tokens_used is not None:
            said.append(f"{count(step.tokens_used)} tokens")
        if step.error is not None:
            said.append(one_line(step.error, max(10, width - 40)))
        _print(iter([" ".join(said)]))


def _heading(follower: Follower) -> Iterator[str]:
    from guardhook.views.text import one_line

    paint = reading.paint()
    trace = follower.trace
    yield f"{one_line(trace.id, 20)}  {paint.bold(one_line(trace.agent_name, 40))}  {paint.status(trace.status)}"


def _ending(follower: Follower) -> Iterator[str]:
    from guardhook.views.text import block

    paint = reading.paint()
    yield paint.status(follower.trace.status)
    if follower.trace.error is not None:
        for line in block(follower.trace.error, max(10, reading.width() - 7)):
            yield f"{paint.red('Error')}  {line}"
