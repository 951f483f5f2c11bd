"""OTLP requests made by hand, and a receiver in a process of its own."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from guardhook.core.folders import explicit
from guardhook.intake.otel import decode_json, decode_protobuf, logs, metrics, spans
from guardhook.intake.otel.pieces import Mapped
from guardhook.store import Trace, open_store
from guardhook.store.append import Appender

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "tests" / "fixtures" / "otlp"
START = 1_790_000_000_000_000_000  # nanoseconds
TRACE = "0af7651916cd43dd8448eb211c80319c"
Json = dict[str, object]


def value(plain: object) -> Json:
    """An AnyValue."""
    if isinstance(plain, bool):
        return {"boolValue": plain}
    if isinstance(plain, int):
        return {"intValue": str(plain)}
    if isinstance(plain, float):
        return {"doubleValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(item) for item in plain]}}
    if isinstance(plain, dict):
        return {"kvlistValue": {"values": attributes(plain)}}
    return {} if plain is None else {"stringValue": plain}


def attributes(plain: Json) -> list[Json]:
    return [{"key": key, "value": value(item)} for key, item in plain.items()]


def span(
    name: str,
    own: Json | None = None,
    *,
    id: str = "",
    parent: str = "",
    trace: str = TRACE,
    at: int | None = 0,
    lasts: int = 1_000_000,
    **more: object,
) -> Json:
    """A span that begins so many nanoseconds after START."""
    out: Json = {"traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "attributes": attributes(own or {})}  # fmt: skip
    if at is not None:
        out |= {"startTimeUnixNano": str(START + at), "endTimeUnixNano": str(START + at + lasts)}
    return out | more


def traces(*found: Json, service: str | None = "svc", resource: Json | None = None) -> Json:
    about = {**({} if service is None else {"service.name": service}), **(resource or {})}
    return {"resourceSpans": [{"resource": {"attributes": attributes(about)}, "scopeSpans": [{"scope": {"name": "t"}, "spans": list(found)}]}]}  # fmt: skip


def record(event: str, own: Json | None = None, *, at: int | None = 0, session: str | None = "s1", **more: object) -> Json:  # fmt: skip
    named = {"event.name": event, **({} if session is None else {"session.id": session}), **(own or {})}
    out: Json = {"attributes": attributes(named), "body": {"stringValue": event}}
    if at is not None:
        out["timeUnixNano"] = str(START + at * 1_000_000)
    return out | more


def log_request(*found: Json, service: str | None = "svc") -> Json:
    about = attributes({} if service is None else {"service.name": service})
    return {"resourceLogs": [{"resource": {"attributes": about}, "scopeLogs": [{"logRecords": list(found)}]}]}


def requests(name: str) -> list[Json]:
    """The requests in a fixture."""
    found = json.loads((FIXTURES / name).read_text())
    return list(found.get("requests", [found]))


def mapped(request: Json) -> Mapped:
    body = json.dumps(request).encode()
    if "resourceSpans" in request:
        return spans.mapped(decode_json.spans(body))
    if "resourceLogs" in request:
        return logs.mapped(decode_json.logs(body))
    return metrics.mapped(decode_json.points(body))


def protobuf(request: Json) -> bytes:
    """The same request in the other encoding."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kinds = {
        "resourceSpans": ExportTraceServiceRequest,
        "resourceLogs": ExportLogsServiceRequest,
        "resourceMetrics": ExportMetricsServiceRequest,
    }
    return bytes(ParseDict(_ids(request), kinds[next(iter(request))]()).SerializeToString())


def _ids(item: object) -> object:
    """protobuf's own JSON has ids in base64."""
    if isinstance(item, list):
        return [_ids(one) for one in item]
    if not isinstance(item, dict):
        return item
    out = {key: _ids(one) for key, one in item.items()}
    for key in ("traceId", "spanId", "parentSpanId"):
        if isinstance(out.get(key), str):
            out[key] = base64.b64encode(bytes.fromhex(str(out[key]))).decode()
    return out


def decoded(request: Json) -> object:
    """What the protobuf decoder makes of a request."""
    read = {"resourceSpans": decode_protobuf.spans, "resourceLogs": decode_protobuf.logs, "resourceMetrics": decode_protobuf.points}  # fmt: skip
    return read[next(iter(request))](protobuf(request))


class Stored:
    """What a person sees of a trace."""

    def __init__(self, base: Path, trace: Trace, steps: list[Json], prompts: list[str], happenings: list[str]) -> None:
        self.base = base
        self.trace = trace
        self.steps = steps
        self.prompts = prompts
        self.happenings = happenings

    @property
    def names(self) -> list[object]:
        return [step["name"] for step in self.steps]

    def step(self, name: str) -> Json:
        (found,) = [step for step in self.steps if step["name"] == name]
        return found


def stored(base: Path, *sent: Json) -> list[Stored]:
    """All traces, the earliest first, after these requests were written one after the other."""
    folders = explicit(str(base))
    appender = Appender(folders, dialect="otel")
    for request in sent:
        by_trace: dict[str, list[tuple[str, Json]]] = {}
        for piece in mapped(request).pieces:
            by_trace.setdefault(piece.trace, []).append(("trace.part", piece.event))
        for name, lines in by_trace.items():
            appender.put(name, lines, opens=True)
    return reading(base)


def reading(base: Path, *, problems: frozenset[str] = frozenset()) -> list[Stored]:
    """All traces, the earliest first. problems: kinds that the journal may have."""
    out = []
    with open_store(explicit(str(base))) as store:
        assert [p for p in store.problems() if p.kind not in problems] == []
        for trace in store.iterate(sort="started_at"):
            steps = [step.as_dict(trace.id) for step in store.steps(trace)]
            assert [step["step_number"] for step in steps] == list(range(1, len(steps) + 1))
            out.append(Stored(base, trace, steps, store.prompts(trace), [h.event for h in store.happenings(trace)]))
    return out


def only(found: list[Stored]) -> Stored:
    (one,) = found
    return one


class Receiver:
    """`guardhook otel serve` in a process of its own."""

    def __init__(self, folder: Path, *words: str, port: int = 0, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "guardhook", "otel", "serve", "--dir", str(folder), "--port", str(port), "--json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(environment or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        self.told: Json = json.loads(first or b"{}")
        self.account: Json = {}
        self.errors = ""

    @property
    def port(self) -> int:
        return int(str(self.told["http"]).rpartition(":")[2])

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def post(
        self, path: str, body: bytes | Json, headers: dict[str, str] | None = None, *, method: str = "POST"
    ) -> tuple[int, dict[str, str], bytes]:
        """Sends one request on a connection of its own. Gives status, headers and body."""
        connection = self.connection()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, {"content-type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and waits. Gives the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=60)
        self.errors = errors.decode()
        if out.strip():
            self.account = json.loads(out)
        return self.process.returncode


def answered(content: bytes) -> Json:
    found = json.loads(content)
    assert isinstance(found, dict)
    return found


def lines(folder: Path) -> Sequence[str]:
    """All lines of the journal."""
    return [line for file in sorted(folder.glob("journal/*/*.jsonl")) for line in file.read_text().splitlines()]
