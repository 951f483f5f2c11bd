"""A run of the store as a recording: its trace and steps, its rollout events, and what the store can say for it."""

from __future__ import annotations

from typing import NamedTuple

from guardhook.archive import facts
from guardhook.archive.facts import Capture
from guardhook.archive.packing import Packer
from guardhook.archive.spooled import Spooled
from guardhook.core.folders import Folders
from guardhook.journal import line, read
from guardhook.rollout import render
from guardhook.rollout.options import Options
from guardhook.rollout.runs import RunRef
from guardhook.store import Store
from guardhook.store.model import Step, Trace


class Gathered(NamedTuple):
    """A recording with what the store knows of it."""

    ref: RunRef
    recording: dict[str, object]
    capture: Capture


def gather(
    folders: Folders,
    store: Store,
    ref: RunRef,
    *,
    options: Options | None = None,
    most_events: int | None = None,
    packed: bool = False,
    spooled: bool = False,
    close_on: str = "session_end",
) -> Gathered:
    """The recording of a run. most_events keeps the newest ones only; packed packs while reading, so that equal values are held once; spooled keeps
    events and steps in a file instead of in memory (for who writes them out; guardhook.archive.spooled).

    Raises StoreError.
    """
    packer = Packer() if packed else None
    aside = spooled and packer is None
    events: list[object] | Spooled = Spooled() if aside and most_events is None else []
    for event in render.render(folders, ref, options=options):
        events.append(event if packer is None or most_events is not None else packer.add(event))
    if most_events is not None and isinstance(events, list):
        events = newest(events, most_events)
        if packer is not None:
            events = [packer.add(event) for event in events]
    trace = store.get(ref.trace_id)
    steps: list[object] | Spooled = Spooled() if aside else []
    for step in store.steps(trace):
        if _belongs(step, ref):
            row = step.as_dict(trace.id)
            snapshot = store.snapshot(trace, step.step_number)
            if snapshot is not None:
                row["snapshot"] = snapshot.as_dict()
            steps.append(row if packer is None else packer.add(row))
    recording: dict[str, object] = {
        "snapshot": {
            "trace": store.shape(trace) | {"dialect": trace.dialect, "project": trace.project},
            "steps": steps,
        },
        "events": events,
        "structure": None,  # how hooks were registered then is not recorded
    }
    capture = _capture(folders, store, ref, trace, close_on)
    return Gathered(ref, recording if packer is None else packer.packed(recording), capture)


def newest(events: list[object], most: int) -> list[object]:
    """The newest events, at most so many kept ones; markers of losses among them stay."""
    kept = 0
    for index in range(len(events) - 1, -1, -1):
        event = events[index]
        if isinstance(event, dict) and event.get("type") == facts.DROPPED:
            continue
        kept += 1
        if kept == most:
            return events[index:]
    return events


def _belongs(step: Step, ref: RunRef) -> bool:
    """Whether a step is of this run. Steps that programs told of have no journal ticket; their trace is one run."""
    seq = step.metadata.get("seq")
    return type(seq) is not int or ref.first_seq <= seq <= ref.last_seq


def _capture(folders: Folders, store: Store, ref: RunRef, trace: Trace, close_on: str) -> Capture:
    imported = read.IMPORTS in read.folders_of(folders.journal, ref.key)
    last = max((run.segment for run in store.runs(trace)), default=ref.segment)
    return Capture(
        run_id=ref.run_id,
        session=ref.session,
        accounted=not imported and ref.parent is None,
        open=ref.open and ref.segment == last and trace.status == "running",
        close_on=close_on,
        session_started_at=_session_start(folders, ref),
        dialect=ref.dialect,
        client=ref.client,
    )


def _session_start(folders: Folders, ref: RunRef) -> str | None:
    """When the harness said that the session began, if that opened the run."""
    for item in render.lines_of(folders, ref):
        if item.data.get("run") == ref.run_id:
            return item.ts if item.type == line.RECEIVED and item.data.get("event") == "session_start" else None
    return None
