"""Augment Auggie 0.36. From its package; not run. An ask lets the call run, so it is answered as a block."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "auggie"
ROUTES = {**shared.CLAUDE_ROUTES, "PromptSubmit": "user_prompt"}


def _read(payload: Payload, event_arg: str | None) -> Event:
    event = shared.read_claude_shape(ID, payload, event_arg, ROUTES)
    event.session = shared.first_text(payload, "conversation_id", "session_id")
    roots = payload.get("workspace_roots")
    if event.cwd is None and isinstance(roots, list) and roots and isinstance(roots[0], str) and roots[0]:
        event.cwd = roots[0]
    return event


_self = simple.Dialect(ID, ROUTES, reader=_read)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        unit="ms",
        timeout=10000,
        source="package 0.36.0",
        deny="stderr + exit 2",
        ask="as deny",
        open=("a crash, a kill and a timeout let the call run",),
    )
