"""The spool: entries that could not be appended wait in `<data>/spool/<key>/`, one file each, until a writer takes them in.

An entry is written under a name that starts with a dot and then renamed, so that what has a plain name is whole. It keeps its own
time; its id (the file name) goes into the line's data, and into the head until the file is gone, so that it is taken in exactly once.
"""

from __future__ import annotations

import posix
import time

from guardhook.core.jsontext import PayloadError, dumps, loads
from guardhook.journal import files, line, write

# What one hook takes in for its own session, and for another one.
ENTRIES = 8
BYTES = 1024 * 1024
OTHER_SESSIONS = 2
DAMAGED = ".bad"

Entry = tuple[write.Record, str, "str | None"]


def folder_of(journal_dir: str) -> str:
    """The spool folder that belongs to a journal folder."""
    return journal_dir.rpartition("/")[0] + "/spool"


def put(folder: str, name: str, dialect: str, session: str, record: write.Record, rest: str) -> None:
    """Keeps a record for later. dialect and session are the parts of the key; rest is what line.body gave. Raises OSError."""
    ident = f"{max(record.ts, 0):020d}-{posix.getpid()}-{time.monotonic_ns():x}"
    meta = {
        "v": line.VERSION,
        "ts": record.ts,
        "type": record.type,
        "dialect": dialect,
        "session": session,
        "root": record.root,
        "opens": record.opens,
        "closes": record.closes,
    }
    text = f'{dumps(meta)[:-1]},"data":{{{rest}}}\n'.encode("ascii")
    for attempt in range(4):
        try:
            return _put(folder, name, ident, text)
        except FileNotFoundError:
            # A writer that emptied the folder may remove it at this very moment.
            if attempt == 3:
                raise
    return None


def _put(folder: str, name: str, ident: str, text: bytes) -> None:
    root = files.open_root(folder)
    try:
        sub = files.open_folder(name, root, create=True)
    finally:
        posix.close(root)
    try:
        fd = files.open_file("." + ident, sub, posix.O_WRONLY, create=True)
        try:
            written = posix.write(fd, text)
            if written != len(text):
                raise OSError(None, f"only {written} of {len(text)} bytes could be written")
            posix.rename("." + ident, ident, src_dir_fd=sub, dst_dir_fd=sub)
        except OSError:
            _unlink("." + ident, sub)
            raise
        finally:
            posix.close(fd)
    finally:
        posix.close(sub)


def waiting(sub: int) -> list[str]:
    """The ids of whole entries in a session's spool folder, oldest first."""
    return sorted(n for n in posix.listdir(sub) if not n.startswith(".") and not n.endswith(DAMAGED))


def take(path: str, head: write.Head) -> list[Entry]:
    """The oldest entries of a session, at most ENTRIES. The caller holds its lock. Never raises OSError.

    What the head says is in the journal already is removed first.
    """
    try:
        sub = files.open_folder(path)
    except OSError:
        return []
    try:
        names = waiting(sub)
        head.drained = [n for n in head.drained if n in names and not _unlink(n, sub)]
        found: list[Entry] = []
        total = 0
        for name in names:
            if name in head.drained:
                continue
            text = _read(name, sub)
            if text is None:
                continue
            total += len(text)
            if found and total > BYTES:
                break
            entry = parse(text)
            if entry is None:
                posix.rename(name, name + DAMAGED, src_dir_fd=sub, dst_dir_fd=sub)
                continue
            found.append((entry[0], entry[1], name))
            if len(found) == ENTRIES:
                break
        return found
    except OSError:
        return []
    finally:
        posix.close(sub)


def parse(text: bytes) -> tuple[write.Record, str] | None:
    """The record of an entry file and its data as line.body gives it; None when damaged."""
    try:
        value = loads(text, bounded=False)
    except PayloadError:
        return None
    if not isinstance(value, dict) or value.get("v") != line.VERSION:
        return None
    ts, type_, data = value.get("ts"), value.get("type"), value.get("data")
    dialect, session, root = value.get("dialect"), value.get("session"), value.get("root")
    if type(ts) is not int or not isinstance(type_, str) or not isinstance(data, dict):
        return None
    if not isinstance(dialect, str) or not isinstance(session, str) or not (root is None or isinstance(root, str)):
        return None
    opens, closes = value.get("opens") is True, value.get("closes") is True
    return write.Record(type_, ts, dialect, session, None, root, opens, closes, data), line.body(data)


def discard(folder: str, name: str, idents: list[str]) -> None:
    """Removes entries that are in the journal, and the folders when they are empty. Never raises OSError."""
    try:
        sub = files.open_folder(f"{folder}/{name}")
    except OSError:
        return
    try:
        for ident in idents:
            _unlink(ident, sub)
    finally:
        posix.close(sub)
    for path in (f"{folder}/{name}", folder):
        try:
            posix.rmdir(path)
        except OSError:
            return


def help_others(journal_dir: str, own: str) -> None:
    """Takes in entries of sessions that may never write again, as far as their locks are free. Never raises OSError."""
    try:
        root = files.open_folder(folder_of(journal_dir))
    except OSError:
        return
    try:
        others = [n for n in posix.listdir(root) if n != own and not n.startswith(".")]
    except OSError:
        return
    finally:
        posix.close(root)
    for name in sorted(others)[:OTHER_SESSIONS]:
        drain(journal_dir, name)


def drain(journal_dir: str, name: str) -> int:
    """Takes in some of a session's waiting entries, unless its lock is taken. Gives how many. Never raises OSError."""
    folder = folder_of(journal_dir)
    first = _any(f"{folder}/{name}")
    if first is None:
        discard(folder, name, [])
        return 0
    session = write.Session(journal_dir, name, first.dialect, str(first.session))
    try:
        session.lock(0.0)
        entries = take(f"{folder}/{name}", session.head)
        if entries:
            session.drain(entries)
        session.finish()
        return len(entries)
    except OSError:
        return 0
    finally:
        session.close()


def _any(path: str) -> write.Record | None:
    try:
        sub = files.open_folder(path)
    except OSError:
        return None
    try:
        for name in waiting(sub):
            text = _read(name, sub)
            entry = parse(text) if text is not None else None
            if entry is not None:
                return entry[0]
        return None
    finally:
        posix.close(sub)


def _read(name: str, sub: int) -> bytes | None:
    """The bytes of an entry; None when it is not a plain file of ours."""
    try:
        fd = files.open_file(name, sub, posix.O_RDONLY)
    except OSError:
        return None
    try:
        chunks = []
        while chunk := posix.read(fd, 1 << 20):
            chunks.append(chunk)
        return b"".join(chunks)
    except OSError:
        return None
    finally:
        posix.close(fd)


def _unlink(name: str, sub: int) -> bool:
    """Whether the name is gone."""
    try:
        posix.unlink(name, dir_fd=sub)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
