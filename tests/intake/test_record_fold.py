"""What a recording says it applied is what the store has: whatever is told, in whatever order."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from record_rig import feed, opened

IDS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(0, 4)
SOME = st.sampled_from(
    [None, "", "x", 0, -1, 1.5, True, [], {}, [1], {"a": {"b": [1]}}, "2026-01-01T00:00:00Z", '{"a":1}']
)
FIELDS = st.fixed_dictionaries({}, optional=dict.fromkeys(("input", "output", "error", "metadata", "tags", "started_at", "ended_at", "duration_ms", "tokens_used", "model", "agent_version", "session_id", "trigger", "total_tokens", "total_cost_usd", "decision", "snapshot", "context_window", "options", "confidence", "decided_by", "parent_step"), SOME))  # fmt: skip
EVENTS = st.one_of(
    st.builds(lambda i, f: {**f, "type": "trace_start", "trace_id": i, "agent_name": "bot"}, IDS, FIELDS),
    st.builds(
        lambda i, n, k, f: {**f, "type": k, "trace_id": i, "step_number": n, "step_type": "tool_call", "name": "Bash", "chosen": "x"},
        IDS, NUMBERS, st.sampled_from(["step", "step_start", "step_end", "decision", "snapshot"]), FIELDS,
    ),
    st.builds(lambda i, s, f: {**f, "type": "trace_end", "trace_id": i, **s}, IDS, st.sampled_from([{}, {"status": "ok"}, {"status": "odd"}, {"status": "running"}]), FIELDS),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(events=st.lists(EVENTS, max_size=10), cut=st.integers(0, 10), leave=st.booleans())
def test_the_store_has_what_was_applied(events: list[dict[str, object]], cut: int, leave: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        streams = [events[:cut], events[cut:]]
        statuses: dict[str, str] = {}
        numbers: dict[str, set[int]] = {}
        for stream in streams:
            fed = feed(Path(folder), list(stream), leave_open=leave)
            assert fed.recording.lost == 0
            for trace in fed.recording.traces.values():
                statuses[trace.id] = trace.status
                numbers[trace.id] = trace.numbers
        if not statuses:
            return
        with opened(Path(folder)) as store:
            assert store.problems() == []
            assert {t.id: t.status for t in store.iterate()} == statuses
            assert {t.id: {s.step_number for s in store.steps(t)} for t in store.iterate()} == numbers
