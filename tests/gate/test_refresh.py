"""A compiler that is too slow for one hook: that call is blocked, the next one finds its result."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from guardhook.core.folders import explicit
from guardhook.gate import hook, refresh
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
