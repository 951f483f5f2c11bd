"""A bug report in one zip file: the run's archive, its rollout, its account, and whatever else the caller adds, with a manifest of hashes.

Secrets are taken out of everything by the journal's rules, once more: what was recorded in full on purpose is not for a ticket. When the envelope is refused
the bundle holds the bare recording, and the manifest says why. The same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from guardhook import __version__
from guardhook.archive import plain, sinks, stream
from guardhook.archive.account.account import account_for_session
from guardhook.archive.account.declarations import Declarations
from guardhook.archive.collection import BUNDLE, MANIFEST
from guardhook.archive.envelope import build_recording_envelope
from guardhook.archive.errors import ArchiveError, UnsafeRecordingIdError
from guardhook.archive.names import recording_file_name
from guardhook.archive.reader import Opened, opened
from guardhook.archive.source import Gathered
from guardhook.journal import redact

BARE = "recording.json"


class Cleaned(NamedTuple):
    """What everything in a bundle is made of. replaced: how many places were redacted now."""

    recording: dict[str, object]
    replaced: int


class Bundle(NamedTuple):
    """The zip file, and what its manifest says."""

    data: bytes
    manifest: dict[str, object]


# Makes one more file of the redacted document; what it raises as ArchiveError or OSError becomes a note.
Extra = Callable[[Opened], bytes]


def clean(recording: dict[str, object], rows: tuple[redact.Row, ...]) -> Cleaned:
    """The recording without secrets. Each event and step is dealt with by itself, so none can use up the others' time."""
    replaced = 0

    def one(value: object) -> object:
        nonlocal replaced
        found, pointers = redact.redact(value, rows)
        replaced += len(pointers)
        return found

    events = recording.get("events")
    snapshot = recording.get("snapshot")
    out = {**recording, "events": [one(event) for event in events] if isinstance(events, list) else []}
    if isinstance(snapshot, dict):
        steps = snapshot.get("steps")
        listed = [one(step) for step in steps] if isinstance(steps, list) else []
        out["snapshot"] = {**{k: one(v) for k, v in snapshot.items() if k != "steps"}, "steps": listed}
    return Cleaned(out, replaced)


def make(
    gathered: Gathered,
    rows: tuple[redact.Row, ...],
    *,
    stated: Mapping[str, object],
    declared: Declarations,
    extras: Mapping[str, Extra],
) -> Bundle:
    """The bundle of a run. stated: facts for the envelope; extras: further files by name. Raises TypeError."""
    cleaned = clean(gathered.recording, rows)
    notes: list[dict[str, object]] = []
    files: dict[str, bytes] = {}
    name, document = _archive(gathered, cleaned, stated, notes, files)
    events = document.events
    files["rollout.jsonl"] = b"".join(stream.event_line(event) for event in events if isinstance(event, dict))
    run = gathered.ref.run_id
    files["account.json"] = plain.pretty(account_for_session(document.recording, run_id=run, declarations=declared))
    for extra, build in extras.items():
        try:
            files[extra] = build(document)
        except ArchiveError as error:
            notes.append({"file": extra, "code": error.code, "message": error.message, **error.details})
        except OSError as error:
            notes.append({"file": extra, "code": "ERR_EXTRA", "message": error.strerror or str(error)})
    manifest: dict[str, object] = {
        "format": BUNDLE,
        "producer": {"guardhookVersion": __version__},
        "run": {"runId": run, "traceId": gathered.ref.trace_id},
        "archive": name,
        "redaction": {"mode": "redacted", "replaced": cleaned.replaced},
        "notes": notes,
        "files": [
            {"name": n, "bytes": len(files[n]), "sha256": hashlib.sha256(files[n]).hexdigest()} for n in sorted(files)
        ],
    }
    return Bundle(sinks.zipped({**files, MANIFEST: plain.pretty(manifest)}), manifest)


def _archive(
    gathered: Gathered,
    cleaned: Cleaned,
    stated: Mapping[str, object],
    notes: list[dict[str, object]],
    files: dict[str, bytes],
) -> tuple[str, Opened]:
    """The envelope under its name, else the bare recording and a note of the refusal."""
    try:
        envelope = build_recording_envelope(cleaned.recording, run=stated, capture=gathered.capture)
        run = envelope["run"]
        name = recording_file_name(run.get("runId") if isinstance(run, dict) else None)
    except (ArchiveError, UnsafeRecordingIdError) as error:
        notes.append({"file": BARE, "code": error.code, "message": error.message, **error.details})
        files[BARE] = plain.pretty(cleaned.recording)
        return BARE, opened(cleaned.recording)
    files[name] = plain.pretty(envelope)
    return name, opened(envelope)
