"""`guardhook replay`: a recorded trace at the pace at which it happened, or faster."""

from __future__ import annotations

import sys
import time

import click

from guardhook.commands import reading
from guardhook.commands.output import fail, say
from guardhook.store import Step
from guardhook.views.text import Paint

UNKNOWN_MS = 500.0  # how long a step took whose duration was not recorded
LONGEST_SECONDS = 3.0


@click.command("replay")
@click.argument("trace_id", metavar="ID")
@click.option("--speed", type=reading.Number(least=0, whole=False), default=5.0, show_default=True, metavar="N", help="Times as fast as it was; 0 for at once.")  # fmt: skip
@click.option("--pause", is_flag=True, help="Wait for a key after each step (on a terminal).")
@click.option("--from-step", type=reading.Number(least=1), metavar="N", help="From this step on.")
@click.option("--to-step", type=reading.Number(least=1), metavar="N", help="Up to this step.")
@reading.directory
def command(
    trace_id: str, speed: float, pause: bool, from_step: int | None, to_step: int | None, directory: str | None
) -> None:
    """Replay a trace step by step. No step takes longer than three seconds."""
    from guardhook.views.text import count, duration, one_line

    if from_step is not None and to_step is not None and from_step > to_step:
        fail(f"--from-step {from_step} lies after --to-step {to_step}")
    try:
        with reading.opened(directory, False) as store:
            trace = store.get(trace_id)
            paint, width = reading.paint(), reading.width()
            if not store.count_steps(trace, from_step, to_step):
                say("there are no steps to replay")
                return
            _print(f"{one_line(trace.id, 20)}  {paint.bold(one_line(trace.agent_name, 40))}")
            shown = errors = took = tokens = 0
            timed = counted = False
            for step in store.steps(trace, from_step, to_step):
                wait = seconds(step.duration_ms, speed)
                if wait:
                    time.sleep(wait)
                for line in _lines(step, width, paint):
                    _print(line)
                shown += 1
                errors += step.error is not None
                if step.duration_ms is not None:
                    timed, took = True, took + step.duration_ms
                if step.tokens_used is not None:
                    counted, tokens = True, tokens + step.tokens_used
                if pause and sys.stdin.isatty() and sys.stdout.isatty():
                    click.pause(info=paint.dim("(any key)"))
            said = [f"{shown:,} steps", f"{errors:,} errors"]
            if timed:
                said.append(duration(took))
            if counted:
                said.append(f"{count(tokens)} tokens")
            _print(f"{paint.status(trace.status)}  {', '.join(said)}")
    except KeyboardInterrupt:
        raise SystemExit(0) from None


def seconds(duration_ms: float | None, speed: float) -> float:
    """How long to wait for a step."""
    if speed <= 0:
        return 0.0
    return min(max(0.0, UNKNOWN_MS if duration_ms is None else duration_ms) / speed / 1000, LONGEST_SECONDS)


def _lines(step: Step, width: int, paint: Paint) -> list[str]:
    from guardhook.views import timeline
    from guardhook.views.text import one_line

    if step.error is not None:
        mark = paint.red("✖")
    elif step.step_type == "guard_check":
        mark = paint.yellow("⚠")
    else:
        mark = paint.green("✔")
    out = [f"{mark} {timeline.head(step, width - 2, paint, before='')}"]
    if step.chosen is not None:
        out.append(f"    chose {one_line(step.chosen, max(10, width - 10))}")
    if step.error is not None:
        out.append(f"    {paint.red('error')} {one_line(step.error, max(10, width - 10))}")
    elif step.output_json not in (None, "null", "{}", "[]"):
        out.append(f"    {one_line(step.output_json or '', max(10, min(100, width - 4)))}")
    return out


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
