"""From the journal lines of a run to its rollout: a pure function of the lines, in their order, the same every time.

`Renderer` takes one line at a time and gives the events that follow from it; `finish` gives those that hold only when nothing more comes (the run's end).
The mapping of hook events is guardhook.rollout.hooks, that of told traces guardhook.rollout.told; this module knows tickets, steps, and how a run begins and ends.

Sequence numbers count from 0. A journal ticket that is missing, an unreadable line and a gap line become a `recorder.drop_detected`, which takes as many numbers as lines are missing.
Steps only grow: 0 is run.started, a model request or the first call of several that overlap begins another one. What comes after the session's end but belongs to the run
(a late result) stands before the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import msgspec

from guardhook.core.folders import Folders
from guardhook.journal import files, line, read
from guardhook.rollout import families, hooks, told, told_parts
from guardhook.rollout.lines import Event, instant
from guardhook.rollout.options import Options
from guardhook.rollout.runs import RunRef
from guardhook.rollout.state import Ending, State
from guardhook.store import instants
from guardhook.store.errors import NotFound, Unusable
from guardhook.store.lines import Place, Raw, entries

SCHEMA = "1"
RENDERING = 2  # raised whenever the same lines give other events, so that no file is begun by one version and continued by another
_MOST_LOST = 1 << 31


def render(folders: Folders, ref: RunRef, *, options: Options | None = None) -> Iterator[Event]:
    """The events `{ts, seq, type, data}` of a run, in order. The same journal, run and options give the same events.

    Raises NotFound when the journal has no line of it (any more), Unusable when it can't be read.
    """
    renderer = Renderer(ref, options)
    found = False
    for item in lines_of(folders, ref):
        found = found or item.data.get("run") == ref.run_id
        yield from renderer.feed(item)
    if not found:
        raise NotFound(f"the journal holds nothing of {ref.run_id} any more", folders.journal)
    yield from renderer.finish()


def render_lines(lines: Iterable[Raw], ref: RunRef, options: Options | None = None) -> Iterator[Event]:
    """As `render`, of lines that the caller has. Lines of other runs count only as tickets that are not missing."""
    renderer = Renderer(ref, options)
    for item in lines:
        yield from renderer.feed(item)
    yield from renderer.finish()


def lines_of(folders: Folders, ref: RunRef) -> Iterator[Raw]:
    """The readable lines of the file that holds the run, those of the session's other runs in it included. Raises Unusable.

    A run is never split over files; mostly its own lies under the day of its opening.
    """
    try:
        for folder in sorted(read.folders_of(folders.journal, ref.key), key=lambda n: n != ref.day):
            fd = read.open_session(folders.journal, read.SessionFile(folder, ref.key))
            found = False
            try:
                place = Place(folder, 0, 0, 0, 0, 0, 0)
                place.size = os.fstat(fd).st_size
                for entry in entries(fd, place):
                    if entry.line is not None:
                        found = found or entry.line.data.get("run") == ref.run_id
                        yield entry.line
            finally:
                os.close(fd)
            if found:
                return
    except (OSError, files.Unsafe) as error:
        raise Unusable(f"{folders.journal}: {ref.key}: {error.strerror or error}", folders.journal) from None


class Renderer:
    """Renders one run. state is all that it remembers (but for the causal graph, which is made anew for a run's end)."""

    def __init__(self, ref: RunRef, options: Options | None = None, state: State | None = None) -> None:
        self.ref = ref
        self.options = options or Options()
        self.state = state or State()
        self.causal = families.Causal() if self.options.causal_graph_enabled else None
        self.ts = ""
        self.us = 0
        self.parts: list[Raw] = []
        self._out: list[Event] = []

    @property
    def incremental(self) -> bool:
        """Whether state is all that going on needs: a graph, and a trace told in parts of any order, are made of everything at once."""
        return self.causal is None and not self.parts

    def feed(self, item: Raw) -> list[Event]:
        """The events of one journal line."""
        state = self.state
        self._out = []
        if item.seq <= state.ticket and state.ticket:
            return []  # a ticket that was there before
        lost = item.seq - state.ticket - 1 if state.ticket else 0
        state.ticket = item.seq
        if item.data.get("run") != self.ref.run_id:
            return []
        declared = item.data.get("declarations_sha256")
        if not state.started and isinstance(declared, str):
            state.declared = declared
        us = instants.micros(item.ts)
        mine = _Lost(lost, "missing") if lost > 0 else None
        if us is None:  # a clock beyond the year 9999; the line's own time can't be told
            mine = _Lost(lost + 1, "unreadable time")
            if state.started:
                self.ts = state.ts
                self._lose(mine)
            return self._out
        self.ts, self.us = instant(item.ts), us
        state.ts = self.ts
        if item.type == line.GAP:
            mine = _Lost(max(lost, 1), str(item.data.get("reason") or "gap"))
        if mine is not None and state.started:
            self._lose(mine)
            mine = None
        before, told_before = (state.seq, state.started), len(self._out)
        try:
            self._map(item)
        except Exception:  # whatever a line holds, the others are rendered
            state.seq, state.started = before
            del self._out[told_before:]
            mine = _Lost((0 if mine is None else mine.count) + 1, "unreadable")
        if mine is not None and state.started:
            self._lose(mine)
        return self._out

    def _map(self, item: Raw) -> None:
        if item.type == line.RECEIVED:
            hooks.feed(self, item)
        elif item.type == "trace.part":
            if not self.parts:
                self.state.held_ts = self.ts
            self.parts.append(item)
        elif item.type.startswith(("trace.", "fork.")):
            told.feed(self, item)

    def finish(self) -> list[Event]:
        """What the run ends with when no line follows. The state is not changed: more lines may come all the same."""
        kept, self._out = self.state, []
        self.state = _copy(kept)
        self.ts = kept.ts
        try:
            if self.parts:
                told_parts.finish(self)
            if not self.state.started and self.state.held_ts:
                self.ts = self.state.held_ts
                self.start(None)
            if self.state.started:
                families.end_of_turn(self)
            if self.state.ending is not None:
                self._end(self.state.ending)
            return self._out
        finally:
            self.state = kept

    # --- for the mappings ---------------------------------------------------------------------------------------

    def emit(self, type: str, data: dict[str, object]) -> None:
        """One event at the current step."""
        state = self.state
        body: dict[str, object] = {
            "schema_version": SCHEMA,
            "conversation_id": self.ref.session or self.ref.trace_id,
            "step": state.step,
            **data,
        }
        if state.step:
            body["step_basis"] = state.basis
        self._out.append({"ts": self.ts, "seq": state.seq, "type": type, "data": body})
        state.seq += 1

    def start(self, prompt: str | None, more: dict[str, object] | None = None) -> None:
        """run.started, once; held facts of the session's start go with it."""
        state, ref = self.state, self.ref
        if state.started:
            return
        state.started = True
        data: dict[str, object] = {"prompt_recorded": False} if prompt is None else {"prompt": prompt}
        data["run_id"] = ref.run_id
        if ref.previous is not None:
            data["previous_run_id"] = ref.previous
        if self.options.tenant_id is not None:
            data["tenant_id"] = self.options.tenant_id
        if ref.parent is not None:
            data["copy_of"] = ref.parent
        data["session"] = state.held
        if state.declared is not None:
            data["declarations_sha256"] = state.declared
        data.update(more or {})
        chosen = self.options.told()
        if chosen:
            data["forensics"] = chosen
        self.emit("run.started", data)
        if prompt is not None:
            state.messages += 1
            families.said(self, "user", prompt)

    def ensure(self) -> None:
        """The run has begun, and the step is at least 1: what every event but run.started needs."""
        if not self.state.started:
            self.start(None)
        if self.state.step == 0:
            self.bump()

    def bump(self, basis: str = "inferred", agent: str | None = None) -> None:
        """The next step."""
        state = self.state
        if state.step:
            families.end_of_turn(self)
        state.step += 1
        state.basis = basis
        state.declared_agent = agent
        state.active = False
        state.turn_calls = 0

    # --- inside -------------------------------------------------------------------------------------------------

    def _lose(self, lost: _Lost) -> None:
        self.ensure()
        count = min(lost.count, _MOST_LOST)
        seq = self.state.seq
        self.emit(
            "recorder.drop_detected",
            {
                "dropped_event_id": str(seq), "dropped_event_type": "unknown", "dropped_seq": seq, "reason": lost.reason, "count": count,
            },
        )  # fmt: skip
        self.state.seq = seq + count

    def _end(self, ending: Ending) -> None:
        state = self.state
        self.ts = ending.ts
        self.ensure()
        families.graph(self)
        data = dict(ending.data)
        usage = state.usage
        if usage.known:
            data["usage_totals"] = {
                "prompt_tokens_total": usage.prompt,
                "completion_tokens_total": usage.completion,
                "total_tokens": usage.total,
                "last_turn_tokens": usage.last,
            }
        if usage.cost_known:
            data["cost_totals"] = {
                "cost_usd_total": usage.cost,
                "last_turn_cost_usd": usage.last_cost,
                "cost_status": "reported",
            }
        if ending.how == "failed":
            families.error_context(self)
            data = {"error": state.failed or "the run failed", **data}
        self.emit(f"run.{ending.how}", data)


class _Lost:
    def __init__(self, count: int, reason: str) -> None:
        self.count = count
        self.reason = reason


def _copy(state: State) -> State:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=State)
