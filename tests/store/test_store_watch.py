"""watch: a trace that grows while somebody looks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from click.testing import CliRunner, Result
from store_rig import Journal, event

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Appender, open_store
from guardhook.store.watch import Follower

HOSTILE = "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f"
REPOSITORY = Path(__file__).resolve().parents[2]
Line = tuple[str, dict[str, object]]


def run(data: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["watch", *args, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def put(data: Path, *lines: Line, opens: bool = False) -> None:
    start: list[Line] = [("trace.start", {"agent_name": HOSTILE})] if opens else []
    Appender(explicit(str(data)), redaction="full").put("trc_live", [*start, *lines], opens=opens)


def step(number: int, kind: str = "trace.step", **more: object) -> Line:
    return kind, {"step_number": number, "step_type": "tool_call", "name": f"tool{number}", **more}


def test_each_step_once_late_ones_too_and_open_ones_when_they_end(tmp_path: Path) -> None:
    put(tmp_path, step(1), step(5), opens=True)
    folders = explicit(str(tmp_path))
    with open_store(folders) as store:
        follower = Follower(store, store.get("trc_live"), folders.journal)

        def looked() -> list[tuple[int, bool]]:
            return [(s.step.step_number, s.ended) for s in follower.look()] if follower.stale() else []

        assert looked() == [(1, False), (5, False)] and looked() == []
        put(tmp_path, step(3), step(6, "trace.step_start"))
        assert looked() == [(3, False), (6, False)]
        put(tmp_path, ("trace.step_end", {"step_number": 6, "error": "broke"}), step(7))
        assert looked() == [(6, True), (7, False)]
        put(tmp_path, ("trace.end", {"status": "failed"}))
        assert looked() == [] and follower.trace.status == "failed"
        assert not follower.stale()  # nothing to read while nothing happens


def test_a_run_that_began_on_another_day_is_followed_in_the_file_of_that_day(journal: Journal) -> None:
    journal.add(event("session_start"), event("pre_tool", tool="Bash", given={"command": "ls"}, call="1"))
    with journal.open() as store:
        follower = Follower(store, store.traces().items[0], journal.folders.journal)
        assert follower.stale() and [s.step.step_number for s in follower.look()] == [1]
        follower.stale()
        assert not follower.stale()
        journal.add(event("post_tool", tool="Bash", given={"command": "ls"}, call="1"))
        assert follower.stale() and [(s.step.step_number, s.ended) for s in follower.look()] == [(1, True)]


def test_a_live_trace_is_followed_to_its_end(tmp_path: Path) -> None:
    put(tmp_path, step(1, "trace.step_start"), opens=True)
    words = [sys.executable, "-u", "-m", "guardhook", "watch", "--dir", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, encoding="utf-8"
    )
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        assert process.stdout is not None
        assert "trc_live" in process.stdout.readline() and "tool1" in process.stdout.readline()
        put(tmp_path, ("trace.step_end", {"step_number": 1, "error": HOSTILE, "tokens_used": 7}), step(2))
        closing = process.stdout.readline()
        assert "1 failed" in closing and "7 tokens" in closing and "\\x1b" in closing
        assert "tool2" in process.stdout.readline()
        put(tmp_path, step(3), ("trace.end", {"status": "failed", "error": "it broke"}))
        rest, errors = process.communicate()
        assert process.returncode == 0 and errors == ""
        assert "tool3" in rest and rest.splitlines()[-2:] == ["✘ FAILED", "Error  it broke"]
    finally:
        guard.cancel()
        process.kill()


def test_interrupting_is_no_failure(tmp_path: Path) -> None:
    put(tmp_path, step(1), opens=True)
    words = [sys.executable, "-u", "-m", "guardhook", "watch", "trc_live", "--dir", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] == "" and process.returncode == 0
    finally:
        guard.cancel()
        process.kill()


def test_an_ended_trace_is_shown_and_left(tmp_path: Path) -> None:
    put(tmp_path, step(1), step(2, error=HOSTILE), ("trace.end", {"status": "completed"}), opens=True)
    result = run(tmp_path, "trc_live")
    assert result.exit_code == 0 and result.stdout.replace("\n", "").isprintable()
    assert result.stdout.count("tool1") == 1 and result.stdout.splitlines()[-1] == "✔ COMPLETED"


def test_mistakes_and_nothing_to_watch(tmp_path: Path) -> None:
    empty = tmp_path / "none"
    assert run(empty).exit_code == 0 and run(empty, "x").exit_code == 1 and not empty.exists()
    put(tmp_path, ("trace.end", {"status": "completed"}), opens=True)
    result = run(tmp_path)
    assert result.exit_code == 0 and "no trace is running" in result.stderr and result.stdout == ""
    assert run(tmp_path, "nope").exit_code == 1
    for value in ("0", "-1", "x", "2147483648"):
        assert run(tmp_path, "trc_live", "--interval", value).exit_code == 2


def test_as_json_every_step_is_one_line(tmp_path: Path) -> None:
    put(tmp_path, step(1, "trace.step_start"), opens=True)
    words = [sys.executable, "-u", "-m", "guardhook", "watch", "--json", "--dir", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        assert process.stdout is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert (first["type"], first["id"], first["agent_name"]) == ("trace", "trc_live", "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f")  # fmt: skip
        assert (second["type"], second["step_number"], second["ended_at"]) == ("step", 1, None)
        put(tmp_path, ("trace.step_end", {"step_number": 1, "error": HOSTILE}))
        closing = json.loads(process.stdout.readline())
        assert (closing["type"], closing["step_number"], closing["error"]) == ("step_end", 1, HOSTILE)
        put(tmp_path, step(2), ("trace.end", {"status": "failed", "error": "it broke"}))
        rest, errors = process.communicate()
        assert process.returncode == 0 and errors == "" and rest.isascii()
        shown = json.loads(CliRunner().invoke(main, ["show", "trc_live", "--json", "--dir", str(tmp_path)]).stdout)
        found = [json.loads(row) for row in rest.splitlines()]
        assert found[0] == {"type": "step", **shown["steps"][1]} and len(found) == 2
        assert found[1] == {"type": "end", "trace_id": "trc_live", "status": "failed", "error": "it broke"}
    finally:
        guard.cancel()
        process.kill()


def test_as_json_mistakes_and_nothing_to_watch(tmp_path: Path) -> None:
    empty = tmp_path / "none"
    result = run(empty, "--json")
    assert (result.exit_code, result.stdout) == (0, "") and result.stderr
    missing = run(empty, "x", "--json")
    assert missing.exit_code == 1 and json.loads(missing.stdout)["ok"] is False
    put(tmp_path, ("trace.end", {"status": "completed"}), opens=True)
    assert (run(tmp_path, "--json").exit_code, run(tmp_path, "--json").stdout) == (0, "")
    assert json.loads(run(tmp_path, "nope", "--json").stdout)["ok"] is False
