"""Two rollouts side by side: which steps differ, and which run did better."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guardhook.core.jsontext import dumps
from guardhook.rollout.canonical import equal
from guardhook.rollout.load import Event, outcome

ERRORS = frozenset((
    "run.failed", "hook.failed", "tool_hook.failed", "memory.observe.failed", "skill.fork.failed", "error.context",
))  # fmt: skip
IDENTICAL, DIVERGED, ONLY_A, ONLY_B = "identical", "diverged", "only_in_a", "only_in_b"
EQUIVALENT = "runs are equivalent"


class StepDiff(NamedTuple):
    """How one step compares. type_a and type_b are the types of its events, joined by commas."""

    step: int
    status: str
    type_a: str | None
    type_b: str | None
    details: str | None

    def as_dict(self) -> dict[str, object]:
        return {k: v for k, v in self._asdict().items() if v is not None}


class Diff(NamedTuple):
    """What differs. Costs in US dollars."""

    steps: list[StepDiff]
    cost_delta: float
    outcome_diff: str

    def count(self, status: str) -> int:
        return sum(s.status == status for s in self.steps)

    def as_dict(self) -> dict[str, object]:
        return {
            "steps": [s.as_dict() for s in self.steps],
            "identical": self.count(IDENTICAL),
            "diverged": self.count(DIVERGED),
            "only_in_a": self.count(ONLY_A),
            "only_in_b": self.count(ONLY_B),
            "cost_delta": self.cost_delta,
            "outcome_diff": self.outcome_diff,
        }


class Side(NamedTuple):
    """What counts of one run in the score. tool_failures is told and not scored: a failed call is often the way to the result."""

    outcome: str
    errors: int
    cost: float
    steps: int
    tool_failures: int


class Score(NamedTuple):
    """Who did better, `a`, `b` or `tie`, and why."""

    winner: str
    points_a: int
    points_b: int
    reasons: list[str]
    a: Side
    b: Side

    def as_dict(self) -> dict[str, object]:
        return {
            "winner": self.winner, "points_a": self.points_a, "points_b": self.points_b, "reasons": self.reasons, "a": self.a._asdict(), "b": self.b._asdict(),
        }  # fmt: skip

    @property
    def regression(self) -> bool:
        """Whether the second run is the worse one."""
        return self.winner == "a"


def cost(events: Iterable[Event]) -> float:
    """What a run cost: the largest sum that any event reports. Values that are no positive number don't count."""
    most = 0.0
    for event in events:
        payload = event.payload
        if payload is None:
            continue
        if event.type == "usage.delta":
            most = max(most, _money(payload.get("cumulative_cost_usd")))
        elif event.type == "run.completed":
            totals = payload.get("cost_totals")
            if isinstance(totals, dict):
                most = max(most, _money(totals.get("total_cost_usd")), _money(totals.get("cost_usd_total")))
    return most


def _money(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e300:
        return 0.0
    return float(value)


def diff(a: list[Event], b: list[Event]) -> Diff:
    """Compares two runs step by step; both should be canonical (guardhook.rollout.canonical)."""
    left, right = _by_step(a), _by_step(b)
    steps = [_step(step, left.get(step), right.get(step)) for step in sorted(left.keys() | right.keys())]
    return Diff(steps, cost(b) - cost(a), outcome_diff(outcome(a), outcome(b)))


def outcome_diff(a: str, b: str) -> str:
    """identical, a_failed, b_failed, or diverged for everything that has no two clear ends."""
    if a == b and a != "unknown":
        return "identical"
    return {("completed", "failed"): "b_failed", ("failed", "completed"): "a_failed"}.get((a, b), "diverged")


def _by_step(events: list[Event]) -> dict[int, list[Event]]:
    out: dict[int, list[Event]] = {}
    for event in events:
        out.setdefault(event.step, []).append(event)
    return out


def _step(step: int, a: list[Event] | None, b: list[Event] | None) -> StepDiff:
    type_a = None if a is None else ",".join(e.type for e in a)
    type_b = None if b is None else ",".join(e.type for e in b)
    if a is None or b is None:
        return StepDiff(step, ONLY_B if a is None else ONLY_A, type_a, type_b, None)
    if len(a) != len(b):
        return StepDiff(step, DIVERGED, type_a, type_b, f"event count: {len(a)} vs {len(b)}")
    for left, right in zip(a, b, strict=True):
        if left.type != right.type:
            return StepDiff(step, DIVERGED, type_a, type_b, f"type: {dumps(left.type)} vs {dumps(right.type)}")
    same = all(equal(left.payload, right.payload) for left, right in zip(a, b, strict=True))
    return StepDiff(step, IDENTICAL if same else DIVERGED, type_a, type_b, None if same else "payload differences")


def side(events: list[Event]) -> Side:
    """What counts of a run."""
    failures = sum(
        1 for e in events if e.type == "tool.call.completed" and e.payload is not None and e.payload.get("error")
    )
    return Side(
        outcome(events),
        sum(e.type in ERRORS for e in events),
        cost(events),
        max((e.step for e in events), default=0),
        failures,
    )


def score(a: list[Event], b: list[Event]) -> Score:
    """Points for the outcome (3), fewer errors, lower cost and fewer steps (1 each). A run without an end can't win by cost or steps."""
    left, right = side(a), side(b)
    points = [0, 0]
    reasons: list[str] = []
    if (left.outcome, right.outcome) == ("completed", "failed"):
        points[0] += 3
        reasons.append("B failed where A succeeded (regression)")
    elif (left.outcome, right.outcome) == ("failed", "completed"):
        points[1] += 3
        reasons.append("B succeeded where A failed (improvement)")
    if left.errors != right.errors:
        points[left.errors > right.errors] += 1
        reasons.append(f"fewer errors (A:{left.errors} vs B:{right.errors})")
    ended = (left.outcome != "unknown", right.outcome != "unknown")
    withheld = False
    for winner, reason in (
        (_lower(left.cost, right.cost), f"lower cost (A:${left.cost:.5f} vs B:${right.cost:.5f})"),
        (_lower(left.steps, right.steps), f"fewer steps (A:{left.steps} vs B:{right.steps})"),
    ):
        if winner is not None and ended[winner]:
            points[winner] += 1
            reasons.append(reason)
        withheld = withheld or (winner is not None and not ended[winner])
    if withheld or ended[0] != ended[1]:
        reasons.extend(f"{name} has no terminal event" for name, end in zip("AB", ended, strict=True) if not end)
    winner_name = "tie" if points[0] == points[1] else "a" if points[0] > points[1] else "b"
    return Score(winner_name, points[0], points[1], reasons or [EQUIVALENT], left, right)


def _lower(a: float, b: float) -> int | None:
    return None if a == b else int(a > b)
