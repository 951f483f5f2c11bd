"""uvicorn's HTTP/1.1 connections, with the limits that it does not have: time for the head of a request, and how many connections there may be."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MOST = 512
_ANSWER = "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n{text}"


def with_limits(seconds: float) -> type[H11Protocol]:
    """The class of connections on which the head of a request has to arrive within so many seconds."""

    class Limited(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > CONNECTIONS_MOST:
                self._cut("503 Service Unavailable", "too many connections", "Retry-After: 1\r\n")
            else:
                self._late = self.loop.call_later(seconds, self._too_slow)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._in_time()
            else:
                self._begun()

        def on_response_complete(self) -> None:
            self._in_time()
            super().on_response_complete()
            if (
                self.cycle is None or self.cycle.response_complete
            ):  # no whole request was waiting, but perhaps a part of one
                self._begun()

        def connection_lost(self, exc: Exception | None) -> None:
            self._in_time()
            super().connection_lost(exc)

        def _begun(self) -> None:
            """The head of another request has begun, when something of it is there."""
            if self._late is None and not self.transport.is_closing() and self.conn.trailing_data[0]:
                self._late = self.loop.call_later(seconds, self._too_slow)

        def _in_time(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _too_slow(self) -> None:
            self._late = None
            if self.cycle is None or self.cycle.response_complete:
                self._cut("408 Request Timeout", "the head of the request did not arrive in time")

        def _cut(self, status: str, text: str, more: str = "") -> None:
            if not self.transport.is_closing():
                answer = _ANSWER.format(status=status, length=len(text), more=more, text=text)
                self.transport.write(answer.encode("ascii"))
                self.transport.close()

    return Limited
