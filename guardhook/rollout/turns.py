"""A run cut at its prompts: one rollout for each turn, numbered anew from 0.

What a turn's rollout is called follows from the run and the turn's number, so that it is the same every time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from guardhook.rollout.lines import Event
from guardhook.rollout.load import TERMINAL

_CUTS = ("conversation.continued",)


class Turn(NamedTuple):
    """One turn. day is the date of its beginning."""

    number: int
    run_id: str
    day: str
    events: list[Event]


def turn_id(run_id: str, number: int) -> str:
    """The id of a run's turn, counted from 1; of the form of all run ids."""
    return "run_" + hashlib.sha256(f"turn\0{run_id}\0{number}".encode()).hexdigest()[:32]


def by_turn(events: Iterable[Event], run_id: str) -> Iterator[Turn]:
    """The turns of a rollout, in order. Every one begins with run.started; one that the agent ended has an end of its own."""
    held: list[Event] = []
    start: dict[str, object] = {}
    number = 0
    for event in events:
        if event["type"] in _CUTS and held:
            number += 1
            yield _turn(held, run_id, number, start)
            held = []
        if event["type"] == "run.started":
            start = _data(event)
        held.append(event)
    if held:
        yield _turn(held, run_id, number + 1, start)


def _data(event: Event) -> dict[str, object]:
    data = event.get("data")
    return data if isinstance(data, dict) else {}


def _turn(held: list[Event], run_id: str, number: int, start: dict[str, object]) -> Turn:
    first = held[0]
    name = turn_id(run_id, number)
    opening = {k: v for k, v in start.items() if k not in ("prompt", "prompt_recorded", "previous_run_id")}
    said = _data(first)
    prompt = said.get("prompt" if first["type"] == "run.started" else "message")
    opening.update({"step": 0, "run_id": name, "turn_of": run_id, "turn": number})
    opening.update({"prompt": prompt} if prompt is not None else {"prompt_recorded": False})
    if number > 1:
        opening["previous_run_id"] = turn_id(run_id, number - 1)
    out: list[Event] = [{"ts": first["ts"], "seq": 0, "type": "run.started", "data": opening}]
    base_step, base_seq = _step(first), _whole(first["seq"])
    # The prompt's own step is the turn's step 0; what follows in it is step 1.
    for event in held[1:]:
        data = _data(event)
        step = max(1, _step(event) - base_step)
        more: dict[str, object] = {"step": step}
        dropped = data.get("dropped_seq")
        if isinstance(dropped, int):
            more.update(dropped_seq=dropped - base_seq, dropped_event_id=str(dropped - base_seq))
        out.append(
            {"ts": event["ts"], "seq": _whole(event["seq"]) - base_seq, "type": event["type"], "data": {**data, **more}}
        )
    last = out[-1]
    if last["type"] not in TERMINAL and any(map(_stopped, held)):
        data = {
            "schema_version": "1",
            "conversation_id": opening.get("conversation_id"),
            "step": max(1, _step(last)),
            "reason": "stop",
        }
        out.append({"ts": last["ts"], "seq": _whole(last["seq"]) + 1, "type": "run.completed", "data": data})
    return Turn(number, name, str(first["ts"])[:10], out)


def _stopped(event: Event) -> bool:
    """Whether the agent stopped. One that waits for a permission, which has a kind, is still at it."""
    return event["type"] == "run.waiting_for_user" and "kind" not in _data(event)


def _step(event: Event) -> int:
    return _whole(_data(event).get("step"))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
