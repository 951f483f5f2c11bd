"""Codex rollouts: `<CODEX_HOME>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, of current and older clients.

What the model said and called stands in `response_item` records, what ran in `event_msg` records (`item_completed` now, `exec_command_end` and its like before).
Both tell the same things: messages and thoughts are taken from whichever comes first, and what ran completes the call it belongs to by its id. In code mode the
model writes a script, and the calls in it are told as items only: they become steps below the script's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from guardhook.intake import records
from guardhook.intake.import_steps import Prompt, Recent, Steps, Turns, flatten, number
from guardhook.intake.imports import Counts, Event, Identity, Run
from guardhook.store.instants import iso_ms
from guardhook.store.recorded import structured

NAME = "codex-rollout"
VERSION = "1"
_KINDS = re.compile(rb'"(?:record_)?type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted)"')
_OLDEST = re.compile(rb'^\{"id"\s*:\s*"[^"]+"\s*,\s*"timestamp"\s*:\s*"[^"]+"\s*,\s*"(?:instructions|git)"')
_WRAPPERS = ("response_item", "event_msg", "")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_ENDS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
_DENIED = ("Command blocked by PreToolUse hook", "Tool call blocked by PreToolUse hook")
_RECENT = 256
_RAN_MOST = 1_000
_ERROR_CHARS = 500


class _Tokens(msgspec.Struct):
    input_tokens: Any = None
    cached_input_tokens: Any = None
    output_tokens: Any = None
    reasoning_output_tokens: Any = None
    total_tokens: Any = None


class _Info(msgspec.Struct):
    total_token_usage: _Tokens | None = None
    last_token_usage: _Tokens | None = None


class _Item(msgspec.Struct):
    """Any record, what it wraps, and the items of events: one shape for all, since clients moved fields about."""

    type: str | None = None
    timestamp: str | None = None
    id: str | int | None = None
    session_id: str | None = None
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
    info: _Info | None = None
    usage: _Tokens | None = None
    thread_token_usage: _Tokens | None = None
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
    item: _Item | None = None
    internal_chat_message_metadata_passthrough: Any = None


class _Record(_Item):
    record_type: str | None = None
    payload: _Item | None = None


_decoder = records.Decoder(_Record)


def detect(path: str, head: bytes) -> bool:
    """Records that name a kind of theirs, or the bare head of the oldest ones."""
    if b'"projectHash"' in head[:2048]:
        return False
    return _KINDS.search(head[:16_384]) is not None or _OLDEST.match(head) is not None


def files(path: str) -> list[str]:
    """None: threads of sub-agents have rollouts, and traces, of their own."""
    return []


def read(path: str, fd: int, counts: Counts) -> Iterator[Run]:
    """The one run of a rollout."""
    first = _First(fd)
    steps = Steps(counts)
    metadata: dict[str, object] = {
        "source_format": NAME,
        "source_file": os.path.basename(path),
        "source_version": VERSION,
    }
    for name, value in (("cwd", first.cwd), ("git", first.git), ("originator", first.originator)):
        if value is not None:
            metadata[name] = value
    if first.thread is not None and first.thread != first.session:
        metadata["thread_id"] = first.thread
    if isinstance(first.source, dict):
        metadata["source"] = first.source
    start: dict[str, object] = {
        "agent_name": "codex",
        "agent_version": first.version,
        "trigger": "user_message",
        "status": "running",
        "input": first.prompt.input(),
        "session_id": first.session,
        "dialect": "codex",
        "project": first.cwd,
        "metadata": metadata,
    }
    if first.stamp is not None:
        start["started_at"] = first.stamp
    steps.seen(first.stamp)
    reader = _Rollout(path, steps, counts, first)
    yield Run(Identity(NAME, first.session, os.path.basename(path)), start, reader.events(fd), steps.us(first.stamp))


def unwrap(record: _Record) -> tuple[str, _Item]:
    """The kind of a record and what it is about, whichever way the client wrapped it."""
    inner = record.payload or record.item or record
    kind = record.type or record.record_type or ""
    if kind in _WRAPPERS:
        kind = inner.type or ""
    return kind, inner


def turn(kind: str, item: _Item) -> tuple[str, bool] | None:
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


def _by_harness(item: _Item) -> bool:
    """Whether the client itself put a user's message there."""
    passed = item.internal_chat_message_metadata_passthrough
    told = passed.get("content_item_metadata") if isinstance(passed, dict) else None
    if not isinstance(told, list) or not told:
        return False
    sources = [m.get("provenance") for m in told if isinstance(m, dict)]
    return bool(sources) and all(isinstance(s, dict) and s.get("type") == "harness" for s in sources)


class _Twice:
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


class _First:
    """What the beginning of a file tells, until the prompt is found."""

    def __init__(self, fd: int) -> None:
        self.session: str | None = None
        self.thread: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.originator: str | None = None
        self.git: object = None
        self.source: object = None
        self.stamp: str | None = None
        self.prompt = Prompt()
        clock = Steps(Counts())
        twice = _Twice()
        met = False
        for _, raw, _ in records.lines(fd):
            record = None if raw is None else _decoder.decode(raw)[0]
            if record is None:
                continue
            kind, item = unwrap(record)
            if not met and (kind == "session_meta" or (kind == "" and item.id is not None)):
                met = True
                self.thread = None if item.id is None else str(item.id)
                self.session = item.session_id or self.thread
                self.version, self.cwd, self.originator = item.cli_version, item.cwd, item.originator
                self.git, self.source = item.git, item.source
                self.stamp = clock.seen(item.timestamp)
            self.stamp = self.stamp or clock.seen(record.timestamp)
            said = turn(kind, item)
            if said is not None and not self.prompt.found and not twice.again(said[0], said[1]):
                self.prompt.add(said[0])
            if met and self.prompt.found:
                break


class _Ran:
    """What the client told of a call's execution."""

    __slots__ = ("duration_ms", "exit_code", "failed", "output", "stamp")

    def __init__(self, item: _Item, stamp: str | None) -> None:
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


def failure(output: object) -> str | None:
    """Why a call failed, by what its output is; never by what a command printed."""
    said = flatten(output)
    head = said.lstrip()
    if head.startswith(("Script failed", "Script error", *_DENIED)):
        return said[:_ERROR_CHARS]
    found = output if isinstance(output, dict) else structured(output)
    if not isinstance(found, dict):
        return None
    inner = found.get("metadata")
    for holder in (inner if isinstance(inner, dict) else {}, found):
        code = holder.get("exit_code")
        if isinstance(code, (int, float)) and not isinstance(code, bool):
            return f"exited with code {code:g}" if code else None
    if found.get("success") in (False, "false"):
        return flatten(found.get("output"))[:_ERROR_CHARS] or "tool reported failure"
    return None if found.get("error") is None else flatten(found["error"])[:_ERROR_CHARS]


class _Rollout:
    """The main pass. One event is held back, so that the tokens that are told after it still reach it."""

    def __init__(self, path: str, steps: Steps, counts: Counts, first: _First) -> None:
        self.name = os.path.basename(path)
        self.steps = steps
        self.counts = counts
        self.turns = Turns(first.prompt)
        self.model: str | None = None
        self.ran: dict[str, _Ran] = {}
        self.twice = _Twice()
        self.told = Recent(_RAN_MOST)  # calls inside scripts
        self.scripts: list[tuple[str, int]] = []  # open calls of code mode
        self.total: int | None = None
        self.kinds: dict[str, int] = {}
        self.each = 0  # sum of what single answers took
        self.per_answer = False
        self.compacted = 0
        self.status = "completed"
        self.error: str | None = None
        self.held: Event | None = None

    def events(self, fd: int) -> Iterator[Event]:
        for line, raw, _ in records.lines(fd):
            self.counts.read += 1
            self.counts.bytes += 0 if raw is None else len(raw) + 1
            if raw is None:
                self.counts.bad(self.name, line, f"longer than {records.LINE_BYTES >> 20} MiB")
                continue
            record, wrong = _decoder.decode(raw)
            if record is None:
                self.counts.bad(self.name, line, wrong)
                continue
            if wrong:
                self.counts.mended += 1
                self.counts.note(self.name, line, wrong)
            used = False
            for event in self._record(record):
                used = True
                if event is not None:
                    if self.held is not None:
                        yield self.held
                    self.held = event
            if used:
                self.counts.imported += 1
            else:
                self.counts.skipped += 1
        if self.held is not None:
            yield self.held
        for call, ran in self.ran.items():  # told to have run, and never answered
            if self.steps.is_open(call):
                yield self.steps.result(call, ran.stamp, {"output": ran.output}, ran.error(), ran.metadata(), ran.duration_ms)  # fmt: skip
        metadata = self.turns.metadata()
        if self.kinds:
            metadata["usage"] = self.kinds
        if self.compacted:
            metadata["compacted"] = True
        tokens = self.total if self.total is not None else self.each or None
        yield from self.steps.end(tokens=tokens, status=self.status, error=self.error, metadata=metadata)

    def _record(self, record: _Record) -> Iterator[Event | None]:
        """Events of one record; None where a record was used without giving one."""
        kind, item = unwrap(record)
        stamp = self.steps.seen(record.timestamp)
        said = turn(kind, item)
        if said is not None:
            if not self.twice.again(said[0], said[1]):
                self.turns.add(said[0])
            yield None
        elif kind in _CALLS:
            yield self._call(kind, item, stamp)
        elif kind in _OUTPUTS:
            yield from self._output(item, stamp)
        elif kind == "item_completed" and item.item is not None:
            yield from self._item(item.item, item, stamp)
        elif kind in _ENDS:
            yield from self._item(item, item, stamp)
        elif kind == "message" and item.role == "assistant":
            yield from self._message(flatten(item.content if item.content is not None else item.text), item.id, stamp, event=False)  # fmt: skip
        elif kind == "agent_message":
            yield from self._message(flatten(item.message), None, stamp, event=True)
        elif kind in ("reasoning", "agent_reasoning"):
            text = flatten(item.summary or item.content or item.text)
            yield from self._thought(text, item.id, stamp, event=kind != "reasoning")
        elif kind == "web_search_call":
            yield from self._search(item, item.action, stamp, event=False)
        else:
            yield from self._state(kind, item)

    def _state(self, kind: str, item: _Item) -> Iterator[None]:
        """Records that give no step: who, with which model, how many tokens, how a turn ended."""
        if kind == "session_meta":
            yield None
        elif kind == "turn_context":
            self.model = item.model or self.model
            yield None
        elif kind == "token_count" and item.info is not None:
            self._total(item.info.total_token_usage)
            if not self.per_answer:
                self._answer(item.info.last_token_usage)
            yield None
        elif kind == "token_usage_record":
            self.per_answer = True
            self._answer(item.usage)
            if self.total is None:
                self._total(item.thread_token_usage)
            yield None
        elif kind == "compacted":
            self.compacted += 1
            yield None
        elif kind == "turn_aborted":
            self.status, self.error = "failed", f"the turn was aborted: {item.reason or 'no reason is told'}"
            yield None
        elif kind in ("task_started", "turn_started"):
            self.status, self.error = "completed", None
            yield None
        elif kind in ("task_complete", "turn_complete"):
            yield None
        elif kind == "error" and isinstance(item.message, str):
            self.status, self.error = "failed", item.message
            yield None

    def _total(self, tokens: _Tokens | None) -> None:
        """The cumulative count: the last one holds."""
        if tokens is None or tokens.total_tokens is None:
            return
        self.total = number(tokens.total_tokens)
        self.kinds = {
            "input": number(tokens.input_tokens),
            "cached_input": number(tokens.cached_input_tokens),
            "output": number(tokens.output_tokens),
            "reasoning": number(tokens.reasoning_output_tokens),
        }

    def _answer(self, tokens: _Tokens | None) -> None:
        """What one answer of the model took goes to its last step, if that is still at hand."""
        if tokens is None or tokens.total_tokens is None:
            return
        value = number(tokens.total_tokens)
        if not value or not number(tokens.input_tokens) + number(tokens.output_tokens):
            return  # after a compaction the size of the new history is told here, which no answer took
        self.each += value
        if self.held is not None and "tokens_used" not in self.held.fields:
            self.held.fields["tokens_used"] = value

    def _call(self, kind: str, item: _Item, stamp: str | None) -> Event:
        call = item.call_id if item.call_id is not None else item.id
        name = item.name if isinstance(item.name, str) and item.name else "local_shell" if kind == "local_shell_call" else "tool"  # fmt: skip
        given = item.arguments if item.arguments is not None else item.input
        if given is None and isinstance(item.action, dict):
            given = item.action
        if isinstance(given, str):
            parsed = structured(given)
            given = {"arguments": given} if isinstance(parsed, str) else parsed
        metadata: dict[str, object] = {}
        if item.namespace:
            if item.namespace.startswith("mcp__"):
                name = f"{item.namespace}__{name}"
            else:
                metadata["namespace"] = item.namespace
        event = self.steps.call(
            None if call is None else str(call), name, stamp, input=given, model=self.model, metadata=metadata
        )
        if kind == "custom_tool_call" and name == "exec" and call is not None:
            step = event.fields["step_number"]
            assert isinstance(step, int)
            self.scripts.append((str(call), step))
            del self.scripts[:-64]
        return event

    def _output(self, item: _Item, stamp: str | None) -> Iterator[Event]:
        call = str(item.call_id) if item.call_id is not None else str(item.id)
        if not self.steps.is_open(call):
            return
        ran = self.ran.pop(call, None)
        error = failure(item.output) or (None if ran is None else ran.error())
        metadata = {} if ran is None else ran.metadata()
        text = flatten(item.output)
        if text.lstrip().startswith(_DENIED):
            metadata["blocked"] = True
        self.scripts = [s for s in self.scripts if s[0] != call]
        yield self.steps.result(call, stamp, {"output": text}, error, metadata)

    def _message(self, text: str, id: object, stamp: str | None, *, event: bool) -> Iterator[Event | None]:
        if not text:
            return
        if self.twice.again(f"message\0{text}", event):
            yield None
            return
        self.steps.last_text = text
        yield self.steps.step("output", "assistant_message", stamp, output={"text": text}, model=self.model)

    def _thought(self, text: str, id: object, stamp: str | None, *, event: bool) -> Iterator[Event | None]:
        if not text or self.twice.again(f"thought\0{text}", event):
            yield None
            return
        yield self.steps.step("thought", "reasoning", stamp, output={"text": text}, model=self.model)

    def _search(self, item: _Item, action: object, stamp: str | None, *, event: bool) -> Iterator[Event | None]:
        if item.id is not None and self.twice.again(f"search\0{item.id}", event):
            yield None
            return
        given = action if isinstance(action, dict) else {"query": item.query}
        metadata: dict[str, object] = {} if item.id is None else {"call": str(item.id)}
        yield self.steps.step("retrieval", "web_search", stamp, input=given, model=self.model, metadata=metadata)

    def _item(self, item: _Item, event: _Item, stamp: str | None) -> Iterator[Event | None]:
        """Something that ran, by what the client tells of it."""
        kind = item.type
        if kind == "AgentMessage":
            yield from self._message(flatten(item.content), item.id, stamp, event=True)
        elif kind == "Reasoning":
            yield from self._thought(flatten(item.summary_text or item.content), item.id, stamp, event=True)
        elif kind == "WebSearch":
            yield from self._search(item, item.action, stamp, event=True)
        elif kind == "ContextCompaction":
            self.compacted += 1
            yield None
        elif kind in ("CommandExecution", "FileChange", "McpToolCall", "ImageView") or kind in _ENDS:
            call = item.call_id if item.call_id is not None else item.id
            ran = _Ran(item, stamp)
            if call is not None and self.steps.is_open(str(call)):
                self.ran[str(call)] = ran
                if len(self.ran) > _RAN_MOST:
                    del self.ran[next(iter(self.ran))]
                yield None
            elif call is None or not self.told.again(str(call)):
                yield self._nested(item, event, ran, stamp)

    def _nested(self, item: _Item, event: _Item, ran: _Ran, stamp: str | None) -> Event:
        """A call that only the client tells of: one inside a script."""
        name, given = _what(item)
        begun, ended = _stamp(event.started_at_ms), _stamp(event.completed_at_ms)
        metadata = ran.metadata()
        call = item.call_id if item.call_id is not None else item.id
        if call is not None:
            metadata["call"] = str(call)
        parent = self.scripts[-1][1] if self.scripts else None
        return self.steps.step(
            "tool_call", name, ended or stamp, started=begun, input=given, output={"output": ran.output}, error=ran.error(), parent=parent,
            cause=parent, model=self.model, duration_ms=ran.duration_ms, metadata=metadata,
        )  # fmt: skip


def _what(item: _Item) -> tuple[str, object]:
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


def _stamp(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 4e12:
        return None
    return iso_ms(int(value * 1000))
