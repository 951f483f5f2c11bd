"""What a trace must look like to be ingested: one object with its steps. Every fault is told with the place where it is.

`agent_name` is the only field that must be there. null is the same as absent, because exports write it so. Unknown fields are no fault.
"""

from __future__ import annotations

from typing import NamedTuple

from guardhook.store.model import DECIDERS, STATUSES, STEP_TYPES, TRIGGERS
from guardhook.store.protocol import MOST
from guardhook.store.schema import MAX_STEP

FAULTS_MOST = 100  # kept of one trace; all are counted
_TEXTS = ("agent_version", "session_id", "started_at", "ended_at")
_NUMBERS = ("total_duration_ms", "total_tokens", "total_cost_usd")
_STEP_TEXTS = ("model", "started_at", "ended_at")
_STEP_NUMBERS = ("duration_ms", "tokens_used")
REFERENCES = ("parent_step", "caused_by_step")


class Fault(NamedTuple):
    """field: where in the trace, such as `steps[3].decision.options[0].score`; empty for the trace itself."""

    field: str
    message: str


class Faults:
    """What is wrong with one trace."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[Fault] = []

    def add(self, field: str, message: str) -> None:
        self.count += 1
        if len(self.kept) < FAULTS_MOST:
            self.kept.append(Fault(field, message))


def check(trace: object) -> Faults:
    """Everything that is wrong with a trace; nothing when it may be ingested."""
    faults = Faults()
    if not isinstance(trace, dict):
        faults.add("", "must be an object")
        return faults
    if not _filled(trace.get("agent_name")):
        faults.add("agent_name", "must be a text that is not empty")
    _choice(trace, "status", STATUSES, "", faults)
    _choice(trace, "trigger", TRIGGERS, "", faults)
    for name in _TEXTS:
        _text(trace, name, "", faults)
    for name in _NUMBERS:
        _number(trace, name, "", faults)
    tags = trace.get("tags")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(t, str) for t in tags)):
        faults.add("tags", "must be a list of texts")
    steps = trace.get("steps")
    if isinstance(steps, list):
        _steps(steps, faults)
    elif steps is not None:
        faults.add("steps", "must be a list")
    return faults


def reference(step: dict[str, object], name: str) -> object:
    """The value of parent_step or caused_by_step, under its short or its long name."""
    value = step.get(name)
    return step.get(f"{name}_number") if value is None else value


def _steps(steps: list[object], faults: Faults) -> None:
    numbers: set[int] = set()
    for index, step in enumerate(steps):
        if not isinstance(step, dict):
            faults.add(f"steps[{index}]", "must be an object")
            continue
        number = step.get("step_number")
        if type(number) is not int or not 1 <= number <= MAX_STEP:
            faults.add(f"steps[{index}].step_number", "must be a whole number of at least 1")
        elif number in numbers:
            faults.add(f"steps[{index}].step_number", f"{number} is there twice")
        else:
            numbers.add(number)
        if step.get("step_type") not in STEP_TYPES:
            faults.add(f"steps[{index}].step_type", f"must be one of {', '.join(STEP_TYPES)}")
        if not _filled(step.get("name")):
            faults.add(f"steps[{index}].name", "must be a text that is not empty")
        place = f"steps[{index}]."
        for name in _STEP_TEXTS:
            _text(step, name, place, faults)
        for name in _STEP_NUMBERS:
            _number(step, name, place, faults)
        decision = step.get("decision")
        if decision is not None:
            _decision(decision, f"{place}decision", faults)
    for index, step in enumerate(steps):
        if isinstance(step, dict):
            for name in REFERENCES:
                _reference(step, name, f"steps[{index}].{name}", numbers, faults)


def _reference(step: dict[str, object], name: str, place: str, numbers: set[int], faults: Faults) -> None:
    value, number = reference(step, name), step.get("step_number")
    if value is None:
        return
    if type(value) is not int or value < 1:
        faults.add(place, "must be a whole number of at least 1")
    elif type(number) is int and value >= number:
        faults.add(place, f"{value} is not before step {number}")
    elif value not in numbers:
        faults.add(place, f"there is no step {value} in this trace")


def _decision(decision: object, place: str, faults: Faults) -> None:
    if not isinstance(decision, dict):
        faults.add(place, "must be an object")
        return
    if not _filled(decision.get("chosen")):
        faults.add(f"{place}.chosen", "must be a text that is not empty")
    confidence = decision.get("confidence")
    if confidence is not None and not (_finite(confidence) and 0 <= confidence <= 1):
        faults.add(f"{place}.confidence", "must be a number from 0 to 1")
    _choice(decision, "decided_by", DECIDERS, f"{place}.", faults)
    options = decision.get("options")
    if options is None:
        return
    if not isinstance(options, list):
        faults.add(f"{place}.options", "must be a list")
        return
    for index, option in enumerate(options):
        if not isinstance(option, dict):
            faults.add(f"{place}.options[{index}]", "must be an object")
            continue
        if not _filled(option.get("option")):
            faults.add(f"{place}.options[{index}].option", "must be a text that is not empty")
        if option.get("score") is not None and not _finite(option["score"]):
            faults.add(f"{place}.options[{index}].score", "must be a number")


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MOST


def _choice(owner: dict[str, object], name: str, choices: tuple[str, ...], place: str, faults: Faults) -> None:
    value = owner.get(name)
    if value is not None and not (isinstance(value, str) and value in choices):
        faults.add(f"{place}{name}", f"must be one of {', '.join(choices)}")


def _text(owner: dict[str, object], name: str, place: str, faults: Faults) -> None:
    if not isinstance(owner.get(name), (str, type(None))):
        faults.add(f"{place}{name}", "must be a text")


def _number(owner: dict[str, object], name: str, place: str, faults: Faults) -> None:
    value = owner.get(name)
    if value is not None and not (_finite(value) and value >= 0):  # type: ignore[operator]
        faults.add(f"{place}{name}", "must be a number of at least 0")
