"""`guardhook rollout drift`: would today's guardhook see and judge a run as it did then?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading, rollout_named, rollout_shared
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.policy.compiled import Compiled
    from guardhook.rollout.drift import Drift
    from guardhook.store import Store

_SHOWN = 20
_SKIPPED = 3  # runs that are named which could not be looked at


@click.command("drift")
@click.argument("name", metavar="[RUN|FILE]", required=False)
@click.option("--since", metavar="TIME", help="All runs opened since a date or for a while (7d).")
@click.option("--strict", is_flag=True, help="Changes that are owed to files on this machine count as well.")
@reading.as_json
@reading.directory
def command(name: str | None, since: str | None, strict: bool, as_json: bool, directory: str | None) -> None:
    """Put recorded payloads through today's guardhook and compare, in two layers.

    Is a run still seen as it was (recognising, reading, judging, rendering), and how do today's policies judge its calls? Nothing is run and no model is
    asked. Status 0 when nothing drifted, 3 when something did.
    """
    from guardhook.rollout import drift
    from guardhook.rollout.load import Rollout
    from guardhook.store import StoreError, backtest

    if (name is None) == (since is None):
        fail("name a run or a file, or give --since", as_json=as_json)
    folders = resolve(directory)
    bound = reading.narrowed(time.time(), as_json, since=since)
    rollout: Rollout | None = None
    if name is not None and rollout_named.is_file(name):
        rollout = rollout_named.from_file(name, as_json)
    found: list[Drift] = []
    skipped: list[str] = []
    whole = True
    rollout_named.tolerate()
    with reading.opened(directory, as_json) as store:
        try:
            main = backtest.compiled(folders)
        except StoreError as error:
            fail(error.message, as_json=as_json)
        try:
            if rollout is not None:
                found.append(drift.of_rollout(folders, rollout, main, strict=strict))
            else:
                whole = _runs(store, folders, name, bound.since_us, main, strict, as_json, found, skipped)
        except drift.DriftError as error:
            fail(str(error), code=1, as_json=as_json)
    with reading.heard():
        if as_json:
            many = {"matched": all(d.clean for d in found), "runs": [{"run_id": d.run_id, **d.as_dict()} for d in found], "skipped": skipped}  # fmt: skip
            reading.print_json(found[0].as_dict() if since is None else many)
        else:
            for one in found:
                _print(one)
            if since is not None:
                click.echo(f"{len(found)} runs, {sum(not d.clean for d in found)} of them drifted.")
            for text in skipped[:_SKIPPED]:
                say(f"guardhook: {text}")
            if len(skipped) > _SKIPPED:
                say(f"guardhook: {len(skipped) - _SKIPPED:,} more runs were left out; --json names all")
    if not all(d.clean for d in found):
        raise SystemExit(3)
    if not whole:
        raise SystemExit(1)


def _runs(
    store: Store, folders: Folders, name: str | None, since_us: int | None, main: Compiled, strict: bool, as_json: bool,
    found: list[Drift], skipped: list[str],
) -> bool:  # fmt: skip
    """Measures the run of this name, or all of a while. Gives whether the journal could be read for all of them."""
    from guardhook.rollout import drift
    from guardhook.rollout.runs import find_in, list_in
    from guardhook.store import NotFound, StoreError, instants

    options = rollout_shared.options(rollout_shared.settings(folders, as_json), as_json)
    if name is not None:
        found.append(drift.measure(folders, find_in(store, name), main, options=options, strict=strict))
        return True
    whole = True
    since = None if since_us is None else instants.iso_ms(since_us)
    for ref in list_in(store, since=since, copies=False):
        if ref.dialect == drift.SCRIPT:  # not what anybody means by the runs of a while
            continue
        try:
            found.append(drift.measure(folders, ref, main, options=options, strict=strict))
        except drift.DriftError as error:
            skipped.append(str(error))
        except StoreError as error:  # its file can't be read, or is gone
            skipped.insert(0, f"{ref.run_id}: {error.message}")
            whole = whole and isinstance(error, NotFound)
    return whole


def _print(found: Drift) -> None:
    from guardhook.views.text import count, one_line

    paint, width = reading.paint(), reading.width()
    pipeline, policy = found.pipeline, found.policy
    word = paint.green("no drift") if found.clean else paint.red("drift")
    click.echo(f"{paint.bold(found.run_id)}: {word}")
    if not found.integrity.matched:
        click.echo(
            f"  its calls don't fit together ({count(len(found.integrity.mismatches))} mismatches; see rollout simulate)"
        )
    steps = [f"{len(v)} {k}" for k in ("changed", "added", "removed") if isinstance(v := pipeline[f"{k}_steps"], list) and v]  # fmt: skip
    ends = "" if pipeline["outcome_diff"] == "identical" else f", outcome {pipeline['outcome_diff']}"
    click.echo(f"  seen and told: {', '.join(steps) + ' steps' if steps else 'the same'}{ends}")
    counts = ", ".join(f"{n} {k.replace('_', ' ')}" for k, n in policy.counts.items() if n) or "the same verdicts"
    click.echo(f"  judged: {count(policy.evaluated)} calls again, {counts}")
    if policy.unevaluable:
        whys: dict[str, int] = {}
        for one in policy.unevaluable:
            whys[str(one["why"])] = whys.get(str(one["why"]), 0) + 1
        click.echo(paint.yellow(f"  {count(len(policy.unevaluable))} unevaluable ({', '.join(f'{n} {w}' for w, n in whys.items())})"))  # fmt: skip
    for change in policy.changes[:_SHOWN]:
        then, now = change["then"], change["now"]
        assert isinstance(then, dict) and isinstance(now, dict)
        marks = [m.replace("_", " ") for m in ("environment", "after_divergence") if change.get(m)]
        text = f"step {change['step']} {change['call_id']} {change['tool']}: {then['action']} ({then['policy'] or '-'}) -> {now['action']} ({now['policy'] or '-'})"  # fmt: skip
        click.echo(f"    {one_line(text + ('  [' + ', '.join(marks) + ']' if marks else ''), max(40, width - 4))}")
    if len(policy.changes) > _SHOWN:
        click.echo(f"    and {count(len(policy.changes) - _SHOWN)} more; --json names them")
