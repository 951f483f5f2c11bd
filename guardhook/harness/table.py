"""The harnesses that guardhook can register itself in. A new one is a module with the functions of `model.Harness` and a row."""

from __future__ import annotations

import importlib
from typing import cast

from guardhook.harness.model import Harness

MODULES = {
    "claude-code": "guardhook.harness.claude_code",
    "codex": "guardhook.harness.codex",
    "gemini": "guardhook.harness.gemini",
}


def load(name: str) -> Harness:
    """The module of a harness. Raises KeyError for a name that is not in the table."""
    return cast(Harness, importlib.import_module(MODULES[name]))
