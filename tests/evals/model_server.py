"""A real HTTP server that behaves as it is told, request by request."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Behaviour = Callable[["Handler"], None]


class Seen(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Behaviour] = []
        self.always: Behaviour = status(500)
        self.seen: list[Seen] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the game."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
        behave = self.server.script.pop(0) if self.server.script else self.server.always
        behave(self)

    def log_message(self, *rest: object) -> None:
        pass

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None) -> None:
        self.send_response(code)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)


def status(code: int, message: str = "", **headers: str) -> Behaviour:
    body = json.dumps({"error": {"message": message}}).encode() if message else b"{}"
    return lambda h: h.answer(code, body, {k.replace("_", "-"): v for k, v in headers.items()})


def raw(body: bytes, **headers: str) -> Behaviour:
    return lambda h: h.answer(200, body, {k.replace("_", "-"): v for k, v in headers.items()})


def value(found: object) -> Behaviour:
    return raw(json.dumps(found).encode())


def said(text: str, into: object = 100, out: object = 50, finish: str = "stop") -> Behaviour:
    """A chat completion."""
    return value({
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": into, "completion_tokens": out},
    })  # fmt: skip


def judged(**fields: object) -> Behaviour:
    return said(json.dumps(fields))


def silent(h: Handler) -> None:
    """Never answers."""
    h.server.over.wait(60)


def dripping(h: Handler) -> None:
    """Sends its head, and then a byte at a time for ever."""
    h.send_response(200)
    h.send_header("content-length", "1000000")
    h.end_headers()
    while not h.server.over.wait(0.02):
        h.wfile.write(b" ")
        h.wfile.flush()


def dripping_head(h: Handler) -> None:
    h.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while not h.server.over.wait(0.02):
        h.wfile.write(b"a")
        h.wfile.flush()


def dropping(h: Handler) -> None:
    h.connection.shutdown(socket.SHUT_RDWR)
    h.close_connection = True


def breaking_off(h: Handler) -> None:
    h.answer(200, b'{"choices": [', length=5000)
    h.wfile.flush()
    dropping(h)


def gibberish(h: Handler) -> None:
    h.wfile.write(b"\x00\xff not http at all\r\n\r\n")
    h.wfile.flush()
    dropping(h)


def endless(h: Handler) -> None:
    h.send_response(200)
    h.send_header("transfer-encoding", "chunked")
    h.end_headers()
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    while not h.server.over.is_set():
        h.wfile.write(piece)


def bomb(h: Handler) -> None:
    h.answer(200, gzip.compress(b" " * (64 << 20)), {"content-encoding": "gzip"})


def redirect(to: str, code: int = 307) -> Behaviour:
    return lambda h: h.answer(code, b"", {"location": to})


@contextmanager
def serving(*script: Behaviour, always: Behaviour | None = None) -> Iterator[Server]:
    server = Server()
    server.script = list(script)
    if always is not None:
        server.always = always
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
