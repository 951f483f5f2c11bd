"""Recorded, imported and forked traces (`trace.*`, `fork.*` lines) as rollout events.

Their producers tell of steps, not of hooks: a tool_call step becomes an announcement, a start and an end; an llm_call a declared turn; an output the assistant's
message; every other step a `trace.step`. Nothing was judged, so there are no verdicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardhook.rollout import calls, families, models
from guardhook.rollout.lines import dump
from guardhook.rollout.parts import step_done
from guardhook.rollout.state import Ending
from guardhook.store import protocol, recorded
from guardhook.store.facts import canonical, text
from guardhook.store.given import structured
from guardhook.store.lines import Raw

if TYPE_CHECKING:
    from guardhook.rollout.render import Renderer

_PROMPTS = ("prompt", "text", "message", "task", "query", "content")


def feed(r: Renderer, item: Raw) -> None:
    """One line. What the store refuses (a step without a number, an unknown type) is left out here as well."""
    native = recorded.NATIVE.get(item.type.partition(".")[2])
    fields = item.data.get("event")
    if native is None or not isinstance(fields, dict):
        return
    checked = protocol.check({**fields, "type": native}, needs_trace=False)
    if checked.rejected is not None:
        return
    event = checked.event
    if native == "trace_start":
        start(r, event)
    elif r.state.started:
        if native == "step":
            begin_step(r, event)
            _tokens(r, event)
            end_step(r, event)
        elif native == "step_start":
            begin_step(r, event)
            _tokens(r, event)
        elif native == "step_end":
            end_step(r, event)
            _tokens(r, event)
        elif native == "decision":
            r.ensure()
            told = ("step_number", "options", "chosen", "rationale", "confidence", "decided_by")
            r.emit("trace.decision", {k: event[k] for k in told if event.get(k) is not None})
        elif native == "trace_end":
            end(r, event)


def prompt_of(value: object) -> str | None:
    """The prompt in a trace's input: a text, or one of the usual members; else the whole as JSON. None when there is no input."""
    if value is None or value in ({}, [], ""):
        return None
    if isinstance(value, dict):
        for name in _PROMPTS:
            found = text(value.get(name))
            if found is not None:
                return found
    return dump(value)


def _tokens(r: Renderer, event: dict[str, object]) -> None:
    """Usage that a producer tells with a step which is no model request: session logs hang it on the first step of a message."""
    tokens = protocol.whole(event.get("tokens_used"))
    if (
        tokens is None
        or tokens < 0
        or r.state.agents.get(str(event["step_number"])) == "llm_call"
        or event.get("step_type") == "llm_call"
    ):
        return
    r.ensure()
    models.usage(r, {"total_tokens": tokens}, None)
    models.counted(r, {"total_tokens": tokens}, None)


def _later(event: dict[str, object]) -> dict[str, object]:
    """Prompts after the first one, where a session log told them without their place."""
    metadata = event.get("metadata")
    found = metadata.get("follow_up_prompts") if isinstance(metadata, dict) else None
    return {"follow_up_prompts": found} if isinstance(found, list) and found else {}


def _owner(event: dict[str, object]) -> dict[str, object]:
    """Whose the trace is, where it was recorded for somebody: not this machine's tenant then. What is no text is nobody's."""
    metadata = event.get("metadata")
    stated = metadata.get("tenant_id") if isinstance(metadata, dict) else None
    return {} if stated is None else {"tenant_id": stated if isinstance(stated, str) else ""}


def start(r: Renderer, event: dict[str, object]) -> None:
    """The run begins."""
    state = r.state
    found = {"harness": text(event.get("dialect")) or text(event.get("agent_name")), "harness_version": text(event.get("agent_version")), "cwd": text(event.get("project"))}  # fmt: skip
    state.held = {k: v for k, v in found.items() if v is not None}
    r.start(prompt_of(structured(event.get("input"))), {"recorded": True, **_later(event), **_owner(event)})
    status = event.get("status")
    if status in ("completed", "failed", "timeout"):
        end(r, event)


def begin_step(r: Renderer, event: dict[str, object]) -> None:
    """A step of any kind begins."""
    kind, name = str(event["step_type"]), str(event["name"])
    given = structured(event.get("input"))
    number = event["step_number"]
    if kind == "tool_call":
        call = calls.start(
            r, native=_native(event), tool=name, given={} if given is None else given, canon=canonical(given), agent=None, cut=False,
            us=r.us, extra={}, basis="trace",
        )  # fmt: skip
        r.state.agents[str(number)] = call.id
    elif kind == "llm_call":
        r.bump("declared", None)
        model = protocol.plain(event.get("model"))
        r.emit("llm.turn.requested", {} if model is None else {"model": model})
        families.request(r, _messages(given), None)
        r.state.agents[str(number)] = "llm_call"
        r.state.request = [str(number), r.us, False]
    else:
        r.ensure()
        r.state.agents[str(number)] = kind
        if kind not in ("output", "thought"):
            r.emit(
                "trace.step",
                {
                    "step_number": number,
                    "step_type": kind,
                    "name": name,
                    **({"input": dump(given)} if given is not None else {}),
                },
            )
    if len(r.state.agents) > 4096:
        del r.state.agents[next(iter(r.state.agents))]


def end_step(r: Renderer, event: dict[str, object]) -> None:
    """A step that has begun ends; one that has not is left out."""
    number = str(event["step_number"])
    kind = r.state.agents.pop(number, None)
    if kind is None:
        return
    output = structured(event.get("output"))
    error = protocol.error_text(event.get("error"), dump)
    duration = protocol.whole(event.get("duration_ms"))
    timing = {} if duration is None else {"duration_ms": duration}
    tokens = protocol.whole(event.get("tokens_used"))
    if kind == "llm_call":
        _answered(r, event, output, error, tokens)
    elif kind == "output":
        _said(r, output)
    elif kind == "thought":
        if r.options.capture_reasoning:
            r.ensure()
            r.emit("reasoning.complete", {"content": _words(output)})
    else:
        call = next((c for c in r.state.open if c.id == kind), None)
        if call is not None:
            data: dict[str, object] = {
                "output": "" if output is None else dump(output),
                **({"error": error} if error is not None else {}),
                "executed": True,
            }
            calls.finished(r, call, {**data, **timing})
        elif output is not None or error is not None:
            r.emit("trace.step.completed", {"step_number": event["step_number"], "output": dump(output), **({"error": error} if error is not None else {}), **timing})  # fmt: skip


def _answered(r: Renderer, event: dict[str, object], output: object, error: str | None, tokens: int | None) -> None:
    began = r.state.request[1] if r.state.request else r.us
    latency = protocol.whole(event.get("duration_ms"))
    if latency is None:
        latency = max(0, (r.us - began) // 1000) if isinstance(began, int) else 0
    families.meta(r, latency, protocol.plain(event.get("model")))
    metadata = event.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    usage = {n: v for n in ("prompt_tokens", "completion_tokens", "cached_prompt_tokens", "reasoning_tokens") if (v := protocol.whole(known.get(n))) is not None}  # fmt: skip
    if tokens is not None:
        usage["total_tokens"] = tokens
    cost = protocol.cost(known.get("cost_usd"))
    if usage or cost is not None:
        models.usage(r, usage, cost)
    made = output.get("tool_calls") if isinstance(output, dict) else None
    listed: list[object] = []
    announced: list[list[str | None]] = []
    for one in made if isinstance(made, list) else []:
        if not isinstance(one, dict) or text(one.get("name")) is None:
            continue
        given = one.get("arguments", one.get("input"))
        native = text(one.get("id"))
        name = native if native is not None and len(native.encode()) <= 256 else calls.numbered(r)
        listed.append({"id": name, "name": one["name"], "arguments": dump(given if given is not None else {})})
        announced.append([native, str(one["name"]), canonical(given), name])
    data: dict[str, object] = {"content": _words(output), "tool_calls": listed[:100], "basis": "trace"}
    if error is not None:
        data["error"] = error
    r.emit("llm.turn.completed", {**data, "total_duration_ms": latency})
    calls.announce(r, announced)
    families.turn(r)
    if usage or cost is not None:
        models.counted(r, usage, cost)
    r.state.turn = [] if listed else [r.state.step, _words(output).strip()]


def _said(r: Renderer, output: object) -> None:
    state = r.state
    calls.settle(r, everyone=True)
    if state.step == 0 or state.active:
        r.bump()
    words = _words(output)
    if state.turn != [state.step, words.strip()]:
        r.emit("llm.turn.completed", {"content": words, "tool_calls": [], "basis": "trace"})
        families.turn(r)
    r.emit("assistant.message", {"content": words})
    families.said(r, "assistant", words)
    step_done(r, [])


def end(r: Renderer, event: dict[str, object]) -> None:
    """The run ends."""
    state = r.state
    unfinished = calls.settle(r, everyone=True)
    if unfinished:
        r.ensure()
        step_done(r, unfinished)
    status = event.get("status", "completed")
    if status in ("failed", "timeout"):
        state.failed = protocol.error_text(event.get("error"), dump) or str(status)
    output = structured(event.get("output"))
    data: dict[str, object] = {**({} if output is None else {"output": _words(output)}), **_later(event)}
    if status == "timeout":
        data["reason"] = "timeout"
    tokens, cost = protocol.whole(event.get("total_tokens")), protocol.cost(event.get("total_cost_usd"))
    if tokens is not None and not state.usage.known:
        state.usage.known, state.usage.total = True, tokens
    if cost is not None:
        state.usage.cost_known, state.usage.cost = True, cost
    state.ending = Ending("failed" if state.failed is not None else "completed", data, r.ts)


def _native(event: dict[str, object]) -> str | None:
    metadata = event.get("metadata")
    if isinstance(metadata, dict):
        for name in ("call", "call_id", "tool_use_id", "tool_call_id"):
            found = text(metadata.get(name))
            if found is not None:
                return found
    return None


def _messages(given: object) -> list[object] | None:
    found = given.get("messages") if isinstance(given, dict) else None
    return found if isinstance(found, list) else None


def _words(value: object) -> str:
    if isinstance(value, dict):
        for name in ("text", "content", "message"):
            found = value.get(name)
            if isinstance(found, str):
                return found
    return "" if value is None else dump(value)
