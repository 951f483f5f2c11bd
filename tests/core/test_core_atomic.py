from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from guardhook.core import atomic


def test_a_file_is_there_whole_with_its_mode_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        atomic.replace(str(path), b"one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        atomic.replace(str(path), b"two", 0o644)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_is_replaced_and_what_it_led_to_stays(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    link = tmp_path / "link"
    link.symlink_to(other)
    atomic.replace(str(link), b"ours")
    assert not link.is_symlink()
    assert other.read_bytes() == b"theirs"


def test_a_failure_leaves_the_old_text_and_no_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic.replace(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_lock_keeps_other_processes_out_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    code = f"from guardhook.core import atomic\nwith atomic.locked({path!r}, 5):\n    print('held', flush=True)\n    input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TimeoutError, match="another process holds the lock"), atomic.locked(path, 0):
            pytest.fail("two hold the lock")
        holder.kill()
    with atomic.locked(path, 30):
        pass


def test_changes_of_many_processes_under_the_lock_are_all_kept(tmp_path: Path) -> None:
    path, lock = str(tmp_path / "count"), str(tmp_path / "lock")
    atomic.replace(path, b"0")
    code = (
        "from guardhook.core import atomic\n"
        "for _ in range(25):\n"
        f"    with atomic.locked({lock!r}, 60):\n"
        f"        atomic.replace({path!r}, str(int(open({path!r}).read()) + 1).encode())\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    assert Path(path).read_bytes() == b"150"
    assert sorted(os.listdir(tmp_path)) == ["count", "lock"]
