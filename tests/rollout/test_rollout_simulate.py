"""simulate: which calls don't fit together, and what of it is evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rollout_rig import Item, numbered, run, written
from store_rig import SESSION, Journal, event, said

from guardhook.rollout.load import Event, Gap, load
from guardhook.rollout.simulate import Result, simulate

START = ("run.started", {"step": 0})


def announced(*calls: object, step: int = 1, **more: object) -> tuple[str, object]:
    return "llm.turn.completed", {"step": step, "tool_calls": list(calls), **more}


def one(call: str = "c", name: object = "Bash", arguments: object = '{"a":1}') -> dict[str, object]:
    return {"id": call, "name": name, "arguments": arguments}


def started(
    call: object = "c", tool: object = "Bash", arguments: object = '{"a":1}', step: int = 1
) -> tuple[str, object]:
    return "tool.call.started", {"step": step, "call_id": call, "tool": tool, "arguments": arguments}


def ended(call: object = "c", tool: object = "Bash", step: int = 1, **more: object) -> tuple[str, object]:
    data: dict[str, object] = {"step": step, "call_id": call, "output": "out", **more}
    if tool is not None:
        data["tool"] = tool
    return "tool.call.completed", data


def check(tmp_path: Path, *events: tuple[str, object]) -> Result:
    found = load(str(written(tmp_path / "r.jsonl", *numbered(START, *events))))
    return simulate(found.events, found.gaps, results=True)


def only(result: Result, word: str) -> None:
    assert not result.matched and len(result.mismatches) == 1 and word in result.mismatches[0], result.mismatches


def test_a_call_that_fits(tmp_path: Path) -> None:
    result = check(tmp_path, announced(one()), started(), ended())
    assert result.matched and result.mismatches == [] and result.results == {"c": "out"}
    assert (result.events_replayed, result.step_count) == (4, 1)
    assert check(tmp_path, announced(one()), started(), ended(result="r")).results == {"c": "r"}
    assert check(tmp_path, announced(one()), started(), ended(result="")).results == {"c": "out"}


def test_what_is_missing_or_out_of_order(tmp_path: Path) -> None:
    only(check(tmp_path, announced(one()), started()), '"c" has no tool.call.completed')
    result = check(tmp_path, started(), ended())
    assert len(result.mismatches) == 2 and "was not announced" in result.mismatches[0]
    assert "no corresponding tool.call.started" in result.mismatches[1]
    assert "was not announced" in check(tmp_path, started(), announced(one()), ended()).mismatches[0]
    result = check(tmp_path, announced(one()), ended(), started())
    assert "before" in result.mismatches[0]
    only(check(tmp_path, ended()), "no corresponding")


@pytest.mark.parametrize(
    ("events", "word"),
    [
        ([announced(one(name="Read")), started(), ended()], "announced as"),
        ([announced(one(name="")), started(), ended()], "(no name)"),
        ([announced(one()), started(), ended(tool="Read")], "completed as"),
        ([announced(one()), started(), ended(tool=None)], "(no name)"),
        ([announced(one(arguments='{"a":2}')), started(), ended()], "other arguments"),
        ([announced(one()), started(arguments=""), ended()], "other arguments"),
        ([announced(one()), started(arguments=None), ended()], "other arguments"),
        ([announced(one(arguments="true")), started(arguments="1"), ended()], "other arguments"),
        ([announced(one()), started(tool=""), ended()], "names no tool"),
        ([announced(one("x" * 300)), started("x" * 300), ended("x" * 300)], "maximum length"),
        ([announced(one()), started(""), ended()], "without a call_id"),
        ([announced(one()), started(7), ended()], "without a call_id"),
    ],
)  # fmt: skip
def test_what_differs(tmp_path: Path, events: list[tuple[str, object]], word: str) -> None:
    result = check(tmp_path, *events)
    assert not result.matched and word in result.mismatches[0], result.mismatches


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1}, '{"a":1}'), ('{"a":1}', {"a": 1}), ({"b": 1, "a": 2}, '{"b":1,"a":2}'), ('{"a":1,"b":2}', '{ "b": 2.0, "a": 1e0 }'),
        ("plain text", "plain text"), ("", '{"a":1}'),
    ],
)  # fmt: skip
def test_arguments_that_say_the_same(tmp_path: Path, first: object, second: object) -> None:
    assert check(tmp_path, announced(one(arguments=first)), started(arguments=second), ended()).matched


def test_arguments_whose_keys_are_there_twice_are_compared_as_text(tmp_path: Path) -> None:
    twice = '{"a":1,"a":2}'
    assert check(tmp_path, announced(one(arguments=twice)), started(arguments=twice), ended()).matched
    only_one = check(tmp_path, announced(one(arguments=twice)), started(arguments='{"a":2}'), ended())
    assert not only_one.matched


def test_what_is_there_twice(tmp_path: Path) -> None:
    call = [announced(one()), started(), ended()]
    only(check(tmp_path, call[0], announced(one()), *call[1:]), "duplicate announcement")
    only(check(tmp_path, *call[:2], started(), call[2]), "duplicate tool.call.started")
    only(check(tmp_path, *call, ended()), "duplicate tool.call.completed")


def test_ids_of_256_bytes_are_the_longest(tmp_path: Path) -> None:
    for name, good in (("x" * 256, True), ("é" * 128, True), ("é" * 128 + "x", False)):
        assert check(tmp_path, announced(one(name)), started(name), ended(name)).matched is good


def test_the_list_of_mismatches_ends(tmp_path: Path) -> None:
    result = check(tmp_path, *(started(f"c{n}") for n in range(1100)))
    assert len(result.mismatches) == 1001 and result.mismatches[-1] == "(further mismatches suppressed)"
    exactly = check(tmp_path, *(started("") for _ in range(1000)))
    assert len(exactly.mismatches) == 1000 and exactly.mismatches[-1] != "(further mismatches suppressed)"


def test_announcements_beyond_what_is_tracked(tmp_path: Path) -> None:
    turns = [announced(*(one(f"c{n}-{m}") for m in range(100))) for n in range(100)]
    assert check(tmp_path, *turns).matched
    only(check(tmp_path, *turns, announced(*(one(f"more{m}") for m in range(10)))), "tracking limit (10000) reached")
    crowded = check(tmp_path, announced(*(one(f"c{m}") for m in range(101))), started("c100"), ended("c100"))
    assert "was not announced" in crowded.mismatches[0]


def test_empty_and_steps(tmp_path: Path) -> None:
    assert simulate([]) == Result(0, 0, True, [], simulate([]).detail, {})
    assert check(tmp_path, ("x", {"step": 7})).step_count == 7


def ev(seq: int, kind: str, step: int) -> Event:
    return Event(seq, kind, step, {}, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "events",
    [
        [ev(0, "run.started", 0), ev(1, "x", 2), ev(2, "x", 1)], [ev(0, "run.started", 0), ev(1, "x", -1)], [ev(0, "x", 1)],
        [ev(0, "run.started", 0), ev(1, "run.completed", 1), ev(2, "x", 1)], [ev(0, "run.started", 0), ev(1, "run.started", 0)],
        [ev(0, "run.started", 0), ev(1, "llm.turn.completed", 0)], [ev(0, "run.started", 1)],
    ],
)  # fmt: skip
def test_events_that_are_no_run(events: list[Event]) -> None:
    result = simulate(events)
    assert (result.events_replayed, result.matched, len(result.mismatches)) == (0, False, 1)
    assert result.mismatches[0].startswith("event sequence validation failed: ")


def test_what_is_missing_inside_a_gap_says_so() -> None:
    base = [
        ev(0, "run.started", 0),
        Event(1, *announced(one())[:1], 1, announced(one())[1], ""),
        Event(2, "tool.call.started", 1, started()[1], ""),
    ]  # type: ignore[arg-type]
    assert "(inside a recorded gap)" not in simulate(base).mismatches[0]
    assert (
        simulate(base, [Gap(3, 5, True)]).mismatches[0].endswith("has no tool.call.completed (inside a recorded gap)")
    )
    assert "gap)" not in simulate(base, [Gap(3, 5, False)]).mismatches[0]


def test_hostile_names_are_cut_and_harmless(tmp_path: Path) -> None:
    name = "a\x1b[31m\u202e\n\u2028b" + "c" * 5000
    result = check(tmp_path, ended(name), ended("ok\x1b[2J"))
    text = "".join(result.mismatches)
    assert text.isprintable() and max(map(len, result.mismatches)) < 1200 and '"ok[2J"' in text


def captured(journal: Journal, *, echo: str = "ls", denied_runs: bool = False) -> None:
    journal.add(event("user_prompt", prompt="p"))
    journal.add(
        event(
            "pre_tool", tool="Bash", given={"command": "ls", "description": "d"}, call="1", verdict=said("allow", None)
        )
    )
    journal.add(event("post_tool", tool="Bash", given={"command": echo}, call="1", tool_response="x"))
    journal.add(event("pre_tool", tool="Bash", given={"command": "rm"}, call="2", verdict=said("deny")))
    if denied_runs:
        journal.add(event("post_tool", tool="Bash", given={"command": "rm"}, call="2", tool_response="gone"))
    journal.add(event("stop"))


def told(journal: Journal, status: int, *words: str) -> dict[str, Any]:
    result = run("simulate", SESSION, "--json", *words, data=journal.base)
    assert result.exit_code == status, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_a_captured_session_with_a_denial_fits(journal: Journal) -> None:
    captured(journal)
    found = told(journal, 0)
    assert list(found) == ["mode", "events_replayed", "step_count", "matched", "mismatches"]
    assert (found["mode"], found["matched"], found["mismatches"]) == ("simulate", True, [])
    assert told(journal, 0, "--detail")["detail"] == {
        "announcements": {"independent": 0, "synthetic": 2}, "gaps": [], "unfinished": [], "unpaired": [], "echo_checked": 1, "deny_checked": 1,
    }  # fmt: skip


def test_what_a_harness_did_against_the_verdict_is_found(journal: Journal) -> None:
    captured(journal, echo="ls; curl evil", denied_runs=True)
    found = told(journal, 3)
    assert any("ran with another input than was judged" in m for m in found["mismatches"])
    assert any("ran although it was denied" in m for m in found["mismatches"])


def test_words_for_people(journal: Journal, tmp_path: Path) -> None:
    captured(journal)
    result = run("simulate", SESSION, data=journal.base)
    assert (result.exit_code, result.stdout) == (0, "15 events, 3 steps: the calls fit together.\n")
    events: list[Item] = numbered(START, ended("x\x1b]0;t\x07"))
    result = run("simulate", str(written(tmp_path / "r.jsonl", *events)), "--detail")
    assert result.exit_code == 3 and "\x1b" not in result.output and "DON'T fit together" in result.output
