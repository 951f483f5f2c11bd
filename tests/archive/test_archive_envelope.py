"""The envelope: where each fact comes from, what wins, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from archive_rig import RUN, happened
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook import __version__
from guardhook.archive import plain, reader, times
from guardhook.archive.envelope import build_recording_envelope, persist_recording
from guardhook.archive.errors import (
    IndeterminateRunFactError,
    MissingMemberError,
    UnknownFormatError,
    UnreadableError,
    UnsupportedPrivacyModeError,
)
from guardhook.archive.facts import Capture
from guardhook.archive.packing import is_packed_recording, pack_recording
from guardhook.archive.source import newest

CHAT = (
    ("run.started", {"conversation_id": "s-1", "prompt": "hello", "session": {"harness": "codex", "harness_version": "0.171"}}),
    ("assistant.message", {"conversation_id": "s-1", "content": "hi"}),
    ("run.waiting_for_user", {"conversation_id": "s-1"}),
)  # fmt: skip
ENDED = (*CHAT, ("run.completed", {"conversation_id": "s-1"}))
LIVE = Capture(RUN, session="s-1")
WHOLE: dict[str, Any] = {"complete": True, "dropped_events": 0}


def build(recording: Any, **run: Any) -> dict[str, Any]:
    return build_recording_envelope(recording, run=run)


def facts_of(recording: Any, capture: Capture | None = LIVE, **run: Any) -> dict[str, Any]:
    found = build_recording_envelope(recording, run=run, capture=capture)["run"]
    assert isinstance(found, dict)
    return found


def refused(field: str, recording: Any, capture: Capture | None = None, **run: Any) -> str:
    with pytest.raises(IndeterminateRunFactError) as told:
        build_recording_envelope(recording, run=run, capture=capture)
    assert (told.value.field, told.value.code) == (field, "ERR_INDETERMINATE_RUN_FACT")
    return told.value.message


def test_1_round_trip_without_nulls() -> None:
    envelope = build(happened(*ENDED), **WHOLE)
    assert plain.loads(plain.pretty(envelope)) == envelope
    without = {k: v for k, v in envelope.items() if k != "recording"}
    assert "null" not in plain.text(without)
    assert reader.open_document(plain.pretty(envelope)).recording == envelope["recording"]


def test_2_format_producer_and_policy() -> None:
    envelope = build(happened(*ENDED), **WHOLE)
    assert list(envelope) == ["format", "producer", "run", "configuration", "privacy", "recording"]
    assert envelope["format"] == "guardhook.recording.v1"
    assert envelope["producer"] == {"guardhookVersion": __version__, "harness": "codex", "harnessVersion": "0.171"}
    assert envelope["privacy"] == {"mode": "full", "policyId": "guardhook.privacy.full.v1"}
    assert build(happened(("run.started", {})), **WHOLE, started_at="2026-01-01")["producer"]["harness"] == "unknown"
    named = build_recording_envelope(happened(*ENDED), run=WHOLE, privacy={"policy_id": "acme.v2"})
    assert named["privacy"] == {"mode": "full", "policyId": "acme.v2"}
    for bad in ("", 3, None):
        with pytest.raises(TypeError):
            build_recording_envelope(happened(*ENDED), run=WHOLE, privacy={"policy_id": bad})


def test_the_version_is_known_in_an_installation() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", __version__)


def test_3_run_id_comes_from_events_only() -> None:
    recording = happened(*ENDED)
    recording["snapshot"] = {"run_id": "run_other", "trace": {"id": "trc_1", "session_id": "s"}}
    assert facts_of(recording)["runId"] == RUN
    recording = happened(*ENDED, run=None)
    recording["snapshot"] = {"run_id": "run_other"}
    refused("runId", recording, **WHOLE)


def test_4_no_run_id_and_no_events() -> None:
    assert "empty" not in refused("runId", happened(*ENDED, run=None), **WHOLE)
    assert "empty" in refused("runId", happened(), **WHOLE)


def test_5_two_run_ids() -> None:
    recording = happened(*ENDED)
    recording["events"][2]["data"]["run_id"] = "run_b"
    said = refused("runId", recording, **WHOLE)
    assert RUN in said and "run_b" in said
    assert build(recording, **WHOLE, run_id="run_c")["run"]["runId"] == "run_c"


@pytest.mark.parametrize(
    ("key", "field", "stated"), [("session_id", "sessionId", "session_id"), ("principal", "principal", "principal"), ("tenant_id", "tenant", "tenant")]
)  # fmt: skip
def test_6_two_names(key: str, field: str, stated: str) -> None:
    recording = happened(("run.started", {key: "one"}), ("assistant.message", {key: "two"}))
    assert "one, two" in refused(field, recording, **WHOLE)
    assert build(recording, **WHOLE, **{stated: "three"})["run"][field] == "three"
    refused(field, recording, **WHOLE, **{stated: ""})
    del recording["events"][1]["data"][key]
    assert build(recording, **WHOLE)["run"][field] == "one"


def test_7_nobody_is_taken_for_the_principal() -> None:
    run = build(happened(*ENDED), **WHOLE)["run"]
    assert "principal" not in run and "tenant" not in run and run["sessionId"] == "s-1"
    told = happened(("run.started", {"conversation_id": "trc_1"}), ("run.completed", {"conversation_id": "trc_1"}))
    assert "sessionId" not in facts_of(told, Capture(RUN, session=None))


def test_8_empty_ids_are_no_ids() -> None:
    recording = happened(*ENDED)
    recording["events"][1]["data"]["run_id"] = ""
    recording["events"][1]["data"]["conversation_id"] = ""
    assert build(recording, **WHOLE)["run"]["runId"] == RUN
    refused("runId", happened(*ENDED), **WHOLE, run_id="")


def test_9_complete() -> None:
    refused("complete", happened(*CHAT), LIVE)
    for bad in (1, "true", None, 0):
        with pytest.raises(TypeError):
            build(happened(*ENDED), complete=bad, dropped_events=0)
    run = facts_of(happened(*ENDED))
    assert run["complete"] is True and run["basis"]["complete"] == "session-end-event"
    run = facts_of(happened(*ENDED), complete=False)
    assert run["complete"] is False and run["basis"]["complete"] == "stated" and "endedAt" not in run
    refused("complete", happened(*ENDED), LIVE._replace(open=True))
    assert facts_of(happened(*ENDED), LIVE._replace(open=True), complete=True)["complete"] is True


def test_10_a_stop_ends_an_answer_not_a_session() -> None:
    refused("complete", happened(*CHAT), LIVE)
    run = facts_of(happened(*CHAT), LIVE._replace(close_on="stop"))
    assert run["complete"] is True and run["basis"]["complete"] == "stop-event"


def test_11_end() -> None:
    assert "endedAt" not in facts_of(happened(*CHAT), complete=False)
    assert facts_of(happened(*CHAT), complete=False, ended_at="2026-08-17")["endedAt"] == "2026-08-17T00:00:00.000Z"
    run = facts_of(happened(*CHAT), complete=True)
    assert run["endedAt"] == "2026-08-16T10:00:02.000Z" and run["basis"]["endedAt"] == "last-event"
    run = facts_of(happened(*ENDED))
    assert run["endedAt"] == "2026-08-16T10:00:03.000Z" and run["basis"]["endedAt"] == "session-end-event"


def test_12_nobody_counted_the_losses_of_a_bare_recording() -> None:
    refused("droppedEvents", happened(*ENDED))
    refused("droppedEvents", happened(*ENDED), LIVE._replace(accounted=False))
    assert build(happened(*ENDED), dropped_events=0)["run"]["droppedEvents"] == 0
    for bad in (-1, 1.5, True, "3", math.nan, None):
        refused("droppedEvents", happened(*ENDED), dropped_events=bad)


def many(count: int) -> list[tuple[str, dict[str, Any]]]:
    return [("run.started", {}), *[("hook.notification", {"n": n}) for n in range(count - 2)], ("run.completed", {})]


def test_13_live_capture_and_the_newest_events() -> None:
    run = facts_of(happened(*many(25)))
    assert (run["droppedEvents"], run["firstRetainedEventIndex"]) == (0, 0)
    recording = happened(*many(25))
    recording["events"] = newest(recording["events"], 10)
    refused("startedAt", recording, LIVE)
    for more in ({"started_at": "2026-01-01"}, {}):
        capture = LIVE if more else LIVE._replace(session_started_at="2026-01-01T00:00:00Z")
        run = facts_of(recording, capture, **more)
        assert (run["droppedEvents"], run["firstRetainedEventIndex"]) == (15, 15)
        assert run["startedAt"] == "2026-01-01T00:00:00.000Z"
        assert run["basis"]["startedAt"] == ("stated" if more else "session-start-event")
        assert (run["runId"], run["basis"]["runId"]) == (RUN, "store")


def test_14_a_hole_in_the_middle_does_not_move_the_start() -> None:
    run = facts_of(happened(*many(8), seqs=[0, 1, 2, 3, 4, 8, 9, 10]))
    assert run["droppedEvents"] == 3 and run["basis"]["startedAt"] == "first-event"
    refused("startedAt", happened(*many(3), seqs=[2, 3, 4]), LIVE)


def test_15_a_marker_and_its_hole_count_once() -> None:
    events = many(6)
    events[3] = ("recorder.drop_detected", {"dropped_seq": 3, "count": 4})
    recording = happened(*events, seqs=[0, 1, 2, 3, 7, 8])
    run = facts_of(recording)
    assert (run["droppedEvents"], run["firstRetainedEventIndex"]) == (4, 0)
    events[0] = ("recorder.drop_detected", {"dropped_seq": 0, "count": 1})
    refused("startedAt", happened(*events, seqs=[0, 1, 2, 3, 7, 8]), LIVE)
    at_end = [*many(2), ("recorder.drop_detected", {"dropped_seq": 2, "count": 9})]
    assert facts_of(happened(*at_end))["droppedEvents"] == 9


@settings(max_examples=80, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_kept_and_lost_events_fill_all_positions(kept: list[bool]) -> None:
    seqs = [n for n, is_kept in enumerate(kept) if is_kept]
    if not seqs:
        return
    recording = happened(*[("hook.notification", {})] * len(seqs), seqs=seqs)
    run = facts_of(recording, complete=True, started_at=0)
    after_first = sum(1 for n in range(seqs[0], seqs[-1]) if n not in seqs)
    assert run["firstRetainedEventIndex"] + len(seqs) + after_first == seqs[-1] + 1
    assert run["droppedEvents"] == run["firstRetainedEventIndex"] + after_first


def test_16_nothing_is_said_of_where_a_bare_recording_begins() -> None:
    assert "firstRetainedEventIndex" not in build(happened(*ENDED), dropped_events=0)["run"]
    assert build(happened(*ENDED), dropped_events=0, first_retained_event_index=3, started_at=0)["run"]["firstRetainedEventIndex"] == 3  # fmt: skip
    refused("firstRetainedEventIndex", happened(*ENDED), dropped_events=0, first_retained_event_index=-1)


@pytest.mark.parametrize(
    "value",
    ["soon", "2026-01-01T00:00:00", True, 1e300, math.nan, math.inf, "1", "5/6/26", "", None, datetime(2026, 1, 1), "2026-02-30", "2026-01-01T25:00:00Z",
     "2026-01-01T00:00:00+99:00", "0000-01-01", "2026-01-01\n", "٢٠٢٦-01-01", [2026], -1e14],
)  # fmt: skip
def test_17_times_that_say_nothing(value: object) -> None:
    refused("startedAt", happened(*ENDED), **WHOLE, started_at=value)
    refused("endedAt", happened(*ENDED), **WHOLE, ended_at=value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"), (1.9, "1970-01-01T00:00:00.001Z"), ("2026-01-01", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T02:00:00.5+02:00", "2026-01-01T00:00:00.500Z"), ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123Z"),
        (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2026-01-01T00:00:00.000Z"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "1969-12-31T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"),
    ],
)  # fmt: skip
def test_18_stated_times(value: object, text: str) -> None:
    assert build(happened(*ENDED), **WHOLE, started_at=value)["run"]["startedAt"] == text


@given(st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999))
def test_times_come_back(ms: int) -> None:
    assert times.of_text(times.text(ms)) == ms == times.stated(ms)


def test_19_the_first_event_that_has_a_time() -> None:
    recording = happened(*ENDED)
    recording["events"][0]["ts"] = "yesterday"
    assert build(recording, **WHOLE)["run"]["startedAt"] == "2026-08-16T10:00:01.000Z"
    for one in recording["events"]:
        one.pop("ts")
    refused("startedAt", recording, **WHOLE)
    assert "firstEventAt" not in build(recording, **WHOLE, started_at=0)["run"]


def test_20_an_end_before_the_start() -> None:
    refused("endedAt", happened(*ENDED), **WHOLE, started_at="2026-01-02", ended_at="2026-01-01")
    recording = happened(*ENDED)
    recording["events"][-1]["ts"] = "2026-08-16T09:00:00Z"
    run = build(recording, **WHOLE)["run"]
    assert "endedAt" not in run and run["basis"]["endedAt"] == "clock-went-back"


class Spy:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def write(self, envelope: dict[str, object]) -> dict[str, str]:
        self.seen.append(envelope)
        return {"id": "1"}


@pytest.mark.parametrize("mode", ["redacted", "structure-only", "", "Full", None, 3])
def test_21_other_privacy_modes(mode: object) -> None:
    spy = Spy()
    with pytest.raises(UnsupportedPrivacyModeError) as told:
        persist_recording(happened(*ENDED), sink=spy, run=WHOLE, privacy={"mode": mode})
    assert told.value.mode == mode and told.value.code == "ERR_UNSUPPORTED_PRIVACY_MODE" and not spy.seen
    assert persist_recording(happened(*ENDED), sink=spy, run=WHOLE, privacy={"mode": "full"}) == {"id": "1"}
    assert len(spy.seen) == 1


def test_22_two_faults_at_once() -> None:
    with pytest.raises(UnsupportedPrivacyModeError):
        build_recording_envelope(happened(*ENDED), privacy={"mode": "x"})
    with pytest.raises(TypeError):
        build_recording_envelope(happened(*ENDED), run={"complete": 1}, privacy={"mode": "x"})
    with pytest.raises(TypeError):
        build_recording_envelope([], run={"complete": True}, privacy={"mode": "x"})
    refused("droppedEvents", happened(*ENDED, run=None), first_retained_event_index=-1)
    refused("firstRetainedEventIndex", happened(*ENDED, run=None), dropped_events=0, first_retained_event_index=-1)
    refused("runId", happened(*ENDED, run=None), dropped_events=0, session_id="", started_at="x")
    refused("sessionId", happened(*ENDED), dropped_events=0, session_id="", started_at="x")
    refused("startedAt", happened(*ENDED), dropped_events=0, started_at="x", ended_at="y")


def test_23_configuration() -> None:
    assert "configuration" not in build(happened(("run.started", {})), **WHOLE)
    found = build_recording_envelope(happened(*ENDED), run=WHOLE, configuration={"agentId": "a"})["configuration"]
    assert found == {"agentId": "a", "manifest": {"dialect": "codex"}}
    found = build_recording_envelope(happened(*ENDED), run=WHOLE, configuration={"manifest": {}})["configuration"]
    assert found == {"manifest": {}}
    with pytest.raises(TypeError):
        build_recording_envelope(happened(*ENDED), run=WHOLE, configuration={"env": {}})


SECRET = "hunter2/../secret value"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["cwd", "harness", "harness_version", "model", "source", "permission_mode"]), st.sampled_from(["policy_set", "prompt", "incomplete"]))  # fmt: skip
def test_24_no_values_in_what_is_told_of_the_configuration(inner: str, outer: str) -> None:
    event = {"session": {inner: SECRET}, outer: [SECRET] if outer == "incomplete" else SECRET}
    envelope = build(happened(("run.started", event)), **WHOLE)
    del envelope["recording"]
    assert "hunter2" not in json.dumps(envelope)


@pytest.mark.parametrize("value", [{1: 2}, (1,), {3}, b"x", math.nan, datetime(2026, 1, 1)])
def test_25_what_is_no_json_is_refused(value: object) -> None:
    spy = Spy()
    recording = happened(*ENDED)
    recording["events"][1]["data"]["extra"] = value
    with pytest.raises(TypeError):
        persist_recording(recording, sink=spy, run=WHOLE)
    cycle = happened(*ENDED)
    cycle["snapshot"]["self"] = cycle
    with pytest.raises(TypeError):
        persist_recording(cycle, sink=spy, run=WHOLE)
    assert not spy.seen


def test_26_readers() -> None:
    envelope = build(happened(*ENDED), **WHOLE)
    for format in ("guardhook.recording.v2", "agentfootprint.recording.v1", 3):
        with pytest.raises(UnknownFormatError):
            reader.opened({**envelope, "format": format})
    assert reader.opened({**envelope, "later": {"x": 1}}).run["runId"] == RUN
    broken = copy.deepcopy(envelope)
    del broken["run"]["complete"]
    with pytest.raises(MissingMemberError, match=r"run\.complete"):
        reader.opened(broken)
    for name in ("producer", "run", "privacy", "recording"):
        with pytest.raises(MissingMemberError, match=name):
            reader.opened({k: v for k, v in envelope.items() if k != name})
    for nothing in ([], "x", None, {}, {"events": {}}):
        with pytest.raises((UnreadableError, MissingMemberError)):
            reader.opened(nothing)


def test_27_a_packed_source_is_not_packed_again() -> None:
    recording = happened(*ENDED)
    recording["events"][1]["data"]["content"] = recording["events"][2]["data"]["text"] = "x" * 100
    packed = pack_recording(recording)
    envelope = build_recording_envelope(packed, run=WHOLE)
    assert envelope["recording"] is packed and is_packed_recording(envelope["recording"])
    assert envelope["run"] == build(recording, **WHOLE)["run"]
    assert reader.opened(envelope).recording == recording


def test_packed_runs_of_any_plain_size_can_be_saved() -> None:
    recording = happened(*ENDED)
    grown: list[Any] = ["x" * 100]
    for _ in range(60):
        grown = [grown, grown]
    recording["events"][1]["data"]["history"] = grown
    packed = pack_recording(recording)
    assert len(plain.encode(packed)) < 10_000
    assert build_recording_envelope(packed, run=WHOLE)["recording"] is packed


def test_36_a_sink_that_is_none() -> None:
    class NotCallable:
        write = 3

    for sink in (None, object(), NotCallable(), {}):
        with pytest.raises(TypeError, match="sink"):
            persist_recording("no recording at all", sink=sink)  # type: ignore[arg-type]


def test_facts_that_there_are_not() -> None:
    with pytest.raises(TypeError, match="colour"):
        build(happened(*ENDED), colour="red")


def test_symptoms_of_what_was_not_captured() -> None:
    events = [
        ("run.started", {}), ("tool.call.started", {"call_id": "1"}), ("tool.call.completed", {"call_id": "2", "unpaired": True}),
        ("tool_hook.failed", {"call_id": "1"}),
    ]  # fmt: skip
    run = facts_of(happened(*events), complete=False)
    assert run["uncaptured"] == {"orphanPosts": 1, "orphanPres": 1, "guardErrors": 1}
    assert facts_of(happened(*ENDED), LIVE._replace(unregistered=("Stop",)))["uncaptured"]["unregisteredHooks"] == ["Stop"]  # fmt: skip
    assert "uncaptured" not in facts_of(happened(*ENDED))
