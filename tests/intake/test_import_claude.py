"""`guardhook import` of Claude Code's transcripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import Rig

from guardhook.core.folders import explicit
from guardhook.intake import coverage

SESSION = "00000000-0000-4000-8000-000000000042"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


class Talk:
    """Records of a session, one second apart."""

    def __init__(self) -> None:
        self.records: list[object] = []

    def add(self, kind: str, content: object, **more: object) -> Talk:
        number = len(self.records)
        message = more.pop("message", {})
        assert isinstance(message, dict)
        self.records.append({
            "type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "isSidechain": False, "sessionId": SESSION,
            "timestamp": f"2026-11-30T10:00:{number:02d}.000Z", "version": "2.1.332", "cwd": "/home/user/project", "gitBranch": "main",
            "message": {"role": kind, "content": content, **message}, **more,
        })  # fmt: skip
        return self

    def user(self, content: object, **more: object) -> Talk:
        return self.add("user", content, **more)

    def says(self, *blocks: object, id: str = "msg_1", usage: object = None, **more: object) -> Talk:
        for block in blocks:
            self.add("assistant", [block], message={"id": id, "model": "claude-opus-5-5", "usage": usage or {"input_tokens": 10, "output_tokens": 5}}, **more)  # fmt: skip
        return self

    def result(self, call: str, content: object, **more: object) -> Talk:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        error = more.pop("is_error", None)
        return self.user([block if error is None else {**block, "is_error": error}], **more)


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def use(call: str, name: object = "Bash", given: object = None) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": {"command": "ls"} if given is None else given}


def test_a_captured_session_with_its_sub_agent(rig: Rig) -> None:
    ran = rig.import_(rig.fixture("claude/session.jsonl"))
    assert ran.status == 0
    trace = rig.trace()
    assert trace.agent_name == "claude-code" and trace.agent_version == "2.1.332" and trace.dialect == "claude-code"
    assert trace.status == "completed" and trace.trigger == "user_message"
    assert trace.session_id == "00000000-0000-4000-8000-000000000001"
    assert trace.started_at == "2026-11-30T00:41:01.167Z" and trace.ended_at == "2026-11-30T00:41:04.389Z"
    assert trace.output == {"text": "really fin"}
    # What the client itself counted: 165 + 660 + 4995 + 3330, the sub-agent's included.
    assert trace.total_tokens == 9150
    assert trace.total_cost_usd == pytest.approx(0.031509)
    assert trace.metadata["usage"] == {"input": 165, "output": 660, "cache_creation": 3330, "cache_read": 4995}
    assert trace.metadata["source_format"] == "claude-transcript" and trace.metadata["source_file"] == "session.jsonl"
    steps = rig.steps()
    assert sum(s.tokens_used or 0 for s in steps) == 9150
    assert all(s.started_at and s.started_at.startswith("2026-11-30T00:41:0") for s in steps)
    assert {s.model for s in steps if s.step_type == "tool_call"} == {"claude-opus-5-5"}
    first = next(s for s in steps if s.step_type == "tool_call")
    assert first.output == {"result": "hi"} and first.duration_ms is not None and first.ended_at is not None
    denied = next(s for s in steps if s.metadata.get("blocked"))
    assert denied.error == "PreToolUse:Bash hook error: R-deny"
    assert denied.metadata["permission"] == {"decision": "reject", "source": "hook", "reason": "hook:PreToolUse"}
    anchor = next(s for s in steps if s.name == "subagent:general-purpose")
    spawner = next(s for s in steps if s.metadata.get("call") == "toolu_main09_0")
    assert anchor.parent_step_number == anchor.caused_by_step_number == spawner.step_number
    inner = [s for s in steps if s.parent_step_number == anchor.step_number]
    assert [(s.step_type, s.name) for s in inner] == [("tool_call", "Bash"), ("output", "assistant_message")]
    assert inner[0].metadata["agent_id"] == "a0000000000000001"


def test_an_older_client(rig: Rig) -> None:
    rig.import_(rig.fixture("claude/older.jsonl"))
    trace = rig.trace()
    assert trace.agent_version == "2.1.197"
    (anchor,) = [s for s in rig.steps() if s.metadata.get("hook_anchor")]
    # Nothing but the result of the call tells which sub-agent it started.
    spawner = next(s for s in rig.steps() if s.name == "Agent")
    assert anchor.name == "subagent:a0000000000000001" and anchor.caused_by_step_number == spawner.step_number


def test_records_add_up(rig: Rig) -> None:
    for name in ("session", "older", "compacted"):
        file = rig.import_(rig.fixture(f"claude/{name}.jsonl")).file
        records = file["records"]
        assert records["read"] == records["imported"] + records["skipped"] + records["malformed"]
        assert records["malformed"] == records["mended"] == 0 and not file["problems"]


def test_usage_is_counted_once_with_the_largest_that_was_told(rig: Rig) -> None:
    talk = Talk().user("do it")
    talk.says({"type": "thinking", "thinking": "hm"}, usage={"input_tokens": 10, "output_tokens": 1})
    talk.says(text("ok"), use("t1"), usage={"input_tokens": "10", "output_tokens": 8, "cache_read_input_tokens": 100})
    talk.says(text("bye"), id="msg_2", usage={"input_tokens": -5, "output_tokens": 2})
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert rig.trace().total_tokens == 10 + 8 + 100 + 2
    assert [s.tokens_used for s in rig.steps()] == [11, 107, None, 2]


def test_prompts_are_told_from_envelopes(rig: Rig) -> None:
    talk = (
        Talk()
        .user("   ")
        .user("<command-name>/clear</command-name>")
        .user("[SYSTEM NOTIFICATION - x")
        .user("This session is being continued from a previous conversation that ran out of context.\\nIt was about")
        .user("fix the test")
    )
    talk.user([text("<system-reminder>x</system-reminder>"), text("and the other")]).user("expanded", isMeta=True)
    talk.user("summary", isCompactSummary=True).says(text("done"))
    rig.import_(rig.write("s.jsonl", *talk.records))
    trace = rig.trace()
    assert trace.input == {"prompt": "fix the test"}
    assert trace.metadata["preamble_prompts"][:2] == ["<command-name>/clear</command-name>", "[SYSTEM NOTIFICATION - x"]
    assert len(trace.metadata["preamble_prompts"]) == 3
    assert trace.metadata["follow_up_prompts"] == ["<system-reminder>x</system-reminder>", "and the other"]


def test_only_envelopes_then_the_first_is_the_prompt(rig: Rig) -> None:
    rig.import_(rig.write("s.jsonl", *Talk().user("<command-name>/x</command-name>").user("<b>").records))
    trace = rig.trace()
    assert trace.input == {"prompt": "<command-name>/x</command-name>"}
    assert trace.metadata["follow_up_prompts"] == ["<b>"] and trace.step_count == 0


def test_a_prompt_that_was_queued_while_the_agent_worked(rig: Rig) -> None:
    talk = Talk().user("go").says(text("…"))
    talk.records.append({"type": "attachment", "uuid": "q", "sessionId": SESSION, "attachment": {"type": "queued_command", "commandMode": "prompt", "prompt": "also this"}})  # fmt: skip
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert rig.trace().metadata["follow_up_prompts"] == ["also this"]


def test_failures_of_tools(rig: Rig) -> None:
    talk = Talk().user("go").says(use("t1"), use("t2"), use("t3", None), use("t4", given="text"))
    talk.result("t1", "", is_error=True).result("t2", [text("a"), text("b")], is_error="true").result(
        "t3", None
    ).result("nobody's", "x")
    rig.import_(rig.write("s.jsonl", *talk.records))
    first, second, third, fourth = rig.steps()
    assert first.error == "tool failed" and second.error == "a\nb"
    assert third.name == "tool" and third.error is None and third.output == {"result": ""}
    assert fourth.ended_at is None and fourth.input == "text"
    assert rig.trace().metadata["unanswered"] == 1


def test_times_of_a_call(rig: Rig) -> None:
    rig.import_(rig.write("s.jsonl", *Talk().user("go").says(use("t1")).user("more").result("t1", "x").records))
    (step,) = rig.steps()
    assert (step.started_at, step.ended_at, step.duration_ms) == (
        "2026-11-30T10:00:01.000Z",
        "2026-11-30T10:00:03.000Z",
        2000,
    )


def test_secrets_are_taken_out(rig: Rig) -> None:
    token = "ghp_" + "a1B2" * 9
    talk = Talk().user(f"use {token}").says(text("fine"), use("t1", given={"password": "hunter2", "command": "ls"}))
    talk.result("t1", f"header\n{token}\n")
    rig.import_(rig.write("s.jsonl", *talk.records))
    (file,) = rig.journal()
    assert token not in file.read_text() and "hunter2" not in file.read_text()
    assert "header" in str(rig.steps()[1].output)


def test_old_clients_keep_sub_agents_in_the_same_file(rig: Rig) -> None:
    talk = Talk().user("go").says(use("t1", "Task"))
    talk.user("inner prompt", isSidechain=True, parentUuid=None).says(use("t2"), id="s1", isSidechain=True).result(
        "t2", "x", isSidechain=True
    )
    talk.user("another", isSidechain=True, parentUuid=None).says(text("inner"), id="s2", isSidechain=True).result(
        "t1", "done"
    ).says(text("end"), id="m2")
    rig.import_(rig.write("s.jsonl", *talk.records))
    steps = rig.steps()
    assert [(s.name, s.parent_step_number) for s in steps] == [
        ("Task", None), ("subagent:sidechain", None), ("Bash", 2), ("subagent:sidechain", None), ("assistant_message", 4), ("assistant_message", None),
    ]  # fmt: skip
    trace = rig.trace()
    assert trace.output == {"text": "end"} and "follow_up_prompts" not in trace.metadata


def test_sub_agents_at_the_same_time_in_the_same_file_are_told_apart(rig: Rig) -> None:
    """A record belongs to the sub-agent of its parent, and a sub-agent to the call with the same prompt."""
    talk = Talk().user("go")
    talk.says(use("t1", "Task", {"prompt": "A"}), use("t2", "Task", {"prompt": "B", "subagent_type": "critic"}))
    side = {"isSidechain": True}
    talk.user("B", **side, parentUuid=None).user("A", **side, parentUuid=None)
    talk.says(use("b1"), id="s1", **side, parentUuid="u3").says(use("a1", "Read"), id="s2", **side, parentUuid="u4")
    talk.result("a1", "x", **side, parentUuid="u6").result("b1", "x", **side, parentUuid="u5")
    talk.says(text("A is done"), id="s3", **side, parentUuid="u7").says(
        text("B is done"), id="s4", **side, parentUuid="u8"
    )
    rig.import_(rig.write("s.jsonl", *talk.result("t1", "x").result("t2", "x").records))
    assert [(s.step_number, s.name, s.parent_step_number, s.input) for s in rig.steps()[2:]] == [
        (3, "subagent:critic", 2, {"prompt": "B"}), (4, "Bash", 3, {"command": "ls"}), (5, "subagent:sidechain", 1, {"prompt": "A"}),
        (6, "Read", 5, {"command": "ls"}), (7, "assistant_message", 5, {}), (8, "assistant_message", 3, {}),
    ]  # fmt: skip


def test_sub_agents_files_beside_the_sessions_own(rig: Rig) -> None:
    """As clients of late 2025 wrote them. What started them is told by the result of the call, or by its prompt."""
    talk = (
        Talk()
        .user("go")
        .says(use("t1", "Task", {"prompt": "A", "subagent_type": "critic"}), use("t2", "Task", {"prompt": "B"}))
    )
    talk.result("t1", "done").result("t2", "done", toolUseResult={"agentId": "b2", "status": "completed"})
    path = rig.write(f"{SESSION}.jsonl", *talk.records)
    for agent, prompt, session in (
        ("a1", "A", SESSION),
        ("b2", "other words", SESSION),
        ("c3", "C", "another-session"),
    ):
        own = {"isSidechain": True, "agentId": agent, "sessionId": session}
        inner = (
            Talk()
            .user(prompt, uuid=f"{agent}0", **own)
            .says(text(f"{agent} is done"), id=agent, uuid=f"{agent}1", **own)
        )
        rig.write(f"agent-{agent}.jsonl", *inner.records)
    files = rig.import_(rig.files).files
    assert sorted(Path(f["path"]).name for f in files) == [f"{SESSION}.jsonl", "agent-c3.jsonl"]
    (main,) = [t for t in rig.traces() if t.session_id == SESSION]
    assert [(s.name, s.caused_by_step_number, s.parent_step_number) for s in rig.steps(main)[2:]] == [
        ("subagent:critic", 1, 1), ("assistant_message", None, 3), ("subagent:b2", 2, 2), ("assistant_message", None, 5),
    ]  # fmt: skip
    assert main.total_tokens == 45 and main.output is None
    rig.write("agent-d4.jsonl", *Talk().user("D", uuid="d0", isSidechain=True, agentId="d4").records)
    assert rig.import_(path).file["status"] == "exists"  # a file more is a change of the session


def test_a_call_to_which_a_person_said_no_is_told_by_the_client_and_not_by_what_it_printed(rig: Rig) -> None:
    said = "The user doesn't want to proceed with this tool use."
    talk = Talk().user("go").says(use("t1"), use("t2"))
    talk.result("t1", said, is_error=True, toolUseResult="User rejected tool use")
    talk.result("t2", said, is_error=True, toolUseResult=f"Error: {said}")
    rig.import_(rig.write("s.jsonl", *talk.records))
    refused, printed = rig.steps()
    assert refused.metadata["blocked"] is True and refused.metadata["permission"]["source"] == "user"
    assert "blocked" not in printed.metadata and printed.error == said


def test_calls_that_the_provider_runs_itself(rig: Rig) -> None:
    talk = Talk().user("go").says(
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "http://a.example"}]},
        {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {}},
        {"type": "web_fetch_tool_result", "tool_use_id": "s2", "content": {"type": "web_fetch_tool_error", "error_code": "unavailable"}},
        {"type": "mcp_tool_use", "id": "s3", "name": "ask", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "s3", "is_error": True, "content": [text("no")]},
        {"type": "mcp_tool_result", "tool_use_id": "nobody's", "content": [text("no")]},
    )  # fmt: skip
    ran = rig.import_(rig.write("s.jsonl", *talk.records))
    assert [(s.step_type, s.name, s.error, s.metadata["server"]) for s in rig.steps()] == [
        ("retrieval", "web_search", None, True), ("retrieval", "web_fetch", "unavailable", True), ("tool_call", "ask", "no", True),
    ]  # fmt: skip
    assert "http://a.example" in str(rig.steps()[0].output)
    assert ran.file["records"]["imported"] == 7 and ran.file["records"]["skipped"] == 1
    assert coverage.measure(explicit(str(rig.data)), paths=[str(rig.files)]) == []  # no hook is asked for them


def test_a_request_that_failed_is_an_error(rig: Rig) -> None:
    talk = Talk().user("go").says(text("API Error: 529"), isApiErrorMessage=True).says(text("fine"), id="m2")
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert [s.error for s in rig.steps()] == ["API Error: 529", None]


def test_what_messages_of_the_oldest_clients_cost(rig: Rig) -> None:
    talk = Talk().user("go").says(text("a"), use("t1"), costUSD=0.25).says(text("b"), id="m2", costUSD=0.5)
    talk.says(text("c"), id="m3", costUSD="x").says(text("d"), id="m4", costUSD=-1).says(
        text("e"), id="m5", costUSD=1e30
    )
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert rig.trace().total_cost_usd == 0.75


def test_a_sub_agents_file_alone_is_a_run_of_its_own(rig: Rig) -> None:
    whole = rig.fixture("claude/session.jsonl")
    rig.import_(whole)
    alone = rig.import_(whole.with_suffix("") / "subagents" / "agent-a0000000000000001.jsonl")
    assert alone.file["status"] == "imported"
    assert len(rig.traces()) == 2
    # In a folder it belongs to its session.
    assert len(rig.import_(rig.files).files) == 1


def test_a_sub_agents_file_without_steps_makes_no_anchor(rig: Rig) -> None:
    path = rig.write("s.jsonl", *Talk().user("go").says(text("x")).records)
    rig.write("s/subagents/agent-1.jsonl", {"type": "user", "isSidechain": True, "sessionId": SESSION, "uuid": "z", "message": {"role": "user", "content": "p"}})  # fmt: skip
    ran = rig.import_(path)
    assert [s.name for s in rig.steps()] == ["assistant_message"]
    assert ran.file["records"]["read"] == 3


def test_repeated_records_count_once(rig: Rig) -> None:
    talk = Talk().user("go").says(text("x"))
    ran = rig.import_(rig.write("s.jsonl", *talk.records, *talk.records))
    assert ran.file["records"]["duplicates"] == 2
    assert [s.name for s in rig.steps()] == ["assistant_message"]


def test_repeated_records_before_the_prompt_move_no_turn(rig: Rig) -> None:
    talk = Talk().user("<command-name>/clear</command-name>").user("the prompt").user("more").says(text("x"))
    rig.import_(rig.write("s.jsonl", talk.records[0], talk.records[0], *talk.records))
    trace = rig.trace()
    assert trace.input == {"prompt": "the prompt"} and trace.metadata["follow_up_prompts"] == ["more"]
    assert trace.metadata["preamble_prompts"] == ["<command-name>/clear</command-name>"]


def test_a_session_that_goes_on_from_another_says_so(rig: Rig) -> None:
    talk = Talk().user("go", forkedFrom={"sessionId": "the-first", "messageUuid": "m"}).says(text("x")).user("more")
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert rig.trace().metadata["forked_from"] == "the-first" and rig.trace().session_id == SESSION


def test_parents_in_a_circle_do_no_harm(rig: Rig) -> None:
    talk = Talk().user("go", parentUuid="u1").says(text("x"), parentUuid="u0")
    assert rig.import_(rig.write("s.jsonl", *talk.records)).status == 0
    assert len(rig.steps()) == 1


def test_words_of_the_client_itself_have_no_model(rig: Rig) -> None:
    talk = Talk().user("go").add("assistant", [text("API Error: 529")], message={"id": "e", "model": "<synthetic>"})
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert [s.model for s in rig.steps()] == [None] and "models" not in rig.trace().metadata


def test_a_call_that_speaks_of_parts_makes_no_other_format_of_it(rig: Rig) -> None:
    talk = Talk().says(use("t1", "Upload", {"parts": [{"message": {"parts": 1}}]}))
    assert rig.import_(rig.write("s.jsonl", *talk.records)).file["format"] == "claude-transcript"


@pytest.mark.parametrize(
    "before", [[], [{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False}]]
)
def test_a_session_that_begins_with_a_picture_is_known(rig: Rig, before: list[object]) -> None:
    """Clients write the session's id after the message, and one line may be longer than what the format is told by."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR" * 40_000}}
    talk = Talk().user([picture, text("what is this?")]).says(text("a cat"))
    for record in talk.records:
        assert isinstance(record, dict)
        record["sessionId"] = record.pop("sessionId")  # to the end
    rig.write("s.jsonl", *before, *talk.records)
    assert rig.import_(rig.files).file["format"] == "claude-transcript"
    assert rig.trace().input == {"prompt": "what is this?"} and [s.name for s in rig.steps()] == ["assistant_message"]


def test_tokens_of_a_block_without_a_step_go_to_the_next_of_its_message(rig: Rig) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}
    talk = Talk().user("go")
    for block in ({"type": "redacted_thinking", "data": "x"}, text("hi"), use("t1")):
        talk.says(block, id="m1", usage=usage)
    rig.import_(rig.write("s.jsonl", *talk.records))
    assert [s.tokens_used for s in rig.steps()] == [15, None] and rig.trace().total_tokens == 15


def test_sub_agents_of_sub_agents_hang_below_the_calls_that_started_them(rig: Rig) -> None:
    path = rig.write("s.jsonl", *Talk().user("go").says(use("t1", "Agent")).result("t1", "x").records)
    for name, started, depth, blocks in (("b", "t1", 1, [use("t2", "Agent")]), ("a", "t2", 2, [text("deep")])):
        own = {"isSidechain": True, "agentId": name, "uuid": f"{name}1", "sessionId": SESSION}
        rig.write(f"s/subagents/agent-{name}.jsonl", {**own, "type": "assistant", "message": {"id": name, "content": blocks}})  # fmt: skip
        rig.write(f"s/subagents/agent-{name}.meta.json", {"agentType": name, "toolUseId": started, "spawnDepth": depth})
    rig.import_(path)
    assert [(s.name, s.parent_step_number) for s in rig.steps()] == [
        ("Agent", None), ("subagent:b", 1), ("Agent", 2), ("subagent:a", 3), ("assistant_message", 4),
    ]  # fmt: skip


def test_a_result_that_stands_before_its_call(rig: Rig) -> None:
    talk = Talk().user("go").result("t1", "early").result("t1", "again").result("none", "x").says(use("t1"), use("t2")).result("t2", "y").result("t2", "z")  # fmt: skip
    talk.says(use("t2"), id="m2")  # the same id once more: its result came once already
    records = rig.import_(rig.write("s.jsonl", *talk.records)).file["records"]
    assert [s.output for s in rig.steps()] == [{"result": "early"}, {"result": "y"}, None]
    assert (records["read"], records["imported"], records["skipped"]) == (9, 6, 3)
