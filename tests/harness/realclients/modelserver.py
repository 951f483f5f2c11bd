"""What the three model servers share: a script of turns, a small HTTP server on loopback, and a record of what the client sent."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """The model says something."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model calls a tool. A freeform tool takes text instead of an object; a namespace is Codex's way to name MCP servers."""

    tool: str
    input: Any
    namespace: str | None = None

    @property
    def freeform(self) -> bool:
        return isinstance(self.input, str)


Turn = Sequence[Say | Call]
DONE: Turn = (Say("done"),)


class Script:
    """What the model answers, turn after turn, per conversation.

    A conversation is `main`, or the first marker that occurs in its first user text (so a sub-agent gets its own turns). The turn follows
    from how long the conversation is, so a repeated request gets the same turn again. After the last turn the model only says "done".
    """

    def __init__(self, main: Sequence[Turn], **others: Sequence[Turn]) -> None:
        self._turns = {"main": list(main), **{name: list(turns) for name, turns in others.items()}}
        self._lengths: dict[str, list[int]] = {name: [] for name in self._turns}
        self._lock = threading.Lock()

    def turn(self, user_text: str, length: int) -> tuple[str, int, Turn]:
        """The conversation's name, the number of the turn and the turn."""
        name = next((marker for marker in self._turns if marker != "main" and marker in user_text), "main")
        with self._lock:
            seen = self._lengths[name]
            if length not in seen:
                seen.append(length)
            number = seen.index(length)
        turns = self._turns[name]
        return name, number, turns[number] if number < len(turns) else DONE


@dataclass
class Request:
    """One request of the client, as received."""

    method: str
    path: str
    body: Any
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Reply:
    status: int
    content_type: str
    body: bytes

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Reply:
        return cls(status, "application/json", json.dumps(value).encode())

    @classmethod
    def events(cls, events: Sequence[tuple[str | None, Any]]) -> Reply:
        """Server-sent events: (event name or None, data)."""
        lines = []
        for name, data in events:
            lines.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n")
        return cls(200, "text/event-stream", "".join(lines).encode())


@dataclass(frozen=True)
class ToolResult:
    """What the model was told about one call."""

    call: str
    text: str
    error: bool | None = None


class ModelServer:
    """Base of the three APIs: subclasses say how a request is answered and where the tool results are in it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._http: ThreadingHTTPServer | None = None
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Reply:
        raise NotImplementedError

    def tool_results(self) -> list[ToolResult]:
        """The results of all calls, each once, in the order in which the model got them."""
        found: dict[str, ToolResult] = {}
        for request in list(self.requests):
            for result in self.results_in(request):
                found.setdefault(result.call, result)
        return list(found.values())

    def results_in(self, request: Request) -> list[ToolResult]:
        raise NotImplementedError

    def start(self, listener: socket.socket) -> None:
        """Serves requests that come in on a socket which already listens."""
        http = _Server(self)
        http.socket.close()
        http.socket = listener
        http.server_address = listener.getsockname()
        self._http = http
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def take(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
        try:
            return self.answer(request)
        except (KeyError, TypeError, AttributeError) as error:
            return Reply.json({"error": {"message": f"the scripted model can't read this request: {error!r}"}}, 400)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed in the middle of a request is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve(None)

    def do_HEAD(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        raw = self._body()
        try:
            body = json.loads(raw)
        except ValueError:
            body = {"undecodable": raw[:500].decode("latin-1")}
        self._serve(body)

    def _serve(self, body: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.model.take(Request(self.command, self.path, body, headers))
        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type)
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw
