from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_tools import DAY, all_lines, lines_of, put, record, spooled

from guardhook.journal import line, read, spool, write


def wait(journal: str, session: str = "s-1", **over: object) -> None:
    """Puts an entry into the spool, as a writer does that can't reach the journal."""
    given_ = record(session=session, **over)
    key = line.key(given_.dialect, session)
    spool.put(spool.folder_of(journal), key, given_.dialect, session, given_, line.body(given_.data))


def test_entries_are_private_and_named_without_session_ids(journal: str) -> None:
    wait(journal, session="secret-session")
    (entry,) = spooled(journal)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    assert "secret" not in str(entry.relative_to(Path(journal).parent))


def test_a_few_are_taken_in_per_hook_and_before_its_own_line(journal: str) -> None:
    for n in range(20):
        wait(journal, data={"n": n}, ts=1000 + n)
    put(journal, data={"n": 100})
    assert [x.data["n"] for x in all_lines(journal)] == [*range(8), 100]
    assert len(spooled(journal)) == 12
    put(journal, data={"n": 101})
    put(journal, data={"n": 102})
    assert [x.data["n"] for x in all_lines(journal)] == [*range(8), 100, *range(8, 16), 101, *range(16, 20), 102]
    assert not (Path(journal).parent / "spool").exists()


def test_large_entries_are_taken_in_one_by_one(journal: str) -> None:
    for n in range(3):
        wait(journal, data={"n": n, "text": "x" * 700_000}, ts=1000 + n)
    put(journal, data={"n": 100})
    assert [x.data["n"] for x in all_lines(journal)] == [0, 100]


def test_a_session_that_never_returns_is_taken_in_by_others(journal: str) -> None:
    wait(journal, session="gone", data={"n": 1}, root="/gone")
    wait(journal, session="gone", data={"n": 2}, closes=True)
    put(journal, session="other")
    lines = {x.data.get("n"): x for x in all_lines(journal)}
    assert set(lines) == {1, 2, None}
    assert lines[1].data["run"] == line.run_id("claude-code", "gone", 1)
    assert lines[1].data["root"] == "/gone"
    assert spooled(journal) == []


def test_runs_are_counted_as_if_nothing_had_been_late(journal: str) -> None:
    put(journal)
    wait(journal, opens=False, closes=True, data={"n": 1}, ts=1)
    wait(journal, data={"n": 2}, ts=2)
    outcome = put(journal, opens=False)
    assert [x.data["segment"] for x in sorted(all_lines(journal), key=lambda x: x.seq)] == [1, 1, 2, 2]
    assert outcome.run == line.run_id("claude-code", "s-1", 2)


def test_late_entries_go_to_the_file_of_their_run_and_later_ones_to_the_next(journal: str) -> None:
    put(journal, ts=0, data={"n": 0})
    for n, (day, opens, closes) in enumerate(
        [(0, False, False), (0, False, True), (0, False, False), (1, True, False), (1, False, True), (2, True, False)],
        1,
    ):
        wait(journal, ts=day * DAY + n, opens=opens, closes=closes, data={"n": n})
    put(journal, ts=2 * DAY + 50, opens=False, data={"n": 7})
    files = read.session_files(journal)
    assert [[x.data["n"] for x in lines_of(journal, f)] for f in files] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    assert [x.data["segment"] for x in all_lines(journal)] == [1, 1, 1, 1, 2, 2, 3, 3]
    assert [x.seq for x in all_lines(journal)] == list(range(1, 9))
    assert spooled(journal) == []


def test_damaged_entries_are_set_aside_and_stop_nothing(journal: str) -> None:
    wait(journal, data={"n": 1}, ts=1)
    folder = spooled(journal)[0].parent
    (folder / "00000000000000000000-1-0").write_bytes(b'{"v":1,')
    (folder / ".unfinished").write_bytes(b"x")
    (folder / "00000000000000000001-1-0").symlink_to("/etc/passwd")
    put(journal, data={"n": 2})
    assert [x.data["n"] for x in all_lines(journal)] == [1, 2]
    assert sorted(os.listdir(folder)) == [".unfinished", "00000000000000000000-1-0.bad", "00000000000000000001-1-0"]


def test_entries_that_can_not_be_removed_are_not_taken_in_twice(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import posix

    wait(journal, data={"n": 1})

    def refused(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "no")

    with monkeypatch.context() as patch:
        patch.setattr(posix, "unlink", refused)
        for n in (2, 3, 4):
            assert put(journal, data={"n": n}).state == "recorded"
    put(journal, data={"n": 5})
    assert [x.data["n"] for x in all_lines(journal)] == [1, 2, 3, 4, 5]
    assert spooled(journal) == []


def test_a_spool_that_is_a_link_is_not_used(journal: str, tmp_path: Path) -> None:
    Path(journal).parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (Path(journal).parent / "spool").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        wait(journal)
    assert put(journal).state == "recorded"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_taking_in(raw: bytes) -> None:
    assert spool.parse(raw) is None


def test_lone_surrogates_survive_the_spool(journal: str) -> None:
    wait(journal, session="s\ud800", data={"text": "\udfff", "payload": {"\ud83d": 1}})
    put(journal, session="s\ud800")
    assert all_lines(journal)[0].data["text"] == "\udfff"


def test_the_spool_costs_nothing_when_it_is_not_there(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    put(journal)
    for name in (
        "guardhook.journal.spool",
        "guardhook.journal.recover",
        "guardhook.journal.fit",
        "guardhook.journal.process",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)
    put(journal)
    write.peek(journal, "claude-code", "s-1", None)
    assert "guardhook.journal.spool" not in sys.modules
    assert "guardhook.journal.recover" not in sys.modules
