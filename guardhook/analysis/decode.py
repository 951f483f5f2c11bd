"""Decoders for constants that a command carries: base64, base32, hexadecimal, `tr`. Small texts only; what is not text stays unknown."""

from __future__ import annotations

from _codecs import utf_16_le_decode

_LIMIT = 64 * 1024
_B64 = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")} | {
    "-": 62,
    "_": 63,
}
_B32 = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")}
_HEX = frozenset("0123456789abcdefABCDEF")


def _utf16(data: bytes) -> str:
    """UTF-16 as PowerShell wants it. Asked for by name, this codec is a module in Python, which the hook program is without."""
    return utf_16_le_decode(data, "strict", True)[0]


def _text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = _utf16(data)
        except UnicodeDecodeError:
            return None
        return text if text.isprintable() else None
    if data[1:2] == b"\0" and len(data) % 2 == 0:
        try:
            text = _utf16(data)
        except UnicodeDecodeError:
            return None
    return text.replace("\0", "")


def _bits(text: str, table: dict[str, int], width: int) -> str | None:
    clean = "".join(text.split()).rstrip("=")
    if not clean or len(clean) > _LIMIT or any(c not in table for c in clean):
        return None
    out = bytearray()
    value = bits = 0
    for char in clean:
        value = (value << width | table[char]) & 0xFFFFFFFF
        bits += width
        if bits >= 8:
            bits -= 8
            out.append(value >> bits & 0xFF)
    return _text(bytes(out))


def base64_text(text: str) -> str | None:
    """The decoded text; None when it isn't base64 (RFC 4648, either alphabet) of text."""
    return _bits(text, _B64, 6)


def base32_text(text: str) -> str | None:
    return _bits(text.upper(), _B32, 5)


def hex_text(text: str, plain: bool = True) -> str | None:
    """Hexadecimal digits, white space between them allowed."""
    if not plain:
        return hexdump_text(text)
    clean = "".join(text.split()).replace("\\x", "").replace("0x", "").replace(",", "")
    if not clean or len(clean) % 2 or len(clean) > _LIMIT or not _HEX.issuperset(clean):
        return None
    return _text(bytes.fromhex(clean))


def hexdump_text(text: str) -> str | None:
    """A dump as `xxd` writes it: offset, colon, groups, two spaces, the readable form."""
    digits: list[str] = []
    for line in text.splitlines():
        _, colon, rest = line.partition(":")
        digits.append(rest.partition("  ")[0] if colon else line)
    return hex_text("".join(digits)) if digits else None


_CLASSES = {
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz", "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "[:digit:]": "0123456789", "[:space:]": " \t\n\r\v\f", "[:blank:]": " \t",
    "[:alpha:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "[:alnum:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "[:punct:]": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
}  # fmt: skip


def _set(text: str) -> str:
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    text = (
        text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\\0", "\0").replace("\\\\", "\\")
    )
    out: list[str] = []
    i = 0
    while i < len(text) and len(out) < 1024:
        if i + 2 < len(text) and text[i + 1] == "-" and text[i] <= text[i + 2]:
            out.extend(chr(c) for c in range(ord(text[i]), min(ord(text[i + 2]), ord(text[i]) + 512) + 1))
            i += 3
        else:
            out.append(text[i])
            i += 1
    return "".join(out)


def translate(text: str, sets: list[str], *, delete: bool = False, complement: bool = False) -> str | None:
    """What `tr` makes of a text. None for what isn't worked out here."""
    first = _set(sets[0])
    if complement:
        if delete:
            return "".join(c for c in text if c in first)
        return None
    if delete:
        return "".join(c for c in text if c not in first)
    if len(sets) < 2:
        return text
    second = _set(sets[1])
    if not second:
        return None
    second += second[-1] * max(0, len(first) - len(second))
    table = {ord(a): b for a, b in zip(first, second, strict=False)}
    return text.translate(table)
