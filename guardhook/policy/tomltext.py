"""TOML as far as it can be trusted: `tomllib` keeps every prefix of a dotted key, so one long key of a small file takes all memory there is."""

from __future__ import annotations

import re
import tomllib

MOST_PARTS = 100
# A part in quotes is looked at no further than this; with longer ones a file of the sizes that are read can't hold enough of them.
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.){0,100}+"|'[^'\n]{0,100}+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")


def loads(text: str) -> dict[str, object]:
    """The document's values. Raises tomllib.TOMLDecodeError and RecursionError, as tomllib does."""
    long = _LONG_KEY.search(text)
    if long is not None:
        line = text.count("\n", 0, long.start()) + 1
        raise tomllib.TOMLDecodeError(f"a dotted key of more than {MOST_PARTS} parts (at line {line}, column 1)")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise tomllib.TOMLDecodeError(str(error)) from None
