"""How far long work has come, for somebody who waits at a terminal."""

from __future__ import annotations

import sys
import time

PATIENCE = 0.5  # seconds until a bar of work of unknown weight appears
_SLOW_BYTES = 4 << 20


class Bar:
    """Progress of long work on stderr, when that is a terminal. Less than `least` of it, or than `patience` seconds, shows nothing."""

    def __init__(self, what: str = "reading the journal", *, least: int = _SLOW_BYTES, patience: float = 0.0) -> None:
        self._what = what
        self._least = least
        self._shown = False
        self._from = time.monotonic() + patience

    def __call__(self, done: int, total: int) -> None:
        if total < self._least or not sys.stderr.isatty():
            return
        if done >= total:
            self.clear()
        elif self._shown or time.monotonic() >= self._from:
            full = 30 * done // total
            sys.stderr.write(f"\r{self._what} [{'#' * full}{'.' * (30 - full)}] {100 * done // total}%")
            self._shown = True
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the bar away, for other words."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
