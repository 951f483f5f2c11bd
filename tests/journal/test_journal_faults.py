"""Things in the writer's way. Whatever they are, nothing is followed, nothing hangs, and the event is spooled or called lost."""

from __future__ import annotations

import errno
import os
import posix
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from journal_tools import all_lines, head_file, only_file, put, record, spooled

from guardhook.journal import files, line, read, write

ROOT = os.geteuid() == 0


def make_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def make_hard_link(path: Path, elsewhere: Path) -> None:
    os.link(elsewhere, path)


def make_fifo(path: Path, elsewhere: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path, elsewhere: Path) -> None:
    path.mkdir()


def make_foreign(path: Path, elsewhere: Path) -> None:
    if not ROOT:
        pytest.skip("only root can give files away")
    path.write_bytes(b"")
    os.chown(path, 12345, 12345)


def make_device(path: Path, elsewhere: Path) -> None:
    if not ROOT:
        pytest.skip("only root can make devices")
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices here")


MAKERS = [make_link, make_hard_link, make_fifo, make_folder, make_foreign, make_device]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("which", ["data", "head"])
def test_what_is_no_plain_file_of_ours_is_not_written(journal: str, tmp_path: Path, make: object, which: str) -> None:
    put(journal)
    target = only_file(journal) if which == "data" else head_file(journal)
    saved = target.read_bytes()
    target.unlink()
    elsewhere = tmp_path / "victim"
    elsewhere.write_bytes(b"victim\n")
    make(target, elsewhere)  # type: ignore[operator]
    outcome = put(journal, data={"n": 1})
    assert outcome.state == "spooled" and outcome.note
    assert elsewhere.read_bytes() == b"victim\n"
    assert len(spooled(journal)) == 1
    # Once it is out of the way, nothing is missing.
    shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
    target.write_bytes(saved)
    target.chmod(0o600)
    put(journal, data={"n": 2})
    assert [x.data.get("n") for x in all_lines(journal)] == [None, 1, 2]


@pytest.mark.parametrize("which", ["journal", "day", "heads"])
def test_linked_folders_are_not_entered(journal: str, tmp_path: Path, which: str) -> None:
    put(journal)
    folder = {"journal": Path(journal), "day": only_file(journal).parent, "heads": Path(journal, "heads")}[which]
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    folder.symlink_to(moved)
    before = {p: p.read_bytes() for p in moved.rglob("*") if p.is_file()}
    assert put(journal).state == "spooled"
    assert {p: p.read_bytes() for p in moved.rglob("*") if p.is_file()} == before


@pytest.mark.skipif(not ROOT, reason="only root can give folders away")
@pytest.mark.parametrize("which", ["journal", "day", "heads"])
def test_folders_of_another_user_are_not_used(journal: str, which: str) -> None:
    put(journal)
    folder = {"journal": Path(journal), "day": only_file(journal).parent, "heads": Path(journal, "heads")}[which]
    os.chown(folder, 12345, 12345)
    outcome = put(journal)
    assert outcome.state == "spooled" and "another user" in (outcome.note or "")


def test_a_file_in_place_of_the_journal(journal: str) -> None:
    Path(journal).parent.mkdir()
    Path(journal).write_text("")
    assert put(journal).state == "spooled"


def test_nothing_writable_at_all_says_nowhere(journal: str, tmp_path: Path) -> None:
    Path(journal).parent.write_text("a file where the data folder should be")
    outcome = put(journal)
    assert outcome.state == "nowhere"
    assert outcome.note


def as_user(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs code as a user without root's rights."""
    return run(
        "import os\nif os.geteuid() == 0:\n    os.setgroups([]); os.setgid(12345); os.setuid(12345)\n" + code, *args
    )


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    where = [str(Path(write.__file__).parents[2]), str(Path(__file__).parent)]
    head = f"import sys\nsys.path[:0] = {where!r}\nfrom journal_tools import put\n"
    return subprocess.run(
        [sys.executable, "-c", head + code, *args], capture_output=True, text=True, timeout=60, check=True
    )


def test_a_read_only_journal_is_spooled_beside_it_and_a_read_only_home_says_nowhere(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    if ROOT:
        for path in (data, *data.parents):
            if path.name.startswith("pytest-of-"):
                path.chmod(0o755)
                break
            path.chmod(0o755)
        os.chown(data, 12345, 12345)
    code = """
import os, sys
data = sys.argv[1]
print(put(data + "/journal").state)
for root, dirs, names in os.walk(data + "/journal", topdown=False):
    for name in names: os.chmod(root + "/" + name, 0o400)
    os.chmod(root, 0o500)
print(put(data + "/journal").state)
os.chmod(data, 0o500)
os.chmod(data + "/spool", 0o500)
print(put(data + "/journal", session="other").state)
print(f"{os.stat(data).st_mode & 0o777 | 0o200:o}")
os.chmod(data, 0o700)
"""
    result = as_user(code, str(data))
    assert result.stdout.split() == ["recorded", "spooled", "nowhere", "700"]


def test_a_full_disk_leaves_whole_lines_and_says_so(journal: str, tmp_path: Path) -> None:
    """The limit on file sizes makes the kernel write a part of a line, as a full disk does."""
    code = """
import resource, sys
journal = sys.argv[1]
print(put(journal, data={"text": "a" * 3000}).state)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
outcome = put(journal, data={"text": "b" * 3000})
print(outcome.state, "bytes could be written" in (outcome.note or ""))
print(put(journal, data={"text": "c" * 9000}).state)
print(put(journal, data={"text": "d"}).state)
"""
    result = run(code, journal)
    assert result.stdout.split("\n")[:4] == ["recorded", "spooled True", "nowhere", "spooled"]
    assert only_file(journal).read_bytes().endswith(b"\n")
    put(journal, data={"text": "e"})
    assert [x.data["text"][0] for x in all_lines(journal)] == ["a", "b", "d", "e"]  # type: ignore[index]


@pytest.mark.skipif(not ROOT or sys.platform != "linux", reason="needs a mount")
def test_a_really_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(disk)], capture_output=True, check=False
    ).returncode:
        pytest.skip("no mounts here")
    try:
        journal = str(disk / "data" / "journal")
        states = [put(journal, data={"n": n, "text": "x" * 9000}).state for n in range(60)]
        assert states[0] == "recorded" and states[-1] == "nowhere"
        kept = sum(s in ("recorded", "spooled") for s in states)
        with only_file(journal).open("rb") as file:
            assert file.read().endswith(b"\n")
        # With room again, everything that was accepted comes in.
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        for _ in range(12):
            put(journal, data={"n": 100})
        numbers = [x.data["n"] for x in all_lines(journal) if x.type == "hook.received"]
        accepted = [n for n, s in enumerate(states) if s != "nowhere"]
        assert len(accepted) == kept
        assert sorted(n for n in numbers if n != 100) == accepted  # type: ignore[type-var]
    finally:
        subprocess.run(["umount", str(disk)], check=False)


CALLS = [
    "open",
    "mkdir",
    "fstat",
    "fchmod",
    "read",
    "pread",
    "write",
    "pwrite",
    "ftruncate",
    "rename",
    "unlink",
    "rmdir",
    "stat",
    "listdir",
    "geteuid",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_any_system_call_may_fail_at_any_time(
    journal: str, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """Each call fails once, at each place where it is made; no event that was accepted is lost, none is doubled, nothing is raised."""
    import fcntl

    real = getattr(posix, call)
    accepted: list[int] = []
    number = 0
    for place in range(12):
        # Something to take in, so that the spool's calls are made too.
        put(journal, data={"n": number}) if place == 0 else None
        accepted += [number] if place == 0 else []
        number += 1
        with head_file(journal).open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert write.append(journal, record(data={"n": number}), budget=0.0).state == "spooled"
        accepted.append(number)
        number += 1
        left = place

        def failing(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(posix, call, failing)
            outcome = write.append(journal, record(data={"n": number}), budget=0.5)
        if outcome.state != "nowhere":
            accepted.append(number)
        number += 1
    put(journal, data={"n": number})
    accepted.append(number)
    for _ in range(4):
        put(journal, data={"n": -1})
    found = [
        x.data["n"]
        for f in read.session_files(journal)
        for x in whole_lines(journal, f)
        if x.type == line.RECEIVED and x.data.get("n") != -1
    ]
    assert sorted(found) == accepted  # type: ignore[type-var]
    tickets = [x.seq for f in read.session_files(journal) for x in whole_lines(journal, f)]
    assert tickets == sorted(set(tickets))


def whole_lines(journal: str, file: read.SessionFile) -> list[line.Line]:
    fd = read.open_session(journal, file)
    try:
        return [e.line for e in read.entries(fd) if e.line is not None]
    finally:
        os.close(fd)


def test_a_failed_truncation_leaves_a_marked_gap(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(journal)
    real = posix.write

    def short(fd: int, data: bytes) -> int:
        return real(fd, data[: len(data) // 2])

    def refused(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        patch.setattr(posix, "write", short)
        patch.setattr(posix, "ftruncate", refused)
        assert put(journal, data={"n": 1}).state == "nowhere"
    assert put(journal, data={"n": 2}).state == "recorded"
    raw = only_file(journal).read_bytes().splitlines()
    assert line.parse(raw[2]).data["reason"] == "torn"
    assert line.parse(raw[3]).data["n"] == 2


def test_open_file_refuses_what_appears_between_look_and_creation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("v")
    folder = files.open_folder(str(tmp_path))
    real = posix.open
    calls = 0

    def racing(path: str, *args: object, **kwargs: object) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            (tmp_path / "new").symlink_to(victim)
        return real(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(posix, "open", racing)
    with pytest.raises(OSError):
        files.open_file("new", folder, os.O_RDWR, create=True)
    os.close(folder)
    assert victim.read_text() == "v"
