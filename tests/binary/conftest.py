"""Fixtures for tests of built programs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from binary_installed import Installed
from binary_rig import TABLE, Rig

from guardhook.harness import launcher


@pytest.fixture(scope="session")
def built_launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not any(shutil.which(name) for name in ("musl-gcc", "cc", "gcc")):
        pytest.skip("no C compiler: the C launcher is not tested here")
    path = tmp_path_factory.mktemp("launcher") / "launcher"
    launcher.compile_c(path, TABLE)
    return path


@pytest.fixture(params=["c", "sh"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    built = request.getfixturevalue("built_launcher") if request.param == "c" else tmp_path
    yield Rig(tmp_path, request.param, built)
    _end_leftovers(tmp_path)


@pytest.fixture
def c_rig(built_launcher: Path, tmp_path: Path) -> Iterator[Rig]:
    yield Rig(tmp_path, "c", built_launcher)
    _end_leftovers(tmp_path)


def _end_leftovers(root: Path) -> None:
    """Fakes that were told to outlive their launcher write their own number into pids/."""
    for path in root.glob("pids/*"):
        try:
            os.kill(int(path.name), signal.SIGKILL)
        except (ValueError, ProcessLookupError):
            continue


@pytest.fixture
def alive() -> Callable[[int], bool]:
    def check(pid: int) -> bool:
        """False once the process is gone or only a zombie that waits for somebody."""
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"

    return check


@pytest.fixture(scope="session")
def executable() -> Path:
    """The built single-file executable: GUARDHOOK_BINARY, else dist/guardhook."""
    root = Path(__file__).resolve().parents[2]
    path = Path(os.environ.get("GUARDHOOK_BINARY") or root / "dist" / "guardhook").absolute()
    if not os.access(path, os.X_OK):
        pytest.skip(f"no executable at {path}: run build/release, or set GUARDHOOK_BINARY")
    return path


@pytest.fixture(scope="session")
def installed(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An installation that no test changes."""
    return Installed(tmp_path_factory.mktemp("installed") / "home", executable)


@pytest.fixture
def own_install(executable: Path, tmp_path: Path) -> Installed:
    """An installation for a test that breaks it."""
    return Installed(tmp_path / "home", executable)
