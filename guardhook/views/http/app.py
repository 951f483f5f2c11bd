"""The ASGI application: each path of the table to its handler, in a thread, within the time that a request may take."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from itertools import groupby

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute
from starlette.types import Message, Receive, Scope, Send

from guardhook.core.jsontext import PayloadError, loads
from guardhook.store import StoreError
from guardhook.views.http.answers import EVENTS, JSON, Answer, Refusal, refusal_of
from guardhook.views.http.call import Call, Nothing
from guardhook.views.http.context import OWNER, Context
from guardhook.views.http.guard import Guard, read_body
from guardhook.views.http.routes import TABLE, Route

SECONDS = 30.0
SEND_SECONDS = 60.0
_PIECE = 64 * 1024
log = logging.getLogger("guardhook.http")


def app(context: Context, table: tuple[Route, ...] = TABLE) -> Guard:
    """The application, behind its guard."""
    paths = [StarletteRoute(path, _endpoint(context, tuple(rows)), methods=None) for path, rows in groupby(table, lambda row: row.path)]  # fmt: skip
    return Guard(Starlette(routes=[*paths, StarletteRoute("/{rest:path}", _Nowhere())]), context)


class _Nowhere:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _plain(Refusal(404, "not_found", "there is no such path; /openapi.json lists all"), False)(scope, receive, send)  # fmt: skip


def _endpoint(context: Context, rows: tuple[Route, ...]) -> _Endpoint:
    return _Endpoint(context, {row.method: row for row in rows})


class _Endpoint:
    """All methods of one path. A class, not a function: Starlette would bind functions to GET."""

    def __init__(self, context: Context, rows: dict[str, Route]) -> None:
        self._context = context
        self._rows = rows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        head = request.method == "HEAD"
        try:
            route = self._rows.get("GET" if head else request.method)
            if route is None:
                raise Refusal(405, "method_not_allowed", f"this path takes {' and '.join(self._rows)}", (("Allow", ", ".join(self._rows)),))  # fmt: skip
            try:
                answer = await asyncio.wait_for(self._answer(request, route), SECONDS)
            except TimeoutError:
                raise Refusal(503, "timeout", f"the answer took longer than {SECONDS:g} s") from None
            response = _response(answer, head)
        except Refusal as refusal:
            response = _plain(refusal, head)
        await response(scope, receive, send)

    async def _answer(self, request: Request, route: Route) -> Answer:
        caller = request.scope.get("guardhook.caller", OWNER)
        if caller.tenant is not None and not route.tenants:
            raise Refusal(404, "not_found", "there is no such thing")
        query: dict[str, str] = {}
        known = {parameter.name for parameter in route.query}
        for name, value in request.query_params.multi_items():
            if name not in known:
                raise Refusal(400, "invalid_request", f"there is no parameter {name!r} here")
            if name in query:
                raise Refusal(400, "invalid_request", f"{name} is given twice")
            query[name] = value
        body = None if route.body is None else await _body(request, route)
        call = Call(self._context, caller, request.path_params, query, body, request.headers.get("last-event-id"))
        return await run_in_threadpool(_handled, route.handler, call)


def _handled(handler: Callable[[Call], Answer], call: Call) -> Answer:
    try:
        return handler(call)
    except Nothing as nothing:
        return Answer(nothing.value)
    except StoreError as error:
        raise refusal_of(error) from None
    except Refusal:
        raise
    except (sqlite3.Error, OSError) as error:
        log.error("a request failed: %s: %s", type(error).__name__, error)
        raise Refusal(
            500, "store_error", "what was recorded can't be read; `guardhook journal verify` says why"
        ) from None
    except Exception as error:
        # Whatever it is, the server lives on, and its inner life is nobody's business.
        log.exception("a request failed", exc_info=error)
        raise Refusal(500, "internal_error", "the request could not be answered") from None


async def _body(request: Request, route: Route) -> object:
    """The body as a value, or its bytes where the route reads them itself."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal(415, "unsupported_media_type", f"the body must be sent as Content-Type: {JSON}")
    data = await read_body(request, route.most)
    if route.raw:
        return data
    try:
        return loads(data)
    except PayloadError as error:
        raise Refusal(400, "invalid_json", str(error).replace("payload", "body")) from None


def _plain(refusal: Refusal, head: bool) -> Response:
    answer = refusal.answer()
    return Response(None if head else answer.text, answer.status, dict(answer.headers), answer.type)


def _response(answer: Answer, head: bool) -> Response:
    pieces = answer.pieces
    if pieces is None:
        return Response(None if head else answer.text, answer.status, dict(answer.headers), answer.type)
    if head:
        if answer.done is not None:
            answer.done()
        return Response(None, answer.status, dict(answer.headers), answer.type)
    return _Streamed(answer)


class _Streamed(StreamingResponse):
    """Pieces as they are made; events at once, text in larger lots. Whatever ends it, the handler is told."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(_lots(answer), answer.status, dict(answer.headers), answer.type)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def within(message: Message) -> None:
            # Who never reads must not keep a stream's place, or a store open, for ever.
            await asyncio.wait_for(send(message), SEND_SECONDS)

        try:
            await super().__call__(scope, receive, within)
        except Exception as error:
            log.error("an answer broke off: %s: %s", type(error).__name__, error)
            raise
        finally:
            if self._answer.done is not None:
                self._answer.done()


async def _lots(answer: Answer) -> AsyncIterator[str]:
    pieces = answer.pieces
    assert pieces is not None
    if answer.type == EVENTS:
        async for piece in iterate_in_threadpool(pieces):
            yield piece
        return
    kept: list[str] = []
    size = 0

    def lot() -> str:
        nonlocal size
        kept.clear()
        size = 0
        for piece in pieces:
            kept.append(piece)
            size += len(piece)
            if size >= _PIECE:
                break
        return "".join(kept)

    while text := await run_in_threadpool(lot):
        yield text
