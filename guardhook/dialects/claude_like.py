"""Harnesses that send Claude Code's payload without its transcript. Not run; asks are blocks because few honour them."""

from __future__ import annotations

from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits

ID = "claude-like"
ROUTES = shared.CLAUDE_ROUTES

_self = simple.Dialect(ID, ROUTES, block=simple.claude_words)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="none",
        deny="stderr + exit 2",
        ask="as deny",
        open=("nothing is known about this harness",),
    )
