"""Policies that nearly matched: all keys but one held, or all held and `unless` or an exception kept the policy out. Cold; for `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import Any

from guardhook.core.effect import Effect
from guardhook.core.event import Event
from guardhook.core.verdict import Match
from guardhook.policy import match
from guardhook.policy.compiled import Compiled

# Regular expressions are tried that the gate would have skipped, so they get more time than one event has there.
_SECONDS = 2.0
# Keys that say little by themselves: that one of them holds does not make a policy a near miss.
_BROAD = frozenset(("step", "tool", "harness", "agent", "effect"))


@dataclass
class Near:
    """One policy, what held, and what kept it from matching."""

    policy: str
    action: str
    layer: str
    held: list[str]
    missing: str  # the key that did not hold, "" where all did
    excused: str  # `unless` or `exception`, "" where a key was missing
    effect: Effect | None  # the effect that came closest
    priority: int


def nearly(sets: list[Compiled], event: Event, effects: list[Effect], matched: list[Match]) -> list[Near]:
    """Near misses: those kept out by `unless` or an exception first, then by how many keys held, then by priority."""
    seen = {(m.policy, m.layer) for m in matched}
    view = match.View(event)
    budget = match.Budget()
    budget.left = dict.fromkeys(budget.left, _SECONDS)
    found: list[Near] = []
    for compiled in sets:
        for number in sorted(_applicable(compiled, view)):
            row = compiled.row(number)
            if (row[0], row[3]) in seen:
                continue
            near = _row(row, compiled, view, effects, budget)
            if near is not None:
                found.append(near)
    found.sort(key=lambda n: (not n.excused, -len(n.held), -n.priority, n.policy))
    return found


def _applicable(compiled: Compiled, view: match.View) -> set[int]:
    """Numbers of all rows for this event and tool kind, whether or not their literal occurs."""
    event = view.event
    out: set[int] = set()
    for kinds, pairs, always, by_effect, any_effect in compiled.index.get(
        event.event if event.step_type is None else match.STEP, ()
    ):
        if kinds is not None and not any(kind in kinds for kind in view.kinds):
            continue
        out.update(always, any_effect)
        for numbers in by_effect.values():
            out.update(numbers)
        for _, literals in pairs:
            for _, numbers in literals:
                out.update(numbers)
    return out


def _row(
    row: tuple[Any, ...], compiled: Compiled, view: match.View, effects: list[Effect], budget: match.Budget
) -> Near | None:
    name, _, action, layer, priority, _, _, on_event, on_effect, unless, exceptions = row
    held: list[str] = []
    missing: list[str] = []
    telling = False
    for condition in on_event:
        holds = match._Hit(compiled, view, budget).holds(condition, False)
        (held if holds else missing).append(condition[3])
        telling = telling or (holds and condition[0] not in _BROAD)
    if len(missing) > 1:
        return None
    closest: Effect | None = None
    if on_effect:
        closest = _closest(on_effect, effects)
        if closest is None:
            return None
        for condition in on_effect:
            holds = match._on_effect(condition, closest)
            (held if holds else missing).append(condition[3])
            telling = telling or (holds and (condition[0] != "effect" or _narrow(condition, closest)))
    if len(missing) == 1 and held and telling:
        return Near(name, action, layer, held, missing[0], "", closest, priority)
    if missing or not held:
        return None
    excused = "unless"
    if unless is None or not _keeps_out(unless, compiled, view, effects, budget):
        now = time()
        if not any(now < end and _keeps_out(part, compiled, view, effects, budget) for end, *part in exceptions):
            return None
        excused = "exception"
    return Near(name, action, layer, held, "", excused, closest, priority)


def _narrow(condition: match.Condition, effect: Effect) -> bool:
    """Whether an `effect` key says more than that a program runs or a file is touched."""
    return effect.kind not in ("run", "read", "write", "connect", "git") or any(
        kind == effect.kind and flags for kind, flags in condition[1]
    )


def _closest(conditions: tuple[match.Condition, ...], effects: list[Effect]) -> Effect | None:
    """The effect on which most of the conditions hold; the first among equals, None where none holds on any."""
    best: Effect | None = None
    most = 0
    for effect in effects:
        count = sum(match._on_effect(c, effect) for c in conditions)
        if count > most:
            best, most = effect, count
    return best


def _keeps_out(way: Any, compiled: Compiled, view: match.View, effects: list[Effect], budget: match.Budget) -> bool:
    on_event, on_effect = way
    if not all(match._Hit(compiled, view, budget).holds(c, False) for c in on_event):
        return False
    return not on_effect or any(all(match._on_effect(c, effect) for c in on_effect) for effect in effects)
