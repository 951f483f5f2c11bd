"""Reading the body of a request within limits: its size, its size when inflated, the time it takes, and the memory of all requests together."""

from __future__ import annotations

import asyncio
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from typing import NamedTuple

RAW_MOST = 32 << 20
INFLATED_MOST = 64 << 20
MEMORY_LEAST = 8 << 20  # of bodies being read or waiting to be written
_PIECE = 1 << 20
_DRAIN_SECONDS = 5.0
_GZIP = b"\x1f\x8b"

Receive = Callable[[], Awaitable[dict[str, object]]]


class Refusal(Exception):
    """A request that is not taken. status: of HTTP; retry: seconds after which it may be tried again; closes: the connection is of no more use."""

    def __init__(self, status: int, why: str, *, retry: int | None = None, closes: bool = False) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.retry = retry
        self.closes = closes


class Gone(Exception):
    """The sender closed the connection before the request was complete."""


class Limits(NamedTuple):
    """Sizes in bytes. seconds: how long a sender may be silent within a request; a whole body may take four times as long."""

    raw: int = RAW_MOST
    inflated: int = INFLATED_MOST
    seconds: float = 15.0


class Memory:
    """The bytes of all bodies together. For several threads."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Raises Refusal (429) when there is no room: the sender is to wait, not this process to grow."""
        with self._lock:
            if size > self._left:
                raise Refusal(429, "too much is waiting to be written; try again in a moment", retry=1)
            self._left -= size

    def give(self, size: int) -> None:
        with self._lock:
            self._left += size


class Body:
    """One request's body. Use: await read, then close in any case."""

    def __init__(self, receive: Receive, limits: Limits, memory: Memory, *, gzip: bool) -> None:
        self._receive = receive
        self._limits = limits
        self._memory = memory
        self._inflater = zlib.decompressobj(31) if gzip else None
        self._chunks: list[bytes] = []
        self._held = 0
        self._until = time.monotonic() + 4 * limits.seconds
        self.complete = False  # whether all that the sender had to say was read

    def close(self) -> None:
        """Gives the memory back."""
        self._memory.give(self._held)
        self._held = 0
        self._chunks.clear()

    async def read(self) -> bytes:
        """The inflated body. Raises Refusal (400, 408, 413, 429), Gone."""
        raw = 0
        while not self.complete:
            chunk = await self._next()
            raw += len(chunk)
            if raw > self._limits.raw:
                raise Refusal(413, f"the body is larger than {self._limits.raw} bytes", closes=True)
            if self._inflater is None:
                self._keep(chunk)
            else:
                await self._inflate(chunk)
        if self._inflater is not None and not self._inflater.eof:
            raise Refusal(400, "the gzip data ends too early")
        body = b"".join(self._chunks)
        self._chunks.clear()
        return body

    async def drain(self) -> None:
        """Reads on and forgets what comes: an answer that is sent while the sender still writes would be lost with the connection."""
        until = time.monotonic() + _DRAIN_SECONDS
        while not self.complete and time.monotonic() < until:
            try:
                await self._next()
            except (Refusal, Gone):
                return

    async def _next(self) -> bytes:
        wait = min(self._limits.seconds, self._until - time.monotonic())
        try:
            async with asyncio.timeout(max(wait, 0.0)):
                message = await self._receive()
        except TimeoutError:
            raise Refusal(408, "the request did not arrive in time", closes=True) from None
        if message["type"] != "http.request":
            raise Gone
        self.complete = not message.get("more_body", False)
        chunk = message.get("body", b"")
        assert isinstance(chunk, bytes)
        return chunk

    def _keep(self, chunk: bytes) -> None:
        if not chunk:
            return
        if self._held + len(chunk) > self._limits.inflated:
            raise Refusal(413, f"the body is larger than {self._limits.inflated} bytes when inflated", closes=True)
        self._memory.take(len(chunk))
        self._held += len(chunk)
        self._chunks.append(chunk)

    async def _inflate(self, chunk: bytes) -> None:
        """Inflates piece by piece, so that a bomb is noticed before it has gone off. Members that follow each other are one body."""
        assert self._inflater is not None
        try:
            while chunk:
                if self._inflater.eof:
                    if not _GZIP.startswith(chunk[:2]):
                        raise Refusal(400, "there is something behind the gzip data")
                    self._inflater = zlib.decompressobj(31)
                self._keep(self._inflater.decompress(chunk, _PIECE))
                chunk = self._inflater.unconsumed_tail or self._inflater.unused_data
                if chunk:
                    await asyncio.sleep(0)  # others get their turn
        except zlib.error:
            raise Refusal(400, "the body is not gzip data") from None
