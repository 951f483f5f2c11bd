"""`guardhook decisions`: what was decided in a trace, by the agent, a person or a policy."""

from __future__ import annotations

import click

from guardhook.commands import reading


@click.command("decisions")
@click.argument("trace_id", metavar="ID")
@reading.as_json
@reading.directory
def command(trace_id: str, as_json: bool, directory: str | None) -> None:
    """List the decisions of a trace."""
    from guardhook.views import shapes
    from guardhook.views.text import one_line

    with reading.opened(directory, as_json) as store:
        trace = store.get(trace_id)
        if as_json:
            reading.print_json(shapes.decisions(store, trace))
            return
        paint, width = reading.paint(), reading.width()
        empty = True
        for step in store.decisions(trace):
            empty = False
            by = f" ({step.decided_by})" if step.decided_by else ""
            click.echo(f"#{step.step_number} {paint.bold(one_line(step.name, max(20, width - 30)))}{paint.dim(by)}")
            if step.chosen is None:
                continue
            confidence = "" if step.confidence is None else f" ({step.confidence:.0%} sure)"
            click.echo(f"   chose {one_line(step.chosen, max(8, width - 25))}{confidence}")
            if step.rationale:
                click.echo(f"   because {one_line(step.rationale, max(8, width - 11))}")
            others = [o for o in map(_option, step.decision.options if step.decision else []) if o and o != step.chosen]
            if others:
                click.echo(f"   {paint.dim('instead of')} {one_line(', '.join(others), max(8, width - 14))}")
        if empty:
            click.echo("No decisions in this trace.")


def _option(value: object) -> str | None:
    option = value.get("option") if isinstance(value, dict) else None
    return option if isinstance(option, str) else None
