"""A file that a wrapped program appends events to, read while it grows.

It is the program's: it may be cut, rewritten, replaced by something else or never written. Whatever happens to it, complete lines are read once, in order,
and what can't be followed is said.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from guardhook.intake.jsonlines import Splitter

CHUNK = 8 << 20  # most that one look reads
_KNOWN = 256  # bytes at the start by which a rewritten file is told


class Channel:
    """Lines of a growing file. Nothing here raises OSError: what goes wrong is told once."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self.path = path
        self._warn = warn
        self._told: set[str] = set()
        self._splitter = Splitter()
        self._offset = 0
        self._start = b""  # the first bytes, as far as they were read
        self._last: tuple[int, int, int] | None = None

    @property
    def number(self) -> int:
        """Of the line given last, from 1."""
        return self._splitter.number

    def lines(self, *, last: bool = False) -> Iterator[bytes | None]:
        """Lines that came since the last look, None for one that is too long. last: also what has no line feed, and all of it."""
        try:
            status = os.lstat(self.path)
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
            if seen != self._last or last:
                yield from self._read(last)
                if self._offset >= status.st_size:
                    self._last = seen
        except OSError as error:
            self._once(f"the events file can't be read: {error.strerror or error}")
        if last and (rest := self._splitter.rest()) != b"":
            yield rest

    def _read(self, last: bool) -> Iterator[bytes | None]:
        fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                self._once("the events file is no regular file any more; nothing more is read from it")
                return
            if status.st_size < self._offset or os.pread(fd, len(self._start), 0) != self._start:
                self._warn("the events file was rewritten; what it held until now is passed over")
                self._restart(fd, status.st_size)
                return
            left = status.st_size - self._offset  # writers that outlive the program are not waited for
            while left > 0 and (chunk := os.pread(fd, min(left, CHUNK), self._offset)):
                self._start += chunk[: max(0, _KNOWN - len(self._start))]
                self._offset += len(chunk)
                left = left - len(chunk) if last else 0
                yield from self._splitter.feed(chunk)
        finally:
            os.close(fd)

    def _restart(self, fd: int, size: int) -> None:
        number = self._splitter.number
        self._splitter = Splitter()
        self._splitter.number = number
        self._start = os.pread(fd, min(_KNOWN, size), 0)
        self._offset = size

    def _once(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._warn(message)
