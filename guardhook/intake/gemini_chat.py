"""Gemini CLI chat logs: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, those of its sub-agents, and the single JSON documents of older clients.

A message is written again when its calls are done, so the last record of an id holds, in the place of the first. `$rewindTo` takes a message and all after it
back: what they did stays in the trace, marked `rewound`, but is neither prompt nor answer any more. Two passes: where which message stands, then the messages.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from guardhook.core.jsontext import PayloadError, loads
from guardhook.intake import records
from guardhook.intake.import_steps import Prompt, Steps, Turns, Usage, flatten, number
from guardhook.intake.imports import Counts, Event, Identity, ImportFailed, Run

NAME = "gemini-chat"
VERSION = "1"
_DOCUMENT_BYTES = 64 << 20
_BLOCKED = ("Tool execution blocked", "Tool execution denied")


class _Tokens(msgspec.Struct):
    input: Any = None
    output: Any = None
    cached: Any = None
    thoughts: Any = None
    tool: Any = None
    total: Any = None


class _Call(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None
    args: Any = None
    result: Any = None
    status: str | None = None
    timestamp: str | None = None
    resultDisplay: Any = None
    agentId: str | None = None


class _Thought(msgspec.Struct):
    subject: str | None = None
    description: str | None = None
    timestamp: str | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    timestamp: str | None = None
    type: str | None = None
    content: Any = None
    thoughts: list[_Thought] | None = None
    tokens: _Tokens | None = None
    model: str | None = None
    toolCalls: list[_Call] | None = None


class _Set(msgspec.Struct):
    messages: list[msgspec.Raw] | None = None


class _Head(msgspec.Struct):
    """What the first pass looks at."""

    id: str | None = None
    set: _Set | None = msgspec.field(default=None, name="$set")
    rewind: str | None = msgspec.field(default=None, name="$rewindTo")
    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None


class _Document(msgspec.Struct):
    """A whole session in one object, as older clients wrote it."""

    messages: list[msgspec.Raw]
    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None


_heads = records.Decoder(_Head)
_messages = records.Decoder(_Message)
_documents = msgspec.json.Decoder(_Document)
_arrays = msgspec.json.Decoder(list[msgspec.Raw])


def detect(path: str, head: bytes) -> bool:
    """A head with session and project, which every form of these files begins with."""
    begin = head[:4096]
    return b'"projectHash"' in begin and b'"sessionId"' in begin


def files(path: str) -> list[str]:
    """The chats of sub-agents, in a folder named like the session."""
    session = _session(path)
    if session is None or "/" in session or session in ("", ".", ".."):
        return []
    folder = f"{os.path.dirname(path)}/{session}"
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".jsonl")]
    except OSError:
        return []


def _session(path: str) -> str | None:
    try:
        fd = records.open_file(path)
    except OSError:
        return None
    try:
        for _, raw, _ in records.lines(fd, 64 * 1024):
            record = None if raw is None else _heads.decode(raw)[0]
            return None if record is None else record.sessionId
    except OSError:
        pass
    finally:
        os.close(fd)
    return None


def read(path: str, fd: int, counts: Counts) -> Iterator[Run]:
    """The one run of a chat."""
    chat = _Chat(path, fd, counts)
    chat.scan()
    steps = Steps(counts)
    prompt, first = Prompt(), None
    for message in chat.messages(silent=True):
        first = first or steps.seen(message.timestamp)
        for text in turns(message) if not chat.rewound_now else ():
            if not prompt.found:
                prompt.add(text)
        if prompt.found:
            break
    metadata: dict[str, object] = {
        "source_format": NAME,
        "source_file": os.path.basename(path),
        "source_version": VERSION,
    }
    start: dict[str, object] = {
        "agent_name": "gemini",
        "trigger": "user_message",
        "status": "running",
        "input": prompt.input(),
        "session_id": chat.session,
        "dialect": "gemini",
        "metadata": metadata,
    }
    root = _root(path, chat.hash)
    if root is not None:
        start["project"] = root
        metadata["cwd"] = root
    began = steps.seen(chat.began) or first
    if began is not None:
        start["started_at"] = began
    reader = _Reader(path, steps, counts, prompt)
    yield Run(Identity(NAME, chat.session, os.path.basename(path)), start, reader.events(chat), steps.us(began))


def _root(path: str, hash: str | None) -> str | None:
    """The project's root, which the client writes down beside its chats; the log itself has only its hash."""
    try:
        fd = records.open_file(f"{os.path.dirname(os.path.dirname(path))}/.project_root")
    except OSError:
        return None
    try:
        told = os.pread(fd, 4096, 0).strip()
    finally:
        os.close(fd)
    return os.fsdecode(told) if hash is not None and sha256(told).hexdigest() == hash else None


def turns(message: _Message) -> list[str]:
    """What a user's message says, without blank texts and without results of tools."""
    if message.type != "user":
        return []
    content = message.content
    if isinstance(content, str):
        return [content] if content.strip() else []
    said = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [text for text in said if isinstance(text, str) and text.strip()]


class _Chat:
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
        self._rewound: list[tuple[int, tuple[int, int, int]]] = []
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
            head, wrong = _heads.decode(raw)
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
            elif head.sessionId is not None:
                self.session = self.session or head.sessionId
                self.began = self.began or head.startTime
                self.hash = self.hash or head.projectHash
                counts.imported += 1
            else:
                counts.skipped += 1

    def _patched(self, messages: list[msgspec.Raw], place: int, line: int) -> None:
        for number_, inner in enumerate(messages):
            head, wrong = _heads.decode(bytes(inner))
            if head is None:
                self.counts.note(self.name, line, f"message {number_ + 1}: {wrong}")
            elif head.id is not None:
                self._places[hash(head.id)] = (place, number_, line)

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
        keys = list(self._places)
        key = hash(id)
        cut = keys.index(key) if key in self._places else 0
        self._rewound += [(k, self._places.pop(k)) for k in keys[cut:]]

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
            raise ImportFailed(f"one JSON document of more than {_DOCUMENT_BYTES >> 20} MiB")
        text = os.pread(self.fd, size, 0).removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\0")
        try:
            if text[:1] == b"[":
                return _arrays.decode(text)
            found = _documents.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        self.session, self.began, self.hash = found.sessionId, found.startTime, found.projectHash
        return found.messages

    def messages(self, *, silent: bool = False) -> Iterator[_Message]:
        """The messages as they last stood; `rewound_now` says of the current one whether it was taken back. silent: problems were told before."""
        order = [(where, True) for _, where in self._rewound] + [(where, False) for where in self._places.values()]
        if self._rewound:
            order.sort(key=lambda o: o[0][2])
        for where, rewound in order:
            raw = self._fetch(where)
            message, wrong = _messages.decode(raw)
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
            head = _heads.decode(self._raw(place))[0]
            self._patch = (place, [] if head is None or head.set is None else head.set.messages or [])
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


class _Reader:
    """The second pass: messages become events."""

    def __init__(self, path: str, steps: Steps, counts: Counts, prompt: Prompt) -> None:
        self.path = path
        self.steps = steps
        self.counts = counts
        self.turns = Turns(prompt)
        self.usage = Usage()
        self.started: dict[str, tuple[int, str]] = {}  # sub-agent -> the call that started it, and what kind it is

    def events(self, chat: _Chat) -> Iterator[Event]:
        agents = files(self.path)
        for message in chat.messages():
            yield from self._message(message, chat.rewound_now, True, None)
        for file in agents:
            yield from self._agent(file)
        metadata = self.turns.metadata()
        if self.usage.kinds:
            metadata["usage"] = self.usage.kinds
        yield from self.steps.end(tokens=self.usage.total if self.usage.kinds else None, metadata=metadata)

    def _message(self, message: _Message, rewound: bool, main: bool, parent: int | None) -> Iterator[Event]:
        stamp = self.steps.seen(message.timestamp)
        own: dict[str, object] = {"rewound": True} if rewound else {}
        for text in turns(message) if main and not rewound else ():
            self.turns.add(text)
        if message.type == "error":
            text = flatten(message.content)
            yield self.steps.step("error", "error", stamp, output={"text": text}, error=text or "error", parent=parent, metadata=own)  # fmt: skip
        if message.type != "gemini":
            return
        tokens = self._tokens(message)
        model = message.model
        for thought in message.thoughts or ():
            text = ": ".join(t for t in (thought.subject, thought.description) if t)
            at = self.steps.seen(thought.timestamp) or stamp
            yield self.steps.step("thought", "thinking", at, output={"text": text}, parent=parent, model=model, tokens=tokens, metadata=own)  # fmt: skip
            tokens = None
        said = flatten(message.content) if message.content else ""
        if said.strip():
            if main and not rewound:
                self.steps.last_text = said
            yield self.steps.step("output", "assistant_message", stamp, output={"text": said}, parent=parent, model=model, tokens=tokens, metadata=own)  # fmt: skip
            tokens = None
        for call in message.toolCalls or ():
            yield self._call(call, stamp, model, tokens, parent, own)
            tokens = None

    def _tokens(self, message: _Message) -> int | None:
        told = message.tokens
        if told is None:
            return None
        kinds = {
            "input": number(told.input), "output": number(told.output), "thoughts": number(told.thoughts), "tool": number(told.tool),
        }  # fmt: skip
        return self.usage.add(message.id, kinds)

    def _call(
        self,
        call: _Call,
        stamp: str | None,
        model: str | None,
        tokens: int | None,
        parent: int | None,
        own: dict[str, object],
    ) -> Event:
        """A call, which is written down when it is over: it began with its message, as far as the log tells."""
        ended = self.steps.seen(call.timestamp) or stamp
        text, failed = result(call)
        metadata = dict(own)
        if call.id is not None:
            metadata["call"] = str(call.id)
        if call.status is not None:
            metadata["call_status"] = call.status
        error = None
        if failed:
            error = text or "tool failed"
            if text.startswith(_BLOCKED):
                metadata["blocked"] = True
        if call.agentId is not None:
            metadata["started_agent"] = call.agentId
            kind = call.args.get("agent_name") if isinstance(call.args, dict) else None
            self.started[call.agentId] = (self.steps.next, kind if isinstance(kind, str) and kind else call.agentId)
        begun, done = self.steps.us(stamp), self.steps.us(ended)
        took = (done - begun) // 1000 if begun is not None and done is not None and done >= begun else None
        return self.steps.step(
            "tool_call", call.name or "tool", ended, started=stamp, input=call.args, output={"result": text}, error=error, parent=parent, model=model,
            tokens=tokens, duration_ms=took, metadata=metadata,
        )  # fmt: skip

    def _agent(self, file: str) -> Iterator[Event]:
        """The steps of a sub-agent's chat, below an anchor."""
        name = os.path.basename(file).removesuffix(".jsonl")
        try:
            fd = records.open_file(file)
        except OSError as error:
            self.counts.note(os.path.basename(file), 0, f"can't be read: {error.strerror or error}")
            return
        try:
            chat = _Chat(file, fd, self.counts)
            chat.scan()
            anchor: int | None = None
            prompt: str | None = None
            for message in chat.messages():
                prompt = prompt or next(iter(turns(message)), None)
                if anchor is None and message.type == "gemini":
                    anchor = yield from self._anchor(name, chat.session, prompt, message.timestamp)
                yield from self._message(message, chat.rewound_now, False, anchor)
        finally:
            os.close(fd)

    def _anchor(
        self, name: str, session: str | None, prompt: str | None, stamp: str | None
    ) -> Generator[Event, None, int]:
        cause, kind = self.started.get(name) or self.started.get(session or "") or (None, name)
        anchor = self.steps.next
        yield self.steps.step(
            "thought", f"subagent:{kind}", self.steps.seen(stamp), input=None if prompt is None else {"prompt": prompt}, parent=cause, cause=cause,
            metadata={"hook_anchor": 1, "agent_id": name},
        )  # fmt: skip
        return anchor


def result(call: _Call) -> tuple[str, bool]:
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
