"""JSON as the archive means it: what goes in comes out again, character by character, or is refused.

The compact text of a value keeps the order of keys, tells `1` from `1.0` and keeps `-0.0`; text outside ASCII stands as it is, half surrogate
pairs as escapes. Nothing is converted on the way: keys that are no strings, tuples, NaN, subclasses and cycles are a TypeError.
"""

from __future__ import annotations

import json
import re
import sys
from _json import encode_basestring, make_encoder
from collections.abc import Collection

import msgspec

from guardhook.archive.errors import UnreadableError

MOST_DEPTH = 1000
# The C scanner and encoder count levels against the interpreter's limit, which is about as low as our own.
_ROOM = 3000
SCALARS: frozenset[type] = frozenset((str, int, float, bool, type(None)))
_JSON = SCALARS | {dict, list}

_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _unencodable(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not plain JSON")


_quick = msgspec.json.Encoder().encode
# Where the quick encoder writes numbers in another way: with exponents, and just below them.
_ODD = re.compile(r"[0-9]e|0\.0000")
_TEXTS = {str}
_encode = make_encoder(None, _unencodable, encode_basestring, None, ":", ",", False, False, False)


def room() -> None:
    """Lets values of the greatest allowed depth through the C code. The limit is only ever raised."""
    if sys.getrecursionlimit() < _ROOM:
        sys.setrecursionlimit(_ROOM)


def text(value: object) -> str:
    """The compact text of a value, possibly with half surrogate pairs in it. Raises TypeError, also for what is nested too deep."""
    room()
    try:
        return "".join(_encode(value, 0))
    except ValueError as error:
        raise TypeError(str(error)) from None
    except RecursionError:
        raise TypeError(f"nested deeper than {MOST_DEPTH} levels, or a cycle") from None


def quick(value: object, kinds_: set[type]) -> str:
    """The text of a container of scalars, faster. kinds_: what `kinds` gave for it. Half surrogate pairs stand as escapes."""
    try:
        found = _quick(value).decode()
        if float not in kinds_ or _ODD.search(found) is None:
            return found
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
        pass
    return spelled(text(value))


def scalar(value: object) -> str:
    """The text of a scalar. Raises TypeError."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)  # type: ignore[arg-type]
    if kind is int:
        return repr(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is not float:
        raise TypeError(f"{kind.__name__} is not plain JSON")
    return text(value)


def encode(value: object) -> bytes:
    """The compact text as UTF-8. Raises TypeError."""
    return to_bytes(text(value))


def spelled(found: str) -> str:
    """JSON text with half surrogate pairs as escapes. Raises TypeError for both halves of one as two characters: they would come back as one."""
    if found.isascii() or _HALF.search(found) is None:
        return found
    if _PAIR.search(found):
        raise TypeError("a text holds both halves of a surrogate pair as two characters")
    return _HALF.sub(lambda m: f"\\u{ord(m[0]):04x}", found)


def to_bytes(found: str) -> bytes:
    """JSON text as UTF-8. Raises TypeError."""
    return spelled(found).encode("utf-8")


def size(found: str) -> int:
    """Length in bytes of what `to_bytes` gives."""
    return len(found) if found.isascii() else len(to_bytes(found))


def pretty(value: object) -> bytes:
    """Indented by two blanks, with a final line feed. Raises TypeError."""
    compact = encode(value)
    try:
        return msgspec.json.format(compact, indent=2) + b"\n"
    except (msgspec.MsgspecError, RecursionError):  # nested deeper than the formatter goes
        return compact + b"\n"


def _constant(word: str) -> object:
    raise UnreadableError(f"{word} is not a JSON number")


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise UnreadableError("a key appears twice in one object")
    return out


def _float(found: str) -> float:
    value = float(found)
    if value - value != 0.0:
        raise UnreadableError("a number is too large")
    return value


DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_pairs, parse_float=_float)


def loads(data: bytes | str) -> object:
    """The value of a JSON document. Raises UnreadableError: no UTF-8, no JSON, a key twice, NaN, numbers beyond a double, too deep."""
    room()
    try:
        found = data if isinstance(data, str) else data.decode("utf-8")
        return DECODER.decode(found)
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise UnreadableError(f"nested deeper than {MOST_DEPTH} levels") from None
    except ValueError:  # an integer of more digits than the interpreter takes
        raise UnreadableError("a number is too large") from None


_MOST_PASSES = 24
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")


def height(data: bytes) -> int | None:
    """How deep JSON text is nested, in C code; None when it is nested so deep that this is no quick way to know it."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = b"".join(data.split(b'"')[::2]).translate(_SQUARE, _NO_BRACKETS)
    for passes in range(_MOST_PASSES):
        if not rest:
            return passes
        rest = rest.replace(b"[]", b"")  # the innermost level
    return None


def kinds(value: dict[str, object] | list[object], also: frozenset[type] = frozenset()) -> set[type]:
    """The types of a container's members. Raises TypeError for what is no JSON on this level, nor one of `also`."""
    items: Collection[object] = value
    if type(value) is dict:
        if value and set(map(type, value)) != _TEXTS:
            raise TypeError("a key is no text")
        items = value.values()
    found = set(map(type, items))
    if not found <= _JSON and not found <= _JSON | also:
        raise TypeError(f"{sorted(k.__name__ for k in found - _JSON - also)[0]} is not plain JSON")
    if float in found and [i for i in items if type(i) is float and i - i != 0.0]:
        raise TypeError("a number is not finite")
    return found


def members(value: object) -> Collection[object]:
    """What a container holds; nothing of a scalar."""
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()


def check(value: object) -> None:
    """Refuses, with a TypeError, whatever would not come out of JSON as it went in. Shared parts are looked at once; linear."""
    height: dict[int, int] = {}
    above: set[int] = set()
    stack: list[object] = [value]
    kinds([value])
    while stack:
        item = stack[-1]
        here = id(item)
        if not isinstance(item, (dict, list)) or here in height:
            stack.pop()
            continue
        if here not in above:
            if kinds(item) <= SCALARS:
                height[here] = 1
                continue
            above.add(here)
            waiting = [i for i in members(item) if isinstance(i, (dict, list)) and id(i) not in height]
            if any(id(i) in above for i in waiting):
                raise TypeError("a value contains itself")
            stack.extend(waiting)
            if len(above) >= MOST_DEPTH:
                raise TypeError(f"nested deeper than {MOST_DEPTH} levels")
            if waiting:
                continue
        above.discard(here)
        height[here] = 1 + max(height[id(i)] for i in members(item) if isinstance(i, (dict, list)))
        if height[here] > MOST_DEPTH:
            raise TypeError(f"nested deeper than {MOST_DEPTH} levels")
        stack.pop()
