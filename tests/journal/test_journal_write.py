from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from journal_tools import DAY, all_lines, head_file, lines_of, only_file, put, record, spooled

from guardhook.core import limits
from guardhook.journal import line, read, write

# 2026-08-16T12:00:00Z
NOON = 1_786_881_600 * 1_000_000_000


def test_first_event_makes_everything_with_private_modes_whatever_the_umask(journal: str) -> None:
    before = os.umask(0o777)
    try:
        outcome = put(journal)
        again = put(journal)
    finally:
        os.umask(before)
    assert (outcome.state, outcome.seq, again.seq) == ("recorded", 1, 2)
    for path in (Path(journal).parent, *Path(journal).parent.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path != Path(journal).parent:
            assert mode == (0o700 if path.is_dir() else 0o600), path


def test_wide_modes_are_narrowed_by_the_next_event(journal: str) -> None:
    put(journal)
    touched = [Path(journal), only_file(journal), only_file(journal).parent, head_file(journal)]
    for path in touched:
        path.chmod(0o777)
    put(journal)
    assert [stat.S_IMODE(p.stat().st_mode) & 0o077 for p in touched] == [0, 0, 0, 0]


def test_the_line_says_what_was_given_and_what_the_writer_knows(journal: str) -> None:
    outcome = put(
        journal, ts=NOON + 123_456_789, data={"event": "pre_tool", "session": "s-1", "payload": {"a": [1, None, "é"]}}
    )
    (found,) = all_lines(journal)
    assert found.ts == "2026-08-16T12:00:00.123456Z"
    assert found.type == "hook.received"
    assert found.data == {
        "v": 1,
        "run": outcome.run,
        "segment": 1,
        "opens": True,
        "root": "/project",
        "event": "pre_tool",
        "session": "s-1",
        "payload": {"a": [1, None, "é"]},
    }
    assert outcome.run == line.run_id("claude-code", "s-1", 1)
    assert only_file(journal).name == line.key("claude-code", "s-1") + ".jsonl"
    assert only_file(journal).parent.name == "2026-08-16"


def test_no_name_on_disk_holds_a_session_id(journal: str) -> None:
    put(journal, session="../../../evil\nsecret")
    names = [p.name for p in Path(journal).parent.rglob("*")]
    assert names and not any("evil" in n or "secret" in n for n in names)
    assert not (Path(journal).parent.parent / "evil").exists()


def test_runs_open_and_close(journal: str) -> None:
    def run(opens: bool, closes: bool = False) -> str | None:
        return put(journal, opens=opens, closes=closes).run

    one, two, three = (line.run_id("claude-code", "s-1", n) for n in (1, 2, 3))
    assert run(False) == one  # a late event of an unknown session belongs to its first segment
    assert run(True) == one  # which the first opener opens
    assert run(False) == one
    assert run(True) == one  # already open
    assert run(False, closes=True) == one
    assert run(False) == one  # late
    assert run(True) == two
    assert run(True, closes=True) == two
    assert run(False, closes=True) == two
    assert run(True) == three
    assert [x.data.get("opens", False) for x in all_lines(journal)] == [False, True] + [False] * 4 + [
        True,
        False,
        False,
        True,
    ]
    assert [x.seq for x in all_lines(journal)] == list(range(1, 11))


def test_sessions_and_dialects_are_kept_apart(journal: str) -> None:
    runs = {put(journal, session=s, dialect=d).run for s in ("a", "b") for d in ("codex", "gemini")}
    assert len(runs) == 4
    assert len(read.session_files(journal)) == 4


def test_without_a_session_id_the_harness_process_and_the_folder_stand_in(journal: str) -> None:
    first = put(journal, session=None, cwd="/a")
    same = put(journal, session=None, cwd="/a")
    other = put(journal, session=None, cwd="/b")
    assert (first.run, first.seq, same.seq) == (same.run, 1, 2)
    assert other.run != first.run
    assert len(read.session_files(journal)) == 2
    peeked = write.peek(journal, "claude-code", None, "/a")
    assert peeked is not None and peeked.seq == 3


def test_a_real_session_never_shares_a_file_with_a_stand_in(journal: str) -> None:
    put(journal, session=None)
    put(journal, session="unknown-session")
    put(journal, session="")
    assert len(read.session_files(journal)) == 2


def test_peek_shows_the_pinned_root_and_creates_nothing(journal: str) -> None:
    assert write.peek(journal, "claude-code", "s-1", None) is None
    assert not Path(journal).parent.exists()
    put(journal, root=None)
    put(journal, root="/first")
    put(journal, root="/second")
    head = write.peek(journal, "claude-code", "s-1", None)
    assert head is not None
    assert (head.root, head.seq, head.segment, head.state) == ("/first", 4, 1, "open")
    assert [x.data["root"] for x in all_lines(journal)] == [None, "/first", "/first"]


def test_a_run_stays_in_the_file_of_its_first_day(journal: str) -> None:
    put(journal, ts=NOON)
    put(journal, ts=NOON + DAY)
    put(journal, ts=NOON + DAY, opens=False, closes=True)
    put(journal, ts=NOON + 2 * DAY, opens=False)
    assert only_file(journal).parent.name == "2026-08-16"
    put(journal, ts=NOON + 2 * DAY)
    put(journal, ts=NOON + 3 * DAY)
    files = read.session_files(journal)
    assert [f.day for f in files] == ["2026-08-16", "2026-08-18"]
    assert [[x.seq for x in lines_of(journal, f)] for f in files] == [[1, 2, 3, 4], [5, 6]]


def test_a_clock_that_goes_back_breaks_neither_order_nor_tickets(journal: str) -> None:
    put(journal, ts=NOON + DAY)
    put(journal, ts=NOON - 5 * DAY, opens=False)
    put(journal, ts=NOON - 5 * DAY, opens=False, closes=True)
    put(journal, ts=NOON)  # a new segment, on an earlier day
    put(journal, ts=NOON, opens=False, closes=True)
    put(journal, ts=NOON + DAY)  # and one that leads back to the first file
    files = read.session_files(journal)
    assert [[x.seq for x in lines_of(journal, f)] for f in files] == [[4, 5], [1, 2, 3, 6]]
    assert [x.type for x in all_lines(journal)] == ["hook.received"] * 6


@pytest.mark.parametrize("ts", [0, -1, 253_402_300_799 * 10**9])
def test_a_clock_that_is_far_off_still_records(journal: str, ts: int) -> None:
    assert put(journal, ts=ts).state == "recorded"
    assert len(all_lines(journal)) == 1


def test_values_that_are_no_json_still_leave_the_event(journal: str) -> None:
    loop: list[object] = []
    loop.append(loop)
    for bad in ({1, 2}, float("nan"), loop, object()):
        outcome = put(journal, data={"event": "pre_tool", "session": "s-1", "payload": {"x": bad}})
        assert outcome.state == "recorded"
        assert outcome.note is not None
    for found in all_lines(journal):
        assert found.data["event"] == "pre_tool"
        assert found.data["cut"] == [""]


def test_a_line_never_exceeds_its_size(journal: str) -> None:
    payload = {"tool_input": {"content": "é" * (3 * 1024 * 1024), "path": "/x"}, "n": list(range(50_000))}
    assert put(journal, data={"event": "pre_tool", "payload": payload}).state == "recorded"
    put(journal, data={"event": "pre_tool", "payload": {str(i): "x" * 30 for i in range(60_000)}})
    put(journal, data={"event": "pre_tool", "payload": {}, "huge": "y" * (3 * 1024 * 1024)})
    one, two, three = all_lines(journal)
    raw = only_file(journal).read_bytes().splitlines()
    assert all(len(r) <= limits.RECORD_BYTES + 1024 for r in raw)
    assert one.data["cut"] == ["/tool_input/content"]
    assert one.data["payload"]["tool_input"]["path"] == "/x"  # type: ignore[index]
    assert two.data["cut"] == [""] and two.data["event"] == "pre_tool"
    assert three.data["event"] == "pre_tool"


def test_a_lock_that_is_held_spools_within_the_budget_and_nothing_is_lost(journal: str) -> None:
    import fcntl

    put(journal, data={"n": 0})
    with head_file(journal).open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = time.monotonic()
        outcomes = [write.append(journal, record(data={"n": n}, ts=NOON + n), budget=0.02) for n in (1, 2, 3)]
        assert time.monotonic() - started < 2
    assert [o.state for o in outcomes] == ["spooled"] * 3
    assert "locked" in (outcomes[0].note or "")
    assert len(spooled(journal)) == 3
    assert put(journal, data={"n": 4}).seq == 5
    assert [x.data["n"] for x in all_lines(journal)] == [0, 1, 2, 3, 4]
    assert [x.ts for x in all_lines(journal)][1:4] == [line.iso(NOON + n) for n in (1, 2, 3)]
    assert not (Path(journal).parent / "spool").exists()


def test_reading_costs_no_lock(journal: str) -> None:
    import fcntl

    put(journal)
    with head_file(journal).open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert write.peek(journal, "claude-code", "s-1", None) is not None
        assert len(all_lines(journal)) == 1


def test_descriptors_are_given_back(journal: str) -> None:
    put(journal)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(5):
        put(journal)
    write.peek(journal, "claude-code", "s-1", None)
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before
