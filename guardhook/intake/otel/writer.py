"""From requests to journal lines: one thread that decodes, maps and writes what has come in meanwhile, and only then lets it be acknowledged.

All requests that are waiting when the thread turns to them are written together, one append per trace (group commit). A request that can't be decoded stores
nothing; one whose lines could not all be written is not acknowledged, and what was written of it is recognised when it comes again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import ModuleType
from typing import NamedTuple, TypeVar

from guardhook.core import limits
from guardhook.core.folders import Folders
from guardhook.intake.otel import decode_json, logs, metrics, spans
from guardhook.intake.otel.pieces import Event, Mapped, Piece
from guardhook.intake.otel.records import RECORDS_MOST, Log, Malformed, Point, Span, TooMany
from guardhook.journal import fit
from guardhook.store.append import Appender
from guardhook.store.errors import StoreError

SIGNALS = ("traces", "logs", "metrics")
JSON, PROTOBUF = "json", "protobuf"
GROUP_BYTES = 4 << 20  # decoded together before they are written
GROUP_REQUESTS = 256
_KNOWN_MOST = 50_000  # parts that are remembered, so that redelivery does not make the journal grow
_TRACES_MOST = 100_000
_Record = TypeVar("_Record")
_CONTENT = ("input", "output", "text", "detail")  # left out where nothing said may be kept


class Reply(NamedTuple):
    """What becomes of a request. state: `ok`, `malformed` and `large` (never again like this), `unavailable` (try again later), `failed` (a mistake of ours)."""

    state: str
    rejected: int = 0
    why: str = ""


class Account:
    """What was taken in since the start."""

    def __init__(self) -> None:
        self.requests = dict.fromkeys(SIGNALS, 0)
        self.records = dict.fromkeys(SIGNALS, 0)
        self.rejected = dict.fromkeys(SIGNALS, 0)
        self.refused = 0  # requests
        self.parts = 0  # lines written
        self.again = 0  # parts that had been written before
        self.traces: set[str] = set()
        self.metrics = metrics.Totals()


class _Job(NamedTuple):
    signal: str
    encoding: str
    body: bytes
    future: Future[Reply]


class _Done(NamedTuple):
    job: _Job
    mapped: Mapped


class Writer:
    """Takes requests from any thread. redaction is `[capture] mode`: in `hashed` and `none` only names, times, figures and failures are kept."""

    def __init__(
        self, folders: Folders, *, redaction: str = "redacted", on_error: Callable[[str], None] | None = None
    ) -> None:
        self.account = Account()
        self._bare = redaction in ("hashed", "none")
        self._appender = Appender(folders, dialect="otel", redaction="full" if redaction == "full" else "redacted")
        self._on_error = on_error
        self._known: dict[str, None] = {}
        self._waiting: deque[_Job] = deque()
        self._news = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="otel-writer", daemon=True)
        self._thread.start()

    def submit(self, signal: str, encoding: str, body: bytes) -> Future[Reply]:
        """Hands over a request; the future is done when everything of it is in the journal, or it is clear that it won't be."""
        future: Future[Reply] = Future()
        with self._news:
            if self._closing:
                future.set_result(Reply("unavailable", why="the receiver is stopping"))
                return future
            self._waiting.append(_Job(signal, encoding, body, future))
            self._news.notify()
        return future

    def close(self) -> None:
        """Writes what is waiting, and ends."""
        with self._news:
            self._closing = True
            self._news.notify()
        self._thread.join()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting and not self._closing:
                    self._news.wait()
                if not self._waiting:
                    return
            self._group()

    def _next(self) -> _Job | None:
        with self._news:
            while self._waiting:
                job = self._waiting.popleft()
                if job.future.set_running_or_notify_cancel():  # else nobody waits for it any more
                    return job
        return None

    def _group(self) -> None:
        done: list[_Done] = []
        size = 0
        while size < GROUP_BYTES and len(done) < GROUP_REQUESTS and (job := self._next()) is not None:
            size += len(job.body)
            try:
                done.append(_Done(job, self._mapped(job)))
            except Malformed as error:
                self.account.refused += 1
                job.future.set_result(Reply("large" if isinstance(error, TooMany) else "malformed", why=str(error)))
            except Exception as error:  # whatever a request holds, the others are served
                self._failed(job, error)
        try:
            if done:
                self._write(done)
        except Exception as error:
            for job, _ in done:
                if not job.future.done():
                    self._failed(job, error)

    def _failed(self, job: _Job, error: Exception) -> None:
        self.account.refused += 1
        if self._on_error is not None:
            self._on_error(f"a {job.signal} request could not be taken in: {type(error).__name__}: {error}")
        job.future.set_result(Reply("failed", why="the request could not be taken in"))

    def _mapped(self, job: _Job) -> Mapped:
        decoder: ModuleType = decode_json
        if job.encoding == PROTOBUF:
            from guardhook.intake.otel import decode_protobuf as decoder
        if job.signal == "traces":
            found: Sequence[Span] = _bounded(decoder.spans(job.body))
            return spans.mapped(found)
        if job.signal == "logs":
            records: Sequence[Log] = _bounded(decoder.logs(job.body))
            return logs.mapped(records)
        points: Sequence[Point] = _bounded(decoder.points(job.body))
        self.account.metrics.add(points)
        return metrics.mapped(points)

    def _write(self, done: Sequence[_Done]) -> None:
        by_trace: dict[str, dict[str, Piece]] = {}
        again = 0
        for _, mapped in done:
            for piece in mapped.pieces:
                key = f"{piece.trace}/{piece.event['part']}"
                own = by_trace.setdefault(piece.trace, {})
                if key in own or key in self._known:
                    again += 1
                else:
                    own[key] = piece
        failed: dict[str, str] = {}
        for trace, pieces in by_trace.items():
            if not pieces:
                continue
            try:
                self._appender.put(trace, [("trace.part", self._kept(p.event)) for p in pieces.values()], opens=True)
            except StoreError as error:
                failed[trace] = error.message
                continue
            except Exception as error:  # the others are written all the same
                failed[trace] = f"{type(error).__name__}: {error}"
                continue
            self._note(trace, pieces)
        self.account.again += again
        if failed and self._on_error is not None:
            self._on_error(next(iter(failed.values())))
        for job, mapped in done:
            lost = next((failed[p.trace] for p in mapped.pieces if p.trace in failed), None) if failed else None
            if lost is not None:
                self.account.refused += 1
                job.future.set_result(Reply("unavailable", why="the journal can't be written at the moment"))
                continue
            self.account.requests[job.signal] += 1
            self.account.records[job.signal] += mapped.records
            self.account.rejected[job.signal] += mapped.rejected
            job.future.set_result(Reply("ok", mapped.rejected, mapped.why))

    def _note(self, trace: str, pieces: dict[str, Piece]) -> None:
        self.account.parts += len(pieces)
        if len(self.account.traces) < _TRACES_MOST:
            self.account.traces.add(trace)
        self._known.update(dict.fromkeys(pieces))
        while len(self._known) > _KNOWN_MOST:
            del self._known[next(iter(self._known))]

    def _kept(self, event: Event) -> Event:
        if not self._bare:
            return _fitting(event)
        out = {key: value for key, value in event.items() if key not in _CONTENT}
        metadata = event.get("metadata")
        if isinstance(metadata, dict):
            out["metadata"] = {key: value for key, value in metadata.items() if not key.startswith("gen_ai.")}
        if "error" in event:
            out["error"] = "error"
        return out


def _bounded(records: Sequence[_Record]) -> Sequence[_Record]:
    if len(records) > RECORDS_MOST:
        raise TooMany(f"the request has more than {RECORDS_MOST} records; send smaller batches")
    return records


def _fitting(event: Event) -> Event:
    """Cuts texts that would be cut anyhow, before secrets are looked for in them: a line of megabytes would hold up all others."""
    level = fit.level(event, limits.RECORD_BYTES)
    if level is None:
        return event
    shorter, cut = fit.clip(event, level + fit.MARGIN)
    assert isinstance(shorter, dict)
    metadata = shorter.get("metadata")
    return (
        {**shorter, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "cut": cut[:20]}} if cut else event
    )
