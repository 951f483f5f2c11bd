"""Strings of a rollout as they may stand in a finding: cut, and without anything that a terminal acts on or that hides or reorders text."""

from __future__ import annotations

import unicodedata

from guardhook.rollout import limits

_GONE = frozenset(("Cc", "Cf", "Zl", "Zp"))


def plain(text: str, most: int = limits.MESSAGE) -> str:
    """At most this many bytes of a text, in one line: controls, format characters and line separators are removed, half surrogates replaced."""
    cut = shortened(text, most)
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in cut if unicodedata.category(c) not in _GONE)


def shortened(text: str, most: int, mark: str = "") -> str:
    """A text cut to this many UTF-8 bytes between two characters; mark is added where it was cut."""
    if len(text) * 4 <= most:
        return text
    raw = text[: most + 1].encode("utf-8", "surrogatepass")
    if len(raw) <= most:
        return text
    kept = raw[:most]
    # Not in the middle of a character: its later bytes all begin with the bits 10.
    end = most
    while end and raw[end] & 0xC0 == 0x80:
        end -= 1
    return kept[:end].decode("utf-8", "surrogatepass") + mark
