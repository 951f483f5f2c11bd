"""A harness that guardhook has no dialect for: only the exit status speaks.

Block is status 2 with the reason on stderr and nothing on stdout; everything else is silence. Payloads are read by the
keys that most harnesses share. Only a registration chooses this dialect, no payload does.
"""

from __future__ import annotations

from guardhook.core.event import JUDGED, Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Env, Payload

ID = "other"

ROUTES = {
    **shared.CLAUDE_ROUTES,
    "sessionStart": "session_start", "agentSpawn": "session_start", "TaskStart": "session_start",
    "TaskResume": "session_start", "agent_start": "session_start", "agent_resume": "session_start",
    "on_session_start": "session_start",
    "userPromptSubmit": "user_prompt", "userPromptSubmitted": "user_prompt", "beforeSubmitPrompt": "user_prompt",
    "pre_user_prompt": "user_prompt", "PromptSubmit": "user_prompt", "prompt_submit": "user_prompt",
    "BeforeAgent": "user_prompt",
    "preToolUse": "pre_tool", "pre_tool_use": "pre_tool", "pre_tool_call": "pre_tool", "pre_tool": "pre_tool",
    "before_tool": "pre_tool", "tool_call": "pre_tool", "BeforeTool": "pre_tool", "beforeShellExecution": "pre_tool",
    "beforeMCPExecution": "pre_tool", "beforeReadFile": "pre_tool", "beforeTabFileRead": "pre_tool",
    "BeforeReadFile": "pre_tool", "BeforeShellExecution": "pre_tool", "pre_run_command": "pre_tool",
    "pre_write_code": "pre_tool", "pre_read_code": "pre_tool", "pre_mcp_tool_use": "pre_tool",
    "permissionRequest": "permission_request",
    "postToolUse": "post_tool", "post_tool_use": "post_tool", "post_tool_call": "post_tool", "post_tool": "post_tool",
    "after_tool": "post_tool", "tool_result": "post_tool", "AfterTool": "post_tool",
    "postToolUseFailure": "post_tool_failure",
    "subagentStart": "subagent_start", "subagentStop": "subagent_stop", "subagent_stop": "subagent_stop",
    "stop": "stop", "agentStop": "stop", "TaskComplete": "stop", "agent_end": "stop", "post_cascade_response": "stop",
    "post_agent": "stop", "post_agent_turn": "stop", "AfterAgent": "stop",
    "sessionEnd": "session_end", "SessionShutdown": "session_end", "session_shutdown": "session_end",
    "on_session_end": "session_end", "TaskCancel": "session_end", "agent_abort": "session_end",
    "preCompact": "compact", "PostCompaction": "compact", "PreCompress": "compact", "notification": "notification",
    "BeforeModel": "model_request", "AfterModel": "model_response",
}  # fmt: skip
_NAMES = ("hook_event_name", "hookEventName", "event", "event_type", "hookName", "agent_action_name")
_OTHER_TOOLS = ("tool", "tool_call", "toolCall", "call", "name")
_OTHER_INPUTS = ("args", "arguments", "input", "parameters", "params")
_OTHER_RESULTS = ("result", "output", "response", "tool_result", "tool_response", "toolResult", "tool_output", "error")
_INPUTS = ("tool_input", "toolInput", "toolArgs")


def recognise(payload: Payload, env: Env) -> bool:
    return False


def read(payload: Payload, env: Env, event_arg: str | None) -> Event:
    event = read_any(ID, payload, event_arg)
    if event.event != "other":
        return event
    # Nobody described this shape. A call may stand under other usual names; and what tells neither event nor call may be one.
    tool = next((payload[key] for key in _OTHER_TOOLS if key in payload), None)
    if isinstance(tool, dict):
        payload = {**payload, **tool}
        tool = shared.first_text(payload, "name", "tool_name", "toolName")
    given = next((payload[key] for key in _OTHER_INPUTS if key in payload), None)
    if isinstance(tool, str) and given is not None and not any(payload.get(key) is not None for key in _OTHER_RESULTS):
        event.event = "pre_tool"
        shared.call(event, tool, given, None)
    elif not event.native_event and event.tool is None:
        event.event = "pre_tool"
    return event


def read_any(dialect: str, payload: Payload, event_arg: str | None) -> Event:
    """A payload of a shape that nobody described, by the keys that most harnesses share."""
    tool = shared.first_text(payload, "tool_name", "toolName")
    given = next((payload[key] for key in _INPUTS if key in payload), None)
    output = payload.get("tool_response", payload.get("toolResult", payload.get("tool_output")))
    native, canonical = shared.route(payload, event_arg, ROUTES, *_NAMES)
    if canonical == "other" and tool is not None and output is None and any(key in payload for key in _INPUTS):
        canonical = "pre_tool"
    event = Event(dialect, native, canonical, payload)
    event.session = shared.first_text(payload, "session_id", "sessionId", "conversation_id", "conversationId")
    event.call = shared.first_text(payload, "tool_use_id", "tool_call_id", "toolUseId", "toolCallId")
    event.agent = shared.first_text(payload, "agent_id", "agentId")
    event.agent_type = shared.first_text(payload, "agent_type", "agentType")
    event.cwd = shared.first_text(payload, "cwd", "working_dir", "working_directory", "workspaceRoot")
    event.mode = shared.first_text(payload, "permission_mode", "permissionMode")
    event.error = shared.text(payload, "error")
    event.prompt = shared.text(payload, "prompt")
    shared.call(event, tool, given, output)
    return event


def answer(event: Event, verdict: Verdict) -> Answer:
    if event.event not in JUDGED or not shared.stops(verdict):
        return SILENT
    return shared.exit_block(shared.block_reason(verdict))


def fallback(native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
    """The answer when there is no verdict."""
    if native_event in ROUTES and ROUTES[native_event] not in JUDGED:
        return SILENT
    return shared.exit_block(shared.deny_reason(shared.fault(reason)))


def limits() -> shared.Limits:
    return shared.Limits(
        unit="s",
        timeout=10,
        events=("PreToolUse",),
        observed=(),
        blocking=("PreToolUse", "PermissionRequest", "UserPromptSubmit"),
        versions=(),
        matrix=(
            ("PreToolUse", "deny", "stderr + exit 2", "depends on the harness", "not measured"),
            ("PreToolUse", "ask", "as deny", "depends on the harness", "not measured"),
            ("PreToolUse", "allow", "nothing", "depends on the harness", "not measured"),
        ),
        open=("whether the harness honours exit status 2 is not known: try it",),
    )
