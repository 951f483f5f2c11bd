"""The native protocol: events with which a program tells of its own run (`record`, `run`, TraceRecorder), and their checks.

Types: trace_start, step_start, step_end, step, decision, snapshot, trace_end. An event that can't be used is rejected with a reason; numbers and
references that can't be used are left out of it, each with a warning. Unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from guardhook.store.model import DECIDERS, STATUSES, STEP_TYPES, TRIGGERS
from guardhook.store.schema import MAX_STEP

TYPES = ("trace_start", "step_start", "step_end", "step", "decision", "snapshot", "trace_end")
_STEP_TYPES = ("step_start", "step_end", "step", "decision", "snapshot")
_NUMBERS = ("tokens_used", "duration_ms", "total_tokens", "total_duration_ms", "total_cost_usd")
_REFERENCES = ("parent_step", "parent_step_number", "caused_by_step", "caused_by_step_number")
_SYNONYMS = {
    "completed": ("complete", "success", "succeeded", "ok", "done", "finished", "passed"),
    "failed": ("failure", "fail", "error", "errored", "crashed", "aborted", "cancelled", "canceled", "interrupted"),
    "timeout": ("timed_out", "timedout"),
}
_STATUS = {word: status for status, words in _SYNONYMS.items() for word in words}
ID_CHARS = 200
MOST = 1 << 62  # what an SQLite integer holds, with room for a sum


class Checked(NamedTuple):
    """An event as it may be applied, or why not. repaired names fields whose value was replaced by another meaning."""

    event: dict[str, object]
    warnings: tuple[str, ...] = ()
    rejected: str | None = None
    repaired: tuple[str, ...] = ()


def check(event: object, *, needs_trace: bool = True) -> Checked:
    """Checks one event. needs_trace=False: the trace is known otherwise (a recorder's own)."""
    if not isinstance(event, dict):
        return Checked({}, rejected="not an object")
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        return Checked({}, rejected=f"unknown type {kind!r}" if isinstance(kind, str) else "no type")
    if event.get("v", 1) != 1 or isinstance(event.get("v", 1), bool):
        return Checked({}, rejected=f"unknown protocol version {event['v']!r}")
    out: dict[str, object] = dict(event)
    warnings: list[str] = []
    repaired: list[str] = []
    problem = _identity(out, kind, needs_trace) or _step(out, kind) or _tags(out) or _decisions(out, kind)
    if problem is not None:
        return Checked({}, rejected=problem)
    for name in _NUMBERS:
        value = out.get(name)
        if name in out and value is not None and not (_finite(value) and _number(value) >= 0):
            del out[name]
            warnings.append(f"{name} is not a number of at least 0 and was left out")
    if kind == "step_start" and out.get("decision") is not None:
        inline = out["decision"]
        problem = decision_problem(inline) if isinstance(inline, dict) else "the decision is no object"
        if problem is not None:
            del out["decision"]
            warnings.append(f"decision left out: {problem}")
    number = out.get("step_number")
    for name in _REFERENCES:
        value = out.get(name)
        if value is None:
            continue
        if type(value) is not int or type(number) is not int or not 1 <= value < number:
            del out[name]
            warnings.append(f"{name} does not name an earlier step and was left out")
    if kind == "trace_end" and "status" in out:
        _end_status(out, warnings, repaired)
    return Checked(out, tuple(warnings), None, tuple(repaired))


def _identity(event: dict[str, object], kind: str, needs_trace: bool) -> str | None:
    name = event.get("trace_id")
    if name is None:
        if kind != "trace_start" and needs_trace:
            return "no trace_id"
    else:
        problem = id_problem(name)
        if problem is not None:
            return problem
    if kind == "trace_start" and not (isinstance(event.get("agent_name"), str) and event["agent_name"]):
        return "trace_start without agent_name"
    return None


def id_problem(name: object) -> str | None:
    """Why a producer's trace id can't be used: blank, too long, or with control characters."""
    if not isinstance(name, str) or not name.strip():
        return "trace_id is blank or no text"
    if len(name) > ID_CHARS:
        return f"trace_id is longer than {ID_CHARS} characters"
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name):
        return "trace_id holds control characters"
    return None


def _step(event: dict[str, object], kind: str) -> str | None:
    if kind not in _STEP_TYPES:
        return None
    number = event.get("step_number")
    if type(number) is not int or not 1 <= number <= MAX_STEP:
        return "step_number is no integer of at least 1"
    if kind in ("step_start", "step"):
        if event.get("step_type") not in STEP_TYPES:
            return f"step_type is none of {', '.join(STEP_TYPES)}"
        if not (isinstance(event.get("name"), str) and event["name"]):
            return "the step has no name"
    return None


def _tags(event: dict[str, object]) -> str | None:
    tags = event.get("tags")
    if isinstance(tags, list) and not all(isinstance(t, str) for t in tags):
        return "tags are not all text"
    return None


def _decisions(event: dict[str, object], kind: str) -> str | None:
    if kind == "decision":
        return decision_problem(event)
    inline = event.get("decision")
    if kind == "step" and inline is not None:
        return "the decision is no object" if not isinstance(inline, dict) else decision_problem(inline)
    return None


def decision_problem(decision: dict[str, object]) -> str | None:
    """Why a decision can't be used: chosen, confidence (0 to 1), options (objects with `option`)."""
    if not (isinstance(decision.get("chosen"), str) and decision["chosen"]):
        return "the decision has no chosen"
    confidence = decision.get("confidence")
    if confidence is not None and not (_finite(confidence) and 0 <= _number(confidence) <= 1):
        return "confidence is not between 0 and 1"
    options = decision.get("options")
    if options is None:
        return None
    if not isinstance(options, list):
        return "options is no list"
    for option in options:
        if not isinstance(option, dict) or not (isinstance(option.get("option"), str) and option["option"]):
            return "an option has no `option` text"
        if option.get("score") is not None and not _finite(option["score"]):
            return "an option's score is no number"
    return None


def _end_status(event: dict[str, object], warnings: list[str], repaired: list[str]) -> None:
    given = event["status"]
    if given is None:
        del event["status"]
        return
    word = given.strip().lower() if isinstance(given, str) else ""
    if word in STATUSES:
        event["status"] = word
    elif word in _STATUS:
        event["status"] = _STATUS[word]
        warnings.append(f"status {given!r} read as {_STATUS[word]}")
    else:
        event["status"] = "failed"
        repaired.append("status")
        warnings.append(f"status {given!r} is unknown and was taken as failed")


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 1 << 63 if isinstance(value, int) else value - value == 0.0 and abs(value) < 1e300


def _number(value: object) -> float:
    assert isinstance(value, (int, float))
    return value


def plain(value: object) -> str | None:
    """The value of a plain text column: text, or the text of a number or truth value; else None."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if _finite(value) else None


def whole(value: object) -> int | None:
    """The value of an integer column: a finite number that fits, or text of one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    number = round(_number(value)) if _finite(value) else None
    return number if number is not None and abs(number) < MOST else None


def cost(value: object) -> float | None:
    """The value of the cost column."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(_number(value)) if _finite(value) else None


def error_text(value: object, dump: Callable[[object], str]) -> str | None:
    """The error column: text as it is, other values as JSON text."""
    return value if value is None or isinstance(value, str) else dump(value)


def trigger(value: object) -> str:
    return value if isinstance(value, str) and value in TRIGGERS else "manual"


def decided_by(value: object) -> str:
    return value if isinstance(value, str) and value in DECIDERS else "agent"
