"""OpenAI Codex CLI. Measured on 0.171.0, spot-checked on 0.124, 0.145 and 0.154.

Status 2 with a reason on stderr is the only block that no field of any version can undo; whatever is not a well-formed
block runs the tool, `ask` and `allow` included. So there is never anything on stdout.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import shared, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Env, Payload

ID = "codex"

ROUTES = {
    **shared.CLAUDE_ROUTES, "Interrupt": "interrupt", "PreModelRequest": "model_request",
    "PostModelRequest": "model_response",
}  # fmt: skip
_BLOCKS = frozenset(("PreToolUse", "PermissionRequest", "UserPromptSubmit"))


def recognise(payload: Payload, env: Env) -> bool:
    return table.matches(ID, payload, env)


def read(payload: Payload, env: Env, event_arg: str | None) -> Event:
    return shared.read_claude_shape(ID, payload, event_arg, ROUTES)


def answer(event: Event, verdict: Verdict) -> Answer:
    if not shared.stops(verdict) or (event.native_event not in _BLOCKS and event.event != "pre_tool"):
        return SILENT
    if event.native_event == "PermissionRequest" and verdict.action == "require_review":
        return SILENT  # the user is asked, which is what the policy wants
    return shared.exit_block(shared.block_reason(verdict))


def fallback(native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
    """The answer when there is no verdict."""
    if native_event in ROUTES and native_event not in _BLOCKS:
        return SILENT
    return shared.exit_block(shared.deny_reason(shared.fault(reason)))


def limits() -> shared.Limits:
    every = "0.171.0, 0.154, 0.145, 0.124"
    one = "0.171.0"
    return shared.Limits(
        unit="s",
        timeout=10,
        events=("PreToolUse", "PermissionRequest", "UserPromptSubmit"),
        observed=(
            "SessionStart", "SessionEnd", "UserPromptSubmit", "PostToolUse", "SubagentStart", "SubagentStop", "Stop",
            "PreCompact", "PostCompact", "Interrupt",
        ),
        blocking=("PreToolUse", "PermissionRequest", "UserPromptSubmit"),
        versions=("0.171.0", "0.154.0", "0.145.0", "0.124.0"),
        matrix=(
            ("PreToolUse", "deny", "stderr + exit 2", "call not run, model told", every),
            ("PreToolUse", "ask", "as deny", "an ask is refused as unsupported and the call runs", every),
            ("PreToolUse", "warn", "nothing", "call runs", one),
            ("PreToolUse", "allow", "nothing", "call runs; an explicit allow is a failed hook", one),
            ("PermissionRequest", "deny", "stderr + exit 2", "refused, user not asked", one),
            ("PermissionRequest", "ask", "nothing", "the user is asked", one),
            ("UserPromptSubmit", "deny", "stderr + exit 2", "no model request", one),
            ("Stop", "any", "nothing", "a block would start another turn", one),
            ("SubagentStart", "any", "nothing", "can't be stopped: spawn_agent is judged instead", one),
        ),
        open=(
            "text typed into a running process (write_stdin) reaches no PreToolUse hook",
            "hosted web search and the code-mode cell itself reach no hook; calls inside the cell do",
            "a hook that crashes, is killed or times out lets the call run",
            "an untrusted hook is skipped without a word; an earlier group inserted by others takes trust away",
            "--disable hooks and a trusted project's [features] hooks = false switch hooks off unless requirements pin them",
        ),
    )  # fmt: skip
