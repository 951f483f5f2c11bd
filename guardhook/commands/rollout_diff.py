"""`guardhook rollout diff`: two rollouts side by side."""

from __future__ import annotations

import click

from guardhook.commands import reading, rollout_named
from guardhook.commands.output import fail


@click.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--exact", is_flag=True, help="Take out times and run ids only: sessions and durations count as differences."
)
@click.option("--fail-on", metavar="WHAT", help="Status 3 on a `regression`: when A did better.")
@reading.as_json
@reading.directory
def command(a: str, b: str, exact: bool, fail_on: str | None, as_json: bool, directory: str | None) -> None:
    """Compare two rollouts, files or runs of the journal, step by step, and say which one did better. Status 0, different or not."""
    from guardhook.rollout.canonical import DEFAULT, EXACT, canonical
    from guardhook.rollout.compare import DIVERGED, IDENTICAL, ONLY_A, ONLY_B, diff, score
    from guardhook.rollout.plain import plain

    if fail_on not in (None, "regression"):
        fail(f"--fail-on {fail_on!r}: there is regression", as_json=as_json)
    rollout_named.tolerate()
    sides = [canonical(rollout_named.named(n, directory, as_json).events, EXACT if exact else DEFAULT) for n in (a, b)]
    found, judged = diff(sides[0], sides[1]), score(sides[0], sides[1])
    with reading.heard():
        if as_json:
            reading.print_json({**found.as_dict(), "score": judged.as_dict()})
        else:
            for name, side in (("A", judged.a), ("B", judged.b)):
                click.echo(f"Run {name}: {side.steps} steps, ${side.cost:.5f}")
            click.echo(
                f"Steps: {found.count(IDENTICAL)} identical, {found.count(DIVERGED)} diverged, {found.count(ONLY_A)} only in A, {found.count(ONLY_B)} only in B"
            )
            winner = {"a": "A", "b": "B"}.get(judged.winner, "Tie")
            click.echo(f"Winner: {winner} ({plain(', '.join(judged.reasons))})")
    if fail_on is not None and judged.regression:
        raise SystemExit(3)
