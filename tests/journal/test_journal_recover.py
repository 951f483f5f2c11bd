"""Crashes between two steps, played back by putting the files into the state that each would leave."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal_tools import DAY, all_lines, head_file, only_file, put, record, spooled

from guardhook.journal import line, read, verify, write


def seqs(journal: str) -> list[int]:
    return [x.seq for x in all_lines(journal)]


def test_killed_after_the_line_and_before_the_head(journal: str) -> None:
    put(journal)
    old = head_file(journal).read_bytes()
    put(journal, opens=False, closes=True, root="/later")
    put(journal)
    newer = put(journal).run
    head_file(journal).write_bytes(old)
    outcome = put(journal, opens=False)
    assert (outcome.seq, outcome.run) == (5, newer)
    assert seqs(journal) == [1, 2, 3, 4, 5]
    assert [x.type for x in all_lines(journal)] == ["hook.received"] * 5


def test_killed_between_line_and_head_when_the_day_changed(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of a new segment goes to a new file; the head must already lead there when its writer dies."""
    import posix

    put(journal, ts=0)
    put(journal, ts=1, opens=False, closes=True)
    real = posix.pwrite
    calls = 0

    def dying(fd: int, data: bytes, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("killed here")
        return real(fd, data, offset)

    with monkeypatch.context() as patch:
        patch.setattr(posix, "pwrite", dying)
        run = put(journal, ts=DAY).run
    assert calls == 2
    late = put(journal, ts=DAY + 1, opens=False)
    assert (late.seq, late.run) == (4, run)
    assert [x.data["segment"] for x in all_lines(journal)] == [1, 1, 2, 2]
    assert [f.day for f in read.session_files(journal)] == ["1970-01-01", "1970-01-02"]


def test_killed_before_the_line_when_the_day_changed(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import posix

    put(journal, ts=0, closes=True)

    def dying(fd: int, data: bytes) -> int:
        raise OSError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(posix, "write", dying)
        assert put(journal, ts=DAY).state == "nowhere"
    assert put(journal, ts=DAY).seq == 2
    assert put(journal, ts=DAY, opens=False).seq == 3
    assert [x.seq for x in all_lines(journal)] == [1, 2, 3]


@pytest.mark.parametrize("tail", [b"", b"{half"])
def test_a_clock_that_leads_back_to_a_file_with_an_odd_end(
    journal: str, tail: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    import posix

    put(journal, ts=0, closes=True)
    first = only_file(journal)
    put(journal, ts=DAY, closes=True)
    with first.open("ab") as file:
        file.write(tail)

    def dying(fd: int, data: bytes) -> int:
        raise OSError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(posix, "write", dying)
        put(journal, ts=1)
    assert put(journal, ts=1).state == "recorded"
    found = [e.line for e in read.entries(os.open(first, os.O_RDONLY))]
    assert [x.seq for x in found if x] == ([1, 3] if not tail else [1, 3, 4])
    assert [x is None for x in found] == ([False, False] if not tail else [False, True, False, False])
    assert not verify.verify(journal).damaged


@pytest.mark.parametrize(
    "damage", [b"", b"\0" * 200, b"{}\n", b"x", None], ids=["empty", "zeros", "other", "torn", "gone"]
)
def test_a_lost_head_is_derived_from_the_file(journal: str, damage: bytes | None) -> None:
    put(journal, ts=0, root="/pinned")
    put(journal, ts=1, closes=True)
    run = put(journal, ts=DAY).run
    head = head_file(journal)
    if damage is None:
        head.unlink()
    else:
        head.write_bytes(damage)
    outcome = put(journal, ts=2 * DAY, root="/other")
    assert (outcome.seq, outcome.run) == (4, run)
    assert seqs(journal) == [1, 2, 3, 4]
    assert all_lines(journal)[-1].data["root"] == "/pinned"
    assert len(list(Path(journal).glob("1970-*"))) == 2


def test_all_heads_gone(journal: str) -> None:
    for name in ("a", "b"):
        put(journal, session=name)
    shutil.rmtree(Path(journal, "heads"))
    assert [put(journal, session=name).seq for name in ("a", "b")] == [2, 2]


def test_a_torn_line_is_marked_and_the_next_one_starts_on_its_own(journal: str) -> None:
    put(journal)
    put(journal)
    file = only_file(journal)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    outcome = put(journal)
    raw = file.read_bytes().splitlines()
    assert len(raw) == 4
    with pytest.raises(line.BadLine):
        line.parse(raw[1])
    gap, last = line.parse(raw[2]), line.parse(raw[3])
    assert gap.type == "gap"
    assert gap.data["reason"] == "shrunk"
    assert gap.data["bytes"] == 20
    assert (gap.seq, last.seq, outcome.seq) == (3, 4, 4)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_cut_anywhere_loses_only_what_was_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """With the old head or with none: whole lines before the cut stay, new ones follow with higher tickets, all lines but one can be read."""
    journal = str(tmp_path_factory.mktemp("j") / "journal")
    count = data.draw(st.integers(1, 4))
    for n in range(count):
        put(journal, data={"n": n, "text": "x" * 50})
    file = only_file(journal)
    whole = file.read_bytes()
    place = data.draw(st.integers(0, len(whole)))
    file.write_bytes(whole[:place])
    if data.draw(st.booleans()):
        head_file(journal).unlink()
    kept = whole[:place].count(b"\n")
    for n in (10, 11):
        assert put(journal, data={"n": n}).state == "recorded"
    good: list[line.Line] = []
    bad = 0
    for raw in file.read_bytes().splitlines():
        try:
            good.append(line.parse(raw))
        except line.BadLine:
            bad += 1
    whole_without_feed = whole[place : place + 1] == b"\n"
    kept += whole_without_feed
    assert bad == (0 if whole[:place].endswith(b"\n") or place == 0 or whole_without_feed else 1)
    numbers = [x.data["n"] for x in good if "n" in x.data]
    assert numbers == [*range(kept), 10, 11]
    tickets = [x.seq for x in good]
    assert tickets == sorted(set(tickets))
    assert file.read_bytes().endswith(b"\n")


def test_an_unfinished_line_after_the_head_is_a_torn_gap(journal: str) -> None:
    put(journal)
    with only_file(journal).open("ab") as file:
        file.write(b'{"ts":"2026-08-16T00:00:00.0000')
    assert put(journal).seq == 3
    gap = line.parse(only_file(journal).read_bytes().splitlines()[2])
    assert (gap.type, gap.data["reason"], gap.data["bytes"]) == ("gap", "torn", 31)


def test_a_line_that_only_lacks_its_end_keeps_its_ticket(journal: str) -> None:
    put(journal)
    put(journal, data={"n": 2})
    file = only_file(journal)
    file.write_bytes(file.read_bytes()[:-1])
    head_file(journal).unlink()
    assert put(journal).seq == 4
    assert [(x.seq, x.type) for x in all_lines(journal)] == [
        (1, "hook.received"),
        (2, "hook.received"),
        (3, "gap"),
        (4, "hook.received"),
    ]


def test_foreign_lines_are_counted_and_kept(journal: str) -> None:
    put(journal)
    with only_file(journal).open("ab") as file:
        file.write(b"hello\nworld\n")
    assert put(journal).seq == 3
    raw = only_file(journal).read_bytes().splitlines()
    assert raw[1:3] == [b"hello", b"world"]
    assert line.parse(raw[3]).data["reason"] == "foreign"


def test_a_vanished_file_is_a_gap_not_a_second_ticket_one(journal: str) -> None:
    for _ in range(3):
        put(journal)
    only_file(journal).unlink()
    assert put(journal).seq == 5
    gap, last = all_lines(journal)
    assert (gap.data["reason"], gap.seq, last.seq) == ("shrunk", 4, 5)


def test_a_longer_old_head_leaves_nothing_behind(journal: str) -> None:
    put(journal, root="/" + "long" * 500)
    head = write.parse_head(head_file(journal).read_bytes())
    assert head is not None
    head.root = "/short"
    with head_file(journal).open("r+b") as file:
        file.write(write.render_head(head))
    again = write.parse_head(head_file(journal).read_bytes())
    assert again is not None and again.root == "/short"
    put(journal)
    assert seqs(journal) == [1, 2]


@given(st.binary(max_size=300))
def test_no_bytes_are_taken_for_a_head_by_mistake(raw: bytes) -> None:
    assert write.parse_head(raw) is None


def test_spool_entries_that_a_killed_writer_took_in_are_not_taken_in_twice(journal: str) -> None:
    import fcntl

    put(journal, data={"n": 0})
    with head_file(journal).open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for n in (1, 2, 3):
            write.append(journal, record(data={"n": n}), budget=0.0)
    waiting = {p: p.read_bytes() for p in spooled(journal)}
    folder = next(iter(waiting)).parent
    before = head_file(journal).read_bytes()
    put(journal, data={"n": 4})
    after = head_file(journal).read_bytes()
    # Killed before the files were removed, with the head written; then without the head; then with no head at all.
    for head in (after, before, b""):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path, content in waiting.items():
            path.write_bytes(content)
        head_file(journal).write_bytes(head)
        put(journal, data={"n": 5})
        assert sorted(x.data["n"] for x in all_lines(journal) if x.data["n"] != 5) == [0, 1, 2, 3, 4]
        assert spooled(journal) == []
    assert seqs(journal) == list(range(1, 9))
