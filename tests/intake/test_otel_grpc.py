"""The same over gRPC, which most exporters speak unless told otherwise."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from otel_rig import FIXTURES, REPOSITORY, Json, Receiver, lines, log_request, protobuf, reading, record, span, traces

grpc = pytest.importorskip("grpc", reason="gRPC is an extra")
SERVICE = "/opentelemetry.proto.collector.{}Service/Export"
TRACES, LOGS, METRICS = (SERVICE.format(name) for name in ("trace.v1.Trace", "logs.v1.Logs", "metrics.v1.Metrics"))


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    made = Receiver(tmp_path_factory.mktemp("otel") / "gh", "--grpc-port", "0", "--max-body", "100000")
    yield made
    made.stop(signal.SIGKILL)


def call(receiver: Receiver, method: str, body: bytes, **more: object) -> bytes:
    with grpc.insecure_channel(str(receiver.told["grpc"]), options=[("grpc.enable_retries", 0)]) as channel:
        return bytes(channel.unary_unary(method)(body, timeout=30, **more))


def refused(receiver: Receiver, method: str, body: bytes, **more: object) -> tuple[object, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(receiver, method, body, **more)
    return caught.value.code(), caught.value.details()


def test_what_is_acknowledged_is_in_the_journal(receiver: Receiver) -> None:
    assert call(receiver, TRACES, protobuf(traces(span("chat m", id="b" * 16)))) == b""
    assert len(lines(receiver.folder)) == 1
    assert call(receiver, LOGS, (FIXTURES / "gemini-logs.grpc.sample.bin").read_bytes()) == b""
    assert call(receiver, METRICS, b"") == b""
    assert {one.trace.agent_name for one in reading(receiver.folder)} == {"svc", "gemini"}


def test_a_span_over_both_ways_is_one(receiver: Receiver) -> None:
    request: Json = traces(span("both", id="c" * 16, trace="9" * 32))
    before = len(lines(receiver.folder))
    assert receiver.post("/v1/traces", request)[0] == 200
    assert call(receiver, TRACES, protobuf(request), compression=grpc.Compression.Gzip) == b""
    assert len(lines(receiver.folder)) == before + 1


def test_refusals(receiver: Receiver) -> None:
    before = len(lines(receiver.folder))
    code, why = refused(receiver, TRACES, b"\x0a\xff")
    assert (code, why) == (grpc.StatusCode.INVALID_ARGUMENT, "the body is not an OTLP protobuf request")
    assert refused(receiver, TRACES, b"\0" * 300_000)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    bomb = refused(receiver, TRACES, b"\0" * 3_000_000, compression=grpc.Compression.Gzip)
    assert bomb[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused(receiver, "/some.Service/Export", b"")[0] == grpc.StatusCode.UNIMPLEMENTED
    origin = (("origin", "http://evil.example"),)
    assert refused(receiver, TRACES, b"", metadata=origin)[0] == grpc.StatusCode.PERMISSION_DENIED
    assert len(lines(receiver.folder)) == before


def test_records_that_are_refused_are_counted_to_the_sender(receiver: Receiver) -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

    told = ExportLogsServiceResponse.FromString(call(receiver, LOGS, protobuf(log_request(record("app.started")))))
    assert told.partial_success.rejected_log_records == 1


def test_a_journal_that_can_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    receiver = Receiver(folder, "--grpc-port", "0")
    (folder / "journal").rmdir()
    (folder / "journal").write_text("in the way")
    assert refused(receiver, TRACES, protobuf(traces(span("x"))))[0] == grpc.StatusCode.UNAVAILABLE
    assert receiver.stop() == 0 and receiver.errors.count("\n") == 1


def test_a_busy_port_names_who_has_it(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        receiver = Receiver(tmp_path / "gh", "--grpc-port", str(port))
        receiver.process.wait(30)
        assert receiver.stop() == 1 and receiver.errors == ""  # the library would tell of its own source code
    assert f"127.0.0.1:{port} is in use" in str(receiver.told["error"])
    if sys.platform == "linux":
        assert f"by process {os.getpid()} (" in str(receiver.told["error"])


def without_grpc(tmp_path: Path) -> dict[str, str]:
    """As where the extra is not installed."""
    folder = tmp_path / "shadow"
    folder.mkdir(exist_ok=True)
    (folder / "grpc.py").write_text("raise ImportError('not installed')\n")
    return {"PYTHONPATH": f"{folder}:{REPOSITORY}"}


def test_where_grpc_is_not_installed(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "guardhook", "otel", "serve", "--dir", str(tmp_path / "gh"), "--port", "0", "--json"]
    found = subprocess.run(
        [*words, "--grpc-port", "0"],
        capture_output=True,
        timeout=30,
        env={**os.environ, **without_grpc(tmp_path)},
        check=False,
    )
    told = json.loads(found.stdout)
    assert found.returncode == 1 and "guardhook[grpc]" in told["hints"][0] and "single-file" in told["hints"][0]
    receiver = Receiver(tmp_path / "gh", environment=without_grpc(tmp_path))
    assert receiver.told["grpc"] is None
    assert receiver.post("/v1/traces", traces(span("x")))[0] == 200
    assert receiver.stop() == 0 and "guardhook[grpc]" in receiver.errors
