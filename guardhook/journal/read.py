"""Reading the journal: files of a journal folder, and their lines from a place on.

Readers take no lock. They see complete lines only: what follows the last line feed is a line still being written, or the rest of a
killed writer's, and is left for the next time. Nothing is ever created or changed by reading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from guardhook.journal import files, line, recover
from guardhook.journal.write import HEADS, SUFFIX

GENERATION = "generation"
IMPORTS = "imports"
_CHUNK = 1 << 20


class Cursor(msgspec.Struct, frozen=True):
    """How far a file has been read. generation is that of the journal folder: commands that rewrite files raise it."""

    device: int
    inode: int
    generation: int
    offset: int  # bytes; the start of a line
    seq: int  # of the last line read, 0 for none


class SessionFile(msgspec.Struct, frozen=True, order=True):
    """One session's file of one day."""

    day: str
    key: str

    def path(self, journal_dir: str) -> str:
        return f"{journal_dir}/{self.day}/{self.key}{SUFFIX}"


class Entry(msgspec.Struct, frozen=True):
    """A complete line, or what stands in its place. offset and end are byte positions; raw is without the line feed."""

    offset: int
    end: int
    raw: bytes
    line: line.Line | None
    problem: str | None = None  # why it is no line


def exists(journal_dir: str) -> bool:
    """Whether anything was ever recorded here."""
    return os.path.isdir(journal_dir)


def generation(journal_dir: str) -> int:
    """How often the journal's files were rewritten (gc, redact, replaced imports); 0 when never."""
    try:
        with open(f"{journal_dir}/{GENERATION}", encoding="ascii") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return 0


def session_files(journal_dir: str, *, day: str | None = None, key: str | None = None) -> list[SessionFile]:
    """All data files, by day and key. Names that are not the journal's are left out. Raises OSError."""
    found: list[SessionFile] = []
    root = files.open_folder(journal_dir)
    try:
        days = [d for d in sorted(os.listdir(root)) if recover.is_day(d) and day in (None, d)]
        for name in days:
            folder = files.open_folder(name, root)
            try:
                names = sorted(n.removesuffix(SUFFIX) for n in os.listdir(folder) if n.endswith(SUFFIX))
            finally:
                os.close(folder)
            found.extend(SessionFile(name, n) for n in names if key in (None, n))
    finally:
        os.close(root)
    return found


def head_keys(journal_dir: str) -> list[str]:
    """Keys of all sessions with a head. Raises OSError."""
    root = files.open_folder(journal_dir)
    try:
        heads = files.open_folder(HEADS, root)
        try:
            return sorted(os.listdir(heads))
        finally:
            os.close(heads)
    except FileNotFoundError:
        return []
    finally:
        os.close(root)


def open_session(journal_dir: str, file: SessionFile) -> int:
    """A descriptor to read from; never through a link, never of another user's file. Raises OSError, files.Unsafe."""
    root = files.open_folder(journal_dir)
    try:
        folder = files.open_folder(file.day, root)
        try:
            return files.open_file(file.key + SUFFIX, folder, os.O_RDONLY)
        finally:
            os.close(folder)
    finally:
        os.close(root)


def start_of(fd: int, cursor: Cursor | None, current: int) -> int:
    """Where to go on reading: the cursor's offset when it still means this file, else 0. current is the journal's generation now."""
    if cursor is None:
        return 0
    status = os.fstat(fd)
    same = (cursor.device, cursor.inode, cursor.generation) == (status.st_dev, status.st_ino, current)
    return cursor.offset if same and cursor.offset <= status.st_size else 0


def cursor_at(fd: int, current: int, offset: int, seq: int) -> Cursor:
    """The cursor of a place in an open file."""
    status = os.fstat(fd)
    return Cursor(status.st_dev, status.st_ino, current, offset, seq)


def entries(fd: int, start: int = 0) -> Iterator[Entry]:
    """The complete lines from a byte offset on, good and bad ones. Memory: one line and a chunk. Raises OSError."""
    offset = start
    rest = b""
    position = start
    while chunk := os.pread(fd, _CHUNK, position):
        position += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else [rest + chunk]
        for raw in whole:
            end = offset + len(raw) + 1
            yield _entry(offset, end, raw)
            offset = end


def _entry(offset: int, end: int, raw: bytes) -> Entry:
    try:
        return Entry(offset, end, raw, line.parse(raw))
    except line.BadLine as error:
        return Entry(offset, end, raw, None, str(error))
