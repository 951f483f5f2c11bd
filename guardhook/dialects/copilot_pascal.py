"""GitHub Copilot CLI with PascalCase event keys (1.0.21 and later). From its changelog and documents; not run."""

from __future__ import annotations

from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits

ID = "copilot-pascal"
ROUTES = shared.CLAUDE_ROUTES

_self = simple.Dialect(ID, ROUTES, block=simple.permission_words, ask=simple.permission_ask)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="changelog, documents",
        deny="permissionDecision deny, exit 0",
        ask="permissionDecision ask, exit 0",
        open=("a timeout lets the call run in every version", "before 1.0.57 a crash lets the call run"),
    )
