"""An archive put back into a store: the trace and the steps of its snapshot, as lines of the journal like everything else.

The run goes to `journal/imports/`, under the id that its trace had. What it says was recorded as its owner wanted it; it is not redacted once more.
"""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

from guardhook.archive.errors import ArchiveError, MissingMemberError
from guardhook.archive.reader import Opened
from guardhook.core.folders import Folders
from guardhook.intake.import_write import Exists, Origin, Part, Writer
from guardhook.intake.imports import Event, Identity, Run
from guardhook.store import protocol

FORMAT = "archive"
_START = (
    "agent_name", "agent_version", "trigger", "status", "input", "output", "started_at", "ended_at", "total_duration_ms", "total_tokens",
    "total_cost_usd", "error", "tags", "metadata", "parent_trace_id", "forked_from_step", "session_id", "created_at", "dialect", "project",
)  # fmt: skip
_STEP = ("step_number", "step_type", "name", "input", "output", "started_at", "ended_at", "duration_ms", "tokens_used", "model", "error", "metadata")  # fmt: skip


class NotImportable(ArchiveError):
    """An archive whose run can't be put into this store."""

    code = "ERR_NOT_IMPORTABLE"


class Given(NamedTuple):
    """What was put back."""

    trace_id: str
    steps: int
    replaced: bool


def give_back(folders: Folders, document: Opened, path: str, *, exists: bool, replace: bool = False) -> Given:
    """Writes the archive's trace into the journal. exists: whether the store knows a trace of this id; only an earlier import of an archive is ever replaced.

    Raises MissingMemberError, NotImportable, StoreError (Locked, Unusable).
    """
    snapshot = document.recording.get("snapshot")
    trace = snapshot.get("trace") if isinstance(snapshot, dict) else None
    if not isinstance(snapshot, dict) or not isinstance(trace, dict):
        raise MissingMemberError(
            "recording.snapshot.trace", "the archive holds no trace that could be put into a store"
        )
    name = trace.get("id")
    problem = protocol.id_problem(name)
    if problem is not None or not isinstance(name, str):
        raise MissingMemberError("recording.snapshot.trace.id", f"the archive's trace can't be used: {problem}")
    steps = snapshot.get("steps")
    rows = [row for row in steps if isinstance(row, dict)] if isinstance(steps, list) else []
    start = {key: trace[key] for key in _START if key in trace}
    run = Run(Identity(FORMAT, _text(trace.get("session_id")), os.path.basename(path), name), start, map(_step, rows))
    rejected = protocol.check({**start, "type": "trace_start"}, needs_trace=False).rejected
    if rejected is not None:
        raise MissingMemberError("recording.snapshot.trace", f"the archive's trace can't be used: {rejected}")
    writer = Writer(folders, replace=replace, redaction="full")
    try:
        mine = writer.has(FORMAT, name)
        if exists and not mine:
            raise NotImportable(f"the store has a trace {name} that did not come from an archive; it is left as it is")
        pending = writer.put(run, name, _origin(path, name, _text(trace.get("session_id"))), lambda _: None)
        pending.commit()
    except Exists:
        raise NotImportable(f"trace {name} was put into this store before; --replace writes it anew") from None
    finally:
        writer.close()
    return Given(name, len(rows), mine)


def _step(row: dict[str, object]) -> Event:
    fields: dict[str, object] = {key: row[key] for key in _STEP if row.get(key) is not None}
    fields.setdefault("ended_at", None)
    for key in ("parent_step", "caused_by_step"):
        if row.get(f"{key}_number") is not None:
            fields[key] = row[f"{key}_number"]
    for key in ("decision", "snapshot"):
        if isinstance(row.get(key), dict):
            fields[key] = row[key]
    fields["verbatim"] = True
    return Event("trace.step", fields)


def _origin(path: str, trace: str, session: str | None) -> Origin:
    try:
        status = os.stat(path)
        part = Part(os.path.realpath(path), status.st_size, status.st_mtime_ns, status.st_ino, hashlib.sha256(trace.encode()).hexdigest()[:32])  # fmt: skip
    except OSError:
        part = Part(path, 0, 0, 0, "")
    return Origin(FORMAT, 1, 0, trace, session, [part])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
