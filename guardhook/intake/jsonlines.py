"""Lines of JSON from a descriptor of unknown length: split as they come, parsed one at a time, whatever they hold."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from guardhook.core.jsontext import PayloadError, loads

LINE_BYTES = 64 << 20  # a longer line is left out
DEPTH = 200  # of nesting; what is written to the journal is walked by recursion
_BOM = b"\xef\xbb\xbf"


class BadJson(ValueError):
    """Text that is no usable JSON; the message says why, without quoting it."""


def parse(raw: bytes) -> object:
    """The value of one JSON text. Of a key given twice the last one counts. Raises BadJson."""
    raw = raw.removeprefix(_BOM)
    try:
        value: object = msgspec.json.decode(raw)
    except RecursionError:
        raise BadJson(f"nested deeper than {DEPTH} levels") from None
    except (msgspec.MsgspecError, ValueError):
        # Half a surrogate pair is no fault: clients cut text in the middle of a character.
        try:
            value = loads(raw, bounded=False)
        except PayloadError as error:
            raise BadJson(str(error).replace("the payload is ", "")) from None
    if raw.count(b"{") + raw.count(b"[") > DEPTH and _deep(value):
        raise BadJson(f"nested deeper than {DEPTH} levels")
    return value


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
