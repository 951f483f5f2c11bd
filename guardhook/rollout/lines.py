"""One line of a rollout: how it is written, and how its shape is measured without parsing it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from guardhook.rollout import limits

Event = dict[str, object]  # ts, seq, type and, where there is one, data; in this order

_encode = msgspec.json.Encoder().encode
_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


class Shape(NamedTuple):
    """What can be said of JSON text before it is parsed. colons tells how many members its objects have."""

    depth: int
    elements: int
    colons: int


def encode(event: Event) -> bytes:
    """The line of an event, with its line feed: compact, UTF-8, `<>&` as they are, U+2028 and U+2029 escaped."""
    raw = _encode(event)
    for sign, escape in _SEPARATORS:
        if sign in raw:
            raw = raw.replace(sign, escape)
    return raw + b"\n"


def dump(value: object) -> str:
    """Compact JSON text of a value, keys in their order; of a string the string itself."""
    return value if isinstance(value, str) else _encode(value).decode()


def instant(ts: str) -> str:
    """A journal's time stamp with its fraction as short as it can be, none when it is zero."""
    if len(ts) != 27 or ts[19] != ".":
        return ts
    fraction = ts[20:26].rstrip("0")
    return f"{ts[:19]}.{fraction}Z" if fraction else ts[:19] + "Z"


def measure(raw: bytes) -> Shape:
    """Depth, elements and members of JSON text. Strings are taken out first, so nothing inside them counts."""
    outside = raw
    if b"\\" in outside:
        outside = outside.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(outside.split(b'"')[::2])
    opened = outside.count(b"{") + outside.count(b"[")
    depth = opened if opened <= limits.DEPTH else _depth(outside)
    return Shape(depth, outside.count(b",") + 1, outside.count(b":"))


def _depth(outside: bytes) -> int:
    depth = most = 0
    for sign in outside:
        if sign in b"{[":
            depth += 1
            most = max(most, depth)
        elif sign in b"}]":
            depth = max(0, depth - 1)  # more closing than opening brackets hide nothing
    return most


def fitting(event: Event) -> bytes | None:
    """The line of an event as it may be written: long strings cut, with their size and digest beside them. None when it can't be made to fit."""
    raw = encode(event)
    if len(raw) > limits.LEAF:
        data = event.get("data")
        if isinstance(data, dict):
            raw = encode({**event, "data": _cut(data)})
        if len(raw) - 1 > limits.LINE_BYTES:
            return None
    if raw.count(b",") >= limits.ELEMENTS or raw.count(b"{") + raw.count(b"[") > limits.DEPTH:
        shape = measure(raw)
        if shape.depth > limits.DEPTH or shape.elements > limits.ELEMENTS:
            return None
    return raw


def _cut(value: object) -> object:
    if isinstance(value, dict):
        out: dict[str, object] = {}
        for key, item in value.items():
            if isinstance(item, str) and len(item) * 4 > limits.LEAF:
                raw = item.encode()
                if len(raw) > limits.LEAF:
                    out[key] = raw[: limits.LEAF].decode("utf-8", "ignore")
                    out[f"{key}_truncated"] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
                    continue
            out[key] = _cut(item)
        return out
    if isinstance(value, list):
        return [_cut(item) for item in value]
    if isinstance(value, str) and len(value) * 4 > limits.LEAF:
        return value.encode()[: limits.LEAF].decode("utf-8", "ignore")
    return value
