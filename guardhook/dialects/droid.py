"""Factory Droid 0.225. From its binary; not run. An ask is only logged, so it is answered as a block."""

from __future__ import annotations

from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits

ID = "droid"
ROUTES = shared.CLAUDE_ROUTES

_self = simple.Dialect(ID, ROUTES)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="binary 0.225.2",
        deny="stderr + exit 2",
        ask="as deny",
        open=("a crash, a timeout and any other status let the call run",),
    )
