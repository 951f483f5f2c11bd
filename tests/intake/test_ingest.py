"""ingest: what is a valid trace, what becomes of those that are not, and what comes back out of the store."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from record_rig import command, environment, feed, guardhook, only, opened

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.intake import documents
from guardhook.intake.ingest_check import check
from guardhook.store import Appender

HOSTILE = "a\x1b[31m\x07\r\n\x9b\u202e"


def trace(**more: object) -> dict[str, object]:
    return {"agent_name": "bot", **more}


def step(number: object = 1, **more: object) -> dict[str, object]:
    return {"step_number": number, "step_type": "tool_call", "name": "Bash", **more}


def ingest(data: Path, content: object, *words: str, name: str = "in.json", lines: bool = False) -> Result:
    """Writes the content to a file and ingests it. A text or bytes as it is, everything else as JSON (lines: one value a line)."""
    path = data.parent / name
    if lines:
        assert isinstance(content, list)
        content = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in content)
    path.write_bytes(content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode())  # fmt: skip
    return CliRunner().invoke(main, ["ingest", str(path), *words, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "100"})  # fmt: skip


def told(data: Path, content: object, *words: str, lines: bool = False) -> dict[str, Any]:
    result = ingest(data, content, *words, "--json", lines=lines)
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    assert result.exit_code == (0 if found["ok"] else 1)
    return found


def show(data: Path, *words: str) -> Any:
    result = CliRunner().invoke(main, [*words, "--dir", str(data)], env={"GUARDHOOK_DIR": ""})
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "gh"


# --- what is valid -----------------------------------------------------------------------------------------------------

FAULTY: list[tuple[object, str, str]] = [
    ([], "", "object"),
    ("x", "", "object"),
    ({}, "agent_name", "not empty"),
    (trace(agent_name=""), "agent_name", "not empty"),
    (trace(status="Failed"), "status", "one of"),
    (trace(status=["failed"]), "status", "one of"),
    (trace(trigger="scheduled"), "trigger", "one of"),
    (trace(total_tokens=-1), "total_tokens", "at least 0"),
    (trace(total_cost_usd=True), "total_cost_usd", "at least 0"),
    (trace(total_duration_ms="5"), "total_duration_ms", "at least 0"),
    (trace(total_tokens=1e300), "total_tokens", "at least 0"),
    (trace(tags="a"), "tags", "list"),
    (trace(tags=[1]), "tags", "list"),
    (trace(agent_version=2), "agent_version", "text"),
    (trace(session_id={}), "session_id", "text"),
    (trace(started_at=1700000000), "started_at", "text"),
    (trace(steps={}), "steps", "list"),
    (trace(steps=[5]), "steps[0]", "object"),
    (trace(steps=[step(0)]), "steps[0].step_number", "at least 1"),
    (trace(steps=[step(1.5)]), "steps[0].step_number", "at least 1"),
    (trace(steps=[step(True)]), "steps[0].step_number", "at least 1"),
    (trace(steps=[step(1 << 40)]), "steps[0].step_number", "at least 1"),
    (trace(steps=[step(), step()]), "steps[1].step_number", "1 is there twice"),
    (trace(steps=[step(step_type="toolcall")]), "steps[0].step_type", "one of"),
    (trace(steps=[step(step_type={})]), "steps[0].step_type", "one of"),
    (trace(steps=[step(name="")]), "steps[0].name", "not empty"),
    (trace(steps=[step(model=1)]), "steps[0].model", "text"),
    (trace(steps=[step(duration_ms=-1)]), "steps[0].duration_ms", "at least 0"),
    (trace(steps=[step(), step(2, parent_step=2)]), "steps[1].parent_step", "not before"),
    (trace(steps=[step(), step(3, parent_step_number=2)]), "steps[1].parent_step", "no step 2"),
    (trace(steps=[step(), step(2, caused_by_step="1")]), "steps[1].caused_by_step", "at least 1"),
    (trace(steps=[step(), step(2, caused_by_step_number=0)]), "steps[1].caused_by_step", "at least 1"),
    (trace(steps=[step(decision="x")]), "steps[0].decision", "object"),
    (trace(steps=[step(decision={})]), "steps[0].decision.chosen", "not empty"),
    (trace(steps=[step(decision={"chosen": "x", "confidence": 1.1})]), "steps[0].decision.confidence", "0 to 1"),
    (trace(steps=[step(decision={"chosen": "x", "decided_by": "me"})]), "steps[0].decision.decided_by", "one of"),
    (trace(steps=[step(decision={"chosen": "x", "options": {}})]), "steps[0].decision.options", "list"),
    (trace(steps=[step(decision={"chosen": "x", "options": [1]})]), "steps[0].decision.options[0]", "object"),
    (
        trace(steps=[step(decision={"chosen": "x", "options": [{}]})]),
        "steps[0].decision.options[0].option",
        "not empty",
    ),
    (
        trace(steps=[step(decision={"chosen": "x", "options": [{"option": "a"}, {"option": "b", "score": "1"}]})]),
        "steps[0].decision.options[1].score",
        "number",
    ),
]


@pytest.mark.parametrize(("value", "field", "message"), FAULTY)
def test_a_fault_is_told_with_its_place_and_the_others_are_taken(
    data: Path, value: object, field: str, message: str
) -> None:
    found = told(data, [trace(), value, trace()])
    assert (found["traces_inserted"], found["validation_errors"]) == (2, 1)
    (problem,) = found["problems"]
    assert (problem["trace"], problem["field"]) == (1, field) and message in problem["message"]
    dry = told(data.parent / "none", [value], "--dry-run")
    assert (dry["ok"], dry["validation_errors"]) == (False, 1) and not (data.parent / "none").exists()


def test_every_fault_of_a_trace_is_told() -> None:
    faults = check(
        trace(
            status="x", steps=[step(0, name=7), step(2, parent_step=9)] + [step(1, step_type="?") for _ in range(300)]
        )
    )
    assert faults.count == 1 + 2 + 1 + 300 + 299 and len(faults.kept) == 100


def test_null_is_absent_and_unknown_fields_are_no_fault(data: Path) -> None:
    empty = dict.fromkeys(
        ("status", "trigger", "input", "output", "steps", "tags", "session_id", "total_tokens", "metadata", "evals")
    )
    found = told(data, [trace(**empty, more=1), trace(steps=[step(**dict.fromkeys(("model", "duration_ms", "decision", "parent_step", "snapshot")))])])  # fmt: skip
    assert found["ok"] and found["traces_inserted"] == 2


# --- forms of input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "traces", "faults"),
    [
        (json.dumps([trace(), trace()]), 2, 0),
        (json.dumps(trace()), 1, 0),
        (json.dumps(trace(steps=[step()]), indent=2), 1, 0),
        (json.dumps([trace()], indent=1), 1, 0),
        ("\ufeff \n" + json.dumps([trace()]), 1, 0),
        (json.dumps(trace()) + "\n" + json.dumps(trace()), 2, 0),
        ("// first\n\n" + json.dumps(trace()) + "\r\n\n  \n// last", 1, 0),
        (json.dumps(trace()) + "\nnot json\n" + json.dumps(trace()), 2, 1),
        ("not json\n" + json.dumps(trace()), 1, 1),
        ('{"a":\n' + json.dumps(trace()), 1, 1),
        (json.dumps([trace()]) + "\n" + json.dumps(trace()), 1, 1),
        (json.dumps([trace(input="\ud83d half a pair")], indent=1), 1, 0),
        (json.dumps(trace(input="\ud83d half a pair")) + "\n", 1, 0),
    ],
)
@pytest.mark.parametrize("name", ["in.json", "in.jsonl"])
@pytest.mark.parametrize("piped", [False, True])
def test_the_form_is_told_by_the_text(
    data: Path, content: str, traces: int, faults: int, name: str, piped: bool
) -> None:
    path = data.parent / name
    path.write_bytes(content.encode())
    if piped:
        with path.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
            assert cat.stdout is not None
            items = list(documents.read(cat.stdout.fileno()))
    else:
        with path.open("rb") as file:
            items = list(documents.read(file.fileno()))
    assert [sum(isinstance(i.value, dict) for i in items), sum(not isinstance(i.value, dict) for i in items)] == [traces, faults]  # fmt: skip
    assert [i.place for i in items] == list(range(traces + faults))


def test_line_numbers_are_those_of_the_file(data: Path) -> None:
    found = told(data, ["// a", "", trace(), "nonsense", trace(tags=1)], lines=True)
    assert found["traces_inserted"] == 1
    assert [(p["trace"], p["line"], p["field"]) for p in found["problems"]] == [(1, 4, ""), (2, 5, "tags")]


@pytest.mark.parametrize("lines", [False, True])
def test_one_text_that_is_no_utf_8_costs_no_trace(data: Path, lines: bool) -> None:
    one, other = (
        json.dumps(trace(error="a?b")).encode().replace(b"?", b"\xff"),
        json.dumps(trace(total_tokens=1)).encode(),
    )
    found = told(data, one + b"\n" + other if lines else b"[" + one + b"," + other + b"]")
    assert found["traces_inserted"] == 2 and found["problems"] == []
    assert [show(data, "show", id, "--json")["error"] for id in found["traces"]] == ["a\ufffdb", None]


def test_a_number_beyond_all_bounds_is_told_with_its_field(data: Path) -> None:
    found = told(data, '{"agent_name": "bot", "total_tokens": 1e999}')
    assert found["problems"] == [{"trace": 0, "line": None, "field": "total_tokens", "message": "must be a number of at least 0"}]  # fmt: skip


def test_a_format_that_is_named_is_kept_to(data: Path) -> None:
    assert ingest(data, json.dumps([trace()], indent=1), "--format", "jsonl").exit_code == 1
    two = json.dumps(trace()) + "\n" + json.dumps(trace())
    result = ingest(data, two, "--format", "json")
    assert result.exit_code == 1 and "not JSON" in result.stderr
    assert ingest(data, two, "--format", "jsonl").exit_code == 0
    result = ingest(data, two, "--format", "yaml")
    assert result.exit_code == 2 and "json, jsonl" in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no traces"),
        ("[]", "no traces"),
        ("// nothing\n", "no traces"),
        ("[1", "JSON"),
        (b"\x89PNG\r\n\x1a\n\0\0\n\xff", "neither"),
        (json.dumps([trace()] * 3, indent=2)[:-5], "neither"),
    ],
)
def test_nothing_usable_is_a_failure(data: Path, content: str | bytes, message: str) -> None:
    result = ingest(data, content)
    assert result.exit_code == 1 and message in result.stderr and not data.exists()


def test_a_session_log_is_told_from_traces(data: Path) -> None:
    log = {
        "type": "user",
        "uuid": "u",
        "parentUuid": None,
        "sessionId": "s",
        "message": {"role": "user", "content": "go"},
    }
    result = ingest(data, [log], lines=True)
    assert result.exit_code == 1 and "guardhook import" in result.stderr
    assert "guardhook import" not in ingest(data, [log, trace()], lines=True).stderr


def test_files_that_are_none(data: Path, tmp_path: Path) -> None:
    for path, code in ((str(tmp_path / "no"), 1), (str(tmp_path), 1), ("", 2), ("a\0b", 1)):
        result = CliRunner().invoke(main, ["ingest", path, "--dir", str(data)])
        assert result.exit_code == code and result.stderr and "Traceback" not in result.output
    assert not data.exists()


def test_stdin(tmp_path: Path) -> None:
    for body in (json.dumps([trace(), trace()]), f"{json.dumps(trace())}\n{json.dumps(trace())}\n"):
        done = guardhook(tmp_path, "ingest", "-", "--dir", str(tmp_path / "gh"), "--json", stdin=body.encode())
        assert (done.returncode, json.loads(done.stdout)["traces_inserted"]) == (0, 2)


def test_a_pipe_is_read_as_it_comes(tmp_path: Path) -> None:
    """A trace is in the store before the pipe ends."""
    read, write = os.pipe()
    with subprocess.Popen(
        command("ingest", "-", "--dir", str(tmp_path / "gh")), stdin=read, stdout=subprocess.DEVNULL, env=environment(tmp_path)
    ) as process:  # fmt: skip
        os.close(read)
        os.write(write, (json.dumps(trace(steps=[step()])) + "\n").encode())
        deadline = time.monotonic() + 30
        while not list((tmp_path / "gh").glob("journal/2*/*.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.close(write)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    "pieces", [["[", json.dumps(trace()), "]"], [json.dumps(trace()), "\n"], ["\n", json.dumps(trace())]]
)
def test_a_pipe_that_does_not_wait_is_waited_for(pieces: list[str]) -> None:
    """Some programs hand on such pipes; what comes later is no end of it."""
    read, write = os.pipe()
    os.set_blocking(read, False)

    def pour() -> None:
        for piece in pieces:
            time.sleep(0.05)
            os.write(write, piece.encode())
        os.close(write)

    pouring = threading.Thread(target=pour)
    pouring.start()
    try:
        assert [item.value for item in documents.read(read)] == [trace()]
    finally:
        pouring.join()
        os.close(read)


def test_a_fifo_works(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(command("ingest", str(tmp_path / "fifo"), "--dir", str(tmp_path / "gh")), env=environment(tmp_path), stdout=subprocess.PIPE) as process:  # fmt: skip
        (tmp_path / "fifo").write_text(json.dumps([trace()], indent=2))
        assert process.wait(30) == 0


# --- what is kept --------------------------------------------------------------------------------------------------------


def test_all_fields(data: Path) -> None:
    full = trace(
        id="trc_mine", agent_version="3", trigger="webhook", status="timeout", input="text", output="null", started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:00:05Z", total_duration_ms=4000, total_tokens=7, total_cost_usd=0.25, error={"code": 1}, tags=["a"],
        metadata={"k": [1]}, session_id="s",
        steps=[
            step(1, input='{"a":1}', output=False, started_at="2026-01-01T00:00:01Z", ended_at=None, model="m", error={"e": 1}, tokens_used=3, duration_ms=2),
            step(5, step_type="decision", parent_step_number=1, caused_by_step=1, metadata="[1]", snapshot={"context_window": [1], "token_count": 4},
                 decision={"chosen": "a", "rationale": "r", "confidence": 1, "decided_by": "user", "options": [{"option": "a", "score": 0.1}]}),
        ],
    )  # fmt: skip
    assert told(data, full, "--tags", "b, c")["ok"]
    found, steps = only(data)
    assert (found.id, found.agent_version, found.trigger, found.status, found.session_id) == (
        "trc_mine",
        "3",
        "webhook",
        "timeout",
        "s",
    )
    assert (found.input, found.output, found.error, found.tags, found.metadata) == (
        "text",
        "null",
        '{"code":1}',
        ["a", "b", "c"],
        {"k": [1]},
    )
    assert (found.started_at, found.ended_at, found.total_duration_ms, found.total_tokens, found.total_cost_usd) == (
        "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", 4000, 7, 0.25,
    )  # fmt: skip
    first, second = steps
    assert (first.input, first.output, first.ended_at, first.error, first.model) == (
        {"a": 1},
        False,
        None,
        '{"e":1}',
        "m",
    )
    assert (second.step_number, second.parent_step_number, second.caused_by_step_number) == (5, 1, 1)
    assert second.metadata == {"value": [1]} and second.decision is not None
    assert (second.decision.chosen, second.decision.options, second.decision.decided_by) == (
        "a",
        [{"option": "a", "score": 0.1}],
        "user",
    )
    with opened(data) as store:
        assert [s.token_count for s in store.snapshots(found)] == [4]


def test_times_that_are_not_given_are_not_made_up(data: Path) -> None:
    told(data, [trace(status="completed"), trace(), trace(ended_at="2026-01-01T00:00:00Z")])
    with opened(data) as store:
        found = sorted(
            (t.status, t.ended_at, t.effective_duration_ms)
            for t in store.iterate(sort="started_at")
            if t.ended_at is None
        )
        assert found == [("completed", None, None), ("running", None, None)]
        assert store.traces().total == 3


def test_what_was_exported_comes_back_the_same(data: Path, tmp_path: Path) -> None:
    Appender(explicit(str(data)), redaction="full").put("t1", [
        ("trace.start", {"agent_name": "bot", "input": {"a": "é"}, "started_at": "2026-01-01T00:00:00Z", "tags": ["x"], "metadata": {"m": HOSTILE}}),
        ("trace.step", {**step(1, output=["o"], ended_at="2026-01-01T00:00:01Z", started_at="2026-01-01T00:00:00Z"), "decision": {"chosen": "c"}, "snapshot": {"token_count": 2}}),
        ("trace.step_start", step(2, started_at="2026-01-01T00:00:02Z", caused_by_step=1)),
        ("trace.end", {"status": "failed", "error": HOSTILE, "ended_at": "2026-01-01T00:01:00Z", "output": "o"}),
        ("eval.result", {"evaluator_type": "rubric", "evaluator_name": "e", "score": 0.5, "passed": True, "evaluated_at": "2026-01-01T00:02:00Z"}),
    ], opens=True)  # fmt: skip
    Appender(explicit(str(data)), dialect="fork").put("t2", [("fork.start", {"agent_name": "bot", "parent_trace_id": "t1", "forked_from_step": 1, "started_at": "2026-01-01T00:03:00Z"}), ("fork.step", step(1))], opens=True)  # fmt: skip
    for form in ("json", "jsonl"):
        words = ("export", "--format", form, "--with-evals", "--with-snapshots")
        out = CliRunner().invoke(main, [*words, "--dir", str(data)]).stdout
        again = tmp_path / form
        (tmp_path / "out").write_text(out)
        result = CliRunner().invoke(main, ["ingest", str(tmp_path / "out"), "--dir", str(again)])
        assert result.exit_code == 0, result.output
        back = CliRunner().invoke(main, [*words, "--dir", str(again)]).stdout
        before, after = ([json.loads(x) for x in t.splitlines()] if form == "jsonl" else json.loads(t) for t in (out, back))  # fmt: skip
        for found in (*before, *after):
            assert found.pop("created_at") and found.pop("metadata") is not None
            for inner in found["evals"]:
                inner.pop("id")
            for inner in found["steps"]:
                inner["started_at"] = None if found["id"] == "t2" else inner["started_at"]
                inner["ended_at"] = None if found["id"] == "t2" else inner["ended_at"]
        assert before == after and len(after) == 2


def test_what_record_wrote_can_be_ingested(data: Path, tmp_path: Path) -> None:
    feed(data, [
        trace(type="trace_start", trace_id="t1", tags=[HOSTILE]), {**step(1, name=HOSTILE, tokens_used=-5, parent_step=7), "type": "step", "trace_id": "t1"},
        {"type": "decision", "trace_id": "t1", "step_number": 1, "chosen": "x", "options": [{"option": "a", "score": -1}], "confidence": 0},
    ])  # fmt: skip
    (tmp_path / "out").write_text(CliRunner().invoke(main, ["export", "--dir", str(data)]).stdout)
    assert CliRunner().invoke(main, ["ingest", str(tmp_path / "out"), "--dir", str(tmp_path / "again")]).exit_code == 0
    assert only(tmp_path / "again")[1][0].name == HOSTILE


def test_ids_that_are_taken_are_replaced_and_forks_follow(data: Path) -> None:
    pair = [trace(id="t1"), trace(id="t2", parent_trace_id="t1", forked_from_step=1), trace(id="bad\x1b")]
    first = told(data, pair)
    assert (first["traces"][:2], first["new_ids"], first["forks"], first["forks_without_original"]) == (
        ["t1", "t2"],
        0,
        1,
        0,
    )
    second = told(data, pair)
    assert second["new_ids"] == 2 and not set(second["traces"]) & {"t1", "t2"}
    with opened(data) as store:
        assert store.get(second["traces"][1]).parent_trace_id == second["traces"][0]
        assert store.traces().total == 6 and store.problems() == []
    third = told(data, [trace(parent_trace_id="somewhere else"), trace(evals=[{"evaluator_type": "x"}, 5])])
    assert (third["forks_without_original"], third["evals_left_out"]) == (1, 2)


def test_the_project_is_that_of_the_trace_or_of_the_caller(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    told(data, [trace(id="a"), trace(id="b", metadata={"cwd": "/srv/elsewhere"})])
    with opened(data) as store:
        assert [store.get(n).project for n in "ab"] == [str(tmp_path / "here"), "/srv/elsewhere"]


def test_a_trace_that_can_not_be_written_is_told(data: Path, tmp_path: Path) -> None:
    data.mkdir()
    (data / "journal").write_text("not a folder")
    result = ingest(data, [trace(), trace()], "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["insert_failures"], found["traces_inserted"]) == (1, 2, 0)
    assert "could not be written" in found["problems"][0]["message"]


def test_for_people(data: Path) -> None:
    hostile = [trace(id="t1", parent_trace_id="gone", steps=[step()])] + [trace(status=HOSTILE), trace(**{HOSTILE: 1}, steps=[step(name=HOSTILE)])] + [trace(tags=1)] * 15  # fmt: skip
    result = ingest(data, hostile, name="in\x1b.json")
    assert result.exit_code == 1
    assert "Traces inserted    2" in result.stdout and "1 of 1 fork(s)" in result.stdout
    assert result.stderr.count("Trace[") == 10 and "and 6 more" in result.stderr and "in\\x1b.json" in result.stderr
    assert "\x1b" not in result.output and "\x9b" not in result.output
    dry = ingest(data.parent / "none", [trace()], "--dry-run")
    assert dry.exit_code == 0 and "dry run" in dry.stdout and not (data.parent / "none").exists()


def test_secrets_are_taken_out(data: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    told(data, trace(steps=[step(n, output=f"x {secret if n == 3 else ''}") for n in range(1, 9)]))
    assert secret not in json.dumps(show(data, "export"))
    assert "[REDACTED:" in str(only(data)[1][2].output) and only(data)[1][3].output == "x "
