"""`guardhook import` of Qwen Code's chat logs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import FIXTURES, Rig

SESSION = "5e550001-0000-4000-8000-0000000000ff"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_a_captured_chat_with_its_sub_agent(rig: Rig) -> None:
    shutil.copytree(FIXTURES / "qwen", rig.files / "qwen")
    ran = rig.import_(rig.files)
    assert ran.status == 0 and ran.file["format"] == "qwen-chat"
    records = ran.file["records"]
    assert records["read"] == records["imported"] + records["skipped"] and records["mended"] == 0
    trace = rig.trace()
    assert (trace.agent_name, trace.agent_version, trace.dialect, trace.session_id) == ("qwen-code", "0.24.4", "qwen-code", SESSION)  # fmt: skip
    assert trace.input == {"prompt": "please do the scripted thing"} and trace.output == {"text": "done"}
    assert trace.project == "/home/dev/proj" and trace.total_tokens == 550
    steps = rig.steps()
    # One answer of the sub-agent tells its usage before its call, in a record without parts.
    assert [s.tokens_used for s in steps if s.parent_step_number is not None] == [None, 110, 110]
    assert sum(s.tokens_used or 0 for s in steps) == 550
    call = next(s for s in steps if s.name == "agent")
    anchor = next(s for s in steps if s.name == "subagent:general-purpose")
    inner = next(s for s in steps if s.name == "run_shell_command")
    assert anchor.caused_by_step_number == call.step_number and inner.parent_step_number == anchor.step_number
    assert inner.duration_ms == 373 and inner.error is None and inner.output is not None
    assert "<task-notification>" in str(trace.metadata["follow_up_prompts"])


def test_calls_that_failed(rig: Rig) -> None:
    base = {"sessionId": SESSION, "parentUuid": None, "timestamp": "2026-11-30T10:00:00.000Z"}
    parts = [{"functionCall": {"id": n, "name": "edit", "args": {}}} for n in ("a", "b", "c")]
    said = [
        ("a", {"error": "no"}, "error"),
        ("b", {"output": "x"}, "success"),
        ("c", "text", "cancelled"),
    ]
    path = rig.write(
        "chats/s.jsonl", {**base, "uuid": "1", "type": "user", "message": {"role": "user", "parts": [{"text": "go"}]}},
        {**base, "uuid": "2", "type": "assistant", "message": {"parts": [{"text": "hm", "thought": True}, *parts]}},
        *({**base, "uuid": id, "type": "tool_result", "toolCallResult": {"callId": id, "status": status, "errorType": "execution_denied" if id == "a" else None},
           "message": {"parts": [{"functionResponse": {"id": id, "response": response}}]}} for id, response, status in said),
    )  # fmt: skip
    assert rig.import_(path).file["format"] == "qwen-chat"
    thought, *calls = rig.steps()
    assert thought.step_type == "thought" and thought.output == {"text": "hm"}
    assert [c.error for c in calls] == ["no", None, "text"]
    assert [bool(c.metadata.get("blocked")) for c in calls] == [True, False, False]


def test_a_message_is_one_turn_and_files_it_names_are_none(rig: Rig) -> None:
    base = {"sessionId": "s", "parentUuid": None, "timestamp": "2026-11-30T10:00:00.000Z"}
    parts = ["explain @a", "\n--- Content from referenced files ---", "contents", "\n--- End of content ---"]
    told = {
        **base,
        "uuid": "1",
        "type": "user",
        "message": {"role": "user", "parts": [{"text": part} for part in parts]},
    }
    rig.import_(rig.write("chats/s.jsonl", told))
    assert rig.trace().input == {"prompt": "explain @a"} and "follow_up_prompts" not in rig.trace().metadata


def test_damage(rig: Rig) -> None:
    (source,) = (FIXTURES / "qwen" / "chats").iterdir()
    records = [json.loads(raw) for raw in source.read_text().splitlines()]
    records[3]["message"] = 5
    ran = rig.import_(rig.write("s.jsonl", *records, "{torn"))
    assert ran.file["records"]["mended"] == ran.file["records"]["malformed"] == 1
    assert [(p["line"], p["file"]) for p in ran.file["problems"]] == [(4, "s.jsonl"), (len(records) + 1, "s.jsonl")]


def test_sub_agents_of_sub_agents_hang_below_the_calls_that_started_them(rig: Rig) -> None:
    base = {"sessionId": SESSION, "parentUuid": None, "timestamp": "2026-11-30T10:00:00.000Z", "type": "assistant"}

    def says(number: int, part: dict[str, object], **more: object) -> dict[str, object]:
        return {**base, "uuid": f"u{number}", "message": {"role": "model", "parts": [part]}, **more}

    def call(id: str) -> dict[str, object]:
        return {"functionCall": {"id": id, "name": "agent", "args": {}}}

    rig.write(f"p/chats/{SESSION}.jsonl", says(1, call("c1")))
    for name, started, depth, part in (("z", "c1", 0, call("c2")), ("a", "c2", 1, {"text": "deep"})):
        rig.write(f"p/subagents/{SESSION}/agent-{name}.jsonl", says(depth + 2, part, agentId=name))
        rig.write(f"p/subagents/{SESSION}/agent-{name}.meta.json", {"agentType": name, "toolUseId": started, "depth": depth})  # fmt: skip
    rig.import_(rig.files)
    assert [(s.name, s.parent_step_number) for s in rig.steps()] == [
        ("agent", None), ("subagent:z", 1), ("agent", 2), ("subagent:a", 3), ("assistant_message", 4),
    ]  # fmt: skip
