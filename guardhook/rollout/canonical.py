"""Rollouts with everything taken out that differs between two equal runs; and when two JSON values are equal."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from guardhook.core.jsontext import PayloadError, loads_text
from guardhook.rollout.load import Event

# Top-level members of a payload, by what they say.
_TIMES = frozenset(("timestamp", "ts"))
_RUNS = frozenset(("run_id",))
_EVENTS = frozenset(("id", "event_id"))
_CONVERSATION = frozenset(("conversation_id",))
_VOLATILE = frozenset((
    "total_duration_ms", "ttft_ms", "latency_ms", "step_start_ms", "duration_ms", "provider", "prompt_hash", "model_version",
))  # fmt: skip
# What hook captures have besides: the session is the run's identity, and durations are those of the wall clock.
_OURS = frozenset(("session_id", "transcript_path", "previous_run_id", "turn_of", "forensics"))


class Strip(NamedTuple):
    """What canonicalising takes out."""

    timestamps: bool = True
    run_ids: bool = True
    event_ids: bool = True
    conversation: bool = False
    volatile: bool = False
    ours: bool = False  # conversation and session ids, every key that ends in _ms

    def names(self) -> frozenset[str]:
        out: set[str] = set()
        for wanted, names in (
            (self.timestamps, _TIMES),
            (self.run_ids, _RUNS),
            (self.event_ids, _EVENTS),
            (self.conversation or self.ours, _CONVERSATION),
            (self.volatile, _VOLATILE),
            (self.ours, _OURS),
        ):
            if wanted:
                out |= names
        return frozenset(out)


EXACT = Strip()
DEFAULT = Strip(ours=True)
DRIFT = Strip(conversation=True, volatile=True, ours=True)


def canonical(events: list[Event], strip: Strip = DEFAULT) -> list[Event]:
    """New events in the order of their steps (in a step: as they came) without what strip names. Only members at the top of a payload are taken out.

    The given events are never changed, nor is anything of them changed by changing the result's own members.
    """
    names = strip.names()
    out: list[Event] = []
    for event in events:
        payload = event.payload
        if payload is not None:
            payload = {
                k: _copied(v) for k, v in payload.items() if k not in names and not (strip.ours and k.endswith("_ms"))
            }
        out.append(
            Event(
                0 if strip.event_ids else event.seq,
                event.type,
                event.step,
                payload,
                "" if strip.timestamps else event.ts,
            )
        )
    out.sort(key=lambda e: e.step)
    return out


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_copied(v) for v in value]
    return value


def equal(left: object, right: object) -> bool:
    """JSON equality: numbers by value (1 is 1.0), but a truth value is no number; the order of members does not count."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(equal(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(equal(a, b) for a, b in zip(left, right, strict=True))
        )
    if isinstance(left, (int, float)):
        return isinstance(right, (int, float)) and left == right
    return type(left) is type(right) and left == right


def same_arguments(left: object, right: object) -> bool:
    """Whether two recordings of a call's arguments say the same: by value where both are JSON, else letter by letter."""
    if isinstance(left, str) and isinstance(right, str) and left == right:
        return True
    first, second = _parsed(left), _parsed(right)
    if first is not None and second is not None:
        return equal(first[0], second[0])
    return _text(left) == _text(right)


def _parsed(value: object) -> tuple[object] | None:
    if not isinstance(value, str):
        return (value,)
    try:
        return (loads_text(value),)
    except PayloadError:
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else sorted_json(value)


def sorted_json(value: object) -> str:
    """Compact JSON text with sorted keys."""
    return msgspec.json.encode(value, order="sorted").decode()
