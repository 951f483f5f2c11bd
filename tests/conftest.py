"""What every test needs: no test may see or touch the real home folder or the user's own policies."""

from __future__ import annotations

import os
import pwd
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from guardhook.core import folders

# The same examples each time, so that a change is judged by what it changes. GUARDHOOK_EXPLORE=1 looks for new ones.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile("explore" if os.environ.get("GUARDHOOK_EXPLORE") else "fixed")


@pytest.fixture(autouse=True)
def scratch_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME and the XDG folders point into a scratch folder; guardhook's own variables are unset."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in [n for n in os.environ if n.startswith(("GUARDHOOK_DIR", "CLAUDE", "GEMINI_", "QWEN_", "CURSOR_"))]:
        monkeypatch.delenv(name, raising=False)
    return home


def _own() -> list[str]:
    """Where guardhook keeps the things of whoever runs the tests: by the user database, so no variable leads elsewhere."""
    place = folders.unbaked(pwd.getpwuid(os.getuid()).pw_dir, sys.platform)
    return [place.data, place.config]


_absent = [folder for folder in _own() if not os.path.lexists(folder)]


@pytest.fixture(autouse=True)
def own_folders_stay_absent() -> Iterator[None]:
    """A hook without `--dir` takes the user's own folders, whatever HOME says. Where there are none, none may appear.

    Told once, by the test that was running then. Who has guardhook in use has them, and sees nothing of this.
    """
    yield
    appeared = [folder for folder in _absent if os.path.lexists(folder)]
    for folder in appeared:
        _absent.remove(folder)
    assert not appeared, f"this test, or one beside it, wrote to {' and '.join(appeared)}"


_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)  # fmt: skip


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    """A command that is about to end ignores signals; run within a test process, it would leave that to every program that later tests start."""
    before = [(number, signal.getsignal(number)) for number in _SIGNALS]
    yield
    for number, handler in before:
        if signal.getsignal(number) is not handler and handler is not None:
            signal.signal(number, handler)
