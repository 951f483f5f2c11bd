"""The receiver as a process: what it answers, what it refuses, when it stops."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from otel_rig import (
    FIXTURES,
    REPOSITORY,
    Json,
    Receiver,
    answered,
    lines,
    log_request,
    protobuf,
    reading,
    record,
    requests,
    span,
    traces,
)

from guardhook.intake.otel.body import Body, Limits, Memory, Refusal

GOOD = traces(span("chat m", id="b" * 16))
SMALL = 200_000  # --max-body of the receiver under test
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    made = Receiver(tmp_path_factory.mktemp("otel") / "gh", "--no-grpc", "--max-body", str(SMALL))
    yield made
    made.stop(signal.SIGKILL)


def sent(number: int) -> Json:
    """A request of its own trace, by which it can be found."""
    return traces(span("chat m", id="b" * 16, trace=f"{number:032x}"))


def kept(receiver: Receiver) -> int:
    return len(lines(receiver.folder))


def test_each_signal_in_each_encoding_is_in_the_journal_when_it_is_acknowledged(receiver: Receiver) -> None:
    before = kept(receiver)
    assert receiver.post("/v1/traces", sent(1))[::2] == (200, b"{}")
    assert kept(receiver) == before + 1
    status, headers, body = receiver.post("/v1/traces", protobuf(sent(2)), PROTOBUF)
    assert (status, headers["content-type"], body) == (200, "application/x-protobuf", b"")
    assert kept(receiver) == before + 2
    event = log_request(record("gemini_cli.tool_call", {"function_name": "f"}, session="of this test"))
    assert receiver.post("/v1/logs", protobuf(event), PROTOBUF)[0] == 200
    assert kept(receiver) == before + 3
    assert receiver.post("/v1/logs", event)[0] == 200  # the same in the other encoding is the same
    assert kept(receiver) == before + 3
    for name, path in (("claude-code-metrics.json", "/v1/metrics"), ("codex-metrics.json", "/v1/metrics")):
        for request in requests(name):
            assert receiver.post(path, request)[::2] == (200, b"{}")
    found = {one.trace.metadata.get("otel_trace_id"): one for one in reading(receiver.folder)}
    assert found[f"{1:032x}"].names == found[f"{2:032x}"].names == ["chat m"]


def test_gzip(receiver: Receiver) -> None:
    zipped = {"content-encoding": "gzip"}
    before = kept(receiver)
    body = json.dumps(sent(10)).encode()
    assert receiver.post("/v1/traces", gzip.compress(body), zipped)[0] == 200
    half = len(body) // 2
    again = json.dumps(sent(11)).encode()
    assert receiver.post("/v1/traces", gzip.compress(again[:half]) + gzip.compress(again[half:]), zipped)[0] == 200
    assert receiver.post("/v1/traces", json.dumps(sent(12)).encode(), {"content-encoding": "identity"})[0] == 200
    assert kept(receiver) == before + 3
    for broken in (gzip.compress(body)[:-9], b"no gzip", b"", gzip.compress(body) + b"and more", zlib.compress(body)):
        status, _, told = receiver.post("/v1/traces", broken, zipped)
        assert status == 400 and "gzip" in str(answered(told)["message"])
    assert kept(receiver) == before + 3


BAD = [
    ("/v1/traces", b"{", {}), ("/v1/traces", b"[]", {}), ("/v1/traces", b"", {}), ("/v1/logs", b'{"resourceLogs": {}}', {}),
    ("/v1/metrics", b'{"resourceMetrics": [5]}', {}), ("/v1/traces", b"\x0a\xff", PROTOBUF), ("/v1/logs", b"\x0a\x05a", PROTOBUF),
    ("/v1/metrics", b"\xff\xff", PROTOBUF), ("/v1/traces", b'{"resource_spans": []}', {}), ("/v1/logs", json.dumps(GOOD).encode(), {}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "headers"), BAD)
def test_what_is_malformed_is_refused_for_good_and_stores_nothing(
    receiver: Receiver, path: str, body: bytes, headers: dict[str, str]
) -> None:
    before = kept(receiver)
    status, said, told = receiver.post(path, body, headers)
    assert status == 400 and "retry-after" not in said
    if headers:
        assert said["content-type"] == "application/x-protobuf" and told[:2] == b"\x08\x03"
    else:
        assert answered(told)["code"] == 3 and answered(told)["message"]
    assert kept(receiver) == before


def test_one_malformed_span_stores_nothing_of_its_request(receiver: Receiver) -> None:
    before = kept(receiver)
    assert receiver.post("/v1/traces", traces(span("good", id="1" * 16, trace="d" * 32), {"name": 5}))[0] == 400
    assert kept(receiver) == before


REFUSED = [
    (404, "POST", "/", {}), (404, "POST", "/v1/traces/", {}), (404, "POST", "/v1/tracesandmore", {}), (404, "GET", "/healthz", {}),
    (405, "GET", "/v1/traces", {}), (405, "PUT", "/v1/logs", {}), (405, "OPTIONS", "/v1/logs", {}), (405, "HEAD", "/v1/logs", {}),
    (415, "POST", "/v1/traces", {"content-type": "text/plain"}), (415, "POST", "/v1/traces", {"content-type": ""}),
    (415, "POST", "/v1/traces", {"content-type": "application/x-www-form-urlencoded"}),
    (415, "POST", "/v1/traces", {"content-encoding": "br"}), (415, "POST", "/v1/traces", {"content-encoding": "gzip, gzip"}),
    (403, "POST", "/v1/traces", {"origin": "http://evil.example"}), (403, "POST", "/v1/traces", {"origin": "null"}),
    (403, "OPTIONS", "/v1/traces", {"origin": "http://127.0.0.1:4318"}),
    (403, "POST", "/v1/traces", {"host": "evil.example"}), (403, "POST", "/v1/traces", {"host": "evil.example:4318"}),
    (403, "POST", "/v1/traces", {"host": "10.0.0.7:4318"}), (403, "POST", "/v1/traces", {"host": "localhost.evil.example"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "method", "path", "headers"), REFUSED)
def test_what_is_refused(receiver: Receiver, status: int, method: str, path: str, headers: dict[str, str]) -> None:
    before = kept(receiver)
    found, said, told = receiver.post(path, sent(20), headers, method=method)
    assert found == status
    assert method == "HEAD" or answered(told)["message"]
    assert (said.get("allow") == "POST") is (status == 405)
    assert "access-control-allow-origin" not in said
    assert kept(receiver) == before


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:4318", "127.0.0.1:1", "[::1]:4318", "127.0.0.9", "guard.localhost"]
)
def test_names_of_this_machine_are_taken(receiver: Receiver, host: str) -> None:
    assert receiver.post("/v1/traces", GOOD, {"host": host})[0] == 200


def test_types_with_parameters_and_in_capitals(receiver: Receiver) -> None:
    assert receiver.post("/v1/traces", GOOD, {"content-type": "Application/JSON; charset=utf-8"})[0] == 200


def raw(receiver: Receiver, *pieces: bytes, wait: float = 0.0) -> bytes:
    """Writes pieces as they are and gives all that comes back until the end of the connection."""
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(wait)
        out = b""
        while chunk := connection.recv(65536):
            out += chunk
        return out


HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_request_without_a_length_is_told_so(receiver: Receiver) -> None:
    assert raw(receiver, HEAD + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 411 ")


REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(json.dumps(GOOD)) + json.dumps(GOOD).encode()
SLOW: dict[str, Callable[[Receiver], bytes]] = {
    "no head": lambda r: raw(r, b""),
    "half a line": lambda r: raw(r, b"POST /v1/tra"),
    "half a head": lambda r: raw(r, HEAD),
    "second head": lambda r: raw(r, REQUEST, b"POST /v1/traces HT", wait=0.3),
    "second head with the first request": lambda r: raw(r, REQUEST + b"POST /v1/traces HT"),
    "body": lambda r: raw(r, HEAD + b"Content-Length: 500\r\n\r\n", b'{"resourceSpans"'),
}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, bytes], int]]:
    """What a receiver that does not wait long answers to slow senders, which it has all at once; and how many lines it wrote."""
    hasty = Receiver(tmp_path_factory.mktemp("otel") / "gh", "--no-grpc", "--timeout", "1")
    try:
        with ThreadPoolExecutor(len(SLOW)) as threads:
            waiting = {name: threads.submit(send, hasty) for name, send in SLOW.items()}
            answers = {name: future.result() for name, future in waiting.items()}
        yield answers, kept(hasty)
    finally:
        hasty.stop(signal.SIGKILL)


@pytest.mark.parametrize("name", SLOW)
def test_what_does_not_come_is_waited_for_only_so_long(slow: tuple[dict[str, bytes], int], name: str) -> None:
    answer = slow[0][name]
    if name.startswith("second"):
        assert answer.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in answer
    else:
        assert answer.startswith(b"HTTP/1.1 408 ") and b"connection: close" in answer.lower()


def test_a_body_that_drips_is_cut_off() -> None:
    """Each piece comes in time, the whole does not."""
    limits = Limits(seconds=0.1)

    async def drip() -> dict[str, object]:
        await asyncio.sleep(limits.seconds / 10)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(Refusal) as refused:
        asyncio.run(Body(drip, limits, Memory(1 << 20), gzip=False).read())
    assert refused.value.status == 408 and refused.value.closes


def test_half_requests_store_nothing(slow: tuple[dict[str, bytes], int]) -> None:
    assert slow[1] == 1  # that of the two whole ones, which were the same


def test_a_sender_that_goes_away_in_the_middle_stores_nothing(receiver: Receiver) -> None:
    before = kept(receiver)
    with socket.create_connection(("127.0.0.1", receiver.port)) as connection:
        connection.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
    assert receiver.post("/v1/traces", sent(30))[0] == 200
    assert kept(receiver) == before + 1


def test_nonsense_instead_of_http(receiver: Receiver) -> None:
    assert raw(receiver, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert raw(receiver, HEAD + b"Content-Length: five\r\n\r\n").startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("size", [SMALL + 1, 40 * SMALL])
def test_what_is_too_large_is_told_so_and_the_answer_arrives(receiver: Receiver, size: int) -> None:
    before = kept(receiver)
    status, headers, told = receiver.post("/v1/traces", b" " * size)
    assert (status, headers.get("connection")) == (413, "close") and "larger" in str(answered(told)["message"])
    chunked = receiver.connection()
    chunked.request(
        "POST", "/v1/traces", (b" " * 50_000 for _ in range(size // 50_000 + 1)), {"content-type": "application/json"}
    )
    assert chunked.getresponse().status == 413
    assert kept(receiver) == before


def test_a_sender_that_asks_first_is_told_no_at_once(receiver: Receiver) -> None:
    answer = raw(receiver, HEAD + b"Content-Length: 500000000\r\nExpect: 100-continue\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_just_not_too_large_is_taken(receiver: Receiver) -> None:
    body = json.dumps(GOOD).encode()
    assert receiver.post("/v1/traces", body + b" " * (SMALL - len(body)))[0] == 200


def test_a_gzip_bomb_is_stopped_before_it_is_inflated(receiver: Receiver) -> None:
    """Half a gigabyte of blanks in less than the allowed size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(packer.compress(b" " * (1 << 20)) for _ in range(150)), packer.flush()])
    assert len(bomb) < SMALL
    status, _, told = receiver.post("/v1/traces", bomb, {"content-encoding": "gzip"})
    assert status == 413 and "inflated" in str(answered(told)["message"])
    peak = next(
        line for line in Path(f"/proc/{receiver.process.pid}/status").read_text().splitlines() if "VmHWM" in line
    )
    assert int(peak.split()[1]) < 150_000  # kB


def test_records_that_are_refused_are_counted_to_the_sender(receiver: Receiver) -> None:
    odd = log_request(record("app.started"), record("gemini_cli.tool_call", {"function_name": "f"}))
    found = answered(receiver.post("/v1/logs", odd)[2])["partialSuccess"]
    assert isinstance(found, dict) and found["rejectedLogRecords"] == 1 and "1 of 2" in found["errorMessage"]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    (request,) = requests("codex-traces.json")
    for group in request["resourceSpans"]:  # type: ignore[attr-defined]
        for scope in group["scopeSpans"]:
            scope["scope"].pop("attributes", None)
    told = ExportTraceServiceResponse.FromString(receiver.post("/v1/traces", protobuf(request), PROTOBUF)[2])
    assert told.partial_success.rejected_spans == 5 and told.partial_success.error_message
    assert answered(receiver.post("/v1/traces", request)[2])["partialSuccess"]["rejectedSpans"] == 5  # type: ignore[index]


def test_one_connection_carries_many_requests(receiver: Receiver) -> None:
    connection = receiver.connection()
    for number in range(5):
        connection.request("POST", "/v1/traces", json.dumps(sent(40 + number)), {"content-type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"{}")
        body = b"{" if number % 2 else b"{}"
        connection.request("POST", "/v1/traces", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == (400 if number % 2 else 200) and answer.read()


# --- starting and stopping ------------------------------------------------------------------------------------------


def serve(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "guardhook", "otel", "serve", "--dir", str(folder), *words],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told_and_gives_an_account(tmp_path: Path, number: int) -> None:
    receiver = Receiver(tmp_path / "gh", "--no-grpc")
    for _ in range(2):
        receiver.post("/v1/traces", sent(1))
    receiver.post("/v1/traces", b"{")
    for request in requests("codex-metrics.json"):
        receiver.post("/v1/metrics", request)
    idle = receiver.connection()
    idle.connect()
    assert receiver.stop(number) == 0, receiver.errors
    assert receiver.errors == ""
    assert receiver.account["requests"] == {"traces": 2, "logs": 0, "metrics": 1}
    assert receiver.account["records"] == {"traces": 2, "logs": 0, "metrics": 10}
    assert (receiver.account["parts"], receiver.account["redelivered"], receiver.account["requests_refused"]) == (1, 1, 1)  # fmt: skip
    metrics = receiver.account["metrics"]
    assert isinstance(metrics, dict) and metrics["codex.hooks.run"]


def test_what_is_under_way_when_it_is_told_to_stop_is_finished(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path / "gh", "--no-grpc")
    body = json.dumps(GOOD).encode()
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=20) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # it is being read
        receiver.process.send_signal(signal.SIGTERM)
        while True:  # it takes no more connections
            try:
                socket.create_connection(("127.0.0.1", receiver.port)).close()
            except OSError:
                break
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert receiver.stop() == 0
    assert len(lines(receiver.folder)) == 1


def test_words_for_a_person(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "guardhook", "otel", "serve", "--dir", str(tmp_path), "--port", "0", "--no-grpc"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("OTLP/HTTP on http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "") and "taken in: 0 spans" in errors


def test_a_busy_port_names_who_has_it(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        found = serve(tmp_path / "gh", "--no-grpc", "--port", str(port))
    assert found.returncode == 1 and f"127.0.0.1:{port} is in use" in found.stderr and "Traceback" not in found.stderr
    if sys.platform == "linux":
        assert f"by process {os.getpid()} (" in found.stderr
    assert not (tmp_path / "gh").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_loopback_only_when_told_twice(tmp_path: Path, host: str) -> None:
    found = serve(tmp_path / "gh", "--no-grpc", "--host", host, "--json")
    assert found.returncode == 2
    assert "--allow-remote" in json.loads(found.stdout)["hints"][0]


def test_beyond_loopback_when_told_twice(tmp_path: Path) -> None:
    receiver = Receiver(
        tmp_path / "gh", "--no-grpc", "--host", "0.0.0.0", "--allow-remote", "--allow-host", "collector"
    )
    for host, status in (("10.0.0.7:4318", 200), ("collector:4318", 200), ("evil.example", 403)):
        assert receiver.post("/v1/traces", GOOD, {"host": host})[0] == status
    assert receiver.post("/v1/traces", GOOD, {"origin": "http://10.0.0.7"})[0] == 403
    receiver.stop()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--port", "70000"), 2), (("--port", "x"), 2), (("--host", "no such host!"), 1), (("--host", "a" * 300), 1),
        (("--no-grpc", "--grpc-port", "1"), 2), (("--timeout", "0"), 2), (("--timeout", "nan"), 2),
    ],
)  # fmt: skip
def test_wrong_usage(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    found = serve(tmp_path / "gh", *words)
    assert found.returncode == code and found.stderr and "Traceback" not in found.stderr


def test_a_journal_that_can_not_be_written_is_a_reason_to_try_again(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    receiver = Receiver(folder, "--no-grpc")
    (folder / "journal").rmdir()
    (folder / "journal").write_text("in the way")
    status, headers, told = receiver.post("/v1/traces", sent(1))
    assert status == 503 and int(headers["retry-after"]) > 0 and "journal" in str(answered(told)["message"])
    (folder / "journal").unlink()
    assert receiver.post("/v1/traces", sent(1))[0] == 200
    assert receiver.stop() == 0
    assert str(folder) in receiver.errors and "Traceback" not in receiver.errors
    assert len(lines(folder)) == 1


def test_a_journal_that_can_never_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("in the way")
    found = serve(tmp_path, "--no-grpc", "--port", "0")
    assert found.returncode == 1 and f"{tmp_path}/journal can't be written" in found.stderr


def test_secrets_do_not_reach_the_journal(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    own: Json = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.arguments": json.dumps({"command": f"curl -H {secret}"}),
    }
    receiver = Receiver(tmp_path / "gh", "--no-grpc")
    receiver.post("/v1/traces", traces(span("t", own, id="b" * 16)))
    receiver.stop()
    (line,) = lines(tmp_path / "gh")
    assert secret not in line and "[REDACTED:" in line


def test_where_nothing_may_be_kept_of_what_was_said(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    folder.mkdir()
    (folder / "config.toml").write_text('[capture]\nmode = "none"\n')
    receiver = Receiver(folder, "--no-grpc")
    for request in requests("claude-code-logs.json"):
        receiver.post("/v1/logs", request)
    for request in requests("gemini-traces.http.json"):
        receiver.post("/v1/traces", request)
    receiver.stop()
    text = "\n".join(lines(folder))
    assert "scripted tool" not in text and "echo" not in text.replace("mcp__lab__echo", "") and "canary" not in text
    claude = next(one for one in reading(folder) if one.trace.agent_name == "claude-code")
    assert claude.trace.step_count == 30 and claude.trace.total_tokens == 6710


def test_a_request_as_a_real_client_sends_it(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path / "gh", "--no-grpc")
    body = (FIXTURES / "gemini-logs.grpc.sample.bin").read_bytes()
    assert receiver.post("/v1/logs", body, PROTOBUF)[0] == 200
    receiver.stop()
    (found,) = reading(tmp_path / "gh")
    assert [s["name"] for s in found.steps if s["step_type"] == "tool_call"] == ["run_shell_command"] * 2


def test_more_connections_than_it_has_room_for(tmp_path: Path) -> None:
    """Those that are too many are told so, and the others are served when there is room again."""
    receiver = Receiver(tmp_path / "gh", "--no-grpc", "--timeout", "60")
    held = [socket.create_connection(("127.0.0.1", receiver.port), timeout=30) for _ in range(520)]
    assert any(one.recv(20).startswith(b"HTTP/1.1 503 ") for one in held[-4:])
    for one in held:
        one.close()
    deadline = time.monotonic() + 20
    while receiver.post("/v1/traces", GOOD)[0] != 200:
        assert time.monotonic() < deadline
    assert receiver.stop() == 0


def test_a_sender_that_does_not_keep_the_connection(receiver: Receiver) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=30)
    connection.request(
        "POST", "/v1/traces", json.dumps(GOOD), {"content-type": "application/json", "connection": "close"}
    )
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read() == b"{}" and answer.getheader("connection") == "close"
