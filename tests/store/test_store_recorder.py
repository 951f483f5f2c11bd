"""Programs that record themselves, and lines of other types."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_rig import Journal, event, everything

from guardhook.core.folders import explicit
from guardhook.store import NotFound, Store, open_store, protocol, schema
from guardhook.store.append import Appender
from guardhook.store.recorder import Rejected, TraceRecorder


def record(recorder: TraceRecorder) -> str:
    """A small run with everything in it."""
    name = recorder.start_trace(
        "sum", input='{"a":1}', tags=["x"], session_id="s", started_at="2026-08-16T23:00:00+0200", metadata={"k": 1}
    )
    first = recorder.start_step("tool_call", "add", input="text", started_at="2026-08-16T21:00:00Z")
    recorder.end_step(first, output=False, ended_at="2026-08-16T21:00:01.500Z", tokens_used=7)
    second = recorder.step(
        "decision",
        "choose",
        parent_step=first,
        caused_by_step=first,
        error={"code": 2},
        decision={"chosen": "a", "options": [{"option": "a"}, {"option": "b", "score": 0.1}]},
    )
    recorder.decision(second, "b", rationale="better", confidence=0.9, decided_by="user")
    recorder.snapshot(second, context_window=["hi"], environment={"E": "1"}, token_count=3)
    recorder.end_trace("failed", output="null", error="bad", total_cost_usd=0.5, ended_at="2026-08-16T21:01:00Z")
    return name


def test_a_recorded_trace_reads_back_as_it_was_told(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path / "gh"))
    recorder = TraceRecorder(folders)
    name = record(recorder)
    assert recorder.current_trace_id is None
    with open_store(folders) as store:
        trace = store.get(name)
        assert (trace.agent_name, trace.status, trace.error, trace.input, trace.output) == (
            "sum",
            "failed",
            "bad",
            {"a": 1},
            "null",
        )
        assert (trace.tags, trace.metadata, trace.session_id, trace.trigger) == (["x"], {"k": 1}, "s", "manual")
        assert trace.started_at == "2026-08-16T23:00:00+0200"
        assert trace.effective_duration_ms == 60_000 and trace.effective_tokens == 7
        first, second = store.steps(trace)
        assert (first.input, first.output, first.duration_ms, first.tokens_used) == ("text", False, 1500, 7)
        assert (second.error, second.parent_step_number, second.caused_by_step_number) == ('{"code":2}', 1, 1)
        assert second.decision is not None
        assert (second.decision.chosen, second.decision.decided_by, second.decision.options) == ("b", "user", [])
        (snapshot,) = store.snapshots(trace)
        assert snapshot.as_dict() == {
            "context_window": ["hi"],
            "environment": {"E": "1"},
            "tool_state": {},
            "token_count": 3,
        }


def test_a_callers_own_database_gets_the_same_shape(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path / "gh"))
    record(TraceRecorder(folders))
    connection = schema.connect(str(tmp_path / "own.db"), create=True)
    record(TraceRecorder.into(connection))
    with open_store(folders) as one, Store(connection, "own.db") as other:
        (a,), (b,) = one.traces().items, other.traces().items
        changed = {"id", "created_at", "trace_id", "step_id", "started_at", "ended_at"}

        def shape(value: object) -> object:
            if isinstance(value, dict):
                return {k: shape(v) for k, v in value.items() if k not in changed}
            return value

        assert shape(a.as_item()) == shape(b.as_item())
        assert [shape(s.as_dict("t")) for s in one.steps(a)] == [shape(s.as_dict("t")) for s in other.steps(b)]


def test_what_a_stream_would_skip_raises(tmp_path: Path) -> None:
    recorder = TraceRecorder(explicit(str(tmp_path / "gh")))
    with pytest.raises(Rejected, match="no trace"):
        recorder.step("output", "x")
    for bad in ("", "  ", "a\x1bb", "a\nb", "a\x85"):
        with pytest.raises(Rejected):
            recorder.start_trace("a", trace_id=bad)
    with pytest.raises(Rejected):
        recorder.start_trace("")
    recorder.start_trace("a", trace_id="mine")
    with pytest.raises(Rejected, match="step_type"):
        recorder.step("guess", "x")
    with pytest.raises(Rejected, match="no step 5"):
        recorder.end_step(5)
    with pytest.raises(Rejected, match="Failed"):
        recorder.end_trace("Failed")
    recorder.step("output", "x", duration_ms=-1, parent_step=9)
    assert len(recorder.warnings) == 2
    recorder.end_trace()


def test_secrets_do_not_reach_the_journal(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path / "gh"))
    recorder = TraceRecorder(folders)
    recorder.start_trace("a", input={"password": "hunter2hunter2"})
    assert b"hunter2" not in b"".join(p.read_bytes() for p in Path(folders.journal).rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("given", "status", "repaired"),
    [
        ("Failed", "failed", ()),
        ("success", "completed", ()),
        ("timedout", "timeout", ()),
        ("weird", "failed", ("status",)),
        ("", "failed", ("status",)),
        ("constructor", "failed", ("status",)),
        (3, "failed", ("status",)),
    ],
)
def test_statuses_of_a_stream(given: object, status: str, repaired: tuple[str, ...]) -> None:
    checked = protocol.check({"type": "trace_end", "trace_id": "t", "status": given})
    assert (checked.event["status"], checked.repaired) == (status, repaired)
    assert bool(checked.warnings) is (given != "Failed")


@pytest.mark.parametrize(
    "bad",
    [
        None, [], {"type": "nope"}, {"type": "trace_start"}, {"type": "step", "trace_id": "t", "step_number": 0, "step_type": "output", "name": "x"},
        {"type": "step", "trace_id": "t", "step_number": True, "step_type": "output", "name": "x"}, {"type": "step_end", "step_number": 1},
        {"type": "trace_end", "trace_id": "t", "v": 2}, {"type": "trace_start", "agent_name": "a", "tags": [1]},
        {"type": "decision", "trace_id": "t", "step_number": 1}, {"type": "decision", "trace_id": "t", "step_number": 1, "chosen": "x", "confidence": 2},
        {"type": "decision", "trace_id": "t", "step_number": 1, "chosen": "x", "options": [{"score": 1}]},
        {"type": "step", "trace_id": "t", "step_number": 1, "step_type": "output", "name": "x", "decision": "y"},
    ],
)  # fmt: skip
def test_events_that_a_stream_skips(bad: object) -> None:
    assert protocol.check(bad).rejected is not None


def test_forks_and_evaluations_are_journal_lines_too(journal: Journal) -> None:
    journal.add(event("pre_tool", tool="Bash", call="a"))
    origin = journal.trace()
    fork = Appender(journal.folders, dialect="fork")
    fork.put(
        "trc_fork",
        [
            (
                "fork.start",
                {
                    "agent_name": "claude-code",
                    "parent_trace_id": origin.id,
                    "forked_from_step": 1,
                    "metadata": {"forked_from": origin.id},
                },
            ),
            ("trace.step", {"step_number": 1, "step_type": "tool_call", "name": "Bash", "metadata": {}}),
        ],
        opens=True,
    )
    Appender(journal.folders, dialect="eval").put(
        origin.id,
        [
            (
                "eval.result",
                {
                    "evaluator_type": "rubric",
                    "evaluator_name": "mine",
                    "score": 0.5,
                    "passed": True,
                    "details": {"a": 1},
                },
            ),
            ("eval.result", {"evaluator_type": "guess"}),
        ],
    )
    with journal.open() as store:
        trace = store.get("trc_fork")
        assert (trace.parent_trace_id, trace.forked_from_step, trace.status, trace.step_count) == (
            origin.id,
            1,
            "running",
            1,
        )
        (found,) = store.evaluations(origin)
        assert (found.evaluator_name, found.score, found.passed, found.as_dict()["details"]) == (
            "mine",
            0.5,
            True,
            {"a": 1},
        )
        assert [p.kind for p in store.problems()] == ["unknown"]
        assert store.stats()["overall"]["traces"] == 1  # type: ignore[index]
        before = everything(store)
    (journal.base / "traces.db").unlink()
    with journal.open() as store:
        assert everything(store) == before


def test_many_lines_are_one_batch(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path / "gh"))
    lines = [("trace.start", {"agent_name": "a"})]
    lines += [("trace.step", {"step_number": n, "step_type": "output", "name": f"n{n}"}) for n in range(1, 1201)]
    assert Appender(folders).put("t", [*lines, ("trace.end", {})], opens=True, closes=True) == 1202
    with open_store(folders) as store:
        trace = store.get("t")
        assert (trace.step_count, trace.status) == (1200, "completed")
        assert [r.closed_at is not None for r in store.runs(trace)] == [True]
        assert store.step(trace, 1200).name == "n1200"
        with pytest.raises(NotFound):
            store.step(trace, 1201)


def test_lines_that_do_not_fit_their_trace_are_told(tmp_path: Path) -> None:
    folders = explicit(str(tmp_path / "gh"))
    put = Appender(folders).put
    step = {"step_number": 1, "step_type": "output", "name": "x"}
    put(
        "t",
        [
            ("trace.step", step),
            ("trace.start", {"agent_name": "a"}),
            ("trace.step", step),
            ("trace.step", step),
            ("trace.step_end", {"step_number": 9}),
            ("trace.start", {"agent_name": "b"}),
            ("trace.nonsense", {}),
        ],
    )
    with open_store(folders) as store:
        assert store.get("t").step_count == 1
        assert [p.line for p in store.problems()] == [1, 4, 5, 6, 7]
