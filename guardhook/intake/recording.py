"""Native events on their way into the journal: traces under way, what may be said of them, and what becomes of them at the end.

`record` and `run` both feed a Recording. It takes checked events (guardhook.store.protocol), refuses what the store could not apply, keeps lines
until `flush`, and finishes what the producer left open.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence

from guardhook.core.folders import Folders
from guardhook.gate import roots
from guardhook.intake import bare
from guardhook.journal import line, write
from guardhook.store import Filter, Missing, Store, StoreError, open_store, schema
from guardhook.store.append import Appender
from guardhook.store.model import make_id

DIALECT = "recorder"  # files of recorded traces are named so, as TraceRecorder's are
PENDING_LINES = 2_000
_START = ("agent_name", "agent_version", "trigger", "input", "session_id", "metadata", "started_at")
_WORDS = {"trace_start": "start", "trace_end": "end"}
_ATTACHED = ("step_end", "decision", "snapshot")
Event = dict[str, object]
Warn = Callable[[str], None]


class Recorded:
    """One trace that this recording touched."""

    __slots__ = ("id", "lost", "numbers", "open", "opened", "pending", "status", "steps", "stored", "unended")

    def __init__(self, id: str, *, opened: bool, status: str = "running") -> None:
        self.id = id
        self.opened = opened  # begun by this recording
        self.status = status
        self.numbers: set[int] = set()
        self.open: set[int] = set()  # steps that have begun and not ended
        self.steps = 0  # that this recording added
        self.pending: list[tuple[str, Event]] = []
        self.stored = False  # its beginning is in the journal
        self.lost = False  # its beginning could not be written
        self.unended = False  # its end could not be written

    @property
    def kept(self) -> str:
        """The status that the journal has."""
        return "not stored" if self.lost else "running" if self.unended else self.status


class Recording:
    """Traces that are being told. redaction is one of journal.redact.MODES; root is the project that traces belong to.

    after_end: steps may follow a trace's end. warn is called with what a person should know. Nothing here raises for what a producer says, or for a journal that can't be written.
    """

    def __init__(
        self,
        folders: Folders,
        *,
        tags: Sequence[str] = (),
        redaction: str = "redacted",
        root: str | None = None,
        after_end: bool = False,
        warn: Warn,
    ) -> None:
        self.traces: dict[str, Recorded] = {}
        self.applied = 0
        self.lost = 0
        self._folders = folders
        self._tags = list(tags)
        self._root = root
        self._after_end = after_end
        self._warn = warn
        self._bare = redaction if redaction in bare.MODES else None
        self._appender = Appender(folders, dialect=DIALECT, redaction="redacted" if self._bare else redaction)
        self._lines = 0
        self._waiting: dict[str, Recorded] = {}  # traces with lines that are not in the journal yet
        self._stranger: Store | None = None

    # --- events -------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> str | None:
        """Takes a checked event. Gives why it can't be applied, None when it can; it is in the journal after `flush`."""
        kind = str(event["type"])
        if kind == "trace_start":
            return self._start(event)
        name = str(event.get("trace_id"))
        trace = self.traces.get(name)
        if trace is None:
            trace = self._known(name)
            if trace is None:
                return "there is no such trace"
            self.traces[name] = trace
        problem = self._fits(trace, kind, event)
        if problem is None:
            self._put(trace, kind, event)
        return problem

    def _start(self, event: Event) -> str | None:
        given = event.get("trace_id")
        name = str(given) if given is not None else make_id("trc", uuid.uuid4().hex)
        if name in self.traces or (given is not None and self._exists(name)):
            return "there is a trace of this id already"
        fields = {key: event[key] for key in _START if event.get(key) is not None}
        tags = event.get("tags")
        metadata = event.get("metadata")
        cwd = metadata.get("cwd") if isinstance(metadata, dict) else None
        if isinstance(cwd, str) and cwd.startswith("/"):
            fields["project"] = project_of(cwd)
        fields["tags"] = [*(tags if isinstance(tags, list) else ()), *self._tags]
        trace = self.traces[name] = Recorded(name, opened=True)
        self._put(trace, "trace_start", fields)
        return None

    def _fits(self, trace: Recorded, kind: str, event: Event) -> str | None:
        if trace.lost:
            return "the trace's beginning could not be stored"
        if kind == "trace_end":
            trace.status = str(event.get("status") or "completed")
            return None
        number = event["step_number"]
        assert isinstance(number, int)
        if kind in _ATTACHED:
            if number not in trace.numbers:
                return f"there is no step {number}"
            if kind == "step_end":
                trace.open.discard(number)
            return None
        if trace.status != "running" and not self._after_end:
            return f"the trace has ended ({trace.status})"
        if number in trace.numbers:
            return f"there is a step {number} already"
        trace.numbers.add(number)
        trace.steps += 1
        if kind == "step_start":
            trace.open.add(number)
        return None

    def _put(self, trace: Recorded, kind: str, event: Event) -> None:
        fields = {k: v for k, v in event.items() if k not in ("type", "trace_id", "v")}
        if self._bare is not None:
            fields, _ = bare.bare(fields, self._bare)
        self._waiting[trace.id] = trace
        trace.pending.append((f"trace.{_WORDS.get(kind, kind)}", fields))
        self._lines += 1
        if self._lines >= PENDING_LINES:
            self.flush()

    # --- traces that others began -------------------------------------------------------------------------------

    def _exists(self, name: str) -> bool:
        """Whether a trace of this id was recorded before. A look at its file; the store is asked as it stands."""
        head = write.peek(self._folders.journal, DIALECT, name, None)
        if head is not None and head.seq > 1:
            return True
        try:
            store = self._store(catch_up=False)
            return store is not None and bool(store.traces(Filter(ids=(name,)), limit=1).total)
        except StoreError:
            return False

    def _store(self, *, catch_up: bool) -> Store | None:
        """The store, once opened. Where nothing was recorded and no traces.db lies, there is none, and none is made."""
        if catch_up and self._stranger is not None:
            self._stranger.close()
            self._stranger = None
        if self._stranger is None and (catch_up or os.path.exists(f"{self._folders.data}/{schema.FILE}")):
            try:
                self._stranger = open_store(self._folders, catch_up=catch_up)
            except Missing:
                return None
        return self._stranger

    def _known(self, name: str) -> Recorded | None:
        """A trace that an earlier recording left open, or has ended."""
        try:
            store = self._store(catch_up=True)
            if store is None:
                return None
            page = store.traces(Filter(ids=(name,)), limit=1)
            key = store.connection.execute(
                "SELECT s.key FROM sources s JOIN agent_traces t ON t.source = s.id WHERE t.id = ?", (name,)
            ).fetchone()
            if not page.items or key is None or key[0] != line.key(DIALECT, name):
                return None  # unknown, or written by a harness's hooks or an import, whose files are not ours to go on with
            trace = Recorded(name, opened=False, status=page.items[0].status)
            trace.stored = True
            trace.numbers.update(number for number, _ in store.links(page.items[0]))
            return trace
        except StoreError as error:
            self._warn(error.message)
            return None

    # --- into the journal ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes what waits. What can't be written is lost, counted, and told."""
        self._lines = 0
        waiting, self._waiting = self._waiting, {}
        for trace in waiting.values():
            lines, trace.pending = trace.pending, []
            self._write(trace, lines)

    def _write(self, trace: Recorded, lines: list[tuple[str, Event]]) -> None:
        if trace.lost:
            self.lost += len(lines)
            return
        try:
            self._appender.put(
                trace.id, lines, opens=lines[0][0] == "trace.start", closes=lines[-1][0] == "trace.end", root=self._root
            )
        except StoreError as error:
            self.lost += len(lines)
            trace.lost = not trace.stored
            trace.unended = trace.unended or lines[-1][0] == "trace.end"
            self._warn(f"{len(lines)} event(s) of trace {trace.id} could not be stored: {error.message}")
            return
        trace.stored = True
        trace.unended = trace.unended and lines[-1][0] != "trace.end"
        self.applied += len(lines)

    def unfinished(self) -> list[Recorded]:
        """Traces that still run, in the order in which they came."""
        return [t for t in self.traces.values() if t.status == "running" and not t.lost]

    def finish(self, traces: Iterable[Recorded], status: str, metadata: Event) -> list[Recorded]:
        """Ends traces that their producer did not end, and their open steps. Gives those that are so ended."""
        done = list(traces)
        for trace in done:
            for number in sorted(trace.open):
                self._put(trace, "step_end", {"step_number": number, "metadata": {"interrupted": True}})
            trace.open.clear()
            trace.status = status
            self._put(trace, "trace_end", {"status": status, "metadata": metadata})
        self.flush()
        return done

    def close(self) -> None:
        if self._stranger is not None:
            self._stranger.close()
            self._stranger = None


def project_here() -> str | None:
    """The project of the folder in which this process runs; None when that folder is gone."""
    try:
        return project_of(os.getcwd())
    except OSError:
        return None


def project_of(cwd: str) -> str | None:
    """The project root that hooks would pin in this folder; the folder itself when it belongs to none."""
    return roots.find_root(cwd) or roots.real(cwd) if cwd.startswith("/") else None
