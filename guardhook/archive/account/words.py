"""Text of others as it may stand in a sentence: without anything invisible, and not too long."""

from __future__ import annotations

import unicodedata

LONG_CHARS = 2000
NAME_CHARS = 200
LABEL_CHARS = 60
_GONE = frozenset(("Cc", "Cf", "Zl", "Zp"))


def clean(text: str) -> str:
    """Without control, format and line-separating characters; half surrogate pairs become U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text if unicodedata.category(c) not in _GONE)


def clip(text: str, most: int) -> tuple[str, bool]:
    """The clean text, at most so many characters, and whether something is missing. Cut first, so that a huge text is not walked."""
    found = clean(text[: most * 2 + 100])
    short = found[:most]
    return short, len(short) < len(found) or len(text) > most * 2 + 100


def is_label(text: object) -> bool:
    """Whether a text is one visible line of at most 60 characters."""
    return isinstance(text, str) and bool(text.strip()) and len(text) <= LABEL_CHARS and clean(text) == text


def joined(items: list[str], most: int = 5) -> str:
    """`x, y and z`; what is beyond the cap is counted."""
    shown = items[:most]
    if len(items) > most:
        shown = [*shown, f"{len(items) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""
