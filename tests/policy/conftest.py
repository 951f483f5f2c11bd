"""Fixtures of the policy tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from guardhook.core.folders import Folders, explicit
from guardhook.policy import compiled, layers, load


@pytest.fixture(scope="session")
def shipped() -> list[layers.Found]:
    loaded = layers.Loaded()
    load.shipped_of(loaded)
    assert loaded.errors == []
    return loaded.policies


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """A place of its own with no shipped policies."""
    empty = tmp_path / "shipped"
    empty.mkdir()
    monkeypatch.setattr(compiled, "shipped_folder", lambda: str(empty))
    base = tmp_path / "gh"
    (base / "policies").mkdir(parents=True)
    return explicit(str(base), str(tmp_path / "system"))


@pytest.fixture
def put(folders: Folders) -> Callable[..., Path]:
    """Writes a file below the user's folder."""

    def write(name: str, text: str) -> Path:
        path = Path(folders.config) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
