"""How the interface answers: JSON of printable ASCII, errors as `{"error": {"code", "message"}}`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from guardhook.core.jsontext import printable
from guardhook.store import Ambiguous, BadQuery, Locked, Missing, NotFound, StoreError
from guardhook.store.jsonout import pretty

JSON = "application/json"
LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
_MESSAGE = 1024


class Refusal(Exception):
    """A request that is not answered as asked. code is one word for programs, message one line for people."""

    def __init__(
        self, status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = (), details: dict[str, object] | None = None
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = printable(message, _MESSAGE)
        self.headers = headers
        self.details = details or {}  # further members of the error

    def answer(self) -> Answer:
        return Answer(
            {"error": {"code": self.code, "message": self.message, **self.details}}, self.status, headers=self.headers
        )


class Answer(NamedTuple):
    """body: a JSON value, or pieces of text that are made while they are sent; done is called when sending has ended, however it did."""

    body: object
    status: int = 200
    type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    done: Callable[[], None] | None = None

    @property
    def pieces(self) -> Iterator[str] | None:
        return self.body if isinstance(self.body, Iterator) else None

    @property
    def text(self) -> str:
        return pretty(self.body) + "\n"


def refusal_of(error: StoreError) -> Refusal:
    """A store's error as an answer."""
    if isinstance(error, NotFound | Missing):
        return Refusal(404, "not_found", "there is no such thing" if isinstance(error, NotFound) else "nothing has been recorded yet")  # fmt: skip
    if isinstance(error, Ambiguous | BadQuery):
        return Refusal(400, "invalid_request", error.message)
    if isinstance(error, Locked):
        return Refusal(503, "store_busy", "the store is locked by another process; try again")
    return Refusal(500, "store_error", "the trace store can't be read; `guardhook stats` says why")
