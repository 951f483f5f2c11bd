"""Times that somebody states, and times on events. Only ISO 8601 with a zone, epoch milliseconds and aware datetimes say when something was."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?([Zz]|[+-]\d\d:?\d\d))?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST, _MOST = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999


def of_text(text: str) -> int | None:
    """Milliseconds since the epoch; None for what is no ISO 8601 date, or date-time with a zone. A bare date is its midnight in UTC."""
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
        value = (moment - _EPOCH) // timedelta(milliseconds=1)
        if zone and zone not in "Zz":
            digits = zone[1:].replace(":", "")
            if int(digits[2:]) > 59 or int(digits[:2]) > 23:
                return None
            offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
            value -= offset if zone[0] == "+" else -offset
    except ValueError:
        return None
    value += int((fraction or "0").ljust(3, "0")[:3])
    return value if _LEAST <= value <= _MOST else None


def stated(value: object) -> int | None:
    """Milliseconds since the epoch of a stated time: ISO text, epoch milliseconds or an aware datetime. None when it says no time."""
    if isinstance(value, str):
        return of_text(value)
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            return None
        try:
            return (value - _EPOCH) // timedelta(milliseconds=1)
        except OverflowError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _LEAST <= value <= _MOST:
        return None
    return int(value // 1)


def text(ms: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
