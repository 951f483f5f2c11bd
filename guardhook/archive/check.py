"""Whether an archive holds what it says: format, members, the arithmetic of losses, order of events, the file's name."""

from __future__ import annotations

import os
from typing import NamedTuple

from guardhook.archive import facts, times
from guardhook.archive.errors import UnsafeRecordingIdError
from guardhook.archive.names import recording_file_name
from guardhook.archive.reader import Opened


class Finding(NamedTuple):
    """Something that does not add up. field names the member."""

    field: str
    message: str


def check(document: Opened, path: str | None = None) -> list[Finding]:
    """All findings about an opened archive; path: also whether the file is named after the run."""
    found: list[Finding] = []
    if document.envelope is None:
        return [Finding("format", "a bare recording: there is no envelope whose statements could be checked")]
    run = document.run
    _times(run, found)
    privacy = document.envelope.get("privacy")
    if isinstance(privacy, dict) and privacy.get("mode") != "full":
        found.append(Finding("privacy.mode", f"{privacy.get('mode')!r:.60}, where only 'full' is ever produced"))
    _events(document, run, found)
    if path is not None:
        _name(path, run, found)
    return found


def _name(path: str, run: dict[str, object], found: list[Finding]) -> None:
    try:
        name = recording_file_name(run.get("runId"))
    except UnsafeRecordingIdError as error:
        found.append(Finding("run.runId", error.message))
        return
    if os.path.basename(path) != name:
        found.append(Finding("run.runId", f"the file is not named {name}"))


def _times(run: dict[str, object], found: list[Finding]) -> None:
    moments: dict[str, int] = {}
    for name in ("startedAt", "endedAt", "firstEventAt", "lastEventAt"):
        value = run.get(name)
        if value is None and name != "startedAt":
            continue
        moment = times.of_text(value) if isinstance(value, str) else None
        if moment is None:
            found.append(Finding(f"run.{name}", "no ISO 8601 time with a zone"))
        else:
            moments[name] = moment
    if moments.get("endedAt", moments.get("startedAt", 0)) < moments.get("startedAt", 0):
        found.append(Finding("run.endedAt", "lies before the start"))
    if moments.get("lastEventAt", 0) < moments.get("firstEventAt", moments.get("lastEventAt", 0)):
        found.append(Finding("run.lastEventAt", "lies before the first event"))


def _events(document: Opened, run: dict[str, object], found: list[Finding]) -> None:
    seen = facts.look(document.events)
    losses = seen.losses
    for index, event in enumerate(document.events):
        if not isinstance(event, dict) or not isinstance(event.get("type"), str) or facts.seq_of(event) is None:
            found.append(Finding(f"recording.events[{index}]", "no event with seq and type"))
            break
    if not losses.ordered:
        found.append(Finding("recording.events", "the numbers of the events don't grow"))
    if seen.runs and run.get("runId") not in seen.runs:
        found.append(Finding("run.runId", "none of the events names this run"))
    first, dropped = run.get("firstRetainedEventIndex"), run.get("droppedEvents")
    if type(dropped) is int and dropped < 0:
        found.append(Finding("run.droppedEvents", "less than none"))
    if type(first) is int and losses.kept and losses.ordered:
        if losses.first != first:
            found.append(Finding("run.firstRetainedEventIndex", f"{first}, where the first kept event is {losses.first}"))  # fmt: skip
        basis = run.get("basis")
        counted = isinstance(basis, dict) and basis.get("droppedEvents") == "capture-counter"
        if counted and dropped != losses.dropped:
            found.append(Finding("run.droppedEvents", f"{dropped}, where the numbers of the events show {losses.dropped}"))  # fmt: skip
