"""Fixtures for the tests of installing."""

from __future__ import annotations

from pathlib import Path

import pytest
from install_rig import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)
