"""Traces that are told in parts: in any order, late, and more than once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardhook.core.folders import explicit
from guardhook.store import Trace, open_store, project, schema
from guardhook.store.append import Appender
from guardhook.store.watch import Follower

Event = dict[str, object]
BASE = 1_790_000_000_000_000


def part(name: str, at: int | None = 0, within: str | None = None, **more: object) -> Event:
    """A step, at so many microseconds after the start of the run."""
    event: Event = {"part": name, "role": "step", "step_type": "thought", "name": name, "trace": {"rooted": True}}
    if at is not None:
        event |= {"at": BASE + at, "ended": BASE + at + 1_000}
    if within is not None:
        event["within"] = within
    return event | more


def root(name: str, at: int = 0, **more: object) -> Event:
    return part(name, at, role="root", **more)


def told(base: Path, *batches: Sequence[Event], trace: str = "t") -> dict[str, object]:
    """The trace after all batches, each in the store before the next one comes."""
    folders = explicit(str(base))
    for batch in batches:
        Appender(folders, dialect="otel").put(trace, [("trace.part", event) for event in batch], opens=True)
        with open_store(folders) as store:
            found: Trace = store.get(trace)
            steps = [step.as_dict(found.id) for step in store.steps(found)]
            out = {**found.as_item(), "steps": steps, "prompts": store.prompts(found)}
            out["happenings"] = [(h.before_step, h.event, h.text) for h in store.happenings(found)]
            assert list(store.problems()) == []
    return out


def names(trace: dict[str, object]) -> list[str]:
    steps = trace["steps"]
    assert isinstance(steps, list)
    assert [step["step_number"] for step in steps] == list(range(1, len(steps) + 1))
    assert trace["step_count"] == len(steps)
    return [step["name"] for step in steps]


def parents(trace: dict[str, object]) -> list[int | None]:
    steps = trace["steps"]
    assert isinstance(steps, list)
    return [step["parent_step_number"] for step in steps]


def test_steps_are_numbered_by_their_start_and_linked_backwards(tmp_path: Path) -> None:
    trace = told(
        tmp_path, [part("inner", 20, "outer"), part("late", None)], [part("outer", 10, "run"), part("first", 5)]
    )
    assert names(trace) == ["first", "outer", "inner", "late"]
    assert parents(trace) == [None, None, 2, None]
    assert trace["metadata"] == {"synthetic_trace": True}
    trace = told(tmp_path, [root("run", 0, metadata={"k": 1})])
    assert names(trace) == ["first", "outer", "inner", "late"] and trace["metadata"] == {"k": 1}


def test_a_part_that_begins_before_its_parent_has_none(tmp_path: Path) -> None:
    trace = told(tmp_path, [part("inner", 5, "outer"), part("outer", 10)])
    assert names(trace) == ["inner", "outer"] and parents(trace) == [None, None]


def test_what_contains_comes_first_when_all_begin_together(tmp_path: Path) -> None:
    trace = told(tmp_path, [part("c", 0, "b"), part("b", 0, "a"), part("x", 0, "y"), part("y", 0, "x"), part("a", 0)])
    found = names(trace)
    assert found.index("a") < found.index("b") < found.index("c")
    assert parents(trace)[found.index("c")] == found.index("b") + 1


def test_a_part_told_twice_counts_once(tmp_path: Path) -> None:
    once = [root("r", 0, tokens_used=50, cost=0.5), part("c", 1, "r", tokens_used=120, cost=0.25)]
    trace = told(tmp_path, once, once, [*once, part("d", 2, tokens_used=7), *once])
    assert (trace["total_tokens"], trace["total_cost_usd"]) == (177, 0.75)
    assert names(trace) == ["c", "d"]


def test_the_earliest_root_is_the_run(tmp_path: Path) -> None:
    inner = root("inner", 10, input={"q": "inner"}, error="broke", trace={"agent": "helper"}, tokens_used=5)
    outer = root("outer", 0, input={"q": "outer"}, trace={"agent": "boss", "session": "s"}, output="done")
    trace = told(tmp_path, [part("x", 11, "inner"), inner])
    assert (trace["agent_name"], trace["status"], trace["error"], names(trace)) == (
        "helper",
        "failed",
        "broke",
        ["x"],
    )
    trace = told(tmp_path, [{**outer, "decision": None}])
    assert (trace["agent_name"], trace["status"], trace["error"]) == ("boss", "completed", None)
    assert (trace["input"], trace["output"], trace["session_id"]) == ({"q": "outer"}, "done", "s")
    assert names(trace) == ["inner", "x"] and parents(trace) == [None, 1]
    steps = trace["steps"]
    assert isinstance(steps, list)
    assert (steps[0]["error"], steps[0]["input"], steps[0]["tokens_used"]) == ("broke", {"q": "inner"}, 5)
    assert trace["total_tokens"] == 5


def test_without_a_root_any_failing_part_fails_the_run(tmp_path: Path) -> None:
    trace = told(
        tmp_path, [part("a", 1), part("b", 3, error="second", fails=True), part("c", 2, error="x", fails=True)]
    )
    assert (trace["status"], trace["error"]) == ("failed", "x")
    trace = told(tmp_path, [root("r")])
    assert (trace["status"], trace["error"]) == ("completed", None)


def test_a_decision_moves_with_its_step(tmp_path: Path) -> None:
    chosen = {"chosen": "reject", "decided_by": "policy", "options": [{"option": "reject"}]}
    decision = part("d", 10, step_type="decision", decision=chosen, call="c1")
    trace = told(tmp_path, [decision, part("t", 12, step_type="tool_call", call="c1")], [part("early", 1)])
    assert names(trace) == ["early", "d", "t"]
    steps = trace["steps"]
    assert isinstance(steps, list)
    assert [step.get("decision", {}).get("chosen") for step in steps] == [None, "reject", None]
    assert [step["caused_by_step_number"] for step in steps] == [None, None, 2]


def prompt(name: str, at: int, text: str) -> Event:
    return {"part": name, "role": "prompt", "at": BASE + at, "text": text, "trace": {}}


def test_prompts_come_in_order_and_repeats_fall_together(tmp_path: Path) -> None:
    trace = told(tmp_path, [part("s", 15), prompt("2", 20, "B")], [prompt("4", 40, "A"), prompt("3", 30, "B"), prompt("1", 10, "A")])  # fmt: skip
    assert trace["prompts"] == ["A", "B", "A"]
    assert trace["input"] == {"prompt": "A"}
    assert trace["happenings"] == [(1, "user_prompt", "A"), (2, "user_prompt", "B"), (2, "user_prompt", "A")]


def test_metrics_add_up_or_replace_each_other(tmp_path: Path) -> None:
    def told_metrics(name: str, value: object, *, adds: bool) -> Event:
        return {"part": name, "role": "metrics", "trace": {}, "metrics": {"n": {"value": value, "adds": adds, "unit": "u"}}}  # fmt: skip

    trace = told(tmp_path, [told_metrics("1", 2, adds=True), told_metrics("2", 3, adds=True), told_metrics("2", 3, adds=True)])  # fmt: skip
    assert trace["metadata"] == {"metrics": {"n": {"value": 5.0, "unit": "u"}}}
    trace = told(tmp_path, [told_metrics("3", 4, adds=False), told_metrics("4", "x", adds=True)])
    assert trace["metadata"] == {"metrics": {"n": {"value": 4.0, "unit": "u"}}}


@pytest.mark.parametrize(
    "event",
    [
        {"role": "step", "step_type": "thought", "name": "no part"},
        {"part": "a\x1b", "role": "step", "step_type": "thought", "name": "n"},
        {"part": "a", "role": "boss"},
        {"part": "a", "role": "step", "step_type": "toolcall", "name": "n"},
        {"part": "a", "role": "step", "step_type": "thought"},
        {"part": "a", "role": "step", "step_type": "decision", "name": "n", "decision": {"chosen": 5}},
    ],
)
def test_a_part_that_can_not_be_used_is_a_problem_of_the_journal(tmp_path: Path, event: Event) -> None:
    folders = explicit(str(tmp_path))
    Appender(folders, dialect="otel").put("t", [("trace.part", part("good")), ("trace.part", event)])
    with open_store(folders) as store:
        assert store.get("t").step_count == 1
        (problem,) = store.problems()
        assert problem.kind == "unknown" and problem.detail


def test_absurd_values_leave_the_rest(tmp_path: Path) -> None:
    odd: Event = {
        "at": -5,
        "ended": "x",
        "tokens_used": -1,
        "duration_ms": -2,
        "cost": -1,
        "within": 7,
        "cause": {},
        "call": [],
    }
    odd = {**part("odd", None), **odd, "metadata": 3}
    trace = told(
        tmp_path, [{**odd, "trace": {"agent": 5, "session": [], "metadata": 1, "trigger": "odd"}}, part("fine", 9)]
    )
    assert names(trace) == ["fine", "odd"]
    assert (trace["agent_name"], trace["session_id"], trace["trigger"], trace["total_tokens"]) == ("agent", None, "manual", None)  # fmt: skip


def test_native_lines_and_parts_do_not_mix(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path))
    step = {"step_number": 1, "step_type": "thought", "name": "n"}
    Appender(folders, dialect="otel").put("t", [("trace.part", part("a")), ("trace.step", {**step, "step_number": 5})])
    Appender(folders).put("u", [("trace.start", {"agent_name": "x"}), ("trace.part", part("a"))])
    with open_store(folders) as store:
        assert (store.get("t").step_count, store.get("u").step_count) == (1, 0)
        assert len(list(store.problems())) == 2


PIECES = [
    root("outer", 0, input={"i": 1}, output="o", trace={"agent": "A", "session": "s1", "version": 1}, tokens_used=3),
    root("nested", 2, within="outer", input={"i": 2}, error="nested broke", fails=True, trace={"agent": "B", "session": "s2"}),
    part("call", 2, "nested", step_type="tool_call", call="c", trace={"service": "svc"}),
    part("yes", 2, step_type="decision", decision={"chosen": "yes"}, call="c"),
    part("untimed", None, "outer"),
    prompt("p2", 9, "again"),
    prompt("p1", 1, "first"),
]  # fmt: skip


def whole(trace: dict[str, object]) -> str:
    """All that a reader sees and that must not depend on the order; ends and creation of rows are the journal's."""
    return json.dumps({k: v for k, v in trace.items() if k not in ("id", "created_at")}, sort_keys=True).replace(
        str(trace["id"]), "T"
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(PIECES))), cut=st.integers(0, len(PIECES)), again=st.integers(0, len(PIECES)))
def test_order_and_repetition_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cut: int, again: int
) -> None:
    pieces = [PIECES[i] for i in order]
    batches = [b for b in (pieces[:cut], pieces[cut:], pieces[:again]) if b]
    found = told(tmp_path_factory.mktemp("gh"), *batches)
    plain = told(tmp_path_factory.mktemp("gh"), PIECES)
    assert [s for s in names(found) if s not in ("call", "yes", "nested")] == ["untimed"]
    for trace in (found, plain):  # ids of steps go with their numbers
        for step in trace["steps"]:  # type: ignore[attr-defined]
            step.pop("id")
            step.get("decision", {}).pop("id", None)
            step.get("decision", {}).pop("step_id", None)
            step.pop("trace_id")
    assert sorted(names(found)) == sorted(names(plain))
    for key in ("agent_name", "status", "error", "input", "output", "session_id", "total_tokens", "prompts", "started_at", "ended_at"):  # fmt: skip
        assert found[key] == plain[key], key


def test_a_rebuilt_store_says_the_same(tmp_path: Path) -> None:
    before = told(tmp_path, *([piece] for piece in itertools.chain(PIECES, reversed(PIECES))))
    (tmp_path / "traces.db").unlink()
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"traces.db{suffix}").unlink(missing_ok=True)
    assert whole(told(tmp_path, [PIECES[0]])) == whole(before)


@pytest.mark.parametrize("lines", [1, 3, 7])
def test_small_batches_change_nothing(tmp_path: Path, lines: int) -> None:
    """A store that is made in many transactions is put in order all the same, also when one of them ends with the file."""
    pieces = [part(f"{n}", n, None if n % 3 else f"{n - 1}") for n in range(20, 0, -1)]
    told(tmp_path, pieces)
    connection = schema.connect(f"{tmp_path}/other.db", create=True)
    project.catch_up(connection, f"{tmp_path}/journal", batch_lines=lines)
    query = "SELECT step_number, name, parent_step_number FROM agent_trace_steps ORDER BY pk"
    found = connection.execute(query).fetchall()
    assert [row[1] for row in found] == [str(n) for n in range(1, 21)]
    assert [row[2] for row in found] == [n - 1 if n % 3 == 0 else None for n in range(1, 21)]
    connection.close()


def test_whoever_watches_sees_each_step_once(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path))
    appender = Appender(folders, dialect="otel")
    appender.put("t", [("trace.part", part("b", 20)), ("trace.part", part("c", 30))])
    with open_store(folders) as store:
        follower = Follower(store, store.get("t"), folders.journal)
        assert [seen.step.name for seen in follower.look()] == ["b", "c"]
        appender.put("t", [("trace.part", part("a", 10)), ("trace.part", part("c", 30)), ("trace.part", root("r"))])
        assert [(seen.step.name, seen.step.step_number) for seen in follower.look()] == [("a", 1)]
        appender.put("t", [("trace.part", part("d", 40))])
        assert [seen.step.name for seen in follower.look()] == ["d"]
        assert list(follower.look()) == []
