"""CodeBuddy. From its wheel 0.3.274; not run. Payload and answers are Claude Code's."""

from __future__ import annotations

from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits

ID = "codebuddy"
ROUTES = shared.CLAUDE_ROUTES

_self = simple.Dialect(ID, ROUTES, block=simple.permission_words, ask=simple.permission_ask)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="wheel 0.3.274",
        deny="permissionDecision deny, exit 0",
        ask="permissionDecision ask, exit 0",
        open=("a crash and a timeout let the call run",),
    )
