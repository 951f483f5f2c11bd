"""The Copilot agent of VS Code. From its sources and documents; not run. It reads Claude Code's settings too and ignores matchers."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "vscode"
ROUTES = shared.CLAUDE_ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    name = "hook_event_name" if "hook_event_name" in payload else "hookEventName"  # older versions
    event = shared.read_claude_shape(ID, payload, event_arg, ROUTES, name)
    event.session = shared.first_text(payload, "session_id", "sessionId")
    return event


_self = simple.Dialect(ID, ROUTES, reader=_read, block=simple.permission_words, ask=simple.permission_ask)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="sources, documents",
        deny="permissionDecision deny, exit 0",
        ask="permissionDecision ask, exit 0",
        open=("a crash, a timeout (30 s) and a missing program let the call run",),
    )
