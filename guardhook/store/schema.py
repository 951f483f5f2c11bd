"""traces.db: its tables, its versions, and how it is opened.

The store is a projection of the journal (guardhook.store.project): every row can be made again, so there are no foreign keys that
could refuse one, and whatever is counted often (steps, tokens, instants) is kept beside the trace.

Ids of steps, decisions and snapshots are functions of the trace's id and the step's number and are not stored. A step's key is
its trace's serial number times 2**32 plus its step number: steps of a trace lie together and in order, windows of them are ranges.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time

from guardhook.store.errors import Corrupt, Foreign, Locked, Newer, ReadOnly, StoreError, Unusable

VERSION = 2
FILE = "traces.db"
BUSY_MS = 5000
SHIFT = 32
MAX_STEP = (1 << 31) - 1

_V1 = """
CREATE TABLE sources (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, seen TEXT NOT NULL DEFAULT '[]', problems INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE cursors (
  source INTEGER NOT NULL, folder TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, generation INTEGER NOT NULL,
  offset INTEGER NOT NULL, seq INTEGER NOT NULL, line INTEGER NOT NULL, PRIMARY KEY (source, folder)
) WITHOUT ROWID;
CREATE TABLE journal_problems (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL, offset INTEGER NOT NULL,
  kind TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE TABLE agent_traces (
  serial INTEGER PRIMARY KEY, source INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
  agent_name TEXT NOT NULL, agent_version TEXT,
  trigger TEXT NOT NULL DEFAULT 'manual' CHECK (trigger IN ('manual','user_message','cron','webhook','api','event')),
  status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running','completed','failed','timeout')),
  input TEXT NOT NULL DEFAULT '{}', output TEXT, started_at TEXT NOT NULL, ended_at TEXT,
  total_duration_ms INTEGER, total_tokens INTEGER, total_cost_usd REAL, error TEXT,
  tags TEXT NOT NULL DEFAULT '[]', metadata TEXT NOT NULL DEFAULT '{}',
  parent_trace_id TEXT, forked_from_step INTEGER, session_id TEXT, created_at TEXT NOT NULL,
  dialect TEXT, project TEXT, live INTEGER NOT NULL DEFAULT 0,
  started_us INTEGER, ended_us INTEGER, last_us INTEGER,
  step_count INTEGER NOT NULL DEFAULT 0, step_tokens INTEGER, state TEXT
);
CREATE INDEX traces_status ON agent_traces (status);
CREATE INDEX traces_agent ON agent_traces (agent_name);
CREATE INDEX traces_started ON agent_traces (started_us DESC);
CREATE INDEX traces_parent ON agent_traces (parent_trace_id);
CREATE INDEX traces_session ON agent_traces (session_id);
CREATE INDEX traces_source ON agent_traces (source);
CREATE TABLE agent_trace_steps (
  pk INTEGER PRIMARY KEY, step_number INTEGER NOT NULL,
  step_type TEXT NOT NULL CHECK (step_type IN
    ('thought','tool_call','llm_call','retrieval','output','decision','error','guard_check')),
  name TEXT NOT NULL, input TEXT NOT NULL DEFAULT '{}', output TEXT, started_at TEXT, ended_at TEXT,
  duration_ms INTEGER, tokens_used INTEGER, model TEXT, error TEXT, metadata TEXT NOT NULL DEFAULT '{}',
  parent_step_number INTEGER, caused_by_step_number INTEGER
);
CREATE TABLE agent_trace_decisions (
  pk INTEGER PRIMARY KEY, options TEXT NOT NULL DEFAULT '[]', chosen TEXT NOT NULL, rationale TEXT, confidence REAL,
  decided_by TEXT NOT NULL DEFAULT 'agent' CHECK (decided_by IN ('agent','user','policy'))
);
CREATE TABLE agent_trace_snapshots (
  pk INTEGER PRIMARY KEY, context_window TEXT NOT NULL DEFAULT '[]', environment TEXT NOT NULL DEFAULT '{}',
  tool_state TEXT NOT NULL DEFAULT '{}', token_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE agent_trace_evals (
  id TEXT PRIMARY KEY, source INTEGER NOT NULL, seq INTEGER NOT NULL, trace_id TEXT NOT NULL,
  evaluator_type TEXT NOT NULL CHECK (evaluator_type IN ('rubric','llm_judge','policy_check')),
  evaluator_name TEXT NOT NULL, score REAL NOT NULL, passed INTEGER NOT NULL, details TEXT NOT NULL DEFAULT '{}',
  evaluated_at TEXT NOT NULL
);
CREATE INDEX evals_trace ON agent_trace_evals (trace_id);
CREATE INDEX evals_source ON agent_trace_evals (source);
CREATE TABLE agent_trace_events (
  id INTEGER PRIMARY KEY, serial INTEGER NOT NULL, seq INTEGER NOT NULL, ts TEXT NOT NULL, event TEXT NOT NULL,
  native_event TEXT, before_step INTEGER NOT NULL, text TEXT, detail TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX events_trace ON agent_trace_events (serial, before_step, id);
CREATE TABLE agent_trace_runs (
  serial INTEGER NOT NULL, segment INTEGER NOT NULL, run TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
  opened_at TEXT NOT NULL, closed_at TEXT, PRIMARY KEY (serial, segment)
) WITHOUT ROWID;
"""

# Traces that are told in parts (guardhook.store.parts): what each part is, and which step.
_V2 = """
CREATE TABLE agent_trace_parts (
  serial INTEGER NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER, number INTEGER,
  within TEXT, cause TEXT, call TEXT, row TEXT, PRIMARY KEY (serial, name)
) WITHOUT ROWID;
"""

# What SQLite says of a store whose tables are not those of its version. They are made in one transaction, so somebody else changed them.
_OTHER_TABLES = ("no such table", "no such column", "has no column named", "already exists")

# Version -> statements that bring a store of the version before up to it.
MIGRATIONS: dict[int, str] = {1: _V1, 2: _V2}


def connect(path: str, *, create: bool, busy_ms: int = BUSY_MS) -> sqlite3.Connection:
    """An open store of the current schema, in WAL mode, transactions by hand (isolation_level None).

    create=False raises Unusable when the file is not there. A new file gets mode 0600, an existing one keeps its own. Raises
    Locked, Corrupt, Newer, Foreign, ReadOnly, Unusable.
    """
    if not os.path.exists(path):
        if not create:
            raise Unusable(f"{path}: there is no trace store", path)
        _make(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=busy_ms / 1000, check_same_thread=False)
    except sqlite3.Error as error:
        raise _told(error, path) from None
    try:
        connection.execute(f"PRAGMA busy_timeout={busy_ms:d}")
        if version(connection) != VERSION:
            migrate(connection, path)
        _write_ahead(connection, busy_ms)
        connection.execute("PRAGMA synchronous=NORMAL")
    except (sqlite3.Error, StoreError) as error:
        connection.close()
        if isinstance(error, StoreError):
            raise
        raise _told(error, path) from None
    return connection


def temporary() -> sqlite3.Connection:
    """An empty store of the current schema that nobody else sees and that is gone when it is closed."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    migrate(connection, "a temporary store")
    return connection


def _write_ahead(connection: sqlite3.Connection, busy_ms: int) -> None:
    """WAL mode. The switch does not wait for a lock by itself when several processes open a new store."""
    deadline = time.monotonic() + busy_ms / 1000
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def version(connection: sqlite3.Connection) -> int:
    """The schema's version, 0 for an empty file, -1 for a database of something else. Raises Corrupt."""
    try:
        row = connection.execute("SELECT MAX(version) FROM schema_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return -1 if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() else 0
    if row[0] is not None and not (isinstance(row[0], int) and row[0] > 0):
        raise Corrupt("the trace store has a version that is none")
    return row[0] or 0


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Brings a store up to VERSION in one transaction, which reads the version again: several processes may try at once."""
    _check(version(connection), path)
    connection.execute("BEGIN IMMEDIATE")
    try:
        now = version(connection)
        _check(now, path)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version"
            " (version INTEGER NOT NULL, applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))"
        )
        for number in range(now + 1, VERSION + 1):
            for statement in MIGRATIONS[number].split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute("INSERT INTO schema_version (version) VALUES (?)", (number,))
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _check(found: int, path: str) -> None:
    if found < 0:
        raise Foreign(f"{path} is an SQLite database, but not a trace store", path)
    if found > VERSION:
        raise Newer(
            f"{path} has schema version {found}, this guardhook knows versions up to {VERSION}; use the newer guardhook",
            path,
        )


def _make(path: str) -> None:
    """An empty file, ours alone, before SQLite opens it: the -wal and -shm files take its mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        kind = ReadOnly if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else Unusable
        raise kind(f"{path}: {error.strerror or error}; the folder must be writable", path) from None


def told(error: sqlite3.Error, path: str) -> StoreError:
    """An SQLite error as one of ours, with the one cause that it has. A lock is never called damage."""
    return _told(error, path)


def _told(error: sqlite3.Error, path: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Locked(f"{path} is locked by another process; try again", path)
    if code == sqlite3.SQLITE_ERROR and any(words in str(error) for words in _OTHER_TABLES):
        return Corrupt(f"{path} is damaged: {error}", path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Corrupt(f"{path} is damaged or not an SQLite database", path)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return ReadOnly(f"{path} can't be opened; the file and its folder must be writable", path)
    return Unusable(f"{path}: {error}", path)


def set_aside(path: str, stamp: str) -> str:
    """Moves a damaged store and its sidecars out of the way and gives the new path. Raises OSError."""
    aside = f"{path}.damaged-{stamp}"
    os.rename(path, aside)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    return aside
