"""`guardhook import` of Codex's rollouts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import Rig

SESSION = "00000000-0000-7000-8000-0000000000aa"
META = {"id": SESSION, "session_id": SESSION, "timestamp": "2026-11-30T10:00:00.000Z", "cwd": "/home/dev/project", "cli_version": "0.171.0", "originator": "codex_exec"}  # fmt: skip


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def records(*payloads: tuple[str, dict[str, object]]) -> list[object]:
    """A rollout of these (type, payload), one second apart, after its head."""
    return [
        {"timestamp": f"2026-11-30T10:00:{n:02d}.000Z", "ordinal": n, "type": kind, "payload": payload}
        for n, (kind, payload) in enumerate([("session_meta", META), *payloads])
    ]


def item(**fields: object) -> tuple[str, dict[str, object]]:
    return "response_item", fields


def event(**fields: object) -> tuple[str, dict[str, object]]:
    return "event_msg", fields


def message(role: str, text: str, **more: object) -> tuple[str, dict[str, object]]:
    return item(type="message", role=role, content=[{"type": "input_text", "text": text}], **more)


def call(id: object, name: str = "exec_command", arguments: object = '{"cmd": "ls"}') -> tuple[str, dict[str, object]]:
    return item(type="function_call", call_id=id, name=name, arguments=arguments)


def output(id: object, said: object) -> tuple[str, dict[str, object]]:
    return item(type="function_call_output", call_id=id, output=said)


def test_a_captured_rollout(rig: Rig) -> None:
    ran = rig.import_(rig.fixture("codex/rollout.jsonl"))
    assert ran.status == 0 and ran.file["format"] == "codex-rollout"
    trace = rig.trace()
    assert trace.agent_name == "codex" and trace.agent_version == "0.171.0" and trace.dialect == "codex"
    assert trace.input == {"prompt": "run the scripted tool"} and trace.output == {"text": "All done."}
    assert trace.total_tokens == 882 and trace.metadata["usage"] == {"input": 721, "cached_input": 70, "output": 161, "reasoning": 35}  # fmt: skip
    assert trace.project == "/home/dev/project"
    steps = rig.steps()
    assert [(s.step_type, s.name) for s in steps] == [
        ("thought", "reasoning"), ("output", "assistant_message"), ("tool_call", "exec_command"), ("tool_call", "exec_command"), ("tool_call", "apply_patch"),
        ("tool_call", "mcp__echo__write_file"), ("tool_call", "exec_command"), ("tool_call", "view_image"), ("retrieval", "web_search"), ("output", "assistant_message"),
    ]  # fmt: skip
    assert sum(s.tokens_used or 0 for s in steps) == 882
    assert {s.model for s in steps} == {"gpt-5.5"}
    assert steps[2].input == {"cmd": "echo allowed-output", "workdir": "/tmp"} and steps[2].error is None
    assert steps[3].metadata["blocked"] is True and steps[3].error is not None and "lab policy" in steps[3].error
    assert steps[6].error == "exited with code 3" and steps[6].metadata["exit_code"] == 3
    assert "iVBOR" not in str(steps[7].output)


def test_code_mode_has_the_calls_inside_a_script_below_it(rig: Rig) -> None:
    rig.import_(rig.fixture("codex/codemode.jsonl"))
    script, *inner, last = rig.steps()
    assert script.name == "exec" and last.name == "assistant_message"
    assert [(s.name, s.parent_step_number) for s in inner] == [("exec_command", 1), ("apply_patch", 1), ("mcp__echo__echo", 1)]  # fmt: skip
    assert all(str(s.metadata["call"]).startswith("exec-") for s in inner)
    assert inner[0].output == {"output": "nested\n"} and inner[0].started_at == "2026-11-30T00:44:33.225Z"


def test_a_compacted_rollout(rig: Rig) -> None:
    rig.import_(rig.fixture("codex/compacted.jsonl"))
    trace = rig.trace()
    assert trace.metadata["compacted"] is True and trace.total_tokens == 366 and trace.step_count == 3


def test_older_records(rig: Rig) -> None:
    old = records(
        message("user", "<environment_context>x</environment_context>"),
        event(type="user_message", message="fix it", kind="plain"),
        message("user", "fix it"),
        event(type="agent_reasoning", text="think"),
        item(type="reasoning", summary=[{"type": "summary_text", "text": "think"}]),
        call("c1", "shell", '{"command": ["ls"]}'),
        event(type="exec_command_end", call_id="c1", exit_code=2, aggregated_output="no such file", duration={"secs": 1, "nanos": 5_000_000}),
        output("c1", '{"output": "no such file", "metadata": {"exit_code": 2, "duration_seconds": 1.0}}'),
        event(type="token_count", info={"total_token_usage": {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}, "last_token_usage": {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}}),
        event(type="agent_message", message="done"),
        message("assistant", "done"),
    )  # fmt: skip
    rig.import_(rig.write("rollout-x.jsonl", *old))
    trace = rig.trace()
    assert trace.input == {"prompt": "fix it"} and trace.total_tokens == 100
    assert trace.metadata["preamble_prompts"] == ["<environment_context>x</environment_context>"]
    assert "follow_up_prompts" not in trace.metadata
    thought, shell, said = rig.steps()
    assert thought.output == {"text": "think"} and said.output == {"text": "done"}
    assert shell.error == "exited with code 2" and shell.tokens_used == 100 and shell.duration_ms == 2000


def test_the_oldest_records_have_no_wrapper(rig: Rig) -> None:
    path = rig.write(
        "rollout-old.jsonl",
        {"id": SESSION, "timestamp": "2025-05-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "local_shell_call", "call_id": None, "id": 7, "action": {"type": "exec", "command": ["ls"]}},
        {"type": "function_call_output", "call_id": "7", "output": "a\nb"},
    )
    assert rig.import_(path).file["format"] == "codex-rollout"
    trace = rig.trace()
    assert trace.session_id == SESSION and trace.input == {"prompt": "hello"}
    (step,) = rig.steps()
    assert step.name == "local_shell" and step.output == {"output": "a\nb"}


def first_client() -> dict[str, object]:
    """What the first clients wrote: one JSON document."""
    return {
        "session": {"timestamp": "2025-04-20T10:00:00.000Z", "id": SESSION, "instructions": ""},
        "items": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list [\"files\"]"}]},
            {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command": ["ls"]}'},
            {"type": "function_call_output", "call_id": "c1", "output": '{"output": "a", "metadata": {"exit_code": 2}}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
def test_the_one_document_of_the_first_clients(rig: Rig, indent: int | None) -> None:
    (rig.files / "rollout-2025-04-20-x.json").write_text(json.dumps(first_client(), indent=indent))
    found = rig.import_(rig.files).file
    assert found["records"]["read"] == found["records"]["imported"] == 5
    trace = rig.trace()
    assert trace.session_id == SESSION and trace.started_at == "2025-04-20T10:00:00.000Z"
    assert trace.input == {"prompt": 'list ["files"]'} and trace.output == {"text": "done"}
    assert [(s.name, s.error) for s in rig.steps()] == [("shell", "exited with code 2"), ("assistant_message", None)]


@pytest.mark.parametrize("cut", ["items", '"shell"', '"output_text"'])
def test_a_document_that_was_cut_off_keeps_what_is_whole(rig: Rig, cut: str) -> None:
    whole = json.dumps(first_client())
    path = rig.files / "rollout-x.json"
    path.write_text(whole[: whole.index(cut) + 3])
    records = rig.import_(path).file["records"]
    kept = {"items": 0, '"shell"': 1, '"output_text"': 3}[cut]
    assert (records["imported"], records["malformed"]) == (1 + kept, 1)
    assert len(rig.traces()) == bool(kept) and len(rig.steps() if kept else []) == kept // 3


def test_a_command_to_which_a_person_said_no(rig: Rig) -> None:
    said = "exec command rejected by user"
    rig.import_(rig.write("rollout-x.jsonl", *records(message("user", "go"), call("c1"), output("c1", said), call("c2"), output("c2", f"Output:\n{said}"))))  # fmt: skip
    refused, printed = rig.steps()
    assert refused.error == said and refused.metadata["blocked"] is True and refused.metadata["permission"]["source"] == "user"  # fmt: skip
    assert printed.error is None and "blocked" not in printed.metadata


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Script failed: boom", "Script failed: boom"),
        ("unsupported call: no_such_tool", "unsupported call: no_such_tool"),
        (
            "failed to parse function arguments: missing field `cmd`",
            "failed to parse function arguments: missing field `cmd`",
        ),
        ("Chunk ID: 1\nOutput:\nunsupported call: x", None),
        ('{"exit_code": 0, "output": "fine"}', None),
        ('{"metadata": {"exit_code": 3}, "output": "x"}', "exited with code 3"),
        ({"exit_code": 1}, "exited with code 1"),
        ({"exit_code": "2"}, "exited with code 2"),
        ({"exit_code": "0", "error": "x"}, None),
        ('{"success": "false", "output": "why"}', "why"),
        ({"success": False}, "tool reported failure"),
        ({"success": False, "content": [{"type": "input_text", "text": "why"}]}, "why"),
        ({"success": True, "content": "fine"}, None),
        ({"error": {"code": 1}}, '{"code":1}'),
        ("the log says exit_code: 1\nand more", None),
        ('prints {"exit_code": 1}', None),
        ({"exit_code": "ENOENT"}, None),
    ],
)
def test_failures_are_told_by_what_an_output_is(rig: Rig, said: object, error: str | None) -> None:
    rig.import_(rig.write("rollout-x.jsonl", *records(message("user", "go"), call("c1"), output("c1", said))))
    (step,) = rig.steps()
    assert step.error == error


def test_arguments_that_are_no_object(rig: Rig) -> None:
    given = ("[1, 2]", "*** Begin Patch", '"text"', "{broken")
    calls = [call(n, f"t{n}", text) for n, text in enumerate(given)]
    rig.import_(rig.write("rollout-x.jsonl", *records(message("user", "go"), *calls, output("0", "x"), output("99", "nobody's"))))  # fmt: skip
    steps = rig.steps()
    assert [s.input for s in steps] == [
        [1, 2],
        {"arguments": given[1]},
        {"arguments": given[2]},
        {"arguments": given[3]},
    ]
    assert steps[0].output == {"output": "x"}  # ids are compared as text


def test_the_same_message_twice_is_two_messages(rig: Rig) -> None:
    def telling(text: str) -> list[tuple[str, dict[str, object]]]:
        return [event(type="agent_message", message=text), message("assistant", text)]

    rig.import_(rig.write("rollout-x.jsonl", *records(message("user", "go"), *telling("ok"), *telling("ok"))))
    assert [s.output for s in rig.steps()] == [{"text": "ok"}, {"text": "ok"}]


def test_what_only_the_client_tells_is_kept(rig: Rig) -> None:
    ended = {"type": "McpToolCall", "id": "m1", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": "failed", "result": {"isError": True, "content": [{"type": "text", "text": "bad"}]}}  # fmt: skip
    rig.import_(rig.write("rollout-x.jsonl", *records(
        message("user", "go"), event(type="item_completed", item=ended), event(type="item_completed", item=ended),
        call("c1"), event(type="item_completed", item={"type": "CommandExecution", "id": "c1", "exit_code": 4, "aggregated_output": "gone"}),
    )))  # fmt: skip
    mcp, shell = rig.steps()
    assert mcp.name == "mcp__s__t" and mcp.input == {"a": 1} and mcp.error is not None
    assert shell.error == "exited with code 4" and shell.output == {"output": "gone"}


def test_a_turn_that_was_aborted_and_one_that_failed(rig: Rig) -> None:
    aborted = records(
        message("user", "go"), event(type="task_started"), event(type="turn_aborted", reason="interrupted")
    )
    rig.import_(rig.write("rollout-a.jsonl", *aborted))
    trace = rig.trace()
    assert trace.status == "failed" and trace.error == "the turn was aborted: interrupted"
    rig.import_(rig.write("rollout-a.jsonl", *aborted, *records(event(type="task_started"), event(type="task_complete"))[1:]), "--replace")  # fmt: skip
    assert rig.trace().status == "completed"


def test_a_thread_that_goes_on_from_another_says_so(rig: Rig) -> None:
    """The head of the one it goes on from is copied into it, too."""
    told = records(("session_meta", {**META, "id": "older", "session_id": "older"}), message("user", "go"))
    told[0] = {"type": "session_meta", "payload": {**META, "forked_from_id": "older"}}
    rig.import_(rig.write("rollout-x.jsonl", *told))
    assert rig.trace().metadata["forked_from"] == "older" and rig.trace().session_id == SESSION


def test_a_sub_agents_thread_belongs_to_the_session(rig: Rig) -> None:
    path = rig.write("rollout-child.jsonl", *records(message("user", "go")))
    lines = path.read_text().splitlines()
    head = json.loads(lines[0])
    head["payload"].update(id="00000000-0000-7000-8000-0000000000bb", source={"subagent": "review"})
    path.write_text("\n".join([json.dumps(head), *lines[1:]]))
    rig.import_(path)
    trace = rig.trace()
    assert trace.session_id == SESSION and trace.metadata["thread_id"] == "00000000-0000-7000-8000-0000000000bb"
    assert trace.metadata["source"] == {"subagent": "review"}


def test_records_add_up(rig: Rig) -> None:
    for name in ("rollout", "codemode", "compacted"):
        found = rig.import_(rig.fixture(f"codex/{name}.jsonl")).file["records"]
        assert found["read"] == found["imported"] + found["skipped"] + found["malformed"] and not found["mended"]
