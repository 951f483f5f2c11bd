"""Cursor (IDE, CLI, SDK). From its SDK 1.1.0 and its documents; not run.

Cursor wants an answer to every question: with failClosed an empty stdout blocks. A block is JSON with status 0, because
with status 2 it shows stdout as it is.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "cursor"

ROUTES = {
    "preToolUse": "pre_tool", "beforeShellExecution": "pre_tool", "beforeMCPExecution": "pre_tool",
    "beforeReadFile": "pre_tool", "beforeTabFileRead": "pre_tool", "beforeSubmitPrompt": "user_prompt",
    "postToolUse": "post_tool", "postToolUseFailure": "post_tool_failure", "afterShellExecution": "post_tool",
    "afterMCPExecution": "post_tool", "afterFileEdit": "post_tool", "afterTabFileEdit": "post_tool",
    "sessionStart": "session_start", "sessionEnd": "session_end", "subagentStart": "subagent_start",
    "subagentStop": "subagent_stop", "preCompact": "compact", "stop": "stop", "afterAgentResponse": "other",
    "afterAgentThought": "other", "workspaceOpen": "other",
}  # fmt: skip
# Events that name no tool -> the tool that they stand for, and the keys that are its input.
_TOOLS = {
    "beforeShellExecution": ("Shell", ("command", "cwd")), "afterShellExecution": ("Shell", ("command", "cwd")),
    "beforeReadFile": ("Read", ("file_path",)), "beforeTabFileRead": ("Read", ("file_path",)),
    "afterFileEdit": ("Edit", ("file_path", "edits")), "afterTabFileEdit": ("Edit", ("file_path", "edits")),
}  # fmt: skip


def _read(payload: Payload, event_arg: str | None) -> Event:
    native, canonical = shared.route(payload, event_arg, ROUTES)
    event = Event(ID, native, canonical, payload)
    event.session = shared.first_text(payload, "conversation_id", "session_id")
    event.call = shared.text(payload, "tool_use_id")
    event.agent_type = shared.text(payload, "subagent_type")
    event.client = shared.text(payload, "cursor_version")
    event.prompt = shared.text(payload, "prompt")
    event.error = shared.text(payload, "error_message")
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    event.cwd = shared.text(payload, "cwd") or (first if isinstance(first, str) and first else None)
    tool, given = payload.get("tool_name"), payload.get("tool_input")
    if native in _TOOLS:
        tool = _TOOLS[native][0]
        given = {key: payload[key] for key in _TOOLS[native][1] if key in payload}
    elif native in ("beforeMCPExecution", "afterMCPExecution") and isinstance(tool, str) and tool:
        tool = tool if tool.startswith("MCP:") else "MCP:" + tool
    output = payload.get("tool_output", payload.get("output", payload.get("result_json")))
    shared.call(event, tool, given, output)
    if event.kind == "mcp":
        event.mcp_server = shared.text(payload, "mcp_server_name") or event.mcp_server
    return event


def _block(native: str, sentence: str) -> Answer:
    reply: dict[str, object] = {"permission": "deny", "user_message": sentence, "agent_message": sentence}
    if native in ("beforeSubmitPrompt", "sessionStart"):
        reply = {"continue": False, "user_message": sentence}
    return Answer(0, shared.json_line(reply), shared.error_line(sentence))


def _ask(native: str, sentence: str) -> Answer:
    reply = {"permission": "ask", "user_message": sentence, "agent_message": sentence}
    return Answer(0, shared.json_line(reply))


def _pass(native: str, canonical: str) -> Answer:
    if canonical in ("pre_tool", "subagent_start"):
        return Answer(0, shared.json_line({"permission": "allow"}))
    return Answer(0, shared.json_line({"continue": True})) if canonical == "user_prompt" else SILENT


_self = simple.Dialect(
    ID, ROUTES, reader=_read, block=_block, ask=_ask, ask_events=("beforeShellExecution",), passing=_pass,
    also=("subagentStart", "sessionStart"),
)  # fmt: skip
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        events=("preToolUse", "beforeShellExecution", "beforeMCPExecution"),
        observed=(
            "postToolUse",
            "postToolUseFailure",
            "sessionStart",
            "sessionEnd",
            "subagentStop",
            "preCompact",
            "stop",
        ),
        source="SDK 1.1.0, documents",
        deny="permission deny, exit 0",
        ask="permission ask in beforeShellExecution, elsewhere as deny",
        passes="permission allow",
        observe_answers=True,
        open=(
            "without failClosed a crash, a timeout and an empty answer let the call run",
            "payloads over 128 KiB can't be handed to a hook at all",
        ),
    )
