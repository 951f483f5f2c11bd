"""Questions to a store. Nothing here writes; rows are streamed, so memory does not grow with a trace."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.store import model, schema
from guardhook.store.errors import Ambiguous, BadQuery, NotFound
from guardhook.store.model import Evaluation, Happening, Problem, Run, Snapshot, Step, Trace

IDLE_SECONDS = 30 * 60
SORTS = {
    "started_at": "started_us {0}, CASE WHEN started_us IS NULL THEN started_at END {0}",
    "duration": "effective_duration_ms {0}",
    "tokens": "effective_tokens {0}",
    "cost": "total_cost_usd {0}",
    "agent_name": "agent_name {0}",
}

_DURATION = "COALESCE(total_duration_ms, CASE WHEN ended_us >= started_us THEN (ended_us - started_us) / 1000 END)"
_TOKENS = "COALESCE(total_tokens, step_tokens)"
# A harness that vanished says nothing: the trace ends when nothing was heard for a while, and goes on when something is.
_STATUS = "CASE WHEN status = 'running' AND live AND last_us < :idle THEN 'timeout' ELSE status END"
_TRACE = f"""
  id, agent_name, agent_version, trigger, {_STATUS} AS shown_status, input, output, started_at, ended_at, total_duration_ms,
  total_tokens, total_cost_usd, error, tags, metadata, parent_trace_id, forked_from_step, session_id, created_at, dialect, project,
  live, step_count, {_TOKENS} AS effective_tokens, {_DURATION} AS effective_duration_ms, serial, last_us
"""
_STEP = """
  s.step_number, s.step_type, s.name, s.input, s.output, s.started_at, s.ended_at, s.duration_ms, s.tokens_used, s.model,
  s.error, s.metadata, s.parent_step_number, s.caused_by_step_number, d.options, d.chosen, d.rationale, d.confidence, d.decided_by
"""
_STEPS = f"SELECT {_STEP} FROM agent_trace_steps s LEFT JOIN agent_trace_decisions d USING (pk)"


class Filter(NamedTuple):
    """Which traces. None means any. All given conditions must hold."""

    ids: tuple[str, ...] | None = None
    status: str | None = None  # as shown, see Trace.status
    agent: str | None = None  # part of the agent's name, ASCII letters in any case
    agent_exact: str | None = None
    tag: str | None = None
    session: str | None = None  # the session id or its start
    since_us: int | None = None  # started at or after, microseconds since the epoch
    project: str | None = None  # project root: equal, or below it
    forks: bool = True  # False leaves forks out


class Page(NamedTuple):
    """Some traces, and how many there are without the limit."""

    items: list[Trace]
    total: int


class Store:
    """Reading access to an open traces.db. now is seconds since the epoch, for what counts as vanished; None asks the clock."""

    def __init__(
        self, connection: sqlite3.Connection, path: str, *, now: float | None = None, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self.connection = connection
        self.path = path
        self._now = now
        self.idle_seconds = idle_seconds

    @property
    def now(self) -> float:
        """Seconds since the epoch: the time given when the store was opened, else the clock's."""
        return time.time() if self._now is None else self._now

    @now.setter
    def now(self, seconds: float | None) -> None:
        self._now = seconds

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *rest: object) -> None:
        self.close()

    def _idle(self) -> int:
        return int((self.now - self.idle_seconds) * 1_000_000)

    # --- traces -------------------------------------------------------------------------------------------------

    def get(self, trace_id: str) -> Trace:
        """The trace with this id, else the only one whose id starts so, else the one of this session (no fork). Raises NotFound, Ambiguous."""
        wanted = kept(trace_id)
        if not wanted.strip():
            raise NotFound("no trace has a blank id", self.path)
        found = self._fetch("id = :id", {"id": wanted}, "LIMIT 1") or self._fetch(
            # A range instead of LIKE: no character of an id is special, and the index is used.
            "id >= :id AND substr(id, 1, length(:id)) = :id",
            {"id": wanted},
            "ORDER BY id LIMIT 2",
        )
        if not found:
            found = self._fetch("session_id = :id AND parent_trace_id IS NULL", {"id": wanted}, "ORDER BY id LIMIT 2")
        if not found:
            raise NotFound(f"no trace {trace_id!r}", self.path)
        if len(found) > 1:
            names = tuple(t.id for t in found)
            raise Ambiguous(f"several traces are meant by {trace_id!r}, among them {names[0]} and {names[1]}", names)
        return found[0]

    def traces(self, filter: Filter = Filter(), *, sort: str | None = None, limit: int = 25, offset: int = 0) -> Page:  # noqa: B008
        """Traces in order. sort is a key of SORTS, with `-` in front for descending; None is newest first. limit -1 is all.

        Raises BadQuery for an unknown sort key or status.
        """
        where, values = self._where(filter)
        order = self._order(sort)
        total = self.connection.execute(f"SELECT COUNT(*) FROM agent_traces WHERE {where}", values).fetchone()[0]
        items = self._fetch(
            where, {**values, "limit": limit, "offset": offset}, f"ORDER BY {order} LIMIT :limit OFFSET :offset"
        )
        return Page(items, total)

    def iterate(self, filter: Filter = Filter(), *, sort: str | None = None) -> Iterator[Trace]:  # noqa: B008
        """As `traces` without a limit, one at a time. Raises BadQuery."""
        where, values = self._where(filter)
        rows = self.connection.execute(
            f"SELECT {_TRACE} FROM agent_traces WHERE {where} ORDER BY {self._order(sort)}", values
        )
        return map(_trace, rows)

    def last_heard(self) -> int | None:
        """When any harness was last heard of, microseconds since the epoch."""
        found = self.connection.execute("SELECT MAX(last_us) FROM agent_traces WHERE live").fetchone()[0]
        return None if found is None else int(found)

    def newest_running(self) -> Trace | None:
        """The trace that `watch` follows when none is named: running, no fork, started last."""
        rows = self._fetch(
            "shown_status = 'running' AND parent_trace_id IS NULL", {}, "ORDER BY started_us DESC, id LIMIT 1"
        )
        return rows[0] if rows else None

    def _fetch(self, where: str, values: dict[str, object], rest: str) -> list[Trace]:
        sql = f"SELECT {_TRACE} FROM agent_traces WHERE {where} {rest}"
        return [_trace(row) for row in self.connection.execute(sql, {"idle": self._idle(), **values})]

    def _order(self, sort: str | None) -> str:
        key, direction = (
            ("started_at", "DESC") if sort is None else (sort.removeprefix("-"), "DESC" if sort[:1] == "-" else "ASC")
        )
        if key not in SORTS:
            raise BadQuery(f"can't sort by {key!r}; there are {', '.join(SORTS)}, each with - in front for descending")
        return SORTS[key].format(direction) + ", id ASC"

    def _where(self, filter: Filter) -> tuple[str, dict[str, object]]:
        clauses = ["1"]
        values: dict[str, object] = {"idle": self._idle()}
        if filter.ids is not None:
            names = [f"id{n}" for n in range(len(filter.ids))]
            clauses.append(f"id IN ({', '.join(':' + n for n in names)})")
            values.update(zip(names, filter.ids, strict=True))
        if filter.status is not None:
            if filter.status not in model.STATUSES:
                raise BadQuery(f"no status {filter.status!r}; there are {', '.join(model.STATUSES)}")
            clauses.append(f"{_STATUS} = :status")
            values["status"] = filter.status
        if filter.agent is not None:
            clauses.append("instr(lower(agent_name), lower(:agent))")  # SQLite's lower knows ASCII only, as LIKE does
            values["agent"] = filter.agent
        if filter.agent_exact is not None:
            clauses.append("agent_name = :agent_exact")
            values["agent_exact"] = filter.agent_exact
        if filter.tag is not None:
            clauses.append("json_valid(tags) AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = :tag)")
            values["tag"] = filter.tag
        if filter.session is not None:
            clauses.append("substr(session_id, 1, length(:session)) = :session")
            values["session"] = filter.session
        if filter.since_us is not None:
            clauses.append("started_us >= :since")
            values["since"] = filter.since_us
        if filter.project is not None:
            clauses.append("substr(project || '/', 1, length(:project) + 1) = :project || '/'")
            values["project"] = filter.project.rstrip("/")
        if not filter.forks:
            clauses.append("parent_trace_id IS NULL")
        return " AND ".join(clauses), {k: kept(v) if isinstance(v, str) else v for k, v in values.items()}

    # --- inside a trace -----------------------------------------------------------------------------------------

    def steps(self, trace: Trace, first: int | None = None, last: int | None = None) -> Iterator[Step]:
        """Steps by number, from first to last (both included), streamed. The connection must stay open while iterating."""
        low, high = _range(trace, first, last)
        return map(Step._make, self.connection.execute(f"{_STEPS} WHERE pk BETWEEN ? AND ? ORDER BY pk", (low, high)))

    def step(self, trace: Trace, number: int) -> Step:
        """One step. Raises NotFound."""
        for found in self.steps(trace, number, number):
            return found
        raise NotFound(f"trace {trace.id} has no step {number}", self.path)

    def count_steps(self, trace: Trace, first: int | None = None, last: int | None = None) -> int:
        """How many steps lie in a window."""
        if first is None and last is None:
            return trace.step_count
        row = self.connection.execute(
            "SELECT COUNT(*) FROM agent_trace_steps WHERE pk BETWEEN ? AND ?", _range(trace, first, last)
        ).fetchone()
        return int(row[0])

    def decisions(self, trace: Trace) -> Iterator[Step]:
        """Steps that are decisions or carry the record of one."""
        sql = f"{_STEPS} WHERE pk BETWEEN ? AND ? AND (d.chosen IS NOT NULL OR s.step_type = 'decision') ORDER BY pk"
        return map(Step._make, self.connection.execute(sql, _range(trace, None, None)))

    def decided_before(self, trace: Trace, number: int) -> Step | None:
        """The nearest step before this one that is a decision or carries one."""
        sql = (
            f"{_STEPS} WHERE pk BETWEEN ? AND ? AND (d.chosen IS NOT NULL OR s.step_type = 'decision')"
            " ORDER BY pk DESC LIMIT 1"
        )
        rows = self.connection.execute(sql, _range(trace, None, number - 1)).fetchall()
        return Step._make(rows[0]) if rows else None

    def objections(self, trace: Trace, limit: int) -> list[Step]:
        """The latest verdicts of the gate other than plain permission, newest first. Costs what the trace's decisions cost, not its steps."""
        sql = (
            f"{_STEPS.replace('LEFT JOIN', 'JOIN')} WHERE d.pk BETWEEN ? AND ? AND d.decided_by = 'policy' AND d.chosen <> 'allow'"
            " ORDER BY d.pk DESC LIMIT ?"
        )
        return list(map(Step._make, self.connection.execute(sql, (*_range(trace, None, None), limit))))

    def begun(self, first_day: int, days: int) -> list[int]:
        """How many traces were begun on each of these days, counted from 1970-01-01 UTC; forks don't count."""
        counts = [0] * days
        rows = self.connection.execute(
            "SELECT started_us / 86400000000 AS day, COUNT(*) FROM agent_traces"
            " WHERE started_us >= ? AND started_us < ? AND parent_trace_id IS NULL GROUP BY day",
            (first_day * 86_400_000_000, (first_day + days) * 86_400_000_000),
        )
        for day, count in rows:
            counts[day - first_day] = count
        return counts

    def has_links(self, trace: Trace) -> bool:
        """Whether any step has a parent or a cause: whether a tree says more than a list."""
        sql = (
            "SELECT 1 FROM agent_trace_steps WHERE pk BETWEEN ? AND ?"
            " AND (parent_step_number IS NOT NULL OR caused_by_step_number IS NOT NULL) LIMIT 1"
        )
        return self.connection.execute(sql, _range(trace, None, None)).fetchone() is not None

    def links(
        self, trace: Trace, first: int | None = None, last: int | None = None
    ) -> Iterator[tuple[int, int | None]]:
        """Number and parent of each step, and nothing else of it."""
        sql = "SELECT step_number, parent_step_number FROM agent_trace_steps WHERE pk BETWEEN ? AND ? ORDER BY pk"
        rows: Iterator[tuple[int, int | None]] = self.connection.execute(sql, _range(trace, first, last))
        return rows

    def snapshots(self, trace: Trace, first: int | None = None, last: int | None = None) -> Iterator[Snapshot]:
        """Snapshots of steps in a window."""
        rows = self.connection.execute(
            "SELECT pk & 4294967295, context_window, environment, tool_state, token_count FROM agent_trace_snapshots"
            " WHERE pk BETWEEN ? AND ? ORDER BY pk",
            _range(trace, first, last),
        )
        return map(Snapshot._make, rows)

    def snapshot(self, trace: Trace, number: int) -> Snapshot | None:
        """The snapshot of one step."""
        return next(self.snapshots(trace, number, number), None)

    def evaluations(self, trace: Trace) -> list[Evaluation]:
        """Stored evaluations, newest first."""
        rows = self.connection.execute(
            "SELECT id, trace_id, evaluator_type, evaluator_name, score, passed, details, evaluated_at FROM agent_trace_evals"
            " WHERE trace_id = ? ORDER BY evaluated_at DESC, rowid DESC",
            (trace.id,),
        )
        return [Evaluation._make((*row[:5], bool(row[5]), *row[6:])) for row in rows]

    def happenings(
        self, trace: Trace, first: int | None = None, last: int | None = None, *, event: str | None = None
    ) -> Iterator[Happening]:
        """What lies between the steps (prompts, starts and ends, notifications), in order. event: only this kind."""
        rows = self.connection.execute(
            "SELECT seq, ts, event, native_event, before_step, text, detail FROM agent_trace_events"
            " WHERE serial = ? AND before_step BETWEEN ? AND ? AND (? IS NULL OR event = ?) ORDER BY before_step, id",
            (trace.serial, first or 0, schema.MAX_STEP if last is None else last, event, event),
        )
        return map(Happening._make, rows)

    def shape(self, trace: Trace) -> dict[str, object]:
        """The trace's documented shape without steps; prompts after the first one stand in its metadata."""
        out = trace.as_dict()
        later = self.prompts(trace)[1:]
        metadata = out["metadata"]
        if later and isinstance(metadata, dict):
            metadata.setdefault("follow_up_prompts", later)
        return out

    def prompts(self, trace: Trace) -> list[str]:
        """Every prompt of the session, in order."""
        return [h.text for h in self.happenings(trace, event="user_prompt") if h.text is not None]

    def runs(self, trace: Trace) -> list[Run]:
        """The segments of the trace's session."""
        rows = self.connection.execute(
            "SELECT segment, run, first_seq, last_seq, opened_at, closed_at FROM agent_trace_runs WHERE serial = ? ORDER BY segment",
            (trace.serial,),
        )
        return [Run._make(row) for row in rows]

    def key(self, trace: Trace) -> str | None:
        """The name of the trace's journal file; None when the store was not made from a journal."""
        row = self.connection.execute(
            "SELECT s.key FROM sources s JOIN agent_traces t ON t.source = s.id WHERE t.id = ?", (trace.id,)
        ).fetchone()
        return None if row is None else str(row[0])

    def tickets(self, trace: Trace) -> Iterator[tuple[int, int]]:
        """Journal ticket and number of each tool call of a trace that hooks told of."""
        rows: Iterator[tuple[int, int]] = self.connection.execute(
            "SELECT json_extract(metadata, '$.seq'), step_number FROM agent_trace_steps"
            " WHERE pk BETWEEN ? AND ? AND step_type = 'tool_call' AND json_valid(metadata)",
            _range(trace, None, None),
        )
        return rows

    # --- the whole store ----------------------------------------------------------------------------------------

    def stats(self, filter: Filter = Filter(), *, policies: int = 0) -> dict[str, object]:  # noqa: B008
        """The documented shape of `stats`; forks never count. policies is the number of enabled ones, which the store does not know."""
        where, values = self._where(filter._replace(forks=False))
        row = self.connection.execute(
            f"SELECT COUNT(*), COALESCE(SUM(step_count), 0), AVG({_DURATION}), COUNT({_DURATION}), SUM({_TOKENS}), SUM(total_cost_usd)"
            f" FROM agent_traces WHERE {where}",
            values,
        ).fetchone()
        evals = self.connection.execute(
            f"SELECT COUNT(*) FROM agent_trace_evals WHERE trace_id IN (SELECT id FROM agent_traces WHERE {where})",
            values,
        ).fetchone()[0]
        by_status = dict.fromkeys(model.STATUSES, 0)
        by_status.update(
            self.connection.execute(
                f"SELECT {_STATUS} AS shown, COUNT(*) FROM agent_traces WHERE {where} GROUP BY shown", values
            ).fetchall()
        )
        agents = self.connection.execute(
            f"SELECT agent_name, COUNT(*) AS n, SUM({_STATUS} IN ('failed', 'timeout')) FROM agent_traces WHERE {where}"
            " GROUP BY agent_name ORDER BY n DESC, agent_name",
            values,
        )
        return {
            "overall": {
                "traces": row[0],
                "steps": row[1],
                "evals": evals,
                "policies": policies,
                "avgDurationMs": None if row[2] is None else round(row[2]),
                "avgDurationSample": row[3],
                "totalTokens": row[4],
                "totalCost": row[5],
            },
            "by_status": by_status,
            "by_agent": [{"agent_name": a, "count": n, "failed_or_timeout": bad} for a, n, bad in agents],
        }

    def problems(self, limit: int = 100) -> list[Problem]:
        """Journal lines that could not be folded, and gaps."""
        rows = self.connection.execute(
            "SELECT file, line, offset, kind, detail FROM journal_problems ORDER BY file, offset LIMIT ?", (limit,)
        )
        return [Problem._make(row) for row in rows]


def kept(text: str) -> str:
    """What the store made of such a text (guardhook.store.lines.clean): arguments and names of files may hold bytes that are no UTF-8."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _trace(row: tuple[object, ...]) -> Trace:
    return Trace._make(row)


def _range(trace: Trace, first: int | None, last: int | None) -> tuple[int, int]:
    base = trace.serial << schema.SHIFT
    low = 0 if first is None else max(0, min(first, schema.MAX_STEP + 1))
    high = schema.MAX_STEP if last is None else max(-1, min(last, schema.MAX_STEP))
    return base + low, base + high
