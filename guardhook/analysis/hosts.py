"""Host names that read as others: letters of another script, written as themselves or in the ASCII form of RFC 3492 (`xn--…`)."""

from __future__ import annotations

_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"
_LABEL = 63  # octets, RFC 1035


def reads_as(host: str) -> str:
    """The plain ASCII name that a reader takes the host for; "" when it is what it seems."""
    if host.isascii() and "xn--" not in host.lower():
        return ""
    from guardhook.core.text import fold, skeleton

    shown = ".".join([label(piece) for piece in host.split(".")])
    if shown.isascii():
        return ""
    plain = skeleton(fold(shown))
    return plain if plain.isascii() and plain != host else ""


def label(text: str) -> str:
    """One part of a host name as browsers would show it; as given when it is no valid ASCII form of another one."""
    if text[:4].lower() != "xn--" or len(text) > _LABEL or not text.isascii():
        return text
    basic, _, extended = text[4:].lower().rpartition("-")
    if not extended:
        return text
    out = list(basic)
    code, index, bias = 128, 0, 72
    at, first = 0, True
    while at < len(extended):
        start, weight, k = index, 1, 36
        while True:
            digit = _DIGITS.find(extended[at]) if at < len(extended) else -1
            if digit < 0:
                return text
            at += 1
            index += digit * weight
            threshold = min(max(k - bias, 1), 26)
            if digit < threshold:
                break
            weight *= 36 - threshold
            k += 36
        count = len(out) + 1
        bias = _adapted(index - start, count, first)
        first = False
        code += index // count
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            return text
        index %= count
        out.insert(index, chr(code))
        index += 1
    return "".join(out)


def _adapted(delta: int, count: int, first: bool) -> int:
    """The bias for the next number, RFC 3492 section 6.1."""
    delta = delta // 700 if first else delta // 2
    delta += delta // count
    k = 0
    while delta > 455:
        delta //= 35
        k += 36
    return k + 36 * delta // (delta + 38)
