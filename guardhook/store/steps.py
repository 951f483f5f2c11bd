"""The parts of folding that all events need: numbering steps, sub-agents as parents, runs, sums."""

from __future__ import annotations

from guardhook.store.facts import Facts
from guardhook.store.protocol import MOST
from guardhook.store.state import Anchor, Row, Sink, State


def millis(ts: str) -> str:
    """A line's time stamp with milliseconds."""
    return ts[:23] + "Z" if len(ts) == 27 else ts


def follow_run(sink: Sink, state: State, seq: int, ts: str, data: dict[str, object]) -> None:
    """Notes which run of the session a line belongs to."""
    segment, run = data.get("segment"), data.get("run")
    if type(segment) is not int or not 0 < segment < 1 << 31 or not isinstance(run, str):
        return
    if not state.run or state.run[0] != segment:
        if state.run:
            sink.segment(state, state.run)
        state.run = [segment, run, seq, seq, millis(ts), None]
    state.run[3] = seq
    if data.get("closes"):
        state.run[5] = millis(ts)


def count_tokens(state: State, tokens: int) -> None:
    """Adds to the sum over the steps, which has to fit a column whatever producers claim."""
    state.step_tokens = max(0, min((state.step_tokens or 0) + tokens, MOST))


def add(
    sink: Sink,
    state: State,
    facts: Facts,
    type: str,
    name: str,
    *,
    input: object = None,
    output: object = None,
    ended: bool = False,
    duration: int | None = None,
    error: str | None = None,
    tokens: int | None = None,
    model: str | None = None,
    metadata: dict[str, object] | None = None,
    cause: int | None = None,
    parent: int | None = None,
) -> int:
    """A new step at the time of the event; gives its number. ended: it is over already."""
    number = state.next
    state.next += 1
    state.step_count += 1
    at = millis(facts.ts)
    own: dict[str, object] = {"seq": facts.seq}
    if facts.agent is not None:
        own["agent_id"] = facts.agent
        if facts.agent_type is not None:
            own["agent_type"] = facts.agent_type
    if metadata:
        own.update(metadata)
    if tokens is not None:
        count_tokens(state, tokens)
    sink.add(
        state,
        Row(
            number, type, name, {} if input is None else input, output, at, at if ended else None, duration, tokens, model,
            error, own, parent, cause,
        ),
    )  # fmt: skip
    return number


def parent_of(sink: Sink, state: State, facts: Facts) -> int | None:
    """The anchor of the sub-agent that the event is from; made when the harness never told of its start."""
    if facts.agent is None:
        return None
    anchor = state.anchors.get(facts.agent)
    return anchor.number if anchor is not None else anchor_of(sink, state, facts)


def anchor_of(sink: Sink, state: State, facts: Facts) -> int:
    """A new anchor for the event's sub-agent, below the call that started it where that is known."""
    agent = facts.agent or ""
    spawner = state.spawned.pop(agent, None)
    if spawner is None:
        taken = {a.number for a in state.anchors.values()}
        waiting = [o for o in state.open if o.kind == "subagent" and o.agent != agent and not o.closed]
        spawner = waiting[0].number if waiting and waiting[0].number not in taken else None
    number = add(
        sink,
        state,
        facts,
        "thought",
        f"subagent:{facts.agent_type or 'subagent'}",
        metadata={"hook_anchor": 1},
        cause=spawner,
        parent=spawner,
    )
    state.anchors[agent] = Anchor(number, facts.us, True)
    return number
