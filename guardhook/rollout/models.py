"""Requests to a model, where a harness has hooks for them: turns that are declared, not inferred, with their usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardhook.rollout import calls, families, limits
from guardhook.rollout.lines import dump
from guardhook.rollout.parts import begin, marks
from guardhook.store.facts import Facts, canonical, flat, text

if TYPE_CHECKING:
    from guardhook.rollout.render import Renderer


def request(r: Renderer, facts: Facts) -> None:
    """A turn begins. Another attempt of the same request stays in its step."""
    begin(r, facts)
    state = r.state
    key = _key(facts)
    again = facts.payload.get("request_id") is not None and state.request and state.request[0] == key
    if not (again and state.basis == "declared"):
        r.bump("declared", facts.agent)
    state.request = [key, facts.us, False]
    state.stream = ""
    data: dict[str, object] = {}
    if facts.model is not None:
        data["model"] = facts.model
    r.emit("llm.turn.requested", {**data, **marks(facts)})
    families.request(r, _messages(facts), _tools(facts))


def response(r: Renderer, facts: Facts) -> None:
    """What the model answered. A streamed answer counts when its last piece comes."""
    begin(r, facts)
    state = r.state
    if not state.request or state.request[0] != _key(facts) or state.request[2]:
        # Nobody told that the model was asked; or it was asked again without a word.
        r.bump("declared", facts.agent)
        state.request = [_key(facts), facts.us, False]
        state.stream = ""
    answer = facts.payload.get("llm_response")
    content, announced, thoughts = _pieces(answer) if isinstance(answer, dict) else ("", [], "")
    if len(state.stream) < limits.LEAF:
        state.stream += content
    if isinstance(answer, dict) and not _last(answer):
        return
    content, state.stream = state.stream, ""
    began = state.request[1]
    state.request[2] = True
    assert isinstance(began, int)
    latency = max(0, (facts.us - began) // 1000)
    families.meta(r, latency, facts.model)
    turn = _usage(facts)
    if turn is not None:
        usage(r, turn, None, facts)
    data: dict[str, object] = {"content": content, "tool_calls": [], "basis": "model_response"}
    if not isinstance(answer, dict):
        data["content_recorded"] = False
    named: list[list[str | None]] = []
    listed: list[object] = []
    for call_id, tool, given in announced:
        usable = call_id is not None and len(call_id.encode("utf-8", "replace")) <= limits.CALL_ID
        name = call_id if usable else calls.numbered(r)
        listed.append({"id": name, "name": tool, "arguments": dump(given)})
        named.append([call_id if usable else None, tool, canonical(given), name])
    data["tool_calls"] = listed
    error = facts.error or (status if (status := text(facts.payload.get("status"))) in ("failed", "error") else None)
    if error is not None:
        data["error"] = error
    r.emit("llm.turn.completed", {**data, "total_duration_ms": latency, **marks(facts)})
    calls.announce(r, named)
    families.turn(r)
    if turn is not None:
        counted(r, turn, None)
    if thoughts and r.options.capture_reasoning:
        r.emit("reasoning.complete", {"content": thoughts, **marks(facts)})
    state.turn = [state.step, content.strip()] if isinstance(answer, dict) and not listed else []


def usage(r: Renderer, turn: dict[str, int], cost: float | None, facts: Facts | None = None) -> None:
    """usage.delta of one turn. cost in dollars, where somebody reported it; it is never worked out from prices."""
    total = r.state.usage
    total.known = True
    total.prompt += turn.get("prompt_tokens", 0)
    total.completion += turn.get("completion_tokens", 0)
    total.last = turn.get("total_tokens", turn.get("prompt_tokens", 0) + turn.get("completion_tokens", 0))
    total.total += total.last
    data: dict[str, object] = {
        "usage_status": "provider_reported",
        "cost_status": "not_reported" if cost is None else "reported",
        "turn_usage": turn,
        "cumulative_usage": {
            "prompt_tokens": total.prompt,
            "completion_tokens": total.completion,
            "total_tokens": total.total,
        },
    }
    if cost is not None:
        total.cost_known = True
        total.cost += cost
        total.last_cost = cost
        data["turn_cost_usd"] = cost
        data["cumulative_cost_usd"] = total.cost
    r.emit("usage.delta", {**data, **(marks(facts) if facts is not None else {})})


def counted(r: Renderer, turn: dict[str, int], cost: float | None) -> None:
    """What follows from a turn's usage, behind the turn itself."""
    families.spent(r, cost)
    families.window(r, turn)


def _key(facts: Facts) -> str:
    return flat([facts.agent, facts.payload.get("request_id")])


def _messages(facts: Facts) -> list[object] | None:
    asked = facts.payload.get("llm_request")
    found = asked.get("messages") if isinstance(asked, dict) else None
    return found if isinstance(found, list) else None


def _tools(facts: Facts) -> list[str] | None:
    asked = facts.payload.get("llm_request")
    found = asked.get("tools") if isinstance(asked, dict) else None
    if not isinstance(found, list):
        return None
    return [str(t.get("name")) if isinstance(t, dict) else str(t) for t in found][:1000]


def _last(answer: dict[str, object]) -> bool:
    candidates = answer.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        return True
    return any(isinstance(c, dict) and c.get("finishReason") for c in candidates)


def _pieces(answer: dict[str, object]) -> tuple[str, list[tuple[str | None, str, object]], str]:
    """Text, calls and thoughts of one piece of an answer."""
    said: list[str] = []
    thought: list[str] = []
    named: list[tuple[str | None, str, object]] = []
    candidates = answer.get("candidates")
    for candidate in candidates if isinstance(candidates, list) else []:
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, str):
                said.append(part)
            elif isinstance(part, dict):
                call = part.get("functionCall")
                if isinstance(call, dict) and isinstance(call.get("name"), str) and call["name"]:
                    named.append((text(call.get("id")), call["name"], call.get("args", {})))
                elif isinstance(part.get("text"), str):
                    (thought if part.get("thought") is True else said).append(part["text"])
    if not said and isinstance(answer.get("text"), str):
        said.append(str(answer["text"]))
    return "".join(said), named[: limits.TURN_CALLS], "".join(thought)


_USAGE = (
    ("prompt_tokens", ("input_tokens", "promptTokenCount")),
    ("completion_tokens", ("output_tokens", "candidatesTokenCount")),
    ("total_tokens", ("total_tokens", "totalTokenCount")),
    ("cached_prompt_tokens", ("cached_input_tokens", "cachedContentTokenCount")),
    ("reasoning_tokens", ("reasoning_output_tokens", "thoughtsTokenCount")),
)


def _usage(facts: Facts) -> dict[str, int] | None:
    answer = facts.payload.get("llm_response")
    found = answer.get("usageMetadata") if isinstance(answer, dict) else facts.payload.get("token_usage")
    if not isinstance(found, dict):
        return None
    out: dict[str, int] = {}
    for name, keys in _USAGE:
        for key in keys:
            value = found.get(key)
            if type(value) is int and 0 <= value < 1 << 53:
                out[name] = value
                break
    return out or None
