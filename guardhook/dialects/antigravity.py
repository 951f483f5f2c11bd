"""Antigravity. From reports on version 1.1.2; not run. It wants a decision every time, and asks the user when there is none."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "antigravity"
ROUTES = {
    "PreToolUse": "pre_tool", "PostToolUse": "post_tool", "PreInvocation": "other", "PostInvocation": "other",
    "Stop": "stop",
}  # fmt: skip


def _read(payload: Payload, event_arg: str | None) -> Event:
    made = payload.get("toolCall")
    native = event_arg if event_arg is not None and event_arg in ROUTES else "PreToolUse" if made is not None else ""
    event = Event(ID, native, ROUTES.get(native, "other"), payload)
    event.session = shared.text(payload, "conversationId")
    roots = payload.get("workspacePaths")
    event.cwd = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) and roots[0] else None
    if isinstance(made, dict):
        shared.call(event, made.get("name"), made.get("args"), payload.get("toolResult"))
    else:
        shared.call(event, None, None, None)
    return event


def _ask(native: str, sentence: str) -> Answer:
    # The plain ask may be answered by a remembered "always allow".
    return Answer(0, shared.json_line({"decision": "force_ask", "reason": sentence}))


def _pass(native: str, canonical: str) -> Answer:
    return Answer(0, shared.json_line({"decision": "allow"})) if canonical == "pre_tool" else SILENT


_self = simple.Dialect(
    ID, ROUTES, reader=_read, block=simple.decision_words("decision", "deny", "reason", 0), ask=_ask, passing=_pass
)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        source="reports on 1.1.2",
        deny="decision deny, exit 0",
        ask="decision force_ask, exit 0",
        passes="decision allow",
        observe_answers=True,
        open=("a crash and a timeout end in a question to the user", "payloads of other events are not known"),
    )
