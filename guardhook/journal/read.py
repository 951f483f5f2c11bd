"""Reading the journal: files of a journal folder, and their lines from a place on.

Readers take no lock. Files that were compressed (guardhook.journal.pack) read like others. They see complete lines only: what follows the last line feed is a line still being written, or the rest of a
killed writer's, and is left for the next time. Nothing is ever created or changed by reading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from guardhook.journal import files, line, recover
from guardhook.journal import generation as generations
from guardhook.journal.write import HEADS, PACKED, SUFFIX

GENERATION = generations.NUMBER
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
    return generations.current(journal_dir)


def session_files(journal_dir: str, *, day: str | None = None, key: str | None = None) -> list[SessionFile]:
    """All data files, by day and key. Names that are not the journal's are left out. Raises OSError."""
    found: list[SessionFile] = []
    root = files.open_folder(journal_dir)
    try:
        days = [d for d in sorted(os.listdir(root)) if recover.is_day(d) and day in (None, d)]
        for name in days:
            folder = files.open_folder(name, root)
            try:
                names = sorted({n.removesuffix(PACKED).removesuffix(SUFFIX) for n in os.listdir(folder) if n.endswith((SUFFIX, PACKED))})  # fmt: skip
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


def folders_of(journal_dir: str, key: str) -> list[str]:
    """The folders that hold something of a session: days in order, then imports. Raises OSError."""
    names = sorted(n for n in os.listdir(journal_dir) if recover.is_day(n) or n == IMPORTS)
    return [n for n in names if any(os.path.lexists(f"{journal_dir}/{n}/{key}{suffix}") for suffix in (SUFFIX, PACKED))]


class Opened:
    """A file as it was opened: fd is for reading all its lines; status that of what is on disk, which tells whether it is still the same.

    For a compressed file fd is another, unnamed one, and positions in it are not those on disk: `stored` and `position` turn one into the other.
    """

    __slots__ = ("_base", "_plain", "fd", "problem", "status")

    def __init__(
        self, fd: int, status: os.stat_result, base: int = -1, plain: bool = True, problem: str | None = None
    ) -> None:
        self.fd = fd
        self.status = status
        self.problem = problem  # why the compressed file beside the plain one is not read
        self._base = base  # bytes that come out of the compressed file; -1 when there is none
        self._plain = plain  # whether there is a plain file, beside it or alone

    @property
    def base(self) -> int:
        """Where the plain file begins in fd."""
        return max(0, self._base)

    def stored(self, position: int) -> int:
        """What to remember of a position: equal to status.st_size when everything was read, and no other position ever is."""
        if self._base < 0:
            return position
        if position < self._base:
            return -position - 1
        return position - self._base if self._plain else self.status.st_size

    def position(self, stored: int) -> int:
        """The position that was remembered so, of this very file."""
        if self._base < 0:
            return stored
        if stored < 0:
            return -stored - 1
        return self._base + (stored if self._plain else 0)


def open_session(journal_dir: str, file: SessionFile) -> int:
    """A descriptor to read from; never through a link, never of another user's file. Raises OSError, files.Unsafe."""
    return open_known(journal_dir, file).fd


def open_known(journal_dir: str, file: SessionFile) -> Opened:
    """As `open_session`, with what is known of the file on disk. Raises OSError, files.Unsafe."""
    root = files.open_folder(journal_dir)
    try:
        folder = files.open_folder(file.day, root)
    finally:
        os.close(root)
    try:
        try:
            fd: int | None = files.open_file(file.key + SUFFIX, folder, os.O_RDONLY)
        except FileNotFoundError:
            if not os.path.lexists(f"{journal_dir}/{file.day}/{file.key}{PACKED}"):
                raise
            fd = None
        if fd is not None and not os.path.lexists(f"{journal_dir}/{file.day}/{file.key}{PACKED}"):
            return Opened(fd, os.fstat(fd))
        if fd is not None and os.fstat(fd).st_nlink == 0:  # compressed at this very moment
            os.close(fd)
            fd = None
        return _joined(folder, file.key, fd)
    finally:
        os.close(folder)


def _joined(folder: int, key: str, plain: int | None) -> Opened:
    """A compressed file, and the plain one beside it. What is wrong with the former must not hide the latter. Raises OSError."""
    from guardhook.journal import pack

    if plain is None:
        fd, base = pack.joined(folder, key, None)
        return Opened(fd, os.stat(key + PACKED, dir_fd=folder, follow_symlinks=False), base, False)
    status = os.fstat(plain)
    try:
        fd, base = pack.joined(folder, key, plain)
    except OSError as error:
        return Opened(plain, status, problem=error.strerror or str(error))
    os.close(plain)
    return Opened(fd, status, base, True)


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
