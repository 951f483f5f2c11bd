"""Streams that agents print about themselves, read as native events: one module a format, one row of FORMATS.

A module has a `Translator` (guardhook.intake.streams.common): `line` turns one parsed line into events and raises Skip for one that is none of the
format's, `end` is called once when the stream ends. What real clients print is the measure; samples of it are the tests' fixtures.
"""

from __future__ import annotations

import importlib
from typing import cast

from guardhook.intake.streams.common import Skip, Translator

# name of --format -> module below this package
FORMATS = {
    "codex-exec": "codex_exec",  # codex exec --json
    "gemini-stream": "gemini_stream",  # gemini --output-format stream-json
    "claude-stream": "claude_stream",  # claude -p --verbose --output-format stream-json
    "qwen-stream": "qwen_stream",  # qwen --output-format stream-json
}

__all__ = ["FORMATS", "Skip", "Translator", "translator"]


def translator(name: str, *, live: bool = True) -> Translator:
    """The translator of a format. live: lines are read as they are printed, so that the time of reading is the time of the event. Raises KeyError."""
    module = importlib.import_module(f"guardhook.intake.streams.{FORMATS[name]}")
    return cast(Translator, module.Translator(live=live))
