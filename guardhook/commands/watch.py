"""`guardhook watch`: a trace while it happens.

With --json one line each: `{"type": "trace", …trace}` first, `{"type": "step", …step}` for every new step, `{"type": "step_end", …step}` when one that was open ends, and
`{"type": "end", "trace_id", "status", "error"}` last. The shapes are those of `show --json`.
"""

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
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per step.")
@reading.directory
def command(trace_id: str | None, interval: int, follow: bool, as_json: bool, directory: str | None) -> None:
    """Follow a trace: ID, or else the newest one that is running. Ends when the trace does."""
    words = as_json and trace_id is not None  # without ID, nothing to follow is no error
    try:
        with reading.opened(directory, words, nothing={} if trace_id is None else None) as store:
            trace = store.get(trace_id) if trace_id is not None else store.newest_running()
            if trace is None:
                say("no trace is running")
                return
            follower = Follower(store, trace, resolve(directory).journal)
            show = _json if as_json else _show
            _print(_json_heading(follower) if as_json else _heading(follower))
            while True:
                if follower.stale():
                    show(follower)
                    if follower.trace.status != "running" and not follow:
                        show(follower)  # what came between
                        _print(_json_ending(follower) if as_json else _ending(follower))
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


def _json(follower: Follower) -> None:
    from guardhook.core.jsontext import dumps

    _print(
        dumps({"type": "step_end" if seen.ended else "step", **seen.step.as_dict(follower.trace.id)})
        for seen in follower.look()
    )


def _json_heading(follower: Follower) -> Iterator[str]:
    from guardhook.core.jsontext import dumps

    yield dumps({"type": "trace", **follower.trace.as_dict()})


def _json_ending(follower: Follower) -> Iterator[str]:
    from guardhook.core.jsontext import dumps

    trace = follower.trace
    yield dumps({"type": "end", "trace_id": trace.id, "status": trace.status, "error": trace.error})


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
