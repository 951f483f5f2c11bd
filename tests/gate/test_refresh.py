"""A compiler that is too slow for one hook: that call is blocked, the next one finds its result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from guardhook.commands import policy as policy_command
from guardhook.core.folders import explicit
from guardhook.gate import hook, refresh
from guardhook.policy import compile as compiler
from guardhook.policy import compiled


def test_a_slow_compiler_goes_on_and_serves_the_next_hook(place: Path) -> None:
    folders = explicit(str(place))
    (place / "compiled" / compiled.POLICY_FILE).unlink()
    with pytest.raises(refresh.RefreshError, match="took longer"):
        refresh.refresh(folders, hook.PROGRAM, None, time.monotonic())
    # It still holds the lock; whoever comes now waits for it and starts no other one.
    found = refresh.refresh(folders, hook.PROGRAM, None, time.monotonic() + 60)
    assert found.policies
    assert compiled.load(folders).set == found.set


def test_a_compiler_that_a_hook_started_does_not_live_for_ever(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hung held the lock that later hooks wait for, and all of them blocked until somebody killed it."""
    left: list[float] = []

    def compile_main(*given: object, **more: object) -> None:
        left.append(signal.getitimer(signal.ITIMER_REAL)[0])
        raise SystemExit(0)

    monkeypatch.setattr(compiler, "compile_main", compile_main)
    try:
        CliRunner().invoke(policy_command.command, ["compile", "--stdout", "--dir", str(place)])
        assert 0 < left[0] <= policy_command.COMPILER_SECONDS
        signal.alarm(0)
        CliRunner().invoke(policy_command.command, ["compile", "--dir", str(place)])
        assert left[1] == 0  # a person may wait as long as it takes
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("name", ["config.toml", "policies/x.toml", "overrides.toml", "exceptions.toml"])
def test_a_pipe_in_place_of_a_file_is_told_and_not_waited_at(place: Path, name: str) -> None:
    (place / name).unlink(missing_ok=True)
    os.mkfifo(place / name)
    command = [sys.executable, "-m", "guardhook", "policy", "compile", "--dir", str(place)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2 and b"not a plain file" in done.stderr, done.stderr
