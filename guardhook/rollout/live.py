"""The rollout folder that is kept up to date by every command that catches up with the journal.

`<data>/rollouts.db` remembers for each folder how far each session was rendered, and for runs under way the renderer's state, so that news are appended and nothing is read
twice. It may be deleted at any time. A file that is not what was written there (changed, gone), a journal that was rewritten and a result that came after the run's end
make a run be rendered anew and its file be replaced. Two commands never do it at once: the second leaves it to the first.

Removing sessions from the journal (gc) leaves their rollouts alone: a rollout folder is what a person wanted to keep.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from guardhook.core.folders import Folders
from guardhook.journal import generation, read
from guardhook.rollout.export import Folder, lines, name_of, options_for, outside, write
from guardhook.rollout.options import Options
from guardhook.rollout.render import RENDERING, Renderer
from guardhook.rollout.runs import RunRef, of_key
from guardhook.rollout.state import State
from guardhook.store import Store
from guardhook.store.errors import NotFound, Unusable
from guardhook.store.lines import Place, entries

FILE = "rollouts.db"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS folders (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mark TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS sessions (folder INTEGER, key TEXT, mark TEXT NOT NULL, PRIMARY KEY (folder, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (folder INTEGER, run TEXT, seq INTEGER NOT NULL, saved BLOB, PRIMARY KEY (folder, run)) WITHOUT ROWID;
"""
_MARK = "SELECT COUNT(*) || ':' || TOTAL(offset) || ':' || TOTAL(inode) || ':' || TOTAL(generation) FROM cursors"
_MARKS = """
  SELECT s.key, c.folder || ':' || c.inode || ':' || c.generation || ':' || c.offset
  FROM cursors c JOIN sources s ON s.id = c.source ORDER BY s.key, c.folder
"""


# What is no single run's fault: trying the others would cost a rendering of each, at every command.
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO))

Progress = Callable[[int, int], None]


class Saved(msgspec.Struct, array_like=True):
    """A run under way: where reading of the journal goes on, what the file has, and what the renderer knows."""

    rendering: int  # of the version that wrote it
    day: str  # folder of the journal
    inode: int
    generation: int
    offset: int
    line: int
    ticket: int
    size: int  # of the rollout file without what is told only because nothing followed
    tail: int  # bytes of that
    options: dict[str, object]
    tenant: str | None
    state: State


class Report(NamedTuple):
    """What was done: files written or appended to, and problems of single runs."""

    files: int
    problems: list[str]


def sync(
    store: Store, folders: Folders, folder: str, options: Options, *, turns: bool = False, progress: Progress | None = None
) -> Report:  # fmt: skip
    """Brings a rollout folder up to date with a store that is. progress(done, total) counts sessions.

    Raises StoreError when nothing can be done at all. While another command is at it nothing is done.
    """
    path = os.path.abspath(folder)
    outside(folders, path)
    try:
        return _once(store, folders, path, options, turns, progress)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return Report(0, [])
        raise Unusable(f"{folders.data}/{FILE}: {error}", folders.data) from None
    except sqlite3.DatabaseError:  # damaged; nothing is in it that can't be made again
        try:
            os.unlink(f"{folders.data}/{FILE}")
            return _once(store, folders, path, options, turns, progress)
        except (OSError, sqlite3.Error) as error:
            raise Unusable(f"{folders.data}/{FILE}: {error}", folders.data) from None


def _once(
    store: Store, folders: Folders, path: str, options: Options, turns: bool, progress: Progress | None
) -> Report:
    db = _connect(folders)
    try:
        number = _folder(db, path + ("\0turns" if turns else ""))
        mark = f"{RENDERING}/{store.connection.execute(_MARK).fetchone()[0]}"
        known = db.execute("SELECT mark FROM folders WHERE id = ?", (number,)).fetchone()[0]
        there = os.path.isdir(path)
        if known == mark and there:
            return Report(0, [])
        try:
            Folder(path, create=True).close()
        except OSError as error:  # told once, not for every run
            raise Unusable(f"{path}: {error.strerror or error}", path) from None
        db.execute("BEGIN IMMEDIATE")
        if not there or known.partition("/")[0] != str(RENDERING):
            # Nothing is there any more, or what is there was rendered by another version.
            db.execute("DELETE FROM sessions WHERE folder = ?", (number,))
            db.execute("DELETE FROM runs WHERE folder = ?", (number,))
        report = _Sync(db, number, store, folders, path, options, turns).run(progress)
        if report.problems:
            mark = f"{RENDERING}/"
        db.execute("UPDATE folders SET mark = ? WHERE id = ?", (mark, number))
        db.execute("COMMIT")
        return report
    finally:
        db.close()


def _connect(folders: Folders) -> sqlite3.Connection:
    path = f"{folders.data}/{FILE}"
    if not os.path.lexists(path):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    elif os.path.islink(path):
        raise Unusable(f"{path} is a link", path)
    db = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    db.executescript(_SCHEMA)
    return db


def _folder(db: sqlite3.Connection, name: str) -> int:
    row = db.execute("SELECT id FROM folders WHERE path = ?", (name,)).fetchone()
    if row is None:
        db.execute("INSERT OR IGNORE INTO folders (path) VALUES (?)", (name,))
        row = db.execute("SELECT id FROM folders WHERE path = ?", (name,)).fetchone()
    return int(row[0])


class _Sync:
    def __init__(
        self, db: sqlite3.Connection, number: int, store: Store, folders: Folders, path: str, options: Options, turns: bool
    ) -> None:  # fmt: skip
        self.db, self.number, self.store, self.folders, self.path = db, number, store, folders, path
        self.options, self.turns = options, turns
        self.files = 0
        self.problems: list[str] = []
        self.full = False  # nothing more can be written to this folder

    def run(self, progress: Progress | None) -> Report:
        known = dict(self.db.execute("SELECT key, mark FROM sessions WHERE folder = ?", (self.number,)))
        there: dict[str, str] = {}
        for key, part in self.store.connection.execute(_MARKS):
            there[key] = f"{there[key]},{part}" if key in there else part
        news = [(key, mark) for key, mark in there.items() if known.get(key) != mark]
        for done, (key, mark) in enumerate(news, 1):
            if self.full:
                break
            if self._session(key, _rewritten(self.folders.journal, key, known.get(key), mark)):
                self.db.execute("INSERT OR REPLACE INTO sessions VALUES (?,?,?)", (self.number, key, mark))
            if progress is not None:
                progress(done, len(news))
        for key in known.keys() - there.keys():
            self.db.execute("DELETE FROM sessions WHERE folder = ? AND key = ?", (self.number, key))
        return Report(self.files, self.problems)

    def _session(self, key: str, anew: bool) -> bool:
        """Renders what is new of a session. Gives whether all of it could be written."""
        whole = True
        for ref in of_key(self.store, key):
            if ref.parent is not None:
                continue  # a copy that never ran
            row = self.db.execute(
                "SELECT seq, saved FROM runs WHERE folder = ? AND run = ?", (self.number, ref.run_id)
            ).fetchone()
            if row is not None and row[0] == ref.last_seq and not anew:
                continue
            try:
                saved = self._run(ref, None if anew or row is None or row[1] is None else row[1])
                blob = None if saved is None else msgspec.msgpack.encode(saved)
            except NotFound:
                continue
            except Exception as error:  # the command that was asked for goes on, and so do the other runs
                why = (
                    getattr(error, "message", None)
                    or getattr(error, "strerror", None)
                    or f"{type(error).__name__} {error}"
                )
                self.problems.append(f"{ref.run_id}: {why}")
                whole = False
                self.full = _errno(error) in _FULL
                if self.full:
                    break
                continue
            self.db.execute(
                "INSERT OR REPLACE INTO runs VALUES (?,?,?,?)", (self.number, ref.run_id, ref.last_seq, blob)
            )
        return whole

    def _run(self, ref: RunRef, raw: bytes | None) -> Saved | None:
        if self.turns:
            self.files += sum(w.changed for w in write(self.folders, ref, self.path, self.options, turns=True))
            return None
        if raw is not None:
            try:
                able, saved = self._append(ref, msgspec.msgpack.decode(raw, type=Saved))
            except msgspec.DecodeError:
                able, saved = False, None
            if able:
                return saved
        return self._anew(ref)

    def _anew(self, ref: RunRef) -> Saved | None:
        """Renders the whole run. The state is given only where going on from it will do."""
        options = options_for(self.path, name_of(ref), self.options)
        found = _reading(self.folders, ref, None)
        if found is None:
            (done,) = write(self.folders, ref, self.path, options)
            self.files += done.changed
            return None
        fd, place, reached = found
        renderer = Renderer(ref, options)
        sizes = [0, 0]  # of what stays, of what is told because nothing follows

        def rendered() -> Iterator[bytes]:
            for entry in entries(fd, place):
                place.offset, place.line = entry.end, entry.number
                for raw in lines(renderer.feed(entry.line)) if entry.line is not None else ():
                    sizes[0] += len(raw)
                    yield raw
            for raw in lines(renderer.finish()):
                sizes[1] += len(raw)
                yield raw

        try:
            with Folder(self.path, create=True) as target:
                done = target.put(name_of(ref), rendered())
        finally:
            os.close(fd)
        self.files += done.changed
        if not renderer.incremental or renderer.state.ending is not None:
            return None
        return Saved(
            RENDERING, place.folder, place.inode, reached, place.offset, place.line, renderer.state.ticket, sizes[0], sizes[1], options.told(),
            options.tenant_id, renderer.state,
        )  # fmt: skip

    def _append(self, ref: RunRef, saved: Saved) -> tuple[bool, Saved | None]:
        """Appends what is new. Gives whether that was possible (file and journal are what they were), and where it stands now."""
        found = _reading(self.folders, ref, saved) if saved.rendering == RENDERING else None
        if found is None:
            return False, None
        fd, place, _ = found
        renderer = Renderer(ref, self.options.kept(saved.options, saved.tenant), saved.state)
        parts: list[bytes] = []
        try:
            for entry in entries(fd, place):
                place.offset, place.line = entry.end, entry.number
                if entry.line is not None:
                    parts.extend(lines(renderer.feed(entry.line)))
        finally:
            os.close(fd)
        if not renderer.incremental:
            return False, None
        body = b"".join(parts)
        tail = b"".join(lines(renderer.finish()))
        try:
            with Folder(self.path) as target, target.opened(name_of(ref), os.O_RDWR) as out:
                if os.fstat(out).st_size != saved.size + saved.tail:
                    return False, None
                if saved.tail:
                    os.ftruncate(out, saved.size)
                _write(out, body + tail, saved.size)
        except FileNotFoundError:
            return False, None
        self.files += 1
        if renderer.state.ending is not None:
            return True, None
        return True, msgspec.structs.replace(
            saved, offset=place.offset, line=place.line, ticket=renderer.state.ticket, size=saved.size + len(body), tail=len(tail),
            state=renderer.state,
        )  # fmt: skip


def _errno(error: BaseException) -> int | None:
    found = error if isinstance(error, OSError) else error.__cause__ or error.__context__
    return found.errno if isinstance(found, OSError) else None


def _reading(folders: Folders, ref: RunRef, saved: Saved | None) -> tuple[int, Place, int] | None:
    """The run's journal file and where to go on in it; None when it is not where, or not what, it was."""
    day = ref.day if saved is None else saved.day
    now = generation.current(folders.journal)
    try:
        fd = read.open_session(folders.journal, read.SessionFile(day, ref.key))
    except FileNotFoundError:
        return None
    status = os.fstat(fd)
    place = Place(day, status.st_dev, status.st_ino, now, 0, 0, 0)
    place.size = status.st_size
    if saved is None:
        mine = any(e.line is not None and e.line.data.get("run") == ref.run_id for e in entries(fd, place))
    else:
        mine = (
            saved.inode == status.st_ino
            and generation.stands(folders.journal, ref.key, saved.generation, now)
            and saved.offset <= status.st_size
        )
        place.offset, place.line, place.seq = saved.offset, saved.line, saved.ticket
    if not mine:
        os.close(fd)
        return None
    return fd, place, now


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, at)
        view, at = view[done:], at + done


def _rewritten(journal: str, key: str, before: str | None, now: str) -> bool:
    """Whether a file that was read is not what it was: another one, rewritten in its place, or shorter."""
    if before is None:
        return False
    new = {part.split(":")[0]: part.split(":")[1:] for part in now.split(",")}
    for part in before.split(","):
        day, *old = part.split(":")
        found = new.get(day)
        if found is None or found[0] != old[0] or int(found[2]) < int(old[2]):
            return True
        if not generation.stands(journal, key, int(old[1]), int(found[1])):
            return True
    return False
