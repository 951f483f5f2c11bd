"""Grok CLI 1.0.41. From the document inside its package; not run. It also reads Claude Code's and Cursor's settings."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import Answer
from guardhook.dialects import other, shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "grok"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    event = other.read_any(ID, payload, event_arg)
    if payload.get("toolInputTruncated") not in (None, False):
        event.undecidable = "the harness cut the tool's input short"
    return event


def _ask(native: str, sentence: str) -> Answer:
    return Answer(0, shared.json_line({"decision": "ask", "reason": sentence}))


_self = simple.Dialect(ID, ROUTES, reader=_read, block=simple.decision_words("decision", "deny", "reason", 2), ask=_ask)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        timeout=5,
        source="package 1.0.41",
        deny="decision deny + stderr + exit 2",
        ask="decision ask, exit 0",
        open=("a crash and a timeout (5 s unless set) let the call run",),
    )
