"""Lines of files that other programs wrote, and records made of them whatever is wrong with a field."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec

from guardhook.core.jsontext import PayloadError, loads
from guardhook.store.lines import clean

LINE_BYTES = 64 << 20
_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\0"  # a file system that lost its power leaves NULs

S = TypeVar("S", bound=msgspec.Struct)


class NotAFile(OSError):
    """A link, a FIFO, a device or a folder where a file was expected."""


def open_file(path: str) -> int:
    """A descriptor of a regular file, never through a link in the last part of the path, never waiting for a writer. Raises OSError, NotAFile."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotAFile(0, "not a regular file", path)
    return fd


def lines(fd: int, size: int | None = None) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) of all lines that are not blank, the unfinished last one included; None for one longer than LINE_BYTES.

    Reads from the start up to size bytes (None: what the file has now). Numbers count from 1.
    """
    if size is None:
        size = os.fstat(fd).st_size
    number = position = 0
    parts: list[bytes] = []
    length = 0
    while position < size and (chunk := os.pread(fd, min(_CHUNK, size - position), position)):
        if position == 0 and chunk.startswith(_BOM):
            chunk = chunk[3:]
            position = 3
        position += len(chunk)
        first, feed, rest = chunk.partition(b"\n")
        length += len(first)
        if length <= LINE_BYTES:
            parts.append(first)
        else:
            parts.clear()
        if not feed:
            continue
        number += 1
        line = b"".join(parts).strip(_BLANK)
        if length > LINE_BYTES:
            yield number, None
        elif line:
            yield number, line
        *whole, last = rest.split(b"\n")
        for raw in whole:
            number += 1
            line = raw.strip(_BLANK)
            if line:
                yield number, line
        parts, length = [last], len(last)
    line = b"".join(parts).strip(_BLANK)
    if length > LINE_BYTES:
        yield number + 1, None
    elif line:
        yield number + 1, line


class Decoder(Generic[S]):
    """Lines as structs of one kind. What the quick decoder refuses is read again with patience."""

    def __init__(self, kind: type[S]) -> None:
        self._kind = kind
        self._quick = msgspec.json.Decoder(kind).decode

    def decode(self, raw: bytes) -> tuple[S | None, str]:
        """(record, what is wrong). The record is None when the line is no JSON object; else fields of a wrong type have their defaults, and the text names them."""
        try:
            return self._quick(raw), ""
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        try:
            # Duplicate keys: the last one wins, as with the quick decoder.
            value = _loads(raw)
        except (PayloadError, RecursionError, ValueError) as error:
            return None, f"no JSON: {str(error)[:200]}" if str(error) else "nested too deep"
        if not isinstance(value, dict):
            return None, "no JSON object"
        wrong: list[str] = []
        found: S = mend(value, self._kind, "", wrong)
        return found, f"not as expected: {', '.join(wrong[:5])}" if wrong else ""


def _loads(raw: bytes) -> object:
    try:
        return clean(loads(raw, replace=True, bounded=False))
    except PayloadError as error:
        if error.kind != "duplicate":
            raise
        return clean(msgspec.json.decode(raw.decode("utf-8", "replace")))


def mend(value: object, kind: Any, path: str, wrong: list[str]) -> Any:
    """The value as a field's type wants it. Parts that don't fit get their field's default (in lists they are left out) and are named in wrong.

    Raises msgspec.ValidationError when nothing of it fits.
    """
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if not isinstance(value, dict):
            raise msgspec.ValidationError("no object")
        found: dict[str, object] = {}
        for field in msgspec.structs.fields(kind):
            part = value.get(field.encode_name)
            if part is None:
                continue
            try:
                found[field.name] = mend(part, field.type, f"{path}{field.encode_name}.", wrong)
            except (msgspec.ValidationError, RecursionError):
                wrong.append(f"{path}{field.encode_name}"[:80])
        return kind(**found)
    options = get_args(kind)
    if get_origin(kind) is list and isinstance(value, list):
        out = []
        for index, item in enumerate(value):
            try:
                out.append(mend(item, options[0], f"{path}{index}.", wrong))
            except (msgspec.ValidationError, RecursionError):
                wrong.append(f"{path}{index}"[:80])
        return out
    if options and get_origin(kind) not in (dict, list):
        for option in options:
            try:
                return mend(value, option, path, wrong)
            except (msgspec.ValidationError, RecursionError):
                continue
        raise msgspec.ValidationError("fits none")
    return msgspec.convert(value, kind)
