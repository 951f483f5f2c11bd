"""`--no-input`: what is recorded says that something happened, and nothing of what was said or done.

By allow-list: of the payload only named facts are kept, and only as short text, numbers and booleans; a member that a future client adds is dropped.
"""

from __future__ import annotations

_PLAIN = frozenset((
    "agentId", "agent_id", "agent_type", "attempt_number", "canary", "clientVersion", "client_version", "conversation_id", "cursor_version", "cwd", "duration_ms",
    "event", "event_type", "exit_code", "expansion_type", "generation_id", "hookEventName", "hookName", "hook_event", "hook_event_name", "hook_name", "is_error",
    "is_interrupt", "is_mcp_tool", "load_reason", "loop_count", "mcp_server_name", "memory_type", "message_id", "mode", "model", "notification_type", "outcome",
    "parent_session_id", "parent_tool_use_id", "permissionMode", "permission_mode", "prompt_id", "request_id", "response_id", "root_turn_id", "run_id",
    "sandbox", "sandboxed", "server_name", "sessionId", "session_id", "source", "spawn_depth", "status", "stop_hook_active", "subagent_type", "task_id",
    "thread_id", "timestamp", "toolName", "toolUseID", "toolUseId", "tool_call_id", "tool_id", "tool_name", "tool_use_id", "transcript_path", "trigger",
    "turn_id", "version",
))  # fmt: skip
# Notification texts and the like share a name with harmless reasons, so only known words of a reason pass.
_REASONS = frozenset(("clear", "logout", "prompt_input_exit", "other", "exit", "resume", "bypass_permissions_disabled"))
_VERDICT = ("action", "policy", "layer", "cause", "set", "mode", "degraded", "us")
_EFFECT = ("kind", "flags", "classes", "lookalike")
_LONGEST = 1024


def strip(data: dict[str, object]) -> dict[str, object]:
    """The data of a `hook.received` line without any echo of prompts, inputs, results, matched text and reasons.

    `stripped` names the payload's dropped members. Takes and gives JSON values; the argument is not changed.
    """
    out = dict(data)
    payload = data.get("payload")
    kept: dict[str, object] = {}
    dropped: list[str] = []
    if isinstance(payload, dict):
        for name, value in payload.items():
            if _passes(name, value):
                kept[name] = value
            else:
                dropped.append(name)
    out["payload"] = kept
    out["stripped"] = sorted(dropped)
    for name in ("redacted", "cut"):
        pointers = data.get(name)
        if isinstance(pointers, list):
            out[name] = [
                p for p in pointers if isinstance(p, str) and p.split("/", 2)[1:2] and p.split("/", 2)[1] in kept
            ]
    effects = data.get("effects")
    if isinstance(effects, list):
        out["effects"] = [{k: e[k] for k in _EFFECT if k in e} for e in effects if isinstance(e, dict)]
    verdict = data.get("verdict")
    if isinstance(verdict, dict):
        out["verdict"] = _verdict(verdict)
    return out


def _passes(name: str, value: object) -> bool:
    if name == "reason":
        return isinstance(value, str) and value in _REASONS
    if name not in _PLAIN:
        return False
    return value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= _LONGEST)


def _verdict(verdict: dict[str, object]) -> dict[str, object]:
    out: dict[str, object] = {k: verdict[k] for k in _VERDICT if k in verdict}
    out["reason"] = out["span"] = None
    if "also" in verdict:
        out["also"] = verdict["also"]
    answer = verdict.get("answer")
    if isinstance(answer, dict):
        out["answer"] = {"exit": answer.get("exit"), "stdout": None, "stderr": None}
    return out
