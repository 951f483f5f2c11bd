"""Looking traces up: ids, filters, order, windows, numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardhook.core.folders import explicit
from guardhook.store import Ambiguous, Appender, BadQuery, Filter, Missing, NotFound, Store, instants, model, open_store

NOW = 1_800_000_000.0


@pytest.fixture
def folders(tmp_path: Path):  # type: ignore[no-untyped-def]
    return explicit(str(tmp_path / "gh"))


def put(folders, name: str, *steps: dict[str, object], end: dict[str, object] | None = None, **start: object) -> None:  # type: ignore[no-untyped-def]
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "agent", **start})]
    lines += [("trace.step", {"step_type": "output", "name": "n", **step}) for step in steps]
    if end is not None:
        lines.append(("trace.end", end))
    Appender(folders).put(name, lines, opens=True)


def names(store: Store, filter: Filter = Filter(), **more: object) -> list[str]:  # noqa: B008
    return [t.id for t in store.traces(filter, **more).items]  # type: ignore[arg-type]


def test_exact_id_beats_a_longer_one_and_prefixes_must_be_clear(folders) -> None:  # type: ignore[no-untyped-def]
    for name in ("trc_a", "trc_ab", "trc_ac", "a_c", "abc"):
        put(folders, name)
    with open_store(folders) as store:
        assert store.get("trc_a").id == "trc_a"
        assert store.get("trc_ab").id == "trc_ab"
        assert store.get("a_").id == "a_c"
        with pytest.raises(Ambiguous) as raised:
            store.get("trc_")
        assert raised.value.candidates == ("trc_a", "trc_ab")
        for missing in ("", "  ", "%", "_", "trc_abc", "trc_a%"):
            with pytest.raises(NotFound):
                store.get(missing)


def test_a_session_names_its_trace_and_not_the_copies_of_it(folders) -> None:  # type: ignore[no-untyped-def]
    put(folders, "a", session_id="s1")
    put(folders, "b", session_id="s1", parent_trace_id="a", forked_from_step=1)
    put(folders, "c", session_id="s2")
    put(folders, "d", session_id="s2")
    put(folders, "s3", session_id="a")
    with open_store(folders) as store:
        assert store.get("s1").id == "a" and store.get("a").id == "a"
        with pytest.raises(Ambiguous):
            store.get("s2")
        with pytest.raises(NotFound):
            store.get("s4")


def test_filters(folders) -> None:  # type: ignore[no-untyped-def]
    put(folders, "a", agent_name="Claude_Code", session_id="s1", tags=["x", "y"], end={})
    put(folders, "b", agent_name="codex", session_id="s10", project="/home/u/p", end={"status": "failed"})
    put(folders, "c", agent_name="claudeXcode", project="/home/u/p/sub", parent_trace_id="a", forked_from_step=1)
    put(folders, "d", agent_name="d", project="/home/u/pother")
    with open_store(folders) as store:

        def found(**more: object) -> set[str]:
            return set(names(store, Filter(**more)))  # type: ignore[arg-type]

        assert found(agent="claude_") == {"a"} and found(agent="CODE") == {"a", "b", "c"} and found(agent="%") == set()
        assert found(agent_exact="codex") == {"b"}
        assert found(status="failed") == {"b"} and found(status="running") == {"c", "d"}
        assert found(tag="x") == {"a"} and found(tag="X") == set() and found(tag="x,y") == set()
        assert found(session="s1") == {"a", "b"} and found(session="s10") == {"b"}
        assert found(project="/home/u/p") == {"b", "c"} and found(project="/") == {"b", "c", "d"}
        assert found(forks=False) == {"a", "b", "d"}
        assert found(ids=("a", "zz")) == {"a"} and found(ids=()) == set()
        with pytest.raises(BadQuery, match="status"):
            store.traces(Filter(status="done"))
        with pytest.raises(BadQuery, match="sort"):
            store.traces(sort="id")
        with pytest.raises(BadQuery):
            store.traces(sort="started_at; DROP TABLE agent_traces")


def test_order_is_by_instant_whatever_the_spelling_and_ties_by_id(folders) -> None:  # type: ignore[no-untyped-def]
    for name, at in (
        ("utc", "2026-08-16T10:00:00Z"), ("blank", "2026-08-16 09:00:00"), ("plus", "2026-08-16T13:00:00+02:00"),
        ("repair", "2026-08-16T14:00:00+0200"), ("tie", "2026-08-16T12:00:00+02:00"), ("junk", "yesterday"),
    ):  # fmt: skip
        put(folders, name, started_at=at)
    with open_store(folders) as store:
        assert names(store) == ["repair", "plus", "tie", "utc", "blank", "junk"]
        assert names(store, sort="started_at") == ["junk", "blank", "tie", "utc", "plus", "repair"]
        bound = instants.micros("2026-08-16T10:30:00Z")
        assert set(names(store, Filter(since_us=bound))) == {"repair", "plus"}


def test_sorting_and_paging_use_what_is_shown(folders) -> None:  # type: ignore[no-untyped-def]
    put(folders, "a", {"step_number": 1, "tokens_used": 5}, {"step_number": 2, "tokens_used": 6})
    put(folders, "b", {"step_number": 1, "tokens_used": 50}, end={"total_tokens": 3})
    put(
        folders, "c", started_at="2026-01-01T00:00:00Z", end={"ended_at": "2026-01-01T00:01:00Z", "total_cost_usd": 1.5}
    )
    with open_store(folders) as store:
        assert names(store, sort="-tokens") == ["a", "b", "c"]
        assert names(store, sort="-duration")[0] == "c"
        assert names(store, sort="-cost")[0] == "c"
        page = store.traces(sort="agent_name", limit=1, offset=1)
        assert ([t.id for t in page.items], page.total) == (["b"], 3)
        assert len(store.traces(limit=-1).items) == 3 and store.traces(limit=0).items == []
        assert [t.effective_tokens for t in store.iterate(sort="tokens")] == [None, 3, 11]


def test_windows_and_steps_that_are_not_there(folders) -> None:  # type: ignore[no-untyped-def]
    put(folders, "a", *({"step_number": n} for n in (1, 2, 5, 9)))
    put(folders, "b", {"step_number": 3})
    with open_store(folders) as store:
        trace = store.get("a")
        assert [s.step_number for s in store.steps(trace, 2, 5)] == [2, 5]
        assert [s.step_number for s in store.steps(trace, 6)] == [9]
        assert [s.step_number for s in store.steps(trace, None, 1)] == [1]
        assert list(store.steps(trace, 6, 8)) == [] and list(store.steps(trace, 10**12)) == []
        assert (store.count_steps(trace, 2, 5), store.count_steps(trace)) == (2, 4)
        with pytest.raises(NotFound):
            store.step(trace, 3)


def test_the_newest_running_trace_is_no_fork(folders) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Missing):
        open_store(folders)
    put(folders, "done", started_at="2026-08-19T00:00:00Z", end={})
    with open_store(folders) as store:
        assert store.newest_running() is None
    put(folders, "old", started_at="2026-08-16T00:00:00Z")
    put(folders, "new", started_at="2026-08-17T00:00:00+0200")
    put(folders, "fork", started_at="2026-08-18T00:00:00Z", parent_trace_id="old")
    with open_store(folders) as store:
        found = store.newest_running()
        assert found is not None and found.id == "new"


def test_stats_leave_forks_out_of_everything(folders) -> None:  # type: ignore[no-untyped-def]
    put(
        folders,
        "a",
        {"step_number": 1, "tokens_used": 5},
        started_at="2026-08-16T10:00:00+0200",
        end={"ended_at": "2026-08-16T08:00:01Z", "total_cost_usd": 0.5},
    )
    put(folders, "b", agent_name="beta", end={"status": "timeout", "ended_at": "junk"})
    put(folders, "f", {"step_number": 1, "tokens_used": 500}, agent_name="fork", parent_trace_id="a")
    for name in ("a", "f"):
        Appender(folders, dialect="eval").put(
            name, [("eval.result", {"evaluator_type": "rubric", "evaluator_name": "r", "score": 1})]
        )
    with open_store(folders) as store:
        found = store.stats(policies=7)
        assert found == {
            "overall": {"traces": 2, "steps": 1, "evals": 1, "policies": 7, "avgDurationMs": 1000, "avgDurationSample": 1, "totalTokens": 5, "totalCost": 0.5},
            "by_status": {"running": 0, "completed": 1, "failed": 0, "timeout": 1},
            "by_agent": [{"agent_name": "agent", "count": 1, "failed_or_timeout": 0}, {"agent_name": "beta", "count": 1, "failed_or_timeout": 1}],
        }  # fmt: skip


def test_shapes_have_their_keys_in_order(folders) -> None:  # type: ignore[no-untyped-def]
    put(folders, "a", {"step_number": 1, "decision": {"chosen": "x"}})
    with open_store(folders) as store:
        trace = store.get("a")
        assert list(trace.as_item()) == [
            "id",
            "agent_name",
            "agent_version",
            "trigger",
            "status",
            "input",
            "output",
            "started_at",
            "ended_at",
            "total_duration_ms",
            "total_tokens",
            "total_cost_usd",
            "error",
            "tags",
            "metadata",
            "parent_trace_id",
            "forked_from_step",
            "session_id",
            "created_at",
            "step_count",
            "effective_tokens",
        ]
        step = store.step(trace, 1).as_dict(trace.id)
        assert list(step) == [
            "id",
            "trace_id",
            "step_number",
            "step_type",
            "name",
            "input",
            "output",
            "started_at",
            "ended_at",
            "duration_ms",
            "tokens_used",
            "model",
            "error",
            "metadata",
            "parent_step_number",
            "caused_by_step_number",
            "decision",
        ]
        assert list(step["decision"]) == ["id", "step_id", "options", "chosen", "rationale", "confidence", "decided_by"]  # type: ignore[call-overload]
        assert step["decision"]["step_id"] == step["id"]  # type: ignore[index]


def test_columns_that_hold_no_json_read_as_nothing(folders) -> None:  # type: ignore[no-untyped-def]
    put(folders, "a", {"step_number": 1})
    with open_store(folders) as store:
        store.connection.execute("UPDATE agent_trace_steps SET input = '{', output = 'x', metadata = '[1]'")
        store.connection.execute("UPDATE agent_traces SET tags = '{}', metadata = 'null', input = ''")
        trace = store.get("a")
        assert (trace.tags, trace.metadata, trace.input) == ([], {}, {})
        step = store.step(trace, 1)
        assert (step.input, step.output, step.metadata) == ({}, None, {})


@given(st.text(), st.integers(1, 10**9))
def test_ids_are_made_of_the_alphabet(name: str, number: int) -> None:
    made = model.step_id(name, number)
    assert made.startswith("stp_") and len(made) == 16 and made == model.step_id(name, number)


@given(st.datetimes(timezones=st.just(__import__("datetime").timezone.utc)))
def test_the_quick_way_to_read_a_time_agrees_with_the_slow_one(moment) -> None:  # type: ignore[no-untyped-def]
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    assert instants.micros(text) == instants.micros(text.replace("Z", "+00:00"))


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("2026-08-16", None), ("2026-08-16T10:00:00Z", 1_786_874_400_000_000), ("2026-08-16 12:00:00+0200", 1_786_874_400_000_000),
        ("90 s", 1_799_999_910_000_000), ("2H", 1_799_992_800_000_000), ("1.5d", 1_799_870_400_000_000), ("10ms", 1_799_999_999_990_000),
    ],
)  # fmt: skip
def test_since(text: str, us: int | None) -> None:
    found = instants.since(text, 1_800_000_000_000_000)
    assert us is None or found == us


@pytest.mark.parametrize("text", ["", "2026-99", "2026-13-01", "soon", "5", "5y", "-5d", "5 d ago", "2026-08-16T99:00"])
def test_since_that_means_nothing(text: str) -> None:
    with pytest.raises(BadQuery):
        instants.since(text, 0)
