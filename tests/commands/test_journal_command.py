from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands.journal import command
from guardhook.core.folders import explicit
from guardhook.journal import line, write
from guardhook.store import TraceRecorder


def run(data: Path, *args: str) -> Result:
    return CliRunner().invoke(command, [*args, "--dir", str(data)])


def put(data: Path, session: str = "s-1", ts: int | None = None, **members: object) -> write.Outcome:
    given = {
        "session": session,
        "dialect": "claude-code",
        "event": "pre_tool",
        "tool": "Bash",
        "payload": {"tool_name": "Bash"},
        "verdict": None,
        **members,
    }
    record = write.Record(
        line.RECEIVED, time.time_ns() if ts is None else ts, "claude-code", session, "/p", "/p", True, False, given
    )
    outcome = write.append(str(data / "journal"), record, budget=1.0)
    assert outcome.state == "recorded"
    return outcome


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.mark.parametrize("args", [["show"], ["verify"], ["show", "--raw"], ["show", "--json"], ["verify", "--json"]])
def test_without_a_store_it_says_so_and_creates_nothing(data: Path, args: list[str]) -> None:
    result = run(data, *args)
    assert result.exit_code == 0
    assert not data.exists()
    if "--json" in args:
        assert json.loads(result.stdout)["note"]
    else:
        assert "nothing has been recorded yet" in result.stderr
        assert result.stdout == ""


def test_show_is_one_readable_line_per_event(data: Path) -> None:
    put(data, ts=0)
    put(data, ts=10**9, verdict={"action": "deny", "policy": "no-rm", "mode": "enforce", "cause": "policy"})
    put(
        data,
        ts=2 * 10**9,
        event="post_tool",
        verdict={"action": "deny", "policy": None, "mode": "observe", "cause": "payload"},
    )
    rows = run(data, "show").stdout.splitlines()
    assert rows[0] == "1970-01-01"
    assert rows[1].split() == ["00:00:00", "claude-code", "pre_tool", "Bash"]
    assert rows[2].split() == ["00:00:01", "claude-code", "pre_tool", "Bash", "deny", "no-rm"]
    assert rows[3].split() == ["00:00:02", "claude-code", "post_tool", "Bash", "deny", "(observe)", "payload"]
    assert len(rows) == 4


def test_lines_of_runs_that_told_of_themselves_say_what_they_are(data: Path) -> None:
    recorder = TraceRecorder(explicit(str(data)))
    recorder.start_trace("bot\x1b[31m", trace_id="t1")
    recorder.step("tool_call", "Read")
    recorder.end_trace()
    rows = [row.split() for row in run(data, "show").stdout.splitlines()[1:]]
    assert [row[1:] for row in rows] == [
        ["trace.start", "t1", "bot\\x1b[31m"], ["trace.step", "t1", "1", "Read"], ["trace.end", "t1", "completed"],
    ]  # fmt: skip


def test_nothing_from_an_agent_reaches_the_terminal_raw(data: Path) -> None:
    nasty = "\x1b]0;owned\x07\u202e\u200b\r\n\x7f\x9b31m"
    put(data, tool=nasty, event=nasty, dialect=nasty, verdict={"action": nasty, "policy": nasty, "mode": nasty})
    for args in (["show"], ["show", "--raw"], ["show", "--json"], ["verify"]):
        out = run(data, *args).stdout
        assert not any(c in out for c in "\x1b\x07\u202e\u200b\r\x7f\x9b"), args
    assert "\\x1b" in run(data, "show").stdout
    assert len(run(data, "show").stdout.splitlines()) == 2


def test_raw_gives_the_bytes_on_disk(data: Path) -> None:
    put(data, x="é\ud800")
    (file,) = (data / "journal").glob("*/*.jsonl")
    assert run(data, "show", "--raw").stdout.encode() == file.read_bytes()


def test_json_has_its_shape(data: Path) -> None:
    outcome = put(data)
    shown = json.loads(run(data, "show", "--json").stdout)
    assert shown["ok"] is True and shown["unreadable"] == 0
    (one,) = shown["lines"]
    assert set(one) == {"day", "key", "ts", "seq", "type", "data"}
    assert (one["seq"], one["type"], one["data"]["run"]) == (1, "hook.received", outcome.run)


def test_choosing_by_session_run_key_day_and_number(data: Path) -> None:
    day = 86_400 * 10**9
    run_id = put(data, "a", 0).run
    put(data, "b", 1)
    put(data, "b", 2 * day)

    def sessions(*args: str) -> list[str]:
        return [x["data"]["session"] for x in json.loads(run(data, "show", "--json", *args).stdout)["lines"]]

    assert sessions() == ["a", "b", "b"]
    assert sessions("--session", "a") == ["a"]
    assert sessions("--session", str(run_id)) == ["a"]
    assert sessions("--session", line.key("claude-code", "b")[:20]) == ["b", "b"]
    assert sessions("--session", "nobody") == []
    assert sessions("--day", "1970-01-01") == ["a", "b", "b"]
    assert sessions("--day", "1970-01-02") == []
    assert sessions("--limit", "1") == ["b"]
    assert sessions("--limit", "0") == ["a", "b", "b"]
    assert "nothing matches" in run(data, "show", "--session", "nobody").stderr
    assert run(data, "show", "--day", "yesterday").exit_code == 2
    assert run(data, "show", "--raw", "--json").exit_code == 2
    assert run(data, "show", "--limit", "-1").exit_code == 2


def test_damage_is_exit_1_and_reading_goes_on(data: Path) -> None:
    put(data)
    put(data)
    assert run(data, "verify").exit_code == 0
    assert run(data, "verify").stdout.startswith("whole: 1 sessions, 1 files, 2 lines, 0 gaps")
    (file,) = (data / "journal").glob("*/*.jsonl")
    rows = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"rubbish\x1b[31m\n" + rows[1])
    result = run(data, "verify")
    assert result.exit_code == 1
    assert "damage: journal/" in result.stdout and "damaged:" in result.stdout
    report = json.loads(run(data, "verify", "--json").stdout)
    assert report["ok"] is False and report["findings"][0]["severity"] == "damage"
    shown = run(data, "show")
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == 2
    assert "could not be read" in shown.stderr


def test_gaps_are_shown(data: Path) -> None:
    put(data)
    (file,) = (data / "journal").glob("*/*.jsonl")
    with file.open("ab") as handle:
        handle.write(b"{half")
    put(data)
    assert "gap  reason torn, bytes 5" in run(data, "show").stdout


def test_a_journal_that_can_not_be_entered_is_an_error_with_its_reason(data: Path, tmp_path: Path) -> None:
    put(data)
    os.rename(data / "journal", tmp_path / "moved")
    os.symlink(tmp_path / "moved", data / "journal")
    result = run(data, "show", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ok"] is False
    assert run(data, "verify").exit_code == 1
