"""`guardhook diff`: where two traces part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.output import fail
from guardhook.store import Store
from guardhook.store.diff import FIELDS, PRESENCE, Diff, Difference, compare

if TYPE_CHECKING:
    from guardhook.evals.ai_diff import Analysis


@click.command("diff")
@click.argument("left_id", metavar="LEFT")
@click.argument("right_id", metavar="RIGHT")
@click.option("--compact", is_flag=True, help="One line per difference, without the values.")
@click.option("--fields", metavar="LIST", help=f"Only these: {', '.join(FIELDS)}.")
@click.option("--ai", is_flag=True, help="Ask the configured model to explain (see guardhook config).")
@reading.as_json
@reading.directory
def command(
    left_id: str, right_id: str, compact: bool, fields: str | None, ai: bool, as_json: bool, directory: str | None
) -> None:
    """Compare two traces step by step. Status 0, different or not."""
    chosen = reading.chosen_of(FIELDS, fields, as_json=as_json)
    with reading.opened(directory, as_json) as store:
        found = compare(store, store.get(left_id), store.get(right_id), chosen or FIELDS)
        said = _asked(store, found, directory, as_json) if ai else None
        if as_json:
            reading.print_json(found.as_dict() if said is None else {**found.as_dict(), "ai_analysis": said.as_dict()})
            return
        _print(found, chosen, compact)
        if said is not None:
            from guardhook.views import evaluation

            for line in evaluation.analysis(said, reading.width(), reading.paint()):
                click.echo(line)


def _asked(store: Store, found: Diff, directory: str | None, as_json: bool) -> Analysis:
    """What a model says of the differences. Nobody to ask, or no usable answer: the command ends."""
    from guardhook.commands.folders import resolve
    from guardhook.commands.output import say
    from guardhook.evals import ai_diff
    from guardhook.evals.ai import provider, settings
    from guardhook.policy.settings import SettingsError

    folders = resolve(directory)
    try:
        choice = settings.choose(folders)
        say(f"asking {choice.model} at {choice.host}")
        said = ai_diff.analyse(store, folders, found, choice)
    except settings.NoProvider as error:
        fail(str(error), hints=error.hints, code=1, as_json=as_json)
    except provider.ProviderError as error:
        fail(str(error), code=1, as_json=as_json)
    except SettingsError as error:
        fail(str(error), as_json=as_json)
    if said.secrets:
        say(f"secrets were taken out of {said.secrets} text(s) before they were sent")
    return said


def _print(found: Diff, chosen: tuple[str, ...] | None, compact: bool) -> None:
    from guardhook.views.text import count, one_line

    paint, width = reading.paint(), reading.width()
    if not found.differences:
        click.echo(
            "Traces are identical."
            if chosen is None
            else f"No differences in the selected field(s): {', '.join(chosen)}."
        )
        return
    for sign, trace in (("-", found.left), ("+", found.right)):
        click.echo(f"{sign} {one_line(f'{trace.id}  {trace.agent_name}', width - 20)}  {count(trace.step_count)} steps")
    if found.divergence_step is not None:
        click.echo(f"They part at step {found.divergence_step}.")
    for difference in found.differences:
        place = "trace" if difference.step_number is None else f"#{difference.step_number}"
        if difference.field in PRESENCE:
            only, name = ("left", difference.left_value) if difference.field == "missing_right" else ("right", difference.right_value)  # fmt: skip
            click.echo(f"{place} only {only}: {one_line(str(name), max(20, width - 24))}")
            continue
        click.echo(f"{place} {paint.bold(difference.field)}")
        if not compact:
            old, new = _cells(difference, max(20, width - 4))
            click.echo("  " + paint.red("- " + old))
            click.echo("  " + paint.green("+ " + new))
    click.echo(_counted(found.differences))


def _cells(difference: Difference, columns: int) -> tuple[str, str]:
    """Both values as one line each, cut so that the first place where they differ can be seen."""
    from guardhook.core.jsontext import dumps
    from guardhook.views.text import one_line

    old, new = (
        "(nothing)" if v is None else one_line(v) if isinstance(v, str) else one_line(dumps(v))
        for v in (difference.left_value, difference.right_value)
    )
    if len(old) > columns or len(new) > columns:
        same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        start = max(0, same - columns // 3)
        if start:
            old, new = "…" + old[start:], "…" + new[start:]
    return one_line(old, columns), one_line(new, columns)


def _counted(differences: list[Difference]) -> str:
    counts: dict[str, int] = {}
    for difference in differences:
        name = "step presence" if difference.field in PRESENCE else f"in {difference.field}"
        counts[name] = counts.get(name, 0) + 1
    total = len(differences)
    return f"{total} difference{'' if total == 1 else 's'}: " + ", ".join(f"{n} {name}" for name, n in counts.items())
