"""Records of Claude Code's transcripts: their shapes, what a user said in them, and what the beginning of a file tells."""

from __future__ import annotations

from typing import Any

import msgspec

from guardhook.intake import records
from guardhook.intake.import_steps import Prompt, Recent, Steps, flatten
from guardhook.intake.imports import Counts

TYPES = ("user", "assistant")
SEEN_MOST = 1 << 16  # record ids that are remembered, to know repeated ones

Count = int | float | str | None


class Used(msgspec.Struct):
    input_tokens: Count = None
    output_tokens: Count = None
    cache_creation_input_tokens: Count = None
    cache_read_input_tokens: Count = None


class Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | int | str | None = None


class Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    usage: Used | None = None


class Decision(msgspec.Struct):
    decision: str | None = None
    source: str | None = None
    reasonCode: str | None = None


class Attachment(msgspec.Struct):
    type: str | None = None
    prompt: Any = None
    commandMode: str | None = None


class Launch(msgspec.Struct):
    agentId: str | None = None


class Fork(msgspec.Struct):
    sessionId: str | None = None


class Record(msgspec.Struct):
    type: str = ""
    uuid: str | None = None
    parentUuid: str | None = None
    isSidechain: bool = False
    agentId: str | None = None
    timestamp: str | None = None
    sessionId: str | None = None
    version: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    message: Message | None = None
    permissionDecision: Decision | None = None
    toolDenialKind: str | None = None
    toolUseResult: msgspec.Raw = msgspec.Raw(b"")
    subtype: str | None = None
    attachment: Attachment | None = None
    totalCostUSD: Count = None
    costUSD: Count = None
    isApiErrorMessage: bool | None = None
    forkedFrom: Fork | None = None  # of a record that was copied from another session


class Meta(msgspec.Struct):
    agentType: str | None = None
    toolUseId: str | None = None
    description: str | None = None
    spawnDepth: Count = None


DECODER = records.Decoder(Record)
METAS = records.Decoder(Meta)
LAUNCHES = records.Decoder(Launch)


class _Said(msgspec.Struct):
    type: str = ""
    message: dict[str, msgspec.Raw] | None = None
    session_id: msgspec.Raw | None = None  # streams have it, transcripts don't


_sayings = msgspec.json.Decoder(_Said)


def said(raw: bytes) -> bool:
    """Whether a line is a user's or an assistant's record, be there nothing in it but the message."""
    if b'"content"' not in raw:
        return False
    try:
        record = _sayings.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return (
        record.type in TYPES
        and record.message is not None
        and "content" in record.message
        and record.session_id is None
    )


def turns(record: Record) -> list[str]:
    """What a user's record says that somebody may have typed, without blank texts."""
    if record.type == "attachment":
        queued = record.attachment
        if queued is None or queued.type != "queued_command" or queued.commandMode != "prompt":
            return []
        said = flatten(queued.prompt)
        return [said] if said.strip() else []
    if record.type != "user" or record.isMeta or record.isCompactSummary or record.message is None:
        return []
    content = record.message.content
    if isinstance(content, str):
        return [content] if content.strip() else []
    return [b.text for b in content or () if b.type == "text" and b.text and b.text.strip()]


class First:
    """What the beginning of a file tells: session, version, place, the prompt. Reads until the prompt is found."""

    def __init__(self, fd: int) -> None:
        self.session: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.branch: str | None = None
        self.origin: str | None = None  # the session that this one goes on from
        self.stamp: str | None = None
        self.side: bool | None = None  # the file is a sub-agent's own
        self.prompt = Prompt()
        clock = Steps(Counts())
        seen = Recent(SEEN_MOST)
        for _, raw, _ in records.lines(fd):
            record = None if raw is None else DECODER.decode(raw)[0]
            if record is None:
                continue
            self.session = self.session or record.sessionId or None
            self.version = self.version or record.version or None
            self.cwd = self.cwd or record.cwd or None
            self.branch = self.branch or record.gitBranch or None
            if record.forkedFrom is not None:
                self.origin = self.origin or record.forkedFrom.sessionId or None
            if record.type not in TYPES and record.type != "attachment":
                continue
            self.stamp = self.stamp or clock.seen(record.timestamp)
            if record.type in TYPES and self.side is None:
                self.side = record.isSidechain
            if record.isSidechain and not self.side:
                continue
            if record.uuid is not None and seen.again(hash(record.uuid)):
                continue  # as the main pass does, which counts the turns before the prompt
            for text in turns(record):
                if not self.prompt.found:
                    self.prompt.add(text)
            if self.prompt.found and self.session and self.cwd:
                break
