"""Appending to the journal: one line, one write, under the session's lock.

Layout below the journal folder: `heads/<key>` (one head record per session, the lock) and `<YYYY-MM-DD>/<key>.jsonl`. A session's file
lies under the day on which its current segment was opened, so that a run is never split; a segment opened on a later day starts a file there.

Order of steps, chosen so that a process killed anywhere loses and doubles nothing:
1. lock the head; 2. append to the data file with one write; 3. write the head, with the data file's new size; 4. remove drained spool files.
Killed between 2 and 3: the sizes differ, and the next writer derives the head from the file's tail. Killed between 3 and 4: the head
names the spool entries that are in the file already. When the journal can't be written (locked, read-only, full, not ours), the entry
waits in `<data>/spool/<key>/` and the next writers take it in. Nothing is synced: a killed process loses nothing, a power failure may lose the last lines.
"""

from __future__ import annotations

import posix
import time
from _blake2 import blake2b

from guardhook.core import limits
from guardhook.core.jsontext import PayloadError, dumps, loads
from guardhook.journal import files, line

HEADS = "heads"
SUFFIX = ".jsonl"
PACKED = SUFFIX + ".gz"  # of a session that was silent for long (guardhook.journal.pack)
_HEAD_BYTES = 64 * 1024

# State of a session's current segment. FRESH: segment 1, which nothing has opened yet (late events of an unknown session).
FRESH, OPEN, CLOSED = "fresh", "open", "closed"


class Record:
    """What a caller wants kept.

    ts is nanoseconds since the epoch. session is the harness's id or None (then the harness process stands in for it). root is the
    project root as seen now; the first one given for a session is pinned. opens: opens a segment when none is open. closes: ends it.
    data is JSON, already redacted; keys of line.WRITER_KEYS in it are dropped.
    """

    __slots__ = ("closes", "cwd", "data", "dialect", "opens", "root", "session", "ts", "type")

    def __init__(
        self,
        type: str,
        ts: int,
        dialect: str,
        session: str | None,
        cwd: str | None,
        root: str | None,
        opens: bool,
        closes: bool,
        data: dict[str, object],
    ) -> None:
        self.type = type
        self.ts = ts
        self.dialect = dialect
        self.session = session
        self.cwd = cwd
        self.root = root
        self.opens = opens
        self.closes = closes
        self.data = data


class Outcome:
    """What became of a record. state: `recorded` (in the journal), `spooled` (safe, taken in later), `nowhere` (lost).

    seq and run are known when recorded, and whether the line opened or closed the run; note says in a few words why it was not recorded, or what was
    unusual.
    """

    __slots__ = ("closed", "note", "opened", "run", "seq", "state")

    def __init__(self, state: str, seq: int | None = None, run: str | None = None, note: str | None = None) -> None:
        self.state = state
        self.seq = seq
        self.run = run
        self.note = note
        self.opened = False
        self.closed = False

    def __repr__(self) -> str:
        return f"Outcome({self.state!r}, seq={self.seq}, run={self.run!r}, note={self.note!r})"


class Head:
    """The head record of a session: where its file is and what comes next."""

    __slots__ = ("day", "drained", "root", "segment", "seq", "size", "state")

    def __init__(self) -> None:
        self.segment = 1
        self.state = FRESH
        self.day = ""  # folder of the current file, "" before the first line
        self.seq = 1  # the next ticket
        self.size = 0  # of the current file
        self.root: str | None = None
        self.drained: list[str] = []  # spool entries that are in the journal but may not be removed yet


def render_head(head: Head) -> bytes:
    """One line and its digest. Shorter lines may overwrite longer ones: what follows the first line feed means nothing."""
    text = dumps(
        {
            "v": line.VERSION,
            "segment": head.segment,
            "state": head.state,
            "day": head.day,
            "seq": head.seq,
            "size": head.size,
            "root": head.root,
            "drained": head.drained,
        }
    ).encode("ascii")
    return text + b" " + blake2b(text, digest_size=8).hexdigest().encode("ascii") + b"\n"


def parse_head(raw: bytes) -> Head | None:
    """The head in these bytes; None when they are none (empty, torn, another version)."""
    text, feed, _ = raw.partition(b"\n")
    text, _, digest = text.rpartition(b" ")
    if not feed or blake2b(text, digest_size=8).hexdigest().encode("ascii") != digest:
        return None
    try:
        value = loads(text)
    except PayloadError:
        return None
    if not isinstance(value, dict) or value.get("v") != line.VERSION:
        return None
    head = Head()
    try:
        head.segment = int(value["segment"])
        head.state = str(value["state"])
        head.day = str(value["day"])
        head.seq = int(value["seq"])
        head.size = int(value["size"])
        head.root = value["root"]
        head.drained = list(value["drained"])
    except (KeyError, TypeError, ValueError):
        return None
    return head


def names(dialect: str | None, session: str | None, cwd: str | None) -> tuple[str, str]:
    """Dialect and session as the key uses them. Without a session id the harness process and the folder stand in."""
    if session:
        return dialect or "unknown", session
    from guardhook.journal.process import stand_in

    return dialect or "unknown", stand_in(cwd)


def peek(journal_dir: str, dialect: str, session: str | None, cwd: str | None) -> Head | None:
    """The session's head as it is now, read without the lock; None for a session that is new or unreadable. Never raises OSError."""
    name = line.key(*names(dialect, session, cwd))
    opened: list[int] = []
    try:
        opened.append(files.open_folder(journal_dir))
        opened.append(files.open_folder(HEADS, opened[0]))
        opened.append(files.open_file(name, opened[1], posix.O_RDONLY))
        return parse_head(posix.read(opened[2], _HEAD_BYTES))
    except OSError:
        return None
    finally:
        for fd in opened:
            posix.close(fd)


def append(journal_dir: str, record: Record, *, budget: float) -> Outcome:
    """Puts the record into the journal, else into the spool. budget is the most seconds to wait for the lock. Never raises OSError."""
    dialect, session = names(record.dialect, record.session, record.cwd)
    name = line.key(dialect, session)
    deadline = time.monotonic() + budget
    note = None
    try:
        rest = line.body(record.data)
        if len(rest) > limits.RECORD_BYTES:
            from guardhook.journal.fit import squeeze

            rest = line.body(squeeze(record.data, limits.RECORD_BYTES))
    except Exception as error:  # whatever the value is, the event itself must be on record
        note = f"the data could not be written as JSON ({type(error).__name__})"
        kept = {k: v for k, v in record.data.items() if v is None or isinstance(v, (str, bool))}
        rest = line.body({**kept, "payload": {}, "redacted": [], "cut": [""], "failed": note})
    session_ = Session(journal_dir, name, dialect, session)
    try:
        try:
            session_.lock(deadline)
            seq, run = session_.write(record, rest)
        except OSError as error:
            from guardhook.journal import spool

            session_.close()
            why = f"{error.strerror or error}"
            try:
                spool.put(spool.folder_of(journal_dir), name, dialect, session, record, rest)
            except OSError as second:
                return Outcome("nowhere", note=f"{why}; spool: {second.strerror or second}")
            return Outcome("spooled", run=None, note=why)
        session_.finish()
    finally:
        session_.close()
    if time.monotonic() < deadline:
        _help_others(journal_dir, name)
    outcome = Outcome("recorded", seq, run, note)
    outcome.opened, outcome.closed = session_.opened, session_.closed
    return outcome


def _help_others(journal_dir: str, name: str) -> None:
    """Takes in what waits for sessions that may never write again. Free when there is no spool folder."""
    parent = journal_dir.rpartition("/")[0]
    try:
        posix.stat(parent + "/spool", follow_symlinks=False)
    except OSError:
        return
    from guardhook.journal import spool

    spool.help_others(journal_dir, name)


class Session:
    """The locked files of one session. Use: lock, write or drain, finish; close in any case."""

    def __init__(self, journal_dir: str, name: str, dialect: str, session: str) -> None:
        self.journal_dir = journal_dir
        self.name = name
        self.dialect = dialect
        self.session = session
        self.head = Head()
        self._fds: list[int] = []
        self._root = -1
        self._lock = -1
        self.opened = self.closed = False  # whether the last line that was written opened or closed a run

    def close(self) -> None:
        """Lets go of the lock and all descriptors. May be called twice."""
        while self._fds:
            posix.close(self._fds.pop())

    def lock(self, deadline: float) -> None:
        """Locks and reads the head. deadline is a time.monotonic value. Raises TimeoutError, OSError."""
        self._root = files.open_root(self.journal_dir)
        self._fds.append(self._root)
        heads = files.open_folder(HEADS, self._root, create=True)
        self._fds.append(heads)
        while True:
            fd = files.open_file(self.name, heads, posix.O_RDWR, create=True)
            self._fds.append(fd)
            files.lock(fd, deadline, "the journal is locked")
            # Whoever removes a head does it under the lock: a head without a name is not the session's any more.
            if posix.fstat(fd).st_nlink == 1:
                break
            posix.close(self._fds.pop())
        self._lock = fd
        raw = posix.read(fd, _HEAD_BYTES)
        head = parse_head(raw)
        if head is None:
            from guardhook.journal import recover

            head = recover.search(self._root, self.name)
        self.head = head

    def write(self, record: Record, rest: str) -> tuple[int, str]:
        """Appends the record, after what waits for this session in the spool. Gives seq and run. Raises OSError with nothing written."""
        from_spool = _waiting(self.journal_dir, self.name)
        entries: list[tuple[Record, str, str | None]] = []
        if from_spool is not None:
            from guardhook.journal import spool

            entries = spool.take(from_spool, self.head)
        else:
            self.head.drained = []
        return self._append([*entries, (record, rest, None)])

    def drain(self, entries: list[tuple[Record, str, str | None]]) -> None:
        """Appends spool entries only."""
        self._append(entries)

    def _append(self, entries: list[tuple[Record, str, str | None]]) -> tuple[int, str]:
        """Appends to the file of the current segment, and from the first entry on that opens another one, to that one's."""
        state = self.head.state
        for index, (record, _, _) in enumerate(entries):
            if record.opens:
                if state == CLOSED:
                    if index:
                        self._append_to(self.head.day or line.day(entries[0][0].ts), entries[:index])
                        return self._append(entries[index:])
                    return self._append_to(line.day(record.ts), entries[:1], entries[1:])
                state = OPEN
            if record.closes:
                state = CLOSED
        # A run is never split over files, so the folder changes only with a segment (and before the first line).
        return self._append_to(self.head.day or line.day(entries[-1][0].ts), entries)

    def _append_to(
        self,
        day: str,
        entries: list[tuple[Record, str, str | None]],
        later: list[tuple[Record, str, str | None]] | None = None,
    ) -> tuple[int, str]:
        head = self.head
        folder = files.open_folder(day, self._root, create=True)
        self._fds.append(folder)
        fd = files.open_file(self.name + SUFFIX, folder, posix.O_RDWR | posix.O_APPEND, create=True)
        self._fds.append(fd)
        size = posix.fstat(fd).st_size
        gap: dict[str, object] | None = None
        torn = False
        if size != (head.size if day == head.day else 0):
            from guardhook.journal import recover

            gap, torn = recover.catch_up(head, fd, size, same_file=day == head.day)
        if day != head.day:
            # First the head says where the session goes on: a line whose writer is killed must be found there.
            head.day, head.size = day, 0 if gap else size
            posix.pwrite(self._lock, render_head(head), 0)
        chunks: list[bytes] = []
        if gap is not None:
            chunks.append(b"\n" if torn else b"")
            chunks.append(line.build(entries[-1][0].ts, head.seq, line.GAP, self._own(head), line.body(gap)))
            head.seq += 1
        seq, run, drained = 0, "", list(head.drained)
        for record, rest, waited in entries:
            if waited is not None and waited in drained:
                continue
            seq = head.seq
            own = self._own(head, record, waited)
            if waited is not None:
                drained.append(waited)
            chunks.append(line.build(record.ts, seq, record.type, own, rest))
            run = str(own["run"])
            self.opened, self.closed = "opens" in own, "closes" in own
            head.seq += 1
        data = b"".join(chunks)
        _write_all(fd, data, size)
        head.size, head.drained = size + len(data), drained
        try:
            posix.pwrite(self._lock, render_head(head), 0)
        except OSError:
            pass  # the line is in the file; the next writer sees that the sizes differ
        return self._append(later) if later else (seq, run)

    def _own(self, head: Head, record: Record | None = None, waited: str | None = None) -> dict[str, object]:
        """The writer's part of data, and the head moved on by this record. root comes last: `recover` reads what precedes it."""
        own: dict[str, object] = {"v": line.VERSION, "run": "", "segment": 0}
        if record is not None:
            if head.root is None:
                head.root = record.root
            if record.opens and head.state != OPEN:
                head.segment += head.state == CLOSED
                head.state = OPEN
                own["opens"] = True
            if record.closes:
                head.state = CLOSED
                own["closes"] = True
        own["run"] = line.run_id(self.dialect, self.session, head.segment)
        own["segment"] = head.segment
        if waited is not None:
            own["spool"] = waited
        own["root"] = head.root
        return own

    def finish(self) -> None:
        """Removes drained spool files, now that the head names them."""
        if self.head.drained:
            from guardhook.journal import spool

            spool.discard(spool.folder_of(self.journal_dir), self.name, self.head.drained)


def _waiting(journal_dir: str, name: str) -> str | None:
    """The session's spool folder when there is one."""
    path = f"{journal_dir.rpartition('/')[0]}/spool/{name}"
    try:
        posix.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return path


def _write_all(fd: int, data: bytes, size: int) -> None:
    """One write; a short one is taken back by cutting the file to its old size. Raises OSError."""
    try:
        written = posix.write(fd, data)
        if written == len(data):
            return
        failure = OSError(None, f"only {written} of {len(data)} bytes could be written")
    except OSError as error:
        failure = error
    try:
        posix.ftruncate(fd, size)
    except OSError:
        pass  # the next writer finds the unfinished line and marks it
    raise failure
