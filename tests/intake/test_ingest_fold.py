"""Every trace that passes the check is in the store afterwards, with all its steps; one that does not leaves nothing."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from record_rig import opened

from guardhook.core.folders import explicit
from guardhook.intake.documents import Item
from guardhook.intake.ingest import Ingest
from guardhook.intake.ingest_check import check

ODD = st.sampled_from(
    [None, "", "x", "\x1b", 0, -1, 2, 1.5, 1e200, 1 << 70, True, [], {}, [1], {"a": 1}, "2026-01-01T00:00:00Z", "ok"]
)
WORDS = ("model", "started_at", "ended_at", "duration_ms", "tokens_used", "parent_step", "caused_by_step_number", "metadata", "error", "input", "output", "snapshot")  # fmt: skip
DECISION = st.fixed_dictionaries({"chosen": st.just("x")}, optional={"confidence": st.sampled_from([0, 1, 0.5, 2]), "decided_by": ODD, "rationale": ODD, "options": st.sampled_from([[], [{"option": "a"}], [{"option": 1}], {}])})  # fmt: skip
STEP = st.fixed_dictionaries(
    {"step_number": st.integers(0, 6), "step_type": st.just("tool_call"), "name": st.just("Bash")},
    optional={**dict.fromkeys(WORDS, ODD), "decision": DECISION},
)
TRACE = st.fixed_dictionaries(
    {"agent_name": st.just("bot"), "steps": st.lists(STEP, max_size=4)},
    optional={
        "status": st.sampled_from(["running", "failed", "completed", "timeout", "odd"]), "trigger": st.sampled_from(["api", 5]), "tags": st.sampled_from([[], ["a"], "a"]),
        "evals": st.sampled_from([[], [{"evaluator_type": "rubric", "evaluator_name": "e", "score": 1}], [{"score": 1}], 5]),
        **dict.fromkeys(("id", "parent_trace_id", "forked_from_step", "total_tokens", "total_cost_usd", "total_duration_ms", "ended_at", "started_at", "metadata", "input", "output", "error", "session_id"), ODD),
    },
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(traces=st.lists(TRACE, max_size=4))
def test_what_passes_is_stored(traces: list[dict[str, object]]) -> None:
    good = copy.deepcopy([t for t in traces if not check(t).count])
    with tempfile.TemporaryDirectory() as folder:
        with Ingest(explicit(folder)) as work:
            for place, trace in enumerate(traces):
                work.take(Item(place, None, trace))
        report = work.report
        assert (report.read, report.traces, report.failures) == (len(traces), len(good), 0)
        assert (report.faults > 0) == (len(good) < len(traces))
        if not good:
            assert not (Path(folder) / "journal").exists()
            return
        with opened(Path(folder)) as store:
            assert store.problems() == []
            found = {t.id: t for t in store.iterate()}
            assert set(found) == set(report.inserted)
            for name, given_ in zip(report.inserted, good, strict=True):
                steps = given_["steps"]
                assert isinstance(steps, list)
                assert [s.step_number for s in store.steps(found[name])] == sorted(s["step_number"] for s in steps)
                status = given_.get("status") or ("completed" if given_.get("ended_at") else "running")
                assert found[name].status == status
