"""The application around the handlers: whatever one of them does, the answer has its form and nothing of the inside shows."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import httpx
import pytest

from guardhook.core.folders import explicit
from guardhook.store import Locked, NotFound
from guardhook.views.http import app as application
from guardhook.views.http.answers import Answer
from guardhook.views.http.call import Call
from guardhook.views.http.context import Context
from guardhook.views.http.guard import BODY_BYTES
from guardhook.views.http.routes import Route


def ask(route: Route, tmp_path: Path, **more: object) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app=application.app(Context(explicit(str(tmp_path))), (route,)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(route.method, route.path, **more)  # type: ignore[arg-type]

    return asyncio.run(run())


def raising(error: Exception) -> Route:
    def handler(call: Call) -> Answer:
        raise error

    return Route("GET", "/x", handler, "", "Any")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ZeroDivisionError("secret detail"), 500, "internal_error"), (RecursionError("secret detail"), 500, "internal_error"), (OSError(5, "secret detail"), 500, "store_error"),
        (sqlite3.DatabaseError("secret detail"), 500, "store_error"), (Locked("secret detail"), 503, "store_busy"), (NotFound("secret detail"), 404, "not_found"), (KeyError("secret detail"), 500, "internal_error"),
    ],
)  # fmt: skip
def test_faults_of_handlers(tmp_path: Path, error: Exception, status: int, code: str) -> None:
    got = ask(raising(error), tmp_path)
    assert (got.status_code, got.json()["error"]["code"]) == (status, code)
    assert "secret detail" not in got.text


def test_what_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "SECONDS", 0.05)
    let_go = threading.Event()

    def handler(call: Call) -> Answer:
        let_go.wait(20)
        return Answer({})

    threading.Timer(0.5, let_go.set).start()
    got = ask(Route("GET", "/x", handler, "", "Any"), tmp_path)
    assert (got.status_code, got.json()["error"]["code"]) == (503, "timeout")


def test_a_body_that_never_comes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardhook.views.http import guard

    monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)

    async def trickle() -> object:
        yield b"{"
        await asyncio.sleep(0.5)
        yield b"}"

    route = Route("POST", "/x", lambda call: Answer({}), "", "Any", body="Any")

    async def run() -> int:
        sent: list[dict[str, object]] = []
        pieces = trickle()

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": await pieces.__anext__(), "more_body": True}  # type: ignore[attr-defined]

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/x", "raw_path": b"/x", "query_string": b"", "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
                 "http_version": "1.1", "scheme": "http", "server": ("localhost", 1), "client": None, "root_path": "", "asgi": {"version": "3.0"}}  # fmt: skip
        await application.app(Context(explicit(str(tmp_path))), (route,))(scope, receive, send)  # type: ignore[arg-type]
        return int(sent[0]["status"])  # type: ignore[call-overload]

    assert asyncio.run(run()) == 408


def test_a_body_of_exactly_the_limit(tmp_path: Path) -> None:
    route = Route("POST", "/x", lambda call: Answer({"got": call.body}), "", "Any", body="Any")
    headers = {"Content-Type": "application/json"}
    assert ask(route, tmp_path, content=b"[" + b" " * (BODY_BYTES - 2) + b"]", headers=headers).json() == {"got": []}
    assert ask(route, tmp_path, content=b"[" + b" " * (BODY_BYTES - 1) + b"]", headers=headers).status_code == 413


def test_a_websocket_is_turned_away(tmp_path: Path) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/v1/events", "headers": []}
    asyncio.run(application.app(Context(explicit(str(tmp_path))))(scope, receive, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_stream_that_breaks_off_lets_go_of_what_it_held(tmp_path: Path) -> None:
    closed: list[int] = []

    def pieces() -> object:
        yield "a" * 100_000
        raise ZeroDivisionError

    route = Route("GET", "/x", lambda call: Answer(pieces(), done=lambda: closed.append(1)), "", "Any")
    with pytest.raises(Exception):  # noqa: B017  the server breaks the connection off
        ask(route, tmp_path)
    assert closed == [1]
