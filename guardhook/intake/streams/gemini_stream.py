"""`gemini --output-format stream-json`: init, message, tool_use, tool_result, error, result.

Answers come in pieces (`delta`), which are one message until something else comes. A call that a hook or a policy blocked is a result of status `error` whose type
is `policy_violation`. Sub-agents' own calls are not in this stream. Field names of earlier versions are read too.
"""

from __future__ import annotations

from collections.abc import Iterator

from guardhook.intake.streams.common import (
    Builder,
    Event,
    Pieces,
    Skip,
    exit_error,
    given,
    obj,
    said,
    stamp,
    text,
    total,
    truthy,
    whole,
    wrapped,
)
from guardhook.store.instants import iso_ms

AGENT = "gemini"
_BLOCKED = frozenset(("policy_violation", "stop_execution"))


class Translator:
    """A trace per `init`, ended by `result`. live is of no matter: the lines carry their times."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._build = Builder()
        self._fresh()

    def _fresh(self) -> None:
        self._head: Event | None = None  # fields of a trace that waits for its prompt
        self._prompts: list[str] = []
        self._model: str | None = None
        self._pieces = Pieces()
        self._answer: str | None = None
        self._failure: str | None = None

    def line(self, value: Event, now_us: int) -> Iterator[Event]:
        kind = value.get("type")
        at = stamp(value.get("timestamp")) or (iso_ms(now_us) if self._live else None)
        if kind == "init":
            yield from self.end(now_us)
            self._fresh()
            self._model = text(value.get("model"))
            session = text(value.get("session_id")) or text(obj(value.get("session")).get("id"))
            self._head = given(session_id=session, started_at=at, metadata=given(model=self._model))
            return
        if kind not in ("message", "tool_use", "tool_result", "error", "result"):
            raise Skip(f"unknown type {kind!r}" if isinstance(kind, str) else "no type")
        if kind == "message" and value.get("role") == "user":
            yield from self._prompt(value, at)
            return
        yield from self._begun(at)
        if kind == "message":
            self._pieces.add(_content(value), at)
            if value.get("delta") is not True:
                yield from self._message()
            return
        yield from self._message()
        if kind == "tool_use":
            yield from self._use(value, at)
        elif kind == "tool_result":
            yield from self._result(value, at)
        elif kind == "error":
            yield self._error(value, at)
        else:
            yield from self._end(value, at)

    def end(self, now_us: int) -> Iterator[Event]:
        """Without `result` the run has not said how it ended: it is left running."""
        if self._head is not None:
            yield from self._begun(None)
        if self._build.trace is not None:
            yield from self._message()
            yield from self._build.interrupted(iso_ms(now_us) if self._live else None)
            self._build.trace = None

    def _begun(self, at: str | None) -> Iterator[Event]:
        """The trace's start, once it is clear what it was asked."""
        if self._build.trace is None:
            head, self._head = self._head or given(started_at=at), None
            prompt = {"prompt": self._prompts[0]} if self._prompts else None
            yield self._build.start(AGENT, "gemini-stream", input=prompt, **head)

    def _prompt(self, value: Event, at: str | None) -> Iterator[Event]:
        said_ = _content(value)
        if not said_.strip():
            return
        if self._build.trace is not None:
            yield from self._message()
        self._prompts.append(said_)
        yield from self._begun(at)

    def _message(self) -> Iterator[Event]:
        if not self._pieces:
            return
        first, last, answer = self._pieces.first, self._pieces.last, self._pieces.take()
        if answer:
            self._answer = answer
            yield self._build.step(
                "output", "message", output={"text": answer}, model=self._model, started_at=first, ended_at=last,
                metadata={"source": "gemini-stream"},
            )  # fmt: skip

    def _use(self, value: Event, at: str | None) -> Iterator[Event]:
        name = text(value.get("tool_name")) or text(value.get("name")) or "tool"
        key = text(value.get("tool_id")) or text(value.get("tool_use_id")) or text(value.get("id"))
        given_ = next((value[n] for n in ("parameters", "input", "args") if value.get(n) is not None), {})
        yield from self._build.open(
            name, key, input=wrapped(given_, "input"), model=self._model, started_at=at,
            metadata=given(source="gemini-stream", call=key),
        )  # fmt: skip

    def _result(self, value: Event, at: str | None) -> Iterator[Event]:
        key = text(value.get("tool_id")) or text(value.get("tool_use_id")) or text(value.get("id"))
        name = text(value.get("tool_name")) or text(value.get("name"))
        call = self._build.find(key, name)
        if call is None and key is not None and name is not None:
            call = self._build.find(None, name)
        if call is None:
            raise Skip(f"a tool_result that fits no open call ({key or name or 'no id'})")
        error, kind = _failure(value), text(obj(value.get("error")).get("type"))
        blocked = error is not None and kind in _BLOCKED
        yield self._build.close(
            call, output=wrapped(value.get("output"), "output"), error=error, ended_at=at,
            metadata=given(error_type=kind, blocked=True if blocked else None) or None,
        )  # fmt: skip
        if blocked:
            yield self._build.decision(call.number, "deny", "policy", error)

    def _error(self, value: Event, at: str | None) -> Event:
        message = said(value.get("message")) or said(value.get("error")) or "error"
        warning = str(value.get("severity")).lower() in ("warning", "info")
        if not warning:
            self._failure = message
        return self._build.step(
            "thought" if warning else "error", "warning" if warning else "error", output={"message": message},
            error=None if warning else message, started_at=at, ended_at=at, metadata={"source": "gemini-stream"},
        )  # fmt: skip

    def _end(self, value: Event, at: str | None) -> Iterator[Event]:
        yield from self._build.interrupted(at)
        stats = obj(value.get("stats")) or obj(value.get("usage"))
        tokens = obj(stats.get("tokens")) or stats
        failed = str(value.get("status")).lower() in ("error", "failed", "failure") or truthy(value.get("is_error"))
        error = (
            said(value.get("error"))
            or exit_error(value.get("exit_code", value.get("code")))
            or ("the run failed" if failed else None)
            or self._failure
        )
        count = next(
            (n for n in (whole(tokens.get("total_tokens")), whole(tokens.get("total"))) if n is not None), None
        )
        if count is None:
            count = total(tokens, "input_tokens", "output_tokens")
        yield self._build.end(
            "completed" if error is None else "failed",
            error=error,
            output=None if self._answer is None else {"text": self._answer},
            total_tokens=count,
            total_duration_ms=whole(stats.get("duration_ms")),
            ended_at=at,
            untimed=at is None,
            metadata=given(
                stats=stats or None,
                error_type=text(obj(value.get("error")).get("type")),
                follow_up_prompts=self._prompts[1:] or None,
            ),
        )
        self._fresh()


def _content(value: Event) -> str:
    """The text of a message: a string, or the texts of its parts."""
    content = value.get("content", value.get("text"))
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content)
    return content if isinstance(content, str) else ""


def _failure(value: Event) -> str | None:
    """Why a call failed; an error field without content is none."""
    explicit = said(value.get("error"))
    if explicit is not None:
        return explicit
    if str(value.get("status")).lower() in ("error", "failed") or truthy(value.get("is_error")):
        output = value.get("output")
        return output if isinstance(output, str) and output else "tool failed"
    return None
