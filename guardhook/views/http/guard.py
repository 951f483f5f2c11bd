"""What every request passes first: it must come from this machine's own programs, and not from a page in a browser.

- Host: a name of the loopback interface, or one that the owner named. (A page whose own name was made to point at 127.0.0.1 sends its own.)
- Origin: none, or one that the owner named. Browsers send it with whatever a page could do harm with.
- Token: where there is a token file, `Authorization: Bearer …`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guardhook.views.http.answers import Refusal
from guardhook.views.http.context import OWNER, Caller, Context

BODY_BYTES = 4 << 20
BODY_SECONDS = 10.0
_DISCARDED = 4 * BODY_BYTES  # so much of a body that is too large is read for the sake of a clean answer

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)


class Guard:
    """ASGI middleware; refuses before anything else is looked at. Puts the caller into the scope as `guardhook.caller`."""

    def __init__(self, inner: ASGIApp, context: Context) -> None:
        self._inner = inner
        self.context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope)
        origin = request.headers.get("origin")
        allowed = origin is not None and origin in self.context.origins

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
                if allowed and origin is not None:
                    message["headers"] += [
                        (b"access-control-allow-origin", origin.encode("latin-1")),
                        (b"vary", b"Origin"),
                    ]
            await send(message)

        try:
            check_host(request.headers.getlist("host"), self.context.hosts)
            check_origin(request.headers.getlist("origin"), request.headers.getlist("sec-fetch-site"), self.context.origins)  # fmt: skip
            check_form(request)
            if request.method == "OPTIONS" and allowed and "access-control-request-method" in request.headers:
                await _preflight()(scope, receive, hardened)
                return
            scope["guardhook.caller"] = self._caller(request)
        except Refusal as refusal:
            answer = refusal.answer()
            text = None if request.method == "HEAD" else answer.text
            await Response(text, answer.status, dict(answer.headers), answer.type)(scope, receive, hardened)
            return
        await self._inner(scope, receive, hardened)

    def _caller(self, request: Request) -> Caller:
        tokens = self.context.tokens
        if tokens is None:
            return OWNER
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        caller = tokens.caller(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            raise Refusal(401, "unauthorized", "a token of the token file is needed: Authorization: Bearer TOKEN", (("WWW-Authenticate", "Bearer"),))  # fmt: skip
        return caller


def check_host(given: list[str], names: frozenset[str]) -> None:
    """Raises Refusal unless there is exactly one Host, and it is a name of this machine."""
    if len(given) != 1 or not local_host(given[0], names):
        raise Refusal(403, "host_refused", "the Host header names another machine")


def local_host(text: str, names: frozenset[str]) -> bool:
    """Whether a Host header (with or without a port) means the loopback interface, or is one of the names."""
    try:
        parts = urlsplit("//" + text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if host is None or parts.netloc != text or "@" in text or any(c in text for c in "/?#\\ "):
        return False
    if host == "localhost" or host in names:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_form(request: Request) -> None:
    """Raises Refusal for a request that a proxy in front may have read differently: two statements of its length, or a target that names a host of its own."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise Refusal(400, "invalid_request", "Content-Length and Transfer-Encoding contradict each other", (("Connection", "close"),))  # fmt: skip
    if not request.scope["path"].startswith("/"):
        raise Refusal(400, "invalid_request", "the request's target must be a path", (("Connection", "close"),))


def check_origin(given: list[str], sites: list[str], origins: frozenset[str]) -> None:
    """Raises Refusal for a request that a page made, unless the page's origin is one of those given."""
    if given:
        if len(given) != 1 or given[0] not in origins:
            raise Refusal(403, "origin_refused", "pages of this origin may not ask; `guardhook serve --allow-origin` names those that may")  # fmt: skip
    elif not {site.lower() for site in sites} <= {"same-origin", "none"}:
        raise Refusal(403, "origin_refused", "pages of other origins may not ask")


def _preflight() -> Response:
    return Response(None, 204, {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "authorization, content-type, last-event-id",
        "Access-Control-Max-Age": "600",
    })  # fmt: skip


async def read_body(request: Request, most: int = BODY_BYTES) -> bytes:
    """The body, within its size and time. Raises Refusal."""
    discarded = max(_DISCARDED, most)
    stated = request.headers.get("content-length", "")
    too_large = stated.isdigit() and (len(stated) > 12 or int(stated) > most)
    if too_large and (len(stated) > 12 or int(stated) > discarded):
        raise _too_large(most)
    data = bytearray()
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= most:
                    data += chunk
                elif size > discarded:
                    break
                else:
                    data.clear()  # the rest is read all the same: who is cut off while sending doesn't see the answer
    except TimeoutError:
        raise Refusal(408, "request_timeout", "the body did not come in time", (("Connection", "close"),)) from None
    except ClientDisconnect:
        raise Refusal(400, "invalid_request", "the connection was closed") from None
    if size > most:
        raise _too_large(most)
    return bytes(data)


def _too_large(most: int) -> Refusal:
    return Refusal(413, "request_too_large", f"the body is larger than {most} bytes", (("Connection", "close"),))
