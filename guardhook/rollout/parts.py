"""What all parts of the mapping share: beginning a run, marks of what was not recorded, the end of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardhook.store.facts import Facts, text

if TYPE_CHECKING:
    from guardhook.rollout.render import Renderer


def marks(facts: Facts) -> dict[str, object]:
    """Which sub-agent an event is from, and whether something of it was not recorded."""
    out: dict[str, object] = {}
    if facts.agent is not None:
        out["agent_id"] = facts.agent
    missing = [name for name in ("redacted", "cut", "stripped") if facts.data.get(name)]
    if missing:
        out["incomplete"] = missing
    return out


def session(facts: Facts) -> dict[str, object]:
    """What an event knows of its session."""
    data, payload = facts.data, facts.payload
    found = {
        "source": text(payload.get("source")),
        "model": facts.model,
        "cwd": text(data.get("cwd")),
        "permission_mode": text(payload.get("permission_mode")),
        "harness": text(data.get("dialect")),
        "harness_version": text(data.get("client")),
    }
    return {k: v for k, v in found.items() if v is not None}


def begin(r: Renderer, facts: Facts, prompt: str | None = None) -> None:
    """run.started, with what this first event knows of the session where session_start did not tell; nothing when the run has begun."""
    state = r.state
    if state.started:
        return
    state.held = {**session(facts), **state.held}
    policies = None if facts.verdict is None else text(facts.verdict.get("set"))
    r.start(prompt, {"policy_set": policies, **(marks(facts) if prompt is not None else {})})


def ready(r: Renderer, facts: Facts) -> None:
    """The run has begun and the step is at least 1: before every event but a first prompt."""
    begin(r, facts)
    r.ensure()


def step_done(r: Renderer, unfinished: list[str]) -> None:
    """The end of a step, with the calls that have no result; none is invented for them."""
    data: dict[str, object] = {"tool_calls": r.state.turn_calls}
    if unfinished:
        data["unfinished"] = unfinished
    r.emit("run.step.completed", data)
