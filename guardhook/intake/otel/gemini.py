"""Events of Gemini CLI's logs, and of Qwen Code's, which came of it."""

from __future__ import annotations

from guardhook.intake.otel.claude_code import failed_request, usage
from guardhook.intake.otel.pieces import Event, count, said, truth, unpacked
from guardhook.intake.otel.records import Attributes, Log

_INPUT = ("input_token_count", "gen_ai.usage.input_tokens", "input_tokens")
_OUTPUT = ("output_token_count", "gen_ai.usage.output_tokens", "output_tokens")
_BESIDE = ("thoughts_token_count", "tool_token_count")  # not contained in the two
_TELLING = ("hook_call", "chat_compression", "loop_detected", "flash_fallback", "invalid_chunk", "content_retry_failure", "malformed_json_response", "conseca.verdict")  # fmt: skip
_NO_PROMPT = ("User prompt. Length:", "gemini_cli.", "qwen-code.")  # what the body says where the prompt is left out
_DETAIL = ("hook_event_name", "hook_name", "hook_type", "exit_code", "success", "duration_ms", "tokens_before", "tokens_after", "loop_type")  # fmt: skip


def events(name: str, attributes: Attributes, log: Log) -> list[Event]:
    """The parts that one event is."""
    if name == "user_prompt":
        text = said(attributes, "prompt", "prompt_text")
        if text is None and isinstance(log.body, str) and not log.body.startswith(_NO_PROMPT):
            text = log.body if log.body.strip() else None
        return [] if text is None else [{"role": "prompt", "text": text, "native": name}]
    if name in ("api_response", "api_request"):
        return _response(name, attributes)
    if name == "api_error":
        return [failed_request(attributes)]
    if name == "tool_call":
        return _tool(attributes)
    if name in _TELLING:
        detail = {key: attributes[key] for key in _DETAIL if attributes.get(key) is not None}
        event = "hook" if name == "hook_call" else name
        return [{"role": "event", "event": event, "native": name, "text": said(attributes, "stderr"), "detail": detail}]
    return []


def _response(name: str, attributes: Attributes) -> list[Event]:
    """A request is told of by its answer; the request's own event counts only where it has figures."""
    known = [found for found in (count(attributes, names) for names in (_INPUT, _OUTPUT)) if found is not None]
    beside = [found for found in (count(attributes, (key,)) for key in _BESIDE) if found is not None]
    cost = attributes.get("cost_usd", attributes.get("cost", attributes.get("gen_ai.usage.cost")))
    if name == "api_request" and not known and cost is None:
        return []
    model = said(attributes, "gen_ai.request.model", "model")
    metadata: Event = {}
    for key in ("cached_content_token_count", *_BESIDE, "status_code"):
        found = count(attributes, (key,))
        if found:
            metadata[key] = found
    role = said(attributes, "role")
    if role is not None:
        metadata["request_role"] = role
    event: Event = {"role": "step", "step_type": "llm_call", "name": model or "model", "model": model, "metadata": metadata}  # fmt: skip
    usage(attributes, event, sum(known) + sum(beside) if known else None, cost)
    answer = unpacked(attributes.get("response_text"))
    if answer:
        event["output"] = answer
    error = said(attributes, "error")
    if error is not None:
        event["error"] = error
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    return [event]


def _tool(attributes: Attributes) -> list[Event]:
    name = said(attributes, "function_name", "tool_name", "name") or "tool"
    given = unpacked(attributes.get("function_args"))
    succeeded = truth(attributes.get("success"))
    event: Event = {"role": "step", "step_type": "tool_call", "name": name}
    if given:
        event["input"] = given if isinstance(given, dict) else {"args": given}
    if succeeded is not None:
        event["output"] = {"success": succeeded}
    if succeeded is False:
        event["error"] = said(attributes, "error", "error_message", "error.message", "error_type", "error.type") or "tool failed"  # fmt: skip
    duration = count(attributes, ("duration_ms",))
    if duration is not None:
        event["duration_ms"] = duration
    metadata: Event = {}
    for key in ("tool_type", "mcp_server_name", "error_type", "prompt_id"):
        found = said(attributes, key)
        if found is not None:
            metadata[key] = found
    event["metadata"] = metadata
    out = [event]
    chosen = said(attributes, "decision")
    if chosen is not None:
        decided: Event = {
            "role": "step",
            "step_type": "decision",
            "name": f"tool_decision:{name}",
            "cause": "",
            "decision": {"chosen": chosen, "decided_by": "policy" if chosen == "auto_accept" else "user"},
        }
        if duration is not None:
            decided["duration_ms"] = duration  # it begins with the call, and is put right behind it
        out.append(decided)
    return out
