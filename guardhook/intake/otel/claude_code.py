"""Events of Claude Code's logs. Their attributes are mostly text, numbers and truth values included."""

from __future__ import annotations

from guardhook.intake.otel.pieces import Event, count, number, said, truth, unpacked
from guardhook.intake.otel.records import Attributes, Log

_TELLING = ("hook_execution_complete", "compaction", "permission_mode_changed", "subagent_completed", "api_refusal", "api_retries_exhausted", "internal_error", "skill_activated")  # fmt: skip
_DETAIL = (
    "hook_event", "hook_name", "num_hooks", "num_success", "num_blocking", "num_non_blocking_error", "num_cancelled", "total_duration_ms",
    "trigger", "from_mode", "to_mode", "agent_type", "agent_id", "total_tokens", "model", "error", "skill.name", "skill_name", "status", "server_name",
)  # fmt: skip
_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def events(name: str, attributes: Attributes, log: Log) -> list[Event]:
    """The parts that one event is."""
    if name == "user_prompt":
        text = said(attributes, "prompt", "prompt_text")
        if text is None and isinstance(log.body, str) and not log.body.startswith("claude_code."):
            text = log.body if log.body.strip() else None
        return [] if text is None else [{"role": "prompt", "text": text, "native": name}]
    if name in ("api_request", "api_response"):
        return [_request(attributes)]
    if name == "api_error":
        return [failed_request(attributes)]
    if name == "assistant_response":
        return _answer(attributes)
    if name == "tool_decision":
        return [_decision(attributes)]
    if name == "tool_result":
        return [_tool(attributes)]
    if name in _TELLING or (name == "mcp_server_connection" and attributes.get("status") not in ("connected", "disconnected")):  # fmt: skip
        detail = {key: attributes[key] for key in _DETAIL if attributes.get(key) is not None}
        event = "hook" if name.startswith("hook_") else name
        return [{"role": "event", "event": event, "native": name, "text": said(attributes, "error"), "detail": detail}]
    return []


def _context(attributes: Attributes) -> Event:
    """What every step keeps of where it belongs."""
    out: Event = {}
    for key, names in (("call", ("tool_use_id",)), ("agent_id", ("agent_id",)), ("query_source", ("query_source",))):
        found = said(attributes, *names)
        if found is not None:
            out[key] = found
    return out


def usage(attributes: Attributes, event: Event, tokens: int | None, cost: object) -> None:
    """Tokens and cost of a request."""
    if tokens is not None:
        event["tokens_used"] = tokens
    dollars = number(cost)
    if dollars is not None:
        event["cost"] = dollars


def _request(attributes: Attributes) -> Event:
    model = said(attributes, "gen_ai.request.model", "model")
    metadata = _context(attributes)
    counted = [count(attributes, (f"gen_ai.usage.{key}", key)) for key in _USAGE]
    for key, value in zip(_USAGE, counted, strict=True):
        if value is not None:
            metadata[key] = value
    known = [value for value in counted if value is not None]
    event: Event = {"role": "step", "step_type": "llm_call", "name": model or "model", "model": model, "metadata": metadata}  # fmt: skip
    usage(attributes, event, sum(known) if known else None, attributes.get("cost_usd", attributes.get("cost", attributes.get("gen_ai.usage.cost"))))  # fmt: skip
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    return event


def failed_request(attributes: Attributes) -> Event:
    """A model request that failed for good; the session failed with it."""
    model = said(attributes, "gen_ai.request.model", "model", "model_name")
    status = said(attributes, "status_code", "http.status_code", "status")
    error = said(attributes, "error", "error.message", "error_message") or (
        f"status {status}" if status else "api error"
    )
    event: Event = {
        "role": "step", "step_type": "llm_call", "name": model or "model", "model": model, "error": error, "fails": True,
        "metadata": _context(attributes),
    }  # fmt: skip
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    return event


def _answer(attributes: Attributes) -> list[Event]:
    text = said(attributes, "response", "response_text")
    if text is None:
        return []
    metadata = _context(attributes)
    main = "agent_id" not in metadata
    return [{
        "role": "step", "step_type": "output", "name": "assistant_message", "output": {"text": text}, "answer": main,
        "model": said(attributes, "model"), "metadata": metadata,
    }]  # fmt: skip


def tool_name(attributes: Attributes) -> str:
    """The tool's name; tools of MCP servers are all called `mcp_tool`, and the parameters say which it is."""
    name = said(attributes, "tool_name", "name") or "tool"
    if name == "mcp_tool":
        told = unpacked(attributes.get("tool_parameters"))
        if isinstance(told, dict) and isinstance(told.get("mcp_tool_name"), str):
            return f"mcp__{told.get('mcp_server_name')}__{told['mcp_tool_name']}"
    return name


def _decision(attributes: Attributes) -> Event:
    name = tool_name(attributes)
    chosen = said(attributes, "decision") or "unknown"
    source = said(attributes, "source")
    if source is None:
        decider = "user" if chosen in ("accept", "reject", "allow", "deny") else "policy"
    else:
        decider = "user" if source.startswith("user") else "policy"
    metadata = _context(attributes)
    event: Event = {
        "role": "step", "step_type": "decision", "name": f"tool_decision:{name}", "metadata": metadata,
        "decision": {"chosen": chosen, "decided_by": decider, "rationale": source},
    }  # fmt: skip
    given = unpacked(attributes.get("tool_parameters"))
    if given:
        event["input"] = given
    if "call" in metadata:
        event["call"] = metadata["call"]
    return event


def _tool(attributes: Attributes) -> Event:
    metadata = _context(attributes)
    succeeded = truth(attributes.get("success"))
    event: Event = {"role": "step", "step_type": "tool_call", "name": tool_name(attributes), "metadata": metadata}
    given = unpacked(attributes.get("tool_input") or attributes.get("tool_parameters"))
    if given:
        event["input"] = given
    if succeeded is not None:
        event["output"] = {"success": succeeded}
    if succeeded is False:
        event["error"] = said(attributes, "error", "error_message", "error_type") or "tool failed"
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    size = count(attributes, ("tool_result_size_bytes",))
    if size is not None:
        metadata["result_bytes"] = size
    if "call" in metadata:
        event["call"] = metadata["call"]
    return event
