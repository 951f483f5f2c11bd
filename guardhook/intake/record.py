"""Reading a stream of events, native or an agent's own, and recording it: lines in, journal out, until the stream ends or somebody says so.

Bad lines are named and counted, never fatal. What arrives together is written together, so that a trace can be followed while it happens and a fast
stream is not slowed down by the journal.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from guardhook.intake.jsonlines import LINE_BYTES, BadJson, Splitter, parse
from guardhook.intake.recording import Event, Recorded, Recording
from guardhook.intake.streams import Skip, Translator
from guardhook.store import protocol

CHUNK = 1 << 18
WARNINGS_SHOWN = 20
GRACE_SECONDS = 2.0  # after the first signal: what the producer still says, when it got the signal too
_PREVIEW = 60
Warn = Callable[[str], None]


class Told:
    """Counts of what was wrong, and the first warnings themselves."""

    def __init__(self, warn: Warn) -> None:
        self.count = 0
        self.kinds: Counter[str] = Counter()
        self._warn = warn

    def __call__(self, message: str, kind: str | None = None) -> None:
        self.count += 1
        if len(self.kinds) < 100 or (kind or message) in self.kinds:
            self.kinds[kind or message] += 1
        if self.count <= WARNINGS_SHOWN:
            self._warn(message)
        elif self.count == WARNINGS_SHOWN + 1:
            self._warn("further warnings are only counted")


class Outcome:
    """What a stream came to."""

    def __init__(self) -> None:
        self.lines = 0  # that should have given something: not blank, and no comment in the native format
        self.finalized: list[Recorded] = []
        self.signal: int | None = None  # that ended the reading


class Reader:
    """One stream on its way into a recording. translator None: the native protocol."""

    def __init__(self, recording: Recording, translator: Translator | None, told: Told) -> None:
        self.recording = recording
        self.translator = translator
        self.told = told
        self.outcome = Outcome()
        self._splitter = Splitter()

    def read(self, fd: int, signals: Sequence[int] = (), wake: int | None = None) -> Outcome:
        """Reads to the end of the stream. Raises OSError.

        signals: numbers of those that came and mean that it is enough, filled by whoever handles them; wake: a descriptor that becomes readable when
        one came. After the first the producer, which may have got it too, has GRACE_SECONDS of silence left; after the second reading ends at once.
        """
        while True:
            self.outcome.signal = signals[0] if signals else None
            if len(signals) > 1:
                return self._end()
            try:
                ready = select.select([fd] if wake is None else [fd, wake], [], [], GRACE_SECONDS if signals else None)[
                    0
                ]
            except (OSError, ValueError):
                ready = [fd]  # not everything can be waited for; reading can
            if not ready:
                return self._end()
            if wake is not None and wake in ready:
                os.read(wake, 512)
                continue
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                self.outcome.signal = None  # it ended by itself after all
                return self._end()
            for raw in self._splitter.feed(chunk):
                self._line(raw)
            self.recording.flush()

    def _end(self) -> Outcome:
        last = self._splitter.rest()
        if last != b"":
            self._line(last)
        if self.translator is not None:
            self._events(self.translator.end(time.time_ns() // 1000), "end of the stream")
        self.recording.flush()
        return self.outcome

    # --- lines --------------------------------------------------------------------------------------------------

    def _line(self, raw: bytes | None) -> None:
        where = f"line {self._splitter.number}"
        if raw is None:
            self.outcome.lines += 1
            self.told(f"{where}: skipped: longer than {LINE_BYTES >> 20} MiB", "too long")
            return
        body = raw.strip()
        if not body or (self.translator is None and body.startswith(b"//")):
            return
        self.outcome.lines += 1
        try:
            value = parse(body)
        except BadJson as error:
            self.told(f"{where}: skipped: {error}: {_preview(body)}", "not JSON")
            return
        if self.translator is None:
            self._native(value, where, body)
            return
        if not isinstance(value, dict):
            self.told(f"{where}: skipped: not an object: {_preview(body)}", "not an object")
            return
        try:
            self._events(self.translator.line(value, time.time_ns() // 1000), where)
        except Skip as error:
            self.told(f"{where}: skipped: {error}", str(error)[:80])

    def _events(self, events: Iterable[Event], where: str) -> None:
        for event in events:
            checked = protocol.check(event)
            problem = checked.rejected or self.recording.apply(checked.event)
            if problem is not None:
                self.told(f"{where}: skipped: {problem}", problem[:80])

    def _native(self, value: object, where: str, body: bytes) -> None:
        checked = protocol.check(value)
        problem = checked.rejected
        event = checked.event
        if problem is None:
            if event["type"] == "trace_end" and event.get("ended_at") is None:
                event.pop("ended_at", None)  # of a live stream it means now
            problem = self.recording.apply(event)
            if checked.warnings:
                self.told(f"{where}: " + "; ".join(checked.warnings), "values left out")
        if problem is not None:
            self.told(f"{where}: skipped: {problem}: {_preview(body)}", problem[:80])


def _preview(body: bytes) -> str:
    """The start of a line; whoever prints it escapes it."""
    text = body[: _PREVIEW * 4].decode("utf-8", "replace")
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1] + "…"


def is_live(fd: int) -> bool:
    """Whether reading tells when things happened: not so from a file that was written before."""
    try:
        return not stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return True


def finalize(
    recording: Recording, outcome: Outcome, *, wrapped: str | None, leave_open: bool, signal: str | None
) -> None:
    """Ends the traces that the stream left running: nobody will say any more how they ended.

    wrapped: the trace of a wrapper under way, which ends its trace itself, unless this stream began it.
    """
    if leave_open:
        return
    left = [t for t in recording.unfinished() if t.opened or t.id != wrapped]
    why = "the stream ended before the run did" if signal is None else f"the recording was stopped by {signal}"
    outcome.finalized = recording.finish(left, "timeout", {"finalized": why})
