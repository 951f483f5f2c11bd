"""Folding `trace.*` and `fork.*` lines: runs that a program told of itself, imports and forks.

The line's type is `trace.` or `fork.` and the type of the native event (guardhook.store.protocol) without `trace_`: `trace.start`, `trace.step`,
`trace.step_start`, `trace.step_end`, `trace.decision`, `trace.snapshot`, `trace.end`, `fork.start`. data.trace is the trace's id, data.event the event's fields.
`trace.part` lines are another way to tell of a run (guardhook.store.parts).
A start may carry what only copies have: parent_trace_id, forked_from_step, status, output, error, totals, created_at, project, dialect.
"""

from __future__ import annotations

from guardhook.store import instants, parts, protocol
from guardhook.store.facts import flat, text
from guardhook.store.given import Refused, decision_of, structured
from guardhook.store.model import STATUSES
from guardhook.store.state import OPEN_MOST, Open, Row, Sink, State
from guardhook.store.steps import count_tokens, follow_run, millis

NATIVE = {
    "start": "trace_start",
    "step_start": "step_start",
    "step_end": "step_end",
    "step": "step",
    "decision": "decision",
    "snapshot": "snapshot",
    "end": "trace_end",
}
PART = "trace.part"  # what is told in parts: guardhook.store.parts


def apply(
    sink: Sink, state: State | None, type: str, seq: int, ts: str, us: int, data: dict[str, object]
) -> State | None:
    """Folds one line into its trace. Raises Refused."""
    word = type.partition(".")[2]
    native = NATIVE.get(word)
    fields = data.get("event")
    if type == PART and isinstance(fields, dict):
        return parts.apply(sink, state, seq, ts, us, data, fields)
    if native is None or not isinstance(fields, dict):
        raise Refused(f"unknown type {type}" if native is None else "the line has no event")
    checked = protocol.check({**fields, "type": native}, needs_trace=False)
    if checked.rejected is not None:
        raise Refused(checked.rejected)
    event = checked.event
    if native == "trace_start":
        if state is not None:
            raise Refused("the trace has begun already")
        state = _start(text(data.get("trace")) or "", ts, us, data, event)
        state.last_us = us
        follow_run(sink, state, seq, ts, data)
        return state
    if state is None:
        raise Refused("the trace has no beginning")
    if state.parts is not None:
        raise Refused("the trace is told in parts")
    state.last_us = max(state.last_us or 0, us)
    follow_run(sink, state, seq, ts, data)
    if native == "trace_end":
        _end(state, ts, us, event)
    elif native in ("step", "step_start"):
        _step(sink, state, ts, event, ended=native == "step")
    else:
        number = event["step_number"]
        assert isinstance(number, int)
        if not sink.steps_known(state, number):
            raise Refused(f"there is no step {number}")
        if native == "step_end":
            _step_end(sink, state, number, ts, us, event)
        elif native == "decision":
            sink.decide(state, number, decision_of(event))
        else:
            sink.snapshot(state, number, event)
    return state


def _start(trace: str, ts: str, us: int, data: dict[str, object], event: dict[str, object]) -> State:
    now = millis(ts)
    started = text(event.get("started_at")) or now
    ended = text(event.get("ended_at"))
    status = event.get("status")
    tags = event.get("tags")
    metadata = event.get("metadata")
    parent_id = text(event.get("parent_trace_id"))
    return State(
        id=trace,
        agent_name=text(event.get("agent_name")) or "agent",
        agent_version=protocol.plain(event.get("agent_version")),
        trigger=protocol.trigger(event.get("trigger")),
        status=status if isinstance(status, str) and status in STATUSES else ("completed" if ended else "running"),
        input=_value(event, "input"),
        output=_value(event, "output"),
        started_at=started,
        ended_at=ended,
        started_us=instants.micros(started),
        ended_us=instants.micros(ended),
        total_duration_ms=protocol.whole(event.get("total_duration_ms")),
        total_tokens=protocol.whole(event.get("total_tokens")),
        total_cost_usd=protocol.cost(event.get("total_cost_usd")),
        error=protocol.error_text(event.get("error"), flat),
        tags=list(tags) if isinstance(tags, list) else [],
        metadata=dict(metadata) if isinstance(metadata, dict) else {},
        parent_trace_id=parent_id,
        forked_from_step=None if parent_id is None else protocol.whole(event.get("forked_from_step")),
        session_id=protocol.plain(event.get("session_id")),
        created_at=text(event.get("created_at")) or now,
        dialect=text(event.get("dialect")),
        project=text(event.get("project")) or text(data.get("root")),
    )


def _end(state: State, ts: str, us: int, event: dict[str, object]) -> None:
    status = event.get("status", "completed")
    state.status = str(status)
    # An end that is null, not merely absent, is an end at an unknown time.
    state.ended_at = text(event.get("ended_at")) or (millis(ts) if "ended_at" not in event else None)
    state.ended_us = instants.micros(state.ended_at)
    if event.get("output") is not None:
        state.output = structured(event["output"])
    if event.get("error") is not None:
        state.error = protocol.error_text(event["error"], flat)
    for name in ("total_tokens", "total_duration_ms"):
        value = protocol.whole(event.get(name))
        if value is not None:
            setattr(state, name, value)
    cost = protocol.cost(event.get("total_cost_usd"))
    if cost is not None:
        state.total_cost_usd = cost
    metadata = event.get("metadata")
    if isinstance(metadata, dict):
        state.metadata = {**state.metadata, **metadata}


def _reference(event: dict[str, object], name: str) -> int | None:
    value = event.get(name, event.get(f"{name}_number"))
    return value if type(value) is int else None


def _step(sink: Sink, state: State, ts: str, event: dict[str, object], *, ended: bool) -> None:
    number = event["step_number"]
    assert isinstance(number, int)
    if sink.steps_known(state, number):
        raise Refused(f"there is a step {number} already")
    metadata = event.get("metadata")
    tokens = protocol.whole(event.get("tokens_used"))
    row = Row(
        number,
        str(event["step_type"]),
        str(event["name"]),
        _value(event, "input"),
        _value(event, "output"),
        text(event.get("started_at")) or millis(ts),
        (text(event.get("ended_at")) or (millis(ts) if "ended_at" not in event else None)) if ended else None,
        protocol.whole(event.get("duration_ms")),
        tokens,
        protocol.plain(event.get("model")),
        protocol.error_text(event.get("error"), flat),
        dict(metadata) if isinstance(metadata, dict) else {},
        _reference(event, "parent_step"),
        _reference(event, "caused_by_step"),
    )
    if row.input is None:
        row.input = {}
    state.next = max(state.next, number + 1)
    state.step_count += 1
    if tokens is not None:
        count_tokens(state, tokens)
    sink.add(state, row)
    if not ended:
        # Remembered only for the duration, which the producer need not send.
        state.open.append(Open(number, None, None, "", None, instants.micros(row.started_at) or 0, False, None))
        if len(state.open) > OPEN_MOST:
            del state.open[0]
    decision, snapshot = event.get("decision"), event.get("snapshot")
    if isinstance(decision, dict) and protocol.decision_problem(decision) is None:
        sink.decide(state, number, decision_of(decision))
    if isinstance(snapshot, dict):
        sink.snapshot(state, number, snapshot)


def _step_end(sink: Sink, state: State, number: int, ts: str, us: int, event: dict[str, object]) -> None:
    changes: dict[str, object] = {"ended_at": text(event.get("ended_at")) or millis(ts)}
    if "output" in event:
        changes["output"] = structured(event["output"])
    if event.get("error") is not None:
        changes["error"] = protocol.error_text(event["error"], flat)
    duration = protocol.whole(event.get("duration_ms"))
    begun = next((o for o in state.open if o.number == number), None)
    if begun is not None:
        state.open.remove(begun)
        until = instants.micros(str(changes["ended_at"]))
        if duration is None and until is not None and until >= begun.us > 0:
            duration = (until - begun.us) // 1000
    if duration is not None:
        changes["duration_ms"] = duration
    tokens = protocol.whole(event.get("tokens_used"))
    if tokens is not None:
        changes["tokens_used"] = tokens
        count_tokens(state, tokens)
    model = protocol.plain(event.get("model"))
    if model is not None:
        changes["model"] = model
    metadata = event.get("metadata")
    sink.change(state, number, changes, metadata if isinstance(metadata, dict) else {})


def _value(event: dict[str, object], name: str) -> object:
    """A value of an event. Copies of what a store held (`verbatim`) are taken as they are: there, text that looks like JSON was text."""
    value = event.get(name)
    return value if event.get("verbatim") is True else structured(value)
