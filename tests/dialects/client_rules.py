"""What clients make of a hook's answer, as they were measured or as their sources say: whether the call runs.

These are the harnesses' rules, not guardhook's: an answer is right when it blocks here.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from guardhook.core.verdict import Answer

BLOCKED, ASKED, RUN = "blocked", "asked", "run"
Rule = Callable[[str, Answer], str]


def reply(data: bytes) -> dict[str, object] | None:
    """The JSON object that a client reads, None when there is none."""
    try:
        value = json.loads(data.strip().decode("utf-8-sig"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _specific(value: dict[str, object] | None, native: str) -> dict[str, object]:
    inner = (value or {}).get("hookSpecificOutput")
    return inner if isinstance(inner, dict) and inner.get("hookEventName") == native else {}


def _claude(native: str, answer: Answer) -> str:
    """2.1.197, which is the laxer one: a reply that breaks the schema undoes status 2."""
    value = reply(answer.stdout)
    inner = _specific(value, native)
    wrong = value is not None and (
        value.get("decision", "block") not in ("approve", "block") or ("hookSpecificOutput" in value and not inner)
    )
    if native == "PermissionRequest":
        decision = inner.get("decision")
        return BLOCKED if isinstance(decision, dict) and decision.get("behavior") == "deny" and not wrong else ASKED
    if wrong:
        return RUN
    decided = inner.get("permissionDecision")
    if decided == "deny" or (value or {}).get("decision") == "block" or answer.exit == 2:
        return BLOCKED
    return ASKED if decided == "ask" else RUN


def _codex(native: str, answer: Answer) -> str:
    assert not answer.stdout, "anything on stdout is a failed hook or context"
    if answer.exit == 2 and answer.stderr.strip():
        return BLOCKED
    return ASKED if native == "PermissionRequest" else RUN


def _gemini(native: str, answer: Answer) -> str:
    value = reply(answer.stdout if answer.stdout.strip() else answer.stderr)
    if value is not None:
        assert value.get("decision") != "ask", "an ask hangs the client"
        return BLOCKED if value.get("decision") in ("deny", "block") else RUN
    return BLOCKED if answer.exit >= 2 and (answer.stdout.strip() or answer.stderr.strip()) else RUN


def _qwen(native: str, answer: Answer) -> str:
    if answer.exit == 2:  # only stderr is read, and a JSON line there is no reason
        return BLOCKED if answer.stderr.strip() and reply(answer.stderr) is None else RUN
    if answer.exit != 0:
        return RUN
    decided = _specific(reply(answer.stdout), native).get("permissionDecision")
    return {"deny": BLOCKED, "ask": ASKED}.get(str(decided), RUN)


def _cursor(native: str, answer: Answer) -> str:
    if answer.exit == 2:
        return BLOCKED
    value = reply(answer.stdout) or {}
    if native == "beforeSubmitPrompt":
        return BLOCKED if value.get("continue") is False else RUN
    if value.get("permission") == "ask":
        return ASKED if native == "beforeShellExecution" else RUN
    return BLOCKED if value.get("permission") == "deny" else RUN


def _permission(native: str, answer: Answer) -> str:
    if answer.exit == 2:
        return BLOCKED
    decided = _specific(reply(answer.stdout), native).get("permissionDecision") if answer.exit == 0 else None
    return {"deny": BLOCKED, "ask": ASKED}.get(str(decided), RUN)


def _copilot(native: str, answer: Answer) -> str:
    """Old versions read JSON alone, new ones the status first."""
    value = reply(answer.stdout) or {}
    if native == "permissionRequest":
        return BLOCKED if value.get("behavior") == "deny" else ASKED
    if value.get("permissionDecision") == "deny" and answer.exit == 2:
        return BLOCKED
    return ASKED if value.get("permissionDecision") == "ask" and answer.exit == 0 else RUN


def _word(key: str, word: str, *, status: bool = True) -> Rule:
    """A flat reply at status 0, or status 2; status=False: status 2 says nothing, the word counts at any status."""

    def rule(native: str, answer: Answer) -> str:
        value = reply(answer.stdout) or {}
        if status and answer.exit == 2:
            return BLOCKED
        if value.get(key) == word and (answer.exit == 0 or not status):
            return BLOCKED
        return ASKED if value.get("decision") in ("ask", "force_ask") and answer.exit == 0 else RUN

    return rule


def _vibe(native: str, answer: Answer) -> str:
    return BLOCKED if answer.exit == 0 and (reply(answer.stdout) or {}).get("decision") == "deny" else RUN


def _cline(native: str, answer: Answer) -> str:
    return BLOCKED if (reply(answer.stdout) or {}).get("cancel") is True else RUN


def _antigravity(native: str, answer: Answer) -> str:
    decided = (reply(answer.stdout) or {}).get("decision")
    return {"deny": BLOCKED, "allow": RUN}.get(str(decided), ASKED)


def _status(native: str, answer: Answer) -> str:
    return BLOCKED if answer.exit == 2 and answer.stderr.strip() else RUN


RULES: dict[str, Rule] = {
    "claude-code": _claude, "codex": _codex, "gemini": _gemini, "qwen-code": _qwen, "cursor": _cursor,
    "vscode": _permission, "qoder": _permission, "codebuddy": _permission, "copilot-pascal": _permission,
    "copilot": _copilot, "cline": _cline, "vibe": _vibe, "antigravity": _antigravity,
    "hermes": _word("action", "block", status=False), "goose": _word("decision", "block"),
    "grok": _word("decision", "deny"), "crush": _word("decision", "deny"), "openhands": _word("decision", "deny"),
    "windsurf": _status, "letta": _status, "kiro-cli": _status, "kiro-ide": _status, "kiro-env": _status, "devin": _status,
    "droid": _status, "auggie": _status, "kimi": _status, "claude-like": _status, "other": _status,
}  # fmt: skip
