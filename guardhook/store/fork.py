"""A copy of a trace up to a step, to go on from there. It enters the journal like everything else, as `fork.*` lines of a trace of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.store import instants
from guardhook.store.append import Appender
from guardhook.store.model import Snapshot, Step, Trace, make_id
from guardhook.store.query import Store

Line = tuple[str, dict[str, object]]


class Forked(NamedTuple):
    """What was made. modified says which of `input` and `context` are not the original's."""

    trace_id: str
    parent_trace_id: str
    forked_from_step: int
    steps: int
    modified: tuple[str, ...]


def fork(
    store: Store,
    folders: Folders,
    trace: Trace,
    number: int,
    *,
    input: dict[str, object] | None = None,
    context: dict[str, object] | None = None,
    tag: str | None = None,
) -> Forked:
    """Copies the trace's beginning, steps 1 to number, with decisions and snapshots. The copy runs; output, totals and error are not copied.

    input replaces the trace's input, context the context window of the snapshot at the last step (made when there is none); secrets are taken out of
    both. Raises NotFound when there is no such step, Locked and Unusable when the journal can't be written.
    """
    store.step(trace, number)
    made = make_id("trc", trace.id, str(time.time_ns()), os.urandom(8).hex())
    start: dict[str, object] = {
        "verbatim": True,  # a text that looks like JSON was a text
        "agent_name": trace.agent_name,
        "agent_version": trace.agent_version,
        "trigger": "manual",
        "status": "running",
        "input": trace.input if input is None else _without_secrets(folders, input),
        "started_at": instants.iso_ms(time.time_ns() // 1000),
        "tags": list(dict.fromkeys([*map(str, trace.tags), *([] if tag is None else [tag])])),
        "metadata": {**trace.metadata, "forked_from": trace.id, "forked_at_step": number},
        "parent_trace_id": trace.id,
        "forked_from_step": number,
        "session_id": trace.session_id,
        "dialect": trace.dialect,
        "project": trace.project,
    }
    new = None if context is None else _without_secrets(folders, context)
    lines = _lines(store, trace, number, start, new)
    # What is copied was recorded as its owner wanted it to be; it is not redacted once more.
    written = Appender(folders, dialect="fork", redaction="full").put(made, lines, opens=True)
    modified = tuple(n for n, v in (("input", input), ("context", context)) if v is not None)
    return Forked(made, trace.id, number, written - 1, modified)


def _lines(store: Store, trace: Trace, number: int, start: dict[str, object], context: object) -> Iterator[Line]:
    yield "fork.start", start
    for step in store.steps(trace, 1, number):
        snapshot = store.snapshot(trace, step.step_number)
        event = _event(step)
        if snapshot is not None or (step.step_number == number and context is not None):
            event["snapshot"] = _shape(snapshot, context if step.step_number == number else None)
        yield "fork.step", event


def _event(step: Step) -> dict[str, object]:
    event: dict[str, object] = {
        "verbatim": True,
        "step_number": step.step_number,
        "step_type": step.step_type,
        "name": step.name,
        "input": step.input,
        "output": step.output,
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "duration_ms": step.duration_ms,
        "tokens_used": step.tokens_used,
        "model": step.model,
        "error": step.error,
        "metadata": step.metadata,
        "parent_step": step.parent_step_number,
        "caused_by_step": step.caused_by_step_number,
    }
    event = {k: v for k, v in event.items() if v is not None or k == "ended_at"}
    decision = step.decision
    if decision is not None:
        event["decision"] = {
            "options": decision.options,
            "chosen": decision.chosen,
            "rationale": decision.rationale,
            "confidence": decision.confidence,
            "decided_by": decision.decided_by,
        }
    return event


def _shape(snapshot: Snapshot | None, context: object) -> dict[str, object]:
    shape = (
        {"context_window": [], "environment": {}, "tool_state": {}, "token_count": 0}
        if snapshot is None
        else snapshot.as_dict()
    )
    return shape if context is None else {**shape, "context_window": context}


def _without_secrets(folders: Folders, value: dict[str, object]) -> object:
    from guardhook.journal import redact
    from guardhook.journal.rules import configured

    return redact.redact(value, configured(folders), "redacted")[0]
