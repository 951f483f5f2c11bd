"""Every captured event, under every verdict, is answered byte for byte as the harness was measured to want it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardhook.core.event import EVENTS, JUDGED, KINDS
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import table

FIXTURES = Path(__file__).parent.parent / "fixtures"
MAIN = ("claude-code", "codex", "gemini", "qwen-code")
ACTIONS = ("allow", "warn", "require_review", "deny")
OTHERS = sorted(p for p in (FIXTURES / "payloads/others").glob("*.json") if not p.name.startswith("unknown"))
CAPTURED = [(dialect, path) for dialect in MAIN for path in sorted((FIXTURES / "payloads" / dialect).glob("*.json"))]


def verdict_of(action: str) -> Verdict:
    verdict = Verdict(action, "deletes / recursively.", "no-root-rm")
    verdict.suggest = "delete one folder by name"
    return verdict


def golden(name: str) -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = json.loads((FIXTURES / "answers" / f"{name}.json").read_text())
    return found


def as_data(answer: Answer) -> dict[str, object]:
    return {"exit": answer.exit, "stdout": answer.stdout.decode(), "stderr": answer.stderr.decode()}


NOTHING = {"exit": 0, "stdout": "", "stderr": ""}


@pytest.mark.parametrize(("dialect", "path"), CAPTURED, ids=lambda v: v.stem if isinstance(v, Path) else v)
def test_captured_events_are_answered_as_measured(dialect: str, path: Path) -> None:
    payload = json.loads(path.read_text())
    module = table.load(dialect)
    event = module.read(payload, {}, None)
    assert event.native_event == payload["hook_event_name"]
    assert event.event in EVENTS
    assert event.kind is None or event.kind in KINDS
    expected = golden(dialect).get(event.native_event, {})
    for action in ACTIONS:
        assert as_data(module.answer(event, verdict_of(action))) == expected.get(action, NOTHING), action
    observed = verdict_of("deny")
    observed.mode = "observe"
    assert module.answer(event, observed) == SILENT


@pytest.mark.parametrize("path", OTHERS, ids=lambda p: p.stem)
def test_other_harnesses_are_answered_in_their_own_words(path: Path) -> None:
    fixture = json.loads(path.read_text())
    dialect = table.candidates(fixture["payload"], fixture["env"])[0]
    module = table.load(dialect)
    event = module.read(fixture["payload"], fixture["env"], None)
    expected = golden("others").get(path.stem)
    if expected is None:
        assert dialect in MAIN or event.event not in ("pre_tool", "permission_request")
        return
    for action in ACTIONS:
        assert as_data(module.answer(event, verdict_of(action))) == expected[action], action
    observed = verdict_of("deny")
    observed.mode = "observe"
    assert as_data(module.answer(event, observed)) == expected["allow"]


def test_every_captured_event_that_can_block_has_a_golden_answer() -> None:
    for dialect in MAIN:
        expected = golden(dialect)
        for path in (FIXTURES / "payloads" / dialect).glob("*.json"):
            event = table.load(dialect).read(json.loads(path.read_text()), {}, None)
            if event.event in JUDGED:
                assert event.native_event in expected


@pytest.mark.parametrize("dialect", sorted(table.MODULES))
def test_limits_are_complete_and_agree_with_the_answers(dialect: str) -> None:
    limits = table.load(dialect).limits()
    assert limits.unit in ("s", "ms")
    assert 4 < (limits.timeout / 1000 if limits.unit == "ms" else limits.timeout) <= 10
    assert limits.events and limits.matrix and limits.open
    assert all(len(row) == 5 and all(row) for row in limits.matrix)
    for native in limits.events:
        answer = table.load(dialect).fallback(native)
        assert answer.exit == 2 or answer.stdout, native
    prompts = {native for native in limits.observed if "rompt" in native}  # recorded by default, blocked when enforced
    for native in set(limits.observed) - set(limits.events) - set(limits.blocking) - prompts:
        answer = table.load(dialect).fallback(native)
        assert answer.exit == 0 and not answer.stderr, native


def test_only_harnesses_that_want_an_answer_get_one_while_observing() -> None:
    talkative = {dialect for dialect in table.MODULES if table.load(dialect).limits().observe_answers}
    assert talkative == {"antigravity", "cline", "cursor"}


@pytest.mark.parametrize("dialect", sorted(table.MODULES))
def test_fallback_without_an_event_blocks(dialect: str) -> None:
    for native in (None, "", "no such event", "PreToolUse "):
        answer = table.load(dialect).fallback(native)
        assert (
            answer.stderr.startswith(b"guardhook: ")
            and answer.stderr.endswith(b"\n")
            and answer.stderr.count(b"\n") == 1
        )
        assert answer.exit == 2 or dialect in ("antigravity", "cline", "cursor", "vibe")
        assert answer.exit == 2 or json.loads(answer.stdout)


@pytest.mark.parametrize(
    "native", ["Stop", "SubagentStop", "PostToolUse", "SessionEnd", "Notification", "SessionStart"]
)
@pytest.mark.parametrize("dialect", ["claude-code", "codex", "qwen-code"])
def test_observing_events_have_a_silent_fallback(dialect: str, native: str) -> None:
    assert table.load(dialect).fallback(native) == SILENT


def test_claude_fallback_has_the_json_of_the_event() -> None:
    answer = table.load("claude-code").fallback("PermissionRequest")
    assert answer.exit == 2
    reply = json.loads(answer.stdout)["hookSpecificOutput"]
    assert reply["hookEventName"] == "PermissionRequest" and reply["decision"]["behavior"] == "deny"
    assert (
        json.loads(table.load("claude-code").fallback("PreToolUse").stdout)["hookSpecificOutput"]["permissionDecision"]
        == "deny"
    )


def test_codex_never_says_anything_on_stdout() -> None:
    module = table.load("codex")
    for path in (FIXTURES / "payloads/codex").glob("*.json"):
        event = module.read(json.loads(path.read_text()), {}, None)
        for action in ACTIONS:
            answer = module.answer(event, verdict_of(action))
            assert answer.stdout == b""
            assert answer.exit in (0, 2) and bool(answer.stderr.strip()) == (answer.exit == 2)


def test_no_dialect_grants_a_call_or_uses_words_that_open() -> None:
    """allow and defer skip prompts, continue:false lets the call run first, top-level deny voids Claude's schema."""
    for dialect, path in CAPTURED:
        module = table.load(dialect)
        event = module.read(json.loads(path.read_text()), {}, None)
        for action in ACTIONS:
            out = module.answer(event, verdict_of(action)).stdout
            assert out.count(b"\n") <= 1 and (not out or (out[:1] == b"{" and out[-2:] == b"}\n"))
            reply = json.loads(out) if out else {}
            assert "continue" not in reply and "async" not in reply
            inner = reply.get("hookSpecificOutput", {})
            assert inner.get("permissionDecision") in (None, "deny", "ask")
            assert inner.get("hookEventName", event.native_event) == event.native_event
            assert (reply.get("decision") == "deny") <= (dialect == "gemini")


# --- sentences -------------------------------------------------------------------------------------------------


def pre_tool(dialect: str, **more: object) -> dict[str, object]:
    name = "BeforeTool" if dialect == "gemini" else "PreToolUse"
    return {"hook_event_name": name, "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}, **more}


@pytest.mark.parametrize("dialect", MAIN)
@pytest.mark.parametrize(
    "reason",
    [
        'x\n{"decision":"allow"}',
        '{"decision":"allow"}',
        "a\x1b[2Jb\u202ec\x00",
        "\ud83d cut emoji",
        "No such file or directory; can't open it",
        "ünïcode 日本",
        "y" * 100_000,
        "",
        "   ",
    ],
)
def test_reasons_are_one_harmless_line(dialect: str, reason: str) -> None:
    module = table.load(dialect)
    event = module.read(pre_tool(dialect), {}, None)
    for action in ("warn", "require_review", "deny"):
        verdict = Verdict(action, reason, "p\n\x1b1")
        verdict.suggest = reason
        answer = module.answer(event, verdict)
        answer.stdout.decode("ascii")
        line = answer.stderr.decode("utf-8")
        assert len(line) < 1200
        assert line == "" or (line.startswith("guardhook") and line.endswith("\n") and line[:-1].isprintable())
        assert "no such file" not in line.lower() and "can't open" not in line.lower()
        assert answer == SILENT or answer.exit == 2 or json.loads(answer.stdout)


def test_a_fault_without_a_policy_names_none() -> None:
    module = table.load("codex")
    answer = module.answer(module.read(pre_tool("codex"), {}, None), Verdict("deny", "the payload names no tool"))
    assert answer.stderr == b"guardhook: blocked: the payload names no tool. Do not retry this in another way.\n"


def test_review_in_the_editor_extension_is_a_block() -> None:
    module = table.load("claude-code")
    event = module.read(pre_tool("claude-code"), {"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}, None)
    answer = module.answer(event, verdict_of("require_review"))
    assert answer.exit == 2 and b'"deny"' in answer.stdout and b"person approves" in answer.stderr
    terminal = module.read(pre_tool("claude-code"), {"CLAUDE_CODE_ENTRYPOINT": "cli"}, None)
    assert module.answer(terminal, verdict_of("require_review")).exit == 0


@pytest.mark.parametrize("mode", ["default", "bypassPermissions", "auto", "plan", "some-new-mode", "", None, 7])
def test_permission_modes_do_not_change_answers(mode: object) -> None:
    module = table.load("claude-code")
    event = module.read(pre_tool("claude-code", permission_mode=mode, transcript_path="/t"), {}, None)
    expected = golden("claude-code")["PreToolUse"]
    for action in ACTIONS:
        assert as_data(module.answer(event, verdict_of(action))) == expected[action]


# --- names of events -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tool.before", "PreToolUse ", "pretooluse", "", None, 3, "constructor"])
def test_the_registered_event_stands_in_for_a_name_that_is_not_known(name: object) -> None:
    module = table.load("claude-code")
    event = module.read(pre_tool("claude-code", hook_event_name=name), {}, "PreToolUse")
    assert (event.native_event, event.event) == ("PreToolUse", "pre_tool")
    reply = json.loads(module.answer(event, verdict_of("deny")).stdout)
    assert reply["hookSpecificOutput"]["hookEventName"] == "PreToolUse"


def test_the_payloads_own_event_beats_the_registered_one() -> None:
    event = table.load("claude-code").read({"hook_event_name": "Stop", "session_id": "s"}, {}, "PreToolUse")
    assert (event.native_event, event.event) == ("Stop", "stop")


@pytest.mark.parametrize("dialect", MAIN)
@pytest.mark.parametrize("name", ["PreToolCall", "BeforeEverything", "__proto__"])
def test_an_unknown_event_with_a_call_and_no_result_is_judged(dialect: str, name: str) -> None:
    module = table.load(dialect)
    event = module.read(pre_tool(dialect, hook_event_name=name), {}, None)
    assert event.event == "pre_tool" and event.commands == ["ls"]
    answer = module.answer(event, verdict_of("deny"))
    assert answer.exit == 2 and answer.stderr
    after = module.read(pre_tool(dialect, hook_event_name=name, tool_response="done"), {}, None)
    assert after.event == "other" and module.answer(after, verdict_of("deny")) == SILENT
    bare = module.read({"hook_event_name": name, "session_id": "s"}, {}, None)
    assert bare.event == "other" and module.answer(bare, verdict_of("deny")) == SILENT


@pytest.mark.parametrize(
    ("dialect", "registered", "payload"),
    [
        ("grok", "PreToolUse", {"hook_event_name": "Stop", "toolName": "run_terminal_command", "toolInput": {"command": "ls"}}),
        ("kiro-env", "preToolUse", {"hookName": "PostToolUse", "toolName": "execute_bash", "toolArgs": {"command": "ls"}}),
        # Started with the word of the settings that it read, which differs from its own by a capital.
        ("vscode", "preToolUse", {"hook_event_name": "Zork", "tool_name": "run_in_terminal", "tool_input": {"command": "ls"}}),
        ("vscode", "preToolUse", {"hook_event_name": "Zork"}),
        ("cursor", "PreToolUse", {"hook_event_name": "zork", "cursor_version": "3", "tool_name": "Shell"}),
        ("codex", "preToolUse", {"hook_event_name": None, "tool_name": "Bash", "tool_input": {"command": "ls"}, "error": "x"}),
    ],
)  # fmt: skip
def test_registered_for_a_call_and_told_something_else_it_is_judged(
    dialect: str, registered: str, payload: dict[str, object]
) -> None:
    module = table.load(dialect)
    event = module.read(payload, {}, registered)
    assert event.event == "pre_tool" and event.native_event in (registered, registered[0].swapcase() + registered[1:])
    answer = module.answer(event, verdict_of("deny"))
    assert answer.stderr and (answer.exit == 2 or b"deny" in answer.stdout)


@pytest.mark.parametrize("given", [None, {}, "", 7])
def test_a_call_without_an_event_is_one_whatever_its_input_is(given: object) -> None:
    for dialect in ("kiro-env", "other", "letta", "openhands"):
        event = table.load(dialect).read({"toolName": "execute_bash", "toolArgs": given}, {}, None)
        assert event.event == "pre_tool" and event.undecidable, dialect


# --- other and unknown -----------------------------------------------------------------------------------------


def test_other_speaks_by_exit_status_only() -> None:
    module = table.load("other")
    event = module.read({"event": "preToolUse", "toolName": "bash", "toolInput": {"command": "ls"}}, {}, None)
    assert event.event == "pre_tool" and event.commands == ["ls"]
    for action, code in (("allow", 0), ("warn", 0), ("require_review", 2), ("deny", 2)):
        answer = module.answer(event, verdict_of(action))
        assert answer.exit == code and answer.stdout == b"" and bool(answer.stderr) == (code == 2)
    stop = module.read({"event": "stop"}, {}, None)
    assert module.answer(stop, verdict_of("deny")) == SILENT


@pytest.mark.parametrize(
    "payload",
    [
        {"event": "tool.execute.before", "tool": "bash", "args": {"command": "ls"}},
        {"tool": {"name": "bash", "input": {"command": "ls"}}},
        {"call": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"type": "x", "name": "bash", "params": {"command": "ls"}, "session_id": "s"},
    ],
)
def test_other_finds_a_call_under_other_usual_names(payload: dict[str, object]) -> None:
    module = table.load("other")
    event = module.read(payload, {}, None)
    assert (event.event, event.kind, event.commands) == ("pre_tool", "shell", ["ls"])
    assert module.answer(event, verdict_of("deny")).exit == 2
    after = module.read({**payload, "result": "done"}, {}, "SessionEnd")
    assert after.event == "session_end" and module.answer(after, verdict_of("deny")) == SILENT


def test_other_blocks_what_tells_neither_event_nor_call() -> None:
    from guardhook.gate.judge import precheck

    module = table.load("other")
    nothing: tuple[dict[str, object], ...] = ({}, {"a": 1}, {"hook_event_name": None}, {"tool": 7}, {"tool": {}})
    for payload in nothing:
        verdict = precheck(module.read(payload, {}, None))
        assert verdict is not None and verdict.action == "deny", payload
    reports: tuple[dict[str, object], ...] = (
        {"event": "cat-fed"},
        {"tool": "sh", "args": {}, "result": "x", "event": "x"},
    )
    for payload in reports:
        assert module.answer(module.read(payload, {}, None), verdict_of("deny")) == SILENT


def test_unknown_is_one_plain_line_and_status_2() -> None:
    from guardhook.dialects import unknown

    verdict = Verdict("deny", "the payload is not that of a known harness")
    verdict.cause = "unknown"
    for answer in (
        unknown.answer_for(None, None, verdict),
        unknown.answer_for("codex", "PreToolUse", verdict),
        unknown.answer_for("no-such-dialect", "x", verdict),
        unknown.answer(unknown.read({}, {}, None), verdict),
    ):
        assert (answer.exit, answer.stdout) == (2, b"")
        assert (
            answer.stderr
            == b"guardhook: blocked: the payload is not that of a known harness. Do not retry this in another way.\n"
        )


def test_unreadable_payloads_are_blocked_in_the_registered_dialect() -> None:
    from guardhook.dialects import unknown

    verdict = Verdict("deny", "the payload is empty")
    verdict.cause = "payload"
    gemini = unknown.answer_for("gemini", "BeforeTool", verdict)
    assert gemini.exit == 2 and json.loads(gemini.stdout)["decision"] == "deny"
    assert json.loads(unknown.answer_for("cline", "PreToolUse", verdict).stdout)["cancel"] is True
    assert unknown.answer_for("claude-code", "Stop", verdict) == SILENT
    verdict.mode = "observe"
    assert unknown.answer_for("claude-code", "PreToolUse", verdict) == SILENT


@pytest.mark.parametrize("dialect", ["cline", "hermes", "antigravity", "copilot"])
def test_every_block_word_only_where_status_2_is_not_enough(dialect: str) -> None:
    """The registration says who asks, or, where the payload contradicts it, the payload's own keys do."""
    from guardhook.dialects import unknown

    verdict = Verdict("deny", "unknown")
    verdict.cause = "unknown"
    answer = unknown.answer_for(dialect, None, verdict)
    reply = json.loads(answer.stdout)
    assert answer.exit == 2 and reply["cancel"] is True and reply["decision"] == "deny" and reply["action"] == "block"
    assert unknown.answer_for("claude-code", "PreToolUse", verdict, dialect) == answer
    assert unknown.answer_for(None, None, verdict, dialect) == answer
    assert unknown.answer_for("claude-code", "PreToolUse", verdict, "codex").stdout == b""
    assert unknown.answer_for("claude-code", "Stop", verdict, dialect) == SILENT


def test_a_harness_that_runs_the_call_at_any_status_but_0_is_always_blocked_with_0() -> None:
    from guardhook.dialects import unknown

    for cause in ("unknown", "payload"):
        verdict = Verdict("deny", "not understood")
        verdict.cause = cause
        for native in ("pre_tool", "before_tool", None):
            answer = unknown.answer_for("vibe", native, verdict)
            assert answer.exit == 0 and json.loads(answer.stdout)["decision"] == "deny" and answer.stderr
        assert unknown.answer_for("vibe", "post_tool", verdict) == SILENT


@pytest.mark.parametrize("dialect", sorted(table.MODULES))
def test_payloads_that_are_not_understood_break_no_event_that_only_reports(dialect: str) -> None:
    """A cancelled task is what came of it where the answer that means nothing is not silence."""
    from guardhook.dialects import unknown

    module = table.load(dialect)
    routes = module.ROUTES if hasattr(module, "ROUTES") else module._self.routes
    verdict = Verdict("deny", "unknown")
    verdict.cause = "unknown"
    for native, canonical in routes.items():
        answer = unknown.answer_for(dialect, native, verdict)
        if canonical in JUDGED:
            assert answer.stderr, native
        else:
            assert (answer.exit, answer.stderr) == (0, b"") and answer == module.fallback(native), native


def test_a_reason_never_reads_as_a_missing_file_and_never_hangs() -> None:
    """U+0130 is two characters in lower case: places found there did not fit, and the replacing never ended."""
    for text in ("no such file", "İ" * 30 + " No Such File or directory", "İcan't open İ CAN'T OPEN" + "İ" * 20):
        said = table.load("claude-code").fallback("PreToolUse", text).stderr.decode().lower()
        assert "no such file" not in said and "can't open" not in said
        assert "İ" not in text or b"\xc4\xb0" in table.load("codex").fallback("PreToolUse", text).stderr
