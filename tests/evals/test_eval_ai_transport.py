"""Asking a model through a server that misbehaves in every way that servers do."""

from __future__ import annotations

import email.utils
import gzip
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from guardhook.evals.ai.provider import ProviderError, Question
from guardhook.evals.ai.settings import Choice
from guardhook.evals.ai.transport import Answered, Patience, ask
from guardhook.journal.rules import freeze_rules
from tests.evals import model_server as model

KEY = "sk-test-0123456789abcdefghijklmnop"
QUESTION = Question("be exact", "what is it", 77)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[model.Server]:
    with model.serving() as found:
        yield found


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def choice(server: model.Server, provider: str = "openai", *, timeout: float = 60, key: str | None = KEY) -> Choice:
    return Choice(provider, "some-model", key, server.url, 77, timeout)


def put(server: model.Server, sleeper: Sleeper | None = None, *, timeout: float = 60, provider: str = "openai", most: int = 1 << 20) -> Answered:  # fmt: skip
    return ask(
        choice(server, provider, timeout=timeout), QUESTION, Patience(sleep=sleeper or Sleeper(), most_bytes=most)
    )


def failing(server: model.Server, sleeper: Sleeper | None = None, **more: float) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        put(server, sleeper, **more)  # type: ignore[arg-type]
    assert KEY not in str(caught.value) and KEY not in repr(caught.value)
    return caught.value


# --- the three forms -----------------------------------------------------------------------------------------------


def test_openai(server: model.Server) -> None:
    server.script = [model.said("hello", 12, 3)]
    found = put(server)
    assert (found.reply.text, found.reply.tokens_in, found.reply.tokens_out, found.billed) == ("hello", 12, 3, 0)
    (seen,) = server.seen
    assert seen.path == "/chat/completions" and seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "some-model", "max_completion_tokens": 77,
        "messages": [{"role": "system", "content": "be exact"}, {"role": "user", "content": "what is it"}],
    }  # fmt: skip


def test_anthropic(server: model.Server) -> None:
    server.script = [model.value({
        "content": [{"type": "thinking", "thinking": "no"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "usage": {"input_tokens": 5, "output_tokens": 6}, "stop_reason": "max_tokens",
    })]  # fmt: skip
    found = put(server, provider="anthropic").reply
    assert (found.text, found.tokens_in, found.tokens_out, found.cut) == ("ab", 5, 6, True)
    (seen,) = server.seen
    assert (seen.path, seen.headers["x-api-key"], seen.headers["anthropic-version"]) == (
        "/v1/messages",
        KEY,
        "2023-06-01",
    )
    assert "authorization" not in seen.headers
    assert (seen.body["max_tokens"], seen.body["system"], seen.body["messages"]) == (77, "be exact", [{"role": "user", "content": "what is it"}])  # fmt: skip


def test_google(server: model.Server) -> None:
    server.script = [model.value({
        "candidates": [{"content": {"parts": [{"text": "x", "thought": True}, {"text": "y"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 4},
    })]  # fmt: skip
    found = put(server, provider="google").reply
    assert (found.text, found.tokens_in, found.tokens_out, found.cut) == ("y", 9, 6, False)
    (seen,) = server.seen
    assert (seen.path, seen.headers["x-goog-api-key"]) == ("/v1beta/models/some-model:generateContent", KEY)
    assert KEY not in seen.path and seen.body["generationConfig"] == {"maxOutputTokens": 77}
    assert seen.body["contents"] == [{"role": "user", "parts": [{"text": "be exact\n\nwhat is it"}]}]


def test_a_hostile_model_name_stays_in_its_place(server: model.Server) -> None:
    server.script = [model.value({"candidates": [{"content": {"parts": [{"text": "y"}]}}]})]
    ask(Choice("google", "../../x?key=1#", None, server.url), QUESTION, Patience())
    assert server.seen[0].path == "/v1beta/models/..%2F..%2Fx%3Fkey%3D1%23:generateContent"
    assert "x-goog-api-key" not in server.seen[0].headers


def test_a_local_server_needs_no_key(server: model.Server) -> None:
    server.script = [model.said("hi")]
    ask(choice(server, key=None), QUESTION, Patience())
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
@pytest.mark.parametrize(
    "body",
    [
        {}, {"choices": [], "content": [], "candidates": []}, {"choices": "x", "content": "x", "candidates": {"0": 1}}, {"choices": [None], "content": [None], "candidates": [7]},
        {"choices": [{"message": {"content": None}}], "content": [{"type": "text", "text": 5}], "candidates": [{"content": {"parts": [{"text": None}]}}]},
        {"choices": [{"message": {"content": " "}}], "content": [{"type": "text", "text": ""}], "candidates": [{"content": {"parts": "y"}}]},
        {"choices": [{"message": {"refusal": "I can't"}}], "promptFeedback": {"blockReason": "SAFETY"}},
    ],
)  # fmt: skip
def test_answers_of_another_shape(server: model.Server, provider: str, body: object) -> None:
    server.script = [model.value(body)]
    with pytest.raises(ProviderError) as caught:
        put(server, provider=provider)
    assert caught.value.kind == "reply" and caught.value.billed == 1
    assert len(server.seen) == 1


def test_usage_that_is_nonsense_is_unknown(server: model.Server) -> None:
    server.script = [model.said("hi", into="7", out=-3), model.said("hi", into=True, out=1e99)]
    for _ in range(2):
        found = put(server).reply
        assert (found.tokens_in, found.tokens_out) == (None, None)


# --- time, drops, floods -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [model.silent, model.dripping, model.dripping_head])
def test_slow_servers_meet_the_deadline_of_an_attempt(server: model.Server, behaviour: model.Behaviour) -> None:
    server.always = behaviour
    sleeper = Sleeper()
    error = failing(server, sleeper, timeout=0.25)
    assert (error.kind, error.billed, sleeper.slept) == ("timeout", 3, [0.5, 1.0]) and len(server.seen) <= 3
    assert "did not answer within 0.25 seconds (tried 3 times)" in str(error)


@pytest.mark.parametrize("behaviour", [model.dropping, model.breaking_off, model.gibberish])
def test_broken_connections_are_tried_again(server: model.Server, behaviour: model.Behaviour) -> None:
    server.script = [behaviour, behaviour, model.said("at last")]
    sleeper = Sleeper()
    assert put(server, sleeper).reply.text == "at last" and sleeper.slept == [0.5, 1.0]
    server.always = behaviour
    assert failing(server).kind == "network"


def test_nobody_listens(server: model.Server) -> None:
    with model.serving() as gone:
        url = gone.url
    with pytest.raises(ProviderError) as caught:
        ask(Choice("openai", "m", KEY, url), QUESTION, Patience(sleep=Sleeper()))
    assert caught.value.kind == "network" and caught.value.billed == 0


@pytest.mark.parametrize("behaviour", [model.endless, model.bomb])
def test_floods_are_cut_off(server: model.Server, behaviour: model.Behaviour) -> None:
    server.script = [behaviour]
    error = failing(server, most=1 << 20)
    assert error.kind == "reply" and "larger than 1 MiB" in str(error) and len(server.seen) == 1


def test_compression(server: model.Server) -> None:
    good = json.dumps({"choices": [{"message": {"content": "zipped"}}]}).encode()
    server.script = [model.raw(gzip.compress(good), content_encoding="gzip")]
    assert put(server).reply.text == "zipped"
    server.script = [model.raw(b"no gzip", content_encoding="gzip"), model.raw(good, content_encoding="br")]
    assert "damaged" in str(failing(server)) and "not asked for" in str(failing(server))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"choices": [{"message": {"content": "cut o', b"null", b"[1]", b"<html>502</html>", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b'{"choices":' + b"9" * 5000],
)  # fmt: skip
def test_bodies_that_are_no_object(server: model.Server, body: bytes) -> None:
    server.script = [model.raw(body)]
    assert failing(server).kind == "reply" and len(server.seen) == 1


# --- statuses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "tries"),
    [(400, "rejected", 1), (401, "auth", 1), (403, "auth", 1), (404, "rejected", 1), (429, "rate", 3), (500, "server", 3), (503, "server", 3), (204, "rejected", 1)],
)  # fmt: skip
def test_statuses(server: model.Server, code: int, kind: str, tries: int) -> None:
    server.always = model.status(code) if code != 204 else lambda h: h.answer(204, b"")
    error = failing(server)
    assert (error.kind, len(server.seen), error.billed) == (kind, tries, 0)
    assert str(code) in str(error)


@pytest.mark.parametrize(
    ("header", "slept"),
    [("7", [7, 1]), ("0", [0.5, 1]), ("999999999999", [30, 1]), ("soon", [0.5, 1]), ("-5", [0.5, 1]), ("1.5", [0.5, 1]), ("٣", [0.5, 1]), ("", [0.5, 1])],
)  # fmt: skip
def test_retry_after(server: model.Server, header: str, slept: list[float]) -> None:
    # http.server sends Latin-1 only; what does not fit is sent as UTF-8 bytes.
    text = header.encode().decode("latin-1")
    server.script = [model.status(429, retry_after=text), model.status(500), model.said("ok")]
    sleeper = Sleeper()
    assert put(server, sleeper).reply.text == "ok"
    assert sleeper.slept == slept


def test_retry_after_as_a_date(server: model.Server) -> None:
    server.script = [
        model.status(503, retry_after=email.utils.formatdate(time.time() + 3600, usegmt=True)),
        model.said("ok"),
    ]
    sleeper = Sleeper()
    put(server, sleeper)
    assert sleeper.slept == [30]


def test_what_the_server_says_is_told_without_keys_and_controls(server: model.Server) -> None:
    server.script = [model.status(401, f"Incorrect key {KEY} or {KEY[:12]}****\x1b[31m, see AKIAIOSFODNN7EXAMPLE")]
    told = str(failing(server))
    assert "does not accept the key (401): Incorrect key sk-t…mnop" in told
    assert KEY[:12] not in told and "AKIAIOSFODNN7EXAMPLE" not in told and "\x1b" not in told


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_keys_follow_no_redirect(server: model.Server, code: int) -> None:
    with model.serving(always=model.said("stolen")) as other:
        server.script = [model.redirect(f"{other.url}/v1?x=1", code)]
        error = failing(server)
        assert error.kind == "rejected" and "redirects are not followed" in str(error)
        assert other.seen == [] and len(server.seen) == 1


def test_no_proxy_stands_between_this_machine_and_itself(server: model.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with model.serving(always=model.said("seen it all")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        server.script = [model.said("direct")]
        assert put(server).reply.text == "direct" and proxy.seen == []


def test_a_host_name_that_is_none(server: model.Server) -> None:
    for host in ("a" * 80, "x..y"):
        with pytest.raises(ProviderError):
            ask(Choice("openai", "m", None, f"http://{host}"), QUESTION, Patience(sleep=Sleeper()))


def test_certificates_are_checked(tmp_path: Path) -> None:
    """A server whose certificate nobody vouches for gets no key."""
    certificate = tmp_path / "server.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", certificate, "-out", f"{certificate}.crt"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no openssl program to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{certificate}.crt", certificate)
    with model.serving(always=model.said("stolen")) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with pytest.raises(ProviderError) as caught:
            ask(Choice("openai", "m", KEY, server.url.replace("http:", "https:")), QUESTION, Patience(sleep=Sleeper()))
        assert caught.value.kind == "network" and "certificate" in str(caught.value).lower() and server.seen == []


def test_thinking_that_leaves_no_room_for_an_answer(server: model.Server) -> None:
    server.script = [model.said("", finish="length")]
    assert "raise it" in str(failing(server))


def test_a_servers_words_go_through_the_users_own_patterns(server: model.Server) -> None:
    server.script = [model.status(400, "no EMP123456 here")]
    with pytest.raises(ProviderError) as caught:
        ask(choice(server), QUESTION, Patience(sleep=Sleeper()), freeze_rules(("EMP[0-9]{6}",)))
    assert "EMP123456" not in str(caught.value) and "[REDACTED:custom]" in str(caught.value)
