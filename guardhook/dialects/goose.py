"""Goose 1.38 and later. From its sources; not run. Any other text on stdout is a failed hook."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import other, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "goose"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    return other.read_any(ID, payload, event_arg)


_self = simple.Dialect(ID, ROUTES, reader=_read, block=simple.decision_words("decision", "block", "reason", 2))
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="sources",
        deny="decision block + stderr + exit 2",
        ask="as deny",
        open=("without on_failure: block a crash and a timeout let the call run",),
    )
