"""What happens now, as server-sent events: each event's data is one line of JSON.

A stream looks a few times a second whether files grew, and reads only what is new. It ends when the reader goes or the server stops; the reader's pace is
the stream's. Streams are few (context.STREAMS): each holds a thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from guardhook.core.jsontext import dumps
from guardhook.store import StoreError, Trace, fold
from guardhook.store.watch import Follower
from guardhook.views.http.answers import EVENTS, Answer, Refusal
from guardhook.views.http.call import Call, tenant_of
from guardhook.views.http.context import Context
from guardhook.views.http.tail import Tail

SECONDS = 0.2
ALIVE_SECONDS = 15.0


def everything(call: Call) -> Answer:
    """Journal lines as they are recorded: `{trace_id, ts, seq, type, data}`, the event's name is the line's type."""
    return _stream(call.context, _lines(call))


def trace(call: Call) -> Answer:
    """Steps of one trace: `step` when it begins (those of before come first), `step_ended`, and `trace` when the trace's state changes."""
    follow = call.flag("follow")
    last = call.last_event_id or ""
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 12 else 0
    store = call.context.open()
    try:
        follower = Follower(store, call.trace(store, call.path["id"]), call.context.folders.journal)
    except BaseException:
        store.close()
        raise
    return _stream(call.context, _steps(call.context, follower, after, follow), store.close)


def _stream(context: Context, events: Iterator[str], close: object = None) -> Answer:
    def done() -> None:
        context.streams.give()
        if callable(close):
            close()

    if not context.streams.take():
        if callable(close):
            close()
        raise Refusal(503, "too_many_streams", "too many streams are open", (("Retry-After", "5"),))
    return Answer(events, type=EVENTS, done=done)


def event(name: str, value: object, ident: str | None = None) -> str:
    """One server-sent event."""
    head = f"event: {name}\n" + ("" if ident is None else f"id: {ident}\n")
    return f"{head}data: {dumps(value)}\n\n"


class _Pulse:
    """Says that the stream lives when nothing was said for a while. The reader's going is noticed by writing only."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def said(self) -> None:
        self._said = time.monotonic()

    def beat(self) -> str:
        if time.monotonic() - self._said < ALIVE_SECONDS:
            return ""
        self.said()
        return ": alive\n\n"


def _steps(context: Context, follower: Follower, after: int, follow: bool) -> Iterator[str]:
    pulse = _Pulse()
    told = None
    while True:
        if follower.stale() or told is None:
            try:
                for seen in follower.look():
                    step = seen.step
                    if seen.ended or step.step_number > after:
                        yield event(
                            "step_ended" if seen.ended else "step",
                            step.as_dict(follower.trace.id),
                            str(step.step_number),
                        )
                        pulse.said()
            except StoreError as error:
                yield event("error", {"code": "store_error", "message": error.message})
                return
            state = _state(follower.trace)
            if state != told:
                told = state
                yield event("trace", follower.trace.as_item())
                pulse.said()
            if follower.trace.status != "running" and not follow:
                return
        if context.stopping.wait(SECONDS):
            return
        yield pulse.beat()


def _state(trace: Trace) -> tuple[object, ...]:
    return trace.status, trace.ended_at, trace.error


def _lines(call: Call) -> Iterator[str]:
    tail = Tail(call.context.folders.journal)
    pulse = _Pulse()
    seen: dict[str, bool] = {}
    yield ": listening\n\n"
    while not call.context.stopping.wait(SECONDS):
        for key, line in tail.look():
            stated = line.data.get("trace")
            name = stated if isinstance(stated, str) else fold.trace_id(key)
            if _visible(call, name, seen):
                value = {"trace_id": name, "ts": line.ts, "seq": line.seq, "type": line.type, "data": line.data}
                yield event(line.type if line.type.isprintable() else "line", value, f"{key}:{line.seq}")
                pulse.said()
        yield pulse.beat()


def _visible(call: Call, trace_id: str, known: dict[str, bool]) -> bool:
    """Whether the caller may see lines of this trace. What can't be told is not seen."""
    if call.caller.tenant is None:
        return True
    found = known.get(trace_id)
    if found is None:
        try:
            with call.store() as store:
                found = call.sees(tenant_of(store.get(trace_id), call.context.tenant))
        except StoreError:
            return False
        known[trace_id] = found
    return found
