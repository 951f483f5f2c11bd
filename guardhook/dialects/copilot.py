"""GitHub Copilot CLI and cloud agent with camelCase event keys. From npm 1.0.40, its changelog and documents; not run.

The payload names no event: the registration should. JSON and status 2 together are right for every version.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import Answer
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "copilot"
ROUTES = {
    "preToolUse": "pre_tool", "permissionRequest": "permission_request", "postToolUse": "post_tool",
    "postToolUseFailure": "post_tool_failure", "userPromptSubmitted": "user_prompt", "sessionStart": "session_start",
    "sessionEnd": "session_end", "agentStop": "stop", "subagentStart": "subagent_start",
    "subagentStop": "subagent_stop", "preCompact": "compact", "notification": "notification",
    "Notification": "notification", "errorOccurred": "other",
}  # fmt: skip


def _infer(p: Payload) -> str:
    """The event by the keys that only it has, in the order in which they decide."""
    if "toolResult" in p:
        return "postToolUse"
    if "toolName" in p:
        if isinstance(p.get("error"), str):
            return "postToolUseFailure"
        return "permissionRequest" if p.get("hookName") == "permissionRequest" else "preToolUse"
    for keys, native in (
        (("prompt",), "userPromptSubmitted"), (("source",), "sessionStart"), (("initialPrompt",), "sessionStart"),
        (("stopReason", "agentName"), "subagentStop"), (("stopReason",), "agentStop"), (("agentName",), "subagentStart"),
        (("trigger",), "preCompact"), (("reason",), "sessionEnd"), (("error",), "errorOccurred"),
    ):  # fmt: skip
        if all(key in p for key in keys):
            return native
    return ""


def _read(payload: Payload, event_arg: str | None) -> Event:
    native = shared.text(payload, "hook_event_name") or ""
    if native not in ROUTES:
        native = event_arg if event_arg in ROUTES and event_arg is not None else _infer(payload)
    event = Event(ID, native, ROUTES.get(native, "other"), payload)
    event.session = shared.text(payload, "sessionId")
    event.call = shared.first_text(payload, "toolCallId", "toolUseId")
    event.cwd = shared.text(payload, "cwd")
    event.prompt = shared.first_text(payload, "prompt", "initialPrompt")
    event.error = shared.text(payload, "error")
    result = payload.get("toolResult")
    if event.event == "post_tool" and isinstance(result, dict) and result.get("resultType") == "failure":
        event.event = "post_tool_failure"
    given = payload.get("toolArgs", payload.get("toolInput"))
    shared.call(event, payload.get("toolName"), given, result)
    return event


def _block(native: str, sentence: str) -> Answer:
    reply = {"permissionDecision": "deny", "permissionDecisionReason": sentence}
    if native == "permissionRequest":
        reply = {"behavior": "deny", "message": sentence}
    return shared.exit_block(sentence, shared.json_line(reply))


def _ask(native: str, sentence: str) -> Answer:
    return Answer(0, shared.json_line({"permissionDecision": "ask", "permissionDecisionReason": sentence}))


_self = simple.Dialect(ID, ROUTES, reader=_read, block=_block, ask=_ask)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        events=("preToolUse", "permissionRequest"),
        observed=(
            "sessionStart",
            "sessionEnd",
            "userPromptSubmitted",
            "postToolUse",
            "postToolUseFailure",
            "agentStop",
        ),
        source="npm 1.0.40, changelog",
        deny="permissionDecision deny + stderr + exit 2",
        ask="permissionDecision ask, exit 0 (the cloud agent refuses)",
        open=("a timeout lets the call run in every version", "before 1.0.57 a crash lets the call run"),
    )
