"""Letta Code 0.32. From its package; not run. Only status 2 blocks."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import other, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "letta"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    return other.read_any(ID, payload, event_arg)


_self = simple.Dialect(ID, ROUTES, reader=_read)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        unit="ms",
        timeout=10000,
        source="package 0.32.18",
        deny="stderr + exit 2",
        ask="as deny",
        open=("a crash, a timeout and any other status let the call run",),
    )
