"""Rendering: what each hook event becomes, at which step, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rollout_rig import loaded, rendered, told, types
from store_rig import SESSION, Journal, event, said

from guardhook.journal import line
from guardhook.rollout.runs import Ambiguous, NotFound, find, list_runs


def bash(name: str, call: str | None, command: str = "ls", **more: object) -> dict[str, object]:
    return event(name, tool="Bash", given={"command": command}, call=call, **more)  # type: ignore[arg-type]


def whole(journal: Journal) -> None:
    journal.add(event("session_start", source="startup", model="m"), opens=True)
    journal.add(event("user_prompt", prompt="do it"))
    journal.add(bash("pre_tool", "c1", verdict=said("allow", None, "", exit=0)))
    journal.add(bash("post_tool", "c1", tool_response={"stdout": "a", "exit_code": 0}))
    journal.add(bash("pre_tool", "c2", "rm -rf /", verdict=said("deny")))
    journal.add(event("stop", last_assistant_message="done"))
    journal.add(event("user_prompt", prompt="more"))
    journal.add(bash("pre_tool", "c3", "x"))
    journal.add(event("session_end", reason="other"), closes=True)


def test_a_session_from_start_to_end(journal: Journal, tmp_path: Path) -> None:
    whole(journal)
    events = rendered(journal)
    assert types(events) == [
        ("run.started", 0),
        ("llm.turn.completed", 1), ("tool.call.started", 1), ("tool_hook.started", 1), ("tool_hook.completed", 1), ("tool.call.completed", 1),
        ("llm.turn.completed", 2), ("tool.call.started", 2), ("tool_hook.started", 2), ("tool_hook.completed", 2), ("tool.call.blocked", 2),
        ("tool.call.completed", 2),
        ("llm.turn.completed", 3), ("assistant.message", 3), ("run.step.completed", 3), ("run.waiting_for_user", 3),
        ("conversation.continued", 4), ("llm.turn.completed", 5), ("tool.call.started", 5), ("run.step.completed", 5), ("run.completed", 5),
    ]  # fmt: skip
    assert [e["seq"] for e in events] == list(range(len(events)))
    (started,) = told(events, "run.started")
    assert started["prompt"] == "do it" and started["session"] == {
        "source": "startup", "model": "m", "cwd": "/home/user/project", "harness": "claude-code", "harness_version": "2.1.332",
    }  # fmt: skip
    assert [d.get("executed") for d in told(events, "tool.call.completed")] == [True, False]
    assert told(events, "run.step.completed")[-1]["unfinished"] == ["c3"]
    assert loaded(journal, tmp_path / "r.jsonl").outcome == "completed"


def test_the_same_lines_give_the_same_rollout(journal: Journal) -> None:
    whole(journal)
    assert json.dumps(rendered(journal)) == json.dumps(rendered(journal))


def test_what_a_run_is_found_by(journal: Journal) -> None:
    whole(journal)
    (ref,) = list_runs(journal.folders)
    assert (ref.run_id, ref.session, ref.dialect, ref.open) == (
        line.run_id("claude-code", SESSION, 1),
        SESSION,
        "claude-code",
        False,
    )
    for name in (ref.run_id, ref.run_id[:12], ref.trace_id, ref.trace_id[:9], SESSION, SESSION[:8]):
        assert find(journal.folders, name) == ref
    with pytest.raises(NotFound):
        find(journal.folders, "nothing")
    second = line.run_id("claude-code", SESSION, 2)
    journal.add(event("user_prompt", prompt="again"), run=second, segment=2, opens=True)
    with pytest.raises(Ambiguous) as caught:
        find(journal.folders, SESSION)
    assert [c.split()[0] for c in caught.value.candidates] == [ref.run_id, second]
    assert find(journal.folders, second).previous == ref.run_id
    assert told(rendered(journal, second), "run.started")[0]["previous_run_id"] == ref.run_id
