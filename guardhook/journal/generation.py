"""The journal's generation: a number that whoever rewrites or removes files raises first, so that stores read anew what was rewritten.

Which sessions a generation was raised for stands in a log beside the number, a line `<generation> <key>` each, written before the files change. Stores that are made of
the journal keep what they have of all others. A generation that the log does not tell of may have been raised for any of them.
"""

from __future__ import annotations

import contextlib
import functools
import os

from guardhook.core import atomic

NUMBER = "generation"
LOG = "generation.log"
ANY = "*"  # for any session
_MOST = 1 << 62  # a larger number was written by nobody
_LOG_BYTES = 1 << 20  # from here on the log is begun anew, and stores that are older than that are made anew


def current(journal: str) -> int:
    """How often the journal's files were rewritten; 0 when never, or when the number can't be read."""
    try:
        with open(f"{journal}/{NUMBER}", encoding="ascii") as file:
            number = int(file.read(32))
    except (OSError, ValueError):
        return 0
    return number if 0 <= number < _MOST else 0


def stands(journal: str, key: str, then: int, now: int) -> bool:
    """Whether no file of this session was rewritten between two generations."""
    if then == now:
        return True
    keys = renewed(journal, then, now)
    return keys is not None and key not in keys


@functools.lru_cache(maxsize=8)  # what is added to the log later on shows in the files themselves: they are others then
def renewed(journal: str, since: int, until: int) -> frozenset[str] | None:
    """The keys of sessions for which the generation was raised after `since`, up to `until`. None: it can't be told, so any of them."""
    if not 0 <= since < until or until - since > _LOG_BYTES:
        return None
    told: set[int] = set()
    keys: set[str] = set()
    try:
        with open(f"{journal}/{LOG}", "rb") as file:
            for line in file.read(2 * _LOG_BYTES).split(b"\n"):
                number, blank, key = line.partition(b" ")
                if not line:
                    continue
                if not (blank and key and number.isdigit() and len(number) < 20):
                    return None
                if since < int(number) <= until:
                    told.add(int(number))
                    keys.add(key.decode("ascii"))
    except (OSError, ValueError):
        return None
    return None if ANY in keys or len(told) != until - since else frozenset(keys)


class Rewriting:
    """One command's work on files of the journal. Say `of(key)` before each file that is replaced or removed."""

    def __init__(self, journal: str) -> None:
        self._journal = journal
        self._number = 0
        self._named: set[str] = set()

    def of(self, key: str) -> None:
        """The files of this session are about to change: raises the generation, once for all sessions. Durable when it returns. Raises OSError.

        A session that is rewritten once more raises it again: the file that its first one had may stand in the place of the new one.
        """
        again = self._number == 0 or key in self._named
        if again:
            self._number = current(self._journal) + 1
            self._named.clear()
        self._named.add(key)
        self._log(key)
        if again:
            self._raise()

    def _log(self, key: str) -> None:
        name = key if key.isascii() and key.isprintable() and " " not in key else ANY
        path = f"{self._journal}/{LOG}"
        with contextlib.suppress(FileNotFoundError):
            if os.lstat(path).st_size >= _LOG_BYTES:
                os.unlink(path)
        line = f"\n{self._number} {name}\n".encode("ascii")  # a line that was cut off before ends here
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.write(fd, line) != len(line):
                raise OSError(28, "the line could not be written whole", path)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _raise(self) -> None:
        atomic.replace(f"{self._journal}/{NUMBER}", f"{self._number}\n".encode("ascii"))
