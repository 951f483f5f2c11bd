"""record, native protocol: what is applied, what is skipped and named, and how a trace ends that nobody ended."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from record_rig import Line, command, environment, feed, guardhook, only, opened

from guardhook.core.folders import explicit
from guardhook.store import Appender
from guardhook.store.errors import Unusable

START: Line = {"type": "trace_start", "trace_id": "t1", "agent_name": "bot"}
END: Line = {"type": "trace_end", "trace_id": "t1"}


def step(number: int, **more: object) -> dict[str, object]:
    return {"type": "step", "trace_id": "t1", "step_number": number, "step_type": "tool_call", "name": "Bash", **more}


def test_a_whole_run(tmp_path: Path) -> None:
    fed = feed(
        tmp_path,
        [
            "// a comment",
            "",
            {**dict(START), "agent_version": "2", "trigger": "cron", "input": "do it", "session_id": "s", "tags": ["a"], "v": 1},  # type: ignore[call-overload]
            {"type": "step_start", "trace_id": "t1", "step_number": 1, "step_type": "tool_call", "name": "Bash", "input": {"command": "ls"}},
            {"type": "step_end", "trace_id": "t1", "step_number": 1, "output": "a\nb", "duration_ms": 7, "tokens_used": 3, "model": "m"},
            step(2, step_type="decision", caused_by_step=1, decision={"chosen": "x", "confidence": 0.5}, snapshot={"token_count": 9}),
            {"type": "decision", "trace_id": "t1", "step_number": 1, "chosen": "go", "decided_by": "user"},
            {"type": "snapshot", "trace_id": "t1", "step_number": 1, "context_window": ["c"]},
            {"type": "trace_end", "trace_id": "t1", "status": "success", "output": {"ok": 1}, "total_cost_usd": 0.5},
        ],
        tags=("b", "c"),
    )  # fmt: skip
    assert fed.told.count == 1 and "read as completed" in fed.warnings[0]
    assert (fed.outcome.lines, fed.recording.applied, fed.outcome.finalized) == (7, 7, [])
    trace, steps = only(tmp_path)
    assert (trace.id, trace.agent_name, trace.agent_version, trace.trigger) == ("t1", "bot", "2", "cron")
    assert (trace.input, trace.output, trace.status) == ("do it", {"ok": 1}, "completed")
    assert (trace.session_id, trace.tags, trace.total_cost_usd) == ("s", ["a", "b", "c"], 0.5)
    assert [s.step_number for s in steps] == [1, 2]
    assert (steps[0].output, steps[0].duration_ms, steps[0].tokens_used, steps[0].model) == ("a\nb", 7, 3, "m")
    assert steps[0].decision is not None and steps[0].decision.decided_by == "user"
    assert steps[1].caused_by_step_number == 1
    with opened(tmp_path) as store:
        assert [s.step_number for s in store.snapshots(trace)] == [1, 2]


def test_the_time_between_start_and_end_of_a_step_is_its_duration(tmp_path: Path) -> None:
    begun = {"type": "step_start", "trace_id": "t1", "step_number": 1, "step_type": "llm_call", "name": "m"}
    feed(tmp_path, [
        START, {**begun, "started_at": "2026-01-01T00:00:00Z"},
        {"type": "step_end", "trace_id": "t1", "step_number": 1, "ended_at": "2026-01-01T00:00:01.5Z"}, END,
    ])  # fmt: skip
    assert only(tmp_path)[1][0].duration_ms == 1500


BAD: list[tuple[Line, str]] = [
    ("{", "not valid JSON"),
    ("[1]", "not an object"),
    ("null", "not an object"),
    ({"type": "other"}, "unknown type"),
    ({"type": "constructor"}, "unknown type"),
    ({"v": 2, "type": "trace_end", "trace_id": "t1"}, "version"),
    ({"type": "trace_start", "agent_name": ""}, "agent_name"),
    ({"type": "trace_start", "agent_name": 7}, "agent_name"),
    ({"type": "trace_start", "agent_name": "x", "trace_id": ""}, "trace_id"),
    ({"type": "trace_start", "agent_name": "x", "trace_id": "a\x1bb"}, "control"),
    ({"type": "trace_start", "agent_name": "x", "trace_id": "a\x9bb"}, "control"),
    ({"type": "trace_start", "agent_name": "x", "tags": [1]}, "tags"),
    ({"type": "trace_end"}, "trace_id"),
    ({"type": "trace_end", "trace_id": "nobody"}, "no such trace"),
    (START, "already"),
    ({"type": "step", "trace_id": "t1", "step_number": 0, "step_type": "thought", "name": "x"}, "step_number"),
    ({"type": "step", "trace_id": "t1", "step_number": 2.0, "step_type": "thought", "name": "x"}, "step_number"),
    ({"type": "step", "trace_id": "t1", "step_number": 3, "step_type": "toolcall", "name": "x"}, "step_type"),
    ({"type": "step", "trace_id": "t1", "step_number": 3, "step_type": "thought", "name": ""}, "name"),
    (step(1), "step 1 already"),
    ({"type": "step_end", "trace_id": "t1", "step_number": 9}, "no step 9"),
    ({"type": "decision", "trace_id": "t1", "step_number": 1, "chosen": ""}, "chosen"),
    ({"type": "decision", "trace_id": "t1", "step_number": 1, "chosen": "x", "confidence": 2}, "confidence"),
    ({"type": "decision", "trace_id": "t1", "step_number": 1, "chosen": "x", "options": [{}]}, "option"),
    (step(4, decision="x"), "decision"),
    ("[" * 3000, "nested"),
    ("[" * 300 + "]" * 300, "nested"),
    ('{"type":"trace_end","trace_id":"t1"}'.encode("utf-16"), "UTF-8"),
    ('{"type":"step","trace_id":"t1","step_number":2,"step_type":"thought","name":"x","tokens_used":NaN}', "NaN"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_line_is_named_and_the_others_are_kept(tmp_path: Path, line: Line, reason: str) -> None:
    fed = feed(tmp_path, [START, step(1), line, step(5), END])
    assert fed.told.count == 1
    assert fed.warnings[0].startswith("line 3: skipped: ") and reason in fed.warnings[0]
    trace, steps = only(tmp_path)
    assert trace.status == "completed" and [s.step_number for s in steps] == [1, 5]


def test_numbers_and_references_that_can_not_be_used_are_left_out(tmp_path: Path) -> None:
    fed = feed(tmp_path, [START, step(1, tokens_used=-1, duration_ms="x", parent_step=1, caused_by_step_number=2), END])
    assert len(fed.warnings) == 1 and fed.warnings[0].count("; ") == 3
    found = only(tmp_path)[1][0]
    assert (found.tokens_used, found.duration_ms, found.parent_step_number, found.caused_by_step_number) == (None,) * 4


def test_a_line_is_kept_whatever_its_texts_and_numbers_are(tmp_path: Path) -> None:
    """A program may pass on what another one printed, and a number may be larger than any that machines have."""
    line = b'{"type":"step","trace_id":"t1","step_number":1,"step_type":"tool_call","name":"x","output":"a\xff\xfeb","input":[1e999],"tokens_used":1e999,"name":"y"}'  # fmt: skip
    fed = feed(tmp_path, [START, line, END])
    assert fed.warnings == ["line 2: tokens_used is not a number of at least 0 and was left out"]
    (found,) = only(tmp_path)[1]
    assert (found.name, found.output, found.input, found.tokens_used) == ("y", "a\ufffd\ufffdb", ["1e999"], None)


@pytest.mark.parametrize(
    ("status", "meant", "warnings"),
    [("Failed", "failed", 0), (" OK ", "completed", 1), ("weird", "failed", 1), ("", "failed", 1), (7, "failed", 1), ("timedout", "timeout", 1)],
)  # fmt: skip
def test_how_a_run_ended(tmp_path: Path, status: object, meant: str, warnings: int) -> None:
    fed = feed(tmp_path, [START, {"type": "trace_end", "trace_id": "t1", "status": status}])
    assert only(tmp_path)[0].status == meant and len(fed.warnings) == warnings


def test_structured_errors_are_kept_as_json(tmp_path: Path) -> None:
    error = {"code": 5, "message": "m"}
    feed(tmp_path, [START, step(1, error=error), {**dict(END), "status": "failed", "error": error}])  # type: ignore[call-overload]
    trace, steps = only(tmp_path)
    assert json.loads(steps[0].error or "") == error == json.loads(trace.error or "")


def test_texts_that_are_no_structure_stay_texts(tmp_path: Path) -> None:
    feed(tmp_path, [START, step(1, input="42", output="null"), step(2, input='{"a":1}'), END])
    steps = only(tmp_path)[1]
    assert (steps[0].input, steps[0].output, steps[1].input) == ("42", "null", {"a": 1})


def test_odd_values_at_the_start_leave_the_trace(tmp_path: Path) -> None:
    odd = {
        "agent_version": {},
        "session_id": [],
        "started_at": {},
        "trigger": "scheduled",
        "tags": "none",
        "status": "completed",
    }
    feed(tmp_path, [{**dict(START), **odd}], tags=("x",), leave_open=True)  # type: ignore[call-overload]
    trace, _ = only(tmp_path)
    assert (trace.agent_version, trace.session_id, trace.trigger, trace.tags, trace.status) == (None, None, "manual", ["x"], "running")  # fmt: skip


def test_a_stream_that_ends_early_leaves_a_timeout(tmp_path: Path) -> None:
    begun = {"type": "step_start", "trace_id": "t1", "step_number": 2, "step_type": "tool_call", "name": "Bash"}
    fed = feed(tmp_path, [START, step(1), begun])
    assert [t.id for t in fed.outcome.finalized] == ["t1"]
    trace, steps = only(tmp_path)
    assert (trace.status, trace.ended_at is not None) == ("timeout", True)
    assert "stream ended" in str(trace.metadata["finalized"])
    assert steps[1].ended_at is not None and steps[1].metadata["interrupted"] is True


def test_a_trace_that_was_left_open_goes_on_in_another_stream(tmp_path: Path) -> None:
    feed(tmp_path, [START, step(1)], leave_open=True)
    fed = feed(tmp_path, [START, step(1), step(2), END, step(3)])
    assert len(fed.warnings) == 3 and "already" in fed.warnings[0] and "has ended" in fed.warnings[2]
    trace, steps = only(tmp_path)
    assert trace.status == "completed" and [s.step_number for s in steps] == [1, 2]


def test_traces_of_hooks_and_imports_are_not_written_into(tmp_path: Path) -> None:
    Appender(explicit(str(tmp_path)), dialect="fork").put("t1", [("fork.start", {"agent_name": "x"})], opens=True)
    fed = feed(tmp_path, [step(1)])
    assert fed.recording.applied == 0 and "no such trace" in fed.warnings[0]


def test_the_trace_of_a_wrapper_is_left_to_it(tmp_path: Path) -> None:
    feed(tmp_path, [START], leave_open=True)
    feed(tmp_path, [step(1)], wrapped="t1")
    assert only(tmp_path)[0].status == "running"


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    feed(tmp_path, b'{"type":"trace_start","trace_id":"t1","agent_name":"b"}\n{"type":"trace_end","trace_id":"t1"}')
    assert only(tmp_path)[0].status == "completed"
    fed = feed(tmp_path / "2", b'{"type":"trace_start","trace_id":"t1","agent_name":"b"}\n{"type":"trace_e')
    assert "line 2: skipped" in fed.warnings[0] and only(tmp_path / "2")[0].status == "timeout"


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    from guardhook.intake.jsonlines import Splitter

    splitter = Splitter(10)
    found = [
        line for chunk in (b"ab", b"c" * 8, b"d" * 9, b"\nok\n", b"x" * 11, b"\ny") for line in splitter.feed(chunk)
    ]
    assert found == [None, b"ok", None] and splitter.rest() == b"y" and splitter.number == 4


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    fed = feed(tmp_path, [START, *["nonsense"] * 500, END])
    assert fed.told.count == 500 and len(fed.warnings) == 21 and fed.told.kinds == {"not JSON": 500}


def test_secrets_are_taken_out(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    feed(tmp_path, [START, step(1, output=f"key {secret}"), END])
    assert secret not in str(only(tmp_path)[1][0].output)
    feed(tmp_path / "2", [START, step(1, output=f"key {secret}"), END], redaction="full")
    assert secret in str(only(tmp_path / "2")[1][0].output)


def test_a_trace_of_more_lines_than_are_kept_waiting(tmp_path: Path) -> None:
    fed = feed(tmp_path, [START, *(step(n) for n in range(1, 2101)), END])
    assert fed.recording.applied == 2102 and only(tmp_path)[0].step_count == 2100


# --- the command ---------------------------------------------------------------------------------------------------


def test_exit_codes_and_panel(tmp_path: Path) -> None:
    body = b'{"type":"trace_start","trace_id":"t1","agent_name":"b\\u001b[31m"}\nnonsense \x1b[2J\x07\n'
    done = guardhook(tmp_path, "record", "--dir", str(tmp_path / "d"), stdin=body)
    assert done.returncode == 0, done.stderr
    assert b"Finalized as timeout  1" in done.stdout and b"t1  timeout" in done.stdout
    assert b"line 2" in done.stderr and b"\x1b" not in done.stdout + done.stderr
    for stdin, code in ((b"", 0), (b"// only this\n\n", 0), (b"x\n", 1)):
        assert guardhook(tmp_path, "record", "--dir", str(tmp_path / "e"), stdin=stdin).returncode == code
    assert not (tmp_path / "e").exists()
    assert guardhook(tmp_path, "record", "--format", "nope", "--dir", str(tmp_path / "e")).returncode == 2


def test_json_result_and_tags(tmp_path: Path) -> None:
    body = b'{"type":"trace_start","trace_id":"t1","agent_name":"b"}\nnonsense\n'
    done = guardhook(tmp_path, "record", "--json", "--tags", "x, y", "--dir", str(tmp_path / "d"), stdin=body)
    found = json.loads(done.stdout)
    assert found["traces"] == [{"id": "t1", "status": "timeout", "steps": 0, "stored": True}]
    assert (found["ok"], found["warnings"], found["events_applied"]) == (True, 1, 2)
    assert only(tmp_path / "d")[0].tags == ["x", "y"]


def test_a_journal_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "journal").write_text("not a folder")
    body = b'{"type":"trace_start","trace_id":"t1","agent_name":"b"}\n{"type":"trace_end","trace_id":"t1"}\n'
    done = guardhook(tmp_path, "record", "--json", "--dir", str(tmp_path / "d"), stdin=body)
    assert done.returncode == 1 and b"could not be stored" in done.stderr and b"Traceback" not in done.stderr
    assert json.loads(done.stdout)["events_lost"] == 2


def test_an_end_that_could_not_be_stored_is_not_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Appender.put

    def full(self: Appender, trace: str, lines: list[tuple[str, dict[str, object]]], **how: bool) -> None:
        if lines[-1][0] == "trace.end":
            raise Unusable("no space left")
        put(self, trace, lines, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Appender, "put", full)
    fed = feed(tmp_path, [START, *(step(n) for n in range(1, 2100)), END])
    (trace,) = fed.recording.traces.values()
    assert (trace.kept, only(tmp_path)[0].status) == ("running", "running") and fed.recording.lost > 0


@pytest.mark.parametrize("decision", [{}, {"chosen": ""}, [], "x", {"chosen": "x", "confidence": 5}])
def test_a_step_that_begins_with_an_unusable_decision_is_kept_without_it(tmp_path: Path, decision: object) -> None:
    fed = feed(tmp_path, [START, {**step(1), "type": "step_start", "decision": decision}, END])
    assert fed.told.count == 1 and "decision left out" in fed.warnings[0]
    (kept,) = only(tmp_path)[1]
    assert kept.decision is None


@pytest.mark.parametrize(("words", "code"), [(("record",), 0), (("ingest", "-"), 1)])
def test_a_stdin_that_is_closed_has_nothing_in_it(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command(*words, "--dir", str(tmp_path / "d"))], capture_output=True, env=environment(tmp_path),
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code and b"internal error" not in done.stderr and not (tmp_path / "d").exists()


@pytest.mark.parametrize("words", [("record",), ("ingest", "-"), ("run", "--", "sh", "-c", "exit 0")])
def test_in_a_folder_that_is_gone(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "gone").mkdir()
    start = [words[0], "--dir", str(tmp_path / "d"), *words[1:]]
    done = subprocess.run(
        ["sh", "-c", 'rmdir ../gone; exec "$@"', "sh", *command(*start)], input=json.dumps({**dict(START), "id": "t1"}).encode(),  # type: ignore[call-overload]
        cwd=tmp_path / "gone", capture_output=True, env=environment(tmp_path), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert only(tmp_path / "d")[0].project is None
