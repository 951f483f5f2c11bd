"""Payloads are recognised as what they are, by top-level keys alone, whatever stands in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core.event import EVENTS, KINDS
from guardhook.core.verdict import Verdict
from guardhook.dialects import table, unknown

PAYLOADS = Path(__file__).parent.parent / "fixtures" / "payloads"
MAIN = ("claude-code", "codex", "gemini", "qwen-code")
CAPTURED = [(dialect, path) for dialect in MAIN for path in sorted((PAYLOADS / dialect).glob("*.json"))]
OTHERS = sorted((PAYLOADS / "others").glob("*.json"))
RENAMED = {"claude": "claude-code", "qwen": "qwen-code", "gemini-or-vscode": "gemini", "unknown": None}
# Variables of every harness at once, as when one is started from another.
NOISE = {
    "CLAUDE_CODE_SESSION_ID": "x", "AI_AGENT": "claude-code_2-1-332_harness", "QWEN_PROJECT_DIR": "/w",
    "CODEBUDDY_PROJECT_DIR": "/w", "FACTORY_PROJECT_DIR": "/w", "QODER_PROJECT_DIR": "/w", "GEMINI_SESSION_ID": "x",
}  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
# Every top-level key that recognition or reading looks at, and a few more.
KEYS = (
    "hook_event_name", "hookEventName", "session_id", "sessionId", "transcript_path", "cwd", "timestamp", "turn_id",
    "prompt_id", "permission_mode", "effort", "tool_name", "tool_input", "tool_use_id", "tool_call_id", "toolName",
    "toolArgs", "toolInput", "toolResult", "hookName", "taskId", "clineVersion", "agent_action_name", "tool_info",
    "toolCall", "conversationId", "workspacePaths", "cursor_version", "generation_id", "workspaceRoot",
    "toolInputTruncated", "conversation_id", "workspace_roots", "event_type", "working_directory", "working_dir",
    "metadata", "event", "matcher_context", "extra", "session_title", "prompt", "tool_response", "mcp_context",
    "mcp_server", "is_mcp_tool", "preToolUse", "tool_call", "workspaceRoots", "error", "source", "model", "command",
)  # fmt: skip
NAMES = (
    "PreToolUse", "PostToolUse", "PermissionRequest", "Stop", "SessionStart", "UserPromptSubmit", "BeforeTool",
    "preToolUse", "pre_tool", "pre_tool_call", "beforeShellExecution", "beforeMCPExecution", "MessageDisplay", "nonsense", "",
)  # fmt: skip


@pytest.mark.parametrize(("dialect", "path"), CAPTURED, ids=lambda v: v.stem if isinstance(v, Path) else v)
def test_captured_payloads_are_what_they_are(dialect: str, path: Path) -> None:
    payload = json.loads(path.read_text())
    for env in ({}, NOISE):
        assert table.candidates(payload, env)[0] == dialect
        for registered in (dialect, None):
            assert table.choose(table.candidates(payload, env), registered)[0] == dialect
        assert table.load(dialect).recognise(payload, env)
    for foreign in MAIN:
        if foreign != dialect:
            chosen, why = table.choose(table.candidates(payload, {}), foreign)
            assert chosen is None
            assert dialect in why and foreign in why
            assert not table.load(foreign).recognise(payload, NOISE)


@pytest.mark.parametrize("path", OTHERS, ids=lambda p: p.stem)
def test_other_harnesses_are_told_apart(path: Path) -> None:
    fixture = json.loads(path.read_text())
    expected = RENAMED.get(fixture["expect"], fixture["expect"])
    found = table.candidates(fixture["payload"], fixture["env"])
    assert (found[0] if found else None) == expected
    assert table.choose(found, None)[0] == expected
    if expected is not None:
        assert table.choose(found, expected)[0] == expected
        assert table.load(expected).recognise(fixture["payload"], fixture["env"])
    else:
        assert unknown.recognise(fixture["payload"], fixture["env"])


def other(name: str) -> dict[str, object]:
    payload: dict[str, object] = json.loads((PAYLOADS / "others" / f"{name}.json").read_text())["payload"]
    return payload


@pytest.mark.parametrize(
    ("registered", "name", "chosen"),
    [
        ("claude-code", "cursor-1", "cursor"),
        ("claude-code", "vscode-0", "vscode"),
        ("claude-code", "vscode-1", "vscode"),
        ("claude-code", "vscode-2", "vscode"),
        ("claude-code", "gemini-or-vscode-0", "vscode"),
        ("vscode", "gemini-or-vscode-0", "vscode"),
        ("gemini", "gemini-or-vscode-0", "gemini"),
        ("claude-code", "copilot-0", "copilot"),
        ("claude-code", "copilot-pascal-0", "copilot-pascal"),
        ("claude-code", "grok-0", "grok"),
        ("cursor", "grok-0", "grok"),
        ("claude-code", "devin-0", "devin"),
        ("copilot", "vscode-1", "vscode"),
        ("claude-code", "droid-0", None),
        ("claude-code", "gemini-0", None),
        ("claude-code", "codex-0", None),
        ("codex", "cursor-0", None),
        ("gemini", "cline-0", None),
        ("gemini", "claude-0", None),
        ("cursor", "vscode-1", None),
        ("other", "cursor-0", "other"),
        ("other", "unknown-2", "other"),
        ("claude-code", "unknown-2", None),
        ("codex", "claude-0", "codex"),  # nothing in it tells: what was registered decides
    ],
)
def test_known_readers_of_anothers_settings_pass_and_contradictions_do_not(
    registered: str, name: str, chosen: str | None
) -> None:
    payload = other(name)
    assert table.choose(table.candidates(payload, {}), registered)[0] == chosen


@pytest.mark.parametrize("registered", ["claude-code", "codex", "qwen-code", "droid", "kimi", "claude-like", "qoder"])
def test_a_minimal_payload_is_what_was_registered(registered: str) -> None:
    payload = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert table.choose(table.candidates(payload, {}), registered)[0] == registered
    assert table.choose(table.candidates(payload, {}), None)[0] == "claude-like"
    nameless = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert table.choose(table.candidates(nameless, {}), registered)[0] == registered


def test_a_mark_of_another_form_or_a_missing_one_does_not_lose_the_registered_dialect() -> None:
    copilot = {**other("copilot-0")}
    stamps: tuple[object, ...] = ("2026-11-01T00:00:00Z", None, [], True)
    for stamp in stamps:
        assert table.candidates({**copilot, "timestamp": stamp}, {})[0] == "copilot", stamp
    assert table.candidates({k: v for k, v in copilot.items() if k != "timestamp"}, {})[0] == "copilot"
    qwen = json.loads((PAYLOADS / "qwen-code/PreToolUse.run_shell_command.json").read_text())
    for path in (None, "", 7):
        found = table.candidates({**qwen, "transcript_path": path}, {})
        assert table.choose(found, "qwen-code")[0] == "qwen-code", path


def test_codex_events_with_little_in_them() -> None:
    bare = {"session_id": "s", "transcript_path": None, "cwd": "/w", "hook_event_name": "SessionEnd", "reason": "other"}
    assert table.candidates(bare, {})[0] == "codex"
    rollout = "/home/dev/.codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-abc.jsonl"
    assert table.candidates({**bare, "transcript_path": rollout}, {}) == ("codex",)


def test_a_key_that_clients_may_grow_does_not_lose_the_registered_dialect() -> None:
    payload = json.loads((PAYLOADS / "claude-code/PreToolUse.Bash.json").read_text())
    for extra in ({"turn_id": "t"}, {"generation_id": "g"}, {"timestamp": "2026-11-01T00:00:00Z"}, {"extra": {}}):
        assert table.choose(table.candidates({**payload, **extra}, {}), "claude-code")[0] == "claude-code", extra
    codex = json.loads((PAYLOADS / "codex/pre_tool_use.bash.json").read_text())
    for extra in ({"timestamp": "2026-11-01T00:00:00Z"}, {"prompt_id": "p"}, {"workspace_roots": []}):
        assert table.choose(table.candidates({**codex, **extra}, {}), "codex")[0] == "codex", extra


@pytest.mark.parametrize(("dialect", "path"), CAPTURED, ids=lambda v: v.stem if isinstance(v, Path) else v)
def test_an_event_that_a_client_may_get_one_day_is_still_that_clients(dialect: str, path: Path) -> None:
    payload = json.loads(path.read_text())
    if payload["hook_event_name"] in ("SessionStart", "SessionEnd", "PreModelRequest", "PostModelRequest"):
        return
    payload["hook_event_name"] = "SomethingNew"
    assert table.choose(table.candidates(payload, {}), dialect)[0] == dialect


@settings(max_examples=120, deadline=None)
@given(st.sampled_from([c for c in CAPTURED if "tool" in c[1].stem.lower()]), st.dictionaries(st.sampled_from(KEYS), json_values, max_size=8), st.sampled_from(NAMES))  # fmt: skip
def test_keys_planted_inside_the_input_never_change_the_dialect(
    case: tuple[str, Path], planted: dict[str, object], name: str
) -> None:
    dialect, path = case
    payload = json.loads(path.read_text())
    before = table.candidates(payload, {})
    payload["tool_input"] = {**payload.get("tool_input", {}), **planted, "hook_event_name": name, "nested": planted}
    assert table.candidates(payload, {}) == before
    event = table.load(dialect).read(payload, {}, None)
    assert event.native_event == payload["hook_event_name"]


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), json_values | st.sampled_from(NAMES), max_size=9),
    st.sampled_from(NAMES),
    st.sampled_from([None, *table.MODULES]),
    st.sampled_from([None, "PreToolUse", "Stop", "nonsense"]),
)
def test_any_type_in_any_key_is_survived(
    payload: dict[str, object], name: str, registered: str | None, event_arg: str | None
) -> None:
    for more in ({}, {"hook_event_name": name}):
        full = {**payload, **more}
        chosen, why = table.choose(table.candidates(full, NOISE), registered)
        assert why
        module = unknown if chosen is None else table.load(chosen)
        event = module.read(full, NOISE, event_arg)
        assert event.event in EVENTS
        assert event.kind is None or event.kind in KINDS
        assert all(isinstance(c, str) for c in event.commands) and all(isinstance(u, str) for u in event.urls)
        assert all(isinstance(f.path, str) and isinstance(f.content, str | None) for f in event.files)
        for fact in (event.session, event.call, event.agent, event.cwd, event.client, event.mode, event.prompt):
            assert fact is None or (isinstance(fact, str) and fact)
        if event.event in ("pre_tool", "permission_request") and event.kind == "shell" and not event.commands:
            assert event.undecidable or event.input
        for action in ("allow", "deny"):
            answer = module.answer(event, Verdict(action, "r"))
            assert answer.exit in (0, 2)


@pytest.mark.parametrize("payload", [None, [], [1], "x", 3, True, {}])
def test_what_is_not_an_object_is_nobodys(payload: object) -> None:
    assert table.candidates(payload, NOISE) == ()


def test_client_versions() -> None:
    claude = table.load("claude-code")
    payload = json.loads((PAYLOADS / "claude-code/PreToolUse.Bash.json").read_text())
    assert claude.read(payload, {"AI_AGENT": "claude-code_2-1-332_harness"}, None).client == "2.1.332"
    for strange in ("", "claude-code", "codex_1-2", "claude-code__x", "claude-code_../x_y"):
        assert claude.read(payload, {"AI_AGENT": strange}, None).client is None
    assert table.load("cursor").read(other("cursor-0"), {}, None).client == "1.7"
    assert table.load("cline").read(other("cline-0"), {}, None).client == "3.9"


def test_facts_of_an_event() -> None:
    payload = json.loads((PAYLOADS / "claude-code/PreToolUse.Bash.subagent.json").read_text())
    event = table.load("claude-code").read(payload, {}, None)
    assert (event.dialect, event.event, event.kind, event.tool) == ("claude-code", "pre_tool", "shell", "Bash")
    assert (event.agent, event.agent_type) == ("a0000000000000001", "general-purpose")
    assert event.call == "toolu_SUBAGENT-ONE00_0" and event.mode == "default" and event.cwd == "/home/user/project"
    assert event.payload is payload
    failed = json.loads((PAYLOADS / "gemini/AfterTool.read_file.error.json").read_text())
    event = table.load("gemini").read(failed, {}, None)
    assert event.event == "post_tool_failure" and event.error == "File not found: /home/dev/proj/does-not-exist.txt"


@pytest.mark.parametrize("module", sorted({*table.MODULES.values(), "unknown", "table", "tools", "simple", "shared"}))
def test_imports_nothing_that_costs(module: str) -> None:
    """The hook starts for every tool call: only built-in and near-free modules may be loaded by a dialect."""
    root = Path(__file__).parent.parent.parent
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r}); before = set(sys.modules)\n"
        f"from guardhook.dialects import table, tools\n"
        f"import guardhook.dialects.{module} as m\n"
        "if hasattr(m, 'fallback'): m.limits()\n"
        "print('\\n'.join(sorted(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in run.stdout.split() if not name.startswith("guardhook")}
    assert loaded <= {"_json", "__future__", "unicodedata", "posix"}
    assert "guardhook.dialects." + ("cursor" if module != "cursor" else "cline") not in run.stdout


def test_every_module_has_the_same_functions() -> None:
    for dialect in table.MODULES:
        module = table.load(dialect)
        for name in ("recognise", "read", "answer", "limits", "fallback"):
            assert callable(getattr(module, name)), (dialect, name)
    with pytest.raises(KeyError):
        table.load("no-such-dialect")
