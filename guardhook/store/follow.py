"""Following one session while it runs: one small file is read per poll, and only that session is folded on."""

from __future__ import annotations

import sqlite3

from guardhook.core.folders import Folders
from guardhook.journal.write import HEADS
from guardhook.store import project, schema
from guardhook.store.model import Trace
from guardhook.store.query import Store


class Follower:
    """Keeps the store up to date with the session of one trace."""

    def __init__(self, folders: Folders, store: Store, trace: Trace) -> None:
        self._journal = folders.journal
        self._store = store
        row = store.connection.execute(
            "SELECT key FROM sources WHERE id = (SELECT source FROM agent_traces WHERE serial = ?)", (trace.serial,)
        ).fetchone()
        self._key: str | None = row[0] if row else None
        self._before: bytes | None = None

    def poll(self) -> bool:
        """Whether something may have come since the last poll; if so it is in the store now. The first poll always says so.

        The session's head is rewritten after each line and names the next ticket. (A file's time may be the same after two lines.) Raises StoreError.
        """
        head = self._head()
        if head == self._before and head is not None:
            return False
        first = self._before is None
        self._before = head
        if head is None:
            return first
        assert self._key is not None
        try:
            project.catch_up(self._store.connection, self._journal, keys=[self._key])
        except sqlite3.Error as error:
            raise schema.told(error, self._store.path) from None
        return True

    def _head(self) -> bytes | None:
        if self._key is None:
            return None
        try:
            with open(f"{self._journal}/{HEADS}/{self._key}", "rb") as file:
                return file.read(4096)
        except OSError:
            return None
