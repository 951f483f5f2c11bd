"""`guardhook list`: what was recorded, newest first."""

from __future__ import annotations

import sys
import time

import click

from guardhook.commands import reading
from guardhook.commands.output import say
from guardhook.store import Page, Trace

_SILENT_DAYS = 7
_NUMBERS = frozenset(("Steps", "Duration", "Tokens"))
_LESS = ("Duration", "Tokens", "Steps", "Started", "Agent")  # in a narrow terminal these go, in this order
_AGENT = 8  # columns that an agent's name gets at the least
_ABANDONED_US = 30 * 60 * 1_000_000


@click.command("list")
@reading.filters
@click.option(
    "--sort", metavar="KEY", help="started_at, duration, tokens, cost or agent_name; with - in front descending."
)
@click.option(
    "--limit", type=reading.Number(least=-1), default=25, show_default=True, metavar="N", help="At most N; -1 for all."
)
@click.option("--offset", type=reading.Number(least=0), default=0, metavar="N", help="Leave out the first N.")
@reading.as_json
@reading.directory
def command(
    status: str | None,
    agent: str | None,
    tag: str | None,
    session: str | None,
    since: str | None,
    project: str | None,
    sort: str | None,
    limit: int,
    offset: int,
    as_json: bool,
    directory: str | None,
) -> None:
    """List recorded traces."""
    now = time.time()
    chosen = reading.narrowed(
        now, as_json, status=status, agent=agent, tag=tag, session=session, since=since, project=project
    )
    with reading.opened(directory, as_json, nothing={"items": [], "total": 0}) as store:
        page = store.traces(chosen, sort=sort, limit=limit, offset=offset)
        if as_json:
            reading.print_json({"items": [trace.as_item() for trace in page.items], "total": page.total})
        elif page.items:
            _table(page, int(now * 1_000_000))
            heard = store.last_heard()
            if heard is not None and now * 1_000_000 - heard > _SILENT_DAYS * 86_400_000_000:
                say(
                    f"nothing was recorded for {int(now - heard / 1_000_000) // 86_400} days; if agents ran since, they did not"
                    " reach guardhook: see `guardhook doctor`"
                )
        else:
            say(
                "no trace matches" if page.total == 0 and chosen != type(chosen)() else "no trace has been recorded yet"
            )


def _table(page: Page, now_us: int) -> None:
    from rich.table import Table

    from guardhook.views.terminal import cell, console
    from guardhook.views.text import count, duration, relative

    paint = reading.paint()
    out = console(sys.stdout, reading.width(), colour=paint.on)
    out.print(f"{len(page.items)} trace(s) found ({page.total} total)", highlight=False, markup=False)
    rows = [
        {
            "ID": cell(trace.id[:12], 12),  # its start is enough to name it
            "Agent": cell(trace.agent_name, 40),
            "Status": cell(_status(trace, now_us), 24),
            "Steps": cell(count(trace.step_count), 24),
            "Duration": cell(duration(trace.effective_duration_ms), 24),
            "Tokens": cell(count(trace.effective_tokens), 24),
            "Started": cell(relative(_started(trace), now_us), 24),
        }
        for trace in page.items
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold" if paint.on else "")
    names = _fitting({name: max(len(name), *(row[name].cell_len for row in rows)) for name in rows[0]}, out.width)
    for name in names:
        if name == "Agent":  # the one that gives way
            table.add_column(name, overflow="ellipsis", max_width=40)
        else:
            table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(row[name] for name in names))
    out.print(table)


def _fitting(widths: dict[str, int], room: int) -> list[str]:
    """The columns for which there is room when an agent's name may be cut to a few characters."""
    names = list(widths)
    for name in _LESS:
        if sum(min(widths[n], _AGENT) if n == "Agent" else widths[n] for n in names) + 2 * (len(names) - 1) <= room:
            break
        names.remove(name)
    return names


def _started(trace: Trace) -> int | None:
    from guardhook.store import instants

    return instants.micros(trace.started_at)


def _status(trace: Trace, now_us: int) -> str:
    from guardhook.views.text import Paint

    started = _started(trace)
    if trace.status == "running" and not trace.live and started is not None and now_us - started > _ABANDONED_US:
        return "⚠ abandoned?"
    return Paint(False).status(trace.status)
