"""Payloads of no known harness, and payloads that contradict what was registered: always blocked while enforcing.

The answer is one plain line on stderr and status 2, which Claude Code, Codex, Gemini CLI and Qwen Code were all
measured to take as a block. For the few harnesses that do not, a reply that carries every block word at once is
printed, and only when the registration says that such a harness is asking: an unknown key makes Codex run the tool.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import other, shared, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Env, Payload

ID = "unknown"

# Harnesses for which status 2 with a reason is not a block, or was not one in some version.
_NEED_JSON = frozenset(("antigravity", "cline", "copilot", "copilot-pascal", "hermes", "vibe"))
# For which any status but 0 is a hook that failed, and the call runs: these are told in their own words, whatever they sent.
_NEED_STATUS_0 = frozenset(("vibe",))


def recognise(payload: Payload, env: Env) -> bool:
    return not table.candidates(payload, env)


def read(payload: Payload, env: Env, event_arg: str | None) -> Event:
    return other.read_any(ID, payload, event_arg)


def answer(event: Event, verdict: Verdict) -> Answer:
    if verdict.mode == "observe":
        return SILENT
    return shared.exit_block(shared.block_reason(_blocking(verdict)))


def answer_for(registered: str | None, event_arg: str | None, verdict: Verdict, likely: str | None = None) -> Answer:
    """The block when no event could be read. registered is the dialect that the registration names, likely the one that the
    payload looks like, each if any.

    A payload that could not be read at all is answered in the registered dialect. One that was read and is unknown or
    another harness's is answered in words that are right for most, since whoever asks is not who was expected.
    """
    if verdict.mode == "observe":
        return SILENT
    if registered is not None and registered in table.MODULES:
        module = table.load(registered)
        own: Answer = module.fallback(event_arg, verdict.reason)
        if verdict.cause != "unknown" or not own.stderr or registered in _NEED_STATUS_0:
            return own  # without a reason on stderr it blocks nothing: an event that only reports
    sentence = shared.deny_reason(_blocking(verdict))
    if registered in _NEED_JSON or likely in _NEED_JSON:
        return shared.exit_block(sentence, shared.json_line(every_block(sentence)))
    return shared.exit_block(sentence)


def every_block(sentence: str) -> dict[str, object]:
    """One reply with the block words of all harnesses that read JSON."""
    return {
        "cancel": True,
        "errorMessage": sentence,
        "permission": "deny",
        "user_message": sentence,
        "permissionDecision": "deny",
        "permissionDecisionReason": sentence,
        "decision": "deny",
        "action": "block",
        "message": sentence,
        "reason": sentence,
        **shared.permission("PreToolUse", "deny", sentence),
    }


def _blocking(verdict: Verdict) -> Verdict:
    return verdict if verdict.action in ("deny", "require_review") else shared.fault("the payload is unknown")


def fallback(native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
    """The answer when there is no verdict."""
    return shared.exit_block(shared.deny_reason(shared.fault(reason)))


def limits() -> shared.Limits:
    return shared.Limits(
        unit="s",
        timeout=10,
        events=(),
        observed=(),
        blocking=(),
        versions=("Claude Code 2.1.332 and 2.1.197", "Codex 0.171", "Gemini CLI 0.61", "Qwen Code 0.24.4"),
        matrix=(("any", "deny", "stderr + exit 2", "call not run", "the versions above"),),
        open=("harnesses that ignore exit status 2 run the call unless they are registered by name",),
    )
