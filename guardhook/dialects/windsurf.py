"""Windsurf Cascade. From its documents; not run. Only status 2 blocks, and only on the events before an action."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import shared, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "windsurf"
ROUTES = {
    "pre_run_command": "pre_tool", "pre_write_code": "pre_tool", "pre_read_code": "pre_tool",
    "pre_mcp_tool_use": "pre_tool", "pre_user_prompt": "user_prompt", "post_run_command": "post_tool",
    "post_write_code": "post_tool", "post_read_code": "post_tool", "post_mcp_tool_use": "post_tool",
    "post_cascade_response": "stop", "post_setup_worktree": "other",
}  # fmt: skip
_ACTIONS = ("run_command", "write_code", "read_code", "mcp_tool_use")


def _read(payload: Payload, event_arg: str | None) -> Event:
    native, canonical = shared.route(payload, event_arg, ROUTES, "agent_action_name")
    info = payload.get("tool_info")
    action = native.partition("_")[2]
    if canonical == "other" and native.startswith("pre_"):
        canonical = "pre_tool"
    event = Event(ID, native, canonical, payload)
    event.session = shared.text(payload, "trajectory_id")
    event.call = shared.text(payload, "execution_id")
    if isinstance(info, dict):
        event.cwd = shared.text(info, "cwd")
        event.prompt = shared.first_text(info, "user_prompt", "prompt")
        shared.call(event, action if action in _ACTIONS else None, info, info.get("result"))
    else:
        shared.call(event, None, None, None)
    return event


_self = simple.Dialect(ID, ROUTES, reader=_read)
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        events=("pre_run_command", "pre_write_code", "pre_read_code", "pre_mcp_tool_use"),
        observed=("post_run_command", "post_write_code", "post_mcp_tool_use", "post_cascade_response"),
        source="documents",
        deny="stderr + exit 2",
        ask="as deny",
        open=("a crash, a timeout and any other status let the call run",),
    )
