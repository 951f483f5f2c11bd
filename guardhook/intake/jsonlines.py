"""Lines of JSON from a descriptor of unknown length: split as they come, parsed one at a time, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from guardhook.core.jsontext import PayloadError, loads

LINE_BYTES = 64 << 20  # a longer line is left out
DEPTH = 200  # of nesting; what is written to the journal is walked by recursion
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class BadJson(ValueError):
    """Text that is no usable JSON; the message says why, without quoting it."""


def parse(raw: bytes) -> object:
    """The value of one JSON text, as `lenient`, if it is not nested deeper than DEPTH. Raises BadJson."""
    value = lenient(raw)
    if raw.count(b"{") + raw.count(b"[") > DEPTH and _deep(value):
        raise BadJson(f"nested deeper than {DEPTH} levels")
    return value


def lenient(raw: bytes) -> object:
    """The value of one JSON text. Of a key given twice the last one counts, bytes that are no UTF-8 are replaced, and numbers too large for any machine become text.

    Raises BadJson.
    """
    raw = raw.removeprefix(_BOM)
    try:
        value: object = msgspec.json.decode(raw)
    except RecursionError:
        raise BadJson(f"nested deeper than {DEPTH} levels") from None
    except (msgspec.MsgspecError, ValueError):
        if raw.startswith(_UTF16):
            raise BadJson("UTF-16, it must be UTF-8") from None
        # Half a surrogate pair is no fault: clients cut text in the middle of a character.
        try:
            value = loads(raw, replace=True, bounded=False)
        except PayloadError as error:
            if error.kind not in ("number", "duplicate"):
                raise BadJson(str(error).replace("the payload is ", "")) from None
            value = _patiently(raw)
    return value


def _patiently(raw: bytes) -> object:
    """A text that is JSON, but for numbers that are too large and keys that are there twice."""

    def number(text: str) -> object:
        value = float(text)
        return value if value - value == 0.0 else text

    def constant(word: str) -> object:
        raise BadJson(f"{word} is not a JSON number")

    try:
        return json.loads(raw.decode("utf-8", "replace"), parse_float=number, parse_constant=constant)
    except RecursionError:
        raise BadJson(f"nested deeper than {DEPTH} levels") from None
    except BadJson:
        raise
    except ValueError as error:
        raise BadJson(f"not valid JSON: {str(error)[:80]}") from None


def _deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(DEPTH + 1):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container if isinstance(container, list) else ())
            if isinstance(item, (dict, list))
        ]  # fmt: skip
        if not level:
            return False
    return True


class Splitter:
    """Cuts chunks into lines. A line longer than `most` is given as None; memory stays within one line."""

    def __init__(self, most: int = LINE_BYTES) -> None:
        self.number = 0  # of the last line given, from 1
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Lines that this chunk completes, without their line feeds."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield self._line(chunk[start:end])
            start = end + 1
        self._keep(chunk[start:])

    def rest(self) -> bytes | None:
        """What follows the last line feed, b"" when there is nothing; None when it was too long."""
        if not self._parts and not self._over:
            return b""
        return self._line(b"")

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            self._parts, self._over = [], True
        elif part:
            self._parts.append(part)

    def _line(self, last: bytes) -> bytes | None:
        self._keep(last)
        line = None if self._over else b"".join(self._parts)
        self.number += 1
        self._parts, self._size, self._over = [], 0, False
        return line
