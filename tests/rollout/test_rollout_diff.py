"""diff and score: what differs, who did better, and the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rollout_rig import numbered, run, written
from store_rig import SESSION, Journal, event

from guardhook.rollout.canonical import DEFAULT, DRIFT, EXACT, canonical, equal
from guardhook.rollout.compare import cost, diff, score
from guardhook.rollout.load import Event, load

START = ("run.started", {"step": 0, "prompt": "p"})
DONE = ("run.completed", {"step": 1})
FAILED = ("run.failed", {"step": 1, "error": "e"})


def of(tmp_path: Path, *events: tuple[str, object], name: str = "r") -> list[Event]:
    return load(str(written(tmp_path / f"{name}.jsonl", *numbered(*events)))).events


def spent(step: int, total: object) -> tuple[str, object]:
    return "usage.delta", {"step": step, "cumulative_cost_usd": total}


def test_two_equal_runs(tmp_path: Path) -> None:
    a = canonical(of(tmp_path, START, DONE))
    found, judged = diff(a, a), score(a, a)
    assert found.as_dict() == {
        "steps": [
            {"step": 0, "status": "identical", "type_a": "run.started", "type_b": "run.started"},
            {"step": 1, "status": "identical", "type_a": "run.completed", "type_b": "run.completed"},
        ],
        "identical": 2, "diverged": 0, "only_in_a": 0, "only_in_b": 0, "cost_delta": 0.0, "outcome_diff": "identical",
    }  # fmt: skip
    assert (judged.winner, judged.reasons) == ("tie", ["runs are equivalent"])


def test_two_empty_runs() -> None:
    assert diff([], []).as_dict()["outcome_diff"] == "diverged" and diff([], []).steps == []
    assert (score([], []).winner, score([], []).reasons) == ("tie", ["runs are equivalent"])


def test_cost_is_the_largest_sum(tmp_path: Path) -> None:
    assert cost(of(tmp_path, START, spent(1, 0.001), spent(1, 0.003), spent(2, 0.002))) == 0.003
    for totals in ({"total_cost_usd": 0.5}, {"cost_usd_total": 0.5}):
        assert cost(of(tmp_path, START, ("run.completed", {"step": 1, "cost_totals": totals}))) == 0.5
    assert cost(of(tmp_path, START, spent(1, "9"), spent(1, True), spent(1, -3))) == 0.0


def test_regression_and_improvement(tmp_path: Path) -> None:
    good, bad = of(tmp_path, START, DONE), of(tmp_path, START, FAILED)
    judged = score(good, bad)
    assert diff(good, bad).outcome_diff == "b_failed" and judged.winner == "a" and judged.regression
    assert judged.reasons[0] == "B failed where A succeeded (regression)"
    assert diff(bad, good).outcome_diff == "a_failed" and score(bad, good).winner == "b"
    assert score(bad, good).reasons[0] == "B succeeded where A failed (improvement)"


def test_what_counts_as_an_error(tmp_path: Path) -> None:
    kinds = [
        "hook.failed",
        "tool_hook.failed",
        "memory.observe.failed",
        "skill.fork.failed",
        "error.context",
        "run.failed",
    ]
    a = of(tmp_path, START, *((k, {"step": 1}) for k in kinds))
    assert score(a, a).a.errors == 6
    two = of(tmp_path, START, ("hook.failed", {"step": 1}), ("hook.failed", {"step": 1}), DONE)
    judged = score(two, of(tmp_path, START, DONE))
    assert (judged.winner, judged.reasons) == ("b", ["fewer errors (A:2 vs B:0)"])
    tool = of(tmp_path, START, ("tool.call.completed", {"step": 1, "error": "x"}), DONE)
    assert score(tool, of(tmp_path, START, DONE)).winner == "tie" and score(tool, tool).a.tool_failures == 1


def test_a_run_without_an_end_wins_nothing_by_stopping_early(tmp_path: Path) -> None:
    judged = score([], of(tmp_path, START, spent(1, 0.5), DONE))
    assert judged.winner == "tie" and judged.reasons == ["A has no terminal event"]
    long = of(tmp_path, START, ("x", {"step": 5}), ("run.completed", {"step": 5}))
    assert score(of(tmp_path, START, DONE), long).reasons == ["fewer steps (A:1 vs B:5)"]


def test_two_runs_without_an_end_that_differ_are_not_called_equivalent(tmp_path: Path) -> None:
    short, long = of(tmp_path, START, spent(1, 0.1)), of(tmp_path, START, spent(1, 0.2), ("x", {"step": 5}))
    judged = score(short, long)
    assert (judged.winner, judged.points_a, judged.points_b) == ("tie", 0, 0)
    assert judged.reasons == ["A has no terminal event", "B has no terminal event"]
    assert score(short, short).reasons == ["runs are equivalent"]


def test_opposite_points_tie_and_still_say_why(tmp_path: Path) -> None:
    cheap = of(tmp_path, START, spent(1, 0.1), ("run.completed", {"step": 3}))
    short = of(tmp_path, START, spent(1, 0.2), DONE)
    judged = score(cheap, short)
    assert judged.winner == "tie" and judged.reasons == [
        "lower cost (A:$0.10000 vs B:$0.20000)",
        "fewer steps (A:3 vs B:1)",
    ]


def test_kinds_of_difference(tmp_path: Path) -> None:
    a = of(tmp_path, START, ("x", {"step": 1}), ("x", {"step": 2}), ("x", {"step": 3, "v": 1}), ("x", {"step": 4}))
    b = of(
        tmp_path,
        START,
        ("x", {"step": 1}),
        ("x", {"step": 1}),
        ("y", {"step": 2}),
        ("x", {"step": 3, "v": True}),
        ("x", {"step": 5}),
    )
    found = [(s.step, s.status, s.details) for s in diff(canonical(a), canonical(b)).steps]
    assert found == [
        (0, "identical", None), (1, "diverged", "event count: 1 vs 2"), (2, "diverged", 'type: "x" vs "y"'), (3, "diverged", "payload differences"),
        (4, "only_in_a", None), (5, "only_in_b", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True), (True, 1, False), (False, 0, False), (None, False, False), ([1, True], [1.0, True], True), ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True), ({"a": 1}, {"a": 1, "b": None}, False), ("1", 1, False), ([], {}, False),
    ],
)  # fmt: skip
def test_equality_of_json(a: object, b: object, same: bool) -> None:
    assert equal(a, b) is same and equal(b, a) is same


def test_canonicalising_leaves_the_input_alone(tmp_path: Path) -> None:
    raw = of(
        tmp_path,
        ("run.started", None),
        ("b", {"step": 1, "ts": "t", "id": 1, "run_id": "r", "inner": {"ts": "kept"}, "n": None}),
        ("a", {"step": 1}),
    )
    before = json.dumps([(e.type, e.payload) for e in raw])
    found = canonical(raw, EXACT)
    assert found[0].payload is None
    assert [e.type for e in found] == ["run.started", "b", "a"] and found[1].payload == {
        "step": 1,
        "inner": {"ts": "kept"},
        "n": None,
    }
    assert found[1].payload is not None
    found[1].payload["inner"]["ts"] = "changed"  # type: ignore[index]
    assert json.dumps([(e.type, e.payload) for e in raw]) == before
    assert {e.ts for e in found} == {""}


def test_what_each_way_of_canonicalising_takes_out(tmp_path: Path) -> None:
    names = ["conversation_id", "provider", "duration_ms", "prompt_hash", "session_id", "transcript_path", "other_ms"]
    (event_,) = of(tmp_path, ("run.started", {"step": 0, **dict.fromkeys(names, 1)}))
    left = {k: set(canonical([event_], k)[0].payload or {}) & set(names) for k in (EXACT, DEFAULT, DRIFT)}
    assert left[EXACT] == set(names)
    assert left[DEFAULT] == {"provider", "prompt_hash"}
    assert left[DRIFT] == set()


def test_the_text(tmp_path: Path) -> None:
    a = written(tmp_path / "a.jsonl", *numbered(START, spent(1, 0.1), ("x", {"step": 1, "v": 1}), DONE))
    b = written(tmp_path / "b.jsonl", *numbered(START, spent(1, 0.2), ("x", {"step": 1, "v": 2}), DONE))
    result = run("diff", str(a), str(b))
    assert (result.exit_code, result.stdout) == (
        0,
        "Run A: 1 steps, $0.10000\nRun B: 1 steps, $0.20000\nSteps: 1 identical, 1 diverged, 0 only in A, 0 only in B\n"
        "Winner: A (lower cost (A:$0.10000 vs B:$0.20000))\n",
    )
    empty = written(tmp_path / "e.jsonl")
    assert run("diff", str(empty), str(empty)).stdout.splitlines()[2:] == [
        "Steps: 0 identical, 0 diverged, 0 only in A, 0 only in B",
        "Winner: Tie (runs are equivalent)",
    ]


def test_exit_codes(tmp_path: Path) -> None:
    good = str(written(tmp_path / "good.jsonl", *numbered(START, DONE)))
    bad = str(written(tmp_path / "bad.jsonl", *numbered(START, FAILED)))
    assert run("diff", good, bad).exit_code == 0
    assert run("diff", good, bad, "--fail-on", "regression").exit_code == 3
    assert run("diff", bad, good, "--fail-on", "regression").exit_code == 0
    found = json.loads(run("diff", good, bad, "--json", "--fail-on", "regression").stdout)
    assert found["score"]["winner"] == "a" and found["outcome_diff"] == "b_failed"
    for words, status in (
        ([good], 2),
        ([good, bad, "--fail-on", "x"], 2),
        ([good, str(tmp_path / "no.jsonl")], 1),
        ([], 2),
    ):
        assert run("diff", *words, data=tmp_path).exit_code == status
    broken = tmp_path / "broken\x1b[2J.jsonl"
    broken.write_text("x")
    result = run("diff", good, str(broken))
    assert (
        result.exit_code == 1
        and "\x1b" not in result.output
        and "line 1" in result.output
        and result.output.count("\n") == 1
    )


def test_two_sessions_that_did_the_same(journal: Journal) -> None:
    other = "00000000-0000-4000-8000-00000000000b"
    for session, more in ((SESSION, 1.0), (other, 7.0)):
        journal.add(event("user_prompt", prompt="p", session=session), step=more)
        journal.add(event("pre_tool", tool="Bash", given={"command": "ls"}, call="1", session=session), step=more)
        journal.add(
            event("post_tool", tool="Bash", given={"command": "ls"}, call="1", tool_response="x", session=session),
            step=more,
        )
        journal.add(event("session_end", session=session), closes=True)
    found = json.loads(run("diff", SESSION, other, "--json", data=journal.base).stdout)
    assert {s["status"] for s in found["steps"]} == {"identical"}
    exact = json.loads(run("diff", SESSION, other, "--json", "--exact", data=journal.base).stdout)
    assert "identical" not in {s["status"] for s in exact["steps"]}
