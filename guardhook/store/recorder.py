"""TraceRecorder: a program tells of its own run.

    from guardhook.store.recorder import TraceRecorder
    recorder = TraceRecorder(folders)
    recorder.start_trace("my-agent", input={"task": "sum"})
    number = recorder.start_step("tool_call", "add", input={"a": 1, "b": 2})
    recorder.end_step(number, output=3)
    recorder.end_trace(output={"text": "3"})

Every call is one journal line of the default store, so nothing is lost when the program is killed, and `guardhook show` follows a run under way.
The same checks apply as to a recorded stream (guardhook.store.protocol), but what a stream skips raises here. With `TraceRecorder.into(connection)` the
trace goes into a traces.db that the caller opened, and nowhere else: no journal knows of it, and it is lost with that file.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Sequence

from guardhook.core.folders import Folders
from guardhook.journal.line import iso
from guardhook.store import protocol, recorded, schema
from guardhook.store.append import Appender
from guardhook.store.errors import StoreError
from guardhook.store.given import Refused
from guardhook.store.instants import micros
from guardhook.store.lines import clean
from guardhook.store.model import STATUSES, make_id
from guardhook.store.tables import Tables


class Rejected(StoreError):
    """A call whose values can't be recorded; nothing was written."""


class TraceRecorder:
    """Records one trace at a time. Not for several threads at once."""

    def __init__(self, folders: Folders, *, redaction: str = "redacted") -> None:
        self._appender: Appender | None = Appender(folders, redaction=redaction)
        self._db: sqlite3.Connection | None = None
        self._id: str | None = None
        self._next = 1
        self.warnings: list[str] = []  # values that were left out, newest last

    @classmethod
    def into(cls, connection: sqlite3.Connection) -> TraceRecorder:
        """A recorder that writes to an open store only (guardhook.store.schema.connect), not to a journal."""
        if schema.version(connection) != schema.VERSION:
            raise Rejected("the connection is not that of a trace store of this version")
        made = cls.__new__(cls)
        made._appender, made._db, made._id, made._next, made.warnings = None, connection, None, 1, []
        return made

    @property
    def current_trace_id(self) -> str | None:
        """The id of the trace under way."""
        return self._id

    def start_trace(
        self, agent_name: str, *, trace_id: str | None = None, agent_version: str | None = None, trigger: str | None = None,
        input: object = None, session_id: str | None = None, tags: Sequence[str] = (), metadata: dict[str, object] | None = None,
        started_at: str | None = None, project: str | None = None,
    ) -> str:  # fmt: skip
        """Begins a trace and gives its id. Raises Rejected."""
        name = trace_id if trace_id is not None else make_id("trc", uuid.uuid4().hex)
        event = _given(
            trace_id=name, agent_name=agent_name, agent_version=agent_version, trigger=trigger, input=input,
            session_id=session_id, tags=list(tags), metadata=metadata, started_at=started_at, project=project,
        )  # fmt: skip
        checked = self._check("trace_start", event)
        self._id, self._next = name, 1
        self._write("trace.start", checked, opens=True)
        return name

    def start_step(
        self, step_type: str, name: str, *, number: int | None = None, input: object = None, model: str | None = None,
        metadata: dict[str, object] | None = None, parent_step: int | None = None, caused_by_step: int | None = None,
        started_at: str | None = None,
    ) -> int:  # fmt: skip
        """Begins a step and gives its number (the next one unless given). Raises Rejected."""
        return self._step("step_start", number, _given(
            step_type=step_type, name=name, input=input, model=model, metadata=metadata, parent_step=parent_step,
            caused_by_step=caused_by_step, started_at=started_at,
        ))  # fmt: skip

    def end_step(
        self, number: int, *, output: object = None, error: object = None, duration_ms: float | None = None,
        tokens_used: int | None = None, model: str | None = None, metadata: dict[str, object] | None = None,
        ended_at: str | None = None,
    ) -> None:  # fmt: skip
        """Ends a step; without duration_ms it is what has passed since its start. Raises Rejected."""
        self._known(number)
        event = _given(
            step_number=number, output=output, error=error, duration_ms=duration_ms, tokens_used=tokens_used, model=model,
            metadata=metadata, ended_at=ended_at,
        )  # fmt: skip
        self._write("trace.step_end", self._check("step_end", event))

    def step(
        self, step_type: str, name: str, *, number: int | None = None, input: object = None, output: object = None,
        error: object = None, duration_ms: float | None = None, tokens_used: int | None = None, model: str | None = None,
        metadata: dict[str, object] | None = None, parent_step: int | None = None, caused_by_step: int | None = None,
        decision: dict[str, object] | None = None, snapshot: dict[str, object] | None = None, started_at: str | None = None,
        ended_at: str | None = None,
    ) -> int:  # fmt: skip
        """Records a whole step and gives its number. Raises Rejected."""
        return self._step("step", number, _given(
            step_type=step_type, name=name, input=input, output=output, error=error, duration_ms=duration_ms,
            tokens_used=tokens_used, model=model, metadata=metadata, parent_step=parent_step, caused_by_step=caused_by_step,
            decision=decision, snapshot=snapshot, started_at=started_at, ended_at=ended_at,
        ))  # fmt: skip

    def decision(
        self, number: int, chosen: str, *, options: Sequence[dict[str, object]] = (), rationale: str | None = None,
        confidence: float | None = None, decided_by: str | None = None,
    ) -> None:  # fmt: skip
        """Attaches a decision to a step, in place of an earlier one. Raises Rejected."""
        self._known(number)
        event = _given(
            step_number=number, chosen=chosen, options=list(options), rationale=rationale, confidence=confidence, decided_by=decided_by,
        )  # fmt: skip
        self._write("trace.decision", self._check("decision", event))

    def snapshot(
        self, number: int, *, context_window: object = None, environment: dict[str, object] | None = None,
        tool_state: dict[str, object] | None = None, token_count: int | None = None,
    ) -> None:  # fmt: skip
        """Attaches what a step saw. Raises Rejected."""
        self._known(number)
        event = _given(
            step_number=number, context_window=context_window, environment=environment, tool_state=tool_state, token_count=token_count,
        )  # fmt: skip
        self._write("trace.snapshot", self._check("snapshot", event))

    def end_trace(
        self, status: str = "completed", *, output: object = None, error: object = None, total_tokens: int | None = None,
        total_cost_usd: float | None = None, total_duration_ms: float | None = None, metadata: dict[str, object] | None = None,
        ended_at: str | None = None,
    ) -> None:  # fmt: skip
        """Ends the trace. Raises Rejected, for a status that is none of STATUSES too: a program can say what it means."""
        if status not in STATUSES:
            raise Rejected(f"no status {status!r}; there are {', '.join(STATUSES)}")
        event = _given(
            status=status, output=output, error=error, total_tokens=total_tokens, total_cost_usd=total_cost_usd,
            total_duration_ms=total_duration_ms, metadata=metadata, ended_at=ended_at,
        )  # fmt: skip
        self._write("trace.end", self._check("trace_end", event), closes=True)
        self._id = None

    # --- inside -------------------------------------------------------------------------------------------------

    def _step(self, kind: str, number: int | None, event: dict[str, object]) -> int:
        wanted = self._next if number is None else number
        checked = self._check(kind, {**event, "step_number": wanted})
        self._write(f"trace.{kind}", checked)
        self._next = max(self._next, wanted + 1)
        return wanted

    def _known(self, number: int) -> None:
        if self._id is not None and not (type(number) is int and 1 <= number < self._next):
            raise Rejected(f"there is no step {number}")

    def _check(self, kind: str, event: dict[str, object]) -> dict[str, object]:
        if kind != "trace_start" and self._id is None:
            raise Rejected("no trace has been started")
        checked = protocol.check({**event, "type": kind}, needs_trace=False)
        if checked.rejected is not None:
            raise Rejected(checked.rejected)
        self.warnings.extend(checked.warnings)
        return {k: v for k, v in checked.event.items() if k not in ("type", "trace_id")}

    def _write(self, kind: str, event: dict[str, object], *, opens: bool = False, closes: bool = False) -> None:
        assert self._id is not None
        if self._appender is not None:
            self._appender.put(self._id, [(kind, event)], opens=opens, closes=closes)
        if self._db is not None:
            self._direct(self._db, self._id, kind, event)

    def _direct(self, connection: sqlite3.Connection, name: str, kind: str, event: dict[str, object]) -> None:
        ts = iso(time.time_ns())
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                tables = Tables(connection)
                held = tables.find(name)
                data: dict[str, object] = {"trace": name, "event": clean(event)}
                state = recorded.apply(tables, held.state if held else None, kind, 0, ts, micros(ts) or 0, data)
                if held is None and state is not None:
                    tables.hold(state)
                tables.flush()
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except Refused as error:
            raise Rejected(str(error)) from None
        except sqlite3.Error as error:
            raise schema.told(error, "the given store") from None


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
