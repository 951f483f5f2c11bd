"""The envelope around a recording, in which every fact of the run was proved by the capture, or stated by somebody, and says which; else it is refused or left out.

Checks are made in a fixed order, so that of two faults always the same one is told: source, complete, privacy, dropped events, first retained event,
run id, session, principal and tenant, start, end, configuration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Protocol

from guardhook import __version__
from guardhook.archive import facts, plain, times
from guardhook.archive.errors import IndeterminateRunFactError, UnsupportedPrivacyModeError
from guardhook.archive.facts import Capture, Seen
from guardhook.archive.packing import is_packed_recording
from guardhook.archive.spooled import Spooled
from guardhook.archive.unpacking import unpack_recording

FORMAT = "guardhook.recording.v1"
POLICY_ID = "guardhook.privacy.full.v1"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

# What may be stated, and what each is called in the envelope.
STATED = {
    "complete": "complete", "dropped_events": "droppedEvents", "first_retained_event_index": "firstRetainedEventIndex", "run_id": "runId",
    "session_id": "sessionId", "principal": "principal", "tenant": "tenant", "started_at": "startedAt", "ended_at": "endedAt",
}  # fmt: skip


class Sink(Protocol):
    """Somewhere to keep envelopes. id is what this place calls one; uri is set where others could use the address."""

    def write(self, envelope: dict[str, object]) -> dict[str, str]: ...


def build_recording_envelope(
    source: object,
    *,
    run: Mapping[str, object] | None = None,
    configuration: Mapping[str, object] | None = None,
    privacy: Mapping[str, object] | None = None,
    capture: Capture | None = None,
) -> dict[str, object]:
    """The envelope of a recording `{snapshot, events, structure}`, plain or packed. The recording itself is not changed and not copied.

    run holds stated facts (STATED; an absent key is unstated), privacy `{mode, policy_id}`, configuration `{agentId, manifest}`; capture is what the store
    knows of the run, None for a bare recording. Raises TypeError (arguments, data that is no plain JSON), UnsupportedPrivacyModeError,
    IndeterminateRunFactError, PackedRecordingError.
    """
    given = dict(run or {})
    unknown = sorted(set(given) - set(STATED))
    if unknown:
        raise TypeError(f"no such fact of a run: {', '.join(map(repr, unknown))}; there are {', '.join(STATED)}")
    if not isinstance(source, dict):
        raise TypeError(f"the recording must be an object, not {type(source).__name__}")
    if "complete" in given and not isinstance(given["complete"], bool):
        raise TypeError(f"complete must be stated as true or false, not {given['complete']!r}")
    mode = None if privacy is None else privacy.get("mode", "full")
    if privacy is not None and mode != "full":
        raise UnsupportedPrivacyModeError(mode)
    policy_id = POLICY_ID if privacy is None else privacy.get("policy_id", POLICY_ID)
    if not isinstance(policy_id, str) or not policy_id:
        raise TypeError("the privacy policy's id must be a non-empty text")
    # Building shares what is repeated, so it costs no more than the packed form, whatever that stands for.
    recording = unpack_recording(source, max_bytes=math.inf)
    if not isinstance(recording, dict):
        raise TypeError("the packed recording does not hold an object")
    events = recording.get("events")
    if not isinstance(events, (list, Spooled)):
        raise TypeError("the recording has no list of events")
    builder = _Builder(given, facts.look(events), capture)
    members = builder.run()
    envelope: dict[str, object] = {
        "format": FORMAT,
        "producer": builder.producer(),
        "run": members,
    }
    about = builder.configuration(configuration)
    if about:
        envelope["configuration"] = about
    envelope["privacy"] = {"mode": "full", "policyId": policy_id}
    envelope["recording"] = source
    if not is_packed_recording(source):
        plain.check(_in_memory(source))
    plain.check({k: v for k, v in envelope.items() if k != "recording"})
    return envelope


def _in_memory(recording: dict[str, object]) -> dict[str, object]:
    """The recording without what lies in files, which was checked when it was written there."""
    return {
        key: [] if isinstance(value, Spooled) else _in_memory(value) if key == "snapshot" and type(value) is dict else value
        for key, value in recording.items()
    }  # fmt: skip


def persist_recording(
    source: object,
    *,
    sink: Sink,
    run: Mapping[str, object] | None = None,
    configuration: Mapping[str, object] | None = None,
    privacy: Mapping[str, object] | None = None,
    capture: Capture | None = None,
) -> dict[str, str]:
    """Builds the envelope and hands it to the sink, once. A refusal never reaches the sink. Raises what the builder and the sink raise."""
    if not callable(getattr(sink, "write", None)):
        raise TypeError("a sink needs a method `write`")
    return sink.write(build_recording_envelope(source, run=run, configuration=configuration, privacy=privacy, capture=capture))  # fmt: skip


class _Builder:
    """Decides the facts of one run, in order."""

    def __init__(self, given: dict[str, object], seen: Seen, capture: Capture | None) -> None:
        self._given = given
        self._seen = seen
        self._capture = capture
        self._basis: dict[str, str] = {}

    def run(self) -> dict[str, object]:
        seen, losses = self._seen, self._seen.losses
        complete = self._complete()
        dropped = self._dropped()
        first = self._first()
        run_id = self._run_id()
        names = {}
        for key, found in (("session_id", seen.sessions), ("principal", seen.principals), ("tenant", seen.tenants)):
            names[STATED[key]] = self._name(key, found)
        started = self._started(first if first is not None else losses.first, dropped)
        ended = self._ended(complete, started)
        out: dict[str, object] = {"runId": run_id}
        out.update({k: v for k, v in names.items() if v is not None})
        out["startedAt"] = times.text(started)
        if ended is not None:
            out["endedAt"] = times.text(ended)
        out["complete"] = complete
        out["droppedEvents"] = dropped
        if first is not None:
            out["firstRetainedEventIndex"] = first
        if seen.earliest_ms is not None and seen.latest_ms is not None:
            out["firstEventAt"] = times.text(seen.earliest_ms)
            out["lastEventAt"] = times.text(seen.latest_ms)
        order = ("startedAt", "endedAt", "complete", "droppedEvents", "runId")
        out["basis"] = {name: self._basis[name] for name in order if name in self._basis}
        uncaptured = self._uncaptured()
        if uncaptured:
            out["uncaptured"] = uncaptured
        return out

    # --- the facts, in the order in which they are checked ---------------------------------------------------------

    def _complete(self) -> bool:
        stated = self._given.get("complete")
        if isinstance(stated, bool):
            self._basis["complete"] = "stated"
            return stated
        capture = self._capture
        if capture is not None and capture.open:
            raise _refused("complete", "events of this session may still come: say whether the recording is complete")
        if capture is not None and capture.close_on == "stop" and self._seen.stopped:
            self._basis["complete"] = "stop-event"
            return True
        if self._seen.ended:
            self._basis["complete"] = "session-end-event"
            return True
        raise _refused("complete", "no end of the session was captured: say whether the recording is complete")

    def _whole(self, key: str) -> int | None:
        if key not in self._given:
            return None
        value = self._given[key]
        if type(value) is not int or value < 0:
            raise _refused(STATED[key], f"{STATED[key]} must be a whole number of at least 0, not {value!r:.60}")
        return value

    def _dropped(self) -> int:
        stated = self._whole("dropped_events")
        if stated is not None:
            self._basis["droppedEvents"] = "stated"
            return stated
        capture, losses = self._capture, self._seen.losses
        if capture is None or not capture.accounted or not losses.ordered:
            raise _refused("droppedEvents", "nobody counted the events of this recording: say how many were lost")
        self._basis["droppedEvents"] = "capture-counter"
        return losses.dropped

    def _first(self) -> int | None:
        stated = self._whole("first_retained_event_index")
        if stated is not None:
            return stated
        capture, losses = self._capture, self._seen.losses
        return losses.first if capture is not None and capture.accounted and losses.ordered else None

    def _run_id(self) -> str:
        if "run_id" in self._given:
            self._basis["runId"] = "stated"
            return self._text("run_id")
        found = self._seen.runs
        if len(found) > 1:
            raise _several("runId", found)
        if found:
            self._basis["runId"] = "events"
            return found[0]
        if self._capture is not None and self._seen.losses.kept:
            self._basis["runId"] = (
                "store"  # it was asked for by this id; the event that names it is among those not kept
            )
            return self._capture.run_id
        empty = " (the recording holds no event at all: it is empty)" if not self._seen.losses.kept else ""
        raise _refused("runId", f"no event names the run{empty}: say its id")

    def _text(self, key: str) -> str:
        value = self._given[key]
        if not isinstance(value, str) or not value:
            raise _refused(STATED[key], f"{STATED[key]} must be a non-empty text")
        return value

    def _name(self, key: str, found: tuple[str, ...]) -> str | None:
        if key in self._given:
            return self._text(key)
        if key == "session_id" and self._capture is not None:
            # Runs of programs have none; their events name the trace in its place.
            found = tuple(f for f in found if f == self._capture.session) or found if self._capture.session else ()
        if len(found) > 1:
            raise _several(STATED[key], found)
        return found[0] if found else None

    def _moment(self, key: str) -> int | None:
        if key not in self._given:
            return None
        value = self._given[key]
        found = times.stated(value)
        if found is None:
            raise _refused(STATED[key], f"{STATED[key]}: {value!r:.60} is no ISO 8601 time with a zone, nor milliseconds since 1970")  # fmt: skip
        self._basis[STATED[key]] = "stated"
        return found

    def _started(self, first: int | None, dropped: int) -> int:
        stated = self._moment("started_at")
        if stated is not None:
            return stated
        capture, seen = self._capture, self._seen
        if capture is not None and capture.session_started_at is not None:
            found = times.of_text(capture.session_started_at)
            if found is not None:
                self._basis["startedAt"] = "session-start-event"
                return found
        head = seen.losses.head or (first or 0) > 0 or (first is None and dropped > 0)
        if head:
            raise _refused("startedAt", "the beginning of the run was not kept: say when it started")
        if seen.first_ms is None:
            raise _refused("startedAt", "no event has a time: say when the run started")
        self._basis["startedAt"] = "first-event"
        return seen.first_ms

    def _ended(self, complete: bool, started: int) -> int | None:
        stated = self._moment("ended_at")
        if stated is not None:
            if stated < started:
                raise _refused("endedAt", "the stated end lies before the start")
            return stated
        if not complete:
            return None
        seen = self._seen
        found = seen.end_ms if seen.end_ms is not None else seen.last_ms
        if found is None:
            return None
        if found < started:
            self._basis["endedAt"] = "clock-went-back"
            return None
        self._basis["endedAt"] = "session-end-event" if seen.end_ms is not None else "last-event"
        return found

    # --- beside the facts -------------------------------------------------------------------------------------------

    def _uncaptured(self) -> dict[str, object]:
        seen = self._seen
        out: dict[str, object] = {}
        unregistered = self._capture.unregistered if self._capture is not None else None
        if unregistered is not None:
            out["unregisteredHooks"] = list(unregistered)
        counts = {
            "orphanPosts": seen.orphan_posts,
            "orphanPres": seen.orphan_pres,
            "guardErrors": seen.guard_errors,
        }
        if unregistered or any(counts.values()):
            out.update(counts)
        return out

    def producer(self) -> dict[str, object]:
        capture, session = self._capture, self._seen.session
        harness = _word(session.get("harness")) or (_word(capture.dialect) if capture is not None else None)
        version = _word(session.get("harness_version")) or (_word(capture.client) if capture is not None else None)
        return {"guardhookVersion": __version__, "harness": harness or "unknown", "harnessVersion": version or "unknown"}  # fmt: skip

    def configuration(self, given: Mapping[str, object] | None) -> dict[str, object]:
        """Names and digests only: no path, no command, no value of the environment."""
        manifest: dict[str, object] = {}
        harness = _word(self._seen.session.get("harness"))
        if harness is not None:
            manifest["dialect"] = harness
        policies = _word(self._seen.policy_set)
        if policies is not None:
            manifest["policySet"] = policies
        options = [w for w in self._seen.incomplete if _word(w)]
        if options:
            manifest["captureOptions"] = options
        out: dict[str, object] = {"manifest": manifest} if manifest else {}
        for name, value in (given or {}).items():
            if name not in ("agentId", "manifest"):
                raise TypeError(f"configuration has no member {name!r}")
            out[name] = value
        return dict(sorted(out.items()))


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _refused(field: str, message: str) -> IndeterminateRunFactError:
    return IndeterminateRunFactError(field, message)


def _several(field: str, found: tuple[str, ...]) -> IndeterminateRunFactError:
    return IndeterminateRunFactError(field, f"the events name several values of {field}: {', '.join(found[:20])}", found)  # fmt: skip
