"""Two traces compared, step by step, by step number. Memory holds one step of each, and the differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from guardhook.store.golden import canonical
from guardhook.store.model import Step, Trace
from guardhook.store.query import Store

STEP_FIELDS = ("step_type", "name", "input", "output", "model", "error", "decision")
TRACE_FIELDS = ("trace_input", "status", "trace_error", "trace_output")
FIELDS = (*STEP_FIELDS, *TRACE_FIELDS)
PRESENCE = ("missing_right", "missing_left")  # a step that only the left or only the right trace has


class Difference(NamedTuple):
    """One difference. step_number is None for what is about the whole trace; a value is what that side says, None where it says nothing."""

    step_number: int | None
    field: str
    left_value: object
    right_value: object


class Diff(NamedTuple):
    """All differences; divergence_step is the first step in which the traces differ."""

    left: Trace
    right: Trace
    divergence_step: int | None
    differences: list[Difference]

    def as_dict(self) -> dict[str, object]:
        """The documented shape of `diff --json`."""
        return {
            "left_trace_id": self.left.id,
            "right_trace_id": self.right.id,
            "divergence_step": self.divergence_step,
            "left_step_count": self.left.step_count,
            "right_step_count": self.right.step_count,
            "diffs": [d._asdict() for d in self.differences],
        }


def compare(store: Store, left: Trace, right: Trace, fields: Iterable[str] = FIELDS) -> Diff:
    """Differences in the given fields; that a step is missing is always one. JSON is compared by value: key order does not count."""
    chosen = frozenset(fields)
    found = list(_whole(left, right, chosen, ("trace_input",)))
    for old, new in _pairs(store.steps(left), store.steps(right)):
        if new is None:
            assert old is not None
            found.append(Difference(old.step_number, "missing_right", old.name, None))
        elif old is None:
            found.append(Difference(new.step_number, "missing_left", None, new.name))
        else:
            found.extend(_step(old, new, chosen))
    first = next((d.step_number for d in found if d.step_number is not None), None)
    found.extend(_whole(left, right, chosen, TRACE_FIELDS[1:]))
    return Diff(left, right, first, found)


def _pairs(left: Iterator[Step], right: Iterator[Step]) -> Iterator[tuple[Step | None, Step | None]]:
    """Steps with equal numbers together; those without a counterpart alone, in order of their numbers."""
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old.step_number < new.step_number):
            yield old, None
            old = next(left, None)
        elif old is None or new.step_number < old.step_number:
            yield None, new
            new = next(right, None)
        else:
            yield old, new
            old, new = next(left, None), next(right, None)


def _step(old: Step, new: Step, chosen: frozenset[str]) -> Iterator[Difference]:
    for field in STEP_FIELDS:
        if field not in chosen:
            continue
        if field == "input":
            same = old.input_json == new.input_json or equal(old.input, new.input)
        elif field == "output":
            same = old.output_json == new.output_json or equal(old.output, new.output)
        else:
            same = equal(_value(old, field), _value(new, field))
        if not same:
            yield Difference(old.step_number, field, _value(old, field), _value(new, field))


def equal(one: object, other: object) -> bool:
    """Whether two JSON values are the same. To Python `true` equals 1."""
    return one == other and canonical(one) == canonical(other)


def _value(step: Step, field: str) -> object:
    if field != "decision":
        return getattr(step, field)
    if step.chosen is None:
        return None
    return {"chosen": step.chosen, "rationale": step.rationale, "decided_by": step.decided_by}


def _whole(left: Trace, right: Trace, chosen: frozenset[str], names: Iterable[str]) -> Iterator[Difference]:
    for name in names:
        attribute = name.removeprefix("trace_")
        old, new = getattr(left, attribute), getattr(right, attribute)
        if name in chosen and not equal(old, new):
            yield Difference(None, name, old, new)
