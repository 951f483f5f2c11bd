"""`guardhook stats`: the store in numbers."""

from __future__ import annotations

import time
from typing import Any

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import say
from guardhook.store import Store
from guardhook.views import shapes


@click.command("stats")
@click.option("--since", metavar="TIME", help="Started since a date (2026-08-16) or for a while (30d, 12h).")
@reading.project
@reading.as_json
@reading.directory
def command(since: str | None, project: str | None, as_json: bool, directory: str | None) -> None:
    """Count traces, steps, tokens and failures."""
    chosen = reading.narrowed(time.time(), as_json, since=since, project=project)
    with reading.opened(directory, as_json, nothing={**shapes.NO_STATS, "since": since}) as store:
        found = shapes.stats(store, resolve(directory), chosen)
        if as_json:
            reading.print_json(found)
            return
        _panel(found)
        _problems(store)


def _panel(found: dict[str, Any]) -> None:
    from guardhook.views.text import box, cost, count, duration, one_line

    paint, width = reading.paint(), reading.width()
    overall = found["overall"]
    traces, sample = overall["traces"], overall["avgDurationSample"]
    average = duration(overall["avgDurationMs"]) + (f" (over {sample} of {traces})" if sample != traces else "")
    rows = [
        ("Traces", count(traces)),
        ("Steps", count(overall["steps"])),
        ("Evals", count(overall["evals"])),
        ("Active policies", count(overall["policies"])),
        ("Avg duration", average),
        ("Total tokens", count(overall["totalTokens"])),
        ("Total cost", cost(overall["totalCost"])),
    ]
    for line in box(rows, width):
        click.echo(line)
    for status, number in found["by_status"].items():
        if number:
            click.echo(f"{paint.status(status)} {number}")
    for agent in found["by_agent"]:
        bad = agent["failed_or_timeout"]
        rest = f" ({bad} failed or timed out)" if bad else ""
        said = f": {agent['count']}{rest}"
        click.echo(one_line(agent["agent_name"], max(8, min(40, width - len(said)))) + said)


def _problems(store: Store) -> None:
    """Lines of the journal that could not be read are told, never passed over."""
    found = store.problems(limit=4)
    for problem in found[:3]:
        say(f"journal/{problem.file}: line {problem.line}: {problem.kind}: {problem.detail}")
    if len(found) > 3:
        say("there are more; `guardhook journal verify` tells all")
