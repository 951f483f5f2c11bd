"""Which process stands in for a session id: the same for all hooks of one harness, whatever was started in between."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guardhook.journal import process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

HOOK = f"import sys; sys.path[:0] = [{str(Path(process.__file__).parents[2])!r}]; from guardhook.journal import process; print(repr(process.stand_in('/p')))"
# A harness starts its hook twice, in the way that is given.
HARNESS = "import subprocess, sys\nfor _ in range(2): sys.stdout.write(subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True).stdout)"


def harness(*command: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", HARNESS, *command], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split("\n")[:2]


def launcher(folder: Path, name: str = "codex.enforce") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n\"{sys.executable}\" -c '{HOOK.replace(chr(39), chr(34))}'\n:\n")
    path.chmod(0o755)
    return str(path)


def test_hooks_of_one_harness_agree_and_those_of_two_do_not(tmp_path: Path) -> None:
    ways = [
        (sys.executable, "-c", HOOK),
        ("sh", "-c", f'{sys.executable} -c "{HOOK}"; :'),
        ("env", sys.executable, "-c", HOOK),
        (launcher(tmp_path),),
        ("sh", "-c", launcher(tmp_path) + "; :"),
        ("timeout", "10", launcher(tmp_path, "gemini.observe")),
    ]
    seen = set()
    for way in ways:
        one, two = harness(*way)
        assert one == two and "process" in one, way
        seen.add(one)
    assert len(seen) == len(ways)


def test_the_harness_itself_is_named(tmp_path: Path) -> None:
    code = HARNESS + "\nimport os; sys.stdout.write(str(os.getpid()))"
    done = subprocess.run(
        [sys.executable, "-c", code, launcher(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    *_, text, pid = done.stdout.split("\n")
    assert f"process {pid} " in text


def test_folders_are_kept_apart_and_missing_ones_fall_back() -> None:
    assert process.stand_in("/a") != process.stand_in("/b")
    assert process.stand_in(None) == process.stand_in(str(Path.cwd()))


def test_without_proc_the_login_session_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_slurp", lambda path: b"")
    assert process.ancestor() is None
    assert "session" in process.stand_in("/a")


def test_a_command_name_with_brackets_and_blanks_does_not_confuse(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = " ".join(["S", "1", *["0"] * 17, "4711", "0"])
    monkeypatch.setattr(process, "_slurp", lambda path: f"12 (a) S 9 (b c) {fields}".encode())
    found = process.ancestor()
    assert found is not None and found[1] == "4711"
