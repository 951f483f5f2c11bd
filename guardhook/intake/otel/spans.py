"""Spans become parts of traces: GenAI semantic conventions, OpenInference, OpenLLMetry, and the spans of Claude Code and Gemini CLI.

Codex's spans are the insides of its program (a thousand for one turn) and are refused with that reason; its logs tell what it does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardhook.intake.otel.pieces import (
    Event,
    Mapped,
    Names,
    Piece,
    count,
    first,
    number,
    said,
    times,
    trace_name,
    unflattened,
    unpacked,
)
from guardhook.intake.otel.records import ERROR_STATUS, OK_STATUS, Attributes, Span

FORMAT = "otel-genai"
ROOT = "root"

_OPERATIONS = {
    "invoke_agent": ROOT, "invoke_workflow": ROOT, "create_agent": ROOT,
    "execute_tool": "tool_call",
    "chat": "llm_call", "generate_content": "llm_call", "text_completion": "llm_call",
    "embeddings": "retrieval", "retrieval": "retrieval",
    "plan": "thought",
    # Gemini CLI's own words
    "llm_call": "llm_call", "tool_call": "tool_call", "schedule_tool_calls": "thought",
}  # fmt: skip
_OPENINFERENCE = {
    "AGENT": ROOT, "CHAIN": ROOT, "TOOL": "tool_call", "LLM": "llm_call", "RETRIEVER": "retrieval", "EMBEDDING": "retrieval",
    "RERANKER": "retrieval", "GUARDRAIL": "guard_check",
}  # fmt: skip
_TRACELOOP = {"workflow": ROOT, "agent": ROOT, "tool": "tool_call", "task": "thought"}
_CLAUDE = {  # span.type
    "interaction": ROOT, "llm_request": "llm_call", "tool": "tool_call", "hook": "guard_check", "tool.blocked_on_user": "decision",
}  # fmt: skip

_INPUT = ("gen_ai.input.messages", "gen_ai.prompt", "input.value", "llm.prompts", "traceloop.entity.input")
_OUTPUT = ("gen_ai.output.messages", "gen_ai.completion", "output.value", "llm.completions", "traceloop.entity.output")
_SPREAD_INPUT = ("llm.input_messages", "gen_ai.prompt", "llm.prompts")
_SPREAD_OUTPUT = ("llm.output_messages", "gen_ai.completion", "llm.completions", "retrieval.documents")
_INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens")  # fmt: skip
_OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "llm.usage.completion_tokens")  # fmt: skip
_TOTAL_TOKENS = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total")
_COST = ("gen_ai.usage.cost", "gen_ai.usage.cost_usd", "gen_ai.cost_usd", "llm.cost.total", "cost_usd", "cost")
_USAGE = {  # what the totals contain
    "cache_read": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "llm.token_count.prompt_details.cache_read"),
    "cache_write": ("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write"),
    "reasoning": ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "llm.token_count.completion_details.reasoning"),
}  # fmt: skip
_MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
_SESSION = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id", "langgraph.thread_id")  # fmt: skip
_CALL = ("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool_call.id", "tool_use_id")
_NO_MESSAGE = ("gen_ai.system", "gen_ai.provider.name", "event.name")
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider")
# gen_ai attributes that have a place of their own; all others go to the step's metadata.
_PLACED = frozenset((
    "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.conversation.id", "gen_ai.system_instructions", "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result", "gen_ai.agent.version", *_INPUT, *_OUTPUT, *_INPUT_TOKENS, *_OUTPUT_TOKENS, *_TOTAL_TOKENS, *_COST,
    *_MODEL, *_CALL, *_PROVIDER, *(name for names in _USAGE.values() for name in names),
))  # fmt: skip
_CONVENTIONS = frozenset(("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind"))
_SPREAD = re.compile(r"gen_ai\.(prompt|completion)\.\d", re.ASCII)
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
}  # fmt: skip
_REFUSED = "spans of Codex's insides are not recorded, its log events are"


def mapped(spans: Sequence[Span]) -> Mapped:
    """The parts that these spans are."""
    names = Names()
    pieces: list[Piece] = []
    refused = 0
    seen: set[tuple[str, str]] = set()
    for span in spans:
        if span.source.service.startswith("codex") and not _speaks(span.attributes):
            refused += 1
            continue
        piece = _piece(span, names)
        key = (piece.trace, str(piece.event["part"]))
        if key not in seen:  # a span that stands twice in one request counts once
            seen.add(key)
            pieces.append(piece)
    return Mapped(pieces, len(spans), refused, _REFUSED if refused else "")


def _speaks(attributes: Attributes) -> bool:
    """Whether a span follows one of the conventions; single attributes of theirs are used for other purposes too."""
    return not _CONVENTIONS.isdisjoint(attributes)


def _piece(span: Span, names: Names) -> Piece:
    attributes = span.attributes
    kind = _kind(span)
    event: Event = {"part": span.span_id or "", "role": "step", "step_type": kind}
    if kind == ROOT:
        event["role"], event["step_type"] = ROOT, "thought"
    elif kind == "decision" and not _decision(event, attributes):
        event["step_type"] = "thought"
    if not span.span_id:
        event["part"] = names.of(span.trace_id, span.name, span.start, span.end, attributes, span.parent_id)
    if span.parent_id:
        event["within"] = span.parent_id
    times(event, span.start, span.end)
    event["name"] = _name(span)
    _content(event, span, kind)
    _usage(event, attributes)
    model = said(attributes, *_MODEL)
    if model is not None:
        event["model"] = model
    error = error_of(span)
    if error is not None:
        event["error"] = error
        event["fails"] = True
    event["metadata"] = _metadata(span, event)
    facts: Event = {
        "agent": said(attributes, "gen_ai.agent.name"),
        "service": span.source.service or "otel-agent",
        "version": said(attributes, "gen_ai.agent.version") or said(span.source.attributes, "service.version"),
        "session": said(attributes, *_SESSION),
        "trigger": "api",
        "format": FORMAT,
        "rooted": True,
    }
    trace = _place(span, str(event["part"]), facts)
    if facts.get("dialect") and kind != "llm_call":
        event.pop("fails", None)  # a session goes on after a call that failed
    event["trace"] = {key: value for key, value in facts.items() if value is not None}
    return Piece(trace, event)


def _place(span: Span, part: str, facts: Event) -> str:
    """The trace of a span. Gemini CLI begins an OTel trace for every call; what belongs together is its session."""
    session = facts["session"]
    if span.source.service == "gemini-cli" and isinstance(session, str):
        facts.update(agent="gemini", dialect="gemini", format="gemini-cli-spans", trigger="user_message", version=None)
        del facts["rooted"]
        return trace_name("gemini-cli-spans", session)
    facts["metadata"] = {"otel_trace_id": span.trace_id}
    if not span.trace_id:
        return trace_name("span", part)
    return trace_name("trace", span.trace_id)


def _kind(span: Span) -> str:
    """`root` or the type of step; the first convention that knows the span says it."""
    attributes = span.attributes
    claude = attributes.get("span.type")
    if isinstance(claude, str) and span.name.startswith("claude_code.") and claude in _CLAUDE:
        return _CLAUDE[claude]
    if span.name == "qwen-code.interaction":
        return ROOT
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation in _OPERATIONS:
        return _OPERATIONS[operation]
    inference = attributes.get("openinference.span.kind")
    if isinstance(inference, str) and inference.upper() in _OPENINFERENCE:
        return _OPENINFERENCE[inference.upper()]
    entity = attributes.get("traceloop.span.kind")
    if isinstance(entity, str) and entity in _TRACELOOP:
        return _TRACELOOP[entity]
    if attributes.get("llm.request.type") is not None:
        return "llm_call"
    return _OPERATIONS.get(span.name.partition(" ")[0], "thought")


def _name(span: Span) -> str:
    found = said(span.attributes, "gen_ai.tool.name", "tool.name", "traceloop.entity.name")
    return found or (span.name if span.name.strip() else "") or said(span.attributes, "gen_ai.operation.name") or "span"


def _decision(event: Event, attributes: Attributes) -> bool:
    """Claude Code's wait for a permission: what was decided, and by whom."""
    chosen = said(attributes, "decision")
    if chosen is None:
        return False
    source = said(attributes, "source") or ""
    event["decision"] = {
        "chosen": chosen,
        "options": [{"option": "accept"}, {"option": "reject"}],
        "decided_by": "user" if source.startswith("user") else "policy",
        "rationale": source or None,
    }
    return True


# --- what went in and came out ------------------------------------------------------------------------------------


def _content(event: Event, span: Span, kind: str) -> None:
    attributes = span.attributes
    given, result = _tool(attributes) if kind == "tool_call" else (None, None)
    system = unpacked(attributes.get("gen_ai.system_instructions"))
    told_in, told_out = _from_events(span)
    if given is None:
        messages = _messages(attributes, _INPUT, _SPREAD_INPUT)
        if messages is None:
            messages = told_in or None
        if messages is not None:
            given = {"messages": messages}
        prompt = said(attributes, "user_prompt")
        if given is None and prompt is not None:
            given = {"prompt": prompt}
    if system is not None:
        given = {"system_instructions": system, **(given if isinstance(given, dict) else {})}
    if given is not None:
        event["input"] = given
    if result is None:
        messages = _messages(attributes, _OUTPUT, _SPREAD_OUTPUT)
        if messages is None:
            messages = told_out or None
        if messages is not None:
            result = {"messages": messages}
    if result is not None:
        event["output"] = result


def _messages(attributes: Attributes, names: Sequence[str], spread: Sequence[str]) -> object:
    found = first(attributes, names)
    if found is not None:
        return unpacked(found)
    for prefix in spread:
        listed = unflattened(attributes, prefix)
        if listed:
            return listed
    return None


def _tool(attributes: Attributes) -> tuple[object, object]:
    """What a tool was called with and what it gave, where that is said outright."""
    given = unpacked(first(attributes, ("gen_ai.tool.call.arguments", "tool.parameters")))
    if given is None:
        told = {key: attributes[name] for key, name in (("command", "full_command"), ("file_path", "file_path")) if attributes.get(name)}  # fmt: skip
        given = told or None
    elif not isinstance(given, dict):
        given = {"arguments": given}
    return given, unpacked(first(attributes, ("gen_ai.tool.call.result",)))


def _from_events(span: Span) -> tuple[list[object], list[object]]:
    """Messages that are events of the span, as earlier versions of the conventions have it, and the output of Claude Code's tools."""
    went: list[object] = []
    came: list[object] = []
    for told in span.events:
        if told.name == "tool.output" and "output" in told.attributes:
            came.append({"role": "tool", "content": told.attributes["output"]})
        else:
            for to, messages in zip((went, came), messages_of(told.name, told.attributes), strict=True):
                to.extend(messages)
    return went, came


def messages_of(name: str, attributes: Attributes) -> tuple[list[object], list[object]]:
    """What an event of the GenAI conventions says went in and came out: one message, or whole lists of them."""
    if name in _MESSAGE_EVENTS:
        return [{"role": _MESSAGE_EVENTS[name], **_unpacked(attributes)}], []
    if name == "gen_ai.choice":
        return [], [{"role": "assistant", **_unpacked(attributes)}]
    if name == "gen_ai.content.prompt":
        return [unpacked(attributes.get("gen_ai.prompt"))], []
    if name == "gen_ai.content.completion":
        return [], [unpacked(attributes.get("gen_ai.completion"))]
    if name == "gen_ai.client.inference.operation.details":
        went, came = (unpacked(attributes.get(key)) for key in ("gen_ai.input.messages", "gen_ai.output.messages"))
        return went if isinstance(went, list) else [], came if isinstance(came, list) else []
    return [], []


def _unpacked(attributes: Attributes) -> Attributes:
    return {name: unpacked(value) for name, value in attributes.items() if name not in _NO_MESSAGE}


# --- figures, errors, the rest --------------------------------------------------------------------------------------


def _usage(event: Event, attributes: Attributes) -> None:
    went, came = count(attributes, _INPUT_TOKENS), count(attributes, _OUTPUT_TOKENS)
    tokens = count(attributes, _TOTAL_TOKENS) if went is None and came is None else (went or 0) + (came or 0)
    if tokens is not None:
        event["tokens_used"] = tokens
    cost = number(first(attributes, _COST))
    if cost is not None:
        event["cost"] = cost


def error_of(span: Span) -> str | None:
    """The text of a span's failure: its status says so, or an exception or error.type does and the status is not explicitly ok."""
    exceptions = [told.attributes for told in span.events if told.name == "exception"]
    kind = said(span.attributes, "error.type")
    if span.status != ERROR_STATUS and (span.status == OK_STATUS or (not exceptions and kind is None)):
        return None
    texts: list[str | None] = [span.message if span.message.strip() else None]
    texts += [said(found, "exception.message") for found in exceptions]
    texts += [said(found, "exception.type") for found in exceptions]
    texts += [said(span.attributes, "error", "error.message"), kind]
    return next((text for text in texts if text is not None), "error")


def _metadata(span: Span, event: Event) -> Event:
    attributes = span.attributes
    out: Event = {}
    if span.span_id:
        out["otel_span_id"] = span.span_id
    if span.parent_id:
        out["otel_parent_span_id"] = span.parent_id
    if "cost" in event:
        out["otel_cost_usd"] = event["cost"]
    provider = said(attributes, *_PROVIDER)
    if provider is not None:
        out["provider"] = provider
    call = said(attributes, *_CALL)
    if call is not None:
        out["call"] = event["call"] = call[:200]
    for name, names in _USAGE.items():
        found = count(attributes, names)
        if found is not None:
            out[f"{name}_tokens"] = found
    agent = said(attributes, "agent_id")
    if agent is not None:
        out["agent_id"] = agent
    for name, value in attributes.items():
        if name.startswith("gen_ai.") and name not in _PLACED and not _SPREAD.match(name):
            out[name] = value
    return out
