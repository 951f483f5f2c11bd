"""Qwen Code chat logs: `~/.qwen/projects/<folder>/chats/<session>.jsonl`, and the files of its sub-agents in `subagents/<session>/` beside `chats`.

Measured on 0.24.4: records like Claude Code's (uuid, parentUuid, sessionId) around contents like Gemini's (parts, functionCall, functionResponse).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from guardhook.intake import records
from guardhook.intake.import_steps import Prompt, Steps, Turns, Usage, flatten, number, typed
from guardhook.intake.imports import Counts, Event, Identity, Run

NAME = "qwen-chat"
VERSION = "1"
_META_BYTES = 1 << 20
_PARTS = re.compile(rb'"message"\s*:\s*\{[^{}\[\]]{0,200}"parts"\s*:')
_DENIED = "execution_denied"


class _Function(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None
    args: Any = None
    response: Any = None


class _Part(msgspec.Struct):
    text: str | None = None
    thought: bool | None = None
    functionCall: _Function | None = None
    functionResponse: _Function | None = None


class _Message(msgspec.Struct):
    parts: list[_Part] | None = None


class _Usage(msgspec.Struct):
    promptTokenCount: Any = None
    candidatesTokenCount: Any = None
    thoughtsTokenCount: Any = None


class _Result(msgspec.Struct):
    status: str | None = None
    errorType: str | None = None
    executionStatus: str | None = None


class _Record(msgspec.Struct):
    type: str = ""
    uuid: str | None = None
    sessionId: str | None = None
    timestamp: str | None = None
    provenance: str | None = None
    subtype: str | None = None
    cwd: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    model: str | None = None
    agentId: str | None = None
    agentName: str | None = None
    message: _Message | None = None
    usageMetadata: _Usage | None = None
    toolCallResult: _Result | None = None


class _Meta(msgspec.Struct):
    toolUseId: str | None = None
    agentType: str | None = None
    depth: Any = None


_decoder = records.Decoder(_Record)
_metas = records.Decoder(_Meta)


def detect(path: str, head: bytes) -> bool:
    """Records with a uuid and a session whose messages have parts."""
    for raw in head.split(b"\n")[:20]:
        if b'"sessionId"' in raw and b'"message"' in raw:
            return _PARTS.match(raw, raw.index(b'"message"')) is not None
    return False


def files(path: str) -> list[str]:
    """Transcripts of sub-agents, and what is told of each in its `.meta.json`."""
    session = os.path.basename(path).removesuffix(".jsonl")
    folder = f"{os.path.dirname(os.path.dirname(path))}/subagents/{session}"
    if os.path.basename(os.path.dirname(path)) != "chats":
        return []
    return [f"{folder}/{name}" for name in records.names_in(folder) if name.endswith((".jsonl", ".meta.json"))]


def read(path: str, fd: int, counts: Counts) -> Iterator[Run]:
    """The one run of a chat."""
    steps = Steps(counts)
    prompt = Prompt()
    first: _Record | None = None
    for _, raw, _ in records.lines(fd):
        record = None if raw is None else _decoder.decode(raw)[0]
        if record is None:
            continue
        if first is None and record.sessionId is not None:
            first = record
        for text in turns(record):
            if not prompt.found:
                prompt.add(text)
        if prompt.found and first is not None:
            break
    first = first or _Record()
    metadata: dict[str, object] = {
        "source_format": NAME,
        "source_file": os.path.basename(path),
        "source_version": VERSION,
    }
    for name, value in (("cwd", first.cwd), ("git_branch", first.gitBranch)):
        if value is not None:
            metadata[name] = value
    start: dict[str, object] = {
        "agent_name": "qwen-code",
        "agent_version": first.version,
        "trigger": "user_message",
        "status": "running",
        "input": prompt.input(),
        "session_id": first.sessionId,
        "dialect": "qwen-code",
        "project": first.cwd,
        "metadata": metadata,
    }
    began = steps.seen(first.timestamp)
    if began is not None:
        start["started_at"] = began
    reader = _Reader(path, steps, counts, prompt)
    yield Run(Identity(NAME, first.sessionId, os.path.basename(path)), start, reader.events(fd), steps.us(began))


def turns(record: _Record) -> list[str]:
    """What a user's record says; nothing when that is blank."""
    if record.type != "user" or record.message is None:
        return []
    return typed([p.text for p in record.message.parts or () if p.text is not None])


class _Reader:
    """Records become events."""

    def __init__(self, path: str, steps: Steps, counts: Counts, prompt: Prompt) -> None:
        self.path = path
        self.steps = steps
        self.counts = counts
        self.turns = Turns(prompt)
        self.usage = Usage()
        self.model: str | None = None
        self.spare: dict[str | None, int] = {}  # sub-agent -> tokens of an answer whose parts are told in later records
        self.wanted: set[str | None] = set()  # calls that started sub-agents
        self.spawned: dict[str, int] = {}

    def events(self, fd: int) -> Iterator[Event]:
        agents = [(f, _meta(f.removesuffix(".jsonl") + ".meta.json")) for f in files(self.path) if f.endswith(".jsonl")]
        agents.sort(key=lambda agent: number(agent[1].depth))  # those that others started come after them
        self.wanted = {meta.toolUseId for _, meta in agents}
        for record in self._records(self.path, fd):
            for event in self._record(record, True, None):
                self._spawns(event)
                yield event
        for file, meta in agents:
            yield from self._agent(file, meta)
        metadata = self.turns.metadata()
        if self.usage.kinds:
            metadata["usage"] = self.usage.kinds
        yield from self.steps.end(tokens=self.usage.total if self.usage.kinds else None, metadata=metadata)

    def _spawns(self, event: Event) -> None:
        """Remembers the step of a call that started a sub-agent; where two calls have one id, that of the first."""
        own = event.fields.get("metadata")
        call = own.get("call") if isinstance(own, dict) else None
        step = event.fields["step_number"]
        if event.type == "trace.step_start" and call in self.wanted and isinstance(step, int):
            self.spawned.setdefault(str(call), step)

    def _records(self, path: str, fd: int) -> Iterator[_Record]:
        name, counts = os.path.basename(path), self.counts
        for line, raw, _ in records.lines(fd):
            counts.read += 1
            counts.bytes += 0 if raw is None else len(raw) + 1
            if raw is None:
                counts.bad(name, line, f"longer than {records.LINE_BYTES >> 20} MiB")
                continue
            record, wrong = _decoder.decode(raw)
            if record is None:
                counts.bad(name, line, wrong)
                continue
            if wrong:
                counts.mended += 1
                counts.note(name, line, wrong)
            yield record

    def _record(self, record: _Record, main: bool, parent: int | None) -> Iterator[Event]:
        used = False
        stamp = self.steps.seen(record.timestamp)
        for text in turns(record):
            used = True
            if main:
                self.turns.add(text)
        for event in self._parts(record, stamp, main, parent):
            used = True
            yield event
        self.counts.imported += used
        self.counts.skipped += not used

    def _parts(self, record: _Record, stamp: str | None, main: bool, parent: int | None) -> Iterator[Event]:
        parts = record.message.parts or [] if record.message is not None else []
        steps = self.steps
        own: dict[str, object] = {} if record.agentId is None else {"agent_id": record.agentId}
        if record.type == "tool_result":
            for part in parts:
                answer = part.functionResponse
                if answer is not None and answer.id is not None and steps.is_open(str(answer.id)):
                    yield self._result(str(answer.id), answer.response, record.toolCallResult, stamp)
            return
        if record.type != "assistant":
            return
        self.model = record.model or self.model
        tokens = self._tokens(record)
        if record.agentId in self.spare:
            tokens = (tokens or 0) + self.spare.pop(record.agentId)
        for part in parts:
            if part.functionCall is not None:
                call = part.functionCall
                yield steps.call(
                    None if call.id is None else str(call.id), call.name or "tool", stamp, input=call.args, parent=parent, model=self.model,
                    tokens=tokens, metadata=own,
                )  # fmt: skip
            elif part.text and part.thought:
                yield steps.step("thought", "thinking", stamp, output={"text": part.text}, parent=parent, model=self.model, tokens=tokens, metadata=own)  # fmt: skip
            elif part.text:
                if main:
                    steps.last_text = part.text
                yield steps.step("output", "assistant_message", stamp, output={"text": part.text}, parent=parent, model=self.model, tokens=tokens, metadata=own)  # fmt: skip
            else:
                continue
            tokens = None
        if tokens:
            self.spare = {record.agentId: tokens}

    def _tokens(self, record: _Record) -> int | None:
        told = record.usageMetadata
        if told is None:
            return None
        kinds = {"input": number(told.promptTokenCount), "output": number(told.candidatesTokenCount), "thoughts": number(told.thoughtsTokenCount)}  # fmt: skip
        return self.usage.add(record.uuid, kinds)

    def _result(self, call: str, response: object, told: _Result | None, stamp: str | None) -> Event:
        failed = told is not None and told.status in ("error", "cancelled")
        said = response
        if isinstance(response, dict):
            failed = failed or response.get("error") is not None
            said = response.get("error") if response.get("error") is not None else response.get("output", response)
        text = flatten(said)
        metadata: dict[str, object] = {}
        for name, value in () if told is None else (("call_status", told.status), ("execution", told.executionStatus)):
            if value is not None:
                metadata[name] = value
        if told is not None and told.errorType == _DENIED:
            metadata["blocked"] = True
        return self.steps.result(call, stamp, {"result": text}, (text or "tool failed") if failed else None, metadata)

    def _agent(self, file: str, meta: _Meta) -> Iterator[Event]:
        """The steps of a sub-agent, below an anchor that its first answer makes."""
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
                prompt = prompt or next(iter(turns(record)), None)
                if anchor is None and record.type == "assistant":
                    anchor = self.steps.next
                    agent = record.agentId or name.removesuffix(".jsonl").removeprefix("agent-")
                    cause = self.spawned.get(meta.toolUseId or "")
                    yield self.steps.step(
                        "thought", f"subagent:{meta.agentType or record.agentName or agent}", self.steps.seen(record.timestamp),
                        input=None if prompt is None else {"prompt": prompt}, parent=cause, cause=cause, metadata={"hook_anchor": 1, "agent_id": agent},
                    )  # fmt: skip
                for event in self._record(record, False, anchor):
                    self._spawns(event)
                    yield event
        finally:
            os.close(fd)


def _meta(file: str) -> _Meta:
    try:
        fd = records.open_file(file)
    except OSError:
        return _Meta()
    try:
        return _metas.decode(os.pread(fd, _META_BYTES, 0))[0] or _Meta()
    finally:
        os.close(fd)
