"""Codex rollouts: `<CODEX_HOME>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, of current and older clients.

What the model said and called stands in `response_item` records, what ran in `event_msg` records (`item_completed` now, `exec_command_end` and its like before).
Both tell the same things: messages and thoughts are taken from whichever comes first, and what ran completes the call it belongs to by its id. In code mode the
model writes a script, and the calls in it are told as items only: they become steps below the script's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from guardhook.intake import records
from guardhook.intake.codex_records import (
    CALLS,
    DECODER,
    DENIED,
    DOCUMENT,
    ENDS,
    OUTPUTS,
    REJECTED,
    Item,
    Ran,
    Record,
    Tokens,
    Twice,
    failure,
    lines,
    said_of,
    stamp_of,
    turn,
    unwrap,
    what_ran,
)
from guardhook.intake.import_steps import Prompt, Recent, Steps, Turns, flatten, number
from guardhook.intake.imports import Counts, Event, Identity, Run
from guardhook.store.given import structured

NAME = "codex-rollout"
VERSION = "1"
_KINDS = re.compile(rb'"(?:record_)?type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted)"')
_BARE = re.compile(rb'(?m)^\{\s*"type"\s*:\s*"(?:function_call|custom_tool_call|local_shell_call)(?:_output)?"')
_OLDEST = re.compile(rb'^\{"id"\s*:\s*"[^"]+"\s*,\s*"timestamp"\s*:\s*"[^"]+"\s*,\s*"(?:instructions|git)"')
_RAN_MOST = 1_000


def detect(path: str, head: bytes) -> bool:
    """Records that name a kind of theirs, the bare head of old ones, or the one document of the first clients."""
    if b'"projectHash"' in head[:2048]:
        return False
    if _KINDS.search(head[:16_384]) is not None or _OLDEST.match(head) is not None or _BARE.search(head) is not None:
        return True
    return DOCUMENT.match(head) is not None and b'"instructions"' in head


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
    for name, value in (
        ("cwd", first.cwd),
        ("git", first.git),
        ("originator", first.originator),
        ("forked_from", first.fork),
    ):
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


class _First:
    """What the beginning of a file tells, until the prompt is found."""

    def __init__(self, fd: int) -> None:
        self.session: str | None = None
        self.thread: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.fork: str | None = None  # the thread that this one goes on from
        self.originator: str | None = None
        self.git: object = None
        self.source: object = None
        self.stamp: str | None = None
        self.prompt = Prompt()
        clock = Steps(Counts())
        twice = Twice()
        met = False
        for _, raw in lines(fd):
            record = None if raw is None else DECODER.decode(raw)[0]
            if record is None:
                continue
            kind, item = unwrap(record)
            if not met and (kind == "session_meta" or (kind == "" and item.id is not None)):
                met = True
                self.thread = None if item.id is None else str(item.id)
                self.session = item.session_id or self.thread
                self.version, self.cwd, self.originator = item.cli_version, item.cwd, item.originator
                self.git, self.source, self.fork = item.git, item.source, item.forked_from_id
                self.stamp = clock.seen(item.timestamp)
            self.stamp = self.stamp or clock.seen(record.timestamp)
            said = turn(kind, item)
            if said is not None and not self.prompt.found and not twice.again(said[0], said[1]):
                self.prompt.add(said[0])
            if met and self.prompt.found:
                break


class _Rollout:
    """The main pass. One event is held back, so that the tokens that are told after it still reach it."""

    def __init__(self, path: str, steps: Steps, counts: Counts, first: _First) -> None:
        self.name = os.path.basename(path)
        self.steps = steps
        self.counts = counts
        self.turns = Turns(first.prompt)
        self.model: str | None = None
        self.ran: dict[str, Ran] = {}
        self.twice = Twice()
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
        for line, raw in lines(fd):
            self.counts.read += 1
            self.counts.bytes += 0 if raw is None else len(raw) + 1
            if raw is None:
                self.counts.bad(self.name, line, f"longer than {records.LINE_BYTES >> 20} MiB")
                continue
            record, wrong = DECODER.decode(raw)
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

    def _record(self, record: Record) -> Iterator[Event | None]:
        """Events of one record; None where a record was used without giving one."""
        kind, item = unwrap(record)
        stamp = self.steps.seen(record.timestamp)
        said = turn(kind, item)
        if said is not None:
            if not self.twice.again(said[0], said[1]):
                self.turns.add(said[0])
            yield None
        elif kind in CALLS:
            yield self._call(kind, item, stamp)
        elif kind in OUTPUTS:
            yield from self._output(item, stamp)
        elif kind == "item_completed" and item.item is not None:
            yield from self._item(item.item, item, stamp)
        elif kind in ENDS:
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

    def _state(self, kind: str, item: Item) -> Iterator[None]:
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

    def _total(self, tokens: Tokens | None) -> None:
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

    def _answer(self, tokens: Tokens | None) -> None:
        """What one answer of the model took goes to its last step, if that is still at hand."""
        if tokens is None or tokens.total_tokens is None:
            return
        value = number(tokens.total_tokens)
        if not value or not number(tokens.input_tokens) + number(tokens.output_tokens):
            return  # after a compaction the size of the new history is told here, which no answer took
        self.each += value
        if self.held is not None and "tokens_used" not in self.held.fields:
            self.held.fields["tokens_used"] = value

    def _call(self, kind: str, item: Item, stamp: str | None) -> Event:
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

    def _output(self, item: Item, stamp: str | None) -> Iterator[Event]:
        call = str(item.call_id) if item.call_id is not None else str(item.id)
        if not self.steps.is_open(call):
            return
        ran = self.ran.pop(call, None)
        error = failure(item.output) or (None if ran is None else ran.error())
        metadata = {} if ran is None else ran.metadata()
        text = said_of(item.output)
        if text.lstrip().startswith(DENIED):
            metadata["blocked"] = True
        elif text in REJECTED:
            metadata["blocked"] = True
            metadata["permission"] = {"decision": "reject", "source": "user"}
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

    def _search(self, item: Item, action: object, stamp: str | None, *, event: bool) -> Iterator[Event | None]:
        if item.id is not None and self.twice.again(f"search\0{item.id}", event):
            yield None
            return
        given = action if isinstance(action, dict) else {"query": item.query}
        metadata: dict[str, object] = {} if item.id is None else {"call": str(item.id)}
        yield self.steps.step("retrieval", "web_search", stamp, input=given, model=self.model, metadata=metadata)

    def _item(self, item: Item, event: Item, stamp: str | None) -> Iterator[Event | None]:
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
        elif kind in ("CommandExecution", "FileChange", "McpToolCall", "ImageView") or kind in ENDS:
            call = item.call_id if item.call_id is not None else item.id
            ran = Ran(item, stamp)
            if call is not None and self.steps.is_open(str(call)):
                self.ran[str(call)] = ran
                if len(self.ran) > _RAN_MOST:
                    del self.ran[next(iter(self.ran))]
                yield None
            elif call is None or not self.told.again(str(call)):
                yield self._nested(item, event, ran, stamp)

    def _nested(self, item: Item, event: Item, ran: Ran, stamp: str | None) -> Event:
        """A call that only the client tells of: one inside a script."""
        name, given = what_ran(item)
        begun, ended = stamp_of(event.started_at_ms), stamp_of(event.completed_at_ms)
        metadata = ran.metadata()
        call = item.call_id if item.call_id is not None else item.id
        if call is not None:
            metadata["call"] = str(call)
        parent = self.scripts[-1][1] if self.scripts else None
        return self.steps.step(
            "tool_call", name, ended or stamp, started=begun, input=given, output={"output": ran.output}, error=ran.error(), parent=parent,
            cause=parent, model=self.model, duration_ms=ran.duration_ms, metadata=metadata,
        )  # fmt: skip
