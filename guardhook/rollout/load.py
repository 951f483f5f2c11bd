"""Reading a rollout file: every rule that makes one trustworthy, checked line by line. A refusal names the line.

`load` gives the whole file, `Reader` one event at a time. A file that breaks a rule is refused as a whole: nothing of it counts. What may be
missing is only the end (a run under way, or one that crashed) and sequence numbers, which are told as gaps.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from guardhook.core.jsontext import PayloadError, dumps, loads
from guardhook.rollout import limits
from guardhook.rollout.lines import measure
from guardhook.store import instants

TERMINAL = frozenset(("run.completed", "run.failed", "run.cancelled"))
NEEDS_STEP = frozenset((
    "llm.turn.completed", "tool.call.started", "tool.call.completed", "steering.received", "conversation.continued",
    "run.completed", "run.failed",
))  # fmt: skip
MARKER = "recorder.drop_detected"
_OUTCOMES = {"run.completed": "completed", "run.failed": "failed", "run.cancelled": "cancelled"}
_CHUNK = 1 << 20
_TS = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_decode = msgspec.json.Decoder().decode


class RolloutError(Exception):
    """A rollout that can't be used. line counts from 1, 0 when it is not about a line; missing: there is no such file."""

    def __init__(self, path: str, message: str, line: int = 0, *, missing: bool = False) -> None:
        self.path = path
        self.line = line
        self.reason = message
        self.missing = missing
        self.message = f"{dumps(path)}: " + (f"line {line}: {message}" if line else message)
        super().__init__(self.message)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One loaded event. step is 0 where the event has none; line is where it stands in the file (0: not from a file)."""

    seq: int
    type: str
    step: int
    payload: dict[str, object] | None
    ts: str
    line: int = 0

    @property
    def id(self) -> str:
        return str(self.seq)


class Gap(NamedTuple):
    """Sequence numbers that are not there, both ends included. declared: a marker in the file tells of the loss."""

    from_seq: int
    to_seq: int
    declared: bool


class Rollout(NamedTuple):
    """A loaded file."""

    path: str
    events: list[Event]
    gaps: list[Gap]

    @property
    def outcome(self) -> str:
        return outcome(self.events)

    @property
    def steps(self) -> int:
        """The highest step."""
        return max((e.step for e in self.events), default=0)

    @property
    def start(self) -> dict[str, object]:
        """What run.started says; empty for a headless file."""
        first = self.events[0] if self.events else None
        return (first.payload or {}) if first is not None and first.type == "run.started" else {}


def outcome(events: list[Event]) -> str:
    """completed, failed, cancelled, or unknown for a run without an end."""
    return next((_OUTCOMES[e.type] for e in reversed(events) if e.type in TERMINAL), "unknown")


def load(path: str, *, allow_headless: bool = False, within: str | None = None) -> Rollout:
    """The whole file. allow_headless: it need not begin with run.started (for salvage). within: a folder that it must lie in, links resolved.

    Raises RolloutError.
    """
    with Reader(path, allow_headless=allow_headless, within=within) as reader:
        events = list(reader)
        return Rollout(path, events, reader.gaps)


def load_lines(raw_lines: Iterable[bytes], name: str) -> Rollout:
    """As `load`, of lines that somebody has: a rollout rendered from the journal obeys the same rules. name stands in messages."""
    checker = Checker(name)
    events = [event for number, raw in enumerate(raw_lines, 1) if (event := checker.line(number, raw)) is not None]
    return Rollout(name, events, checker.gaps())


class Checker:
    """All rules about lines and their order. Raises RolloutError."""

    def __init__(self, path: str, *, allow_headless: bool = False) -> None:
        self.path = path
        self._headless = allow_headless
        self._events = 0
        self._elements = 0
        self._terminal = False
        self._started = False
        self._step = 0
        self._seq = -1
        self._holes: list[Gap] = []
        self._declared: list[tuple[int, int]] = []

    def line(self, number: int, raw: bytes) -> Event | None:
        """The event of a line (without its line feed), None for a blank one. number counts from 1."""
        if len(raw) > limits.LINE_BYTES:
            raise self.refusal(TOO_LONG, number)
        raw = raw.strip()
        if not raw:
            return None
        self._events += 1
        if self._events > limits.EVENTS:
            raise self.refusal(f"more than {limits.EVENTS} events", number)
        shape = measure(raw)
        if shape.depth > limits.DEPTH:
            raise self.refusal(f"JSON nested deeper than {limits.DEPTH} levels", number)
        if shape.elements > limits.ELEMENTS:
            raise self.refusal(f"more than {limits.ELEMENTS} JSON elements in one line", number)
        self._elements += shape.elements
        if self._elements > limits.FILE_ELEMENTS:
            raise self.refusal(f"the total element budget of {limits.FILE_ELEMENTS} is used up", number)
        value = self._parse(number, raw, shape.colons)
        try:
            event = _members(value, number)
        except ValueError as error:
            raise self.refusal(str(error), number) from None
        self._rules(event)
        self._order(event)
        return event

    def refusal(self, message: str, line: int = 0) -> RolloutError:
        return RolloutError(self.path, message, line)

    def _parse(self, number: int, raw: bytes, colons: int) -> object:
        try:
            value = _decode(raw)
            # As many members as there are colons outside of strings: no name stands twice in one object.
            if _count(value) == colons:
                return value
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            pass
        return self._explain(number, raw)

    def _explain(self, number: int, raw: bytes) -> object:
        """Parses with the strict reader, which says what is wrong."""
        if raw[:3] == b"\xef\xbb\xbf":
            raise self.refusal("a byte-order mark, which no line may have", number)
        try:
            value = loads(raw, bounded=False)
        except PayloadError as error:
            raise self.refusal(f"not a JSON object: {str(error).replace('the payload', 'the line')}", number) from None
        if _surrogates(value):
            raise self.refusal("half of a surrogate pair in a string", number)
        return value

    def _rules(self, event: Event) -> None:
        number, kind = event.line, event.type
        if self._terminal:
            raise self.refusal(f"{dumps(kind)} comes after the run's end", number)
        if kind == "run.started":
            if self._started:
                raise self.refusal("duplicate run.started", number)
            if self._seq >= 0:
                raise self.refusal("run.started must be the first event", number)
            if event.step != 0:
                raise self.refusal("run.started must have step 0", number)
            self._started = True
        elif self._seq < 0 and not self._headless:
            raise self.refusal("the first event must be run.started", number)
        if kind in NEEDS_STEP and event.step < 1:
            raise self.refusal(f"{kind} must have step >= 1", number)
        if event.step < self._step:
            raise self.refusal(f"steps must be non-decreasing: {event.step} after {self._step}", number)
        self._step = event.step
        self._terminal = kind in TERMINAL

    def _order(self, event: Event) -> None:
        if event.seq <= self._seq:
            raise self.refusal(f"seq must be strictly increasing: {event.seq} after {self._seq}", event.line)
        if event.seq > self._seq + 1 and self._seq >= 0:
            self._holes.append(Gap(self._seq + 1, event.seq - 1, False))
        if event.type == MARKER and event.payload is not None:
            first, count = event.payload.get("dropped_seq"), event.payload.get("count", 1)
            if type(first) is int and type(count) is int and first >= 0 and 1 <= count <= 1 << 53:
                self._declared.append((first, first + count - 1))
        self._seq = event.seq

    def gaps(self) -> list[Gap]:
        """What is missing. A marker takes the first number of what it stands for, so a hole right behind it is its own."""
        told = sorted(self._declared)
        found = [Gap(a, b, True) for a, b in told]
        found.extend(h for h in self._holes if not any(a <= h.from_seq and h.to_seq <= b for a, b in told))
        return sorted(found)


class Reader:
    """A file's events one at a time. Raises RolloutError from everything."""

    def __init__(self, path: str, *, allow_headless: bool = False, within: str | None = None) -> None:
        self.path = path
        self._checker = Checker(path, allow_headless=allow_headless)
        self._fd = _open(path, within)

    @property
    def gaps(self) -> list[Gap]:
        """What is missing; complete after the last event."""
        return self._checker.gaps()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *rest: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __iter__(self) -> Iterator[Event]:
        line = self._checker.line
        for number, raw in self._lines():
            event = line(number, raw)
            if event is not None:
                yield event

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """(number, line) as they come; what is too long is refused before the rest of it is read."""
        number, total, rest = 1, 0, b""
        refusal = self._checker.refusal
        while True:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except OSError as error:
                raise refusal(error.strerror or str(error)) from None
            if not chunk:
                break
            total += len(chunk)
            if b"\n" in chunk:
                *whole, rest = (rest + chunk).split(b"\n")
                for number, raw in enumerate(whole, number):  # noqa: B020 (the numbering goes on)
                    if raw:  # millions of empty lines are nothing to go through one by one
                        yield number, raw
                number += 1
            else:
                rest += chunk
            if len(rest) > limits.LINE_BYTES:
                raise refusal(TOO_LONG, number)
            if total > limits.FILE_BYTES:
                raise refusal(f"the file is larger than {limits.FILE_BYTES} bytes", number)
        if rest:
            yield number, rest


TOO_LONG = f"longer than {limits.LINE_BYTES} bytes"


def _open(path: str, within: str | None) -> int:
    """A descriptor of a regular file. A FIFO or device is never waited for, whatever it is swapped with."""
    place, flags = path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
    try:
        if within is not None:
            place = inside(path, within)
            flags |= os.O_NOFOLLOW
        if not stat.S_ISREG(os.stat(place).st_mode):
            raise RolloutError(path, "not a regular file")
        expected = os.stat(place, follow_symlinks=False) if within is not None else None
        fd = os.open(place, flags)
    except (FileNotFoundError, NotADirectoryError):
        raise RolloutError(path, "there is no such file", missing=True) from None
    except (OSError, ValueError) as error:
        raise RolloutError(path, getattr(error, "strerror", None) or str(error)) from None
    status = os.fstat(fd)
    swapped = expected is not None and (expected.st_dev, expected.st_ino) != (status.st_dev, status.st_ino)
    if not stat.S_ISREG(status.st_mode) or swapped:
        os.close(fd)
        raise RolloutError(path, "not a regular file")
    os.set_blocking(fd, True)
    return fd


def inside(path: str, folder: str) -> str:
    """The real path of a file in a folder; relative paths count from the folder. Raises RolloutError (missing) for whatever lies outside, links included.

    Outside and missing are the same answer: nobody learns what else is on the disk.
    """
    base = os.path.abspath(folder)
    named = os.path.normpath(os.path.join(base, path))
    real_base, real = os.path.realpath(base), os.path.realpath(named)
    for whole, root in ((named, base), (real, real_base)):
        if os.path.commonpath([whole, root]) != root or whole == root:
            raise RolloutError(path, "there is no such file", missing=True)
    return real


def _members(value: object, number: int) -> Event:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    kind, seq, ts, data = value.get("type"), value.get("seq"), value.get("ts"), value.get("data")
    if not isinstance(kind, str) or not kind:
        raise ValueError("type must be a text that is not empty")
    if type(seq) is not int or not 0 <= seq < 1 << 64:
        raise ValueError("seq must be a whole number of at least 0")
    if not isinstance(ts, str) or not _TS.fullmatch(ts) or instants.micros(ts.upper()) is None:
        raise ValueError("ts must be an RFC 3339 time")
    if data is not None and not isinstance(data, dict):
        raise ValueError("data must be an object")
    if data is not None and "step" in data:
        step = _step(data["step"])
    elif kind in NEEDS_STEP:
        raise ValueError(f"{kind} requires data.step")
    else:
        step = 0
    return Event(seq, kind, step, data, ts, number)


def _step(value: object) -> int:
    """A step as JSON gives it: 1, 1.0 and 1e0 are the same, true and "1" are none."""
    whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value == int(value))
    if isinstance(value, bool) or not whole or not 0 <= value <= limits.STEP:  # type: ignore[operator]
        raise ValueError(f"data.step must be a whole number between 0 and {limits.STEP}")
    return int(value)  # type: ignore[call-overload,no-any-return]


def _count(value: object) -> int:
    """How many members all objects in a value have."""
    if isinstance(value, dict):
        found = len(value)
        for item in value.values():
            if isinstance(item, (dict, list)):
                found += _count(item)
        return found
    if isinstance(value, list):
        return sum(_count(item) for item in value if isinstance(item, (dict, list)))
    return 0


def _surrogates(value: object) -> bool:
    if isinstance(value, str):
        return not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return any(_surrogates(k) or _surrogates(v) for k, v in value.items())
    return isinstance(value, list) and any(map(_surrogates, value))
