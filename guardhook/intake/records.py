"""Lines of files that other programs wrote, and records made of them whatever is wrong with a field."""

from __future__ import annotations

import functools
import json
import os
import stat
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec

from guardhook.intake.jsonlines import BadJson, lenient
from guardhook.store.lines import clean, raw_lines

LINE_BYTES = 64 << 20
_BOM = b"\xef\xbb\xbf"
_BETWEEN = frozenset(" \t\r\n,")
_scan = json.JSONDecoder(strict=False).raw_decode
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


def names_in(folder: str) -> list[str]:
    """The names in a folder in order; none when it can't be read, or is a link."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):  # ValueError: a NUL or half a surrogate pair, from a session id that says anything
        return []
    try:
        return sorted(os.listdir(fd))
    except OSError:
        return []
    finally:
        os.close(fd)


def lines(fd: int, size: int | None = None) -> Iterator[tuple[int, bytes | None, int]]:
    """(number, line, offset) of all lines that are not blank, the unfinished last one included; the line is None where it is longer than LINE_BYTES.

    Reads from the start up to size bytes (None: what the file has now). Numbers count from 1.
    """
    if size is None:
        size = os.fstat(fd).st_size
    for number, (offset, _, raw) in enumerate(raw_lines(fd, 0, size, unfinished=True, most=LINE_BYTES), 1):
        if raw is None:
            yield number, None, offset
        elif line := _stripped(raw, offset):
            yield number, line, offset


def _stripped(raw: bytes, offset: int) -> bytes:
    return (raw.removeprefix(_BOM) if offset == 0 else raw).strip(_BLANK)


def beginning(fd: int, size: int) -> bytes:
    """The first bytes of a file, without a byte-order mark. Raises OSError."""
    return os.pread(fd, size, 0).removeprefix(_BOM)


def line_at(fd: int, offset: int) -> bytes:
    """The line that begins at an offset, as `lines` gave it. Raises OSError."""
    parts = []
    position = offset
    while chunk := os.pread(fd, 64 * 1024, position):
        head, feed, _ = chunk.partition(b"\n")
        parts.append(head)
        position += len(chunk)
        if feed:
            break
    return _stripped(b"".join(parts), offset)


def elements(text: str, at: int, most: int = 1 << 30) -> tuple[list[bytes], int | None]:
    """The elements of a JSON list, as they stand, from the place behind its bracket; and where the text is JSON no longer (or `most` end), None when the list has an end.

    For documents that were cut off: what stands before the damage is of use.
    """
    found: list[bytes] = []
    while len(found) < most:
        at = _between(text, at)
        if text[at : at + 1] == "]":
            return found, None
        try:
            _, end = _scan(text, at)
        except (ValueError, RecursionError):
            return found, at
        found.append(text[at:end].encode("utf-8", "replace"))
        at = end
    return found, at


def _between(text: str, at: int) -> int:
    while text[at : at + 1] in _BETWEEN and at < len(text):
        at += 1
    return at


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
            value = clean(lenient(raw))
        except RecursionError:
            return None, "nested too deep"
        except BadJson as error:
            return None, str(error)[:200]
        if not isinstance(value, dict):
            return None, "no JSON object"
        wrong: list[str] = []
        found: S = mend(value, self._kind, "", wrong)
        return found, f"not as expected: {', '.join(wrong[:5])}" if wrong else ""


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def mend(value: object, kind: Any, path: str, wrong: list[str]) -> Any:
    """The value as a field's type wants it. Parts that don't fit get their field's default (in lists they are left out) and are named in wrong.

    Raises msgspec.ValidationError when nothing of it fits.
    """
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if not isinstance(value, dict):
            raise msgspec.ValidationError("no object")
        found: dict[str, object] = {}
        for field in _fields(kind):
            part = value.get(field.encode_name)
            if part is None:
                continue
            try:
                found[field.name] = mend(part, field.type, f"{path}{field.encode_name}.", wrong)
            except (msgspec.ValidationError, RecursionError):
                wrong.append(f"{path}{field.encode_name}"[:80])
        return kind(**found)
    if kind is msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(value))
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
