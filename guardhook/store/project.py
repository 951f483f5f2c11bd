"""Bringing traces.db up to date with the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable


def catch_up(
    connection: sqlite3.Connection, journal_dir: str, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Folds what the journal has and the store lacks."""
    raise NotImplementedError
