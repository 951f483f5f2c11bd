"""Canonical JSON of the audit trail: one text for each value, whoever writes it, so that hashes can be checked by any program.

Compact; keys in the order of their UTF-8 bytes; beyond what JSON asks for, `<`, `>`, `&`, U+2028 and U+2029 are escaped; whole floats are written like
integers, others with as few digits as tell them apart, without an exponent between 1e-6 and 1e21. Half a surrogate pair becomes U+FFFD.
"""

from __future__ import annotations

from _json import encode_basestring

_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def canonical(value: object) -> str:
    """The text. Raises ValueError for what is no JSON (infinite numbers among it), RecursionError for absurd depths."""
    if isinstance(value, str):
        return text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        pairs = {whole(key): item for key, item in value.items()}
        return "{" + ",".join([f"{text(key)}:{canonical(pairs[key])}" for key in sorted(pairs)]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([canonical(item) for item in value]) + "]"
    raise ValueError(f"{type(value).__name__} is not JSON")


def text(value: str) -> str:
    out: str = encode_basestring(whole(value))
    for sign, escape in _ESCAPES:
        if sign in out:
            out = out.replace(sign, escape)
    return out


def whole(value: str) -> str:
    """The text without halves of surrogate pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def number(value: float) -> str:
    """A float, written as ECMAScript and Go's encoding/json do."""
    if value - value != 0.0:
        raise ValueError("a number is not finite")
    sign = "-" if repr(value)[0] == "-" else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    before, _, after = mantissa.partition(".")
    point = len(before) + int(exponent or 0)
    digits = before + after
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return sign + "0"
    if -6 < point <= 21:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        if point >= len(digits):
            return sign + digits + "0" * (point - len(digits))
        return f"{sign}{digits[:point]}.{digits[point:]}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
