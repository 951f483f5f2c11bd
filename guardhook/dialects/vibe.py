"""Mistral Vibe 3.0 and 2.18. From its wheel; not run. A block is JSON with status 0: any other status is a failed hook, and the call runs."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import other, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "vibe"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    return other.read_any(ID, payload, event_arg)


_self = simple.Dialect(ID, ROUTES, reader=_read, block=simple.decision_words("decision", "deny", "reason", 0))
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        events=("pre_tool",),
        observed=("post_tool", "post_agent"),
        source="wheel 3.0.3",
        deny="decision deny, exit 0",
        ask="as deny",
        open=("without strict = true a crash, a timeout and any status but 0 let the call run",),
    )
