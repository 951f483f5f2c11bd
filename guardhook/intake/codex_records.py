"""Records of Codex rollouts: their shapes, and reading what they mean whichever client wrote them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from guardhook.intake import records
from guardhook.intake.import_steps import flatten, number
from guardhook.intake.imports import ImportFailed
from guardhook.store.given import structured
from guardhook.store.instants import iso_ms

DOCUMENT = re.compile(rb'\s*\{\s*"session"\s*:\s*\{')
_ITEMS = re.compile(r'\s*,\s*"items"\s*:\s*\[')
_DOCUMENT_HEAD = 4096
_DOCUMENT_BYTES = 64 << 20
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
ENDS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
# What the client answers itself, to a call that it starts nothing for.
REFUSED = ("unsupported call: ", "unsupported custom tool call: ", "failed to parse function arguments: ")
# All that the output of a call is that a person did not let run; a command's own output never stands alone.
REJECTED = ("exec command rejected by user", "patch rejected by user")
DENIED = ("Command blocked by PreToolUse hook", "Tool call blocked by PreToolUse hook")
_WRAPPERS = ("response_item", "event_msg", "")
_RECENT = 256
_ERROR_CHARS = 500


class Tokens(msgspec.Struct):
    input_tokens: Any = None
    cached_input_tokens: Any = None
    output_tokens: Any = None
    reasoning_output_tokens: Any = None
    total_tokens: Any = None


class Info(msgspec.Struct):
    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None


class Item(msgspec.Struct):
    """Any record, what it wraps, and the items of events: one shape for all, since clients moved fields about."""

    type: str | None = None
    timestamp: str | None = None
    id: str | int | None = None
    session_id: str | None = None
    forked_from_id: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    source: Any = None
    git: Any = None
    role: str | None = None
    content: Any = None
    summary: Any = None
    summary_text: Any = None
    text: Any = None
    name: Any = None
    namespace: str | None = None
    arguments: Any = None
    input: Any = None
    call_id: str | int | None = None
    output: Any = None
    action: Any = None
    status: str | None = None
    model: str | None = None
    info: Info | None = None
    usage: Tokens | None = None
    thread_token_usage: Tokens | None = None
    message: Any = None
    reason: str | None = None
    command: Any = None
    exit_code: Any = None
    aggregated_output: str | None = None
    stdout: str | None = None
    success: bool | None = None
    duration: Any = None
    changes: Any = None
    server: str | None = None
    tool: str | None = None
    invocation: Any = None
    result: Any = None
    path: str | None = None
    query: Any = None
    started_at_ms: Any = None
    completed_at_ms: Any = None
    item: Item | None = None
    internal_chat_message_metadata_passthrough: Any = None


class Record(Item):
    record_type: str | None = None
    payload: Item | None = None


DECODER = records.Decoder(Record)


def lines(fd: int) -> Iterator[tuple[int, bytes | None]]:
    """(number, record) of a rollout, as `records.lines`; of the one JSON document that the first clients wrote, the session and its items.

    What is no JSON any more of a document that was cut off is given as its last record. Raises ImportFailed, OSError.
    """
    if DOCUMENT.match(records.beginning(fd, _DOCUMENT_HEAD)) is None:
        for number_, raw, _ in records.lines(fd):
            yield number_, raw
        return
    size = os.fstat(fd).st_size
    if size > _DOCUMENT_BYTES:
        raise ImportFailed(f"one JSON document of more than {_DOCUMENT_BYTES >> 20} MiB")
    text = records.beginning(fd, size).decode("utf-8", "replace")
    session, broken = records.elements(text, text.index(":") + 1, 1)
    for raw in session:
        yield 1, b'{"type":"session_meta","payload":%b}' % raw
    opened = None if broken is None else _ITEMS.match(text, broken)
    items, broken = ([], broken) if opened is None else records.elements(text, opened.end())
    yield from enumerate(items, 2)
    if broken is not None:
        yield len(items) + 2, text[broken : broken + 80].encode("utf-8", "replace") or b"{"


def unwrap(record: Record) -> tuple[str, Item]:
    """The kind of a record and what it is about, whichever way the client wrapped it."""
    inner = record.payload or record.item or record
    kind = record.type or record.record_type or ""
    if kind in _WRAPPERS:
        kind = inner.type or ""
    return kind, inner


def turn(kind: str, item: Item) -> tuple[str, bool] | None:
    """What a user said in a record, and whether it is the client's own telling of it (an event); None when it is no user's turn."""
    if kind == "message" and item.role == "user":
        said = flatten(item.content) if item.content is not None else flatten(item.text)
        return (said, False) if said.strip() and not _by_harness(item) else None
    if kind == "user_message" and isinstance(item.message, str):
        return (item.message, True) if item.message.strip() else None
    if kind == "item_completed" and item.item is not None and item.item.type == "UserMessage":
        said = flatten(item.item.content)
        return (said, True) if said.strip() else None
    return None


def _by_harness(item: Item) -> bool:
    """Whether the client itself put a user's message there."""
    passed = item.internal_chat_message_metadata_passthrough
    told = passed.get("content_item_metadata") if isinstance(passed, dict) else None
    if not isinstance(told, list) or not told:
        return False
    sources = [m.get("provenance") for m in told if isinstance(m, dict)]
    return bool(sources) and all(isinstance(s, dict) and s.get("type") == "harness" for s in sources)


class Twice:
    """Things that are told twice, once by the model's records and once by the client's events. Knows the second telling, in either order."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, bool], int] = {}

    def again(self, what: str, event: bool) -> bool:
        other = (what, not event)
        if other in self._waiting:
            self._waiting[other] -= 1
            if not self._waiting[other]:
                del self._waiting[other]
            return True
        mine = (what, event)
        self._waiting[mine] = self._waiting.pop(mine, 0) + 1
        if len(self._waiting) > _RECENT:
            del self._waiting[next(iter(self._waiting))]
        return False


class Ran:
    """What the client told of a call's execution."""

    __slots__ = ("duration_ms", "exit_code", "failed", "output", "stamp")

    def __init__(self, item: Item, stamp: str | None) -> None:
        self.exit_code = item.exit_code if isinstance(item.exit_code, int) and not isinstance(item.exit_code, bool) else None  # fmt: skip
        self.failed = item.status == "failed" or item.success is False
        self.duration_ms = _duration(item.duration)
        self.stamp = stamp
        output = item.aggregated_output if item.aggregated_output is not None else item.stdout
        self.output: object = output if output is not None else item.result

    def error(self) -> str | None:
        if self.exit_code:
            return f"exited with code {self.exit_code}"
        if self.failed:
            return flatten(self.output)[:_ERROR_CHARS] or "tool reported failure"
        if isinstance(self.output, dict) and self.output.get("isError") is True:
            return flatten(self.output.get("content"))[:_ERROR_CHARS] or "tool reported failure"
        return None

    def metadata(self) -> dict[str, object]:
        return {} if self.exit_code is None else {"exit_code": self.exit_code}


def _duration(value: object) -> int | None:
    if isinstance(value, dict):
        return number(value.get("secs")) * 1000 + number(value.get("nanos")) // 1_000_000
    return None


def said_of(output: object) -> str:
    """What a call gave, as text; some clients put it into an object beside whether it went well."""
    if isinstance(output, dict) and "success" in output and isinstance(output.get("content"), (str, list)):
        return flatten(output["content"])
    return flatten(output)


def _code(value: object) -> float | None:
    """An exit status: a number, or text of one."""
    if (
        isinstance(value, str)
        and value.strip().removeprefix("-").isascii()
        and value.strip().removeprefix("-").isdigit()
    ):
        value = int(value[:9])
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def failure(output: object) -> str | None:
    """Why a call failed, by what its output is; never by what a command printed."""
    said = flatten(output)
    head = said.lstrip()
    if head.startswith(("Script failed", "Script error", *DENIED, *REFUSED)):
        return said[:_ERROR_CHARS]
    if said in REJECTED:
        return said
    found = output if isinstance(output, dict) else structured(output)
    if not isinstance(found, dict):
        return None
    inner = found.get("metadata")
    for holder in (inner if isinstance(inner, dict) else {}, found):
        code = _code(holder.get("exit_code"))
        if code is not None:
            return f"exited with code {code:g}" if code else None
    if found.get("success") in (False, "false"):
        told = found.get("output") if found.get("output") is not None else found.get("content")
        return flatten(told)[:_ERROR_CHARS] or "tool reported failure"
    return None if found.get("error") is None else flatten(found["error"])[:_ERROR_CHARS]


def what_ran(item: Item) -> tuple[str, object]:
    """Name and input of a call that is told as an item."""
    if item.type == "CommandExecution" or item.type == "exec_command_end":
        return "exec_command", {"command": item.command, **({} if item.cwd is None else {"cwd": item.cwd})}
    if item.type == "FileChange" or item.type == "patch_apply_end":
        return "apply_patch", {"changes": item.changes}
    if item.type == "ImageView":
        return "view_image", {"path": item.path}
    invoked = item.invocation if isinstance(item.invocation, dict) else {}
    server, tool = item.server or invoked.get("server"), item.tool or invoked.get("tool")
    given = item.arguments if item.arguments is not None else invoked.get("arguments")
    return f"mcp__{server}__{tool}", given


def stamp_of(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 4e12:
        return None
    return iso_ms(int(value * 1000))
