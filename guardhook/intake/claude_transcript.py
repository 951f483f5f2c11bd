"""Claude Code transcripts: `<config>/projects/<folder>/<session>.jsonl` and the files of its sub-agents beside it.

The client writes one record per content block; a message's usage is repeated in each and counted once. Calls end where their result stands, sub-agents hang on
an anchor step below the call that started them. Two passes: the first only until the prompt is found, which mostly is at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator

from guardhook.intake import records
from guardhook.intake.claude_records import (
    DECODER,
    LAUNCHES,
    METAS,
    SEEN_MOST,
    TYPES,
    Block,
    First,
    Message,
    Meta,
    Record,
    Used,
    said,
    turns,
)
from guardhook.intake.claude_sides import TOOLS, Sides, files_beside
from guardhook.intake.import_steps import Recent, Steps, Turns, Usage, flatten, number
from guardhook.intake.imports import Counts, Event, Identity, Run

NAME = "claude-transcript"
VERSION = "1"
_ANCHORS_MOST = 4_096
_EARLY_MOST = 64  # results that stand before their calls, and how long they may be to be remembered
_EARLY_CHARS = 1 << 18
_KNOWN = ("user", "assistant", "system", "attachment", "cost-state")  # kinds of records that are looked into
_META_BYTES = 1 << 20
_REJECTED = b'"User rejected tool use"'  # what older clients say of a call to which a person said no
_PARTS = re.compile(rb'"message"\s*:\s*\{[^{}\[\]]{0,200}"parts"\s*:')


def detect(path: str, head: bytes) -> bool:
    """Records with a uuid, or with a session and a type that only this client has. What stands in the head may be all of a first prompt with a picture in it."""
    for raw in head.split(b"\n")[:40]:
        if b'"projectHash"' in raw or raw.lstrip(b" \t\r\0")[:1] != b"{":
            continue
        if b'"parentUuid"' in raw and (b'"isSidechain"' in raw or (b'"sessionId"' in raw and b'"message"' in raw)):
            return _PARTS.match(raw, max(0, raw.find(b'"message"'))) is None  # Qwen Code has similar records
        if said(raw):
            return True
        if b'"sessionId"' not in raw:
            continue
        if any(word in raw for word in (b'"queue-operation"', b'"last-prompt"', b'"atis-latch"', b'"file-history-snapshot"', b'"permission-mode"')):  # fmt: skip
            return True
    return b'"type":"summary"' in head[:200].replace(b" ", b"") and b'"leafUuid"' in head


def files(path: str) -> list[str]:
    """Transcripts of sub-agents, and what their `.meta.json` say of them; of older clients those that lie beside the session's own."""
    folder = f"{path.removesuffix('.jsonl')}/subagents"
    within = [f"{folder}/{name}" for name in records.names_in(folder) if name.endswith((".jsonl", ".meta.json"))]
    return within + files_beside(path)


def read(path: str, fd: int, counts: Counts) -> Iterator[Run]:
    """The one run of a transcript."""
    first = First(fd)
    steps = Steps(counts)
    start: dict[str, object] = {
        "agent_name": "claude-code",
        "agent_version": first.version,
        "trigger": "user_message",
        "status": "running",
        "input": first.prompt.input(),
        "session_id": first.session,
        "dialect": "claude-code",
        "project": first.cwd,
        "metadata": {"source_format": NAME, "source_file": os.path.basename(path), "source_version": VERSION},
    }
    metadata = start["metadata"]
    assert isinstance(metadata, dict)
    for name, value in (("cwd", first.cwd), ("git_branch", first.branch), ("forked_from", first.origin)):
        if value is not None:
            metadata[name] = value
    if first.stamp is not None:
        start["started_at"] = first.stamp
    reader = _Transcript(path, steps, counts, first)
    yield Run(Identity(NAME, first.session, os.path.basename(path)), start, reader.events(fd), steps.us(first.stamp))


def _conversation(record: Record) -> str | list[Block] | None:
    return record.message.content if record.message is not None and record.type in TYPES else None


class _Transcript:
    """The main pass: records become events."""

    def __init__(self, path: str, steps: Steps, counts: Counts, first: First) -> None:
        self.path = path
        self.steps = steps
        self.counts = counts
        self.side = bool(first.side)
        self.turns = Turns(first.prompt)
        self.usage = Usage()
        self.told: tuple[str | None, Used] | None = None
        self.spare: tuple[str | None, int] = (None, 0)  # a message's tokens that no step of it has yet
        self.cost: float | None = None
        self.costs: tuple[str | None, float] = (None, 0.0)  # the last message whose cost was told, and the cost of all
        self.compacted = 0
        self.seen = Recent(SEEN_MOST)
        self.called = Recent(SEEN_MOST)
        self.early: dict[str, tuple[Record, Block, str | None]] = {}
        self.anchors: dict[str, int] = {}
        self.sides = Sides()
        self.wanted: set[str] = set()  # calls that started sub-agents
        self.spawned: dict[str, int] = {}  # call, or sub-agent -> the step that started it
        self.unlinked: set[str] = set()  # sub-agents of which nothing tells what started them but its result

    def events(self, fd: int) -> Iterator[Event]:
        """All events of the file and of its sub-agents, the end included."""
        agents = _agents(self.path)
        self.wanted = {meta.toolUseId for _, meta in agents if meta.toolUseId}
        self.unlinked = {_agent_id(file) for file, meta in agents if not meta.toolUseId}
        for record in self._records(self.path, fd):
            parent = None
            main = self.side or not record.isSidechain
            if not main:
                key = self.sides.of(record)
                if record.type == "assistant":
                    side = self.sides.side(key)
                    parent = yield from self._anchor(key, record.agentId, side.kind, side.cause, side.prompt, record.timestamp)  # fmt: skip
            for event in self._record(record, main, parent):
                if event.type == "trace.step_start" and self.wanted:
                    self._spawns(event)
                yield event
        for file, meta in agents:
            yield from self._agent(file, meta)
        cost = self.cost if self.cost is not None else self.costs[1] or None
        yield from self.steps.end(tokens=self.usage.total if self.usage.kinds else None, cost=cost, metadata=self._metadata())  # fmt: skip

    def _spawns(self, event: Event) -> None:
        own = event.fields.get("metadata")
        call = own.get("call") if isinstance(own, dict) else None
        if isinstance(call, str) and call in self.wanted:
            step = event.fields["step_number"]
            assert isinstance(step, int)
            self.spawned[call] = step

    def _metadata(self) -> dict[str, object]:
        out = self.turns.metadata()
        if self.usage.kinds:
            out["usage"] = self.usage.kinds
        if self.compacted:
            out["compacted"] = self.compacted
        return out

    def _records(self, path: str, fd: int) -> Iterator[Record]:
        """The records of one file; each is counted as read, and as malformed when it is none."""
        name, counts = os.path.basename(path), self.counts
        for line, raw, _ in records.lines(fd):
            counts.read += 1
            counts.bytes += 0 if raw is None else len(raw) + 1
            if raw is None:
                counts.bad(name, line, f"longer than {records.LINE_BYTES >> 20} MiB")
                continue
            record, wrong = DECODER.decode(raw)
            if record is None:
                counts.bad(name, line, wrong)
                continue
            if wrong and record.type in _KNOWN:
                counts.mended += 1
                counts.note(name, line, wrong)
            if record.uuid is not None and self.seen.again(hash(record.uuid)):
                counts.duplicates += 1
                counts.skipped += 1
                continue
            yield record

    def _record(self, record: Record, main: bool, parent: int | None) -> Iterator[Event]:
        """What one record gives. Counts it as imported or skipped."""
        used = False
        if record.type == "assistant":
            for event in self._assistant(record, main, parent):
                used = True
                yield event
        elif record.type in ("user", "attachment"):
            stamp = self.steps.seen(record.timestamp)
            for text in turns(record):
                used = True
                if main:
                    self.turns.add(text)
            content = _conversation(record)
            if isinstance(content, list):
                for block in content:
                    if block.type == "tool_result" and block.tool_use_id and self.steps.is_open(block.tool_use_id):
                        used = True
                        yield self._result(record, block, stamp)
                    elif len(content) == 1:
                        self._wait(record, block, stamp)
        elif record.type == "system" and record.subtype == "compact_boundary":
            self.compacted += 1
            used = True
        elif record.type == "cost-state":
            cost = record.totalCostUSD
            if isinstance(cost, (int, float)) and 0 <= cost < 1e9:
                self.cost = float(cost)
                used = True
        if used:
            self.counts.imported += 1
        else:
            self.counts.skipped += 1

    def _wait(self, record: Record, block: Block, stamp: str | None) -> None:
        """Remembers a result whose call may follow. Its record counts as skipped until then."""
        call = block.tool_use_id
        if block.type != "tool_result" or not call or call in self.called or call in self.early:
            return
        if len(bytes(record.toolUseResult)) + len(flatten(block.content)) <= _EARLY_CHARS:
            self.early[call] = (record, block, stamp)
            if len(self.early) > _EARLY_MOST:
                del self.early[next(iter(self.early))]

    def _assistant(self, record: Record, main: bool, parent: int | None) -> Iterator[Event]:
        message = record.message
        stamp = self.steps.seen(record.timestamp)
        if message is None:
            return
        tokens = self._tokens(message)
        if record.costUSD is not None:
            self._costs(message, record.costUSD)
        if self.spare[1] and self.spare[0] == message.id:
            tokens = (tokens or 0) + self.spare[1]
        self.spare = (None, 0)
        model = (
            None if message.model is None or message.model.startswith("<") else message.model
        )  # `<synthetic>`: the client itself speaks
        content = message.content
        blocks = [Block("text", content)] if isinstance(content, str) else content or []
        own: dict[str, object] | None = None if record.agentId is None else {"agent_id": record.agentId}
        steps = self.steps
        for block in blocks:
            if block.type == "tool_use":
                if block.name in TOOLS:
                    self.sides.called(block, steps.next)
                yield steps.call(
                    block.id, block.name or "tool", stamp, input=block.input, parent=parent, model=model, tokens=tokens, metadata=own
                )  # fmt: skip
                if block.id is not None and not self.called.again(block.id) and block.id in self.early:
                    yield self._result(*self.early.pop(block.id))
                    self.counts.skipped -= 1
                    self.counts.imported += 1
            elif block.type == "text" and block.text:
                if main:
                    steps.last_text = block.text
                failed = block.text if record.isApiErrorMessage is True else None
                yield steps.step(
                    "output", "assistant_message", stamp, output={"text": block.text}, parent=parent, model=model, tokens=tokens, error=failed, metadata=own
                )  # fmt: skip
            elif block.type == "thinking":
                yield steps.step(
                    "thought", "thinking", stamp, output={"text": block.thinking or ""}, parent=parent, model=model, tokens=tokens, metadata=own
                )  # fmt: skip
            elif block.type.endswith("_tool_use"):
                name = block.name or "tool"
                yield steps.call(
                    block.id, name, stamp, kind="retrieval" if name.startswith("web_") else "tool_call", input=block.input, parent=parent, model=model,
                    tokens=tokens, metadata={**(own or {}), "server": True},
                )  # fmt: skip
            elif block.type.endswith("_tool_result") and block.tool_use_id and steps.is_open(block.tool_use_id):
                yield self._served(block, block.tool_use_id, stamp)
                continue
            else:
                continue
            tokens = None
        if tokens and message.id is not None:  # a block that makes no step, such as a redacted thought
            self.spare = (message.id, tokens)

    def _served(self, block: Block, call: str, stamp: str | None) -> Event:
        """The result of a call that the model's provider ran itself; it stands among the model's own words."""
        content = block.content
        failed = block.is_error in (True, 1, "true", "1")
        error = content.get("error_code") if isinstance(content, dict) else None
        text = flatten(content)
        return self.steps.result(call, stamp, {"result": text}, flatten(error) if error is not None else (text or "tool failed") if failed else None)  # fmt: skip

    def _costs(self, message: Message, told: object) -> None:
        """Very old clients tell what each message cost, in each of its records."""
        if message.id is not None and message.id == self.costs[0]:
            return
        if isinstance(told, (int, float)) and not isinstance(told, bool) and 0 <= told < 1e6:
            self.costs = (message.id, self.costs[1] + told)

    def _tokens(self, message: Message) -> int | None:
        usage = message.usage
        if usage is None:
            return None
        if message.id is not None and (message.id, usage) == self.told:  # the next block of the same message
            return None
        self.told = (message.id, usage)
        return self.usage.add(
            message.id,
            {
                "input": number(usage.input_tokens),
                "output": number(usage.output_tokens),
                "cache_creation": number(usage.cache_creation_input_tokens),
                "cache_read": number(usage.cache_read_input_tokens),
            },
        )

    def _result(self, record: Record, block: Block, stamp: str | None) -> Event:
        text = flatten(block.content)
        failed = block.is_error in (True, 1, "true", "1")
        metadata: dict[str, object] = {}
        decision = record.permissionDecision
        if decision is not None and decision.decision is not None:
            metadata["permission"] = {"decision": decision.decision, "source": decision.source, "reason": decision.reasonCode}  # fmt: skip
            if decision.decision == "reject":
                metadata["blocked"] = True
        if record.toolDenialKind is not None:
            metadata["denial"] = record.toolDenialKind
            metadata["blocked"] = True
        elif decision is None and failed and bytes(record.toolUseResult) == _REJECTED:
            metadata["permission"] = {"decision": "reject", "source": "user", "reason": None}
            metadata["blocked"] = True
        if failed and text.startswith("PreToolUse:") and " hook error: " in text[:200]:
            metadata["blocked"] = True  # in the client's own words; older ones say so in no other way
        assert block.tool_use_id is not None
        error = (text or "tool failed") if failed else None
        event = self.steps.result(block.tool_use_id, stamp, {"result": text}, error, metadata)
        raw = record.toolUseResult
        if self.unlinked and b'"agentId"' in bytes(raw):
            launched = LAUNCHES.decode(bytes(raw))[0]
            step = event.fields["step_number"]
            if launched is not None and launched.agentId in self.unlinked and isinstance(step, int):
                self.spawned[str(launched.agentId)] = step
        return event

    def _anchor(
        self, key: str, agent: str | None, kind: str | None, cause: int | None, prompt: str | None, stamp: str | None
    ) -> Generator[Event, None, int]:
        """The step that a sub-agent's steps hang on; made with its first answer."""
        found = self.anchors.get(key)
        if found is not None:
            return found
        number = self.steps.next
        metadata: dict[str, object] = {"hook_anchor": 1, "agent_id": agent, "agent_type": kind}
        self.anchors[key] = number
        if len(self.anchors) > _ANCHORS_MOST:
            del self.anchors[next(iter(self.anchors))]
        yield self.steps.step(
            "thought", f"subagent:{kind or (agent or 'sidechain').removeprefix('agent-')}", self.steps.seen(stamp),
            input=None if prompt is None else {"prompt": prompt}, parent=cause, cause=cause,
            metadata={k: v for k, v in metadata.items() if v is not None},
        )  # fmt: skip
        return number

    def _agent(self, file: str, meta: Meta) -> Iterator[Event]:
        """The steps of one sub-agent's file; no anchor when it has none."""
        name = os.path.basename(file)
        try:
            fd = records.open_file(file)
        except OSError as error:
            self.counts.note(name, 0, f"can't be read: {error.strerror or error}")
            return
        try:
            anchor: int | None = None
            prompt: str | None = None
            for record in self._records(file, fd):
                if anchor is None and record.type == "user":
                    prompt = prompt or next(iter(turns(record)), None)
                if anchor is None and record.type == "assistant":
                    agent = record.agentId or _agent_id(file)
                    cause = self.spawned.get(meta.toolUseId or "") or self.spawned.get(_agent_id(file))
                    kind = meta.agentType
                    if cause is None and not meta.toolUseId:
                        cause, kind = self.sides.started(prompt)
                    anchor = yield from self._anchor(agent, agent, kind, cause, prompt, record.timestamp)
                for event in self._record(record, False, anchor):
                    if event.type == "trace.step_start" and self.wanted:
                        self._spawns(event)
                    yield event
        finally:
            os.close(fd)


def _agents(path: str) -> list[tuple[str, Meta]]:
    """The sub-agents' transcripts, and what is known of each; those that others started come after them."""
    found = []
    for file in files(path):
        if file.endswith(".jsonl"):
            found.append((file, _meta(file.removesuffix(".jsonl") + ".meta.json")))
    return sorted(found, key=lambda agent: number(agent[1].spawnDepth))


def _agent_id(file: str) -> str:
    return os.path.basename(file).removesuffix(".jsonl").removeprefix("agent-")


def _meta(file: str) -> Meta:
    try:
        fd = records.open_file(file)
    except OSError:
        return Meta()
    try:
        return METAS.decode(os.pread(fd, _META_BYTES, 0))[0] or Meta()
    finally:
        os.close(fd)
