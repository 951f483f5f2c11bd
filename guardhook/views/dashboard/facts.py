"""What the dashboard shows, asked of the store in one go. Costs what the newest traces cost, however large the store is."""

from __future__ import annotations

from typing import NamedTuple

from guardhook.store import Store, Trace
from guardhook.store.model import STATUSES, Step, parsed

TRACES = 30
EVALS = 20
DAYS = 30
OBJECTIONS = 40
ACTIVITY = 60


class Objection(NamedTuple):
    """A call or prompt that the gate did not let pass plainly."""

    trace: Trace
    step: Step


class Happened(NamedTuple):
    """A line of the activity log."""

    at: str
    trace: Trace
    step: Step


class Facts(NamedTuple):
    """One picture of the store. days: traces begun per day, the last one today; scores: newest last, 0 to 1."""

    traces: list[Trace]
    total: int
    stats: dict[str, object]
    objections: list[Objection]
    policies: list[tuple[str, int]]
    activity: list[Happened]
    scores: list[float]
    days: list[int]


def gather(store: Store, stats: dict[str, object]) -> Facts:
    """Everything for one picture. stats: the documented shape of `stats`. Raises sqlite3.Error, StoreError."""
    page = store.traces(limit=TRACES)
    objections: list[Objection] = []
    activity: list[Happened] = []
    counts: dict[str, int] = {}
    for trace in page.items:
        for step in store.objections(trace, OBJECTIONS):
            objections.append(Objection(trace, step))
            name = step.name.removeprefix("guard:")
            counts[name] = counts.get(name, 0) + 1
    for trace in sorted(page.items, key=lambda t: t.last_us or 0, reverse=True)[:6]:
        for step in store.steps(trace, max(1, trace.step_count - ACTIVITY)):
            activity.append(Happened(step.ended_at or step.started_at or "", trace, step))
    objections.sort(key=lambda o: o.step.started_at or "", reverse=True)
    activity.sort(key=lambda h: h.at)
    return Facts(
        page.items,
        page.total,
        stats,
        objections[:OBJECTIONS],
        sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:5],
        activity[-ACTIVITY:],
        _scores(store),
        store.begun(int(store.now) // 86_400 - DAYS + 1, DAYS),
    )


def _scores(store: Store) -> list[float]:
    rows = store.connection.execute(
        "SELECT score, details FROM agent_trace_evals ORDER BY evaluated_at DESC, rowid DESC LIMIT ?", (EVALS * 5,)
    )
    found = [float(score) for score, details in rows if not _skipped(details)]
    return found[:EVALS][::-1]


def _skipped(details: str) -> bool:
    value = parsed(details, {})
    return isinstance(value, dict) and value.get("skipped") is True


def by_status(facts: Facts) -> list[tuple[str, int]]:
    """How many traces are in which state, in the usual order."""
    found = facts.stats.get("by_status")
    return [(status, int(found.get(status) or 0)) for status in STATUSES] if isinstance(found, dict) else []
