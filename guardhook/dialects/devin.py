"""Devin CLI. From its documents; not run. It also reads Claude Code's settings."""

from __future__ import annotations

from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits

ID = "devin"
ROUTES = shared.CLAUDE_ROUTES

_self = simple.Dialect(ID, ROUTES)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="documents",
        deny="stderr + exit 2",
        ask="as deny",
        open=("a crash, a timeout and any other status let the call run",),
    )
