"""OTLP/JSON: lowerCamelCase keys, ids in hex, 64-bit integers as text or numbers, enumerations as numbers or names. Unknown keys are ignored."""

from __future__ import annotations

import msgspec

from guardhook.core.jsontext import PayloadError, loads
from guardhook.intake.otel.records import (
    DEPTH,
    ERROR_STATUS,
    OK_STATUS,
    VALUES_MOST,
    Attributes,
    Log,
    Malformed,
    Point,
    Source,
    Span,
    SpanEvent,
    TooMany,
    hex_id,
    nanos,
)
from guardhook.store.lines import clean

_Number = int | float | str


class _Base(msgspec.Struct, rename="camel"):
    pass


class _Value(_Base):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Number | None = None
    double_value: _Number | None = None
    array_value: _Array | None = None
    kvlist_value: _List | None = None
    bytes_value: str | None = None


class _Array(_Base):
    values: list[_Value | None] | None = None


class _Pair(_Base):
    key: str = ""
    value: _Value | None = None


class _List(_Base):
    values: list[_Pair] | None = None


class _Resource(_Base):
    attributes: list[_Pair] | None = None


class _Scope(_Base):
    name: str | None = None


class _Status(_Base):
    code: int | str | None = None
    message: str | None = None


class _Event(_Base):
    name: str | None = None
    attributes: list[_Pair] | None = None


class _Span(_Base):
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: _Number | None = None
    end_time_unix_nano: _Number | None = None
    attributes: list[_Pair] | None = None
    events: list[_Event] | None = None
    status: _Status | None = None


class _ScopeSpans(_Base):
    scope: _Scope | None = None
    spans: list[_Span] | None = None


class _ResourceSpans(_Base):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None


class _Log(_Base):
    time_unix_nano: _Number | None = None
    observed_time_unix_nano: _Number | None = None
    event_name: str | None = None
    body: _Value | None = None
    attributes: list[_Pair] | None = None
    trace_id: str | None = None
    span_id: str | None = None


class _ScopeLogs(_Base):
    scope: _Scope | None = None
    log_records: list[_Log] | None = None


class _ResourceLogs(_Base):
    resource: _Resource | None = None
    scope_logs: list[_ScopeLogs] | None = None


class _Point(_Base):
    attributes: list[_Pair] | None = None
    time_unix_nano: _Number | None = None
    as_double: _Number | None = None
    as_int: _Number | None = None
    sum: _Number | None = None
    count: _Number | None = None


class _Data(_Base):
    data_points: list[_Point] | None = None
    aggregation_temporality: int | str | None = None


class _Metric(_Base):
    name: str | None = None
    unit: str | None = None
    gauge: _Data | None = None
    sum: _Data | None = None
    histogram: _Data | None = None
    exponential_histogram: _Data | None = None
    summary: _Data | None = None


class _ScopeMetrics(_Base):
    scope: _Scope | None = None
    metrics: list[_Metric] | None = None


class _ResourceMetrics(_Base):
    resource: _Resource | None = None
    scope_metrics: list[_ScopeMetrics] | None = None


class _Request(msgspec.Struct):
    """All three requests, and the keys that tell of a sender's mistake."""

    resourceSpans: list[_ResourceSpans] | None = None
    resourceLogs: list[_ResourceLogs] | None = None
    resourceMetrics: list[_ResourceMetrics] | None = None
    resource_spans: msgspec.Raw = msgspec.Raw()
    resource_logs: msgspec.Raw = msgspec.Raw()
    resource_metrics: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(_Request)
_KEYS = {"traces": "resourceSpans", "logs": "resourceLogs", "metrics": "resourceMetrics"}


def _request(body: bytes, signal: str) -> _Request:
    if body.count(b"{") > VALUES_MOST or body.count(b",") > 4 * VALUES_MOST:
        raise TooMany(f"the request has more than {VALUES_MOST} values; send smaller batches")
    if body[:3] == b"\xef\xbb\xbf":
        body = body[3:]
    try:
        found = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Malformed(f"the body is not an OTLP/JSON request: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = _lenient(body, str(error))
    except RecursionError:
        raise Malformed("the body is nested too deep") from None
    if found.resource_spans or found.resource_logs or found.resource_metrics:
        raise Malformed("keys of OTLP/JSON are in lowerCamelCase (resourceSpans, not resource_spans)")
    wanted = _KEYS[signal]
    for other in _KEYS.values():
        if other != wanted and getattr(found, other) is not None:
            raise Malformed(f"{other} does not belong here: this is /v1/{signal}, which takes {wanted}")
    return found


def _lenient(body: bytes, problem: str) -> _Request:
    """Once more for senders that cut text in the middle of a character: half a surrogate pair becomes U+FFFD. Raises Malformed."""
    try:
        return msgspec.convert(clean(loads(body, bounded=False)), _Request)
    except (PayloadError, msgspec.ValidationError, RecursionError):
        raise Malformed(f"the body is not an OTLP/JSON request: {problem}") from None


def _any(value: _Value | None, depth: int = 0) -> object:
    """The plain value. Text that is meant as a number but is none stays text."""
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return _integer(value.int_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return _double(value.double_value)
    if depth >= DEPTH:
        return None
    if value.array_value is not None:
        return [_any(item, depth + 1) for item in value.array_value.values or ()]
    if value.kvlist_value is not None:
        return {pair.key: _any(pair.value, depth + 1) for pair in value.kvlist_value.values or ()}
    return value.bytes_value


def _integer(value: _Number) -> object:
    if isinstance(value, str):
        digits = value[1:] if value[:1] == "-" else value
        return int(value) if digits.isascii() and digits.isdigit() and len(digits) <= 20 else value
    return finite(value)


def _double(value: _Number) -> object:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return finite(value)


def finite(value: float) -> object:
    """JSON has no word for other numbers; they become text."""
    return value if isinstance(value, int) or value - value == 0.0 else str(value)


def _attributes(pairs: list[_Pair] | None) -> Attributes:
    return {pair.key: _any(pair.value) for pair in pairs or ()}


def _source(resource: _Resource | None, scope: _Scope | None) -> Source:
    return Source(
        _attributes(resource.attributes) if resource is not None else {},
        (scope.name or "") if scope is not None else "",
    )


def _status(code: int | str | None) -> int:
    if code in (ERROR_STATUS, "STATUS_CODE_ERROR", "2"):
        return ERROR_STATUS
    return OK_STATUS if code in (OK_STATUS, "STATUS_CODE_OK", "1") else 0


def spans(body: bytes) -> list[Span]:
    """The spans of a traces request. Raises Malformed."""
    out: list[Span] = []
    for group in _request(body, "traces").resourceSpans or ():
        for scope in group.scope_spans or ():
            source = _source(group.resource, scope.scope)
            for span in scope.spans or ():
                status = span.status
                out.append(
                    Span(
                        hex_id(span.trace_id or ""),
                        hex_id(span.span_id or ""),
                        hex_id(span.parent_span_id or ""),
                        span.name or "",
                        nanos(span.start_time_unix_nano),
                        nanos(span.end_time_unix_nano),
                        _attributes(span.attributes),
                        [SpanEvent(e.name or "", _attributes(e.attributes)) for e in span.events or ()],
                        0 if status is None else _status(status.code),
                        "" if status is None else status.message or "",
                        source,
                    )
                )
    return out


def logs(body: bytes) -> list[Log]:
    """The records of a logs request. Raises Malformed."""
    out: list[Log] = []
    for group in _request(body, "logs").resourceLogs or ():
        for scope in group.scope_logs or ():
            source = _source(group.resource, scope.scope)
            for log in scope.log_records or ():
                out.append(
                    Log(
                        nanos(log.time_unix_nano),
                        nanos(log.observed_time_unix_nano),
                        log.event_name or "",
                        _any(log.body),
                        _attributes(log.attributes),
                        hex_id(log.trace_id or ""),
                        hex_id(log.span_id or ""),
                        source,
                    )
                )
    return out


def points(body: bytes) -> list[Point]:
    """The data points of a metrics request. Raises Malformed."""
    out: list[Point] = []
    for group in _request(body, "metrics").resourceMetrics or ():
        for scope in group.scope_metrics or ():
            source = _source(group.resource, scope.scope)
            for metric in scope.metrics or ():
                out.extend(_points(metric, source))
    return out


def _points(metric: _Metric, source: Source) -> list[Point]:
    out: list[Point] = []
    for kind in ("sum", "gauge", "histogram", "exponential_histogram", "summary"):
        data: _Data | None = getattr(metric, kind)
        for point in data.data_points or () if data is not None else ():
            given = point.as_int if point.as_int is not None else point.as_double
            if kind not in ("sum", "gauge"):
                given = point.sum
            value = _double(given) if given is not None else None
            if data is None or not isinstance(value, (int, float)):
                continue
            delta = data.aggregation_temporality in (1, "1", "AGGREGATION_TEMPORALITY_DELTA")
            out.append(
                Point(
                    metric.name or "",
                    metric.unit or "",
                    kind,
                    delta,
                    _attributes(point.attributes),
                    nanos(point.time_unix_nano),
                    float(value),
                    source,
                )
            )
    return out
