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
from guardhook.intake.otel.records import DEPTH, Attributes, Log, Malformed, Point, Source, Span, SpanEvent, nanos

_DELTA = 1
_RESPONSES = {
    "traces": ExportTraceServiceResponse,
    "logs": ExportLogsServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
_REJECTED = {"traces": "rejected_spans", "logs": "rejected_log_records", "metrics": "rejected_data_points"}


def _parsed(message: Any, body: bytes) -> Any:
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
    for group in _parsed(ExportTraceServiceRequest, body).resource_spans:
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
    for group in _parsed(ExportLogsServiceRequest, body).resource_logs:
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
    for group in _parsed(ExportMetricsServiceRequest, body).resource_metrics:
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
