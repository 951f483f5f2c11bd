"""Traces out of a file or a pipe: a JSON document (a list of traces, or one), or JSON lines. One at a time, whatever the size of the whole.

Which of both it is, is told by the text, not by the file's name: what is one JSON value as a whole is a document, everything else is lines. A pipe whose first
line is an object is read line by line as it comes; what can't be told from its first line is put aside in a file without a name first.
"""

from __future__ import annotations

import mmap
import os
import select
import stat
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import msgspec

from guardhook.intake.jsonlines import BadJson, Splitter, parse

FORMATS = ("json", "jsonl")
TRACE_BYTES = 512 << 20  # of one trace
_WHOLE_BYTES = 64 << 20  # of a document that has to be read at once
_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"


class NotReadable(Exception):
    """The text as a whole is of no use; the message says why."""


class Item(NamedTuple):
    """One value. place counts all values from 0, usable or not; line is that of JSON lines, from 1. problem: why there is no value."""

    place: int
    line: int | None
    value: object
    problem: str | None = None


def read(fd: int, format: str | None = None) -> Iterator[Item]:
    """The values in a descriptor, from its start. format is one of FORMATS, None to find out. Raises NotReadable, OSError."""
    if format == "jsonl":
        yield from _lines(_chunks(fd), known=True)
        return
    start, settled = _first_line(fd)
    if format is None and settled:
        yield from _lines(_and_then(start, fd), known=True)
        return
    with _regular(fd, start) as file:
        try:
            yield from _document(file)
            return
        except BadJson as error:
            if format == "json":
                raise NotReadable(f"not JSON: {error}") from None
            why = str(error)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        yield from _lines(_chunks(file.fileno()), known=False, otherwise=why)


# --- lines ---------------------------------------------------------------------------------------------------------


def _lines(chunks: Iterator[bytes], *, known: bool, otherwise: str = "") -> Iterator[Item]:
    """Values of lines. known: they are lines for sure; else, when not one of the first many is JSON, the text is neither."""
    splitter = Splitter(TRACE_BYTES)
    index = 0
    bad: list[Item] = []
    for raw in _all_lines(splitter, chunks):
        body = b"" if raw is None else raw.strip()
        if raw is not None and (not body or body.startswith(b"//")):
            continue
        item = _item(index, splitter.number, body, raw is None)
        index += 1
        if known:
            yield item
        elif item.problem is None:
            known = True
            yield from bad
            yield item
        else:
            bad.append(item)
            if len(bad) > 10_000:
                break
    if not known and bad:
        if len(bad) > 1:
            raise NotReadable(f"neither a JSON document ({otherwise}) nor lines of JSON")
        yield from bad


def _all_lines(splitter: Splitter, chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    for chunk in chunks:
        yield from splitter.feed(chunk)
    last = splitter.rest()
    if last != b"":
        yield last


def _item(index: int, line: int | None, body: bytes, long: bool = False) -> Item:
    if long or len(body) > TRACE_BYTES:
        return Item(index, line, None, f"longer than {TRACE_BYTES >> 20} MiB")
    try:
        return Item(index, line, parse(body))
    except BadJson as error:
        return Item(index, line, None, str(error))


def _read(fd: int) -> bytes:
    """The next piece, empty at the end. Waits for it in any case: some programs hand on pipes that don't wait."""
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            select.select([fd], [], [])


def _chunks(fd: int) -> Iterator[bytes]:
    while chunk := _read(fd):
        yield chunk


def _and_then(start: bytes, fd: int) -> Iterator[bytes]:
    yield start
    yield from _chunks(fd)


def _first_line(fd: int) -> tuple[bytes, bool]:
    """What was read to find the first line that says something, and whether it settles that these are lines."""
    read_ = b""
    parts: list[bytes] = []
    while len(read_) < TRACE_BYTES:
        chunk = _read(fd)
        if not chunk:
            break
        parts.append(chunk)
        if b"\n" in chunk or len(parts) == 1:
            read_ = b"".join(parts)
            body = read_.removeprefix(_BOM).lstrip(_SPACE)
            if body[:1] not in (b"{", b""):
                return read_, body.startswith(b"//")
            line, feed, _ = body.partition(b"\n")
            if feed:
                try:
                    return read_, isinstance(parse(line), dict)
                except BadJson:
                    return read_, False
    return b"".join(parts), False


# --- a document ----------------------------------------------------------------------------------------------------


def _regular(fd: int, start: bytes) -> BinaryIO:
    """A regular file with all of the text, positioned at its start: the same one where it is one."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.lseek(fd, 0, os.SEEK_SET)
        return os.fdopen(os.dup(fd), "rb")
    file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - whoever called closes it
    file.write(start)
    for chunk in _chunks(fd):
        file.write(chunk)
    file.flush()
    return file


def _document(file: BinaryIO) -> Iterator[Item]:
    """The traces of a document. Raises BadJson before the first one is given when it is no JSON value as a whole."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        view = memoryview(text)
        try:
            yield from _values(view[len(_BOM) :] if text[:3] == _BOM else view)
        finally:
            view.release()


def _values(view: memoryview) -> Iterator[Item]:
    head = bytes(view[:_CHUNK]).lstrip(_SPACE)[:1]
    if not head:
        return
    raws: list[msgspec.Raw]
    try:
        raws = msgspec.json.decode(view, type=list[msgspec.Raw]) if head == b"[" else [msgspec.json.decode(view, type=msgspec.Raw)]  # fmt: skip
    except RecursionError:
        raise BadJson("nested too deep") from None
    except (msgspec.MsgspecError, ValueError) as error:
        if len(view) > _WHOLE_BYTES:
            raise BadJson(str(error)) from None
        whole = parse(bytes(view))  # halves of surrogate pairs are no fault
        for index, value in enumerate(whole if isinstance(whole, list) else [whole]):
            yield Item(index, None, value)
        return
    raws.reverse()  # each is let go of when it has been used
    for index in range(len(raws)):
        raw = bytes(raws.pop())
        yield _item(index, None, raw)
