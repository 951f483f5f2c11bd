"""Whether a run's calls fit together: what was announced, what started, what ended. Nothing is run.

Of hook captures not all of this is evidence. That every start has an end, in this order and under one name, that no id is used twice, that the input a
result repeats is the one that was judged, and that a denied call has no result of its own are things that two separate hook events say. An
announcement that was made from the same event as its start proves nothing; `detail` counts such ones as synthetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardhook.core.jsontext import PayloadError, dumps, loads_text
from guardhook.rollout import limits
from guardhook.rollout.canonical import same_arguments
from guardhook.rollout.load import NEEDS_STEP, TERMINAL, Event, Gap
from guardhook.rollout.plain import plain, shortened
from guardhook.store.facts import canonical

SUPPRESSED = "(further mismatches suppressed)"
IN_GAP = " (inside a recorded gap)"
_LISTED = 1_000  # ids in a list of the detail
_CUT = "… (cut)"
_NAMELESS = object()  # the name of an announced call that has none: equal to no name


class Result(NamedTuple):
    """What was found. matched: no mismatch. results: what each valid call gave, where it was asked for."""

    events_replayed: int
    step_count: int
    matched: bool
    mismatches: list[str]
    detail: dict[str, object]
    results: dict[str, str]

    def as_dict(self, *, detail: bool = False) -> dict[str, object]:
        out: dict[str, object] = {
            "mode": "simulate",
            "events_replayed": self.events_replayed,
            "step_count": self.step_count,
            "matched": self.matched,
            "mismatches": self.mismatches,
        }
        return {**out, "detail": self.detail} if detail else out


class _Announced(NamedTuple):
    name: object
    arguments: object


class _Ended(NamedTuple):
    at: int
    tool: object
    result: object


def sequence_problem(events: Sequence[Event]) -> str | None:
    """Why events are no run: their steps, their start, their end. None when they are one."""
    step = 0
    ended = False
    for index, event in enumerate(events):
        name = dumps(plain(event.type, 100))
        if event.step < 0:
            return f"event {index + 1} ({name}) has a negative step"
        if ended:
            return f"event {index + 1} ({name}) comes after the run's end"
        if event.step < step:
            return f"event {index + 1} ({name}) has step {event.step} after step {step}"
        if event.type in NEEDS_STEP and event.step == 0:
            return f"event {index + 1} ({name}) must have step >= 1"
        if event.type == "run.started" and (index or event.step):
            return f"run.started is event {index + 1} at step {event.step}, not the first one at step 0"
        step = event.step
        ended = event.type in TERMINAL
    if events and events[0].type != "run.started":
        return "there is no run.started at its beginning"
    return None


def simulate(events: Sequence[Event], gaps: Sequence[Gap] = (), *, results: bool = False) -> Result:
    """Checks a run's events. gaps: what is missing of it (guardhook.rollout.load). results: give what calls returned, too."""
    problem = sequence_problem(events)
    if problem is not None:
        return Result(
            0, 0, False, [f"event sequence validation failed: {problem}"], _Walk([], gaps, False).detail(), {}
        )
    walk = _Walk(events, gaps, results)
    walk.run()
    return Result(
        len(events),
        max((e.step for e in events), default=0),
        not walk.found,
        walk.found if len(walk.found) <= limits.FINDINGS else [*walk.found[: limits.FINDINGS], SUPPRESSED],
        walk.detail(),
        walk.results,
    )


class _Walk:
    def __init__(self, events: Sequence[Event], gaps: Sequence[Gap], keep: bool) -> None:
        self.events = events
        self.gaps = [g for g in gaps if g.declared]
        self.every_gap = gaps
        self.keep = keep
        self.found: list[str] = []
        self.results: dict[str, str] = {}
        self.announced: dict[str, _Announced] = {}
        self.started: dict[str, Event] = {}  # valid ones only
        self.seen: set[str] = set()  # started in whatever way
        self.ended: dict[str, _Ended] = {}
        self.denied: set[str] = set()
        self.independent = self.synthetic = self.echoes = self.denials = 0
        self.unfinished: list[str] = []
        self.unpaired: list[str] = []
        self.full = False

    def run(self) -> None:
        self._index()
        for index, event in enumerate(self.events):
            if event.type == "llm.turn.completed":
                self._announce(event)
            elif event.type == "tool.call.started":
                self._start(index, event)
            elif event.type == "tool.call.completed":
                self._end(event)
            elif event.type == "run.step.completed":
                listed = _payload(event).get("unfinished")
                for name in listed if isinstance(listed, list) else []:
                    if isinstance(name, str) and len(self.unfinished) < _LISTED:
                        self.unfinished.append(plain(name))
        for name, ended in self.ended.items():
            if name not in self.started:
                self._mismatch(
                    f"tool.call.completed {_quoted(name)} has no corresponding tool.call.started", before=ended.at
                )

    def detail(self) -> dict[str, object]:
        return {
            "announcements": {"independent": self.independent, "synthetic": self.synthetic},
            "gaps": [g._asdict() for g in self.every_gap[:_LISTED]],
            "unfinished": self.unfinished,
            "unpaired": self.unpaired,
            "echo_checked": self.echoes,
            "deny_checked": self.denials,
        }

    def _mismatch(self, text: str, *, before: int | None = None, after: int | None = None) -> None:
        """Notes a finding. before, after: what is missing would stand before or after the event of this index."""
        if len(self.found) <= limits.FINDINGS:
            self.found.append(text + (IN_GAP if self._in_gap(before, after) else ""))

    def _in_gap(self, before: int | None, after: int | None) -> bool:
        if before is not None:
            return any(g.from_seq < self.events[before].seq for g in self.gaps)
        if after is not None:
            return any(g.to_seq > self.events[after].seq for g in self.gaps)
        return False

    def _index(self) -> None:
        """The first end of each call; later ones are reuse of the id."""
        for index, event in enumerate(self.events):
            if event.type != "tool.call.completed":
                continue
            payload = _payload(event)
            name = payload.get("call_id")
            if not isinstance(name, str) or not _usable(name):
                continue
            if name in self.ended:
                executed = payload.get("executed") is True and name in self.denied
                what = "ran although it was denied" if executed else "duplicate tool.call.completed"
                self._mismatch(f"{what} for {_quoted(name)}")
                continue
            self.ended[name] = _Ended(index, payload.get("tool"), result_of(payload))
            if payload.get("executed") is False:
                self.denied.add(name)
                self.denials += 1

    def _announce(self, event: Event) -> None:
        payload = _payload(event)
        listed = payload.get("tool_calls")
        for entry in listed[: limits.TURN_CALLS] if isinstance(listed, list) else []:
            if not isinstance(entry, dict):
                continue
            name = entry.get("id")
            if not isinstance(name, str) or not _usable(name):
                continue
            if payload.get("synthetic") is True:
                self.synthetic += 1
            else:
                self.independent += 1
            if name in self.announced:
                self._mismatch(f"duplicate announcement of {_quoted(name)}")
            elif len(self.announced) >= limits.TRACKED:
                if not self.full:
                    self._mismatch(f"tracking limit ({limits.TRACKED}) reached; later announcements are not checked")
                self.full = True
            else:
                tool = entry.get("name")
                self.announced[name] = _Announced(
                    tool if isinstance(tool, str) and tool else _NAMELESS, entry.get("arguments")
                )

    def _start(self, index: int, event: Event) -> None:
        payload = _payload(event)
        name, tool, given = payload.get("call_id"), payload.get("tool"), payload.get("arguments")
        if not isinstance(name, str) or not name:
            self._mismatch("tool.call.started without a call_id")
            return
        quoted = _quoted(name)
        announced = self.announced.get(name)
        ended = self.ended.get(name)
        if not _usable(name):
            self._mismatch(f"the call_id {quoted} exceeds the maximum length of {limits.CALL_ID} bytes")
        elif not isinstance(tool, str) or not tool:
            self._mismatch(f"tool.call.started {quoted} names no tool")
        elif announced is None:
            self._mismatch(f"tool.call.started {quoted} was not announced before", before=index)
        elif announced.name != tool:
            self._mismatch(f"{quoted} was announced as {_named(announced.name)} and started as {_named(tool)}")
        elif announced.arguments not in (None, "") and not same_arguments(
            announced.arguments, "" if given is None else given
        ):
            self._mismatch(f"{quoted} was announced with other arguments than it was started with")
        elif name in self.seen:
            self._mismatch(f"duplicate tool.call.started for {quoted}")
        elif ended is None:
            self._mismatch(f"tool.call.started {quoted} has no tool.call.completed", after=index)
        elif ended.at <= index:
            self._mismatch(f"tool.call.completed {quoted} comes before its tool.call.started")
        elif ended.tool != tool:
            self._mismatch(f"{quoted} was started as {_named(tool)} and completed as {_named(ended.tool)}")
        else:
            self.started[name] = event
            if self.keep:
                self.results[name] = shortened(text_of(ended.result), limits.TEXT, _CUT)
        self.seen.add(name)

    def _end(self, event: Event) -> None:
        payload = _payload(event)
        name = payload.get("call_id")
        if not isinstance(name, str) or not name:
            self._mismatch("tool.call.completed without a call_id")
            return
        if not _usable(name):
            self._mismatch(f"the call_id {_quoted(name)} exceeds the maximum length of {limits.CALL_ID} bytes")
            return
        if payload.get("unpaired") is True and len(self.unpaired) < _LISTED:
            self.unpaired.append(plain(name))
        started = self.started.get(name)
        digest = payload.get("input_digest")
        if started is not None and isinstance(digest, str):
            self.echoes += 1
            if digest not in _digests(_payload(started).get("arguments")):
                self._mismatch(f"{_quoted(name)} ran with another input than was judged")


def result_of(payload: dict[str, object]) -> object:
    """What a call gave: `result`, else `output`."""
    found = payload.get("result")
    return payload.get("output") if found is None or found == "" else found


def text_of(value: object) -> str:
    """A recorded value as text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    from guardhook.rollout.canonical import sorted_json

    return sorted_json(value)


def _payload(event: Event) -> dict[str, object]:
    return event.payload or {}


def _usable(name: str) -> bool:
    return bool(name) and len(name.encode("utf-8", "replace")) <= limits.CALL_ID


def _quoted(name: str) -> str:
    return dumps(plain(name))


def _named(tool: object) -> str:
    return _quoted(tool) if isinstance(tool, str) and tool else "(no name)"


def _digests(arguments: object) -> tuple[str, ...]:
    """The digests that the renderer may have made of a call's input: of the value, or of a text that only looks like one."""
    if isinstance(arguments, str):
        try:
            return canonical(loads_text(arguments)), canonical(arguments)
        except PayloadError:
            pass
    return (canonical(arguments),)
