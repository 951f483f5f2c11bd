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
# What streams begin with, and their format for `guardhook record`.
_STREAMS = (
    (b'"type":"trace_start"', "native"), (b'"type":"thread.started"', "codex-exec"), (b'"subtype":"init"', "claude-stream"), (b'{"type":"init"', "gemini-stream"),
)  # fmt: skip
_ZSTD, _GZIP, _UTF16 = b"\x28\xb5\x2f\xfd", b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
# those that are a harness's own session logs
LOGS = frozenset(("claude-transcript", "codex-rollout", "gemini-chat", "qwen-chat"))


def importer(format: str) -> Importer:
    """The importer of a format. Raises KeyError."""
    module: Importer = importlib.import_module(f"guardhook.intake.{TABLE[format]}")
    return module


def unknown(fd: int) -> str:
    """What a person should know of a file that no importer knows. Raises OSError."""
    head = os.pread(fd, 4096, 0)
    if not head:
        return "an empty file"
    if head.startswith((_ZSTD, _GZIP)):
        program = "zstd" if head.startswith(_ZSTD) else "gzip"
        return f"compressed; import what is in it: {program} -dc FILE | guardhook import -"
    if head.startswith(_UTF16):
        return "text in UTF-16; it must be UTF-8"
    compact = head.replace(b" ", b"")
    for mark, form in _STREAMS:
        if mark in compact:
            return f"a stream and no session log; record it: guardhook record --format {form} < FILE"
    if b'"agent_name":' in compact:
        return "traces and no session log; take them in with: guardhook ingest FILE"
    return f"not a format that is known ({', '.join(TABLE)}); name it with --format"


def find(path: str, fd: int) -> Importer | None:
    """The importer that knows this file, None when none does. Raises OSError."""
    head = os.pread(fd, HEAD_BYTES, 0).removeprefix(b"\xef\xbb\xbf")
    for format in TABLE:
        found = importer(format)
        if found.detect(path, head):
            return found
    return None
