"""A short round of the fuzz target, always the same one."""

from __future__ import annotations

from fuzz_analysis import fuzz


def test_nothing_breaks_or_hangs() -> None:
    assert fuzz(60, 3, rounds=400) == []
