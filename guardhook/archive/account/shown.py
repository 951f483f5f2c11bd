"""What a pointer points at, for whoever asks to see it. Only leaves on the list are shown; what is denied by name stays denied whatever the list says.

Pointers: `event:<seq>:<path>`, `decision:<seq>:<field>`, `declaration:<field>[:<id>]`; path segments are joined by `/`, with `~0` and `~1` for `~` and `/`.
"""

from __future__ import annotations

import re

from guardhook.archive.account import calls, limits, results, words
from guardhook.archive.account.calls import Call
from guardhook.archive.account.declarations import Declarations
from guardhook.archive.account.record import Happened, Record, kept_out
from guardhook.core.jsontext import dumps

_POINTER = re.compile(r"(event|decision):([0-9]{1,18}):([^\x00-\x1f]{0,200})|declaration:(label|covers_answer|rows_at|role)(?::(.{1,200}))?", re.ASCII)  # fmt: skip
# Never shown, at any place: what was called with, what came back, what was injected or thought, reasons that may echo input, who and where.
_DENIED = frozenset((
    "arguments", "executed_arguments", "output", "result", "reason", "error", "context", "messages", "reasoning", "env", "environment", "session",
    "session_id", "conversation_id", "transcript_path", "cwd", "title", "compact_summary", "custom_instructions", "input_digest",
))  # fmt: skip
_EVENT = {
    "run.started": ("data/prompt",), "conversation.continued": ("data/message",), "steering.received": ("data/message", "data/content"),
    "assistant.message": ("data/content",), "tool.call.started": ("data/tool",), "tool.call.completed": ("data/tool", "data/exit_code"),
    "tool.call.blocked": ("data/tool", "data/policy"), "tool.approval_denied": ("data/tool",), "tool.approval_required": ("data/tool",),
}  # fmt: skip
_DECISION = ("policy", "decision", "mode", "action")


def pointer_key(kind: str, seq: int | None, *path: str) -> str:
    """The pointer of a path: segments are escaped."""
    joined = "/".join(segment.replace("~", "~0").replace("/", "~1") for segment in path)
    return f"{kind}:{joined}" if seq is None else f"{kind}:{seq}:{joined}"


class Shower:
    """Answers for one recording. Values are `{"value": …}` or `{"withheld": word}`: not-allowed, too-large, missing, redacted."""

    def __init__(
        self, recording: object, *, run_id: str | None = None, declarations: Declarations | None = None, hide_paths: bool = False
    ) -> None:  # fmt: skip
        self._declared = declarations or Declarations()
        record = Record(recording, run_id)
        self._events = {event.seq: event for event in record.events}
        self._calls: dict[int, Call] = {}
        self._hide_paths = hide_paths
        for call in calls.collect(record, self._declared):
            for event in (call.start, call.end, call.blocked, call.denied, call.decision, call.withheld):
                if event is not None:
                    self._calls[event.seq] = call

    def show(self, pointer: str) -> dict[str, object]:
        """The leaf that a pointer names."""
        match = _POINTER.fullmatch(pointer)
        if match is None:
            return _withheld("missing")
        if match[4] is not None:
            return self._declaration(match[4], match[5])
        event = self._events.get(int(match[2]))
        if event is None:
            return _withheld("missing")
        path = match[3]
        segments = [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")]
        if not _DENIED.isdisjoint(segments):
            return _withheld("not-allowed")
        if match[1] == "decision":
            return _leaf(event.data.get(path)) if path in _DECISION and _decides(event) else _withheld("not-allowed")
        if path == "type":
            return _leaf(event.type)
        if path in _EVENT.get(event.type, ()) or (event.type == "llm.turn.completed" and path == "data/content" and event.data.get("basis") == "stop"):  # fmt: skip
            return _leaf(event.data.get(segments[1]))
        return self._derived(event, segments)

    def all(self, pointers: list[str]) -> dict[str, object]:
        """The leaves of several pointers, as many as fit; `#more` counts the others."""
        out: dict[str, object] = {}
        size = 2
        wanted = list(dict.fromkeys(pointers))
        for place, pointer in enumerate(wanted):
            leaf = self.show(pointer)
            size += len(dumps({pointer: leaf}))
            if size > limits.SHOWN_BYTES - 64:
                out[limits.MORE] = len(wanted) - place
                break
            out[pointer] = leaf
        return out

    def _derived(self, event: Happened, segments: list[str]) -> dict[str, object]:
        """What was made of a call: never its input or output."""
        call = self._calls.get(event.seq)
        if call is None:
            return _withheld("not-allowed")
        first = segments[0]
        if segments == ["outcome"]:
            return _leaf(call.outcome)
        if segments == ["error_kind"] and call.outcome == calls.FAILED:
            return _leaf(calls.error_kind(call))
        if segments == ["path"] and call.changes:
            return _withheld("not-allowed") if self._hide_paths else _leaf(call.path)
        if segments == ["rows"]:
            shape = call.shape
            return _withheld("missing") if shape.rows is None else {"value": {"rows": shape.rows, "at": shape.at}}
        if first == "coverage" and len(segments) == 2:
            return self._coverage(call, segments[1])
        return _withheld("not-allowed")

    def _coverage(self, call: Call, name: str) -> dict[str, object]:
        if call.shape.shape == results.UNKNOWN and not call.shape.declared:
            return _withheld("missing")
        if name == "searched":
            return _leaf(call.shape.searched)
        return _leaf(call.shape.left_out[int(name)]) if name.isascii() and name.isdigit() and int(name) < len(call.shape.left_out) else _withheld("missing")  # fmt: skip

    def _declaration(self, field: str, id: str | None) -> dict[str, object]:
        for check in self._declared.checks:
            if check.id == id and field in ("label", "covers_answer"):
                return _leaf(getattr(check, field))
        for tool in self._declared.tools:
            if tool.name == id and field in ("rows_at", "role"):
                return _leaf(getattr(tool, field))
        return _withheld("missing")


def _decides(event: Happened) -> bool:
    return event.type in ("tool_hook.completed", "hook.completed", "tool.call.blocked")


def _withheld(why: str) -> dict[str, object]:
    return {"withheld": why}


def _leaf(value: object) -> dict[str, object]:
    if value is None:
        return _withheld("missing")
    if isinstance(value, (bool, int)):
        return {"value": value}
    if not isinstance(value, str):
        return _withheld("not-allowed")
    if kept_out(value):
        return _withheld("redacted")
    if len(value) > limits.LEAF_CHARS:
        return _withheld("too-large")
    return {"value": words.clean(value)}


def pointers_of(account: dict[str, object]) -> list[str]:
    """All pointers that an account's sentences and facts name, in their order."""
    found: list[str] = []
    stack: list[object] = [account]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            named = item.get("pointers")
            if isinstance(named, list):
                found += [p for p in named if isinstance(p, str)]
            stack.extend(v for v in reversed(item.values()) if isinstance(v, (dict, list)))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return list(dict.fromkeys(found))
