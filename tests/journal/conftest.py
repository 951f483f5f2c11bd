from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """The path of a journal folder that doesn't exist yet."""
    return str(tmp_path / "data" / "journal")
