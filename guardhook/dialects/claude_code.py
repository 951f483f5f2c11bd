"""Claude Code. Measured on 2.1.332 and 2.1.197 (Linux, both print and terminal mode).

Deny is one JSON line and a reason on stderr and status 2: each of the three alone is undone by something (JSON by a
cut line, status 2 by a schema error before 2.1.214 and on PermissionRequest always, stderr is what the model reads
when the JSON is lost). No objection is silence: an explicit allow would skip the user's own prompts.
"""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import shared, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Env, Payload

ID = "claude-code"

ROUTES = {
    **shared.CLAUDE_ROUTES, "PreSkillShellCommand": "pre_tool", "UserPromptExpansion": "prompt_expansion",
    "ConfigChange": "config_change",
    "PostToolBatch": "other", "Setup": "other", "StopFailure": "other", "PreModelSwitch": "other",
    "PostModelSwitch": "other", "InstructionsLoaded": "other", "CwdChanged": "other", "FileChanged": "other",
    "DirectoryAdded": "other", "WorktreeCreate": "other", "WorktreeRemove": "other", "TaskCreated": "other",
    "TaskCompleted": "other", "TeammateIdle": "other", "Elicitation": "other", "ElicitationResult": "other",
    "MessageDisplay": "other",
}  # fmt: skip

# Events that an answer can stop, and the shape of the answer. Stop and its kin are not among them: there a block makes
# the agent go on.
_BLOCKS = {
    "PreToolUse": "permission", "PreSkillShellCommand": "permission", "PreModelSwitch": "permission",
    "PermissionRequest": "behavior", "UserPromptSubmit": "block", "UserPromptExpansion": "block",
    "ConfigChange": "block", "PreCompact": "block", "Elicitation": "exit", "ElicitationResult": "exit",
    "TaskCreated": "exit",
}  # fmt: skip
# The editor extension is reported to ignore ask and to hide its reason.
_NO_ASK = frozenset(("claude-vscode",))


def recognise(payload: Payload, env: Env) -> bool:
    return table.matches(ID, payload, env)


def read(payload: Payload, env: Env, event_arg: str | None) -> Event:
    event = shared.read_claude_shape(ID, payload, event_arg, ROUTES)
    event.client = _version(env.get("AI_AGENT", ""))
    event.surface = env.get("CLAUDE_CODE_ENTRYPOINT") or None
    if event.native_event == "UserPromptExpansion" and event.prompt is None:
        event.undecidable = "the payload carries no prompt"
    return event


def _version(agent: str) -> str | None:
    """`claude-code_2-1-332_harness` -> 2.1.332."""
    name, _, rest = agent.partition("_")
    number = rest.partition("_")[0]
    if name != "claude-code" or not number.replace("-", "").isdigit():
        return None
    return number.replace("-", ".")


def answer(event: Event, verdict: Verdict) -> Answer:
    native = event.native_event
    if native == "SessionStart" and verdict.action == "warn" and verdict.mode != "observe":
        return Answer(0, shared.json_line({"systemMessage": shared.warn_text(verdict)}))
    shape = _BLOCKS.get(native)
    if shape is None and event.event == "pre_tool":
        # An event that this version doesn't know, with a call in it. A reply with a name that the client doesn't accept
        # there would void the block before 2.1.214.
        shape = "exit"
    if shape is None or verdict.mode == "observe" or verdict.action == "allow":
        return SILENT
    if verdict.action == "warn":
        # Measured harmless on PreToolUse only: shown to the user, never to the model.
        if native == "PreToolUse":
            return Answer(0, shared.json_line({"systemMessage": shared.warn_text(verdict)}))
        return SILENT
    if verdict.action == "require_review":
        if native == "PermissionRequest":
            return SILENT  # the user is about to be asked anyway
        if native == "PreToolUse" and event.surface not in _NO_ASK:
            return Answer(0, shared.json_line(shared.permission(native, "ask", shared.ask_reason(verdict))))
    return _block(native, shape, shared.block_reason(verdict))


def _block(native: str, shape: str, sentence: str) -> Answer:
    reply: dict[str, object]
    if shape == "permission":
        reply = shared.permission(native, "deny", sentence)
    elif shape == "behavior":
        decision = {"behavior": "deny", "message": sentence}
        reply = {"hookSpecificOutput": {"hookEventName": native, "decision": decision}}
    elif shape == "block":
        reply = {"decision": "block", "reason": sentence}
        if native == "UserPromptSubmit":
            # Else the blocked prompt, with whatever should not be in it, is repeated in the result.
            reply["hookSpecificOutput"] = {"hookEventName": native, "suppressOriginalPrompt": True}
    else:
        return shared.exit_block(sentence)
    return shared.exit_block(sentence, shared.json_line(reply))


def fallback(native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
    """The answer when there is no verdict. With no known event, the one answer that needs no event's name."""
    sentence = shared.deny_reason(shared.fault(reason))
    if native_event is None or native_event not in ROUTES:
        return shared.exit_block(sentence)
    if ROUTES[native_event] in ("pre_tool", "permission_request", "user_prompt", "prompt_expansion", "config_change"):
        return _block(native_event, _BLOCKS[native_event], sentence)
    return SILENT


def limits() -> shared.Limits:
    both = "2.1.332, 2.1.197"
    new = "2.1.332"
    return shared.Limits(
        unit="s",
        timeout=10,
        events=("PreToolUse", "PermissionRequest", "PreSkillShellCommand", "UserPromptSubmit", "ConfigChange"),
        observed=(
            "SessionStart", "SessionEnd", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PostToolBatch",
            "PermissionDenied", "SubagentStart", "SubagentStop", "Stop", "StopFailure", "PreCompact", "PostCompact",
            "Notification",
        ),
        blocking=tuple(_BLOCKS),
        versions=("2.1.332", "2.1.197"),
        matrix=(
            ("PreToolUse", "deny", "permissionDecision deny + stderr + exit 2", "call not run, model told", both),
            ("PreToolUse", "ask", "permissionDecision ask, exit 0", "dialog in every mode; refused with -p", both),
            ("PreToolUse", "warn", "systemMessage, exit 0", "call runs, user told", both),
            ("SessionStart", "warn", "systemMessage, exit 0", "session goes on, user told", both),
            ("PreToolUse", "allow", "nothing", "the client's own rules decide", both),
            ("PermissionRequest", "deny", "decision.behavior deny + stderr + exit 2", "refused, user not asked", both),
            ("PermissionRequest", "ask", "nothing", "the user is asked; refused with -p", both),
            ("PreSkillShellCommand", "deny", "permissionDecision deny + stderr + exit 2", "command not run", new),
            ("PreSkillShellCommand", "ask", "as deny", "command not run", new),
            ("UserPromptSubmit", "deny", "decision block + stderr + exit 2", "prompt erased, no request", both),
            ("UserPromptExpansion", "deny", "decision block + stderr + exit 2", "command not expanded", new),
            ("ConfigChange", "deny", "decision block + stderr + exit 2", "running session keeps its hooks", new),
            ("PreCompact", "deny", "decision block + stderr + exit 2", "not compacted", new),
            ("PreModelSwitch", "deny", "permissionDecision deny + stderr + exit 2", "model kept", new),
            ("Stop", "any", "nothing", "an answer would make the agent go on", both),
        ),
        open=(
            "before 2.1.295 there is no onFailure: a hook that the client kills or can't start lets the call run",
            "before 2.1.330 shell lines inside skills and slash commands reach no hook",
            "files mentioned with @ and commands typed after ! reach no hook",
            "another PreToolUse hook may rewrite the input after it was judged",
            "another PermissionRequest hook may approve what this one asks about",
            "--bare, --safe-mode, disableAllHooks and --setting-sources switch user hooks off; managed ones survive",
            "policy settings can't be kept from changing by ConfigChange",
        ),
    )  # fmt: skip
