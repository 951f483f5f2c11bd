"""An existing agent-replay store (`traces.db`, schema versions 1 to 5): traces with their steps, decisions, snapshots, evaluations and forks.

The store is never written to. SQLite itself would make files beside it, so it is opened as immutable; where changes still wait in a write-ahead log
or a rollback journal, a private copy of both is opened instead. Its policies become a file of the user's own (guardhook.intake.agent_replay_policies).
Traces keep their ids, so that forks stay forks of the same traces.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from urllib.parse import quote

from guardhook.core.folders import Folders
from guardhook.core.jsontext import PayloadError, loads_text
from guardhook.intake.imports import Counts, Event, Identity, ImportFailed, Run
from guardhook.intake.recording import project_of
from guardhook.intake.records import open_file
from guardhook.store import protocol
from guardhook.store.instants import micros
from guardhook.store.model import EVALUATORS, STATUSES, STEP_TYPES
from guardhook.store.schema import MAX_STEP

NAME = "agent-replay"
NEWEST = 5
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-journal")
_VALUE_BYTES = 256 << 20
_TABLES = ("agent_traces", "agent_trace_steps")
_TRACE = (
    "id", "agent_name", "agent_version", "trigger", "status", "input", "output", "started_at", "ended_at", "total_duration_ms",
    "total_tokens", "total_cost_usd", "error", "tags", "metadata", "parent_trace_id", "forked_from_step", "created_at", "session_id",
)  # fmt: skip
_STEP = (
    "step_number", "step_type", "name", "input", "output", "started_at", "ended_at", "duration_ms", "tokens_used", "model", "error",
    "metadata", "parent_step_number", "caused_by_step_number",
)  # fmt: skip
_DECISION = ("options", "chosen", "rationale", "confidence", "decided_by")
_SNAPSHOT = ("context_window", "environment", "tool_state", "token_count")
_EVAL = ("id", "evaluator_type", "evaluator_name", "score", "passed", "details", "evaluated_at")
Row = dict[str, object]


def detect(path: str, head: bytes) -> bool:
    """An SQLite file with the tables of traces, or one that bears the store's name."""
    return head.startswith(_MAGIC) and (b"agent_traces" in head or os.path.basename(path) == "traces.db")


def files(path: str) -> list[str]:
    """A write-ahead log or rollback journal that holds something."""
    return [path + end for end in _BESIDE if _size(path + end)]


def read(path: str, fd: int, counts: Counts) -> Iterator[Run]:
    """The store's traces, the oldest first. Raises ImportFailed."""
    before = _state(path, fd)
    with opened(path, fd) as db:
        columns = {name: _columns(db, name) for name in _TABLES_ALL}
        file = os.path.basename(path)
        try:
            _strays(db, columns, file, counts)
            for row in _rows(db, "agent_traces", _TRACE, columns, "ORDER BY rowid"):
                counts.read += 1
                run = _run(db, row, columns, file, counts)
                if run is not None:
                    counts.imported += 1
                    yield run
        except sqlite3.Error as error:
            raise ImportFailed(_told(error)) from None
    if _state(path, fd) != before:
        counts.note(file, 0, "the store was written to meanwhile; import it again (--replace) when nothing uses it")


def beside(path: str, fd: int, folders: Folders, dry_run: bool) -> list[str]:
    """Writes the store's policies into a file of the user's. Gives what was done, for a person."""
    from guardhook.intake import agent_replay_policies

    with opened(path, fd) as db:
        try:
            if not _columns(db, "guardrail_policies"):
                return []
            names = agent_replay_policies.COLUMNS
            rows = list(_rows(db, "guardrail_policies", names, {"guardrail_policies": _columns(db, "guardrail_policies")}, "ORDER BY rowid"))  # fmt: skip
        except sqlite3.Error as error:
            raise ImportFailed(_told(error)) from None
    return agent_replay_policies.take(rows, folders, dry_run)


# --- opening ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: str, fd: int) -> Iterator[sqlite3.Connection]:
    """The store, checked: not damaged, of a version that is known, its tables tables. Raises ImportFailed, OSError."""
    with contextlib.ExitStack() as stack:
        if files(path):
            target = f"file:{quote(stack.enter_context(_copied(path, fd)))}?mode=rw"
        else:
            target = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
        try:
            db = sqlite3.connect(target, uri=True, isolation_level=None)
            stack.callback(db.close)
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
            for pragma in (
                "trusted_schema=OFF",
                "cell_size_check=ON",
                "ignore_check_constraints=ON",
                "query_only=ON",
                "mmap_size=0",
            ):
                db.execute(f"PRAGMA {pragma}")
            _check(db)
        except sqlite3.Error as error:
            raise ImportFailed(_told(error)) from None
        yield db


@contextlib.contextmanager
def _copied(path: str, fd: int) -> Iterator[str]:
    """A private copy of the store and what waits beside it."""
    folder = tempfile.mkdtemp(prefix="guardhook-import-")
    try:
        copy = f"{folder}/traces.db"
        for attempt in range(3):
            before = _state(path, fd)
            with open(copy, "wb") as out, os.fdopen(os.dup(fd), "rb") as source:
                source.seek(0)
                shutil.copyfileobj(source, out, 1 << 20)
            for end in _BESIDE:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(copy + end)
                if _size(path + end):
                    with os.fdopen(open_file(path + end), "rb") as source, open(copy + end, "wb") as out:
                        shutil.copyfileobj(source, out, 1 << 20)
            if _state(path, fd) == before:
                break
            if attempt == 2:
                raise ImportFailed("it is being written to; import it when nothing uses it")
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _state(path: str, fd: int) -> list[tuple[int, int]]:
    """By which a change is told."""
    found = [os.fstat(fd)]
    for end in _BESIDE:
        with contextlib.suppress(OSError):
            found.append(os.lstat(path + end))
    return [(s.st_size, s.st_mtime_ns) for s in found]


def _check(db: sqlite3.Connection) -> None:
    unused = _without_functions(db)
    problem = db.execute("PRAGMA quick_check(1)").fetchone()
    told = [] if problem is None else str(problem[0]).splitlines()
    faults = [
        line for line in told if line != "ok" and not (unused and (line.startswith("***") or "never used" in line))
    ]
    if faults or not told:
        raise ImportFailed(f"damaged: {' '.join(faults)}")
    # SQLite does not tell capitals from small letters in names.
    kinds = {
        str(n).lower(): (str(t), str(sql)) for n, t, sql in db.execute("SELECT name, type, sql FROM sqlite_master")
    }
    if "cursors" in kinds and "sources" in kinds:
        raise ImportFailed(
            "a store of guardhook itself; it is made from a journal: use `guardhook export` and `ingest`"
        )
    for name in _TABLES:
        if name not in kinds:
            raise ImportFailed(f"no agent-replay store: there is no table {name}")
    for name, (kind, sql) in kinds.items():
        if name in _TABLES_ALL and (kind != "table" or not sql.upper().startswith("CREATE TABLE")):
            raise ImportFailed(f"{name} is no ordinary table")
    if "schema_version" not in kinds:
        raise ImportFailed("no agent-replay store: there is no table schema_version")
    version = db.execute("SELECT MAX(version) FROM schema_version").fetchone()[0]
    if type(version) is not int or version < 1:
        raise ImportFailed("no agent-replay store: its schema version is unknown")
    if version > NEWEST:
        raise ImportFailed(f"schema version {version} is newer than the newest that is known ({NEWEST}); nothing was read")  # fmt: skip


def _without_functions(db: sqlite3.Connection) -> bool:
    """Lets SQLite pass over indexes that need functions which a schema of others may not call; gives whether there are any.

    Stores from version 3 on have such ones, over parts of JSON and over a function of agent-replay's own. Their pages then look unused.
    """
    try:
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        return False
    except sqlite3.DatabaseError as error:
        if "unsafe use of" not in str(error):
            raise
    db.execute("PRAGMA writable_schema=ON")  # reads on over what it can't use; nothing is written (query_only)
    return True


def _told(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"damaged or not an SQLite database ({error})"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "locked by another process; try again"
    return f"can't be read: {error}"


# --- rows ------------------------------------------------------------------------------------------------------------

_TABLES_ALL = (*_TABLES, "agent_trace_decisions", "agent_trace_snapshots", "agent_trace_evals", "guardrail_policies", "schema_version")  # fmt: skip


def _columns(db: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns of a table, none when there is no such table: earlier versions have fewer."""
    return frozenset(str(row[1]) for row in db.execute(f"PRAGMA table_info({table})"))


def _rows(
    db: sqlite3.Connection, table: str, wanted: tuple[str, ...], columns: dict[str, frozenset[str]], rest: str, *values: object, prefix: str = ""
) -> Iterator[Row]:  # fmt: skip
    """Rows as dicts; what the table lacks is None."""
    known = [name for name in wanted if name in columns[table]]
    names = ", ".join(prefix + name for name in known)
    empty: Row = dict.fromkeys(wanted)
    for row in db.execute(f"SELECT {names} FROM {table} {rest}", values):
        yield {**empty, **_named(known, row)}


def _named(names: list[str], row: tuple[object, ...]) -> Row:
    """A row with its names; bytes where text belongs are read as text, and numbers without end are none."""
    return {name: _usable(value) for name, value in zip(names, row, strict=True)}


def _usable(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _strays(db: sqlite3.Connection, columns: dict[str, frozenset[str]], file: str, counts: Counts) -> None:
    """Rows that belong to nothing are told."""
    sql = "SELECT COUNT(*) FROM agent_trace_steps WHERE trace_id NOT IN (SELECT id FROM agent_traces)"
    number = db.execute(sql).fetchone()[0]
    if number:
        counts.note(file, 0, f"{number} step(s) belong to no trace and are left out")


def _run(db: sqlite3.Connection, row: Row, columns: dict[str, frozenset[str]], file: str, counts: Counts) -> Run | None:
    name = row["id"]
    if protocol.id_problem(name) is not None:
        counts.bad(file, 0, f"a trace with an id that can't be used: {name!r}")
        return None
    trace = str(name)
    metadata = _json(row["metadata"], {})
    kept: Row = metadata if isinstance(metadata, dict) else {"value": metadata}
    cwd, dialect = kept.get("cwd"), kept.get("dialect")
    tags = _json(row["tags"], [])
    session = _plain(row["session_id"])
    status = row["status"]
    if status not in STATUSES:
        counts.note(file, 0, f"{trace}: unknown status {status!r}")
        counts.mended += 1
        status = "failed"
    start: Row = {
        "verbatim": True,
        "agent_name": _plain(row["agent_name"]) or "agent",
        "agent_version": _plain(row["agent_version"]),
        "trigger": row["trigger"],
        "status": status,
        "input": _json(row["input"], {}),
        "output": _json(row["output"], None),
        "started_at": _plain(row["started_at"]),
        "ended_at": _plain(row["ended_at"]),
        "total_duration_ms": row["total_duration_ms"],
        "total_tokens": row["total_tokens"],
        "total_cost_usd": row["total_cost_usd"],
        "error": _plain(row["error"]),
        "tags": [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        "metadata": {**kept, "source_format": kept.get("source_format", NAME), "imported_from": NAME},
        "session_id": session,
        "created_at": _plain(row["created_at"]),
        "dialect": dialect if isinstance(dialect, str) and len(dialect) <= 40 else None,
        "project": project_of(cwd) if isinstance(cwd, str) else None,
    }
    parent = row["parent_trace_id"]
    if parent is not None and protocol.id_problem(parent) is None:
        start["parent_trace_id"] = parent
        start["forked_from_step"] = row["forked_from_step"]
    began = micros(_plain(row["started_at"]))
    start = {k: v for k, v in start.items() if v is not None}
    return Run(Identity(NAME, session, file, trace), start, _events(db, trace, columns, file, counts), began)


def _events(
    db: sqlite3.Connection, trace: str, columns: dict[str, frozenset[str]], file: str, counts: Counts
) -> Iterator[Event]:
    """Steps, then what is attached to them, then evaluations. Raises ImportFailed."""
    try:
        for row in _rows(db, "agent_trace_steps", _STEP, columns, "WHERE trace_id = ? ORDER BY step_number", trace):
            counts.read += 1
            event = _step(row)
            problem = _problem(row)
            if problem is not None:
                counts.bad(file, 0, f"{trace}: a step is left out: {problem}")
                continue
            counts.imported += 1
            counts.steps += 1
            yield Event("trace.step", event, micros(_plain(row["started_at"])))
        for table, wanted, kind in (
            ("agent_trace_decisions", _DECISION, "decision"),
            ("agent_trace_snapshots", _SNAPSHOT, "snapshot"),
        ):
            if columns[table]:
                yield from _attached(db, trace, table, wanted, kind, columns, file, counts)
        if columns["agent_trace_evals"]:
            for row in _rows(db, "agent_trace_evals", _EVAL, columns, "WHERE trace_id = ? ORDER BY rowid", trace):
                counts.read += 1
                if row["evaluator_type"] not in EVALUATORS or not row["evaluator_name"] or protocol.cost(row["score"]) is None:  # fmt: skip
                    counts.bad(file, 0, f"{trace}: an evaluation without a known type, a name and a score")
                    continue
                counts.imported += 1
                row["passed"] = bool(row["passed"])
                row["details"] = _json(row["details"], {})
                row["evaluator_name"] = str(row["evaluator_name"])
                yield Event("eval.result", row, micros(_plain(row["evaluated_at"])))
    except sqlite3.Error as error:
        raise ImportFailed(_told(error)) from None


def _attached(
    db: sqlite3.Connection, trace: str, table: str, wanted: tuple[str, ...], kind: str, columns: dict[str, frozenset[str]],
    file: str, counts: Counts,
) -> Iterator[Event]:  # fmt: skip
    """Decisions or snapshots of a trace's steps."""
    known = [name for name in wanted if name in columns[table]]
    sql = (
        f"SELECT s.step_number, {', '.join('a.' + name for name in known)} FROM agent_trace_steps s"
        f" JOIN {table} a ON a.step_id = s.id WHERE s.trace_id = ? ORDER BY s.step_number, a.rowid"
    )
    for number, *values in db.execute(sql, (trace,)):
        counts.read += 1
        row = _named(known, tuple(values))
        event: Row = {"step_number": number}
        if kind == "decision":
            event.update({k: _json(v, []) if k == "options" else v for k, v in row.items()})
            problem = _number_problem(number) or protocol.decision_problem(event)
        else:
            event["context_window"] = _json(row.get("context_window"), row.get("context_window"))
            event.update({name: _json(row.get(name), {}) for name in ("environment", "tool_state")})
            event["token_count"] = row.get("token_count")
            problem = _number_problem(number)
        if problem is not None:
            counts.bad(file, 0, f"{trace}: the {kind} of step {number} is left out: {problem}")
            continue
        counts.imported += 1
        yield Event(f"trace.{kind}", event, None)


def _step(row: Row) -> Row:
    event: Row = {"verbatim": True, "ended_at": _plain(row["ended_at"])}
    metadata = _json(row["metadata"], {})
    given: Row = {
        "step_number": row["step_number"],
        "step_type": row["step_type"],
        "name": _plain(row["name"]),
        "input": _json(row["input"], {}),
        "output": _json(row["output"], None),
        "started_at": _plain(row["started_at"]),
        "duration_ms": row["duration_ms"],
        "tokens_used": row["tokens_used"],
        "model": _plain(row["model"]),
        "error": _plain(row["error"]),
        "metadata": metadata if isinstance(metadata, dict) else {"value": metadata},
        "parent_step": row["parent_step_number"],
        "caused_by_step": row["caused_by_step_number"],
    }
    event.update({k: v for k, v in given.items() if v is not None})
    return event


def _problem(row: Row) -> str | None:
    if row["step_type"] not in STEP_TYPES:
        return f"step {row['step_number']} has the unknown type {row['step_type']!r}"
    if not _plain(row["name"]):
        return f"step {row['step_number']} has no name"
    return _number_problem(row["step_number"])


def _number_problem(number: object) -> str | None:
    return None if type(number) is int and 1 <= number <= MAX_STEP else f"{number!r} is no step number"


def _json(text: object, otherwise: object) -> object:
    """The value of a JSON column; otherwise when it is absent or no JSON."""
    if not isinstance(text, str):
        return otherwise if text is None else text
    try:
        return loads_text(text, bounded=False)
    except PayloadError:
        return otherwise


def _plain(value: object) -> str | None:
    """The value of a text column."""
    return value if isinstance(value, str) else protocol.plain(value)
