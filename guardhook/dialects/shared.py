"""What several dialects have in common: names of events, the reader of Claude's shape, sentences, and measured limits."""

from __future__ import annotations

from guardhook.core import limits
from guardhook.core.event import Event
from guardhook.core.jsontext import dumps, printable
from guardhook.core.verdict import Answer, Verdict
from guardhook.dialects import tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Payload = dict[str, object]
    Env = Mapping[str, str]

NO_VERDICT = "guardhook gave no verdict, so nothing is allowed; run `guardhook doctor`"

# Event names that harnesses of Claude's shape use.
CLAUDE_ROUTES = {
    "PreToolUse": "pre_tool", "PermissionRequest": "permission_request", "PostToolUse": "post_tool",
    "PostToolUseFailure": "post_tool_failure", "UserPromptSubmit": "user_prompt", "SessionStart": "session_start",
    "SessionEnd": "session_end", "Stop": "stop", "SubagentStart": "subagent_start", "SubagentStop": "subagent_stop",
    "PreCompact": "compact", "PostCompact": "compact", "Notification": "notification",
    "PermissionDenied": "permission_denied",
}  # fmt: skip

# Events that stand for a call about to happen.
CALLS = ("pre_tool", "permission_request")
_CALL_KEYS = (("tool_name", "tool_input"), ("toolName", "toolInput"), ("toolName", "toolArgs"))
_RESULTS = ("tool_response", "tool_output", "tool_result", "toolResult", "error", "tool_error")


class Limits:
    """What is known about a harness: how to register, what can be blocked, what was measured, what stays open."""

    __slots__ = (
        "blocking", "events", "matrix", "observe_answers", "observed", "open", "timeout", "unit", "versions",
    )  # fmt: skip

    def __init__(
        self,
        *,
        unit: str,
        timeout: float,
        events: tuple[str, ...],
        observed: tuple[str, ...],
        blocking: tuple[str, ...],
        versions: tuple[str, ...],
        matrix: tuple[tuple[str, str, str, str, str], ...],
        open: tuple[str, ...],
        observe_answers: bool = False,
    ) -> None:
        self.unit = unit  # of the registered timeout: "s" or "ms"
        self.timeout = timeout  # to register for enforcing hooks, in that unit
        self.events = events  # native events to register for enforcing
        self.observed = observed  # native events to register for recording only
        self.blocking = blocking  # native events whose answer can block
        self.versions = versions  # client versions that the matrix was measured on
        self.matrix = matrix  # (native event, action, what is answered, what the client does, source)
        self.observe_answers = observe_answers  # the harness wants an answer even from a hook that only watches
        self.open = open  # what no answer of ours can close, for `doctor`


def text(payload: Payload, key: str) -> str | None:
    """A non-empty string under a top-level key, else None: no other type is ever believed."""
    value = payload.get(key)
    return value if isinstance(value, str) and value else None


def first_text(payload: Payload, *keys: str) -> str | None:
    """The first non-empty string under any of the keys."""
    for key in keys:
        value = payload.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def route(payload: Payload, event_arg: str | None, routes: Mapping[str, str], *keys: str) -> tuple[str, str]:
    """(native event, canonical event): the payload's own name if it is known, else the registered one.

    A name that neither knows is judged like a call that is about to happen when the payload carries a call without a
    result: a client may get new events, and none of them may be a way around the gate.
    """
    given = first_text(payload, *(keys or ("hook_event_name",))) or ""
    calls = any(payload.get(tool) is not None and key in payload for tool, key in _CALL_KEYS)
    calls = calls and all(payload.get(key) is None for key in _RESULTS)
    if event_arg is not None and event_arg not in routes:
        # A harness that reads another one's settings is started with the other's word: `preToolUse` is its `PreToolUse`.
        turned = event_arg[:1].swapcase() + event_arg[1:]
        event_arg = turned if turned in routes else event_arg
    registered = routes.get(event_arg) if event_arg is not None else None
    if given in routes:
        if calls and registered in CALLS and routes[given] not in CALLS:
            # Registered for a call that is about to happen, and told by another name of one that has no result: it is judged.
            return event_arg or "", registered or ""
        return given, routes[given]
    if registered is not None:
        return event_arg or "", registered
    if calls:
        return given or event_arg or "", "pre_tool"
    return given or event_arg or "", "other"


def read_claude_shape(
    dialect: str, payload: Payload, event_arg: str | None, routes: Mapping[str, str], *names: str
) -> Event:
    """The reader for every harness whose payload is flat and named as Claude Code names it. names: keys of the event's name."""
    native, canonical = route(payload, event_arg, routes, *names)
    event = Event(dialect, native, canonical, payload)
    event.session = text(payload, "session_id")
    event.call = first_text(payload, "tool_use_id", "tool_call_id")
    event.agent = text(payload, "agent_id")
    event.agent_type = text(payload, "agent_type")
    event.cwd = text(payload, "cwd")
    event.mode = text(payload, "permission_mode")
    event.error = text(payload, "error")
    event.prompt = text(payload, "prompt")
    call(event, payload.get("tool_name"), payload.get("tool_input"), payload.get("tool_response"))
    return event


def call(event: Event, tool: object, given: object, output: object) -> None:
    """Fills in the tool call of an event that has one; an event that must have one and has none can't be judged."""
    event.tool = tool if isinstance(tool, str) and tool.strip() else None
    if event.tool is None and event.event not in ("pre_tool", "permission_request"):
        if event.event == "user_prompt" and event.prompt is None and not isinstance(event.payload.get("prompt"), str):
            event.undecidable = "the payload carries no prompt"
        return
    event.input = given
    event.output = output
    tools.fill(event)


# --- sentences -------------------------------------------------------------------------------------------------


def _line(sentence: str) -> str:
    """One line that no client takes for something else.

    Claude Code ignores a block whose stderr says that a file is missing, taking it for a broken hook.
    """
    lower = _lower(sentence)
    for phrase, instead in (("no such file", "no-such file"), ("can't open", "cannot open")):
        while (at := lower.find(phrase)) >= 0:
            sentence = sentence[:at] + instead + sentence[at + len(phrase) :]
            lower = _lower(sentence)
    return sentence


def _lower(text: str) -> str:
    """ASCII lower case. Every character stays in its place, which `str.lower` does not promise (U+0130 becomes two)."""
    return text.lower() if text.isascii() else "".join(c.lower() if c < "\x80" else c for c in text)


def _part(words: str, most: int) -> str:
    return printable(words.strip(), most).rstrip(". ")


def deny_reason(verdict: Verdict) -> str:
    """Why a call is blocked, in one line for a person and for the agent."""
    reason = _part(verdict.reason, 280)
    if verdict.policy is not None:
        said = f"guardhook: blocked by policy {_part(verdict.policy, 80)}"
    else:
        said = "guardhook: blocked"
    said += f": {reason}." if reason else "."
    if verdict.suggest.strip():
        said += f" Instead: {_part(verdict.suggest, 160)}."
    return _line(said + " Do not retry this in another way.")


def review_reason(verdict: Verdict) -> str:
    """Why a call is blocked that a person may approve, where the harness has no way to ask that person."""
    reason = _part(verdict.reason, 240)
    policy = f" by policy {_part(verdict.policy, 80)}" if verdict.policy is not None else ""
    said = f"guardhook: blocked{policy} until a person approves"
    said += f": {reason}." if reason else "."
    if verdict.suggest.strip():
        said += f" Instead: {_part(verdict.suggest, 120)}."
    said += " To approve, the user runs it in their own terminal or adds an exception to the policy."
    return _line(said + " Do not retry this in another way.")


def block_reason(verdict: Verdict) -> str:
    """The sentence for any blocking verdict that is rendered as a block."""
    return review_reason(verdict) if verdict.action == "require_review" else deny_reason(verdict)


def ask_reason(verdict: Verdict) -> str:
    """What a person is asked."""
    reason = _part(verdict.reason, 320)
    policy = f"policy {_part(verdict.policy, 80)} asks for your approval" if verdict.policy else "please approve"
    said = f"guardhook: {policy}" + (f": {reason}." if reason else ".")
    if verdict.suggest.strip():
        said += f" Safer: {_part(verdict.suggest, 160)}."
    return _line(said)


def warn_text(verdict: Verdict) -> str:
    """What a person is told about a call that passes."""
    reason = _part(verdict.reason, 320)
    policy = f" (policy {_part(verdict.policy, 80)})" if verdict.policy else ""
    said = f"guardhook warns{policy}" + (f": {reason}." if reason else ".")
    if verdict.suggest.strip():
        said += f" Safer: {_part(verdict.suggest, 160)}."
    return _line(said)


def fault(reason: str) -> Verdict:
    """The verdict behind a fallback."""
    verdict = Verdict("deny", reason[: limits.REASON_CHARS])
    verdict.cause = "internal"
    return verdict


# --- answers ---------------------------------------------------------------------------------------------------


def json_line(value: object) -> bytes:
    """One line of ASCII JSON."""
    return (dumps(value) + "\n").encode("ascii")


def error_line(sentence: str) -> bytes:
    """One line for stderr. It never looks like JSON, because every sentence starts with the product's name."""
    return (sentence + "\n").encode("utf-8", "backslashreplace")


def exit_block(sentence: str, stdout: bytes = b"") -> Answer:
    """Status 2 with the reason on stderr: the block that most harnesses know."""
    return Answer(2, stdout, error_line(sentence))


def permission(native_event: str, decision: str, sentence: str) -> dict[str, object]:
    """Claude's `hookSpecificOutput` with a permission decision."""
    return {
        "hookSpecificOutput": {
            "hookEventName": native_event,
            "permissionDecision": decision,
            "permissionDecisionReason": sentence,
        }
    }


def stops(verdict: Verdict) -> bool:
    """Whether the verdict stops the call: a blocking action that is not merely observed."""
    return verdict.action in ("deny", "require_review") and verdict.mode != "observe"
