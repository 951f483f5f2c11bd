"""Reading what a model replied. It is a text like any other: every field may be missing, of another type, or too long."""

from __future__ import annotations

import json
import re
from typing import NoReturn

RAW_CHARS = 2000
MOST_CHARS = 200_000
TEXT_CHARS = 2000
MOST_ITEMS = 50
_ATTEMPTS = 400
_FENCE = re.compile(r"```[^\n`]{0,40}\n(.*?)```", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,2})?", re.ASCII)


def found_object(text: str) -> dict[str, object] | None:
    """The object that the reply means: the last fenced block that is one, else the last balanced one. Models quote before they answer."""
    text = text[-MOST_CHARS:]
    for match in reversed(list(_FENCE.finditer(text))):
        value = _parsed(match[1].strip())
        if value is not None:
            return value
    return _last_balanced(text)


def _nonsense(word: str) -> NoReturn:
    raise ValueError(word)


_decoder = json.JSONDecoder(parse_constant=_nonsense)


def _parsed(text: str) -> dict[str, object] | None:
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _last_balanced(text: str) -> dict[str, object] | None:
    """The last object that stands in the text and in no other one."""
    found, place = _objects(text, text.find("{"))
    if place < 0:
        return found
    # So many braces that are none: what matters stands at the end.
    start = len(text)
    for _ in range(_ATTEMPTS):
        start = text.rfind("{", place, start)
    return _objects(text, start)[0] or found


def _objects(text: str, place: int) -> tuple[dict[str, object] | None, int]:
    """The last whole object from a brace on, and the brace at which it was given up (-1: the end was reached)."""
    found: dict[str, object] | None = None
    for _ in range(_ATTEMPTS):  # each attempt may read to the end
        if place < 0:
            break
        try:
            value, place = _decoder.raw_decode(text, place)
            found = value if isinstance(value, dict) else found
            place = text.find("{", place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
    return found, place


def number(value: object, low: float, high: float) -> float:
    """A number, or a text that is wholly one, between the bounds; anything else is low, which is the worst."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return low
    try:
        value = float(value)
    except OverflowError:
        return low
    return min(high, max(low, value)) if value == value else low


def text(value: object) -> str | None:
    """Text of at most TEXT_CHARS, None when it is none."""
    return value[:TEXT_CHARS] if isinstance(value, str) and value.strip() else None


def whole(value: object) -> int | None:
    """A step number, None when it is none."""
    if isinstance(value, str) and value.strip().lstrip("#").isascii() and value.strip().lstrip("#").isdigit():
        value = int(value.strip().lstrip("#")[:12])
    return value if type(value) is int and 0 < value < 1 << 40 else None


def texts(value: object) -> list[str]:
    """A list of texts; a bare text is a list of one."""
    return [t for t in map(text, _items(value)) if t is not None]


def tables(value: object, bare: str) -> list[dict[str, object]]:
    """A list of objects; a bare text is an object with that one field."""
    out: list[dict[str, object]] = []
    for item in _items(value):
        if isinstance(item, dict):
            out.append(item)
        elif (said := text(item)) is not None:
            out.append({bare: said})
    return out


def _items(value: object) -> list[object]:
    if isinstance(value, list):
        return value[:MOST_ITEMS]
    return [] if value is None else [value]
