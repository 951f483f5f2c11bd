"""What lines of the journal become: missing, repeated and unreadable ones, traces that programs told of, and whatever else they hold."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rollout_rig import bash, brief, data, loaded, prompt, rendered, told, types
from store_rig import SESSION, Event, Journal, event, said

from guardhook.journal import line
from guardhook.rollout.lines import fitting
from guardhook.rollout.load import Gap, load_lines
from guardhook.rollout.options import Options
from guardhook.rollout.render import Renderer, lines_of, render_lines
from guardhook.rollout.runs import RunRef, find
from guardhook.rollout.simulate import simulate
from guardhook.rollout.state import State
from guardhook.rollout.turns import by_turn
from guardhook.store import Appender
from guardhook.store.lines import Raw

# --- what is missing -------------------------------------------------------------------------------------------------


def test_missing_tickets_and_gap_lines_become_markers(journal: Journal, tmp_path: Path) -> None:
    journal.add(prompt(), bash("pre_tool", "1"))
    journal.add(bash("post_tool", "1"), seq=6)
    journal.add({"reason": "torn", "bytes": 12}, type=line.GAP)
    journal.add(event("stop"))
    events = rendered(journal)
    assert [(e["seq"], e["type"]) for e in events[3:7]] == [
        (3, "recorder.drop_detected"), (6, "tool.call.completed"), (7, "recorder.drop_detected"), (8, "llm.turn.completed"),
    ]  # fmt: skip
    first, second = told(events, "recorder.drop_detected")
    assert first == {
        "step": 1,
        "dropped_event_id": "3",
        "dropped_event_type": "unknown",
        "dropped_seq": 3,
        "reason": "missing",
        "count": 3,
    }
    assert (second["reason"], second["count"], second["step"]) == ("torn", 1, 1)
    assert loaded(journal, tmp_path / "r").gaps == [Gap(3, 5, True), Gap(7, 7, True)]


def test_lines_that_can_t_be_read_are_missing(journal: Journal, tmp_path: Path) -> None:
    journal.add(prompt(), bash("pre_tool", "1"))
    path = journal.path()
    path.write_bytes(path.read_bytes() + b'{"ts":"broken\n')
    journal.seq[path.stem] += 1
    journal.add(bash("post_tool", "1"))
    assert data(rendered(journal), "recorder.drop_detected")["count"] == 1
    assert loaded(journal, tmp_path / "r").gaps == [Gap(3, 3, True)]


def test_a_line_that_can_t_be_told_is_missing_and_the_others_are_there(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.add(prompt(), bash("pre_tool", "1"), event("notification", message="m"), bash("post_tool", "1"))

    def fails(*_: object) -> None:
        raise RuntimeError

    from guardhook.rollout import hooks

    monkeypatch.setitem(hooks._EVENTS, "notification", fails)  # type: ignore[arg-type]
    events = rendered(journal)
    assert [k for k, _ in types(events)][-2:] == ["recorder.drop_detected", "tool.call.completed"]
    assert data(events, "recorder.drop_detected")["reason"] == "unreadable"
    assert loaded(journal, tmp_path / "r").gaps == [Gap(3, 3, True)]


def test_repeated_tickets_are_passed_over(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1"))
    before = rendered(journal)
    path = journal.path()
    path.write_bytes(path.read_bytes() * 2)
    assert rendered(journal) == before


def test_the_second_run_of_a_session(journal: Journal, tmp_path: Path) -> None:
    second = line.run_id("claude-code", SESSION, 2)
    journal.add(prompt("one"))
    journal.add(event("session_end"), closes=True)
    journal.add(event("session_start", source="resume"), run=second, segment=2, opens=True)
    journal.add(prompt("two"), bash("pre_tool", "1"), run=second, segment=2)
    first, then = rendered(journal, line.run_id("claude-code", SESSION, 1)), rendered(journal, second)
    assert (data(first, "run.started")["prompt"], data(then, "run.started")["prompt"]) == ("one", "two")
    assert types(first)[-1][0] == "run.completed" and data(then, "run.started")["session"]["source"] == "resume"
    assert {e["data"]["conversation_id"] for e in [*first, *then]} == {SESSION}  # type: ignore[index]


# --- recorded traces --------------------------------------------------------------------------------------------------


def test_a_trace_that_a_program_told_of(journal: Journal, tmp_path: Path) -> None:
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": "bot", "input": {"prompt": "sum"}}),
        ("trace.step", {"step_number": 1, "step_type": "llm_call", "name": "m", "model": "m", "tokens_used": 9, "metadata": {"cost_usd": 0.5}, "output": {"content": "ok", "tool_calls": [{"id": "c", "name": "add", "arguments": {"a": 1}}]}}),
        ("trace.step_start", {"step_number": 2, "step_type": "tool_call", "name": "add", "input": {"a": 1}, "metadata": {"call": "c"}}),
        ("trace.step", {"step_number": 3, "step_type": "retrieval", "name": "look", "input": "q", "output": "r"}),
        ("trace.step_end", {"step_number": 2, "output": 3, "duration_ms": 4}),
        ("trace.step", {"step_number": 4, "step_type": "output", "name": "answer", "output": {"text": "3"}}),
        ("trace.end", {"status": "completed", "output": {"text": "3"}, "total_cost_usd": 0.5}),
    ]  # fmt: skip
    Appender(journal.folders).put("t1", lines, opens=True, closes=True)
    events = rendered(journal, "t1")
    assert brief(events) == [
        "0 run.started", "1 llm.turn.requested", "1 usage.delta", "1 llm.turn.completed", "1 tool.call.started", "1 trace.step", "1 trace.step.completed",
        "1 tool.call.completed", "2 llm.turn.completed", "2 assistant.message", "2 run.step.completed", "2 run.completed",
    ]  # fmt: skip
    assert data(events, "run.started")["prompt"] == "sum" and data(events, "usage.delta")["turn_cost_usd"] == 0.5
    assert (
        data(events, "run.completed")["cost_totals"]["cost_usd_total"] == 0.5
        and data(events, "run.completed")["output"] == "3"
    )
    result = simulate(loaded(journal, tmp_path / "r", "t1").events)
    assert result.matched and result.detail["announcements"] == {"independent": 1, "synthetic": 0}


def test_a_session_log_s_usage_and_later_prompts(journal: Journal, tmp_path: Path) -> None:
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": "claude-code", "input": {"prompt": "p"}, "metadata": {"follow_up_prompts": ["and then?"]}}),
        ("trace.step", {"step_number": 1, "step_type": "thought", "name": "t", "tokens_used": 5}),
        ("trace.step_start", {"step_number": 2, "step_type": "tool_call", "name": "Bash", "tokens_used": 7, "metadata": {"call": "c"}}),
        ("trace.step_end", {"step_number": 2, "output": "x"}),
        ("trace.end", {"status": "failed", "error": "gone", "total_tokens": 99}),
    ]  # fmt: skip
    Appender(journal.folders).put("t1", lines, opens=True, closes=True)
    events = rendered(journal, "t1")
    assert data(events, "run.started")["follow_up_prompts"] == ["and then?"]
    assert [d["turn_usage"] for d in told(events, "usage.delta")] == [{"total_tokens": 5}, {"total_tokens": 7}]
    failed = data(events, "run.failed")
    assert (failed["error"], failed["usage_totals"]["total_tokens"]) == ("gone", 12)
    assert simulate(loaded(journal, tmp_path / "r", "t1").events).matched


def test_a_trace_told_in_parts_of_any_order(journal: Journal, tmp_path: Path) -> None:
    at = 1_790_000_000_000_000

    def part(name: str, begin: int, end: int, **more: object) -> tuple[str, dict[str, object]]:
        return "trace.part", {
            "part": name,
            "role": "step",
            "step_type": "tool_call",
            "name": name,
            "at": at + begin,
            "ended": at + end,
            "trace": {"agent": "bot"},
            **more,
        }

    parts = [
        part("root", 0, 90, role="root", step_type="thought"), part("p", 1, 1, role="prompt", text="do it"),
        part("ask", 5, 8, step_type="llm_call", output="hm"), part("read", 10, 30, output="a"), part("write", 20, 25, output="b"),
        part("e", 40, 40, role="event", event="notification", text="note"),
    ]  # fmt: skip
    seen = []
    for name, order in (("a", parts), ("b", [*reversed(parts), parts[0]])):
        Appender(journal.folders, dialect="otel").put(name, order, opens=True)
        events = rendered(journal, name)
        seen.append([(e["type"], e["ts"], told([e], str(e["type"]))[0].get("tool")) for e in events])
        assert simulate(loaded(journal, tmp_path / name, name).events).matched
    assert seen[0] == seen[1]
    assert [k for k, _, _ in seen[0]] == [
        "run.started", "llm.turn.requested", "llm.turn.completed", "llm.turn.completed", "tool.call.started", "llm.turn.completed", "tool.call.started",
        "tool.call.completed", "tool.call.completed", "hook.unknown", "run.completed",
    ]  # fmt: skip


# --- any session -----------------------------------------------------------------------------------------------------

_CALLS = st.sampled_from(["1", "2", "3", None])
_EVENTS = st.one_of(
    st.builds(lambda n, c, a, v: bash(n, c, agent=a, verdict=v), st.sampled_from(["pre_tool", "permission_request", "permission_denied", "post_tool", "post_tool_failure"]), _CALLS, st.sampled_from([None, "a1"]), st.sampled_from([None, said("deny"), said("require_review", exit=0), said("allow", None), {**said("deny"), "cause": "internal"}])),
    st.sampled_from(["user_prompt", "stop", "session_start", "session_end", "notification", "compact", "other"]).map(lambda n: event(n, prompt="p", last_assistant_message="m")),
    st.builds(lambda n, r: event(n, dialect="claude-code", request_id=r, token_usage={"input_tokens": 1}), st.sampled_from(["model_request", "model_response"]), st.sampled_from(["r1", "r2"])),
    st.builds(lambda n, m: event(n, agent="a1", last_assistant_message=m), st.sampled_from(["subagent_start", "subagent_stop"]), st.sampled_from([None, "m"])),
    st.just(event("other", native="StopFailure", error="e")),
)  # fmt: skip
EVERYTHING = Options(
    detect_anti_patterns=True, trace_tool_decisions=True, trace_hook_mutations=True, error_chain_enabled=True, capture_request_envelope=True,
    context_window_snapshot_enabled=True, cost_anomaly_detection_enabled=True, audit_trail_enabled=True,
)  # fmt: skip


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_EVENTS, st.integers(1, 2)), max_size=25), st.booleans())
def test_whatever_comes_can_be_loaded_and_rendered_piece_by_piece(
    tmp_path_factory: pytest.TempPathFactory, given_: list[tuple[Event, int]], everything: bool
) -> None:
    journal = Journal(tmp_path_factory.mktemp("any") / "gh")
    journal.add(prompt())
    for one, more in given_:
        journal.add(one, seq=journal.seq[journal.path().stem] + more)
    ref = find(journal.folders, SESSION)
    options = EVERYTHING if everything else Options()
    renderer = Renderer(ref, options)
    whole = []
    for item in lines_of(journal.folders, ref):
        whole.extend(renderer.feed(item))
    whole.extend(renderer.finish())
    pieces = []
    state = State()
    for item in lines_of(journal.folders, ref):
        renderer = Renderer(ref, options, msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=State))
        pieces.extend(renderer.feed(item))
        renderer.finish()
        state = renderer.state
    pieces.extend(Renderer(ref, options, state).finish())
    assert pieces == whole
    found = load_lines((fitting(e) or b"" for e in whole), "any")
    assert all(g.declared for g in found.gaps)
    result = simulate(found.events, found.gaps)
    assert result.events_replayed == len(found.events)


# --- lines of any kind -------------------------------------------------------------------------------------------------

_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)  # fmt: skip
_FIELDS = [
    "call",
    "agent",
    "tool",
    "kind",
    "session",
    "dialect",
    "client",
    "native_event",
    "cwd",
    "redacted",
    "cut",
    "stripped",
    "canary",
    "verdict",
]
_INNER = [
    "prompt", "tool_input", "tool_response", "error", "llm_request", "llm_response", "token_usage", "request_id", "reason", "tool_calls", "duration_ms",
    "last_assistant_message", "notification_type", "status", "agent_type",
]  # fmt: skip
_STEPS = ["step_number", "step_type", "name", "input", "output", "metadata", "tokens_used", "duration_ms", "status", "part", "role", "at", "ended", "text", "trace", "error"]  # fmt: skip
_NAMES = ["user_prompt", "pre_tool", "post_tool", "stop", "session_end", "model_request", "model_response", "permission_request", "other", "compact", "notification", "nonsense"]  # fmt: skip
_HOOKS = st.builds(
    lambda name, fields, inner, native: (line.RECEIVED, {"dialect": "claude-code", "native_event": native, **fields, "event": name, "payload": inner}),
    st.sampled_from(_NAMES), st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=5), st.dictionaries(st.sampled_from(_INNER), _JSON, max_size=6),
    st.sampled_from(["PostToolBatch", "StopFailure", "X"]),
)  # fmt: skip
_TOLD = st.builds(
    lambda kind, fields, more: (kind, {"trace": "t", "event": {**more, **fields}}),
    st.sampled_from(["trace.start", "trace.step", "trace.step_start", "trace.step_end", "trace.decision", "trace.end", "trace.part", "trace.x", "fork.start"]),
    st.dictionaries(st.sampled_from(_STEPS), _JSON, max_size=4),
    st.fixed_dictionaries({"agent_name": st.just("a"), "step_number": st.integers(1, 3), "step_type": st.sampled_from(["tool_call", "llm_call", "output", "thought"]), "name": st.just("n"), "part": st.text(min_size=1, max_size=2), "role": st.sampled_from(["step", "root", "prompt", "event"]), "at": st.integers(1, 10**15)}),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(_HOOKS, _TOLD, st.tuples(st.sampled_from([line.GAP, line.NOTE, "eval.x"]), st.dictionaries(st.text(max_size=3), _JSON, max_size=2))), max_size=12))  # fmt: skip
def test_whatever_lines_hold_the_rollout_can_be_loaded(given_: list[tuple[str, dict[str, object]]]) -> None:
    ref = RunRef("run_1", "trc_1", None, None, None, "2026-01-01T00:00:00Z", None, 1, 99, "key", True)
    raw = [
        Raw("2026-01-01T00:00:00.000001Z", n, kind, {**data_, "run": "run_1"})
        for n, (kind, data_) in enumerate(given_, 1)
    ]
    events = list(render_lines(raw, ref, EVERYTHING))
    assert not [d for d in told(events, "recorder.drop_detected") if d["reason"] == "unreadable"]
    if events:
        found = load_lines((fitting(e) or b"" for e in events), "any")
        assert len(found.events) == len(events)
        simulate(found.events, found.gaps)
    for turn in by_turn(events, "run_1"):
        load_lines((fitting(e) or b"" for e in turn.events), "turn")
