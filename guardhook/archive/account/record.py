"""The events of a recording that are read: those of one run, in order, parted into turns. Damaged ones are passed over and counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.archive.facts import DROPPED, MOST, TERMINAL, text_of

_PLACEHOLDER = re.compile(r"\s*(\[REDACTED(:[A-Za-z0-9_-]+)?\]|[0-9a-f]{64})\s*", re.ASCII)
_STOPPED_EVENTS = frozenset(("StopFailure", "interrupt", "Interrupt"))
IDLE = frozenset(("idle_prompt", "agent_idle"))


class Happened(NamedTuple):
    """One event that is fit to be read. number: its place in the recording."""

    number: int
    seq: int
    type: str
    data: dict[str, object]

    def text(self, name: str) -> str | None:
        """A member that is a non-empty text."""
        return text_of(self.data.get(name))

    def at(self, path: str) -> str:
        """The pointer to something in this event."""
        return f"event:{self.seq}:{path}"

    @property
    def main(self) -> bool:
        """Whether it is the main agent's."""
        return self.text("agent_id") is None


class Turn(NamedTuple):
    """From a prompt to the last stop before the next one. first and last bound its events, the last one excluded."""

    first: int
    last: int


class Record:
    """A recording's own events. scope: `own-run`, or `unfiltered` when no single run is named; run None: nothing names one."""

    def __init__(self, recording: object, run_id: str | None = None) -> None:
        if not isinstance(recording, dict):
            raise TypeError(f"a recording must be an object, not {type(recording).__name__}")
        events = recording.get("events")
        if not isinstance(events, list):
            raise TypeError("a recording must have a list of events")
        self.unread = 0
        self.foreign = 0
        self.scope = "own-run"
        self.run = run_id
        structure = recording.get("structure")
        self.structure: dict[str, object] | None = structure if isinstance(structure, dict) else None
        self.events = self._own(list(self._readable(events)), run_id)
        self.turns = _turns(self.events)

    def _readable(self, events: list[object]) -> Iterator[Happened]:
        for index, event in enumerate(events):
            if isinstance(event, dict):
                seq, kind, data = event.get("seq"), event.get("type"), event.get("data", {})
                if type(seq) is int and 0 <= seq < MOST and isinstance(kind, str) and kind and isinstance(data, dict):
                    yield Happened(index, seq, kind, data)
                    continue
            self.unread += 1

    def _own(self, events: list[Happened], run_id: str | None) -> list[Happened]:
        named = {run for e in events if (run := e.text("run_id")) is not None}
        if run_id is None:
            if len(named) == 1:
                self.run = next(iter(named))
            else:
                self.scope = "unfiltered"
                return events
        if not named and run_id is not None:
            self.foreign = len(events)
            return []
        own = [e for e, run in _runs(events, named) if run == self.run]
        self.foreign = len(events) - len(own)
        return own

    @property
    def started(self) -> Happened | None:
        return next((e for e in self.events if e.type == "run.started"), None)

    def harness(self) -> str | None:
        """Which harness the run was in."""
        started = self.started
        session = started.data.get("session") if started is not None else None
        return text_of(session.get("harness")) if isinstance(session, dict) else None

    def ended(self) -> bool | None:
        """Whether the run's end is in the record; None when nothing was read."""
        return any(e.type in TERMINAL for e in self.events) if self.events else None

    def lost(self, turn: Turn | None = None) -> int:
        """Events that are missing inside a turn, or the run: what markers tell of, and holes in the numbers."""
        if self.scope != "own-run":
            return sum(_count(e) for e in self._in(turn) if e.type == DROPPED)
        events = self._in(turn)
        if not events:
            return 0
        # A hole between two turns is the earlier one's: what is missing may have come before the prompt.
        covered, expected = 0, events[0].seq
        for event in events:
            if event.type == DROPPED:
                covered += max(0, event.seq - expected) + _count(event)
                expected = max(expected, event.seq + _count(event))
            elif event.seq >= expected:
                covered += event.seq - expected
                expected = event.seq + 1
        if turn is not None and turn.last < len(self.events):
            covered += max(0, self.events[turn.last].seq - expected)
        return covered

    def _in(self, turn: Turn | None) -> list[Happened]:
        return self.events if turn is None else self.events[turn.first : turn.last]


def _count(event: Happened) -> int:
    count = event.data.get("count", 1)
    return count if type(count) is int and 0 < count < MOST else 1


def _runs(events: list[Happened], named: set[str]) -> Iterator[tuple[Happened, str | None]]:
    """Each event with its run: the one that it names, else the last one that its session named, else the only one that it ever does."""
    ever: dict[str | None, set[str]] = {}
    for event in events:
        run = event.text("run_id")
        if run is not None:
            ever.setdefault(event.text("conversation_id"), set()).add(run)
    now: dict[str | None, str] = {}
    only = next(iter(named)) if len(named) == 1 else None
    for event in events:
        talk, run = event.text("conversation_id"), event.text("run_id")
        if run is not None:
            now[talk] = run
        elif talk in now:
            run = now[talk]
        elif len(ever.get(talk, ())) == 1:
            run = next(iter(ever[talk]))
        else:
            run = only if talk is None else None
        yield event, run


def is_stop(event: Happened) -> bool:
    """Whether the main agent stopped here: the end of an answer, or of a draft of one."""
    if not event.main:
        return False
    if event.type == "assistant.message":
        return True
    if event.type == "llm.turn.completed":
        return event.data.get("basis") == "stop"
    return event.type == "run.waiting_for_user" and event.text("kind") is None


def _opens(event: Happened) -> bool:
    """Whether a message that somebody sent may open a turn. What the software put in does not."""
    if event.type not in ("run.started", "conversation.continued", "steering.received"):
        return False
    if event.data.get("injected") is True or event.text("source") in ("hook", "system"):
        return False
    return event.type != "run.started" or event.text("prompt") is not None


def _turns(events: list[Happened]) -> list[Turn]:
    """A turn begins at the first message after a stop, or at the run's first event."""
    if not events:
        return []
    starts = [0]
    stopped = False
    for place, event in enumerate(events):
        if stopped and _opens(event) and event.main:
            starts.append(place)
            stopped = False
        elif is_stop(event):
            stopped = True
    return [Turn(first, last) for first, last in zip(starts, [*starts[1:], len(events)], strict=True)]


def prompt_of(event: Happened) -> tuple[str, str] | None:
    """The words of a message, and where they stand."""
    for name in {"run.started": ("prompt",), "conversation.continued": ("message",), "steering.received": ("content", "message")}.get(event.type, ()):  # fmt: skip
        found = event.text(name)
        if found is not None:
            return found, f"data/{name}"
    return None


def kept_out(value: object) -> bool:
    """Whether a value is nothing but the mark of something that was left out."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def stopped_early(event: Happened) -> bool:
    """Whether the harness says that the turn was cut short."""
    if event.type in ("run.failed", "run.cancelled"):
        return True
    return event.type == "hook.unknown" and event.text("event") in _STOPPED_EVENTS
