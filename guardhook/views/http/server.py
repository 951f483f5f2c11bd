"""Serving the application: a socket of our own, so that the address is known before anything is served, and a quiet end."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable
from types import FrameType

from uvicorn.config import Config
from uvicorn.lifespan.off import LifespanOff  # named, so that a frozen program carries it
from uvicorn.loops.asyncio import asyncio_loop_factory
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import Server

from guardhook.core.jsontext import printable
from guardhook.views.http.app import app
from guardhook.views.http.context import Context

STOP_SECONDS = 5
CONNECTIONS = 256
HEAD_SECONDS = 10.0
_NAMED = (LifespanOff, asyncio_loop_factory)


def loopback(host: str) -> bool:
    """Whether an address or name can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Port 0 takes a free one. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]  # fmt: skip
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(CONNECTIONS)
    except BaseException:
        listener.close()
        raise
    return listener


def url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Protocol(H11Protocol):
    """Gives a connection so long to say what it wants, however slowly it talks: whoever only holds on to it would keep others away."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Server(Server):
    """Ends open streams when it is told to stop."""

    def __init__(self, config: Config, context: Context, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._context = context
        self._ready = ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not the inherited way, which raises the signal again at the end: having been told to stop is no failure.
        self._context.stopping.set()
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def run(context: Context, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serves until SIGINT or SIGTERM. ready is called once connections are answered."""
    _log()
    config = Config(
        app(context), http=_Protocol, ws="none", lifespan="off", loop="asyncio", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, timeout_keep_alive=10, timeout_graceful_shutdown=STOP_SECONDS, limit_concurrency=CONNECTIONS,
    )  # fmt: skip
    _Server(config, context, ready).run(sockets=[listener])


class _Plain(logging.Formatter):
    """One harmless line, whatever a request brought along; traces of faults of our own are kept, line by line."""

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n".join(printable(line, 2000) for line in lines)


def _log() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("guardhook: %(message)s"))
    for name, level in (("guardhook.http", logging.WARNING), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
