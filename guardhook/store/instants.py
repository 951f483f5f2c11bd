"""Points in time and lengths of time as people and producers write them."""

from __future__ import annotations

import datetime
import re

from guardhook.store.errors import BadQuery

_DATE = re.compile(r"\d{4}-\d{2}", re.ASCII)
_LENGTH = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|d|w)", re.ASCII | re.IGNORECASE)
_UNIT_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO = datetime.timedelta(microseconds=1)
_LONGEST_US = 1e18  # longer than all of history; what is longer says the same
_FIRST_US = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICRO


def micros(text: str | None, *, local: bool = False) -> int | None:
    """Microseconds since the epoch of an ISO time stamp, None when it is none.

    `2026-08-16T23:00:00.123456Z`, a blank instead of `T`, `+02:00`, `+0200` and dates alone are understood. Without a zone it is UTC (local=True:
    the zone of this machine).
    """
    if text is None:
        return None
    if len(text) == 27 and text[26] == "Z" and text[10] == "T":
        quick = _journal(text)
        if quick is not None:
            return quick
    if not _DATE.match(text):
        return None
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        try:
            moment = moment.astimezone() if local else moment.replace(tzinfo=datetime.UTC)
        except (OverflowError, OSError, ValueError):
            return None
    try:
        since = moment - _EPOCH
    except OverflowError:
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_days: dict[str, int] = {}


def _journal(text: str) -> int | None:
    """The journal's own form; the days before are remembered, they are the costly part."""
    try:
        day = _days.get(text[:10])
        if day is None:
            if len(_days) > 1000:
                _days.clear()
            day = _days[text[:10]] = datetime.date.fromisoformat(text[:10]).toordinal() - 719_163
        hour, minute, second, micro = int(text[11:13]), int(text[14:16]), int(text[17:19]), int(text[20:26])
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 59 or min(hour, minute, second, micro) < 0:
        return None
    return (((day * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micro


def iso_ms(us: int) -> str:
    """UTC with milliseconds and `Z`."""
    moment = _EPOCH + datetime.timedelta(microseconds=us)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{us // 1000 % 1000:03d}Z" if moment.year >= 1000 else moment.isoformat()


def since(text: str, now_us: int) -> int:
    """The bound of `--since`: a date or time, else a length such as `30d`, `12h`, `90 s` back from now. Raises BadQuery."""
    given = text.strip()
    if _DATE.match(given):
        if re.fullmatch(r"\d{4}-\d{2}", given, re.ASCII):
            given += "-01"
        bound = micros(given, local=True)
        if bound is None:
            raise BadQuery(f"--since: {text!r} is not a date or time")
        return bound
    match = _LENGTH.fullmatch(given)
    if match is None:
        raise BadQuery(
            f"--since: {text!r} is neither a date (2026-08-16, 2026-08-16T10:00Z) nor a length of time (30d, 12h, 45m)"
        )
    length = float(match[1]) * _UNIT_US[match[2].lower()]
    return max(_FIRST_US, now_us - int(min(length, _LONGEST_US)))
