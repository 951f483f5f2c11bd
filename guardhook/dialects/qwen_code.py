"""Qwen Code. Measured on 0.24.4, for what shares its shape with Claude Code; the rest is from its sources.

Deny is Claude's JSON, a plain reason on stderr and status 2, where only stderr is read. A status other than 0 and 2 lets
the call run. Ask is honoured in a terminal and refused cleanly without one.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import shared, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Env, Payload

ID = "qwen-code"

ROUTES = {**shared.CLAUDE_ROUTES, "PostToolBatch": "other", "StopFailure": "other"}
_BLOCKS = frozenset(("PreToolUse", "PermissionRequest", "UserPromptSubmit"))


def recognise(payload: Payload, env: Env) -> bool:
    return table.matches(ID, payload, env)


def read(payload: Payload, env: Env, event_arg: str | None) -> Event:
    return shared.read_claude_shape(ID, payload, event_arg, ROUTES)


def answer(event: Event, verdict: Verdict) -> Answer:
    native = event.native_event
    if not shared.stops(verdict) or (native not in _BLOCKS and event.event != "pre_tool"):
        return SILENT
    if verdict.action == "require_review":
        if native == "PermissionRequest":
            return SILENT
        if native == "PreToolUse":
            return Answer(0, shared.json_line(shared.permission(native, "ask", shared.ask_reason(verdict))))
    return _block(native, shared.block_reason(verdict))


def _block(native: str, sentence: str) -> Answer:
    reply: dict[str, object]
    if native == "UserPromptSubmit":
        reply = {"decision": "block", "reason": sentence}
    elif native == "PermissionRequest":
        decision = {"behavior": "deny", "message": sentence}
        reply = {"hookSpecificOutput": {"hookEventName": native, "decision": decision}}
    else:
        reply = shared.permission(native, "deny", sentence)
    return shared.exit_block(sentence, shared.json_line(reply))


def fallback(native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
    """The answer when there is no verdict."""
    sentence = shared.deny_reason(shared.fault(reason))
    if native_event is None or native_event not in ROUTES:
        return shared.exit_block(sentence)
    return _block(native_event, sentence) if native_event in _BLOCKS else SILENT


def limits() -> shared.Limits:
    version = "0.24.4"
    return shared.Limits(
        unit="s",
        timeout=10,
        events=("PreToolUse", "PermissionRequest", "UserPromptSubmit"),
        observed=(
            "SessionStart", "SessionEnd", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SubagentStart",
            "SubagentStop", "Stop", "PreCompact", "Notification",
        ),
        blocking=("PreToolUse", "PermissionRequest", "UserPromptSubmit"),
        versions=(version,),
        matrix=(
            ("PreToolUse", "deny", "permissionDecision deny + stderr + exit 2", "call not run, model told", version),
            ("PreToolUse", "ask", "permissionDecision ask, exit 0", "refused headless; asked in a terminal", version),
            ("PreToolUse", "allow", "nothing", "the client's own rules decide", version),
            ("PermissionRequest", "deny", "decision.behavior deny + stderr + exit 2", "not measured", "sources"),
            ("UserPromptSubmit", "deny", "decision block + stderr + exit 2", "not measured", "sources"),
        ),
        open=(
            "a status other than 0 and 2, a signal and a timeout let the call run, a missing program included",
            "disableAllHooks, --bare and --safe-mode switch all hooks off",
        ),
    )  # fmt: skip
