from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest
from journal_tools import DAY, all_lines, head_file, only_file, put, record

from guardhook.journal import line, read, spool
from guardhook.journal.verify import Report, verify


def damage(report: Report) -> list[str]:
    return [f.what for f in report.findings if f.severity == "damage"]


def warnings(report: Report) -> list[str]:
    return [f.what for f in report.findings if f.severity == "warning"]


# -- reading


def test_entries_are_found_from_any_line_on(journal: str) -> None:
    for n in range(5):
        put(journal, data={"n": n, "text": "x" * n * 1000})
    (file,) = read.session_files(journal)
    fd = read.open_session(journal, file)
    try:
        found = list(read.entries(fd))
        assert [e.line.seq for e in found if e.line] == [1, 2, 3, 4, 5]
        assert found[0].offset == 0 and all(a.end == b.offset for a, b in itertools.pairwise(found))
        assert found[-1].end == os.fstat(fd).st_size
        for place in found:
            assert [e.offset for e in read.entries(fd, place.offset)] == [
                e.offset for e in found if e.offset >= place.offset
            ]
    finally:
        os.close(fd)


def test_an_unfinished_line_is_left_for_the_next_time(journal: str) -> None:
    put(journal)
    with only_file(journal).open("ab") as file:
        file.write(b'{"ts":')
    assert len(all_lines(journal)) == 1


def test_bad_lines_are_told_and_skipped(journal: str) -> None:
    put(journal)
    with only_file(journal).open("ab") as file:
        file.write(b"rubbish\n\n\xff\xff\n")
    fd = os.open(only_file(journal), os.O_RDONLY)
    try:
        found = list(read.entries(fd))
    finally:
        os.close(fd)
    assert [e.line is None for e in found] == [False, True, True, True]
    assert all(e.problem for e in found[1:])


def test_lines_longer_than_a_chunk(journal: str) -> None:
    put(journal, data={"text": "x" * 900_000})
    put(journal, data={"text": "y" * 900_000})
    put(journal, data={"text": "z" * 900_000})
    assert [str(x.data["text"])[0] for x in all_lines(journal)] == ["x", "y", "z"]


def test_a_cursor_holds_only_for_the_file_it_was_made_for(journal: str) -> None:
    put(journal)
    (file,) = read.session_files(journal)
    fd = read.open_session(journal, file)
    end = os.fstat(fd).st_size
    cursor = read.cursor_at(fd, 0, end, 1)
    put(journal)
    assert read.start_of(fd, cursor, 0) == end
    assert [e.line.seq for e in read.entries(fd, read.start_of(fd, cursor, 0)) if e.line] == [2]
    assert read.start_of(fd, None, 0) == 0
    assert read.start_of(fd, cursor, 1) == 0  # rewritten since
    os.close(fd)
    path = only_file(journal)
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    os.replace(copy, path)
    path.chmod(0o600)
    fd = read.open_session(journal, file)
    assert read.start_of(fd, cursor, 0) == 0  # another inode
    os.truncate(path, 10)
    assert read.start_of(fd, read.cursor_at(fd, 0, end, 1), 0) == 0  # shorter than it was
    os.close(fd)


def test_generation_is_a_number_or_nothing(journal: str) -> None:
    assert read.generation(journal) == 0
    put(journal)
    Path(journal, "generation").write_text("7\n")
    assert read.generation(journal) == 7
    Path(journal, "generation").write_text("x")
    assert read.generation(journal) == 0


def test_names_that_are_not_ours_are_left_out(journal: str) -> None:
    put(journal)
    Path(journal, "notes").mkdir()
    Path(journal, "notes", "a.jsonl").write_text("x\n")
    (only_file(journal).parent / "readme.txt").write_text("x\n")
    assert len(read.session_files(journal)) == 1


# -- verifying


def test_a_healthy_journal_is_whole(journal: str) -> None:
    for session in ("a", "b"):
        for n in range(3):
            put(journal, session=session, ts=n * DAY, closes=n == 1)
    report = verify(journal)
    assert report.findings == []
    assert (report.sessions, report.files, report.lines, report.gaps, report.spooled) == (2, 4, 6, 0, 0)


def test_recorded_gaps_are_counted_and_no_damage(journal: str) -> None:
    put(journal)
    with only_file(journal).open("ab") as file:
        file.write(b'{"ts":"half')
    report = verify(journal)
    assert not report.damaged and "unfinished" in warnings(report)[0]
    put(journal)
    report = verify(journal)
    assert report.findings == [] and report.gaps == 1


def test_an_interrupted_writer_is_a_warning(journal: str) -> None:
    put(journal)
    old = head_file(journal).read_bytes()
    put(journal)
    head_file(journal).write_bytes(old)
    report = verify(journal)
    assert not report.damaged and "behind" in warnings(report)[0]
    head_file(journal).write_bytes(b"?")
    assert not verify(journal).damaged
    head_file(journal).unlink()
    assert not verify(journal).damaged


def edit(path: Path, change: object) -> None:
    rows = path.read_bytes().splitlines(keepends=True)
    change(rows)  # type: ignore[operator]
    path.write_bytes(b"".join(rows))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows.pop(1), "missing"),
        (lambda rows: rows.insert(1, rows[0]), "follows"),
        (lambda rows: rows.reverse(), "follows"),
        (lambda rows: rows.__setitem__(1, b"rubbish\n"), "can't be read"),
        (lambda rows: rows.__setitem__(1, rows[1][:20] + b"\n"), "can't be read"),
        (lambda rows: rows.pop(), "lost its last"),
        (lambda rows: rows.clear(), "lost its last"),
    ],
    ids=["removed", "doubled", "reversed", "overwritten", "cut", "last removed", "emptied"],
)
def test_tampering_is_damage(journal: str, change: object, says: str) -> None:
    for _ in range(4):
        put(journal)
    edit(only_file(journal), change)
    report = verify(journal)
    assert report.damaged
    assert any(says in what for what in damage(report)), damage(report)


def test_a_removed_file_is_damage_until_the_next_event_says_so(journal: str) -> None:
    put(journal)
    only_file(journal).unlink()
    assert not verify(journal).damaged  # no file, no session: only its head is left
    put(journal)
    report = verify(journal)
    assert not report.damaged and report.gaps == 1


def test_links_modes_owners(journal: str, tmp_path: Path) -> None:
    put(journal)
    file = only_file(journal)
    file.chmod(0o644)
    assert "mode 0644" in damage(verify(journal))[0]
    file.chmod(0o600)
    file.parent.chmod(0o755)
    assert "mode 0755" in damage(verify(journal))[0]
    file.parent.chmod(0o700)
    os.link(file, tmp_path / "second")
    assert "more than one name" in damage(verify(journal))[0]
    (tmp_path / "second").unlink()
    moved = tmp_path / "moved"
    file.rename(moved)
    file.symlink_to(moved)
    assert verify(journal).damaged
    file.unlink()
    os.mkfifo(file)
    assert "not a regular file" in damage(verify(journal))[0]
    if os.geteuid() == 0:
        file.unlink()
        moved.rename(file)
        os.chown(file, 12345, 12345)
        assert "another user" in damage(verify(journal))[0]
        os.chown(file, 0, 0)
        os.chown(file.parent, 12345, 12345)
        assert verify(journal).damaged


def test_the_spool_is_counted_and_its_damage_told(journal: str) -> None:
    put(journal)
    waiting = record(session="x")
    spool.put(
        spool.folder_of(journal), line.key("claude-code", "x"), "claude-code", "x", waiting, line.body(waiting.data)
    )
    report = verify(journal)
    assert report.spooled == 1 and report.findings == []
    folder = next((Path(journal).parent / "spool").iterdir())
    (folder / "1.bad").write_text("")
    (folder / ".2").write_text("")
    report = verify(journal)
    assert damage(report) == ["a waiting entry can't be read"]
    assert warnings(report) == ["an entry that was never finished"]


def test_checking_changes_nothing(journal: str) -> None:
    put(journal)
    only_file(journal).chmod(0o644)
    only_file(journal).parent.chmod(0o755)
    before = [(p, p.lstat().st_mode, p.lstat().st_mtime_ns) for p in sorted(Path(journal).rglob("*"))]
    verify(journal)
    list(all_lines(journal))
    assert [(p, p.lstat().st_mode, p.lstat().st_mtime_ns) for p in sorted(Path(journal).rglob("*"))] == before


def test_strange_names_are_warned_of(journal: str) -> None:
    put(journal)
    Path(journal, "stranger").write_text("x")
    assert warnings(verify(journal)) == ["is not the journal's"]


# -- imports


def imported(journal: str, *events: tuple[str, dict[str, object]]) -> Path:
    """An imported run as the importer leaves it: a note, then these lines."""
    own: dict[str, object] = {"v": line.VERSION, "run": line.run_id("x", "t", 1), "segment": 1, "root": None}
    path = Path(journal) / read.IMPORTS / "x-0.jsonl"
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [line.build(0, 1, line.NOTE, own, line.body({"origin": {}}))]
    for seq, (kind, event) in enumerate(events, 2):
        more: dict[str, object] = {"closes": True} if kind == "trace.end" else {}
        lines.append(line.build(0, seq, kind, {**own, **more}, line.body({"trace": "t", "event": event})))
    path.write_bytes(b"".join(lines))
    path.chmod(0o600)
    (path.parent / ".lock").touch(0o600)
    return path


WHOLE: tuple[tuple[str, dict[str, object]], ...] = (("trace.start", {}), ("trace.step", {"name": "a"}), ("trace.end", {}))  # fmt: skip


def test_imports_are_verified_too(journal: str) -> None:
    imported(journal, *WHOLE)
    report = verify(journal)
    assert not report.findings and (report.files, report.lines) == (1, 4)


def test_a_copied_run_may_end_as_it_ended(journal: str) -> None:
    imported(journal, ("trace.start", {"verbatim": True}), ("trace.step", {}))
    assert not verify(journal).findings


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("cut", "its last lines are missing"), ("torn", "its end is missing"), ("removed", "1 tickets are missing: lines were removed"),
        ("first", "1 tickets are missing: lines were removed"), ("changed", "a line can't be read"), ("empty", "its last lines are missing"),
        ("mode", "can be read or written by others"), ("link", "is not read"), ("names", "is not read"), ("fifo", "is not read"),
    ],
)  # fmt: skip
def test_damage_of_imports(journal: str, how: str, said: str) -> None:
    path = imported(journal, *WHOLE)
    lines = path.read_bytes().splitlines(keepends=True)
    if how in ("cut", "torn", "removed", "first", "changed", "empty"):
        path.write_bytes(b"".join({
            "cut": lines[:-1], "torn": [*lines[:-1], lines[-1][:-5]], "removed": [*lines[:2], *lines[3:]], "first": lines[1:],
            "changed": [*lines[:2], b"x" + lines[2], *lines[3:]], "empty": [],
        }[how]))  # fmt: skip
    elif how == "mode":
        path.chmod(0o644)
    elif how == "names":
        os.link(path, path.with_name("x-1.jsonl"))
    else:
        path.unlink()
        os.mkfifo(path) if how == "fifo" else path.symlink_to("/etc/passwd")
    assert any(said in what for what in damage(verify(journal))), verify(journal)


def test_other_things_beside_imports(journal: str) -> None:
    folder = imported(journal, *WHOLE).parent
    (folder / ".x.1.ab.part").touch()
    (folder / "other").touch()
    found = verify(journal)
    assert not found.damaged and len(warnings(found)) == 2
    folder.chmod(0o755)
    assert verify(journal).damaged
