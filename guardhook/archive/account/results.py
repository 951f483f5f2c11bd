"""What a tool's result says of itself: rows, nothing, that it looked and found nothing, or no shape that is known. The text is parsed once, on top.

A result may declare what it searched: `{"coverage": {"searched": …, "not_covered": […]}, …}`, with `"absent": true` where nothing matched.
"""

from __future__ import annotations

from typing import NamedTuple

from guardhook.archive import plain
from guardhook.archive.account.declarations import Tool
from guardhook.archive.errors import UnreadableError

ABSENT, EMPTY, ROWS, CLARIFY, UNKNOWN = "declared-absent", "undeclared-empty", "non-empty", "clarify", "unknown"
_MOST_CHARS = 8 << 20
_ROWS = ("rows", "items", "results", "data", "matches")


class Result(NamedTuple):
    """shape is one of the five. rows: how many, at `at`; searched and left_out: what the tool declared."""

    shape: str
    rows: int | None = None
    at: str | None = None
    searched: str | None = None
    left_out: tuple[str, ...] = ()
    declared: bool = False
    cut: bool = False


def judge(output: object, tool: Tool | None) -> Result:
    """The shape of a result's text, as recorded."""
    if not isinstance(output, str):
        return Result(UNKNOWN)
    value, text = _unwrapped(output)
    inner = _told(value)
    if inner is not None:  # what a harness wraps around the text of a tool is no statement of the tool's
        text = inner
    if text is not None:
        cut = isinstance(value, dict) and value.get("truncated") is True
        trimmed = text.strip()
        if tool is not None and trimmed in tool.empty_text:
            return Result(EMPTY, 0)
        if not trimmed and tool is not None and tool.role == "search":
            return Result(EMPTY, 0)
        return Result(UNKNOWN, cut=cut)
    if isinstance(value, list):
        return Result(ROWS if value else EMPTY, len(value), "")
    if isinstance(value, dict):
        return _object(value, tool)
    return Result(UNKNOWN)


def _unwrapped(output: str) -> tuple[object, str | None]:
    """(value, None) for JSON, (None, text) for text. A wrapper around exactly one text block is taken off first."""
    value = _parsed(output)
    inner = _block(value)
    if inner is not None:
        value = _parsed(inner)
        output = inner
    return (value, None) if isinstance(value, (dict, list)) else (None, output)


def shown(output: str) -> str:
    """The text that a tool gave, without what the harness put around it; what has another shape as it is."""
    value, text = _unwrapped(output)
    inner = _told(value)
    return inner if inner is not None else text if text is not None else output


def _told(value: object) -> str | None:
    """The text inside the object that stands for a result: both streams of a shell, what the model got to see, what an import put there."""
    if not isinstance(value, dict):
        return None
    out, errors = value.get("stdout"), value.get("stderr", "")
    if isinstance(out, str) and isinstance(errors, str) and not any(isinstance(v, (dict, list)) for v in value.values()):  # fmt: skip
        return out + errors
    seen = value.get("result") if len(value) == 1 else value.get("llmContent")
    return seen if isinstance(seen, str) else None


def _parsed(text: str) -> object:
    if len(text) > _MOST_CHARS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return plain.loads(text)
    except UnreadableError:
        return None


def _block(value: object) -> str | None:
    blocks = value.get("content") if isinstance(value, dict) and set(value) <= {"content", "isError", "is_error", "_meta"} else value  # fmt: skip
    if isinstance(blocks, list) and len(blocks) == 1 and isinstance(blocks[0], dict) and blocks[0].get("type") == "text":  # fmt: skip
        text = blocks[0].get("text")
        return text if isinstance(text, str) else None
    return None


def _object(value: dict[str, object], tool: Tool | None) -> Result:
    coverage = value.get("coverage")
    declared = isinstance(coverage, dict) or value.get("absent") is True
    searched, left_out = _coverage(coverage) if isinstance(coverage, dict) else (None, ())
    cut = value.get("truncated") is True
    at = tool.rows_at if tool is not None else None
    if at is None and isinstance(coverage, dict):
        at = next((name for name in _ROWS if isinstance(value.get(name), list)), None)
    rows = value.get(at) if at is not None else None
    if value.get("absent") is True or (declared and rows == []):
        return Result(ABSENT, 0, at, searched, left_out, True, cut)
    if isinstance(value.get("clarify"), str):
        return Result(CLARIFY, None, None, searched, left_out, declared, cut)
    if isinstance(rows, list):
        return Result(ROWS if rows else EMPTY, len(rows), at, searched, left_out, declared, cut)
    return Result(UNKNOWN, None, None, searched, left_out, declared, cut)


def _coverage(coverage: dict[str, object]) -> tuple[str | None, tuple[str, ...]]:
    searched = next((v for n in ("searched", "scope") if isinstance(v := coverage.get(n), str) and v.strip()), None)
    missing = next((coverage[n] for n in ("not_covered", "notCovered") if n in coverage), None)
    listed = missing if isinstance(missing, list) else [missing]
    return searched, tuple(v for v in listed if isinstance(v, str) and v.strip())[:12]
