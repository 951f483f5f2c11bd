"""Crush 0.96. From its sources; not run. Calls of sub-agents reach no hook."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import other, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "crush"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    return other.read_any(ID, payload, event_arg)


_self = simple.Dialect(ID, ROUTES, reader=_read, block=simple.decision_words("decision", "deny", "reason", 2))
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="sources",
        deny="decision deny + stderr + exit 2",
        ask="as deny",
        open=("calls of sub-agents reach no hook; a crash and a timeout let the call run",),
    )
