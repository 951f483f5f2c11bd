"""What the events of a recording say of their run: ids, times, losses, the end. Nothing here decides; the envelope does.

Events are `{ts, seq, type, data}`. What is damaged is passed over: a fact that can't be read is a fact that isn't there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guardhook.archive import times

MOST = 1 << 53  # numbers of events are below this
DROPPED = "recorder.drop_detected"
TERMINAL = frozenset(("run.completed", "run.failed", "run.cancelled"))


class Capture(NamedTuple):
    """What the store knows of a run beyond the run's events. Without it a recording is a bare one, of which less can be proved."""

    run_id: str
    session: str | None = None
    accounted: bool = True  # every event took a ticket, so what was lost can be counted
    open: bool = False  # events may still come
    close_on: str = "session_end"  # or `stop`: each turn is a run
    session_started_at: str | None = None  # the time of a captured session_start
    dialect: str | None = None
    client: str | None = None
    unregistered: tuple[str, ...] | None = None  # hooks that were not installed, None when that is not known


class Losses(NamedTuple):
    """What is missing by the sequence numbers. first is that of the first kept event."""

    kept: int
    first: int | None
    dropped: int
    ordered: bool  # every kept event has a number, and they grow
    head: bool  # something is missing before the first kept event


class Seen(NamedTuple):
    """Distinct values on the events, in order of appearance, and what the run's start and end say."""

    runs: tuple[str, ...]
    sessions: tuple[str, ...]
    principals: tuple[str, ...]
    tenants: tuple[str, ...]
    first_ms: int | None  # of the first event that has a time
    earliest_ms: int | None
    latest_ms: int | None
    last_ms: int | None
    end_ms: int | None  # of the terminal event
    ended: bool
    stopped: bool
    losses: Losses
    orphan_posts: int
    orphan_pres: int
    guard_errors: int
    session: dict[str, object]
    policy_set: str | None
    incomplete: tuple[str, ...]


def data_of(event: object) -> dict[str, object]:
    found = event.get("data") if isinstance(event, dict) else None
    return found if isinstance(found, dict) else {}


def text_of(value: object) -> str | None:
    """A non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def seq_of(event: object) -> int | None:
    found = event.get("seq") if isinstance(event, dict) else None
    return found if type(found) is int and 0 <= found < MOST else None


def look(events: Iterable[object]) -> Seen:
    """One pass over the events."""
    found: dict[str, dict[str, None]] = {"run": {}, "session": {}, "principal": {}, "tenant": {}, "incomplete": {}}
    moments: list[int] = []
    first = last = end = None
    ended = stopped = False
    orphans = errors = 0
    open_calls: set[str] = set()
    session: dict[str, object] = {}
    policies = None
    counter = _Counter()
    for event in events:
        counter.add(event)
        if not isinstance(event, dict):
            continue
        kind, data = text_of(event.get("type")), data_of(event)
        for name, keys in _IDS:
            for key in keys:
                value = text_of(data.get(key))
                if value is not None:
                    found[name].setdefault(value)
        if kind == DROPPED:
            continue
        ts = event.get("ts")
        moment = times.of_text(ts) if isinstance(ts, str) else None
        if moment is not None:
            first = moment if first is None else first
            last = moment
            moments = [min(moments[0], moment), max(moments[1], moment)] if moments else [moment, moment]
        missing = data.get("incomplete")
        for word in missing if isinstance(missing, list) else []:
            if isinstance(word, str):
                found["incomplete"].setdefault(word)
        if kind in TERMINAL:
            ended, end = True, moment
        elif kind == "run.started":
            held = data.get("session")
            session = held if isinstance(held, dict) else {}
            policies = text_of(data.get("policy_set"))
        elif kind == "assistant.message" or (kind == "llm.turn.completed" and data.get("basis") == "stop"):
            stopped = True
        elif kind == "tool.call.started":
            open_calls.add(str(data.get("call_id")))
        elif kind == "tool.call.completed":
            open_calls.discard(str(data.get("call_id")))
            orphans += data.get("unpaired") is True
        elif kind == "tool_hook.failed":
            errors += 1
    return Seen(
        runs=tuple(found["run"]), sessions=tuple(found["session"]), principals=tuple(found["principal"]), tenants=tuple(found["tenant"]),
        first_ms=first, earliest_ms=moments[0] if moments else None, latest_ms=moments[1] if moments else None, last_ms=last, end_ms=end,
        ended=ended, stopped=stopped, losses=counter.losses(), orphan_posts=orphans, orphan_pres=len(open_calls), guard_errors=errors,
        session=session, policy_set=policies, incomplete=tuple(sorted(found["incomplete"])),
    )  # fmt: skip


_IDS = (
    ("run", ("run_id",)),
    ("session", ("session_id", "conversation_id")),
    ("principal", ("principal",)),
    ("tenant", ("tenant_id", "tenant")),
)


class _Counter:
    """Counts kept events and the positions that none of them takes. A marker stands on the first lost event's own number."""

    def __init__(self) -> None:
        self.kept = 0
        self.first: int | None = None
        self.next = 0  # one above the highest position told of
        self.ordered = True
        self.head = False
        self._last = -1

    def add(self, event: object) -> None:
        seq = seq_of(event)
        if isinstance(event, dict) and event.get("type") == DROPPED:
            data = data_of(event)
            at, count = data.get("dropped_seq", seq), data.get("count", 1)
            if type(at) is int and type(count) is int and 0 <= at < MOST and 0 < count < MOST:
                self.next = max(self.next, at + count)
                self.head = self.head or self.first is None
            return
        self.kept += 1
        if seq is None or seq <= self._last:
            self.ordered = False
            return
        self._last = seq
        self.next = max(self.next, seq + 1)
        if self.first is None:
            self.first = seq
            self.head = self.head or seq > 0

    def losses(self) -> Losses:
        return Losses(self.kept, self.first, max(0, self.next - self.kept), self.ordered, self.head)
