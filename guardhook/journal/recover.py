"""Deriving a session's head from its files: after a crash between line and head, or when the head is lost. Imported only then.

A line begins with what the writer knows and `root` ends that part, so everything needed here is read from the first few
hundred bytes of each line, however long it is.
"""

from __future__ import annotations

import posix

from guardhook.core.jsontext import PayloadError, loads
from guardhook.journal import files, line, write

# How much of a file's end is read. Holds the last batch that one writer can have appended.
WINDOW = 8 * 1024 * 1024
# A lost head is looked for in this many of the newest day folders.
DAYS = 64
# Ending of the copy of a head that stands in for the lines of a compressed file.
COPY = ".head"
_ROOT = b',"root":'
_PREFIX = 1024


def is_day(name: str) -> bool:
    """Whether a folder name is `YYYY-MM-DD`."""
    return len(name) == 10 and name[4] == name[7] == "-" and (name[:4] + name[5:7] + name[8:]).isdecimal()


def search(root: int, name: str) -> write.Head:
    """The head of a session without one: from its newest file below the descriptor `root`, else a fresh head. Raises OSError."""
    best = write.Head()
    days = sorted((d for d in posix.listdir(root) if is_day(d)), reverse=True)[:DAYS]
    for day in days:
        try:
            posix.stat(f"{day}/{name}{write.SUFFIX}", dir_fd=root, follow_symlinks=False)
        except OSError:
            head = _from_copy(root, day, name)
        else:
            head = _from_file(root, day, name)
        if head.seq > best.seq:
            best = head
    return best


def _from_copy(root: int, day: str, name: str) -> write.Head:
    """Of a session whose file was compressed (guardhook.journal.pack): the head as it was then lies beside it."""
    try:
        folder = files.open_folder(day, root)
    except OSError:
        return write.Head()
    try:
        fd = files.open_file(name + COPY, folder, posix.O_RDONLY)
    except OSError:
        return write.Head()
    finally:
        posix.close(folder)
    try:
        return write.parse_head(posix.read(fd, _PREFIX * 64)) or write.Head()
    finally:
        posix.close(fd)


def _from_file(root: int, day: str, name: str) -> write.Head:
    head = write.Head()
    folder = files.open_folder(day, root)
    try:
        fd = files.open_file(name + write.SUFFIX, folder, posix.O_RDWR)
        try:
            size = posix.fstat(fd).st_size
            data = _read(fd, max(0, size - WINDOW), size)
            whole, feed, rest = data.rpartition(b"\n")
            _fold(head, whole if size <= WINDOW else whole.partition(b"\n")[2])
            head.day, head.size = day, size - len(rest) if feed else 0
        finally:
            posix.close(fd)
    finally:
        posix.close(folder)
    return head


def catch_up(head: write.Head, fd: int, size: int, *, same_file: bool) -> tuple[dict[str, object] | None, bool]:
    """Brings the head up to a data file of another size than expected.

    Gives the data of a gap line to write (None when nothing is missing), and whether a line feed must precede it.
    same_file=False: the head does not know this file's size (a clock that went back leads to an older file). Raises OSError.
    """
    start = head.size if same_file else 0
    if size < start:
        torn = size > 0 and _read(fd, size - 1, size) != b"\n"
        return {"reason": "shrunk", "bytes": start - size}, torn
    begin = max(start, size - WINDOW)
    whole, feed, rest = _read(fd, begin, size).rpartition(b"\n")
    if begin > start:
        whole = whole.partition(b"\n")[2]
    foreign = _fold(head, whole) if feed else 0
    if rest:
        # Without its line feed a line may yet be whole; then its ticket is taken.
        lost = len(rest) if _broken(rest) else 0
        if not lost:
            _fold(head, rest)
        return {"reason": "torn", "bytes": lost}, True
    return ({"reason": "foreign", "lines": foreign}, False) if foreign else (None, False)


def _fold(head: write.Head, data: bytes) -> int:
    """Moves the head on by complete lines; gives how many are not the journal's."""
    foreign = 0
    last = b""
    for raw in data.split(b"\n"):
        if not raw:
            continue
        own = prefix(raw)
        if own is None:
            foreign += 1
            continue
        last = raw
        seq, data_ = own
        head.seq = max(head.seq, seq + 1)
        segment = data_.get("segment")
        if isinstance(segment, int) and segment >= head.segment:
            if segment > head.segment:
                head.state = write.OPEN  # only an opener moves a session on
            head.segment = segment
        if data_.get("opens"):
            head.state = write.OPEN
        if data_.get("closes"):
            head.state = write.CLOSED
        waited = data_.get("spool")
        if isinstance(waited, str):
            head.drained.append(waited)
    if last and head.root is None:
        try:
            root = line.parse(last).data.get("root")
        except line.BadLine:
            root = None
        head.root = root if isinstance(root, str) else None
    return foreign


def _broken(raw: bytes) -> bool:
    try:
        line.parse(raw)
    except line.BadLine:
        return True
    return False


def prefix(raw: bytes) -> tuple[int, dict[str, object]] | None:
    """seq and the writer's part of data of a line, without parsing the rest; None when it is no line of ours."""
    end = raw.find(_ROOT, 0, _PREFIX)
    if end < 0:
        return None
    try:
        value = loads(raw[:end] + b"}}")
    except PayloadError:
        return None
    if not isinstance(value, dict):
        return None
    seq, data = value.get("seq"), value.get("data")
    return (seq, data) if type(seq) is int and isinstance(data, dict) else None


def _read(fd: int, start: int, end: int) -> bytes:
    chunks = []
    while start < end:
        chunk = posix.pread(fd, end - start, start)
        if not chunk:
            break
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)
