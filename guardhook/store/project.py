"""Bringing traces.db up to date with the journal.

Per journal file the store keeps how far it was read: device, inode, generation, offset. A batch is one transaction that reads these places
again, folds on from there and writes rows and places together: several processes may do it at once, and one that is killed leaves nothing half
done. A file that is not what it was (rewritten, shorter, gone) makes its whole session be folded anew, and nothing else.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from guardhook.journal import generation, read, write
from guardhook.journal import line as journal_line
from guardhook.store import behind, fold, protocol, recorded, schema
from guardhook.store.errors import Corrupt
from guardhook.store.given import Refused
from guardhook.store.instants import micros
from guardhook.store.lines import SEQ_MOST, Entry, Place, Raw, entries
from guardhook.store.steps import millis
from guardhook.store.tables import Tables

BATCH_LINES = 5_000
BATCH_BYTES = 8 << 20
PROBLEMS_MOST = 1_000  # kept per session; more are counted
_DETAIL_CHARS = 300  # of what is kept of a problem

Progress = Callable[[int, int], None]


class Report(NamedTuple):
    """What a catch-up did."""

    lines: int
    bytes: int
    sessions: int


def catch_up(
    connection: sqlite3.Connection,
    journal_dir: str,
    *,
    progress: Progress | None = None,
    keys: Sequence[str] | None = None,
    batch_lines: int = BATCH_LINES,
    batch_bytes: int = BATCH_BYTES,
) -> Report:
    """Folds everything that the journal has and the store lacks.

    progress(done, total) is called after each batch, in bytes. keys: look at the files of these sessions only, whatever others have. Raises sqlite3.Error (nothing of the failed batch is kept), Corrupt, OSError.
    """
    _carry(connection, journal_dir, keys)
    work, total = _work(connection, journal_dir) if keys is None else (list(keys), 0)
    done = lines = sessions = 0
    gone: set[str] = set()  # traces whose files no longer tell of them
    while work or (work := _freed(connection, gone)):
        with _transaction(connection):
            batch = _Batch(connection, journal_dir, batch_lines, batch_bytes, gone)
            while work and not batch.full:
                if batch.session(work[-1]):
                    work.pop()
                    sessions += 1
            batch.tables.flush()
        done += batch.bytes
        lines += batch.lines
        if progress is not None:
            progress(min(done, total), total)
    return Report(lines, done, sessions)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it is kept, or nothing."""
    _begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _begin(connection: sqlite3.Connection) -> None:
    """Takes the write lock. While another process is catching up it is waited for, however long that takes: its work is ours."""
    reached = "SELECT COUNT(*), SUM(offset), MAX(seq) FROM cursors"
    before = connection.execute(reached).fetchone()
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            now = connection.execute(reached).fetchone()
            if now == before:
                raise
            before = now


def _carry(connection: sqlite3.Connection, journal_dir: str, keys: Sequence[str] | None) -> None:
    """Where other sessions were rewritten than a place belongs to, the place holds in the new generation as well."""
    now = generation.current(journal_dir)
    outdated = "SELECT DISTINCT generation FROM cursors WHERE generation <> ?1"
    if keys is not None:  # asked for often, while one session goes on
        outdated += " AND source IN (SELECT id FROM sources WHERE key IN (SELECT value FROM json_each(?2)))"
    for (old,) in connection.execute(outdated, (now, *([] if keys is None else [_json(keys)]))).fetchall():
        renewed = generation.renewed(journal_dir, old, now) if isinstance(old, int) else None
        if renewed is None:
            continue
        with _transaction(connection):
            connection.execute(
                "UPDATE cursors SET generation = ? WHERE generation = ? AND source NOT IN"
                " (SELECT id FROM sources WHERE key IN (SELECT value FROM json_each(?)))",
                (now, old, _json(sorted(renewed))),
            )


def _json(names: Sequence[str]) -> str:
    return msgspec.json.encode(list(names)).decode()


def _freed(connection: sqlite3.Connection, gone: set[str]) -> list[str]:
    """Keys of sessions with lines that were refused because their trace was another file's, which has it no more: they are to be read anew."""
    keys: dict[str, None] = {}
    with _transaction(connection) if gone else contextlib.nullcontext():
        for name in gone:
            if connection.execute("SELECT 1 FROM agent_traces WHERE id = ?", (name,)).fetchone() is None:
                sources = connection.execute(
                    "SELECT DISTINCT s.id, s.key FROM journal_problems p JOIN sources s ON s.id = p.source WHERE p.detail = ?",
                    (_others(name),),
                ).fetchall()
                for source, key in sources:
                    connection.execute("UPDATE cursors SET generation = -1 WHERE source = ?", (source,))
                    keys[key] = None
    gone.clear()
    return list(keys)


def _work(connection: sqlite3.Connection, journal_dir: str) -> tuple[list[str], int]:
    """Keys of sessions with news, the first one last, and how many bytes there are to read."""
    cursors = behind.known(connection)
    current = generation.current(journal_dir)
    keys: dict[str, None] = {}
    total = 0
    for folder, key, status in behind.data_files(journal_dir, packed=True):
        cursor = cursors.pop((folder, key), None)
        if cursor == (status.st_dev, status.st_ino, current, status.st_size):
            continue
        keys[key] = None
        same = (
            cursor is not None and cursor[:3] == (status.st_dev, status.st_ino, current) and cursor[3] <= status.st_size
        )
        total += status.st_size - (cursor[3] if same and cursor is not None else 0)
    for _, key in cursors:  # their files are gone
        keys[key] = None
    return list(reversed(keys)), total


class _Batch:
    """One transaction's worth of folding."""

    def __init__(self, connection: sqlite3.Connection, journal_dir: str, lines: int, size: int, gone: set[str]) -> None:
        self.db = connection
        self.gone = gone
        self.journal_dir = journal_dir
        self.tables = Tables(connection)
        self.most_lines = lines
        self.most_bytes = size
        self.lines = 0
        self.bytes = 0
        self.generation = generation.current(journal_dir)

    @property
    def full(self) -> bool:
        return self.lines >= self.most_lines or self.bytes >= self.most_bytes

    def session(self, key: str) -> bool:
        """Folds on one session, as far as the batch goes. Gives whether it is done."""
        source, seen, problems = self._source(key)
        self.tables.source, self.tables.key = source, key
        opened: list[tuple[int, Place]] = []
        unreadable: list[tuple[str, str]] = []
        try:
            opened, whole = self._open(key, source, unreadable)
            if not whole:
                self.gone.update(self.tables.forget(source))
                seen, problems = [], 0
                for _, place in opened:
                    place.offset = place.seq = place.line = 0
                    assert place.opened is not None
                    status = place.opened.status
                    place.device, place.inode, place.generation = status.st_dev, status.st_ino, self.generation
            folder = _Session(self, key, source, seen, problems)
            done = folder.run(opened)
            if done:
                self.tables.read(source)
        finally:
            for fd, _ in opened:
                os.close(fd)
        for file, why in unreadable:
            self._unreadable(source, file, why)
        if opened or unreadable:
            self._save(source, folder, [place for _, place in opened])
        else:
            self.db.execute("DELETE FROM sources WHERE id = ?", (source,))
        return done

    def _source(self, key: str) -> tuple[int, list[list[int]], int]:
        row = self.db.execute("SELECT id, seen, problems FROM sources WHERE key = ?", (key,)).fetchone()
        if row is not None:
            try:
                return row[0], msgspec.json.decode(row[1], type=list[list[int]]), row[2]
            except (msgspec.DecodeError, TypeError):
                raise Corrupt(f"{schema.FILE} is damaged: what was read of {key} can't be told") from None
        number = self.db.execute("INSERT INTO sources (key) VALUES (?)", (key,)).lastrowid
        assert number is not None
        return number, [], 0

    def _open(self, key: str, source: int, unreadable: list[tuple[str, str]]) -> tuple[list[tuple[int, Place]], bool]:
        """The session's files, and whether all that were read before are what they were."""
        before = {
            row[0]: Place(*row)
            for row in self.db.execute(
                "SELECT folder, device, inode, generation, offset, seq, line FROM cursors WHERE source = ?", (source,)
            )
        }
        opened: list[tuple[int, Place]] = []
        whole = True
        for folder in self._folders(key):
            try:
                known = read.open_known(self.journal_dir, read.SessionFile(folder, key))
            except FileNotFoundError:
                continue
            except OSError as error:  # a link, another user's file, no permission
                unreadable.append((f"{folder}/{key}{write.SUFFIX}", error.strerror or str(error)))
                continue
            if known.problem is not None:
                unreadable.append((f"{folder}/{key}{write.PACKED}", known.problem))
            status, size = known.status, os.fstat(known.fd).st_size
            place = before.pop(folder, None)
            if place is None:
                place = Place(folder, status.st_dev, status.st_ino, self.generation, 0, 0, 0)
            else:
                place.offset = known.position(place.offset)
                if (place.device, place.inode, place.generation) != (status.st_dev, status.st_ino, self.generation) or place.offset > size:  # fmt: skip
                    whole = False
            place.size, place.opened = size, known
            opened.append((known.fd, place))
        return opened, whole and not before

    def _folders(self, key: str) -> list[str]:
        return read.folders_of(self.journal_dir, key)

    def _unreadable(self, source: int, file: str, why: str) -> None:
        self.db.execute(
            "DELETE FROM journal_problems WHERE source = ? AND file = ? AND kind = 'unreadable'", (source, file)
        )
        self.db.execute(
            "INSERT INTO journal_problems (source, file, line, offset, kind, detail) VALUES (?, ?, 0, 0, 'unreadable', ?)",
            (source, file, why),
        )

    def _save(self, source: int, session: _Session, places: list[Place]) -> None:
        self.db.execute(
            "UPDATE sources SET seen = ?, problems = ? WHERE id = ?",
            (msgspec.json.encode(session.seen).decode(), session.problems, source),
        )
        self.db.executemany(
            "INSERT OR REPLACE INTO cursors (source, folder, device, inode, generation, offset, seq, line) VALUES (?,?,?,?,?,?,?,?)",
            [
                (
                    source,
                    p.folder,
                    p.device,
                    p.inode,
                    p.generation,
                    p.opened.stored(p.offset) if p.opened else p.offset,
                    p.seq,
                    p.line,
                )
                for p in places
            ],
        )


class _Session:
    """Folds the lines of one session's files."""

    def __init__(self, batch: _Batch, key: str, source: int, seen: list[list[int]], problems: int) -> None:
        self.batch = batch
        self.tables = batch.tables
        self.key = key
        self.source = source
        self.seen = seen
        self.problems = problems
        self.trace_id = fold.trace_id(key)

    def run(self, opened: list[tuple[int, Place]]) -> bool:
        """Gives whether the end of all files was reached."""
        streams = [entries(fd, place) for fd, place in opened]
        batch = self.batch
        for entry in streams[0] if len(streams) == 1 else heapq.merge(*streams, key=lambda e: e.order):
            place = entry.place
            if entry.line is None:
                self._problem(entry, "unreadable", entry.problem)
            else:
                self._line(entry, entry.line)
            place.seq = entry.order
            place.offset, place.line = entry.end, entry.number
            batch.lines += 1
            batch.bytes += entry.end - entry.offset
            if batch.full:
                return False
        return True

    def _line(self, entry: Entry, line: Raw) -> None:
        us = micros(line.ts)
        if us is None or not 0 < line.seq < SEQ_MOST:
            self._problem(entry, "unknown", "a time stamp or ticket that is none")
            return
        order = mark(self.seen, line.seq)
        if order == "again":
            self._problem(entry, "duplicate", f"ticket {line.seq} was there before")
            return
        if order == "late":
            self._problem(entry, "reordered", f"ticket {line.seq} comes late")
        try:
            self._fold(entry, line, us)
        except (sqlite3.Error, Corrupt):
            raise
        except Exception as error:  # whatever a line holds, the others are folded
            self._problem(entry, "unknown", str(error)[:_DETAIL_CHARS] or type(error).__name__)

    def _fold(self, entry: Entry, line: Raw, us: int) -> None:
        tables = self.tables
        kind, data = line.type, line.data
        if kind == journal_line.RECEIVED:
            held = tables.find(self.trace_id)
            if held is not None and held.source != self.source:
                raise Refused(_others(self.trace_id))
            state = fold.hook(tables, held.state if held else None, self.key, line.seq, line.ts, us, data)
            if held is None and state is not None and tables.find(state.id) is None:
                tables.hold(state)
        elif kind.startswith(("trace.", "fork.")):
            name = self._named(data)
            held = tables.find(name)
            if held is not None and held.source != self.source:
                raise Refused(_others(name))
            state = recorded.apply(tables, held.state if held else None, kind, line.seq, line.ts, us, data)
            if held is None and state is not None and tables.find(name) is None:
                tables.hold(state)
        elif kind.startswith("eval."):
            event = data.get("event")
            if not isinstance(event, dict):
                raise Refused("the line has no event")
            if not event.get("evaluated_at"):
                event["evaluated_at"] = millis(line.ts)
            tables.evaluation(self._named(data), line.seq, event)
        elif kind == journal_line.GAP:
            self._problem(
                entry, "gap", f"{data.get('reason')}, {data.get('bytes', data.get('lines', '?'))} bytes or lines"
            )
        elif kind != journal_line.NOTE:
            raise Refused(f"unknown type {kind[:80]}")

    def _named(self, data: dict[str, object]) -> str:
        name = data.get("trace")
        problem = protocol.id_problem(name)
        if problem is not None:
            raise Refused(problem)
        return str(name)

    def _problem(self, entry: Entry, kind: str, detail: str) -> None:
        self.problems += 1
        if self.problems > PROBLEMS_MOST:
            return
        self.batch.db.execute(
            "INSERT INTO journal_problems (source, file, line, offset, kind, detail) VALUES (?,?,?,?,?,?)",
            (self.source, f"{entry.place.folder}/{self.key}{write.SUFFIX}", entry.number, entry.offset, kind, detail),
        )


def _others(trace: str) -> str:
    """Why a line of a trace is refused that another file told of first."""
    return f"the trace {trace} belongs to another file"[:_DETAIL_CHARS]


def mark(seen: list[list[int]], seq: int) -> str:
    """Notes a ticket in a sorted list of ranges. Gives `new`, `late` (smaller than one before) or `again`."""
    if not seen or seq > seen[-1][1] + 1:
        seen.append([seq, seq])
        if len(seen) > PROBLEMS_MOST:  # a hostile file; what lies between the first two is given up
            seen[0:2] = [[seen[0][0], seen[1][1]]]
        return "new"
    if seq == seen[-1][1] + 1:
        seen[-1][1] = seq
        return "new"
    for index, (low, high) in enumerate(seen):
        if low <= seq <= high:
            return "again"
        if seq < low:
            seen.insert(index, [seq, seq])
            break
    merged: list[list[int]] = []
    for low, high in seen:
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    seen[:] = merged
    return "late"
