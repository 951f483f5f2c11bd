"""What can go wrong with a store, each kind by its own name."""

from __future__ import annotations


class StoreError(Exception):
    """Something about a trace store, told in one line. path is the file or folder that it is about."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class Missing(StoreError):
    """Nothing has been recorded here: neither a journal nor a store. Nothing was created."""


class Locked(StoreError):
    """Another process has held the store's lock longer than this one waits. Nothing is broken."""


class Corrupt(StoreError):
    """The file is not an SQLite database, or a damaged one. It can be rebuilt from the journal."""


class Newer(StoreError):
    """A later version of guardhook made the store. It is neither read nor written."""


class Foreign(StoreError):
    """An SQLite database that is not a trace store."""


class Unusable(StoreError):
    """The file or its folder can't be opened, read or written."""


class ReadOnly(Unusable):
    """The file or its folder can't be written by this user; the journal may be readable all the same."""


class NotFound(StoreError):
    """No trace has this id, or it has no such step."""


class Ambiguous(StoreError):
    """Several traces start with these characters; candidates names the first two."""

    def __init__(self, message: str, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


class BadQuery(StoreError):
    """A filter, sort key, window or time that means nothing."""
