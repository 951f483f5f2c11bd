"""Reading the payload: all of stdin, up to a cap, until a deadline.

The deadline is the interval timer that the caller armed: its handler raises Deadline out of the read. Some harnesses
never close stdin, so what came until then is handed on; a complete JSON text judges well, a cut one blocks.
"""

from __future__ import annotations

import posix


class Deadline(BaseException):
    """Raised by the timer. Not an Exception, so that no handler on the way can swallow it."""


class Input:
    """Bytes read, and how the reading ended."""

    __slots__ = ("data", "oversized", "timed_out")

    def __init__(self, data: bytes, oversized: bool, timed_out: bool) -> None:
        self.data = data
        self.oversized = oversized
        self.timed_out = timed_out


def read_all(cap: int, fd: int = 0) -> Input:
    """At most cap bytes of fd. Raises OSError when it can't be read at all (closed, a folder)."""
    chunks: list[bytes] = []
    size = 0
    timed_out = False
    try:
        while size <= cap:
            chunk = posix.read(fd, 1 << 20)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
    except Deadline:
        timed_out = True
    data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    return Input(data[:cap], size > cap, timed_out)
