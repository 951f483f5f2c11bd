"""Kimi Code 2.1. From its package; not run. An ask has no effect, so it is answered as a block."""

from __future__ import annotations

from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits

ID = "kimi"
ROUTES = shared.CLAUDE_ROUTES

_self = simple.Dialect(ID, ROUTES)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="package 2.1.0",
        deny="stderr + exit 2",
        ask="as deny",
        open=("a crash, a timeout and any other status let the call run",),
    )
