"""New lines of the whole journal, from now on.

A session goes on in the folder of the day it began on, so every folder can grow; looking at all of them takes long where there are many, and is done
seldom. In between only files that grew lately are looked at, and today's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from guardhook.journal import line, read
from guardhook.journal.line import Line
from guardhook.journal.write import SUFFIX
from guardhook.store import behind

ALL_SECONDS = 2.0
RECENT_SECONDS = 900.0


class _File:
    __slots__ = ("grew", "inode", "offset", "seq")

    def __init__(self, inode: int, offset: int) -> None:
        self.inode = inode
        self.offset = offset  # of the first byte that was not read, as read.Opened.stored gives it
        self.seq = 0  # of the last line that was read, 0 when none was
        self.grew = 0.0


class Tail:
    """Gives lines that were appended since the last look. Memory: a few words for each file."""

    def __init__(self, journal_dir: str) -> None:
        self._journal = journal_dir
        self._files: dict[tuple[str, str], _File] = {}
        self._looked = 0.0
        for folder, key, status in self._everything():
            self._files[folder, key] = _File(status.st_ino, status.st_size)

    def _everything(self) -> list[tuple[str, str, os.stat_result]]:
        self._looked = time.monotonic()
        try:
            return list(behind.data_files(self._journal))
        except OSError:  # nothing was recorded yet
            return []

    def _lately(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Files that grew lately, and those of today."""
        today = line.day(time.time_ns())
        names = {(folder, key) for (folder, key), file in self._files.items() if self._looked - file.grew < RECENT_SECONDS and file.grew}  # fmt: skip
        try:
            with os.scandir(f"{self._journal}/{today}") as found:
                names.update((today, f.name[: -len(SUFFIX)]) for f in found if f.name.endswith(SUFFIX))
        except OSError:
            pass
        for folder, key in sorted(names):
            try:
                status = os.lstat(f"{self._journal}/{folder}/{key}{SUFFIX}")
            except OSError:
                continue
            yield folder, key, status

    def look(self) -> Iterator[tuple[str, Line]]:
        """(key of the session, line) of what is new. Files that can't be read are left for the next time."""
        whole = time.monotonic() - self._looked >= ALL_SECONDS
        for folder, key, status in self._everything() if whole else self._lately():
            file = self._files.get((folder, key))
            if file is None:
                file = self._files[folder, key] = _File(status.st_ino, 0)
            if file.inode != status.st_ino or 0 <= status.st_size < file.offset:
                # Rewritten (gc, redact): what was read before is known by its ticket; where none is known, there is nothing new in it.
                file.inode, file.offset = status.st_ino, 0 if file.seq else status.st_size
            if status.st_size != file.offset:
                file.grew = time.monotonic()
                yield from self._read(folder, key, file)

    def _read(self, folder: str, key: str, file: _File) -> Iterator[tuple[str, Line]]:
        try:
            opened = read.open_known(self._journal, read.SessionFile(folder, key))
        except OSError:
            return
        try:
            for entry in read.entries(opened.fd, opened.position(file.offset)):
                file.offset = opened.stored(entry.end)
                if entry.line is not None and entry.line.seq > file.seq:
                    file.seq = entry.line.seq
                    yield key, entry.line
        except OSError:
            return
        finally:
            os.close(opened.fd)
