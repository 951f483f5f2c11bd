"""OTLP over HTTP, as an ASGI application.

Answers: 200 (with partialSuccess where records were refused), 400 malformed, 403 not from a program of this machine, 404, 405, 408 too slow, 411, 413 too large,
415 unknown type or encoding, 429 and 503 with Retry-After. Errors are a google.rpc.Status in the encoding of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from guardhook.core.jsontext import dumps
from guardhook.intake.otel.body import Body, Gone, Limits, Memory, Receive, Refusal
from guardhook.intake.otel.hosts import Hosts
from guardhook.intake.otel.writer import JSON, PROTOBUF, SIGNALS, Reply, Writer

Send = Callable[[dict[str, object]], Awaitable[None]]
Scope = dict[str, object]

PATHS = {f"/v1/{signal}": signal for signal in SIGNALS}
_TYPES = {"application/json": JSON, "application/x-protobuf": PROTOBUF, "application/protobuf": PROTOBUF}
_MIME = {JSON: b"application/json", PROTOBUF: b"application/x-protobuf"}
_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints"}
# HTTP status -> google.rpc.Code
_CODES = {400: 3, 403: 7, 404: 5, 405: 12, 408: 4, 411: 3, 413: 8, 415: 3, 429: 8, 500: 13, 503: 14}
_BUSY_SECONDS = 5


class App:
    """The three endpoints."""

    def __init__(self, writer: Writer, hosts: Hosts, *, limits: Limits, memory: Memory) -> None:
        self._writer = writer
        self._hosts = hosts
        self._limits = limits
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = _Headers(scope)
        encoding = JSON
        body = Body(receive, self._limits, self._memory, gzip=headers.get("content-encoding").strip().lower() == "gzip")
        try:
            encoding = _TYPES.get(headers.get("content-type").partition(";")[0].strip().lower(), JSON)
            signal = self._checked(scope, headers)
            reply = await self._taken(signal, encoding, body)
            await _send(send, 200, _accepted(signal, encoding, reply), encoding)
        except Refusal as error:
            await self._refuse(send, body, error, encoding, headers)
        except Gone:
            return
        finally:
            body.close()

    def _checked(self, scope: Scope, headers: _Headers) -> str:
        """The signal that a request brings. Raises Refusal."""
        why = self._hosts.refused(headers.all("host"), headers.all("origin"))
        if why is not None:
            raise Refusal(403, why)
        signal = PATHS.get(str(scope["path"]))
        if signal is None:
            raise Refusal(404, f"there is nothing here but {', '.join(PATHS)}")
        if scope["method"] != "POST":
            raise Refusal(405, f"/v1/{signal} takes POST")
        kind = headers.get("content-type").partition(";")[0].strip().lower()
        if kind not in _TYPES:
            raise Refusal(415, "content-type must be application/json or application/x-protobuf")
        if headers.get("content-encoding").strip().lower() not in ("", "identity", "gzip"):
            raise Refusal(415, "content-encoding must be gzip or identity")
        length = headers.get("content-length")
        if not length and not headers.get("transfer-encoding"):
            raise Refusal(411, "content-length or chunked transfer-encoding is needed")
        if length.isdigit() and int(length) > self._limits.raw:
            raise Refusal(413, f"the body is larger than {self._limits.raw} bytes", closes=True)
        return signal

    async def _taken(self, signal: str, encoding: str, body: Body) -> Reply:
        content = await body.read()
        reply = await asyncio.wrap_future(self._writer.submit(signal, encoding, content))
        if reply.state == "ok":
            return reply
        if reply.state in ("malformed", "large"):
            raise Refusal(400 if reply.state == "malformed" else 413, reply.why)
        if reply.state == "unavailable":
            raise Refusal(503, reply.why, retry=_BUSY_SECONDS)
        raise Refusal(500, reply.why)

    async def _refuse(self, send: Send, body: Body, error: Refusal, encoding: str, headers: _Headers) -> None:
        more: list[tuple[bytes, bytes]] = []
        if error.status == 405:
            more.append((b"allow", b"POST"))
        if error.retry is not None:
            more.append((b"retry-after", str(error.retry).encode()))
        waits = headers.get("expect").lower() == "100-continue"  # such a sender writes nothing when it is told no
        unread = not body.complete and (headers.get("content-length") not in ("", "0") or headers.get("transfer-encoding") != "")  # fmt: skip
        if error.closes or unread:
            more.append((b"connection", b"close"))
        content = _status(error.status, error.why, encoding)
        await _send(send, error.status, content, encoding, more, last=not unread)
        if unread:
            if error.status != 408 and not waits:
                await body.drain()
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Headers:
    """The headers of a request. Their values are bytes of any kind."""

    def __init__(self, scope: Scope) -> None:
        self._pairs: list[tuple[bytes, bytes]] = list(scope["headers"])  # type: ignore[call-overload]

    def all(self, name: str) -> list[str]:
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in self._pairs if key == wanted]

    def get(self, name: str) -> str:
        return next(iter(self.all(name)), "")


async def _send(
    send: Send,
    status: int,
    content: bytes,
    encoding: str,
    more: Iterable[tuple[bytes, bytes]] = (),
    *,
    last: bool = True,
) -> None:
    headers = [(b"content-type", _MIME[encoding]), (b"content-length", str(len(content)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": not last})


def _accepted(signal: str, encoding: str, reply: Reply) -> bytes:
    if encoding == PROTOBUF:
        from guardhook.intake.otel.decode_protobuf import answer

        return answer(signal, reply.rejected, reply.why).SerializeToString()  # type: ignore[no-any-return]
    if not reply.rejected:
        return b"{}"
    partial = {_REJECTED[signal]: reply.rejected, "errorMessage": reply.why}
    return dumps({"partialSuccess": partial}).encode("ascii")


def _status(status: int, why: str, encoding: str) -> bytes:
    """A google.rpc.Status: code is field 1, message field 2."""
    code = _CODES.get(status, 2)
    if encoding == PROTOBUF:
        text = why.encode("utf-8", "replace")
        length, rest = bytearray(), len(text)
        while rest > 127:
            length.append(rest & 127 | 128)
            rest >>= 7
        length.append(rest)
        return bytes((8, code, 18, *length)) + text
    return dumps({"code": code, "message": why}).encode("ascii")
