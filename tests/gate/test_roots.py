"""Which project a folder belongs to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.gate.roots import find_root, real


def test_nearest_marked_folder_upwards(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / "a" / ".git").mkdir()
    assert find_root(str(inner)) == str(tmp_path / "a")
    (tmp_path / "a" / "b" / ".guardhook").mkdir()
    assert find_root(str(inner)) == str(tmp_path / "a" / "b")


def test_a_linked_way_leads_to_the_real_root(tmp_path: Path) -> None:
    (tmp_path / "real" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    assert find_root(str(tmp_path / "link")) == str(tmp_path / "real")


@pytest.mark.parametrize("cwd", [None, "", "relative", "/a\0b", "/" + "x" * 5000])
def test_unusable_folders_have_no_root(cwd: str | None) -> None:
    assert find_root(cwd) is None


def test_loops_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert real(str(tmp_path / "loop" / "x")).startswith(str(tmp_path))


@given(st.lists(st.sampled_from(["a", "..", ".", "", "link", "b"]), max_size=8))
@settings(max_examples=150, deadline=None)
def test_agrees_with_the_standard_library(parts: list[str]) -> None:
    base = Path("/tmp").resolve() / f"guardhook-roots-{os.getpid()}"
    (base / "a" / "b").mkdir(parents=True, exist_ok=True)
    if not (base / "link").is_symlink():
        (base / "link").symlink_to("a/b")
    path = str(base) + "/" + "/".join(parts)
    assert real(path) == os.path.realpath(path)
