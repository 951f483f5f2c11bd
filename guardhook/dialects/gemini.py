"""Gemini CLI. Measured on 0.61.0.

Deny is one JSON object on stdout, a plain reason on stderr and status 2. `ask` is never answered: headless it hangs the
client, it overrides the client's own denials, and a payload does not say whether a person sits at a terminal.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import shared, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Env, Payload

ID = "gemini"

ROUTES = {
    "BeforeTool": "pre_tool", "AfterTool": "post_tool", "BeforeAgent": "user_prompt", "AfterAgent": "stop",
    "BeforeModel": "model_request", "AfterModel": "model_response", "BeforeToolSelection": "other",
    "SessionStart": "session_start", "SessionEnd": "session_end", "Notification": "notification",
    "PreCompress": "compact",
}  # fmt: skip
_BLOCKS = frozenset(("BeforeTool", "BeforeAgent", "BeforeModel"))


def recognise(payload: Payload, env: Env) -> bool:
    return table.matches(ID, payload, env)


def read(payload: Payload, env: Env, event_arg: str | None) -> Event:
    event = shared.read_claude_shape(ID, payload, event_arg, ROUTES)
    output = event.output
    if event.event == "post_tool" and isinstance(output, dict) and isinstance(output.get("error"), dict):
        event.event = "post_tool_failure"
        event.error = shared.text(output["error"], "message")
    return event


def answer(event: Event, verdict: Verdict) -> Answer:
    if verdict.action == "warn" and verdict.mode != "observe" and event.native_event in ("BeforeTool", "SessionStart"):
        return Answer(0, shared.json_line({"systemMessage": shared.warn_text(verdict)}))
    if event.native_event not in _BLOCKS and event.event != "pre_tool":
        return SILENT
    if not shared.stops(verdict):
        return SILENT
    return _block(shared.block_reason(verdict))


def _block(sentence: str) -> Answer:
    return shared.exit_block(sentence, shared.json_line({"decision": "deny", "reason": sentence}))


def fallback(native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
    """The answer when there is no verdict."""
    if native_event in ROUTES and ROUTES[native_event] not in ("pre_tool", "user_prompt"):
        return SILENT
    return _block(shared.deny_reason(shared.fault(reason)))


def limits() -> shared.Limits:
    version = "0.61.0"
    return shared.Limits(
        unit="ms",
        timeout=10000,
        events=("BeforeTool", "BeforeAgent"),
        observed=("SessionStart", "SessionEnd", "BeforeAgent", "AfterTool", "AfterAgent", "Notification"),
        blocking=("BeforeTool", "BeforeAgent", "BeforeModel"),
        versions=(version,),
        matrix=(
            ("BeforeTool", "deny", "decision deny + stderr + exit 2", "call not run, model told", version),
            ("BeforeTool", "ask", "as deny", "an ask hangs headless and overrides the client's own denials", version),
            ("BeforeTool", "warn", "systemMessage, exit 0", "call runs, user told", version),
            ("SessionStart", "warn", "systemMessage, exit 0", "session goes on, user told", version),
            ("BeforeTool", "allow", "nothing", "the client's own rules decide", version),
            ("BeforeAgent", "deny", "decision deny + stderr + exit 2", "turn blocked, no request", version),
            ("BeforeModel", "deny", "decision deny + stderr + exit 2", "turn blocked, no request", version),
            ("AfterTool", "any", "nothing", "a block would hide the result", version),
            ("AfterAgent", "any", "nothing", "a block would send its reason as a new prompt", version),
        ),
        open=(
            "in ACP mode (editors) no BeforeTool hook runs; only the client's policy files or BeforeAgent reach it",
            "commands typed after !, shell lines in custom commands and @file mentions reach no BeforeTool hook",
            "in an untrusted folder an interactive session runs no settings hook, only those of extensions",
            "a hook that crashes silently, is killed or times out lets the call run",
            "a repository's settings can disable hooks by name, and a sibling hook can void every decision",
        ),
    )  # fmt: skip
