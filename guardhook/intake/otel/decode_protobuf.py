"""OTLP/protobuf, with the messages of opentelemetry-proto. Imported only when a sender speaks it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from guardhook.intake.otel.decode_json import finite
from guardhook.intake.otel.records import (
    DEPTH,
    VALUES_MOST,
    Attributes,
    Log,
    Malformed,
    Point,
    Source,
    Span,
    SpanEvent,
    TooMany,
    nanos,
)

_DELTA = 1
_RESPONSES = {
    "traces": ExportTraceServiceResponse,
    "logs": ExportLogsServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
_REJECTED = {"traces": "rejected_spans", "logs": "rejected_log_records", "metrics": "rejected_data_points"}


_SCANNED_BYTES = 2 << 20  # what is smaller can't do harm
# Field numbers that are messages, and of which kind; what is not listed are strings, numbers, and lists of numbers.
_COMMON: dict[str, dict[int, str]] = {
    "resource": {1: "pair", 3: "leaf"},
    "scope": {3: "pair"},
    "pair": {2: "any"},
    "any": {5: "array", 6: "pairs"},
    "array": {1: "any"},
    "pairs": {1: "pair"},
    "leaf": {},
    "request": {1: "of resource"},
    "of resource": {1: "resource", 2: "of scope"},
    "of scope": {1: "scope", 2: "record"},
}
_SCHEMA: dict[str, dict[str, dict[int, str]]] = {
    "traces": _COMMON | {"record": {9: "pair", 11: "event", 13: "link", 15: "leaf"}, "event": {3: "pair"}, "link": {4: "pair"}},
    "logs": _COMMON | {"record": {5: "any", 6: "pair"}},
    "metrics": _COMMON | {
        "record": {5: "numbers", 7: "numbers", 9: "distributions", 10: "exponentials", 11: "summaries", 12: "pair"},
        "numbers": {1: "number"}, "distributions": {1: "distribution"}, "exponentials": {1: "exponential"}, "summaries": {1: "summary"},
        "number": {5: "exemplar", 7: "pair"}, "distribution": {8: "exemplar", 9: "pair"}, "summary": {6: "leaf", 7: "pair"},
        "exponential": {1: "pair", 8: "leaf", 9: "leaf", 11: "exemplar"}, "exemplar": {7: "pair"},
    },
}  # fmt: skip


def _scan(body: bytes, signal: str) -> None:
    """Counts messages without making any. Raises TooMany."""
    counted = fields = 0
    schema = _SCHEMA[signal]
    stack = [("request", 0, len(body))]
    while stack:
        kind, place, end = stack.pop()
        below = schema[kind]
        while place < end:
            fields += 1
            if counted > VALUES_MOST or fields > 4 * VALUES_MOST:
                raise TooMany(f"the request has more than {VALUES_MOST} values; send smaller batches")
            tag = body[place]
            place += 1
            if tag > 127:
                tag, place = _varint(body, place - 1, end)
            wire = tag & 7
            if wire == 2:
                length, place = _varint(body, place, end)
                inner = below.get(tag >> 3)
                if inner is not None:
                    counted += 1
                    if length:
                        stack.append((inner, place, min(place + length, end)))
                place += length
            elif wire == 0:
                _, place = _varint(body, place, end)
            elif wire in (1, 5):
                place += 8 if wire == 1 else 4
            else:
                break  # no protobuf; the parser will say so


def _varint(body: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end:
        byte = body[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            break
    return 0, end


def _parsed(message: Any, body: bytes, signal: str) -> Any:
    if len(body) > _SCANNED_BYTES:
        _scan(body, signal)
    try:
        return message.FromString(body)
    except DecodeError:
        raise Malformed("the body is not an OTLP protobuf request") from None


def _any(value: Any, depth: int = 0) -> object:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind == "int_value":
        return value.int_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "double_value":
        return finite(value.double_value)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind is None or depth >= DEPTH:
        return None
    if kind == "array_value":
        return [_any(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _any(pair.value, depth + 1) for pair in value.kvlist_value.values}
    return None


def _attributes(pairs: Iterable[Any]) -> Attributes:
    out: Attributes = {}
    for pair in pairs:
        value = pair.value
        out[pair.key] = value.string_value if value.WhichOneof("value") == "string_value" else _any(value)
    return out


def _id(raw: bytes) -> str:
    if len(raw) > 64:
        raise Malformed("a trace or span id is longer than 64 bytes")
    return raw.hex() if raw.strip(b"\0") else ""


def spans(body: bytes) -> list[Span]:
    """The spans of a traces request. Raises Malformed."""
    out: list[Span] = []
    for group in _parsed(ExportTraceServiceRequest, body, "traces").resource_spans:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            source = Source(resource, scope.scope.name)
            for span in scope.spans:
                events = span.events
                out.append(
                    Span(
                        _id(span.trace_id),
                        _id(span.span_id),
                        _id(span.parent_span_id),
                        span.name,
                        nanos(span.start_time_unix_nano),
                        nanos(span.end_time_unix_nano),
                        _attributes(span.attributes),
                        [SpanEvent(e.name, _attributes(e.attributes)) for e in events] if events else (),
                        span.status.code,
                        span.status.message,
                        source,
                    )
                )
    return out


def logs(body: bytes) -> list[Log]:
    """The records of a logs request. Raises Malformed."""
    out: list[Log] = []
    for group in _parsed(ExportLogsServiceRequest, body, "logs").resource_logs:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_logs:
            source = Source(resource, scope.scope.name)
            for log in scope.log_records:
                out.append(
                    Log(
                        nanos(log.time_unix_nano),
                        nanos(log.observed_time_unix_nano),
                        log.event_name,
                        _any(log.body),
                        _attributes(log.attributes),
                        _id(log.trace_id),
                        _id(log.span_id),
                        source,
                    )
                )
    return out


def points(body: bytes) -> list[Point]:
    """The data points of a metrics request. Raises Malformed."""
    out: list[Point] = []
    for group in _parsed(ExportMetricsServiceRequest, body, "metrics").resource_metrics:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_metrics:
            source = Source(resource, scope.scope.name)
            for metric in scope.metrics:
                out.extend(_points(metric, source))
    return out


def _points(metric: Any, source: Source) -> list[Point]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return []
    data = getattr(metric, kind)
    delta = kind not in ("gauge", "summary") and data.aggregation_temporality == _DELTA
    out: list[Point] = []
    for point in data.data_points:
        if kind in ("sum", "gauge"):
            value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
        else:
            value = point.sum
        if value - value == 0.0:
            attributes = _attributes(point.attributes)
            out.append(
                Point(
                    metric.name, metric.unit, kind, delta, attributes, nanos(point.time_unix_nano), float(value), source
                )
            )
    return out


def answer(signal: str, rejected: int, why: str) -> Any:
    """The response message of a request that was taken."""
    message = _RESPONSES[signal]()
    if rejected:
        partial = message.partial_success
        setattr(partial, _REJECTED[signal], rejected)
        partial.error_message = why
    return message
