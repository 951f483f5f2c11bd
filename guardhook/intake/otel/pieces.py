"""What spans, log records and metrics have in common on their way to the journal: identities, values, usage."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from guardhook.core.jsontext import PayloadError, dumps, loads_text
from guardhook.intake.otel.records import Attributes
from guardhook.store.model import make_id

Event = dict[str, object]
_TEXT_MOST = 4 << 20  # texts that are looked at for JSON inside


class Piece(NamedTuple):
    """One `trace.part` line to be: which trace, and the event (guardhook.store.parts)."""

    trace: str
    event: Event


class Mapped(NamedTuple):
    """What a request gives. rejected records are told to the sender with the reason, ignored ones are known and say nothing worth keeping."""

    pieces: Sequence[Piece]
    records: int
    rejected: int = 0
    why: str = ""
    ignored: int = 0


class Names:
    """Identities for records that have none of their own: the same again when the request comes again, another one for each equal record in it."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, *parts: object) -> str:
        digest = blake2b(dumps(parts).encode("ascii"), digest_size=12).hexdigest()
        return self.once(digest)

    def once(self, name: str) -> str:
        """The name, with a number from the second time on."""
        count = self._seen.get(name, 0)
        self._seen[name] = count + 1
        return f"{name}#{count}" if count else name


def trace_name(kind: str, *parts: str) -> str:
    """The id of the trace that a record belongs to: the same for all that tell of one run."""
    return make_id("trc", "otel", kind, *parts)


def first(attributes: Mapping[str, object], names: Iterable[str]) -> object:
    """The first of these attributes that says something."""
    for name in names:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return None


def said(attributes: Mapping[str, object], *names: str) -> str | None:
    """The first of these attributes that is text and not blank; numbers count as their text."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
    return None


def number(value: object) -> float | None:
    """A number, or the text of one; never negative."""
    if isinstance(value, str):
        try:
            value = float(value) if "." in value or "e" in value.lower() else int(value[:20])
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0.0:
        return None
    return max(0, value)


def count(attributes: Mapping[str, object], names: Iterable[str]) -> int | None:
    """The first usable count among these attributes."""
    for name in names:
        found = number(attributes.get(name)) if name in attributes else None
        if found is not None and found < 1 << 62:
            return int(found)
    return None


def unpacked(value: object) -> object:
    """JSON that an attribute holds as text; other text as it is."""
    if isinstance(value, str) and len(value) <= _TEXT_MOST and value.lstrip()[:1] in ("{", "["):
        try:
            return loads_text(value)
        except PayloadError:
            return value
    return value


def truth(value: object) -> bool | None:
    """A truth value as senders write it: a boolean, 0 or 1, or the text of one."""
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in ("true", "1") else False if word in ("false", "0") else None
    if isinstance(value, (bool, int)):
        return bool(value)
    return None


def times(event: Event, start: int, end: int) -> None:
    """Sets when a piece began and ended (nanoseconds, 0 unknown), and how long it took when both are known and in order."""
    if start:
        event["at"] = start // 1000
    if end:
        event["ended"] = end // 1000
    if start and end >= start:
        event["duration_ms"] = (end - start) // 1_000_000


def unflattened(attributes: Attributes, prefix: str) -> list[dict[str, object]]:
    """Lists that were spread over attributes: `<prefix>.<index>.<key>`, up to 1000 of them, in order of their index."""
    found: dict[int, dict[str, object]] = {}
    start = len(prefix) + 1
    for name, value in attributes.items():
        if not name.startswith(prefix) or name[start - 1 : start] != ".":
            continue
        index, dot, key = name[start:].partition(".")
        if dot and key and index.isascii() and index.isdigit() and len(index) <= 3:
            key = key.removeprefix("message.")
            found.setdefault(int(index), {})[key] = unpacked(value)
    return [found[index] for index in sorted(found)]
