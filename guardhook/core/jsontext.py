"""Strict JSON in, plain ASCII JSON out, with the interpreter's own C scanner and encoder.

The `json` package costs a whole interpreter start (it imports `re`), its C half costs nothing. RFC 8259 is enforced
where the C scanner is lax: no NaN or Infinity, no duplicate keys, no trailing text, bounded depth and size.
"""

from __future__ import annotations

from _json import encode_basestring_ascii, make_encoder, make_scanner

from guardhook.core import limits

_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"


class PayloadError(ValueError):
    """The text is not a JSON value that may be trusted. kind is one word for the record, the message is for a person."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind  # empty, encoding, oversized, malformed, duplicate, nesting, elements, number


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise PayloadError("duplicate", f"the key {printable(key, 40)!r} appears twice in one object")
            seen.add(key)
    return out


def _constant(word: str) -> object:
    raise PayloadError("number", f"{word} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if value - value != 0.0:  # infinite
        raise PayloadError("number", "a number is too large")
    return value


class _Context:
    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_pairs)
    parse_float = staticmethod(_float)
    parse_int = int
    parse_constant = staticmethod(_constant)
    memo: dict[str, str] = {}  # noqa: RUF012


_scan = make_scanner(_Context)  # type: ignore[arg-type]


def _unencodable(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = make_encoder(None, _unencodable, encode_basestring_ascii, None, ":", ",", False, False, False)


def dumps(value: object) -> str:
    """Compact JSON, ASCII only: nothing in it can be misread by a terminal or cut inside a character."""
    return "".join(_encode(value, 0))


def loads(data: bytes, *, replace: bool = False, bounded: bool = True) -> object:
    """Parses one JSON text of UTF-8 bytes (a byte-order mark is tolerated).

    replace=True swaps undecodable bytes for U+FFFD instead of refusing them (recording only, never judging). Lone
    surrogate escapes are accepted in both modes, because clients cut text in the middle of a character. bounded=False drops the
    caps on depth and elements: for our own files, which hold such values inside others. Raises PayloadError.
    """
    if data[:3] == _BOM:
        data = data[3:]
    try:
        text = data.decode("utf-8", "replace" if replace else "strict")
    except UnicodeDecodeError as error:
        raise PayloadError("encoding", f"the payload is not valid UTF-8 (byte {error.start})") from None
    return loads_text(text, bounded=bounded)


def loads_text(text: str, *, bounded: bool = True) -> object:
    """As `loads`, for text that is already decoded (JSON inside a JSON string)."""
    body = text.strip(_SPACE)
    if not body:
        raise PayloadError("empty", "the payload is empty")
    try:
        value, end = _scan(body, 0)
    except PayloadError:
        raise
    except RecursionError:
        raise PayloadError("nesting", f"the payload is nested deeper than {limits.JSON_DEPTH} levels") from None
    except StopIteration as stop:
        raise PayloadError("malformed", f"the payload is not valid JSON (character {stop.value})") from None
    except Exception as error:  # the scanner raises JSONDecodeError, or an import error where `json` is not there
        position = getattr(error, "pos", None)
        where = f" (character {position})" if isinstance(position, int) else ""
        raise PayloadError("malformed", f"the payload is not valid JSON{where}") from None
    if end != len(body):
        raise PayloadError("malformed", f"there is text after the JSON value (character {end})")
    opened = body.count("{") + body.count("[")
    if bounded and (opened > limits.JSON_DEPTH or opened + body.count(",") >= limits.JSON_ELEMENTS):
        _check_shape(value)
    return value


def _check_shape(value: object) -> None:
    """Refuses values that are too deep or have too many elements. Iterative, so that depth can't exhaust the stack."""
    level: list[object] = [value]
    depth = 0
    elements = 1
    while level:
        containers = [item for item in level if isinstance(item, (dict, list))]
        depth += bool(containers)
        if depth > limits.JSON_DEPTH:
            raise PayloadError("nesting", f"the payload is nested deeper than {limits.JSON_DEPTH} levels")
        below: list[object] = []
        for item in containers:
            elements += len(item)
            below.extend(item.values() if isinstance(item, dict) else item)
        if elements > limits.JSON_ELEMENTS:
            raise PayloadError("elements", f"the payload has more than {limits.JSON_ELEMENTS} elements")
        level = below


def strings(value: object) -> list[str]:
    """Every string at any depth (values and list elements, not keys), in document order."""
    found: list[str] = []
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return found


def printable(text: str, most: int = limits.REASON_CHARS) -> str:
    """Text from an agent, made fit for one line of a terminal: no control, format or unassigned characters, cut to `most`.

    Whatever could move the cursor, reorder text or hide itself becomes a visible escape such as `\\x1b` or `\\u202e`.
    """
    cut = text[: most + 1]
    if not (cut.isascii() and cut.isprintable()):
        cut = "".join(c if c.isprintable() and not _deceives(c) else _escape(c) for c in cut)
    return cut if len(cut) <= most else cut[: most - 1] + "…"


def _deceives(char: str) -> bool:
    code = ord(char)
    # Printable by category, yet invisible or joined to the neighbour: variation selectors, fillers, combining marks.
    return code > 0x2FF and (
        0x300 <= code <= 0x36F
        or code in (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800)
        or 0xFE00 <= code <= 0xFE0F
        or 0x180B <= code <= 0x180F
        or 0xE0000 <= code <= 0xE0FFF
    )


def _escape(char: str) -> str:
    code = ord(char)
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    if named:
        return named
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def pointer(path: list[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
