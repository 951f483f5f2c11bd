"""`codex exec --json`: threads, turns and items.

The stream has no times of its own: while it is piped, the time of reading is taken for steps. A call that a hook denied gives no item at all, so nothing can be
recorded of it here; a declined one is an item of status `declined`. `error` lines and items are notices as long as a turn completes after them
(Codex reports its retries so).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from guardhook.intake.streams.common import (
    Builder,
    Call,
    Event,
    Skip,
    exit_error,
    given,
    obj,
    said,
    text,
    total,
    truthy,
)
from guardhook.store.instants import iso_ms

AGENT = "codex"
_TYPES = {
    "agent_message": "output",
    "assistant_message": "output",
    "command_execution": "tool_call",
    "mcp_tool_call": "tool_call",
    "file_change": "tool_call",
    "collab_tool_call": "tool_call",
    "web_search": "retrieval",
}
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish"))
_USAGE = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


class Translator:
    """A trace per `thread.started`; it ends when the stream or the next thread says so."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._build = Builder()
        self._fresh()

    def _fresh(self) -> None:
        self._usage: dict[str, int] = {}
        self._turns = 0
        self._answer: str | None = None
        self._failure: str | None = None  # of a turn, or the last `error`
        self._clean = False  # the last turn completed

    def line(self, value: Event, now_us: int) -> Iterator[Event]:
        kind = value.get("type")
        now = iso_ms(now_us)
        if kind == "thread.started":
            yield from self.end(now_us)
            yield self._begin(now, text(value.get("thread_id")))
        elif kind in ("item.started", "item.completed"):
            if self._build.trace is None:
                yield self._begin(now, None)
            item = value.get("item", {k: v for k, v in value.items() if k != "type"})
            yield from self._item(item if isinstance(item, dict) else {"output": item}, str(kind), now)
        elif kind == "turn.completed":
            if self._build.trace is None:
                yield self._begin(now, None)
            self._turns += 1
            self._clean, self._failure = True, None
            self._count(obj(value.get("usage")))
            yield from self._build.interrupted(self._at(now))
        elif kind in ("turn.failed", "error"):
            if self._build.trace is None:
                yield self._begin(now, None)
            message = said(value.get("error")) or said(value.get("message")) or "the turn failed"
            self._clean = False
            if kind == "error":
                yield self._build.step("thought", "notice", output={"message": message}, **self._times(now))
            else:
                yield from self._build.interrupted(self._at(now))
            self._failure = message
        elif kind == "turn.started":
            self._clean, self._failure = False, None
        elif kind != "item.updated":
            raise Skip(f"unknown type {kind!r}" if isinstance(kind, str) else "no type")

    def end(self, now_us: int) -> Iterator[Event]:
        if self._build.trace is None:
            return
        now = self._at(iso_ms(now_us))
        yield from self._build.interrupted(now)
        if not self._clean and self._failure is None:
            return  # cut off: whoever records says so
        yield self._build.end(
            "completed" if self._clean else "failed",
            error=self._failure,
            output=None if self._answer is None else {"text": self._answer},
            total_tokens=total(dict(self._usage), "input_tokens", "output_tokens"),
            ended_at=now,
            untimed=not self._live,
            metadata=given(usage=dict(self._usage) or None, turns=self._turns or None),
        )
        self._fresh()

    def _begin(self, now: str, thread: str | None) -> Event:
        self._fresh()
        return self._build.start(AGENT, "codex-exec", session_id=thread, started_at=now if self._live else None)

    def _at(self, now: str) -> str | None:
        return now if self._live else None

    def _times(self, now: str) -> Event:
        return {"started_at": now, "ended_at": now} if self._live else {}

    def _count(self, usage: Event) -> None:
        for name in _USAGE:
            number = total(usage, name)
            if number is not None:
                self._usage[name] = self._usage.get(name, 0) + number

    # --- items --------------------------------------------------------------------------------------------------

    def _item(self, item: Event, kind: str, now: str) -> Iterator[Event]:
        sort = text(item.get("type")) or text(item.get("item_type")) or "item"
        key = text(item.get("id"))
        step_type = _TYPES.get(sort, "thought")
        if kind == "item.started":
            if self._build.find(key, "") is None:
                yield from self._build.open(
                    _name(item, sort), key, step_type, input=_input(item), metadata=_metadata(item, sort), started_at=self._at(now),
                )  # fmt: skip
            return
        call = self._build.find(key, "")
        error = None if sort == "error" else _error(item)
        if step_type == "output":
            self._answer = text(item.get("text")) or self._answer
        if call is None:
            yield self._build.step(
                step_type, _name(item, sort), input=_input(item), output=item, error=error,
                metadata=_metadata(item, sort), **self._times(now),
            )  # fmt: skip
            number = self._build.number
        else:
            yield self._closed(call, item, sort, error, now)
            number = call.number
        if _declined(item):
            yield self._build.decision(number, "decline", "policy", error)

    def _closed(self, call: Call, item: Event, sort: str, error: str | None, now: str) -> Event:
        return self._build.close(call, output=item, error=error, metadata=_metadata(item, sort), ended_at=self._at(now))


def _name(item: Event, sort: str) -> str:
    if sort == "error":
        return "notice"
    name = text(item.get("name")) or text(item.get("tool"))
    if name is not None:
        return name
    command = item.get("command")
    words = command if isinstance(command, list) else str(command).split(maxsplit=3) if text(command) else []
    words = [w for w in words if isinstance(w, str) and w]
    if (
        len(words) > 2
        and words[0].rpartition("/")[2] in _SHELLS
        and words[1].startswith("-")
        and words[1].endswith("c")
    ):
        inner = words[2] if isinstance(command, list) else _script(str(command))
        words = inner.split(maxsplit=1) or words
    return words[0] if words else sort


def _script(command: str) -> str:
    """What the shell that Codex wraps around a command runs."""
    try:
        return shlex.split(command)[2]
    except (ValueError, IndexError):
        return ""


def _input(item: Event) -> Event:
    for name in ("arguments", "input"):
        if isinstance(item.get(name), dict):
            return obj(item[name])
    fields = ("command", "changes", "arguments", "query", "action", "prompt", "receiver_thread_ids", "items")
    return given(**{name: item.get(name) for name in fields})


def _metadata(item: Event, sort: str) -> Event:
    return given(
        source="codex-exec",
        item_type=sort,
        call=text(item.get("id")),
        server=text(item.get("server")),
        status=text(item.get("status")),
        exit_code=item.get("exit_code"),
        blocked=True if _declined(item) else None,
    )


def _declined(item: Event) -> bool:
    return str(item.get("status")).strip().lower() in ("declined", "rejected", "denied")


def _error(item: Event) -> str | None:
    if _declined(item):
        return said(item.get("error")) or "declined: the command was not run"
    explicit = said(item.get("error")) or exit_error(item.get("exit_code"))
    if explicit is not None:
        return explicit
    failed = truthy(item.get("is_error")) or str(item.get("status")).strip().lower() == "failed"
    return "tool failed" if failed else None
