"""Sending a question and waiting for the answer: a deadline for each attempt as a whole, a few retries, caps, and no redirects.

A redirect is never followed: the key was meant for this host. The deadline covers everything from the name look-up to the last byte, so a server that
sends one byte a second is no different from one that is silent.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
import urllib.parse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from guardhook import __version__
from guardhook.core.jsontext import PayloadError, dumps, loads, printable
from guardhook.evals.ai.provider import ProviderError, Question, Reply, Request, form, table
from guardhook.evals.ai.settings import Choice, without_keys

if TYPE_CHECKING:
    import httpx

    from guardhook.evals.ai.cleaning import Rows


@dataclass(frozen=True)
class Patience:
    """How long and how often. Seconds; pauses are the waits before each retry, Retry-After makes them longer, up to longest_pause."""

    pauses: tuple[float, ...] = (0.5, 1.0)
    longest_pause: float = 30.0
    most_bytes: int = 4 << 20
    sleep: Callable[[float], object] = time.sleep


class Answered(NamedTuple):
    """A reply, how long the last attempt took (milliseconds), and how many attempts before it may have been charged for."""

    reply: Reply
    latency_ms: int
    billed: int


class _Again(Exception):
    """An attempt that may be repeated."""

    def __init__(self, error: ProviderError, after: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


def ask(choice: Choice, question: Question, patience: Patience | None = None, rows: Rows | None = None) -> Answered:
    """Puts a question. Raises ProviderError; no key is in its message, nor what rows (None: the shipped rules) know as a secret."""
    patience = patience or Patience()
    shape = form(choice.provider)
    request = shape.request(choice, question)
    billed = 0
    pauses = list(patience.pauses)
    try:
        while True:
            started = time.monotonic()
            try:
                answer = _attempt(request, choice, patience)
                reply = shape.reply(answer)
                return Answered(reply, round((time.monotonic() - started) * 1000), billed)
            except _Again as again:
                billed += again.error.billed
                if not pauses:
                    tried = len(patience.pauses) + 1
                    raise ProviderError(again.error.kind, f"{again.error} (tried {tried} times)", billed) from None
                patience.sleep(min(max(pauses.pop(0), again.after), patience.longest_pause))
    except ProviderError as error:
        told = printable(_without_secrets(without_keys(str(error), choice.key), rows), 500)
        raise ProviderError(error.kind, told, billed + (error.kind == "reply")) from None


def _without_secrets(text: str, rows: Rows | None) -> str:
    from guardhook.journal.redact import redact_text
    from guardhook.journal.rules import freeze_rules

    return redact_text(text, freeze_rules() if rows is None else rows)


def _attempt(request: Request, choice: Choice, patience: Patience) -> dict[str, object]:
    import httpx

    try:
        status, headers, body = asyncio.run(_post(request, choice, patience.most_bytes))
    except TimeoutError:
        raise _Again(
            ProviderError("timeout", f"{choice.host} did not answer within {choice.timeout:g} seconds", 1)
        ) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ProviderError("rejected", f"{request.url} is no usable address: {error}") from None
    except UnicodeError as error:  # a host name that can't be put into its network form
        raise ProviderError("rejected", f"{choice.host} is no usable name: {error}") from None
    except (httpx.HTTPError, OSError) as error:
        what = str(error).strip() or type(error).__name__
        raise _Again(ProviderError("network", f"{choice.host} can't be reached or broke off: {what}")) from None
    if 300 <= status < 400:
        to = urllib.parse.urlsplit(headers.get("location", "")).netloc or "another address"
        raise ProviderError(
            "rejected", f"{choice.host} wants to send us on to {to} (status {status}); redirects are not followed"
        )
    if status != 200:
        raise _refused(status, headers.get("retry-after"), body, choice)
    return _object(body, choice)


async def _post(request: Request, choice: Choice, most: int) -> tuple[int, httpx.Headers, bytes]:
    """Status, headers and body. Raises TimeoutError, httpx.HTTPError, ProviderError."""
    import httpx

    headers = {
        "content-type": "application/json", "accept": "application/json", "accept-encoding": "gzip",
        "user-agent": f"guardhook/{__version__}", **request.headers,
    }  # fmt: skip
    async with (
        asyncio.timeout(choice.timeout),
        # A proxy has no business between this machine and itself, least of all with a key in plain text. Certificates are checked wherever
        # there are any; a plain connection has none, and loading the list of authorities takes longer than many an answer.
        httpx.AsyncClient(
            timeout=None, follow_redirects=False, trust_env=not choice.local, verify=not request.url.startswith("http:")
        ) as client,
        client.stream("POST", request.url, headers=headers, content=dumps(request.body).encode()) as response,
    ):
        return response.status_code, response.headers, await _body(response, most)


async def _body(response: httpx.Response, most: int) -> bytes:
    """The body, unpacked no further than the cap."""
    body = bytearray()
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    inflate = zlib.decompressobj(47) if encoding == "gzip" else None
    if inflate is None and encoding not in ("", "identity"):
        raise ProviderError("reply", f"the answer is encoded as {encoding}, which was not asked for")
    async for chunk in response.aiter_raw():
        try:
            body += chunk if inflate is None else inflate.decompress(chunk, most + 1 - len(body))
        except zlib.error:
            raise ProviderError("reply", "the answer's compression is damaged") from None
        if len(body) > most:
            raise ProviderError("reply", f"the answer is larger than {most >> 20} MiB")
    return bytes(body)


def _refused(status: int, retry_after: str | None, body: bytes, choice: Choice) -> Exception:
    said = _said(body)
    if status in (401, 403):
        return ProviderError("auth", f"{choice.provider} does not accept the key ({status}){said}")
    if status == 429:
        return _Again(
            ProviderError("rate", f"{choice.host} says that there are too many requests (429){said}"),
            _seconds(retry_after),
        )
    if status >= 500:
        return _Again(
            ProviderError("server", f"{choice.host} has a fault of its own ({status}){said}"), _seconds(retry_after)
        )
    return ProviderError("rejected", f"{choice.host} rejected the request ({status}){said}")


def _said(body: bytes) -> str:
    """The server's own words, where it has a message in the usual place."""
    try:
        value = table(loads(body[: 1 << 16], replace=True))
    except PayloadError:
        return ""
    error = value.get("error")
    message = table(error).get("message", error) if error is not None else value.get("message")
    return f": {' '.join(message.split())[:300]}" if isinstance(message, str) and message.strip() else ""


def _seconds(text: str | None) -> float:
    """The wait that Retry-After asks for, in seconds or as a date; 0 when it says nothing usable."""
    if text is None:
        return 0.0
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _object(body: bytes, choice: Choice) -> dict[str, object]:
    try:
        value = loads(body, replace=True)
    except PayloadError as error:
        told = str(error).replace("the payload", "it")
        raise ProviderError("reply", f"{choice.host} answered with something that is no JSON: {told}") from None
    if not isinstance(value, dict):
        raise ProviderError("reply", f"{choice.host} answered with JSON that is no object")
    return value
