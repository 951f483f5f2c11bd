"""Changing files that others read, or change, at the same time. For commands; hooks write through guardhook.journal."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_PAUSE = 0.01


def replace(path: str, data: bytes, mode: int = 0o600) -> None:
    """Puts data in a file's place, whole or not at all, also when the power fails. Raises OSError.

    A link at path is replaced, not followed. The folder must be one that nobody else writes to.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            if hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def locked(path: str, seconds: float) -> Iterator[None]:
    """Holds the lock on a file, which is made when missing. Raises TimeoutError when another holds it for so long, OSError."""
    import fcntl

    fd = os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", path) from None
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(fd)
