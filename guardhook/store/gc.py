"""Making room: whole sessions leave the journal, those first that were heard of least recently. What is left is untouched.

A session goes under its writers' lock, its lines first and its head last, so that a writer that comes meanwhile begins anew. Sessions that were heard of
within a day, or for which lines wait in the spool, stay. The journal's generation is raised, so that stores are made anew from what is left.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.gate import marks
from guardhook.journal import generation, read, write
from guardhook.store import behind
from guardhook.store.errors import Missing, Unusable

LIVE_SECONDS = 86_400  # an idle session is often taken up again on the same day, and its head knows its project
_LOCK_SECONDS = 2.0


class Session(NamedTuple):
    """One session's files. last is when the newest was written, seconds since the epoch; size in bytes."""

    key: str
    last: float
    size: int
    days: tuple[str, ...]


class Report(NamedTuple):
    """What was (or, in a dry run, would be) removed; skipped are sessions in use."""

    removed: list[Session]
    skipped: int
    kept: int
    bytes_before: int
    bytes_removed: int


def sessions(folders: Folders) -> list[Session]:
    """All sessions of the journal, the one heard of least recently first. Imports are not among them. Raises Missing, Unusable."""
    journal = folders.journal
    if not read.exists(journal):
        raise Missing(f"nothing has been recorded yet ({journal} does not exist)", journal)
    found: dict[str, Session] = {}
    try:
        for folder, key, status in behind.data_files(journal):
            if folder != behind.IMPORTS:
                old = found.get(key, Session(key, 0.0, 0, ()))
                found[key] = Session(
                    key, max(old.last, status.st_mtime), old.size + status.st_size, (*old.days, folder)
                )
        for key in read.head_keys(journal):
            if key not in found:  # its lines were removed, and then the process was killed
                with contextlib.suppress(FileNotFoundError):
                    found[key] = Session(key, os.lstat(f"{journal}/{write.HEADS}/{key}").st_mtime, 0, ())
    except OSError as error:
        raise Unusable(f"{journal}: {error.strerror or error}", journal) from None
    return sorted(found.values(), key=lambda s: (s.last, s.key))


def collect(
    folders: Folders, *, before: float | None = None, most_bytes: int | None = None, dry_run: bool = False
) -> Report:
    """Removes sessions last heard of before an instant (seconds since the epoch), and then the oldest ones until the journal has at most so many bytes.

    Raises Missing, Unusable.
    """
    everything = sessions(folders)
    total = left = sum(s.size for s in everything)
    live = time.time() - LIVE_SECONDS
    removed: list[Session] = []
    skipped = 0
    for session in everything:
        due = (before is not None and session.last < before) or (most_bytes is not None and left > most_bytes)
        if not due:
            continue
        if session.last >= live or not (dry_run or remove(folders, session, first=not removed)):
            skipped += 1
            continue
        removed.append(session)
        left -= session.size
    return Report(removed, skipped, len(everything) - len(removed), total, total - left)


def remove(folders: Folders, session: Session, *, first: bool) -> bool:
    """Removes one session unless it is in use, and gives whether it did. first: the journal's generation is raised before. Raises Unusable."""
    journal = folders.journal
    files = [f"{journal}/{day}/{session.key}{behind.SUFFIX}" for day in session.days]
    held = write.Session(journal, session.key, "", "")
    try:
        held.lock(time.monotonic() + _LOCK_SECONDS)
        if write._waiting(journal, session.key) is not None or sum(os.lstat(f).st_size for f in files) != session.size:
            return False
        if first:
            generation.advance(journal)
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
