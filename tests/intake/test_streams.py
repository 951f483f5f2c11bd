"""record, agents' own streams: samples of real clients, and what they say in other cases."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from record_rig import STREAMS, Line, feed, guardhook, only, opened

from guardhook.intake.streams import FORMATS, Skip, translator
from guardhook.store import Step, Trace, protocol


def sample(tmp_path: Path, name: str, form: str, *, live: bool = True) -> tuple[Trace, list[Step]]:
    fed = feed(tmp_path, (STREAMS / f"{name}.jsonl").read_bytes(), form, live=live)
    assert fed.warnings == []
    return only(tmp_path)


# --- codex exec --json ---------------------------------------------------------------------------------------------

THREAD: Line = {"type": "thread.started", "thread_id": "th"}
DONE: Line = {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": "5"}}


def item(kind: str = "item.completed", **fields: object) -> dict[str, object]:
    return {"type": kind, "item": {"id": "item_1", "type": "command_execution", "command": "ls -la", **fields}}


def test_codex_sample(tmp_path: Path) -> None:
    trace, steps = sample(tmp_path, "codex-exec-json.sample", "codex-exec")
    assert (trace.agent_name, trace.session_id, trace.status) == ("codex", "00000000-0000-7000-8000-000000000001", "completed")  # fmt: skip
    assert (trace.total_tokens, trace.output) == (882, {"text": "All done."})
    usage = trace.metadata["usage"]
    assert isinstance(usage, dict) and usage["cached_input_tokens"] == 70
    assert [(s.step_type, s.name) for s in steps] == [
        ("thought", "notice"), ("thought", "notice"), ("thought", "reasoning"), ("output", "agent_message"), ("tool_call", "echo"),
        ("tool_call", "file_change"), ("tool_call", "write_file"), ("tool_call", "exit"), ("retrieval", "web_search"), ("output", "agent_message"),
    ]  # fmt: skip
    assert [s.error for s in steps if s.error] == ["exited with code 3"]
    command, mcp = steps[4], steps[6]
    assert command.input == {"command": "/bin/bash -lc 'echo allowed-output'"}
    assert isinstance(command.output, dict) and command.output["aggregated_output"] == "allowed-output\n"
    assert command.duration_ms is not None and command.ended_at is not None
    assert mcp.input == {"path": "/home/dev/project/MARK"} and mcp.metadata["server"] == "echo"


def test_codex_from_a_file_has_no_made_up_times(tmp_path: Path) -> None:
    trace, steps = sample(tmp_path, "codex-exec-json.sample", "codex-exec", live=False)
    assert (trace.status, trace.ended_at, trace.effective_duration_ms) == ("completed", None, None)
    assert len(steps) == 10 and all(s.duration_ms is None for s in steps)


def test_codex_code_mode_sample(tmp_path: Path) -> None:
    trace, steps = sample(tmp_path, "codex-exec-json.codemode.sample", "codex-exec")
    assert [s.name for s in steps if s.step_type == "tool_call"] == ["echo", "file_change", "echo"]
    assert trace.total_tokens == 242


def test_codex_failures_sample(tmp_path: Path) -> None:
    fed = feed(tmp_path, (STREAMS / "codex-exec-json.failures.jsonl").read_bytes(), "codex-exec")
    assert fed.told.kinds == {"no type": 5}  # notes between the captures
    with opened(tmp_path) as store:
        found = sorted(store.iterate(), key=lambda t: str(t.session_id))
    assert [t.status for t in found] == ["failed"] * 5
    assert [str(t.error)[:12] for t in found] == ["We’re curren", "unexpected s", "exceeded ret", "Codex ran ou", "stream disco"]  # fmt: skip


def test_codex_retries_are_no_failure(tmp_path: Path) -> None:
    feed(tmp_path, [THREAD, {"type": "error", "message": "Reconnecting... 2/5"}, item(exit_code=0), DONE], "codex-exec")
    trace, steps = only(tmp_path)
    assert (trace.status, trace.error, [s.name for s in steps]) == ("completed", None, ["notice", "ls"])


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"exit_code": 0, "status": "completed"}, None),
        ({"exit_code": 2, "status": "failed"}, "exited with code 2"),
        ({"exit_code": "3"}, "exited with code 3"),
        ({"exit_code": None, "status": "FAILED"}, "tool failed"),
        ({"exit_code": "ENOENT"}, None),
        ({"exit_code": {}, "is_error": 1}, "tool failed"),
        ({"is_error": "true"}, "tool failed"),
        ({"error": {"message": "no such tool"}, "status": "failed"}, "no such tool"),
        ({"error": ""}, None),
        ({"status": "declined"}, "declined: the command was not run"),
    ],
)
def test_codex_how_a_command_failed(tmp_path: Path, fields: dict[str, object], error: str | None) -> None:
    feed(tmp_path, [THREAD, item("item.started", status="in_progress"), item(**fields), DONE], "codex-exec")
    trace, (step,) = only(tmp_path)
    assert (trace.status, step.error) == ("completed", error)
    declined = fields.get("status") == "declined"
    assert step.metadata.get("blocked", False) is declined
    assert (step.decision.chosen if step.decision else None) == ("decline" if declined else None)


@pytest.mark.parametrize("live", [True, False])
def test_codex_cut_off(tmp_path: Path, live: bool) -> None:
    fed = feed(tmp_path, [THREAD, item("item.started", status="in_progress")], "codex-exec", live=live)
    trace, (step,) = only(tmp_path)
    assert (trace.status, len(fed.outcome.finalized)) == ("timeout", 1)
    assert step.name == "ls" and step.metadata["interrupted"] is True


def test_codex_odd_lines(tmp_path: Path) -> None:
    fed = feed(
        tmp_path,
        [
            {"type": "item.completed", "item": "text"},  # before any thread, and no object
            {"type": "item.completed", "item_type": "agent_message", "text": "old form"},
            {"type": "turn.started"}, {"type": "item.updated", "item": {}},
            {"type": "item.completed", "item": {"type": "todo_list", "items": [{"text": "a", "completed": True}]}},
            {"type": "item.completed", "item": {"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "go", "receiver_thread_ids": ["x"]}},
            {"type": "brand.new"}, "[]", DONE, DONE,
        ],
        "codex-exec",
    )  # fmt: skip
    assert fed.told.count == 2
    trace, steps = only(tmp_path)
    assert [(s.step_type, s.name) for s in steps] == [
        ("thought", "item"), ("output", "agent_message"), ("thought", "todo_list"), ("tool_call", "spawn_agent"),
    ]  # fmt: skip
    assert (trace.session_id, trace.output, trace.total_tokens) == (None, {"text": "old form"}, 30)
    assert steps[3].input == {"prompt": "go", "receiver_thread_ids": ["x"]}


# --- gemini --output-format stream-json ------------------------------------------------------------------------------

INIT: Line = {"type": "init", "timestamp": "2026-01-01T00:00:00.000Z", "session_id": "s", "model": "g"}
OVER: Line = {"type": "result", "status": "success", "stats": {"total_tokens": 12}}


def use(name: str, id: str | None = None, **more: object) -> dict[str, object]:
    return {"type": "tool_use", "tool_name": name, **({"tool_id": id} if id else {}), "parameters": {"n": name}, **more}


def result(id: str | None = None, **more: object) -> dict[str, object]:
    return {"type": "tool_result", **({"tool_id": id} if id else {}), **more}


def test_gemini_sample(tmp_path: Path) -> None:
    trace, steps = sample(tmp_path, "gemini-stream-json.sample", "gemini-stream", live=False)
    assert (trace.agent_name, trace.status, trace.total_tokens, trace.total_duration_ms) == ("gemini", "completed", 3060, 360)  # fmt: skip
    assert (trace.input, trace.output) == ({"prompt": "please do the thing"}, {"text": "All done."})
    assert (trace.started_at, trace.ended_at) == ("2026-11-30T00:33:59.822Z", "2026-11-30T00:34:00.182Z")
    blocked, ran, said = steps
    assert blocked.error == "Tool execution blocked: rm -rf is not allowed" and blocked.metadata["blocked"] is True
    assert blocked.decision is not None and (blocked.decision.chosen, blocked.decision.decided_by) == ("deny", "policy")
    assert blocked.input == {"command": "rm -rf build", "description": "clean"} and blocked.duration_ms == 111
    assert (ran.error, ran.output, ran.duration_ms) == (None, {"output": "tool-output-42"}, 79)
    assert (said.step_type, said.name, said.model) == ("output", "message", "gemini-2.5-flash")


def test_gemini_pieces_of_a_message_are_one(tmp_path: Path) -> None:
    pieces: list[Line] = [
        {"type": "message", "role": "assistant", "content": c, "delta": True} for c in ("A", "ll ", "ok")
    ]
    feed(tmp_path, [INIT, *pieces, use("x", "1"), *pieces, result("1", output={"o": 1}), OVER], "gemini-stream")
    trace, steps = only(tmp_path)
    assert [s.output for s in steps] == [{"text": "All ok"}, {"o": 1}, {"text": "All ok"}]
    assert trace.output == {"text": "All ok"}


def test_gemini_prompts(tmp_path: Path) -> None:
    prompts: list[Line] = [{"type": "message", "role": "user", "content": c} for c in ("", "first", "second")]
    feed(tmp_path, [INIT, *prompts, OVER], "gemini-stream")
    trace, steps = only(tmp_path)
    assert (trace.input, trace.metadata["follow_up_prompts"], steps) == ({"prompt": "first"}, ["second"], [])


def test_gemini_results_find_their_calls(tmp_path: Path) -> None:
    fed = feed(
        tmp_path,
        [
            INIT, use("a", "1"), use("b", "2"), use("a"), use("a"),
            result("2", output="two"), result("1", output="one"), result(tool_name="a", output="three"), result(output="four"),
            result(output="nobody"), result("9", output="nobody"), result(tool_name="z", output="nobody"), OVER,
        ],
        "gemini-stream",
    )  # fmt: skip
    assert fed.told.count == 3
    assert [s.output for s in only(tmp_path)[1]] == [{"output": o} for o in ("one", "two", "three", "four")]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"status": "success"}, None),
        ({"status": "error"}, "tool failed"),
        ({"status": "error", "output": "why"}, "why"),
        ({"error": "x"}, "x"),
        ({"error": {"type": "t", "message": "m"}}, "m"),
        ({"error": {"code": 1}}, '{"code":1}'),
        *(({"error": nothing}, None) for nothing in ("", False, [], {}, 0, None)),
        ({"is_error": 1}, "tool failed"),
        ({"is_error": "true"}, "tool failed"),
        ({"is_error": "false"}, None),
    ],
)
def test_gemini_how_a_call_failed(tmp_path: Path, fields: dict[str, object], error: str | None) -> None:
    feed(tmp_path, [INIT, use("a", "1"), result("1", **fields), OVER], "gemini-stream")
    trace, (step,) = only(tmp_path)
    assert (trace.status, step.error) == ("completed", error)


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        ({"status": "error", "error": {"type": "Error", "message": "quota"}}, "failed", "quota"),
        ({"status": "error"}, "failed", "the run failed"),
        ({"exit_code": 2}, "failed", "exited with code 2"),
        ({"code": "ENOENT"}, "completed", None),
        ({"exit_code": {}}, "completed", None),
        ({}, "completed", None),
    ],
)
def test_gemini_how_a_run_ended(tmp_path: Path, line: dict[str, object], status: str, error: str | None) -> None:
    feed(tmp_path, [INIT, {"type": "result", **line}], "gemini-stream")
    trace, _ = only(tmp_path)
    assert (trace.status, trace.error) == (status, error)


def test_gemini_warnings_and_errors(tmp_path: Path) -> None:
    warning = {"type": "error", "severity": "warning", "message": "Agent execution blocked: no"}
    feed(tmp_path / "w", [INIT, warning, OVER], "gemini-stream")
    trace, steps = only(tmp_path / "w")
    assert (trace.status, [s.name for s in steps]) == ("completed", ["warning"])
    feed(tmp_path / "e", [INIT, {**warning, "severity": "error"}, OVER], "gemini-stream")
    trace, steps = only(tmp_path / "e")
    assert (trace.status, trace.error) == ("failed", "Agent execution blocked: no")


def test_gemini_cut_off(tmp_path: Path) -> None:
    feed(tmp_path, [INIT, use("a", "1")], "gemini-stream")
    trace, (step,) = only(tmp_path)
    assert trace.status == "timeout" and step.metadata["interrupted"] is True


def test_gemini_tokens_add_as_numbers(tmp_path: Path) -> None:
    stats = {"tokens": {"input_tokens": "5", "output_tokens": "7"}}
    feed(tmp_path, [INIT, {"type": "result", "stats": stats}], "gemini-stream")
    assert only(tmp_path)[0].total_tokens == 12


# --- claude --output-format stream-json ------------------------------------------------------------------------------


def said(*blocks: dict[str, object], id: str = "m1", **more: object) -> dict[str, object]:
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 10,
        "cache_creation_input_tokens": 100,
        "output_tokens": 1000,
    }
    message = {"id": id, "role": "assistant", "model": "opus", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": message, "session_id": "s", "timestamp": "2026-01-01T00:00:00Z", **more}


def got(id: str, content: object = "ok", **more: object) -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": more.pop("is_error", False)}
    return {"type": "user", "message": {"content": [block]}, "session_id": "s", "timestamp": "2026-01-01T00:00:02Z", **more}  # fmt: skip


def call(id: str, name: str = "Bash") -> dict[str, object]:
    return {"type": "tool_use", "id": id, "name": name, "input": {"command": "ls"}}


def over(**more: object) -> dict[str, object]:
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "result": "fin", **more}


def test_claude_sample(tmp_path: Path) -> None:
    trace, steps = sample(tmp_path, "claude-stream-json.sample", "claude-stream")
    assert (trace.agent_name, trace.agent_version, trace.status) == ("claude-code", "2.1.332", "completed")
    assert (trace.total_tokens, trace.total_cost_usd, trace.total_duration_ms) == (9150, pytest.approx(0.031509), 3304)
    assert (trace.project, trace.output) == ("/home/user/project", {"text": "really fin"})
    assert (trace.started_at, trace.ended_at) == ("2026-11-30T00:41:01.263Z", "2026-11-30T00:41:04.389Z")
    assert (trace.metadata["model"], trace.metadata["permission_denials"]) == ("claude-opus-5-5", 3)
    blocked = [s for s in steps if s.metadata.get("blocked")]
    assert [s.error and s.error[:34] for s in blocked] == ["PreToolUse:Bash hook error: R-deny", "R-ask", "PreToolUse:Bash hook error: [i=$(c"]  # fmt: skip
    assert all(s.decision is not None and s.decision.decided_by == "policy" for s in blocked)
    assert blocked[1].decision is not None and blocked[1].decision.rationale == "R-ask"
    failed = next(s for s in steps if s.error and s.error.startswith("Exit code 2"))
    assert failed.metadata["permission"] == "accept" and failed.duration_ms == 136
    broken = [s for s in steps if s.step_type == "guard_check"]
    assert [(s.name, s.error) for s in broken] == [("hook:PreToolUse:Bash", "boom\n")]
    assert all(s.ended_at for s in steps)


def test_claude_sub_agents_in_the_sample(tmp_path: Path) -> None:
    _, steps = sample(tmp_path, "claude-stream-json.sample", "claude-stream")
    agent = next(s for s in steps if s.name == "Agent")
    anchor = next(s for s in steps if s.name == "subagent:general-purpose")
    assert anchor.parent_step_number == agent.step_number and anchor.output == {"text": "subres"}
    assert anchor.metadata["agent_id"] == "a0000000000000001"
    below = [s for s in steps if s.parent_step_number == anchor.step_number]
    assert [(s.step_type, s.name) for s in below] == [("tool_call", "Bash"), ("output", "assistant_message")]


def test_claude_counts_the_usage_of_a_message_once(tmp_path: Path) -> None:
    feed(
        tmp_path,
        [said({"type": "thinking", "thinking": "hm"}), said(call("a")), got("a"), said(call("b"), id="m2")],
        "claude-stream",
    )
    trace, steps = only(tmp_path)
    assert [s.tokens_used for s in steps] == [1111, None, 1111]
    assert (trace.status, trace.effective_tokens) == ("timeout", 2222)


def test_claude_turns_of_one_session_are_one_trace(tmp_path: Path) -> None:
    user = {"type": "user", "session_id": "s", "message": {"role": "user", "content": "first"}}
    again = {**user, "message": {"role": "user", "content": [{"type": "text", "text": "second"}]}}
    usage = {"usage": {"input_tokens": 3, "output_tokens": 4}}
    init = {"type": "system", "subtype": "init", "session_id": "s", "model": "opus"}
    text: dict[str, object] = {"type": "text", "text": "x"}
    feed(tmp_path, [init, user, said(text), over(**usage), init, again, said(text), over(result="end", **usage)], "claude-stream")  # fmt: skip
    trace, steps = only(tmp_path)
    assert (trace.input, trace.metadata["follow_up_prompts"]) == ({"prompt": "first"}, ["second"])
    assert (trace.total_tokens, trace.output, len(steps)) == (14, {"text": "end"}, 2)


def test_claude_cut_off_in_a_later_turn(tmp_path: Path) -> None:
    text: dict[str, object] = {"type": "text", "text": "x"}
    feed(tmp_path, [said(text), over(duration_ms=5), said(text, id="m2")], "claude-stream")
    assert only(tmp_path)[0].status == "timeout"


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, "completed", None),
        ({"subtype": "error_max_turns", "result": None}, "failed", "error_max_turns"),
        ({"is_error": True, "result": "API Error: 500"}, "failed", "API Error: 500"),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["boom"]}, "failed", "boom"),
    ],
)
def test_claude_how_a_run_ended(tmp_path: Path, fields: dict[str, object], status: str, error: str | None) -> None:
    feed(tmp_path, [said({"type": "text", "text": "x"}), over(**fields)], "claude-stream")
    trace, _ = only(tmp_path)
    assert (trace.status, trace.error) == (status, error)


def test_claude_a_person_says_no(tmp_path: Path) -> None:
    meta = [{"id": "a", "permission_decision": {"decision": "reject", "source": "user_reject"}}]
    feed(tmp_path, [said(call("a")), got("a", "no", is_error=True, tool_result_meta=meta), over()], "claude-stream")
    (step,) = only(tmp_path)[1]
    assert step.decision is not None and (step.decision.chosen, step.decision.decided_by) == ("deny", "user")
    assert (step.error, step.metadata["permission"], step.duration_ms) == ("no", "denied", 2000)


def test_claude_a_denial_that_only_the_end_tells(tmp_path: Path) -> None:
    denials = [{"tool_name": "Bash", "tool_use_id": "a", "tool_input": {}}, {"tool_use_id": "nobody"}, 5]
    feed(tmp_path, [said(call("a"), call("b")), got("a", "no", is_error=True), got("b", "failed", is_error=True), over(permission_denials=denials)], "claude-stream")  # fmt: skip
    denied, failed = only(tmp_path)[1]
    assert denied.decision is not None and (denied.decision.chosen, denied.decision.rationale) == ("deny", "no")
    assert (denied.metadata["blocked"], denied.duration_ms, denied.ended_at) == (True, 2000, "2026-01-01T00:00:02Z")
    assert failed.decision is None and "blocked" not in failed.metadata


def test_claude_a_guard_that_failed_open(tmp_path: Path) -> None:
    note = {
        "type": "system",
        "subtype": "informational",
        "tag": "hook_no_verdict",
        "content": "no verdict",
        "session_id": "s",
    }
    early = {"type": "system", "subtype": "hook_response", "hook_name": "UserPromptSubmit", "outcome": "error", "exit_code": 127, "stderr": "not found", "session_id": "s"}  # fmt: skip
    feed(tmp_path, [early, said({"type": "text", "text": "x"}), note, over()], "claude-stream")
    assert [(s.name, s.error) for s in only(tmp_path)[1]] == [
        ("hook:UserPromptSubmit", "not found"), ("assistant_message", None), ("hook_no_verdict", "a hook gave no verdict"),
    ]  # fmt: skip


def test_claude_a_foreground_sub_agent_ends_with_its_call(tmp_path: Path) -> None:
    below = {"parent_tool_use_id": "t", "subagent_type": "Explore", "agent_id": "x"}
    feed(tmp_path, [said(call("t", "Agent")), said({"type": "text", "text": "hi"}, id="m2", **below), got("t", [{"type": "text", "text": "found"}]), over()], "claude-stream")  # fmt: skip
    agent, anchor, text = only(tmp_path)[1]
    assert (anchor.name, anchor.parent_step_number, anchor.output) == ("subagent:Explore", agent.step_number, {"text": "found"})  # fmt: skip
    assert text.parent_step_number == anchor.step_number and anchor.ended_at == "2026-01-01T00:00:02Z"


def test_claude_odd_lines(tmp_path: Path) -> None:
    fed = feed(
        tmp_path,
        [
            {"type": "stream_event", "event": {}}, {"type": "brand_new"}, {"no": "type"}, got("nobody"),
            said({"type": "text"}, "x", {"type": "image"}, {"type": "tool_use", "name": 7}), {"type": "assistant", "message": 5}, over(),  # type: ignore[arg-type]
        ],
        "claude-stream",
    )  # fmt: skip
    assert fed.told.count == 3
    trace, steps = only(tmp_path)
    assert [(s.name, s.metadata.get("interrupted")) for s in steps] == [("tool", True)] and trace.status == "completed"


# --- qwen --output-format stream-json ----------------------------------------------------------------------------------


@pytest.mark.parametrize("live", [True, False])
def test_qwen_sample(tmp_path: Path, live: bool) -> None:
    trace, steps = sample(tmp_path, "qwen-stream-json.sample", "qwen-stream", live=live)
    assert (trace.agent_name, trace.agent_version, trace.status, trace.total_tokens) == ("qwen-code", "0.24.4", "completed", 220)  # fmt: skip
    assert (trace.output, trace.total_duration_ms, trace.ended_at is not None) == ({"text": "done"}, 901, live)
    assert trace.metadata["permission_mode"] == "yolo"
    said, call, done = steps
    assert (call.name, call.model, call.error, call.metadata["source"]) == ("run_shell_command", "gemini-2.5-flash", None, "qwen-stream")  # fmt: skip
    assert (call.duration_ms is not None) is live and (said.name, done.name) == ("assistant_message",) * 2


def test_calls_without_times_are_told_when_they_end(tmp_path: Path) -> None:
    lines = (STREAMS / "qwen-stream-json.sample.jsonl").read_bytes().splitlines()
    feed(tmp_path, [lines[0], *lines[2:4]], "qwen-stream", live=False)
    trace, (_, call) = only(tmp_path)
    assert (trace.status, call.name, call.metadata["interrupted"]) == ("timeout", "run_shell_command", True)
    assert call.metadata["call"] == "call_qwen_1" and call.step_number == 2


# --- all ---------------------------------------------------------------------------------------------------------------


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
WORDS = ["id", "type", "item", "tool_id", "tool_use_id", "name", "tool_name", "content", "message", "text", "output", "error", "status", "usage", "stats", "role", "input", "command", "session_id", "subtype", "parent_tool_use_id", "timestamp", "result", "tool_result_meta", "is_error", "exit_code", "modelUsage", "permission_denials", "errors"]  # fmt: skip
TYPES = ["thread.started", "turn.completed", "turn.failed", "error", "item.started", "item.completed", "init", "message", "tool_use", "tool_result", "result", "system", "assistant", "user", "text", "thinking", "task_notification", "hook_response", "informational", "success", "command_execution"]  # fmt: skip
VALUES = st.one_of(JSON, st.sampled_from(TYPES), st.dictionaries(st.sampled_from(WORDS), JSON | st.sampled_from(TYPES), max_size=4))  # fmt: skip
LINES = st.fixed_dictionaries({"type": st.sampled_from(TYPES)}).flatmap(
    lambda head: st.dictionaries(st.sampled_from(WORDS[2:]), VALUES | st.lists(VALUES, max_size=2), max_size=5).map(lambda more: {**more, **head})
)  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(LINES, max_size=8), live=st.booleans())
def test_whatever_a_stream_says_events_are_valid(form: str, lines: list[dict[str, object]], live: bool) -> None:
    into = translator(form, live=live)
    for line in lines:
        try:
            events = list(into.line(line, 1_790_000_000_000_000))
        except Skip:
            continue
        for event in events:
            assert protocol.check(event).rejected is None, event
    for event in into.end(1_790_000_000_000_000):
        assert protocol.check(event).rejected is None, event


@pytest.mark.parametrize(("name", "form"), [("codex-exec-json.sample", "codex-exec"), ("gemini-stream-json.sample", "gemini-stream"), ("claude-stream-json.sample", "claude-stream"), ("qwen-stream-json.sample", "qwen-stream")])  # fmt: skip
def test_command(tmp_path: Path, name: str, form: str) -> None:
    stdin = (STREAMS / f"{name}.jsonl").read_bytes()
    done = guardhook(tmp_path, "record", "--format", form, "--dir", str(tmp_path / "d"), stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"") and only(tmp_path / "d")[0].status == "completed"
    wrong = guardhook(tmp_path, "record", "--dir", str(tmp_path / "e"), stdin=stdin)
    assert wrong.returncode == 1 and b"skipped" in wrong.stderr
