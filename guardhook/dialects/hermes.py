"""Hermes 0.19 and later. Its answers were run; the product was not. Status 2 alone blocks only in later versions, the word deny never."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import other, shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "hermes"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    event = other.read_any(ID, payload, event_arg)
    extra = payload.get("extra")
    if isinstance(extra, dict):
        event.call = shared.text(extra, "tool_call_id") or event.call
    return event


_self = simple.Dialect(ID, ROUTES, reader=_read, block=simple.decision_words("action", "block", "message", 2))
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        events=("pre_tool_call",),
        observed=("post_tool_call", "on_session_start", "on_session_end"),
        source="package 0.19.0, run",
        deny="action block + stderr + exit 2",
        ask="as deny",
        open=("without fail_closed a crash and a timeout let the call run",),
    )
