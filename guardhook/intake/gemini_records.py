"""Gemini CLI chat files: the shapes of their records, and where the last record of each message stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from guardhook.core.jsontext import PayloadError, loads
from guardhook.intake import records
from guardhook.intake.import_steps import flatten, typed
from guardhook.intake.imports import Counts, ImportFailed

_DOCUMENT_BYTES = 64 << 20


class Tokens(msgspec.Struct):
    input: Any = None
    output: Any = None
    cached: Any = None
    thoughts: Any = None
    tool: Any = None
    total: Any = None


class Call(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None
    args: Any = None
    result: Any = None
    status: str | None = None
    timestamp: str | None = None
    resultDisplay: Any = None
    agentId: str | None = None


class Thought(msgspec.Struct):
    subject: str | None = None
    description: str | None = None
    timestamp: str | None = None


class Message(msgspec.Struct):
    id: str | None = None
    timestamp: str | None = None
    type: str | None = None
    content: Any = None
    displayContent: Any = None
    thoughts: list[Thought] | None = None
    tokens: Tokens | None = None
    model: str | None = None
    toolCalls: list[Call] | None = None


class _Set(msgspec.Struct):
    messages: list[msgspec.Raw] | None = None


class _Head(msgspec.Struct):
    """What the first pass looks at."""

    id: str | None = None
    type: str | None = None
    set: _Set | None = msgspec.field(default=None, name="$set")
    rewind: str | None = msgspec.field(default=None, name="$rewindTo")
    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    messages: list[msgspec.Raw] | None = None  # of a whole document in one line


class _Document(msgspec.Struct):
    """A whole session in one object, as older clients wrote it."""

    messages: list[msgspec.Raw] | None = None
    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None


_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_TEXTS = re.compile(r'"(sessionId|startTime|projectHash)"\s*:\s*"([^"\\]{1,200})"')
_TYPES = ("user", "gemini", "info", "error", "warning")
HEADS = records.Decoder(_Head)
MESSAGES = records.Decoder(Message)
_documents = records.Decoder(_Document)
_arrays = msgspec.json.Decoder(list[msgspec.Raw])


def turns(message: Message) -> list[str]:
    """What a user's message says, as it was typed where the client tells that; nothing when it is blank, or the result of a tool."""
    if message.type != "user":
        return []
    return typed(_texts(message.displayContent)) or typed(_texts(message.content))


def _texts(content: object) -> list[str]:
    parts = [content] if isinstance(content, (str, dict)) else content if isinstance(content, list) else []
    said = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [text for text in said if isinstance(text, str)]


class Chat:
    """One file: where the last record of each message stands, in the order in which messages first came."""

    def __init__(self, path: str, fd: int, counts: Counts) -> None:
        self.name = os.path.basename(path)
        self.fd = fd
        self.counts = counts
        self.session: str | None = None
        self.began: str | None = None
        self.hash: str | None = None
        self.rewound_now = False
        self._document: list[msgspec.Raw] | None = None
        # hash of the id -> (place of the record, number among the messages of a patch or -1, line)
        self._places: dict[int, tuple[int, int, int]] = {}
        self._rewound: list[tuple[int, int, int]] = []
        self._patch: tuple[int, list[msgspec.Raw]] = (-1, [])
        self._anonymous = 0

    def scan(self) -> None:
        """The first pass. Counts all records. Raises ImportFailed, OSError."""
        counts = self.counts
        for line, raw, place in self._records():
            counts.read += 1
            counts.bytes += 0 if raw is None else len(raw) + 1
            if raw is None:
                counts.bad(self.name, line, f"longer than {records.LINE_BYTES >> 20} MiB")
                continue
            head, wrong = HEADS.decode(raw)
            if head is None:
                counts.bad(self.name, line, wrong)
            elif head.rewind is not None:
                self._rewind(head.rewind)
                counts.imported += 1
            elif head.id is not None:
                self._stands(head.id, (place, -1, line))
            elif head.set is not None and head.set.messages:
                self._patched(head.set.messages, place, line)
                counts.imported += 1
            elif head.sessionId is not None or head.messages is not None:
                self.session = self.session or head.sessionId
                self.began = self.began or head.startTime
                self.hash = self.hash or head.projectHash
                if head.messages:
                    self._patched(head.messages, place, line)
                counts.imported += 1
                if wrong:
                    counts.mended += 1
                    counts.note(self.name, line, wrong)
            elif head.type in _TYPES:
                self._nameless((place, -1, line), wrong)
                counts.imported += 1
            elif wrong:
                counts.bad(self.name, line, wrong)
            else:
                counts.skipped += 1

    def _patched(self, messages: list[msgspec.Raw], place: int, line: int) -> None:
        for number_, inner in enumerate(messages):
            head, wrong = HEADS.decode(bytes(inner))
            if head is None:
                self.counts.note(self.name, line, f"message {number_ + 1}: {wrong}")
            elif head.id is not None:
                self._places[hash(head.id)] = (place, number_, line)
            elif head.type in _TYPES:
                self._nameless((place, number_, line), wrong)

    def _nameless(self, where: tuple[int, int, int], wrong: str) -> None:
        """A message without an id that could be told again; what it says and calls counts all the same."""
        self._anonymous += 1
        self._places[-self._anonymous] = where
        if not wrong:  # else it is told when the message is read
            self.counts.mended += 1
            self.counts.note(self.name, where[2], "a message without an id")

    def _stands(self, id: str, where: tuple[int, int, int]) -> None:
        key = hash(id)
        if key in self._places:
            self.counts.skipped += 1  # the earlier record of this message
            self.counts.duplicates += 1
        else:
            self.counts.imported += 1
        self._places[key] = where

    def _rewind(self, id: str) -> None:
        """The message and all after it are taken back; all of them where it is unknown, as the client does."""
        key = hash(id)
        while self._places:
            last, where = self._places.popitem()
            self._rewound.append(where)
            if last == key:
                break

    def _records(self) -> Iterator[tuple[int, bytes | None, int]]:
        begin = records.beginning(self.fd, 4096).lstrip()
        if begin[:1] == b"[" or (begin[:1] == b"{" and not _whole_line(begin)):
            found = self._read_document()
            if found is not None:
                self._document = found
                for index, raw in enumerate(found):
                    yield index + 1, bytes(raw), index
                return
        yield from records.lines(self.fd)

    def _read_document(self) -> list[msgspec.Raw] | None:
        """The records of a file that is one JSON value; None when it is none."""
        size = os.fstat(self.fd).st_size
        if size > _DOCUMENT_BYTES:
            if records.beginning(self.fd, 4096).lstrip().partition(b"\n")[0].strip() not in (b"{", b"["):
                return None  # lines, of which the first is damaged
            raise ImportFailed(f"one JSON document of more than {_DOCUMENT_BYTES >> 20} MiB")
        text = os.pread(self.fd, size, 0).removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\0")
        if text[:1] == b"[":
            try:
                return _arrays.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return self._before_damage(text.decode("utf-8", "replace"))
        found, wrong = _documents.decode(text)
        if found is None:
            return self._before_damage(text.decode("utf-8", "replace"))
        if wrong:
            self.counts.mended += 1
            self.counts.note(self.name, 1, wrong)
        if found.messages is None:
            return None
        self.session, self.began, self.hash = found.sessionId, found.startTime, found.projectHash
        return found.messages

    def _before_damage(self, text: str) -> list[msgspec.Raw] | None:
        """The whole records of a document that was cut off, or is broken further on; None when these are lines."""
        if "\n" in text and text.partition("\n")[0].strip() not in ("{", "["):
            return None
        start = 1 if text[:1] == "[" else -1
        if start < 0:
            opened = _MESSAGES.search(text)
            if opened is None:
                return None
            start = opened.end()
            for name, value in _TEXTS.findall(text[: opened.start()]):
                if name == "sessionId":
                    self.session = self.session or value
                elif name == "startTime":
                    self.began = self.began or value
                else:
                    self.hash = self.hash or value
        found, broken = records.elements(text, start)
        if broken is not None:
            self.counts.read += 1
            line = text.count("\n", 0, broken) + 1
            self.counts.bad(self.name, line, f"the document is JSON no longer, or cut off, after {len(found)} whole records")  # fmt: skip
        return [msgspec.Raw(raw) for raw in found]

    def messages(self, *, silent: bool = False) -> Iterator[Message]:
        """The messages as they last stood; `rewound_now` says of the current one whether it was taken back. silent: problems were told before."""
        order = [(where, True) for where in self._rewound] + [(where, False) for where in self._places.values()]
        if self._rewound:
            order.sort(key=lambda o: (o[0][2], o[0][1]))
        for where, rewound in order:
            raw = self._fetch(where)
            message, wrong = MESSAGES.decode(raw)
            if message is None:
                continue
            if wrong and not silent:
                self.counts.mended += 1
                self.counts.note(self.name, where[2], wrong)
            self.rewound_now = rewound
            yield message

    def _fetch(self, where: tuple[int, int, int]) -> bytes:
        place, inner, _ = where
        if inner < 0:
            return self._raw(place)
        if self._patch[0] != place:
            head = HEADS.decode(self._raw(place))[0]
            holder = head if head is None or head.set is None else head.set
            self._patch = (place, [] if holder is None else holder.messages or [])
        return bytes(self._patch[1][inner]) if inner < len(self._patch[1]) else b""

    def _raw(self, place: int) -> bytes:
        return bytes(self._document[place]) if self._document is not None else records.line_at(self.fd, place)


def _whole_line(begin: bytes) -> bool:
    """Whether a file's first line is a JSON value by itself."""
    first, feed, _ = begin.partition(b"\n")
    if not feed:
        return len(begin) >= 4096  # a long first line is a record
    try:
        loads(first, bounded=False)
    except PayloadError:
        return False
    return True


def result(call: Call) -> tuple[str, bool]:
    """What a call gave, as text, and whether it failed."""
    failed = call.status in ("error", "cancelled")
    texts = []
    for part in call.result if isinstance(call.result, list) else ():
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            said = response.get("error") if failed and response.get("error") is not None else response.get("output")
            texts.append(flatten(response if said is None else said))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
    text = "\n".join(t for t in texts if t)
    if not text and call.resultDisplay is not None:
        text = flatten(call.resultDisplay)
    return text or (str(call.status) if failed else ""), failed
