"""What the decoders give, whatever encoding it came in: spans, log records and metric points with plain Python values.

Instants are nanoseconds since the epoch, 0 when absent or absurd. Ids are lower-case hex text, "" when absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Attributes = dict[str, object]

# The year 10000; later instants (and negative ones) are mistakes of a unit, and count as absent.
NANOS_MOST = 253_402_300_800_000_000_000
DEPTH = 32  # of values within values; what lies deeper is left out
ID_CHARS = 128
VALUES_MOST = 1_000_000  # messages within messages of one request; exporters send some hundred thousand at most
RECORDS_MOST = 100_000  # spans, log records or points of one request
ERROR_STATUS, OK_STATUS = 2, 1


class Malformed(ValueError):
    """A request that is not OTLP; nothing of it is stored. The text tells the sender why."""


class TooMany(Malformed):
    """A request of so many values that decoding it would take more memory than its size promises."""


class Source(NamedTuple):
    """Where records come from: the resource's attributes and the name of the instrumentation scope."""

    attributes: Attributes
    scope: str

    @property
    def service(self) -> str:
        """service.name, "" when absent."""
        name = self.attributes.get("service.name")
        return name if isinstance(name, str) else ""


class SpanEvent(NamedTuple):
    name: str
    attributes: Attributes


class Span(NamedTuple):
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: Attributes
    events: Sequence[SpanEvent]
    status: int  # 0 unset, 1 ok, 2 error
    message: str
    source: Source


class Log(NamedTuple):
    time: int
    observed: int
    event_name: str
    body: object
    attributes: Attributes
    trace_id: str
    span_id: str
    source: Source


class Point(NamedTuple):
    """One data point of a metric. kind: sum, gauge, or the word for a distribution, of which value is the sum."""

    metric: str
    unit: str
    kind: str
    delta: bool  # a difference since the last point, not a running total
    attributes: Attributes
    time: int
    value: float
    source: Source


def nanos(value: object) -> int:
    """An instant as a sender wrote it: a number, or the text of one. 0 when it can't be used."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) <= 21):
            return 0
        value = int(value)
    elif isinstance(value, float):
        value = int(value) if 0 < value < NANOS_MOST else 0
    return value if isinstance(value, int) and 0 < value < NANOS_MOST else 0


def hex_id(value: str) -> str:
    """A trace or span id as compared: lower case; zeros alone mean that there is none. Raises Malformed."""
    if not value:
        return ""
    if len(value) > ID_CHARS or not (value.isascii() and value.isprintable() and value.strip()):
        raise Malformed(f"a trace or span id is no hexadecimal text of at most {ID_CHARS} characters")
    return value.lower() if value.strip("0") else ""
