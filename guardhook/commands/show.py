"""`guardhook show`: one trace with its steps."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from guardhook.commands import reading
from guardhook.commands.output import fail
from guardhook.store import Store, Trace
from guardhook.views import shapes
from guardhook.views.text import Paint


@click.command("show")
@click.argument("trace_id", metavar="ID")
@reading.as_json
@click.option("--steps-only", is_flag=True, help="Only the steps.")
@click.option("--tree", is_flag=True, help="Steps below the steps that led to them.")
@click.option("--from-step", type=reading.Number(least=1), metavar="N", help="From this step on.")
@click.option("--to-step", type=reading.Number(least=1), metavar="N", help="Up to this step.")
@click.option("--evals", is_flag=True, help="Show the evaluations even when there are none.")
@click.option("--snapshots", is_flag=True, help="Show what each step saw.")
@reading.directory
def command(
    trace_id: str,
    as_json: bool,
    steps_only: bool,
    tree: bool,
    from_step: int | None,
    to_step: int | None,
    evals: bool,
    snapshots: bool,
    directory: str | None,
) -> None:
    """Show a trace. ID is a trace id or its start."""
    if from_step is not None and to_step is not None and from_step > to_step:
        fail(f"--from-step {from_step} lies after --to-step {to_step}", as_json=as_json)
    with reading.opened(directory, as_json) as store:
        trace = store.get(trace_id)
        if as_json:
            for piece in shapes.show(store, trace, from_step, to_step, snapshots=snapshots, steps_only=steps_only):
                sys.stdout.write(piece)
            sys.stdout.flush()
            return
        paint, width = reading.paint(), reading.width()
        if not steps_only:
            _print(header(store, trace, width, paint))
        shape = tree and store.has_links(trace)
        _print(_tree(store, trace, from_step, to_step, width, paint) if shape else _timeline(store, trace, from_step, to_step, width, paint))  # fmt: skip
        hidden = trace.step_count - store.count_steps(trace, from_step, to_step)
        if hidden:
            click.echo(paint.dim(f"({hidden} more steps outside the window)"))
        if not steps_only:
            _print(_evals(store, trace, width, paint, always=evals))
        if snapshots:
            _print(_snapshots(store, trace, from_step, to_step, width, paint))


def _print(lines: Iterable[str]) -> None:
    """In pieces, so that a long trace is neither kept nor written line by line."""
    kept: list[str] = []
    for line in lines:
        kept.append(line)
        if len(kept) >= 500:
            sys.stdout.write("\n".join(kept) + "\n")
            kept.clear()
    if kept:
        sys.stdout.write("\n".join(kept) + "\n")
    sys.stdout.flush()


def _timeline(
    store: Store, trace: Trace, first: int | None, last: int | None, width: int, paint: Paint
) -> Iterable[str]:
    from guardhook.views import timeline

    return timeline.lines(store.steps(trace, first, last), store.happenings(trace, first), width, paint)


def _tree(store: Store, trace: Trace, first: int | None, last: int | None, width: int, paint: Paint) -> Iterable[str]:
    from guardhook.views import tree

    shape = tree.Shape(store.links(trace, first, last))
    return tree.lines(shape, lambda number: next(store.steps(trace, number, number), None), width, paint)


def header(store: Store, trace: Trace, width: int, paint: Paint) -> list[str]:
    """The frame above the steps: what is known of the whole trace, whatever window is shown."""
    from guardhook.views.text import box, cost, count, duration, one_line

    agent = trace.agent_name + (f" v{trace.agent_version}" if trace.agent_version else "")
    rows = [
        ("Agent", agent),
        ("Trace ID", trace.id),
        ("Status", Paint(False).status(trace.status)),
        ("Trigger", trace.trigger),
        ("Steps", count(trace.step_count)),
        ("Duration", duration(trace.effective_duration_ms)),
        ("Tokens", None if trace.effective_tokens is None else count(trace.effective_tokens)),
        ("Cost", None if trace.total_cost_usd is None else cost(trace.total_cost_usd)),
        ("Started", trace.started_at),
        ("Ended", trace.ended_at),
        ("Session", trace.session_id),
        ("Project", trace.project),
        ("Tags", ", ".join(str(t) for t in trace.tags) or None),
        ("Error", trace.error),
        ("Fork of", None if trace.parent_trace_id is None else f"{trace.parent_trace_id} (step {trace.forked_from_step})"),
    ]  # fmt: skip
    out = box([(name, one_line(value, 60)) for name, value in rows if value is not None], width)
    status = Paint(False).status(trace.status)
    return [line.replace(status, paint.status(trace.status)) for line in out]


def _evals(store: Store, trace: Trace, width: int, paint: Paint, *, always: bool) -> list[str]:
    from guardhook.views.text import one_line

    found = store.evaluations(trace)
    if not found:
        return [paint.dim("No evaluations.")] if always else []
    out = [paint.bold("Evaluations")]
    for entry in found:
        percent = f"{entry.score * 100:.1f}".removesuffix(".0") + "%"
        mark = paint.green("✔") if entry.passed else paint.red("✘")
        said = f"{entry.evaluator_name} ({entry.evaluator_type})"
        out.append(f"{mark} {one_line(said, max(20, width - 20))} {percent}")
    return out


def _snapshots(
    store: Store, trace: Trace, first: int | None, last: int | None, width: int, paint: Paint
) -> Iterable[str]:
    from guardhook.views.text import one_line

    empty = True
    for snapshot in store.snapshots(trace, first, last):
        if empty:
            yield paint.bold("Snapshots")
        empty = False
        yield f"#{snapshot.step_number} ({snapshot.token_count:,} tokens)"
        for name, text in (
            ("context", snapshot.context_window_json),
            ("environment", snapshot.environment_json),
            ("tools", snapshot.tool_state_json),
        ):
            if text not in ("{}", "[]"):
                yield f"   {name:<12}{one_line(text, max(10, width - 15))}"
    if empty:
        yield paint.dim("No snapshots.")
