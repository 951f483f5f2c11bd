"""Events of Codex's logs."""

from __future__ import annotations

from guardhook.intake.otel.pieces import Event, count, said, truth, unpacked
from guardhook.intake.otel.records import Attributes, Log

_TOKENS = ("input_token_count", "output_token_count")  # the others are contained in these
_DETAILS = ("cached_token_count", "reasoning_token_count", "tool_token_count", *_TOKENS)


def events(name: str, attributes: Attributes, log: Log) -> list[Event]:
    """The parts that one event is."""
    if name == "user_prompt":
        text = said(attributes, "prompt")
        return [] if text is None else [{"role": "prompt", "text": text, "native": name}]
    if name in ("sse_event", "websocket_event"):
        return _streamed(attributes)
    if name in ("api_request", "websocket_request"):
        return _request(attributes)
    if name == "tool_decision":
        return [_decision(attributes)]
    if name == "tool_result":
        return [_tool(attributes)]
    return []


def _streamed(attributes: Attributes) -> list[Event]:
    """The end of a model's answer; what came before it says nothing more."""
    kind = said(attributes, "event.kind")
    failed = kind in ("response.failed", "error") or said(attributes, "error.message") is not None
    if kind != "response.completed" and not failed:
        return []
    event = _call(attributes)
    known = [found for found in (count(attributes, (key,)) for key in _TOKENS) if found is not None]
    if known:
        event["tokens_used"] = sum(known)
    metadata: Event = {}
    for key in _DETAILS:
        found = count(attributes, (key,))
        if found is not None:
            metadata[key] = found
    event["metadata"] = metadata
    if failed:
        event["error"] = said(attributes, "error.message") or "the model's answer failed"
        event["fails"] = True
    return [event]


def _request(attributes: Attributes) -> list[Event]:
    """A request that failed; it may be tried again. Those that succeed are told of when the answer ends."""
    status = count(attributes, ("http.response.status_code",))
    error = said(attributes, "error.message")
    if error is None and (status is None or status < 400):
        return []
    event = _call(attributes)
    event["error"] = error or f"status {status}"
    event["metadata"] = {"attempt": count(attributes, ("attempt",)), "status_code": status}
    return [event]


def _call(attributes: Attributes) -> Event:
    model = said(attributes, "model")
    event: Event = {"role": "step", "step_type": "llm_call", "name": model or "model", "model": model}
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    return event


def _name(attributes: Attributes) -> str:
    name = said(attributes, "tool_name") or "tool"
    server = said(attributes, "mcp_server")
    return f"mcp__{server}__{name}" if server is not None else name


def _decision(attributes: Attributes) -> Event:
    """approved, approved_for_session, denied, abort …, by a person or by the configuration."""
    source = said(attributes, "source")
    call = said(attributes, "call_id")
    event: Event = {
        "role": "step",
        "step_type": "decision",
        "name": f"tool_decision:{_name(attributes)}",
        "decision": {
            "chosen": said(attributes, "decision") or "unknown",
            "decided_by": "user" if (source or "").lower() == "user" else "policy",
            "rationale": source,
        },
    }
    if call is not None:
        event["call"], event["metadata"] = call[:200], {"call": call}
    return event


def _tool(attributes: Attributes) -> Event:
    event: Event = {"role": "step", "step_type": "tool_call", "name": _name(attributes)}
    given = unpacked(attributes.get("arguments"))
    if given:
        event["input"] = given if isinstance(given, dict) else {"arguments": given}
    output = attributes.get("output")
    succeeded = truth(attributes.get("success"))
    if isinstance(output, str) and output:
        event["output"] = output
    elif succeeded is not None:
        event["output"] = {"success": succeeded}
    if succeeded is False:
        event["error"] = said(attributes, "error", "error.message") or (output if isinstance(output, str) and output else "tool failed")  # fmt: skip
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    call = said(attributes, "call_id")
    if call is not None:
        event["call"], event["metadata"] = call[:200], {"call": call}
    return event
