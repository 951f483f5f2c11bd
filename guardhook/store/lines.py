"""Reading a session's file: complete lines from a place on, decoded as quickly as they can be, bad ones with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from guardhook.journal import line as journal_line
from guardhook.journal.read import Opened

LINE_BYTES = 64 << 20
SEQ_MOST = 1 << 53  # tickets count lines; whatever is larger is none
_CHUNK = 1 << 20


class Raw(msgspec.Struct):
    """A decoded line. The quick decoder lets the last of equal keys win, which `journal.line.parse` refuses: only whoever can write the file can make such a line."""

    ts: str
    seq: int
    type: str
    data: dict[str, object]


_decode = msgspec.json.Decoder(Raw).decode


class Place:
    """Where reading of one file stands."""

    __slots__ = ("device", "folder", "generation", "inode", "line", "offset", "opened", "seq", "size")

    def __init__(self, folder: str, device: int, inode: int, generation: int, offset: int, seq: int, line: int) -> None:
        self.folder = folder
        self.device = device
        self.inode = inode
        self.generation = generation
        self.offset = offset
        self.seq = seq
        self.line = line
        self.size = 0
        self.opened: Opened | None = None


class Entry(NamedTuple):
    """One complete line. number counts from 1; problem says why there is no line."""

    order: int  # the line's ticket; of a bad line, or one without a ticket that can be, that of the one before
    place: Place
    offset: int
    end: int
    number: int
    line: Raw | None
    problem: str


def entries(fd: int, place: Place) -> Iterator[Entry]:
    """Complete lines from the place on."""
    number, order = place.line, place.seq
    for offset, end, raw in raw_lines(fd, place.offset, place.size):
        number += 1
        if raw is None:
            yield Entry(order, place, offset, end, number, None, f"longer than {LINE_BYTES >> 20} MiB")
            continue
        line, problem = _read_line(raw)
        if line is not None and 0 < line.seq < SEQ_MOST:
            order = line.seq
        yield Entry(order, place, offset, end, number, line, problem)


def _read_line(raw: bytes) -> tuple[Raw | None, str]:
    """The line in these bytes, else why there is none."""
    try:
        return _decode(raw), ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # half a surrogate pair, which the quick decoder does not take, or no line at all
    try:
        found = journal_line.parse(raw)
        data = clean(found.data)
    except (journal_line.BadLine, RecursionError) as error:
        return None, str(error)[:300] or "nested too deep"
    assert isinstance(data, dict)
    return Raw(str(clean(found.ts)), found.seq, str(clean(found.type)), data), ""


def clean(value: object) -> object:
    """Half surrogate pairs become U+FFFD: neither SQLite nor a terminal takes them. The journal keeps what was said."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {clean(k): clean(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clean(v) for v in value]
    return value


def raw_lines(
    fd: int, start: int, size: int, *, unfinished: bool = False, most: int | None = None
) -> Iterator[tuple[int, int, bytes | None]]:
    """(offset, end, line) of the lines up to size, without their line feeds; None for one that is longer than `most` (LINE_BYTES) and not kept in memory.

    unfinished: the last line too where no line feed ends it; else it is left for the next time. Raises OSError.
    """
    most = LINE_BYTES if most is None else most
    offset = position = start
    parts: list[bytes] = []
    length = 0
    while position < size and (chunk := os.pread(fd, min(_CHUNK, size - position), position)):
        position += len(chunk)
        if b"\n" not in chunk:
            length += len(chunk)
            if length <= most:
                parts.append(chunk)
            else:
                parts.clear()
            continue
        first, _, rest = chunk.partition(b"\n")
        end = position - len(rest)
        parts.append(first)
        yield offset, end, b"".join(parts) if length <= most else None
        *whole, tail = rest.split(b"\n")
        for raw in whole:
            offset, end = end, end + len(raw) + 1
            yield offset, end, raw
        offset = end
        parts, length = [tail], len(tail)
    if unfinished and length:
        yield offset, position, b"".join(parts) if length <= most else None
