"""Making room: sessions that are old enough leave the journal, others that have been silent for a while are compressed first. What is left reads as before.

A session is worked on under its writers' lock. When it goes, its lines go first and its head last, so that a writer that comes meanwhile begins anew. Sessions that were heard of
within a day, or for which lines wait in the spool, stay as they are. Removing raises the journal's generation, so that stores are made anew from what is left; compressing does not:
only the sessions in question are read again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.gate import marks
from guardhook.journal import generation, pack, read, recover, write
from guardhook.store import behind
from guardhook.store.errors import Missing, Unusable

LIVE_SECONDS = 86_400  # an idle session is often taken up again on the same day, and its head knows its project
_LOCK_SECONDS = 2.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)  # what goes wrong for every session


class Session(NamedTuple):
    """One session's files. last is when the newest was written, seconds since the epoch; size in bytes."""

    key: str
    last: float
    size: int
    days: tuple[str, ...]


class Report(NamedTuple):
    """What was (or, in a dry run, would be) removed and compressed; skipped are sessions in use. bytes_saved: by compressing."""

    removed: list[Session]
    skipped: int
    kept: int
    bytes_before: int
    bytes_removed: int
    compressed: tuple[Session, ...] = ()
    bytes_saved: int = 0


def sessions(folders: Folders) -> list[Session]:
    """All sessions of the journal, the one heard of least recently first. Imports are not among them. Raises Missing, Unusable."""
    journal = folders.journal
    if not read.exists(journal):
        raise Missing(f"nothing has been recorded yet ({journal} does not exist)", journal)
    found: dict[str, Session] = {}
    try:
        for folder, key, _ in behind.data_files(journal, packed=True):
            if folder != behind.IMPORTS:
                parts = [status for path in _files(journal, folder, key) if (status := _status(path)) is not None]
                if not parts:
                    continue
                old = found.get(key, Session(key, 0.0, 0, ()))
                found[key] = Session(
                    key, max(old.last, *(p.st_mtime for p in parts)), old.size + sum(p.st_size for p in parts), (*old.days, folder)
                )  # fmt: skip
        for key in read.head_keys(journal):
            if key not in found:  # its lines were removed, and then the process was killed
                with contextlib.suppress(FileNotFoundError):
                    found[key] = Session(key, os.lstat(f"{journal}/{write.HEADS}/{key}").st_mtime, 0, ())
    except OSError as error:
        raise Unusable(f"{journal}: {error.strerror or error}", journal) from None
    return sorted(found.values(), key=lambda s: (s.last, s.key))


def _status(path: str) -> os.stat_result | None:
    """None for a file that another process removed meanwhile."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _files(journal: str, day: str, key: str) -> list[str]:
    """The files of one session and day: plain, compressed or both, and what belongs to a compressed one."""
    paths = (f"{journal}/{day}/{key}{suffix}" for suffix in (write.SUFFIX, write.PACKED, recover.COPY))
    return [path for path in paths if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))]


def collect(
    folders: Folders,
    *,
    before: float | None = None,
    most_bytes: int | None = None,
    compress_before: float | None = None,
    dry_run: bool = False,
) -> Report:
    """Removes sessions last heard of before an instant (seconds since the epoch), compresses those last heard of before another, and then removes the oldest ones
    until the journal has at most so many bytes. Raises Missing, Unusable.
    """
    everything = sessions(folders)
    total = left = sum(s.size for s in everything)
    live = time.time() - LIVE_SECONDS
    removed: list[Session] = []
    compressed: list[Session] = []
    saved = 0
    in_use: set[str] = set()
    rewriting = generation.Rewriting(folders.journal)
    remaining: list[Session] = []
    for session in everything:
        if before is None or session.last >= before:
            remaining.append(session)
        elif session.last >= live or not (dry_run or remove(folders, session, rewriting)):
            in_use.add(session.key)
        else:
            removed.append(session)
            left -= session.size
    for number, session in enumerate(remaining):
        if compress_before is None or session.last >= min(compress_before, live):
            continue
        less = _would_compress(folders, session) if dry_run else _compress(folders, session)
        if less is not None:
            compressed.append(session)
            remaining[number] = session._replace(size=session.size - less)
            saved += less
            left -= less
    for session in remaining:
        if most_bytes is None or left <= most_bytes:
            break
        if session.last >= live or not (dry_run or remove(folders, session, rewriting)):
            in_use.add(session.key)
            continue
        removed.append(session)
        left -= session.size
    gone = {session.key for session in removed}
    return Report(
        removed, len(in_use), len(everything) - len(removed), total, sum(s.size for s in removed),
        tuple(s for s in compressed if s.key not in gone), saved,
    )  # fmt: skip


def _would_compress(folders: Folders, session: Session) -> int | None:
    """How many bytes compressing would save; None when there is nothing to compress."""
    saved = None
    for day in session.days:
        with contextlib.suppress(OSError):
            weighed = pack.weigh(folders.journal, day, session.key)
            if weighed is not None:
                saved = (saved or 0) + weighed[0] - weighed[1]
    return saved


def _worth_it(folders: Folders, session: Session) -> bool:
    for day in session.days:
        with contextlib.suppress(OSError):
            if os.lstat(f"{folders.journal}/{day}/{session.key}{write.SUFFIX}").st_size >= pack.LEAST_BYTES:
                return True
    return False


def _compress(folders: Folders, session: Session) -> int | None:
    """Compresses what can be of one session and gives how many bytes that saved; None when nothing was done. Raises Unusable."""
    journal = folders.journal
    if not _worth_it(folders, session):
        return None
    held = write.Session(journal, session.key, "", "")
    done = False
    try:
        held.lock(time.monotonic() + _LOCK_SECONDS)
        if write._waiting(journal, session.key) is not None or _size(journal, session) != session.size:
            return None
        for day in session.days:
            if pack.compress(held, day):
                done = True
    except TimeoutError:
        return None
    except OSError as error:
        if error.errno not in _FULL:
            return None  # a damaged or foreign file; `journal verify` names it, and others are none the worse
        raise Unusable(f"{journal}: {error.strerror or error}", journal) from None
    finally:
        held.close()
    return session.size - _size(journal, session) if done else None


def _size(journal: str, session: Session) -> int:
    found = [_status(f) for day in session.days for f in _files(journal, day, session.key)]
    return sum(status.st_size for status in found if status is not None)


def remove(folders: Folders, session: Session, rewriting: generation.Rewriting) -> bool:
    """Removes one session unless it is in use, and gives whether it did. rewriting: raises the journal's generation before. Raises Unusable."""
    journal = folders.journal
    files = [f for day in session.days for f in _files(journal, day, session.key)]
    held = write.Session(journal, session.key, "", "")
    try:
        held.lock(time.monotonic() + _LOCK_SECONDS)
        if write._waiting(journal, session.key) is not None or _size(journal, session) != session.size:
            return False
        rewriting.of(session.key)
        for file in files:
            os.unlink(file)
        os.unlink(f"{journal}/{write.HEADS}/{session.key}")
    except (TimeoutError, FileNotFoundError):
        return False
    except OSError as error:
        raise Unusable(f"{journal}: {error.strerror or error}", journal) from None
    finally:
        held.close()
    with contextlib.suppress(OSError):  # what it brought to disk; only sessions that fetched something have one
        os.unlink(f"{folders.data}/{marks.FOLDER}/{session.key}")
    for day in session.days:
        with contextlib.suppress(OSError):  # other sessions have files there
            os.rmdir(f"{journal}/{day}")
    return True
