"""What translators of streams share: numbering steps, pairing results with calls, reading values of any type."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Protocol

from guardhook.core.jsontext import dumps
from guardhook.store import instants, protocol
from guardhook.store.model import make_id

CALLS_MOST = 4096  # open calls remembered; the oldest is given up for a newer one
TEXT_CHARS = 1 << 20  # of a message that comes in pieces
Event = dict[str, object]


class Skip(Exception):
    """A line that gives no events although it should; the message says why."""


class Translator(Protocol):
    """One format's reading of a stream."""

    def line(self, value: Event, now_us: int) -> Iterable[Event]:
        """Native events of one line. now_us: when it was read. Raises Skip."""
        raise NotImplementedError

    def end(self, now_us: int) -> Iterable[Event]:
        """Native events for what is still open when the stream ends. A run that did not say how it ended is left running."""
        raise NotImplementedError


class Call:
    """A tool call without a result yet. held: its step, where it is told only with the result."""

    __slots__ = ("held", "key", "name", "number")

    def __init__(self, number: int, name: str, key: str | None, held: Event | None) -> None:
        self.number = number
        self.name = name
        self.key = key
        self.held = held


class Builder:
    """Makes the native events of one trace at a time."""

    def __init__(self) -> None:
        self.trace: str | None = None
        self.number = 0  # of the newest step
        self.calls: list[Call] = []

    def start(self, agent: str, source: str, **fields: object) -> Event:
        """Begins a trace of a fresh id."""
        self.trace = make_id("trc", uuid.uuid4().hex)
        self.number, self.calls = 0, []
        metadata = given(source=source, **obj(fields.pop("metadata", None)))
        return given(
            type="trace_start",
            trace_id=self.trace,
            agent_name=agent,
            trigger="user_message",
            metadata=metadata,
            **fields,
        )

    def step(self, step_type: str, name: str, **fields: object) -> Event:
        """A whole step."""
        return self._numbered("step", step_type, name, fields)

    def open(self, name: str, key: str | None, step_type: str = "tool_call", **fields: object) -> Iterator[Event]:
        """A step that a later `close` ends. key is the client's id of the call.

        Without a time it is told as a whole when it ends: the store would take the time between two lines for its duration.
        """
        timed = fields.get("started_at") is not None
        event = self._numbered("step_start" if timed else "step", step_type, name, fields)
        self.calls.append(Call(self.number, name, key, None if timed else event))
        del self.calls[:-CALLS_MOST]
        if timed:
            yield event

    def find(self, key: str | None, name: str | None = None) -> Call | None:
        """The open call of this id; without an id the oldest one of this name, or of any."""
        if key is not None:
            return next((c for c in self.calls if c.key == key), None)
        return next((c for c in self.calls if name is None or c.name == name), None)

    def close(self, call: Call, **fields: object) -> Event:
        """The end of a call."""
        self.calls.remove(call)
        end = given(type="step_end", trace_id=self.trace, step_number=call.number, **fields)
        if call.held is None:
            return end
        metadata = {**obj(call.held.get("metadata")), **obj(end.get("metadata"))}
        return {**end, **call.held, "metadata": metadata}

    def decision(self, number: int, chosen: str, decided_by: str, rationale: str | None) -> Event:
        return given(
            type="decision", trace_id=self.trace, step_number=number, chosen=chosen, decided_by=decided_by, rationale=rationale
        )  # fmt: skip

    def interrupted(self, ended_at: str | None) -> Iterator[Event]:
        """Ends of all open calls, which nobody will end any more."""
        for call in list(self.calls):
            yield self.close(call, ended_at=ended_at, metadata={"interrupted": True})

    def end(self, status: str, *, untimed: bool = False, **fields: object) -> Event:
        """Ends the trace. untimed: nobody knows when it ended."""
        event = given(type="trace_end", trace_id=self.trace, status=status, **fields)
        if untimed:
            event["ended_at"] = None
        self.trace = None
        return event

    def _numbered(self, kind: str, step_type: str, name: str, fields: Event) -> Event:
        self.number += 1
        return given(
            type=kind, trace_id=self.trace, step_number=self.number, step_type=step_type, name=name or "step", **fields
        )


class Pieces:
    """A message that comes in pieces, put together within a bound."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._chars = 0
        self.first: str | None = None  # time stamp of the first piece
        self.last: str | None = None

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, text: str, stamp: str | None) -> None:
        if not self._parts:
            self.first = stamp
        self.last = stamp
        self._parts.append(text[: max(0, TEXT_CHARS - self._chars)])
        self._chars += len(text)

    def take(self) -> str:
        text = "".join(self._parts)
        self._parts, self._chars = [], 0
        return text


def given(**fields: object) -> Event:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def text(value: object) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def obj(value: object) -> Event:
    """An object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def whole(value: object) -> int | None:
    """A count that is at least 0, from a number or the text of one."""
    if isinstance(value, bool):
        return None
    number = protocol.whole(value)
    return None if number is None else max(0, number)


def total(usage: Event, *names: str) -> int | None:
    """The sum of counts; None when there is none of them."""
    found = [n for n in (whole(usage.get(name)) for name in names) if n is not None]
    return sum(found) if found else None


def stamp(value: object) -> str | None:
    """A time stamp as the client gives it, when it is one."""
    return value if isinstance(value, str) and instants.micros(value) is not None else None


def truthy(value: object) -> bool:
    """A failure flag: true, 1 and their texts."""
    return value is True or (isinstance(value, (int, float)) and value == 1) or str(value).strip().lower() in ("true", "1")  # fmt: skip


def said(value: object) -> str | None:
    """What an error field says: text, the message of an object, else JSON. Empty values say nothing."""
    if value is None or value is False or value == 0 or value in ("", [], {}) or value != value:
        return None
    if isinstance(value, dict):
        return text(value.get("message")) or dumps(value)
    return value if isinstance(value, str) else dumps(value)


def exit_error(value: object) -> str | None:
    """`exited with code N` for an exit code other than 0; unreadable ones say nothing."""
    if isinstance(value, bool):
        return None
    code = protocol.whole(value)
    return f"exited with code {code}" if code else None


def wrapped(value: object, name: str) -> object:
    """An object as it is, everything else under a name; None stays None."""
    return value if value is None or isinstance(value, dict) else {name: value}
