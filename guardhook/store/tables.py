"""The sink that writes to traces.db: keeps the rows of one batch and writes them together."""

from __future__ import annotations

import sqlite3

import msgspec

from guardhook.store import arrange, protocol
from guardhook.store.columns import json_text
from guardhook.store.errors import Corrupt
from guardhook.store.instants import micros
from guardhook.store.model import EVALUATORS, make_id
from guardhook.store.schema import FILE, SHIFT
from guardhook.store.state import Part, Row, State

_COLUMNS = (
    "pk", "step_number", "step_type", "name", "input", "output", "started_at", "ended_at", "duration_ms", "tokens_used", "model",
    "error", "metadata", "parent_step_number", "caused_by_step_number",
)  # fmt: skip
_INDEX = {name: index for index, name in enumerate(_COLUMNS)}
_METADATA = _INDEX["metadata"]
_JSON = frozenset(("input", "output"))
_TRACE = (
    "serial", "source", "id", "agent_name", "agent_version", "trigger", "status", "input", "output", "started_at", "ended_at",
    "total_duration_ms", "total_tokens", "total_cost_usd", "error", "tags", "metadata", "parent_trace_id", "forked_from_step",
    "session_id", "created_at", "dialect", "project", "live", "started_us", "ended_us", "last_us", "step_count", "step_tokens", "state",
)  # fmt: skip
_STEP_SQL = (
    f"INSERT OR REPLACE INTO agent_trace_steps ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_TRACE_SQL = f"INSERT OR REPLACE INTO agent_traces ({', '.join(_TRACE)}) VALUES ({', '.join('?' * len(_TRACE))})"

_states = msgspec.json.Decoder(State)


def _damaged(what: str) -> Corrupt:
    """A row that can't be gone on from: the journal has it, so the store is made anew."""
    return Corrupt(f"{FILE} is damaged: what it kept of {what} can't be read")


class Held:
    """A trace of this batch."""

    __slots__ = ("serial", "source", "state")

    def __init__(self, serial: int, source: int, state: State) -> None:
        self.serial = serial
        self.source = source
        self.state = state


class Tables:
    """Rows of one batch. Use within one transaction: fold, then flush."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._held: dict[str, Held] = {}
        self._steps: dict[int, list[object]] = {}
        self._decisions: dict[int, tuple[object, ...]] = {}
        self._snapshots: dict[int, tuple[object, ...]] = {}
        self._events: list[tuple[object, ...]] = []
        self._runs: list[tuple[object, ...]] = []
        self._evals: list[tuple[object, ...]] = []
        self._parts: dict[tuple[int, str], Part] = {}
        self._read: list[int] = []
        self._serial = int(connection.execute("SELECT COALESCE(MAX(serial), 0) FROM agent_traces").fetchone()[0])
        self.source = 0
        self.key = ""

    # --- traces -------------------------------------------------------------------------------------------------

    def find(self, trace_id: str) -> Held | None:
        """The trace of this id, from the batch or the store."""
        held = self._held.get(trace_id)
        if held is None:
            row = self._db.execute(
                "SELECT serial, source, state FROM agent_traces WHERE id = ?", (trace_id,)
            ).fetchone()
            if row is None:
                return None
            try:
                state = _states.decode(row[2])
            except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
                raise _damaged(trace_id) from None
            held = self._held[trace_id] = Held(row[0], row[1], state)
        return held

    def hold(self, state: State) -> Held:
        """A trace that has just begun. It must be held before its first step is added."""
        self._serial += 1
        held = self._held[state.id] = Held(self._serial, self.source, state)
        return held

    def _pk(self, state: State, number: int) -> int:
        held = self._held.get(state.id)
        if held is None:
            held = self.hold(state)
        return (held.serial << SHIFT) + number

    # --- what the fold tells ------------------------------------------------------------------------------------

    def add(self, state: State, row: Row) -> None:
        pk = self._pk(state, row.number)
        self._steps[pk] = [
            pk, row.number, row.type, row.name, json_text(row.input), None if row.output is None else json_text(row.output),
            row.started_at, row.ended_at, row.duration_ms, row.tokens_used, row.model, row.error, row.metadata, row.parent, row.cause,
        ]  # fmt: skip

    def change(self, state: State, number: int, fields: dict[str, object], metadata: dict[str, object]) -> None:
        pk = self._pk(state, number)
        row = self._steps.get(pk)
        if row is None:
            found = self._db.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM agent_trace_steps WHERE pk = ?", (pk,)
            ).fetchone()
            if found is None:
                return
            row = self._steps[pk] = list(found)
            try:
                row[_METADATA] = msgspec.json.decode(found[_METADATA], type=dict[str, object])
            except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
                raise _damaged(f"step {number} of {state.id}") from None
        for name, value in fields.items():
            row[_INDEX[name]] = json_text(value) if name in _JSON and value is not None else value
        if metadata:
            own = row[_METADATA]
            assert isinstance(own, dict)
            own.update(metadata)

    def decide(self, state: State, number: int, decision: dict[str, object]) -> None:
        pk = self._pk(state, number)
        self._decisions[pk] = (
            pk, json_text(decision["options"]), decision["chosen"], decision["rationale"], decision["confidence"], decision["decided_by"],
        )  # fmt: skip

    def snapshot(self, state: State, number: int, snapshot: dict[str, object]) -> None:
        pk = self._pk(state, number)
        window, environment, tools = (snapshot.get(n) for n in ("context_window", "environment", "tool_state"))
        self._snapshots[pk] = (
            pk,
            json_text([] if window is None else window),
            json_text(environment if isinstance(environment, dict) else {}),
            json_text(tools if isinstance(tools, dict) else {}),
            protocol.whole(snapshot.get("token_count")) or 0,
        )

    def happen(
        self,
        state: State,
        seq: int,
        ts: str,
        event: str,
        native: str | None,
        text: str | None,
        detail: dict[str, object],
    ) -> None:
        serial = self._pk(state, 0) >> SHIFT
        self._events.append((serial, seq, ts, event, native, state.next, text, json_text(detail)))

    def segment(self, state: State, run: list[object]) -> None:
        self._runs.append((self._pk(state, 0) >> SHIFT, *run))

    def evaluation(self, trace_id: str, seq: int, event: dict[str, object]) -> None:
        """Keeps a result. Raises ValueError with the reason when it can't be used."""
        kind, name, score = event.get("evaluator_type"), event.get("evaluator_name"), protocol.cost(event.get("score"))
        if kind not in EVALUATORS:
            raise ValueError(f"evaluator_type is none of {', '.join(EVALUATORS)}")
        if not isinstance(name, str) or not name or score is None:
            raise ValueError("an evaluation needs evaluator_name and score")
        given, details, at = event.get("id"), event.get("details"), event.get("evaluated_at")
        self._evals.append((
            given if isinstance(given, str) and given else make_id("evl", self.key, str(seq)), self.source, seq, trace_id, kind, name,
            score, int(bool(event.get("passed"))), json_text(details if isinstance(details, dict) else {}),
            at if isinstance(at, str) and micros(at) is not None else "",
        ))  # fmt: skip

    def steps_known(self, state: State, number: int) -> bool:
        pk = self._pk(state, number)
        if pk in self._steps:
            return True
        return self._db.execute("SELECT 1 FROM agent_trace_steps WHERE pk = ?", (pk,)).fetchone() is not None

    def part_known(self, state: State, name: str) -> bool:
        serial = self._pk(state, 0) >> SHIFT
        if (serial, name) in self._parts:
            return True
        found = self._db.execute("SELECT 1 FROM agent_trace_parts WHERE serial = ? AND name = ?", (serial, name))
        return found.fetchone() is not None

    def part(self, state: State, part: Part) -> None:
        self._parts[self._pk(state, 0) >> SHIFT, part.name] = part

    def part_step(self, state: State, name: str, number: int) -> Row | None:
        serial = self._pk(state, 0) >> SHIFT
        part = self._parts.get((serial, name)) or arrange.load(self._db, serial, name)
        if part is None or part.row is None:
            return None
        row, part.row = part.row, None
        row.number = part.number = number
        self._parts[serial, name] = part
        return row

    # --- writing ------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes the batch. Raises sqlite3.Error."""
        rows = self._steps.values()
        for row in rows:
            row[_METADATA] = json_text(row[_METADATA])
        many = self._db.executemany
        many(_STEP_SQL, rows)
        many("INSERT OR REPLACE INTO agent_trace_decisions VALUES (?,?,?,?,?,?)", self._decisions.values())
        many("INSERT OR REPLACE INTO agent_trace_snapshots VALUES (?,?,?,?,?)", self._snapshots.values())
        many(
            "INSERT INTO agent_trace_events (serial, seq, ts, event, native_event, before_step, text, detail) VALUES (?,?,?,?,?,?,?,?)",
            self._events,
        )
        for held in self._held.values():
            if held.state.run:
                self._runs.append((held.serial, *held.state.run))
        many(
            "INSERT INTO agent_trace_runs VALUES (?,?,?,?,?,?,?) ON CONFLICT (serial, segment) DO UPDATE SET"
            " last_seq = MAX(last_seq, excluded.last_seq), closed_at = COALESCE(excluded.closed_at, closed_at)",
            self._runs,
        )
        many("INSERT OR REPLACE INTO agent_trace_evals VALUES (?,?,?,?,?,?,?,?,?,?)", self._evals)
        if self._parts:
            arrange.save(self._db, self._parts)
        many(_TRACE_SQL, [_trace_row(held) for held in self._held.values()])
        for source in self._read:
            found = self._db.execute("SELECT serial FROM agent_traces WHERE source = ?", (source,)).fetchall()
            for (serial,) in found:
                arrange.settle(self._db, serial)

    def read(self, source: int) -> None:
        """A source was read to its end: traces of it that were told in parts are put in order when the batch is written."""
        self._read.append(source)

    def forget(self, source: int) -> list[str]:
        """Removes everything that a source gave, and gives the ids of its traces. Only before the batch adds something of it."""
        found = self._db.execute("SELECT serial, id FROM agent_traces WHERE source = ?", (source,)).fetchall()
        for serial, _ in found:
            low, high = serial << SHIFT, ((serial + 1) << SHIFT) - 1
            for table in ("agent_trace_steps", "agent_trace_decisions", "agent_trace_snapshots"):
                self._db.execute(f"DELETE FROM {table} WHERE pk BETWEEN ? AND ?", (low, high))
            for table in ("agent_trace_events", "agent_trace_runs", "agent_trace_parts"):
                self._db.execute(f"DELETE FROM {table} WHERE serial = ?", (serial,))
        for table in ("agent_traces", "agent_trace_evals", "journal_problems", "cursors"):
            self._db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))
        self._held = {name: held for name, held in self._held.items() if held.source != source}
        return [name for _, name in found]


def _trace_row(held: Held) -> tuple[object, ...]:
    s = held.state
    return (
        held.serial, held.source, s.id, s.agent_name, s.agent_version, s.trigger, s.status,
        json_text({} if s.input is None else s.input), None if s.output is None else json_text(s.output), s.started_at, s.ended_at,
        s.total_duration_ms, s.total_tokens, s.total_cost_usd, s.error, json_text(s.tags), json_text(s.metadata), s.parent_trace_id,
        s.forked_from_step, s.session_id, s.created_at, s.dialect, s.project, int(s.live), s.started_us, s.ended_us, s.last_us,
        s.step_count, s.step_tokens, json_text(s),
    )  # fmt: skip
