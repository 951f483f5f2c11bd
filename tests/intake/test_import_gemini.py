"""`guardhook import` of Gemini CLI's chat logs."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import Rig

SESSION = "5e550001-0000-4000-8000-0000000000aa"
HEAD = {"sessionId": SESSION, "projectHash": "ab" * 32, "startTime": "2026-11-30T10:00:00.000Z", "lastUpdated": "2026-11-30T10:00:00.000Z", "kind": "main"}  # fmt: skip


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def user(id: str, text: str, at: int = 1) -> dict[str, object]:
    return {"id": id, "timestamp": f"2026-11-30T10:00:{at:02d}.000Z", "type": "user", "content": [{"text": text}]}


def gemini(
    id: str, text: str = "", *calls: object, at: int = 2, tokens: int = 100, **more: object
) -> dict[str, object]:
    out: dict[str, object] = {
        "id": id, "timestamp": f"2026-11-30T10:00:{at:02d}.000Z", "type": "gemini", "content": text, "model": "gemini-2.5-flash",
        "tokens": {"input": tokens - 10, "output": 10, "cached": 5, "thoughts": 0, "tool": 0, "total": tokens}, **more,
    }  # fmt: skip
    return {**out, "toolCalls": list(calls)} if calls else out


def tool(id: str, said: str = "ok", status: str = "success", **more: object) -> dict[str, object]:
    key = "output" if status == "success" else "error"
    return {
        "id": id, "name": "run_shell_command", "args": {"command": "ls"}, "status": status, "timestamp": "2026-11-30T10:00:05.500Z",
        "result": [{"functionResponse": {"id": id, "name": "run_shell_command", "response": {key: said}}}], **more,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["chat.jsonl", "chat-array.json"])
def test_captured_chats(rig: Rig, name: str) -> None:
    ran = rig.import_(rig.fixture(f"gemini/{name}"))
    assert ran.status == 0 and ran.file["format"] == "gemini-chat"
    found = ran.file["records"]
    assert found["read"] == 16 == found["imported"] + found["skipped"] and found["mended"] == 0
    trace = rig.trace()
    assert trace.agent_name == "gemini" and trace.session_id == "5e550001-0000-4000-8000-000000000001"
    assert trace.input == {"prompt": "please do the thing"} and trace.output == {"text": "All done."}
    assert trace.total_tokens == 3060 and len(trace.metadata["preamble_prompts"]) == 1  # type: ignore[arg-type]
    blocked, ran_, said = rig.steps()
    assert blocked.error == "Tool execution blocked: rm -rf is not allowed" and blocked.metadata["blocked"] is True
    assert ran_.error is None and ran_.input == {"command": "echo RAN > /home/dev/proj/canary.txt; echo tool-output-42", "description": "canary"}  # fmt: skip
    assert (ran_.started_at, ran_.ended_at, ran_.duration_ms) == (
        "2026-11-30T00:34:00.072Z",
        "2026-11-30T00:34:00.149Z",
        77,
    )
    assert [s.tokens_used for s in (blocked, ran_, said)] == [1020, 1020, 1020] and said.model == "gemini-2.5-flash"


def test_the_last_record_of_an_id_holds_in_the_place_of_the_first(rig: Rig) -> None:
    path = rig.write(
        "session-1.jsonl", HEAD, user("u", "go"), gemini("a"), gemini("b", "second", at=3), gemini("a", "", tool("t1")),
        {"$set": {"messages": [gemini("b", "second, mended", at=3), user("v", "more", at=4)]}},
    )  # fmt: skip
    ran = rig.import_(path)
    assert [(s.name, s.output) for s in rig.steps()] == [("run_shell_command", {"result": "ok"}), ("assistant_message", {"text": "second, mended"})]  # fmt: skip
    assert rig.trace().total_tokens == 200 and rig.trace().metadata["follow_up_prompts"] == ["more"]
    assert ran.file["records"]["duplicates"] == 1


def test_a_rewind_takes_turns_back_but_hides_no_call(rig: Rig) -> None:
    path = rig.write(
        "session-1.jsonl", HEAD, user("u1", "first"), gemini("a", "one"), user("u2", "wrong turn"), gemini("b", "two", tool("t1")),
        {"$rewindTo": "u2"}, user("u3", "better", at=6), gemini("c", "three", at=7),
    )  # fmt: skip
    rig.import_(path)
    trace = rig.trace()
    assert trace.metadata["follow_up_prompts"] == ["better"] and trace.output == {"text": "three"}
    steps = rig.steps()
    assert [(s.name, bool(s.metadata.get("rewound"))) for s in steps] == [
        ("assistant_message", False), ("assistant_message", True), ("run_shell_command", True), ("assistant_message", False),
    ]  # fmt: skip


def test_a_rewind_to_nowhere_takes_everything_back(rig: Rig) -> None:
    rig.import_(rig.write("session-1.jsonl", HEAD, user("u1", "first"), gemini("a", "one"), {"$rewindTo": "?"}, user("u2", "again", at=5)))  # fmt: skip
    assert rig.trace().input == {"prompt": "again"}
    assert [s.metadata.get("rewound") for s in rig.steps()] == [True]


def test_sub_agents_hang_below_the_call_that_started_them(rig: Rig) -> None:
    path = rig.write("chats/session-1.jsonl", HEAD, user("u", "go"), gemini("a", "", tool("t1", agentId="agent-7")))
    rig.write(f"chats/{SESSION}/agent-7.jsonl", {**HEAD, "sessionId": "agent-7", "kind": "subagent"}, user("x", "inner"), gemini("y", "", tool("t2")))  # fmt: skip
    ran = rig.import_(rig.files)
    assert [Path(f["path"]) for f in ran.files] == [path]
    call, anchor, inner = rig.steps()
    assert anchor.name == "subagent:agent-7" and anchor.input == {"prompt": "inner"} and anchor.caused_by_step_number == call.step_number  # fmt: skip
    assert inner.parent_step_number == anchor.step_number
    assert "follow_up_prompts" not in rig.trace().metadata


def test_thoughts_errors_and_calls_that_were_cancelled(rig: Rig) -> None:
    thinking = gemini("a", "", {"id": 5, "name": None, "status": "cancelled"}, thoughts=[{"subject": "Plan", "description": "look", "timestamp": "2026-11-30T10:00:01.500Z"}])  # fmt: skip
    rig.import_(rig.write("session-1.jsonl", HEAD, user("u", "go"), thinking, {"id": "e", "type": "error", "content": "quota", "timestamp": "2026-11-30T10:00:09.000Z"}))  # fmt: skip
    thought, call, error = rig.steps()
    assert thought.output == {"text": "Plan: look"} and thought.started_at == "2026-11-30T10:00:01.500Z" and thought.tokens_used == 100  # fmt: skip
    assert call.name == "tool" and call.error == "cancelled" and call.metadata["call"] == "5"
    assert error.step_type == "error" and error.error == "quota"


def test_a_document_of_an_older_client(rig: Rig) -> None:
    whole = {
        "sessionId": SESSION,
        "projectHash": "ab",
        "startTime": "2026-01-01T00:00:00.000Z",
        "messages": [user("u", "go"), gemini("a", "done")],
    }
    path = rig.files / "session-old.json"
    path.write_text(json.dumps(whole, indent=2))
    assert rig.import_(path).file["records"]["read"] == 2
    trace = rig.trace()
    assert trace.session_id == SESSION and trace.input == {"prompt": "go"} and trace.output == {"text": "done"}


@pytest.mark.parametrize("more", [{}, {"sessionId": 5}, {"startTime": [], "lastUpdated": {}}, {"summary": "x" * 5_000}])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_however_it_is_written_and_whatever_its_head_says(
    rig: Rig, indent: int | None, more: dict[str, object]
) -> None:
    whole = {**HEAD, **more, "messages": [user("u", "go"), gemini("a", "done", tool("t1"))]}
    path = rig.files / "session-old.json"
    path.write_text(json.dumps(whole, indent=indent) + "\n")
    found = rig.import_(path, "--format", "gemini-chat").file
    assert found["records"]["malformed"] == 0 and found["records"]["mended"] == (1 if set(more) & {"sessionId", "startTime"} else 0)  # fmt: skip
    trace = rig.trace()
    assert trace.input == {"prompt": "go"} and [s.name for s in rig.steps()] == [
        "assistant_message",
        "run_shell_command",
    ]
    assert trace.session_id == (None if more.get("sessionId") else SESSION)


def test_a_long_chat_with_a_damaged_first_line_is_no_document(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardhook.intake.gemini_records._DOCUMENT_BYTES", 100)
    path = rig.write("session-1.jsonl", json.dumps(HEAD)[:-1], user("u", "go"), gemini("a", "done"))
    found = rig.import_(path).file
    assert (found["records"]["imported"], found["records"]["malformed"]) == (2, 1)
    path.write_text(json.dumps({**HEAD, "messages": []}, indent=2))
    assert "MiB" in rig.import_(path, "--replace").file["error"]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("listed", [False, True])
def test_a_document_that_was_cut_off_keeps_what_is_whole(rig: Rig, indent: int | None, listed: bool) -> None:
    head = {k: v for k, v in HEAD.items() if k != "lastUpdated"}
    told = [user("u", "go"), gemini("a", "half [way"), gemini("b", "never said")]
    whole = json.dumps([head, *told] if listed else {**head, "messages": told}, indent=indent)
    path = rig.files / "session-old.json"
    path.write_text(whole[: whole.index("never")])
    found = rig.import_(path).file
    assert (found["records"]["imported"], found["records"]["malformed"]) == (2 + listed, 1)
    assert [p["reason"] for p in found["problems"]] == [f"the document is JSON no longer, or cut off, after {2 + listed} whole records"]  # fmt: skip
    trace = rig.trace()
    assert trace.session_id == SESSION and trace.input == {"prompt": "go"} and trace.output == {"text": "half [way"}


def test_a_call_to_which_a_person_said_no(rig: Rig) -> None:
    no, gone = "[Operation Cancelled] Reason: User denied execution.", "[Operation Cancelled] Reason: User cancelled operation"  # fmt: skip
    calls = [tool("t1", no, "cancelled"), tool("t2", gone, "cancelled"), tool("t3", no, "error")]
    rig.import_(rig.write("session-1.jsonl", HEAD, user("u", "go"), gemini("a", "", *calls)))
    assert [(s.error, s.metadata.get("blocked")) for s in rig.steps()] == [(no, True), (gone, None), (no, None)]


def test_a_message_is_one_turn_and_files_it_names_are_none(rig: Rig) -> None:
    files = [
        "\n--- Content from referenced files ---",
        "\nContent from @a.txt:\n",
        "secret plan",
        "\n--- End of content ---",
    ]
    told: list[object] = [
        {**user("u1", ""), "content": [{"text": part} for part in ("explain @a.txt", *files, "please")]},
        {**user("u2", ""), "content": [{"text": "expanded"}], "displayContent": [{"text": "/expand"}]},
        {**user("u3", ""), "content": "plain", "displayContent": []},
        {**user("u4", ""), "content": {"text": "part"}, "displayContent": 7},
        {**user("u5", ""), "content": ["--- Content from referenced files ---", "all of it"]},
    ]  # fmt: skip
    rig.import_(rig.write("session-1.jsonl", HEAD, *told, gemini("a", "fine")))
    trace = rig.trace()
    assert trace.input == {"prompt": "explain @a.txt\nplease"}
    assert trace.metadata["follow_up_prompts"] == [
        "/expand", "plain", "part", "--- Content from referenced files ---\nall of it",
    ]  # fmt: skip


def test_the_project_is_known_where_the_client_wrote_it_down(rig: Rig) -> None:
    root = "/home/dev/project"
    for number, told in enumerate((root, "/somewhere/else")):
        (rig.files / f"p{number}").mkdir()
        (rig.files / f"p{number}" / ".project_root").write_text(told)
        rig.write(
            f"p{number}/chats/session-{number}.jsonl",
            {**HEAD, "projectHash": sha256(root.encode()).hexdigest()},
            user("u", "go"),
        )
    rig.import_(rig.files)
    assert sorted(str(t.project) for t in rig.traces()) == [root, "None"]


def test_messages_without_a_usable_id_are_used_and_named(rig: Rig) -> None:
    nameless = gemini("", "", tool("t2"))
    del nameless["id"]
    path = rig.write(
        "session-1.jsonl", HEAD, user("u", "go"), {**gemini("", "", tool("t1")), "id": 7}, nameless, {"$set": {"messages": [{**nameless, "toolCalls": [tool("t3")]}]}},
        {"$rewindTo": 5}, {"$set": 5},
    )  # fmt: skip
    found = rig.import_(path).file
    assert [s.metadata["call"] for s in rig.steps()] == ["t1", "t2", "t3"]
    assert found["records"] == {"read": 7, "imported": 5, "skipped": 0, "malformed": 2, "mended": 3, "duplicates": 0}
    assert [p["line"] for p in found["problems"]] == [4, 5, 6, 7, 3]


def test_turns_are_taken_back_one_after_the_other(rig: Rig) -> None:
    turns = [user(f"u{n}", f"turn {n}") for n in range(300)]
    back = [{"$rewindTo": f"u{n}"} for n in reversed(range(1, 300))]
    rig.import_(rig.write("session-1.jsonl", HEAD, *turns, *back, user("v", "better"), gemini("a", "end")))
    trace = rig.trace()
    assert trace.input == {"prompt": "turn 0"} and trace.metadata["follow_up_prompts"] == ["better"]
