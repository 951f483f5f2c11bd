"""Large documents, piece by piece: the lists of events and steps are read and written element by element, everything else as a whole."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import BinaryIO

from guardhook.archive import plain
from guardhook.archive.envelope import FORMAT
from guardhook.archive.errors import UnknownFormatError, UnreadableError
from guardhook.archive.packing import FAMILY, Packer
from guardhook.archive.spooled import Spooled
from guardhook.rollout import lines

_CHUNK = 1 << 20
_SPACE = " \t\r\n"
Path = tuple[str, ...]
_OBJECTS = frozenset((("recording",), ("snapshot",), ("recording", "snapshot")))
_LISTS = frozenset((
    ("events",), ("recording", "events"), ("snapshot", "steps"), ("recording", "snapshot", "steps"),
))  # fmt: skip
_MOST_MEMBERS = 100_000


class Reader:
    """A JSON text, of which as much is held as one value needs. Raises UnreadableError, OSError."""

    def __init__(self, file: BinaryIO) -> None:
        plain.room()
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._whole = False
        self._largest = 0  # characters of the largest value so far

    def _more(self, least: int = _CHUNK) -> bool:
        """Reads on; False at the end of the file."""
        if self._whole:
            return False
        data = self._file.read(max(_CHUNK, least))
        self._whole = not data
        try:
            self._text = self._text[self._at :] + self._decode(data, not data)
        except UnicodeDecodeError as error:
            raise UnreadableError(f"not UTF-8 ({error.reason})") from None
        self._at = 0
        return True

    def peek(self) -> str:
        """The next character that is no white space, empty at the end."""
        while True:
            text = self._text
            for at in range(self._at, len(text)):
                if text[at] not in _SPACE:
                    self._at = at
                    return text[at]
            self._at = len(text)
            if not self._more():
                return ""

    def take(self, wanted: str) -> str:
        """The next character, which must be one of those wanted."""
        found = self.peek()
        if not found or found not in wanted:
            raise UnreadableError(f"not JSON: {found!r} where one of {wanted} should stand")
        self._at += 1
        return found

    def value(self) -> object:
        """The next value."""
        self.peek()
        while len(self._text) - self._at <= self._largest and self._more(self._largest):
            pass  # parsing what is not all there would be in vain
        while True:
            text = self._text
            problem = None
            try:
                found, end = plain.DECODER.raw_decode(text, self._at)
                if end < len(text) or self._whole:
                    self._largest = max(self._largest, end - self._at)
                    self._at = end
                    return found
            except json.JSONDecodeError as error:
                problem = error
            except RecursionError:
                raise UnreadableError(f"nested deeper than {plain.MOST_DEPTH} levels") from None
            except UnreadableError:
                raise
            except ValueError:
                raise UnreadableError("a number is too large") from None
            # Either the value goes on behind what was read, or it is none.
            if problem is not None and self._wrong(problem):
                raise UnreadableError(f"not JSON: {problem.msg}") from None
            if not self._more(len(text) - self._at) and problem is not None:
                raise UnreadableError(f"not JSON: {problem.msg}") from None

    def _wrong(self, problem: json.JSONDecodeError) -> bool:
        return self._whole or (problem.pos < len(self._text) - 16 and not problem.msg.startswith("Unterminated"))

    def elements(self) -> Iterator[object]:
        """The elements of the list that comes next."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the caller takes each value before the next key."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        seen: set[str] = set()
        while True:
            if self.peek() != '"':
                raise UnreadableError("not JSON: a key that is no text")
            key = self.value()
            assert isinstance(key, str)
            if key in seen or len(seen) >= _MOST_MEMBERS:
                raise UnreadableError("a key appears twice in one object, or there are too many")
            seen.add(key)
            self.take(":")
            yield key
            if self.take(",}") == "}":
                return


def pack_file(file: BinaryIO) -> dict[str, object]:
    """The document in a file with its recording packed: an envelope, or a bare recording. Memory goes with what differs in it, not with its length.

    Raises UnreadableError (also when it is packed already), UnknownFormatError, TypeError, OSError.
    """
    packer = Packer()
    reader = Reader(file)
    if reader.peek() != "{":
        raise UnreadableError("the document is no object")
    top = _object(reader, packer, ())
    if reader.peek():
        raise UnreadableError("not JSON: there is text after the document")
    format = top.get("format")
    inner = top.get("recording") if format == FORMAT else top
    if not isinstance(inner, dict):
        raise UnreadableError("the envelope holds no recording")
    named = inner.get("format")
    if isinstance(named, str) and named.startswith(FAMILY):
        raise UnreadableError("the recording is packed already")
    if format is not None and format != FORMAT:
        raise UnknownFormatError(format)
    if "events" not in inner:
        raise UnreadableError("the document holds no recording with events")
    packed = packer.packed(inner)
    return {**top, "recording": packed} if format == FORMAT else packed


def _object(reader: Reader, packer: Packer, path: Path) -> dict[str, object]:
    out: dict[str, object] = {}
    for key in reader.members():
        here = (*path, key)
        first = reader.peek()
        if here in _OBJECTS and first == "{":
            out[key] = _object(reader, packer, here)
        elif here in _LISTS and first == "[":
            out[key] = [packer.add(element) for element in reader.elements()]
        else:
            value = reader.value()
            out[key] = packer.add(value) if path else value
    return out


def event_line(event: dict[str, object]) -> bytes:
    """The line of an event, as in a rollout; half surrogate pairs as escapes. Raises TypeError."""
    try:
        return lines.encode(event)
    except (UnicodeEncodeError, RecursionError, OverflowError):
        return plain.encode(event) + b"\n"


def pretty(value: object, path: Path = (), lead: bytes = b"\n") -> Iterator[bytes]:
    """The text of `plain.pretty` in pieces, element by element, without the final line feed. Raises TypeError."""
    inner = lead + b"  "
    if isinstance(value, dict) and value and (not path or path in _OBJECTS):
        before = b"{"
        for key, member in value.items():
            yield before + inner + plain.encode(key) + b": "
            yield from pretty(member, (*path, key), inner)
            before = b","
        yield lead + b"}"
    elif isinstance(value, (list, Spooled)) and path in _LISTS:
        before = b"["
        for element in value:
            yield before + inner + plain.pretty(element)[:-1].replace(b"\n", inner)
            before = b","
        yield lead + b"]" if len(value) else b"[]"
    else:
        yield plain.pretty(value)[:-1].replace(b"\n", lead)


def write(value: object, out: Callable[[bytes], object]) -> None:
    """The compact text of a document, element by element, with a final line feed. Raises TypeError and what out raises."""
    _write(value, out, ())
    out(b"\n")


def _write(value: object, out: Callable[[bytes], object], path: Path) -> None:
    if isinstance(value, dict) and (not path or path in _OBJECTS):
        before = b"{"
        for key, member in value.items():
            out(before + plain.encode(key) + b":")
            _write(member, out, (*path, key))
            before = b","
        out(b"}" if value else b"{}")
    elif isinstance(value, list) and path in _LISTS:
        before = b"["
        for element in value:
            out(before + plain.encode(element))
            before = b","
        out(b"]" if value else b"[]")
    else:
        out(plain.encode(value))
