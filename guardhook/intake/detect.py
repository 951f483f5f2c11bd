"""The table of importers, and finding the one that a file belongs to."""

from __future__ import annotations

import importlib
import os

from guardhook.intake.imports import Importer

HEAD_BYTES = 64 * 1024
# format -> module below guardhook.intake; asked in this order
TABLE: dict[str, str] = {
    "claude-transcript": "claude_transcript",
    "codex-rollout": "codex_rollout",
    "gemini-chat": "gemini_chat",
    "qwen-chat": "qwen_chat",
    "agent-replay": "agent_replay",
}
# those that are a harness's own session logs
LOGS = frozenset(("claude-transcript", "codex-rollout", "gemini-chat", "qwen-chat"))


def importer(format: str) -> Importer:
    """The importer of a format. Raises KeyError."""
    module: Importer = importlib.import_module(f"guardhook.intake.{TABLE[format]}")
    return module


def find(path: str, fd: int) -> Importer | None:
    """The importer that knows this file, None when none does. Raises OSError."""
    head = os.pread(fd, HEAD_BYTES, 0).removeprefix(b"\xef\xbb\xbf")
    for format in TABLE:
        found = importer(format)
        if found.detect(path, head):
            return found
    return None
