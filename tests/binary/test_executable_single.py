"""The single-file executable run directly, as downloaded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from binary_installed import DEADLY, HARMLESS, PATH, call, is_deny

pytestmark = pytest.mark.binary


def run(
    executable: Path, *words: str, payload: bytes = b"", env: dict[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [executable, *words], input=payload, capture_output=True, timeout=60, env={"PATH": PATH} if env is None else env
    )
    return done.returncode, done.stdout, done.stderr


def hook(executable: Path, folder: Path, command: str, *more: str) -> tuple[int, bytes, bytes]:
    words = ("hook", "PreToolUse", "--enforce", "--dialect", "claude-code", "--dir", str(folder), *more)
    return run(executable, *words, payload=call(command))


def test_version_and_usage(executable: Path) -> None:
    status, out, _ = run(executable, "--version")
    assert (status, out.startswith(b"guardhook, version ")) == (0, True)
    assert run(executable, "no-such-command")[0] == 2
    assert b"Add a policy" in run(executable, "guard", "add", "--help")[1]
    assert b"stdin" in run(executable, "hook", "--help")[1]


def test_the_reading_commands_bring_their_database_along(executable: Path, tmp_path: Path) -> None:
    hook(executable, tmp_path, DEADLY)
    status, out, err = run(executable, "list", "--json", "--dir", str(tmp_path))
    assert (status, b"trc_" in out) == (0, True), err


def test_works_as_downloaded(executable: Path, tmp_path: Path) -> None:
    assert hook(executable, tmp_path, HARMLESS) == (0, b"", b"")
    assert is_deny(hook(executable, tmp_path, DEADLY))
    assert is_deny(hook(executable, tmp_path, HARMLESS, "--typo"))
    assert run(executable, "hook", "--typo", "--dir", str(tmp_path), payload=call()) == (0, b"", b"")


def test_works_without_any_environment(executable: Path, tmp_path: Path) -> None:
    words = ("hook", "--enforce", "--dialect", "claude-code", "--dir", str(tmp_path))
    assert is_deny(run(executable, *words, payload=call(DEADLY), env={}))


def test_leaves_nothing_in_the_temporary_folder(executable: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "data").mkdir()
    words = ("hook", "--enforce", "--dialect", "claude-code", "--dir", str(tmp_path / "data"))
    run(executable, *words, payload=call(), env={"TMPDIR": str(tmp_path / "tmp")})
    assert os.listdir(tmp_path / "tmp") == []


def test_nowhere_to_unpack_is_not_a_pass(executable: Path, tmp_path: Path) -> None:
    """PyInstaller's own failure has status 255; only clients that block on it are safe, which is why hooks are installed."""
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path / "tmp")], capture_output=True
    )
    if done.returncode:
        pytest.skip("a full disk is made with a mount, which needs root here")
    try:
        words = ("hook", "--enforce", "--dialect", "claude-code", "--dir", str(tmp_path))
        status, _, _ = run(executable, *words, payload=call(), env={"TMPDIR": str(tmp_path / "tmp")})
        assert status != 0
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "tmp")])


@pytest.mark.parametrize("words", [("--version",), ("hook", "--enforce", "--dialect", "claude-code")])
def test_environment_that_names_another_unpacked_folder_runs_nothing_of_it(
    executable: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    home = tmp_path / "_MEI00000001abcdef"
    (home / "encodings").mkdir(parents=True)
    (home / "encodings" / "__init__.py").write_text("print('planted')\n")
    (home / "base_library.zip").write_bytes(b"")
    env = {
        "_PYI_ARCHIVE_FILE": str(executable),
        "_PYI_PARENT_PROCESS_LEVEL": "0",
        "_PYI_APPLICATION_HOME_DIR": str(home),
    }
    if "hook" in words:
        words = (*words, "--dir", str(tmp_path))
    status, out, _ = run(executable, *words, payload=call(DEADLY), env=env)
    assert b"planted" not in out
    assert status != 0


def test_commands_that_need_every_library(executable: Path, tmp_path: Path) -> None:
    status, out, _ = run(executable, "guard", "list", "--json", "--dir", str(tmp_path))
    assert status == 0
    assert out.startswith((b"{", b"["))
    assert run(executable, "guard", "list", "--dir", str(tmp_path))[0] == 0
