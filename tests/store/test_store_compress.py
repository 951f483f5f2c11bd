"""gc compresses silent sessions: they read as before, may be taken up again, and are mended when something was cut short."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from store_rig import Journal, bash_call, event, everything

from guardhook.commands import main
from guardhook.journal import files, line, pack, read, verify, write
from guardhook.rollout import render, runs
from guardhook.store import gc, open_store, project, schema

KEY = line.key("claude-code", "00000000-0000-4000-8000-000000000001")


def run(base: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--dir", str(base)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def report(base: Path, *words: str) -> dict[str, Any]:
    result = run(base, "gc", "--json", *words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def fill(journal: Journal, calls: int = 60, first: int = 0) -> None:
    if not first:
        journal.add(event("session_start"), event("user_prompt", prompt="look"))
    for number in range(first, first + calls):
        journal.add(*bash_call(f"ls {number}", str(number)))
    age(journal)


def age(journal: Journal, days: float = 30) -> None:
    at = time.time() - days * 86_400
    for path in (journal.base / "journal").glob("20*/*"):
        os.utime(path, (at, at))
        path.chmod(0o600)
        path.parent.chmod(0o700)


def names(journal: Journal) -> list[str]:
    return sorted(p.name for p in (journal.base / "journal").glob("20*/*") if p.suffix != ".head")


def head(journal: Journal) -> None:
    """The head that a writer would have left: derived from the file, as writers do."""
    held = write.Session(journal.folders.journal, KEY, "claude-code", "x")
    try:
        held.lock(time.monotonic() + 5)
        os.pwrite(held._lock, write.render_head(held.head), 0)
    finally:
        held.close()


def again(journal: Journal) -> write.Outcome:
    """The session's hook writes one more line."""
    data = event("pre_tool", tool="Bash", given={"command": "ls again"}, call="again")
    record = write.Record(line.RECEIVED, journal.clock + 10**9, "claude-code", str(data["session"]), "/p", "/p", True, False, data)  # fmt: skip
    return write.append(journal.folders.journal, record, budget=5.0)


def test_a_compressed_session_reads_as_before(journal: Journal) -> None:
    fill(journal)
    head(journal)
    age(journal)
    with journal.open() as store:
        before = everything(store)
        ref = runs.of_key(store, KEY)[0]
    events = list(render.render(journal.folders, ref))
    found = report(journal.base, "--compress-after", "7d")
    assert names(journal) == [f"{KEY}.jsonl.gz"] and [len(found[k]) for k in ("removed", "compressed")] == [0, 1]
    size = sum(p.stat().st_size for p in (journal.base / "journal").glob("20*/*"))
    assert found["bytes_saved"] == found["bytes_before"] - size > size
    assert os.stat(journal.path().with_suffix(".jsonl.gz")).st_mode & 0o777 == 0o600
    with journal.open() as store:
        assert everything(store) == before
    (journal.base / "traces.db").unlink()
    with journal.open() as store:
        assert everything(store) == before
        assert not project.behind.behind(store.connection, journal.folders.journal)  # and nothing is read twice
    assert list(render.render(journal.folders, ref)) == events
    assert not verify.verify(journal.folders.journal).findings
    judged = json.loads(run(journal.base, "backtest", "--since", "2020-01-01", "--json").stdout)
    assert judged["calls"] == 60 and run(journal.base, "guard", "test", ref.trace_id).exit_code == 0
    assert report(journal.base, "--compress-after", "7d")["compressed"] == []


@pytest.mark.parametrize("lines", [1, 7, 50])
def test_it_is_read_in_pieces_like_any_other(journal: Journal, lines: int) -> None:
    fill(journal)
    with journal.open() as store:
        before = everything(store)
    gc.collect(journal.folders, compress_before=time.time())
    again(journal)
    (journal.base / "traces.db").unlink()
    connection = schema.connect(f"{journal.base}/traces.db", create=True)
    project.catch_up(connection, journal.folders.journal, batch_lines=lines)
    connection.close()
    with journal.open() as store:
        traces, problems = everything(store)  # type: ignore[misc]
    assert not problems and len(traces) == 1
    assert [s["input"] for s in traces[0][4]][:60] == [s["input"] for s in before[0][0][4]]  # type: ignore[index]
    assert traces[0][4][-1]["input"]["command"] == "ls again"


def test_a_session_that_is_taken_up_again_goes_on_without_a_gap(journal: Journal) -> None:
    fill(journal)
    head(journal)
    age(journal)
    report(journal.base, "--compress-after", "7d")
    assert again(journal).state == "recorded"
    assert names(journal) == [f"{KEY}.jsonl", f"{KEY}.jsonl.gz"]
    assert not verify.verify(journal.folders.journal).findings
    with journal.open() as store:
        (trace,) = store.traces().items
        assert trace.step_count == 61 and not store.problems()
        (ref,) = runs.of_key(store, KEY)  # a run is never split
    assert ref.last_seq == 123 and len(read.session_files(journal.folders.journal)) == 1
    age(journal)
    report(journal.base, "--older-than", "365d")  # what came since is too little to be worth it
    assert names(journal) == [f"{KEY}.jsonl", f"{KEY}.jsonl.gz"]
    for number in range(40):
        data = event("pre_tool", tool="Bash", given={"command": f"ls {number} {'x' * 300}"}, call=f"late{number}")
        record = write.Record(line.RECEIVED, journal.clock + 10**10, "claude-code", str(data["session"]), "/p", "/p", True, False, data)  # fmt: skip
        write.append(journal.folders.journal, record, budget=5.0)
    age(journal)
    assert len(report(journal.base, "--compress-after", "7d")["compressed"]) == 1
    assert names(journal) == [f"{KEY}.jsonl.gz"] and not verify.verify(journal.folders.journal).findings
    with gzip.open(journal.path().with_suffix(".jsonl.gz")) as file:
        assert [json.loads(row)["seq"] for row in file] == list(range(1, 164))
    with journal.open() as store:
        assert store.traces().items[0].step_count == 101 and not store.problems()


def test_a_lost_head_is_found_again_in_a_compressed_file(journal: Journal) -> None:
    fill(journal)
    report(journal.base, "--compress-after", "7d")
    (journal.base / "journal" / "heads" / KEY).unlink()
    assert again(journal).seq == 123 and not verify.verify(journal.folders.journal).findings
    with journal.open() as store:
        assert store.traces().items[0].step_count == 61 and not store.problems()


def test_killed_between_the_compressed_file_and_the_plain_one(journal: Journal) -> None:
    fill(journal)
    plain = journal.path().read_bytes()
    report(journal.base, "--compress-after", "7d")
    packed = journal.path().with_suffix(".jsonl.gz").read_bytes()
    journal.path().write_bytes(plain)
    age(journal)
    with journal.open() as store:
        assert store.traces().items[0].step_count == 60  # twice there, told once
    assert len(report(journal.base, "--compress-after", "7d")["compressed"]) == 1
    assert names(journal) == [f"{KEY}.jsonl.gz"] and journal.path().with_suffix(".jsonl.gz").read_bytes() == packed
    with journal.open() as store:
        assert store.traces().items[0].step_count == 60 and not store.problems()


class Killed(BaseException):
    pass


def killed(monkeypatch: pytest.MonkeyPatch, journal: Journal, name: str) -> None:
    """gc, ended where pack calls this function."""
    with monkeypatch.context() as patch:

        def end(*args: object, **more: object) -> None:
            raise Killed

        patch.setattr(f"guardhook.journal.pack.{name}", end)
        with pytest.raises(Killed):
            gc.collect(journal.folders, compress_before=time.time() - 7 * 86_400)


def test_a_compressed_file_that_a_killed_gc_left_is_as_old_as_its_lines(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was as old as the kill: the session counted as heard of that day, stayed twice on disk for a week, and outlived its time."""
    fill(journal)
    killed(monkeypatch, journal, "_ends_with")  # in place, and not yet looked at
    assert names(journal) == [f"{KEY}.jsonl", f"{KEY}.jsonl.gz"]
    assert len(report(journal.base, "--compress-after", "7d")["compressed"]) == 1
    assert names(journal) == [f"{KEY}.jsonl.gz"]


def test_what_a_killed_gc_left_half_written_stops_no_later_one(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(journal)
    report(journal.base, "--compress-after", "7d")
    fill(journal, first=60)
    killed(
        monkeypatch, journal, "_copy_head"
    )  # the second part is in the compressed file, and its plain file still there
    journal.path().with_suffix(".gz.tmp").touch()
    age(journal)
    assert len(report(journal.base, "--compress-after", "7d")["compressed"]) == 1
    assert names(journal) == [f"{KEY}.jsonl.gz"]
    with journal.open() as store:
        assert store.traces().items[0].step_count == 120 and not store.problems()


@pytest.mark.parametrize("taken_up", [False, True])
def test_expanding_gives_the_file_back(journal: Journal, taken_up: bool) -> None:
    fill(journal)
    plain = journal.path().read_bytes()
    report(journal.base, "--compress-after", "7d")
    if taken_up:
        again(journal)
    rest = journal.path().read_bytes() if taken_up else b""
    held = write.Session(journal.folders.journal, KEY, "", "")
    try:
        held.lock(time.monotonic() + 5)
        assert pack.expand(held, line.day(1_790_000_000_000_000_000)) and not pack.expand(held, line.day(1_790_000_000_000_000_000))  # fmt: skip
    finally:
        held.close()
    assert names(journal) == [f"{KEY}.jsonl"] and journal.path().read_bytes() == plain + rest
    assert not verify.verify(journal.folders.journal).findings
    again(journal)
    assert not verify.verify(journal.folders.journal).findings


def test_expanding_that_was_cut_short_is_finished(journal: Journal) -> None:
    fill(journal)
    plain = journal.path().read_bytes()
    report(journal.base, "--compress-after", "7d")
    journal.path().write_bytes(plain + b"")
    more = journal.bytes_of(event("stop"))
    journal.path().write_bytes(plain + more)
    age(journal)
    report(journal.base, "--compress-after", "7d")
    with gzip.open(journal.path().with_suffix(".jsonl.gz")) as file:
        assert file.read() == plain + more


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6), st.data())
def test_places_in_compressed_files_are_remembered(base: int, plain: int, packed: int, data: st.DataObject) -> None:
    """The store compares what it remembers with the size on disk: only the end may equal it."""
    for beside, size in ((True, plain), (False, packed)):
        total = base + (plain if beside else 0)
        opened = read.Opened(-1, os.stat_result((0o100600, 1, 1, 1, 0, 0, size, 0, 0, 0)), base, beside)
        place = data.draw(st.integers(0, total))
        assert opened.position(opened.stored(place)) == place
        assert (opened.stored(place) == size) == (place == total)


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "tail"])
def test_a_damaged_file_is_told_and_the_rest_is_read(journal: Journal, damage: str) -> None:
    fill(journal)
    report(journal.base, "--compress-after", "7d")
    packed = journal.path().with_suffix(".jsonl.gz")
    data = packed.read_bytes()
    packed.write_bytes({"cut": data[:-9], "garbage": b"x" * 500, "empty": b"", "tail": data + b"tail"}[damage])
    age(journal)
    journal.add(event("pre_tool", tool="Bash", given={"command": "ls"}, session="other", call="1"))
    with journal.open() as store:
        assert store.traces().total == 1
        (problem,) = store.problems()
        assert (problem.kind, problem.file) == ("unreadable", f"{packed.parent.name}/{KEY}.jsonl")
    assert any("damaged" in str(f) for f in verify.verify(journal.folders.journal).findings)
    assert run(journal.base, "gc", "--older-than", "1d").exit_code == 0 and not packed.exists()


@pytest.mark.parametrize("kind", ["garbage", "folder", "pipe", "link"])
def test_something_else_beside_a_plain_file_does_not_hide_it(journal: Journal, kind: str) -> None:
    fill(journal)
    head(journal)
    with journal.open() as store:
        before = everything(store)
    beside = journal.path().with_suffix(".jsonl.gz")
    {
        "garbage": lambda: beside.write_bytes(b"x" * 500), "folder": beside.mkdir, "pipe": lambda: os.mkfifo(beside), "link": lambda: beside.symlink_to("/etc/passwd"),
    }[kind]()  # fmt: skip
    at = time.time() - 30 * 86_400
    os.utime(journal.path(), (at, at))
    (journal.base / "traces.db").unlink()
    with journal.open() as store:
        traces, problems = everything(store)  # type: ignore[misc]
    assert traces == before[0] and [p["file"][-9:] for p in problems] == [".jsonl.gz"]  # type: ignore[index]
    with journal.open() as store:
        assert len(store.problems()) == 1
    assert any(".jsonl.gz" in str(f) for f in verify.verify(journal.folders.journal).findings)
    assert report(journal.base, "--compress-after", "7d")["compressed"] == [] and journal.path().exists()
    for path in (journal.path(), beside):
        os.utime(path, (at, at), follow_symlinks=False)
    assert len(report(journal.base, "--older-than", "7d")["removed"]) == 1 and not journal.path().exists()


def test_a_file_that_would_fill_the_disk_is_not_unpacked(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(journal)
    report(journal.base, "--compress-after", "7d")
    monkeypatch.setattr(pack, "MOST_BYTES", 1000)
    with journal.open() as store:
        assert store.problems()[0].kind == "unreadable"


def test_links_are_not_followed(journal: Journal, tmp_path: Path) -> None:
    fill(journal)
    report(journal.base, "--compress-after", "7d")
    packed = journal.path().with_suffix(".jsonl.gz")
    packed.rename(tmp_path / "away.gz")
    packed.symlink_to(tmp_path / "away.gz")
    with pytest.raises((OSError, files.Unsafe)):
        read.open_session(journal.folders.journal, read.SessionFile(packed.parent.name, KEY))


def test_what_stays_plain(journal: Journal) -> None:
    journal.add(event("session_start", session="small"))
    fill(journal)
    with journal.path().open("ab") as file:
        file.write(b'{"ts":"unfinished')
    age(journal, 8)
    assert report(journal.base, "--compress-after", "7d")["compressed"] == []
    assert report(journal.base, "--compress-after", "never", "--older-than", "300d")["compressed"] == []
    assert all(name.endswith(".jsonl") for name in names(journal))


def test_room_is_made_by_compressing_before_anything_goes(journal: Journal) -> None:
    fill(journal)
    journal.add(event("pre_tool", tool="Bash", given={"command": "ls"}, session="other", call="1"))
    total = report(journal.base, "--max-size", "1T", "--compress-after", "never")["bytes_before"]
    dry = report(journal.base, "--max-size", "1T", "--dry-run")
    assert (len(dry["compressed"]), names(journal)[0][-6:]) == (1, ".jsonl")
    assert report(journal.base, "--max-size", str(total // 2), "--dry-run")["removed"] == []
    found = report(journal.base, "--max-size", str(total // 2))
    assert 0 <= dry["bytes_saved"] - found["bytes_saved"] < 1000  # but for the head that is left beside
    assert (len(found["compressed"]), found["removed"]) == (1, []) and found["bytes_saved"] > total // 2
    found = report(journal.base, "--max-size", "2000")
    assert not list((journal.base / "journal").glob("20*/*.head"))
    assert len(found["removed"]) == 1 and names(journal) == [f"{line.key('claude-code', 'other')}.jsonl"]
    with open_store(journal.folders) as store:
        assert store.traces().total == 1


@pytest.mark.parametrize("words", [["--compress-after", "soon"], ["--compress-after", ""]])
def test_mistakes(journal: Journal, words: list[str]) -> None:
    fill(journal, 2)
    result = run(journal.base, "gc", "--older-than", "1d", *words)
    assert result.exit_code == 2 and "--compress-after" in result.stderr and len(names(journal)) == 1
