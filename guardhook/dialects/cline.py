"""Cline (VS Code, CLI). From its sources; not run. The exit status means nothing while the JSON is valid, a cancel stops the whole run."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.jsontext import PayloadError, loads_text
from guardhook.core.verdict import Answer
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "cline"
ROUTES = {
    "PreToolUse": "pre_tool", "tool_call": "pre_tool", "PostToolUse": "post_tool", "tool_result": "post_tool",
    "UserPromptSubmit": "user_prompt", "prompt_submit": "user_prompt", "TaskStart": "session_start",
    "TaskResume": "session_start", "agent_start": "session_start", "agent_resume": "session_start",
    "TaskComplete": "stop", "agent_end": "stop", "TaskCancel": "session_end", "agent_abort": "session_end",
    "SessionShutdown": "session_end", "session_shutdown": "session_end", "TaskError": "other",
    "PreCompact": "compact", "Notification": "notification",
}  # fmt: skip


def _read(payload: Payload, event_arg: str | None) -> Event:
    native, canonical = shared.route(payload, event_arg, ROUTES, "hookName")
    before, after, direct = (payload.get(key) for key in ("preToolUse", "postToolUse", "tool_call"))
    if canonical == "other" and after is None and (isinstance(before, dict) or isinstance(direct, dict)):
        canonical = "pre_tool"
    event = Event(ID, native, canonical, payload)
    event.session = shared.text(payload, "taskId")
    event.agent = shared.text(payload, "agent_id") if payload.get("parent_agent_id") else None
    event.client = shared.text(payload, "clineVersion")
    roots = payload.get("workspaceRoots")
    event.cwd = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) and roots[0] else None
    prompt = payload.get("userPromptSubmit")
    event.prompt = shared.text(prompt if isinstance(prompt, dict) else payload, "prompt")
    tool: object = None
    given: object = None
    if isinstance(direct, dict):
        tool, given = direct.get("name"), direct.get("input")
        event.call = shared.text(direct, "id")
    for block in (before, after):
        if tool is None and isinstance(block, dict):
            tool, given = block.get("toolName", block.get("tool")), _plain(block.get("parameters"))
    output = after.get("result") if isinstance(after, dict) else None
    shared.call(event, tool, given, output)
    return event


def _plain(parameters: object) -> object:
    """Parameters are texts; those that hold a list or an object are JSON inside them.

    A command that reads as such JSON may be either: both readings are kept.
    """
    if not isinstance(parameters, dict):
        return parameters
    found: dict[str, object] = {}
    for key, value in parameters.items():
        found[key] = value
        if key in ("commands", "files", "requests", "arguments", "queries") and isinstance(value, str):
            try:
                found[key] = loads_text(value)
            except PayloadError:
                pass
        elif key == "command" and isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                found["cmd"] = loads_text(value)
            except PayloadError:
                pass
    return found


def _block(native: str, sentence: str) -> Answer:
    return Answer(0, shared.json_line({"cancel": True, "errorMessage": sentence}), shared.error_line(sentence))


def _pass(native: str, canonical: str) -> Answer:
    return Answer(0, shared.json_line({"cancel": False}))


_self = simple.Dialect(ID, ROUTES, reader=_read, block=_block, passing=_pass)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        observed=("PostToolUse", "TaskStart", "TaskComplete", "TaskCancel"),
        source="sources",
        deny="cancel true, exit 0",
        ask="as deny",
        passes="cancel false",
        observe_answers=True,
        open=(
            "a crash, a timeout and output that is not JSON let the call run",
            "in VS Code another hook that fails discards a cancel",
            "a cancel ends the whole run, not the one call",
        ),
    )
