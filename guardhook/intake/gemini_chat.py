"""Gemini CLI chat logs: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, those of its sub-agents, and the single JSON documents of older clients.

A message is written again when its calls are done, so the last record of an id holds, in the place of the first. `$rewindTo` takes a message and all after it
back: what they did stays in the trace, marked `rewound`, but is neither prompt nor answer any more. Two passes: where which message stands, then the messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from hashlib import sha256

from guardhook.intake import records
from guardhook.intake.gemini_records import HEADS, Call, Chat, Message, result, turns
from guardhook.intake.import_steps import Prompt, Steps, Turns, Usage, flatten, number
from guardhook.intake.imports import Counts, Event, Identity, Run

NAME = "gemini-chat"
VERSION = "1"
_ANSWER = re.compile(rb'"id"\s*:\s*"[^"]*"\s*,\s*(?:"timestamp"\s*:\s*"[^"]*"\s*,\s*)?"type"\s*:\s*"gemini"')
# What the client says of a call that a person did not let run; of those that it gave up for another reason it says something else.
_SAID_NO = ("[Operation Cancelled] Reason: User denied execution", "[Operation Cancelled] User denied execution")
_BLOCKED = ("Tool execution blocked", "Tool execution denied")


def detect(path: str, head: bytes) -> bool:
    """A head with session and project, which every form of these files begins with, or answers of this client's."""
    begin = head[:4096]
    return (b'"projectHash"' in begin and b'"sessionId"' in begin) or _ANSWER.search(head) is not None


def files(path: str) -> list[str]:
    """The chats of sub-agents, in a folder named like the session."""
    session = _session(path)
    if session is None or "/" in session or session in ("", ".", ".."):
        return []
    folder = f"{os.path.dirname(path)}/{session}"
    return [f"{folder}/{name}" for name in records.names_in(folder) if name.endswith(".jsonl")]


def _session(path: str) -> str | None:
    try:
        fd = records.open_file(path)
    except OSError:
        return None
    try:
        for _, raw, _ in records.lines(fd, 64 * 1024):
            record = None if raw is None else HEADS.decode(raw)[0]
            return None if record is None else record.sessionId
    except OSError:
        pass
    finally:
        os.close(fd)
    return None


def read(path: str, fd: int, counts: Counts) -> Iterator[Run]:
    """The one run of a chat."""
    chat = Chat(path, fd, counts)
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


class _Reader:
    """The second pass: messages become events."""

    def __init__(self, path: str, steps: Steps, counts: Counts, prompt: Prompt) -> None:
        self.path = path
        self.steps = steps
        self.counts = counts
        self.turns = Turns(prompt)
        self.usage = Usage()
        self.started: dict[str, tuple[int, str]] = {}  # sub-agent -> the call that started it, and what kind it is

    def events(self, chat: Chat) -> Iterator[Event]:
        agents = files(self.path)
        for message in chat.messages():
            yield from self._message(message, chat.rewound_now, True, None)
        for file in agents:
            yield from self._agent(file)
        metadata = self.turns.metadata()
        if self.usage.kinds:
            metadata["usage"] = self.usage.kinds
        yield from self.steps.end(tokens=self.usage.total if self.usage.kinds else None, metadata=metadata)

    def _message(self, message: Message, rewound: bool, main: bool, parent: int | None) -> Iterator[Event]:
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

    def _tokens(self, message: Message) -> int | None:
        told = message.tokens
        if told is None:
            return None
        kinds = {
            "input": number(told.input), "output": number(told.output), "thoughts": number(told.thoughts), "tool": number(told.tool),
        }  # fmt: skip
        return self.usage.add(message.id, kinds)

    def _call(
        self,
        call: Call,
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
            elif call.status == "cancelled" and text.startswith(_SAID_NO):
                metadata["blocked"] = True
                metadata["permission"] = {"decision": "reject", "source": "user"}
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
            chat = Chat(file, fd, self.counts)
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
