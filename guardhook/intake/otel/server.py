"""Running the receiver until it is told to stop: then no more connections, what was accepted is finished, and the account is given."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from guardhook.intake.otel.app import App
from guardhook.intake.otel.protocol import with_limits

_GRACE_SECONDS = 10
_KEEP_ALIVE_SECONDS = 75  # exporters send every few seconds; they should find their connection open


class _Server(uvicorn.Server):
    """Leaves signals to `serve`: uvicorn raises them again when it is done, and the account would never be given."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        self._ready()

    def _stop(self) -> None:
        if self.should_exit:
            self.force_exit = True  # told twice
        self.should_exit = True


def serve(app: App, listener: socket.socket, *, seconds: float, ready: Callable[[], None]) -> None:
    """Serves until SIGINT or SIGTERM. seconds: time for the head of a request. ready is called once requests are answered."""
    for name in ("uvicorn.error", "uvicorn.access"):  # what senders do wrong they are told; it is no news here
        log = logging.getLogger(name)
        log.addHandler(logging.NullHandler())
        log.propagate = False
        log.setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=with_limits(seconds),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=32 << 10,
    )
    server = _Server(config, ready)
    asyncio.run(server.serve(sockets=[listener]))
