"""Opening the store of an installation: caught up with the journal, rebuilt when it is damaged."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable

from guardhook.core.folders import Folders
from guardhook.store import behind, schema
from guardhook.store.errors import Corrupt, Missing, ReadOnly, StoreError, Unusable
from guardhook.store.query import IDLE_SECONDS, Store

Progress = Callable[[int, int], None]  # bytes done, bytes in all
Notice = Callable[[str], None]


def open_store(
    folders: Folders,
    *,
    now: float | None = None,
    idle_seconds: float = IDLE_SECONDS,
    progress: Progress | None = None,
    on_notice: Notice | None = None,
    catch_up: bool = True,
    temporary: bool = False,
) -> Store:
    """The store of these folders, brought up to date with the journal.

    progress is called while catching up, on_notice with what a person should know (a damaged store was rebuilt). temporary: where the store can't be
    written, the journal is folded into one that is gone afterwards. Raises Missing when there is neither a journal nor a store (nothing is created
    then), Locked, Newer, Foreign, ReadOnly, Unusable.
    """
    path = f"{folders.data}/{schema.FILE}"
    has_journal = os.path.isdir(folders.journal)
    if not has_journal and not os.path.exists(path):
        raise Missing(f"nothing has been recorded yet ({folders.journal} does not exist)", folders.journal)
    inode = _inode(path)
    try:
        return _open(folders, path, has_journal, now, idle_seconds, progress, catch_up)
    except Corrupt:
        if not has_journal:
            raise
        _aside(path, inode, on_notice)
        return _open(folders, path, has_journal, now, idle_seconds, progress, catch_up)
    except ReadOnly:
        if not (temporary and has_journal and catch_up):
            raise
        store = _unwritten(folders, path, now, idle_seconds, progress)
        if on_notice is not None:
            on_notice(f"{path} can't be written; the whole journal was read for this answer")
        return store


def _open(
    folders: Folders,
    path: str,
    has_journal: bool,
    now: float | None,
    idle_seconds: float,
    progress: Progress | None,
    catch_up: bool,
) -> Store:
    connection = schema.connect(path, create=has_journal)
    try:
        if catch_up and has_journal and behind.behind(connection, folders.journal):
            from guardhook.store import project

            project.catch_up(connection, folders.journal, progress=progress)
    except sqlite3.Error as error:
        connection.close()
        raise schema.told(error, path) from None
    except OSError as error:
        connection.close()
        raise Unusable(f"{error.filename or folders.journal}: {error.strerror or error}", folders.journal) from None
    except BaseException:
        connection.close()
        raise
    return Store(connection, path, now=now, idle_seconds=idle_seconds)


def _unwritten(folders: Folders, path: str, now: float | None, idle_seconds: float, progress: Progress | None) -> Store:
    from guardhook.store import project

    connection = schema.temporary()
    try:
        project.catch_up(connection, folders.journal, progress=progress)
    except sqlite3.Error as error:
        connection.close()
        raise schema.told(error, "the temporary store") from None
    except OSError as error:
        connection.close()
        raise Unusable(f"{error.filename or folders.journal}: {error.strerror or error}", folders.journal) from None
    return Store(connection, path, now=now, idle_seconds=idle_seconds)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _aside(path: str, inode: int | None, on_notice: Notice | None) -> None:
    """Moves the damaged file away, unless another process did so first."""
    if _inode(path) != inode:
        return
    try:
        kept = schema.set_aside(path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path} is damaged and can't be moved aside: {error.strerror or error}", path) from None
    if on_notice is not None:
        on_notice(f"{path} was damaged; it is kept as {kept} and rebuilt from the journal")
