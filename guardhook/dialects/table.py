"""Which harness a payload comes from, and the module that speaks with it.

Recognition looks at top-level keys only: what stands inside `tool_input` was written by an agent. It gives every
dialect that the payload could be, the likeliest first. The registered dialect wins when it is among them; a few
harnesses are known to read another one's settings and are answered in their own dialect; everything else is unknown.
The environment never adds or removes certainty, it only orders what the payload leaves open: variables of one harness
are inherited by another one that it starts.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    Payload = dict[str, object]
    Test = Callable[[Payload, str, str], bool]

# Dialect id -> module below guardhook.dialects. A new harness is one line here and one file there.
MODULES = {
    "claude-code": "claude_code", "codex": "codex", "gemini": "gemini", "qwen-code": "qwen_code", "other": "other",
    "antigravity": "antigravity", "auggie": "auggie", "claude-like": "claude_like", "cline": "cline",
    "codebuddy": "codebuddy", "copilot": "copilot", "copilot-pascal": "copilot_pascal", "crush": "crush",
    "cursor": "cursor", "devin": "devin", "droid": "droid", "goose": "goose", "grok": "grok", "hermes": "hermes",
    "kimi": "kimi", "kiro-cli": "kiro", "kiro-env": "kiro", "kiro-ide": "kiro", "letta": "letta",
    "openhands": "openhands", "qoder": "qoder", "vibe": "vibe", "vscode": "vscode", "windsurf": "windsurf",
}  # fmt: skip

# Registered dialect -> harnesses that read its settings as well (claude-like stands for Continue and unnamed clones).
CROSS_LOADS = {
    "claude-code": frozenset(("cursor", "vscode", "copilot", "copilot-pascal", "grok", "devin", "claude-like")),
    "cursor": frozenset(("grok",)),
    "vscode": frozenset(("copilot", "copilot-pascal")),
    "copilot": frozenset(("copilot-pascal", "vscode")),
    "copilot-pascal": frozenset(("copilot", "vscode")),
    "kiro-cli": frozenset(("kiro-ide", "kiro-env")),
    "kiro-ide": frozenset(("kiro-cli", "kiro-env")),
}

# Everything that recognition and reading take from the environment.
RECOGNITION_ENV = (
    "AI_AGENT", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CODEBUDDY_PROJECT_DIR", "CURSOR_VERSION",
    "DEVIN_PROJECT_DIR", "FACTORY_PROJECT_DIR", "GEMINI_SESSION_ID", "KIRO_SESSION_ID", "QODER_PROJECT_DIR",
    "QWEN_CODE_SESSION_ID", "QWEN_PROJECT_DIR",
)  # fmt: skip

_CLAUDE_ONLY = frozenset((
    "InstructionsLoaded", "ConfigChange", "MessageDisplay", "UserPromptExpansion", "PreSkillShellCommand",
    "PreModelSwitch", "PostModelSwitch", "CwdChanged", "FileChanged", "DirectoryAdded", "WorktreeCreate",
    "WorktreeRemove", "TaskCreated", "TaskCompleted", "TeammateIdle", "Elicitation", "ElicitationResult", "Setup",
))  # fmt: skip
_CODEX_ONLY = frozenset(("PreModelRequest", "PostModelRequest", "Interrupt"))
_GEMINI_ONLY = frozenset((
    "BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "BeforeModel", "AfterModel", "BeforeToolSelection",
    "PreCompress",
))  # fmt: skip
# Events of Gemini that other harnesses have too.
_GEMINI_SHARED = frozenset(("SessionStart", "SessionEnd", "Notification"))
_VIBE = frozenset(("pre_tool", "post_tool", "post_agent", "before_tool", "after_tool", "post_agent_turn"))
_KIRO_CLI = frozenset(("agentSpawn", "userPromptSubmit", "preToolUse", "postToolUse", "stop"))
_DROID_MODES = frozenset(("off", "spec", "auto-low", "auto-medium", "auto-high"))

# What a payload of Claude's shape without any mark of its own may be, likeliest first.
_FAMILY = ("claude-code", "codex", "qwen-code", "droid", "qoder", "codebuddy", "kimi", "auggie", "vscode", "claude-like")  # fmt: skip
# Harnesses that send exactly what Claude Code sends, transcript path included.
_CLONES = ("codebuddy", "qoder", "claude-like")
_PRIVATE_ENV = (
    ("FACTORY_PROJECT_DIR", "droid"), ("QODER_PROJECT_DIR", "qoder"), ("CODEBUDDY_PROJECT_DIR", "codebuddy"),
    ("QWEN_PROJECT_DIR", "qwen-code"),
)  # fmt: skip
_SESSION_ENV = (("CLAUDE_CODE_SESSION_ID", "claude-code"), ("QWEN_CODE_SESSION_ID", "qwen-code"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _path(payload: Payload) -> str:
    return _text(payload.get("transcript_path")).replace("\\", "/")


def _iso(payload: Payload) -> bool:
    """Whether the payload has a timestamp such as 2026-11-01T00:00:00Z (Gemini, Qwen, VS Code, Copilot)."""
    stamp = _text(payload.get("timestamp"))
    return stamp[:4].isdigit() and stamp[4:5] == "-" and stamp[10:11] == "T"


# --- marks that one harness has for itself -------------------------------------------------------------------


def _cline(p: Payload, ev: str, alt: str) -> bool:
    return "clineVersion" in p or ("hookName" in p and "taskId" in p)


def _windsurf(p: Payload, ev: str, alt: str) -> bool:
    return "agent_action_name" in p


def _antigravity(p: Payload, ev: str, alt: str) -> bool:
    return not ev and (isinstance(p.get("toolCall"), dict) or ("conversationId" in p and "workspacePaths" in p))


def _cursor(p: Payload, ev: str, alt: str) -> bool:
    return bool(ev) and ("cursor_version" in p or "generation_id" in p)


def _grok(p: Payload, ev: str, alt: str) -> bool:
    return bool(ev and alt) and ("workspaceRoot" in p or "toolInputTruncated" in p or "sessionId" in p)


def _auggie(p: Payload, ev: str, alt: str) -> bool:
    return bool(ev) and "conversation_id" in p and "workspace_roots" in p and not _cursor(p, ev, alt)


def _vscode_old(p: Payload, ev: str, alt: str) -> bool:
    return bool(alt) and not ev and "sessionId" in p


def _copilot(p: Payload, ev: str, alt: str) -> bool:
    if "sessionId" not in p or alt:
        return False
    stamp = p.get("timestamp")
    return (isinstance(stamp, (int, float)) and not isinstance(stamp, bool)) or (not ev and "toolName" in p)


def _letta(p: Payload, ev: str, alt: str) -> bool:
    return not ev and "event_type" in p and "working_directory" in p


def _openhands(p: Payload, ev: str, alt: str) -> bool:
    return not ev and "event_type" in p and "working_directory" not in p and ("working_dir" in p or "metadata" in p)


def _goose(p: Payload, ev: str, alt: str) -> bool:
    return not ev and "event" in p and "matcher_context" in p


def _crush(p: Payload, ev: str, alt: str) -> bool:
    return not ev and "event" in p and "matcher_context" not in p and "session_id" in p and "cwd" in p


def _vibe(p: Payload, ev: str, alt: str) -> bool:
    return ev in _VIBE


def _hermes(p: Payload, ev: str, alt: str) -> bool:
    return "_" in ev and ev.islower() and "extra" in p and ev not in _VIBE


def _kiro_cli(p: Payload, ev: str, alt: str) -> bool:
    return ev in _KIRO_CLI and not _cursor(p, ev, alt)


def _kiro_env(p: Payload, ev: str, alt: str) -> bool:
    return not ev and not alt and "toolName" in p and "toolArgs" in p and "sessionId" not in p


_OWN: tuple[tuple[str, Test], ...] = (
    ("cline", _cline), ("windsurf", _windsurf), ("antigravity", _antigravity), ("cursor", _cursor), ("grok", _grok),
    ("auggie", _auggie), ("vscode", _vscode_old), ("copilot", _copilot), ("letta", _letta), ("openhands", _openhands),
    ("goose", _goose), ("crush", _crush), ("vibe", _vibe), ("hermes", _hermes), ("kiro-cli", _kiro_cli),
    ("kiro-env", _kiro_env),
)  # fmt: skip


# --- the four that share Claude's shape and were measured ------------------------------------------------------


def _claude(p: Payload, ev: str, alt: str) -> bool:
    if not ev:
        return False
    parts = _path(p).split("/")
    session = _text(p.get("session_id"))
    # <config>/projects/<folder>/<session>.jsonl, wherever the configuration lies.
    if session and len(parts) > 3 and parts[-3] == "projects" and parts[-1] == session + ".jsonl":
        return True
    if _iso(p) or not (ev in _CLAUDE_ONLY or parts[-1]):
        return False
    return ev in _CLAUDE_ONLY or isinstance(p.get("effort"), dict) or isinstance(p.get("prompt_id"), str)


def _codex(p: Payload, ev: str, alt: str) -> bool:
    if not ev or ev in _GEMINI_ONLY:
        return False
    if ev in _CODEX_ONLY or (isinstance(p.get("turn_id"), str) and ev not in _CLAUDE_ONLY):
        return True
    head, _, name = _path(p).rpartition("/")
    return name.startswith("rollout-") and "/sessions/" in head + "/"


def _gemini(p: Payload, ev: str, alt: str) -> bool:
    if ev in _GEMINI_ONLY:
        return True
    return bool(ev) and _iso(p) and "permission_mode" not in p and "/.gemini/" in _path(p)


def _qwen(p: Payload, ev: str, alt: str) -> bool:
    path = _path(p)
    return bool(ev and path) and (
        "/.qwen/" in path or (_iso(p) and "permission_mode" in p and "turn_id" not in p and ev not in _GEMINI_ONLY)
    )


_STRONG: tuple[tuple[str, Test], ...] = (
    ("claude-code", _claude),
    ("codex", _codex),
    ("gemini", _gemini),
    ("qwen-code", _qwen),
)


def _likely(p: Payload, ev: str) -> tuple[str, ...]:
    """Rows that only hold because nothing above did: each names one harness by a small mark, or by what is missing."""
    has_path = bool(_path(p))
    if _iso(p):
        if not has_path:
            return ("copilot-pascal", "qwen-code") if "permission_mode" in p else ("copilot-pascal",)
        return ("gemini", "vscode") if ev in _GEMINI_SHARED else ("vscode",)
    if p.get("permission_mode") in _DROID_MODES if isinstance(p.get("permission_mode"), str) else False:
        return ("droid",)
    if not has_path:
        if "session_title" in p or ("tool_call_id" in p and "tool_use_id" not in p):
            return ("kimi",)
        if "prompt_id" in p and "cwd" not in p:
            return ("devin",)
        if _text(p.get("session_id")).startswith("sess_"):
            return ("kiro-ide",)
    return ()


def _family(p: Payload, ev: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """What is left: Claude's shape with no mark. Only here the environment may order the rows."""
    if _path(p):
        first: list[str] = []
    elif "transcript_path" in p:  # present and null: Codex with --ephemeral
        first = ["codex"]
    else:
        first = ["claude-like"]
    session = _text(p.get("session_id"))
    for name, dialect in _SESSION_ENV:
        if session and env.get(name) == session:
            first.insert(0, dialect)
    for name, dialect in _PRIVATE_ENV:
        if env.get(name):
            first.insert(0, dialect)
    if "tool_name" in p and ev not in _GEMINI_ONLY and not _known(ev):
        first.append("gemini")
    return tuple(dict.fromkeys((*first, *_FAMILY)))


def _known(ev: str) -> bool:
    """Whether the name is one that harnesses of Claude's shape use (PreToolUse, Stop …)."""
    return ev[:1].isupper() and ev.isalpha()


def candidates(payload: object, env: Mapping[str, str]) -> tuple[str, ...]:
    """Every dialect that the payload could be, the likeliest first; empty when nothing in it says anything."""
    if not isinstance(payload, dict):
        return ()
    ev = _text(payload.get("hook_event_name"))
    alt = _text(payload.get("hookEventName"))
    own = tuple(name for name, test in _OWN if test(payload, ev, alt))
    strong = tuple(name for name, test in _STRONG if test(payload, ev, alt))
    if own or strong:
        # A future client may grow a key that is another one's mark; then both stand here and the registration decides.
        return own + strong + (_CLONES if strong[:1] == ("claude-code",) and not own else ())
    if not ev and not ("tool_name" in payload and "tool_input" in payload):
        return ()
    return _likely(payload, ev) or _family(payload, ev, env)


def choose(candidates: tuple[str, ...], registered: str | None) -> tuple[str | None, str]:
    """The dialect to speak, and why; None when the payload is unknown or contradicts what was registered."""
    if registered == "other":
        return "other", "registered"
    if registered is None:
        if candidates:
            return candidates[0], "recognised"
        return None, "the payload is not that of a known harness"
    if registered in candidates:
        return registered, "registered"
    if not candidates:
        return None, f"the payload is not one that {registered} sends"
    readers = CROSS_LOADS.get(registered, ())
    for candidate in candidates:
        if candidate in readers:
            return candidate, f"reads the settings of {registered}"
    return None, f"the payload looks like one of {candidates[0]}, but this hook is registered for {registered}"


def matches(dialect: str, payload: object, env: Mapping[str, str]) -> bool:
    """Whether the payload could be of this dialect."""
    return dialect in candidates(payload, env)


def load(dialect: str) -> ModuleType:
    """Imports the one module of a dialect. Raises KeyError for an id that is not in MODULES."""
    name = "guardhook.dialects." + MODULES[dialect]
    module = sys.modules.get(name)
    if module is None:
        __import__(name)
        module = sys.modules[name]
    return module
