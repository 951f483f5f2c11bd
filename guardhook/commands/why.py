"""`guardhook why`: the steps that led to a step."""

from __future__ import annotations

import click

from guardhook.commands import reading


@click.command("why")
@click.argument("trace_id", metavar="ID")
@click.option(
    "--step", "number", type=reading.Number(least=1), required=True, metavar="N", help="The step in question."
)
@reading.as_json
@reading.directory
def command(trace_id: str, number: int, as_json: bool, directory: str | None) -> None:
    """Explain a step by what came before: its cause, its parent, or the last decision."""
    from guardhook.views import shapes
    from guardhook.views.chain import chain
    from guardhook.views.text import cells, one_line
    from guardhook.views.timeline import LABELS

    with reading.opened(directory, as_json) as store:
        trace = store.get(trace_id)
        if as_json:
            reading.print_json(shapes.why(store, trace, number))
            return
        found = chain(store, trace, number)
        paint, width = reading.paint(), reading.width()
        for index, (step, link) in enumerate(found):
            icon, label = LABELS.get(step.step_type, ("?", step.step_type))
            before = "" if index == 0 else f"⟵ {link.replace('_', ' ')}: "
            head = f"{before}#{step.step_number} {icon} {label} "
            name = one_line(step.name, max(8, width - cells(head)))
            click.echo(f"{paint.dim(before)}{head[len(before) :]}{paint.bold(name)}")
            if step.chosen is not None:
                click.echo(f"   chose {one_line(step.chosen, max(8, width - 9))}")
                if step.rationale:
                    click.echo(f"   because {one_line(step.rationale, max(8, width - 11))}")
            if step.error is not None:
                click.echo(f"   {paint.red('error')} {one_line(step.error, max(8, width - 9))}")
