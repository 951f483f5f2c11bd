"""Events that are told only when `[forensics]` asks for them. Each says no more than a hook can know.

Costs are those that somebody reported; a run without any has no cost anomaly. Context edges of the causal graph exist only where a model hook gave the messages with
ids; else the graph says `context: "not-recorded"`. Prompt hashes exist only where a model hook or an import knows the messages.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import msgspec

from guardhook.journal import modifying
from guardhook.rollout import causal, limits
from guardhook.rollout.lines import dump
from guardhook.store.model import parsed

if TYPE_CHECKING:
    from guardhook.rollout.options import Options
    from guardhook.rollout.render import Renderer
    from guardhook.rollout.state import Call

LOOP = 3
_EQUAL_MOST = 50_000
_CLASSES = ("provider", "tool_execution", "resource")


class Causal:
    """What the graph is made of: collected while rendering, thrown away with the renderer."""

    def __init__(self) -> None:
        self.graph = causal.Graph()
        self.calls: list[tuple[str, str]] = []
        self.results: list[tuple[str, str]] = []
        self.context = False


# --- calls ---------------------------------------------------------------------------------------------------------


def called(r: Renderer, call: Call, kind: str | None = None) -> None:
    """A call has started."""
    options, state = r.options, r.state
    own = state.families
    if options.audit_trail_enabled and _audited(call.tool, kind, options):
        r.emit("audit.action", {"tool": call.tool, "call_id": call.id, "arguments": call.arguments})
    if options.detect_anti_patterns:
        key = _same(call, options.volatile_arguments)
        count = own.equal_calls.get(key, 0) + 1
        if key in own.equal_calls or len(own.equal_calls) < _EQUAL_MOST:
            own.equal_calls[key] = count
        if count == LOOP:
            r.emit(
                "tool.antipattern", {"type": "retry_loop", "tool": call.tool, "call_count": count, "call_id": call.id}
            )
    if options.trace_tool_decisions:
        own.selected.append(call.tool)
    if options.error_chain_enabled:
        own.window_calls.append({"name": call.tool, "call_id": call.id, "args": call.arguments[: limits.TEXT]})
        del own.window_calls[: -max(1, options.error_context_depth)]
    if r.causal is not None:
        r.causal.graph.node(call.id, "tool_call", call.step, call.tool)
        if len(r.causal.calls) < causal.ARGUMENTS:
            r.causal.calls.append((call.id, call.arguments[: limits.TEXT]))


def _audited(tool: str, kind: str | None, options: Options) -> bool:
    """Whether the audit trail keeps such a call (guardhook.journal.audit)."""
    less = tuple(t.casefold() for t in options.audit_exceptions)
    if modifying.changes(tool, tuple(t.casefold() for t in options.audit_tools), less) != modifying.NO:
        return True
    return kind in ("shell", "file_write", "file_edit") and tool.casefold() not in less


def _same(call: Call, volatile: tuple[str, ...]) -> str:
    """Equal for calls that do the same: what only describes a call, or bounds it, does not count."""
    value = parsed(call.arguments, call.arguments)
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k not in volatile}
    raw = msgspec.json.encode([call.tool, value], order="deterministic")
    return hashlib.sha256(raw).hexdigest()[:24]


def result(r: Renderer, call_id: str, tool: str, output: str, error: str | None) -> None:
    """A call has ended."""
    own = r.state.families
    if error is not None and r.options.error_chain_enabled:
        for entry in own.window_calls:
            if entry.get("call_id") == call_id:
                entry["error_msg"] = error[: limits.TEXT]
    if r.options.context_window_snapshot_enabled:
        own.result_tokens += estimate(output)
    if r.causal is not None and len(r.causal.results) < causal.RESULTS:
        r.causal.results.append((call_id, output[: limits.TEXT]))


def mutated(r: Renderer, call_id: str, hook: str, action: str, before: str, after: str) -> None:
    """A call's input was changed, put in, or kept from running."""
    if not r.options.trace_hook_mutations:
        return
    kind = mutation(before, after, blocked=action == "Block")
    if kind != "Allow":
        r.emit(
            "tool.hook.mutation",
            {"tool_call_id": call_id, "hook": hook, "action": kind, "args_before": before, "args_after": after},
        )


def mutation(before: str, after: str, *, blocked: bool) -> str:
    """What a hook did: Block, Allow (nothing), Inject (there was no input), Modify."""
    if blocked:
        return "Block"
    if before == after:
        return "Allow"
    return "Inject" if before.strip() in ("", "null") else "Modify"


# --- turns ---------------------------------------------------------------------------------------------------------


def turn(r: Renderer) -> None:
    """A turn of the model is complete."""
    if r.causal is not None:
        r.causal.graph.node(f"turn-{r.state.step}", "llm_turn", r.state.step)


def end_of_turn(r: Renderer) -> None:
    """The step is over, or looked at as if it were: what it chose."""
    own = r.state.families
    if not own.selected:
        return
    own.decisions += 1
    chosen, own.selected = own.selected, []
    r.emit(
        "tool.decision",
        {"call_sequence": own.decisions, "call_sequence_id": f"call_{own.decisions}", "available_tools": None, "selected_tools": chosen},
    )  # fmt: skip


def said(r: Renderer, role: str, content: str) -> None:
    """Somebody said something."""
    own, options = r.state.families, r.options
    if options.error_chain_enabled:
        own.window_messages.append({"role": role, "content": content[: limits.TEXT]})
        del own.window_messages[: -max(1, options.error_context_depth)]
    if options.context_window_snapshot_enabled:
        own.conversation_tokens += estimate(content)


def request(r: Renderer, messages: list[object] | None, tools: list[str] | None) -> None:
    """A model is asked. messages where the harness shows them."""
    if messages is not None and r.causal is not None:
        for message in messages:
            name = _message_id(message)
            if name is not None:
                r.causal.context = True
                r.causal.graph.context(name, f"turn-{r.state.step}")
    if r.options.capture_request_envelope and messages is not None:
        key = r.options.prompt_hash_key
        r.emit(
            "llm.request.snapshot",
            {"prompt_hash": prompt_hash(messages, key), "prompt_hash_kind": "hmac-sha256" if key else "sha256", "tool_names": tools},
        )  # fmt: skip


def _message_id(message: object) -> str | None:
    if isinstance(message, dict):
        for name in ("tool_call_id", "correlation_id", "id"):
            found = message.get(name)
            if isinstance(found, str) and found:
                return found
    return None


def prompt_hash(messages: list[object], key: str | None) -> str:
    """SHA-256 of all contents and arguments of the messages in their order; with a key the keyed digest, which nobody without the key can guess prompts by."""
    digest = hmac.new(key.encode(), digestmod=hashlib.sha256) if key else hashlib.sha256()
    for message in messages:
        if not isinstance(message, dict):
            digest.update(dump(message).encode())
            continue
        content = message.get("content")
        if content is not None:
            digest.update(dump(content).encode())
        made = message.get("tool_calls")
        for one in made if isinstance(made, list) else []:
            function = one.get("function", one) if isinstance(one, dict) else None
            if isinstance(function, dict) and function.get("arguments") is not None:
                digest.update(dump(function["arguments"]).encode())
    return digest.hexdigest()


def meta(r: Renderer, latency_ms: int, model: str | None) -> None:
    """A model answered."""
    if r.options.capture_request_envelope:
        r.emit("llm.response.meta", {"latency_ms": latency_ms, "model_version": model})


def spent(r: Renderer, cost: float | None) -> None:
    """What a turn cost, where that was reported."""
    if not r.options.cost_anomaly_detection_enabled or cost is None:
        return
    own = r.state.families
    average = own.costs / own.cost_steps if own.cost_steps else 0.0
    if anomalous(cost, average, r.options.cost_anomaly_step_multiplier):
        r.emit(
            "cost.anomaly",
            {
                "anomaly_type": "step_multiplier", "step_cost_usd": cost, "avg_cost_usd": average,
                "threshold_multiplier": r.options.cost_anomaly_step_multiplier,
            },
        )  # fmt: skip
    own.costs += cost
    own.cost_steps += 1


def anomalous(cost: float, average: float, multiplier: float) -> bool:
    """Whether a step costs that many times the average of all steps before it; never without an average above zero."""
    return average > 0 and cost >= (multiplier if multiplier > 0 else 2.0) * average


# --- the context window ---------------------------------------------------------------------------------------------


def estimate(text: str) -> int:
    """Roughly how many tokens a text has: a quarter of its code points, rounded up."""
    return (len(text) + 3) // 4


def window(r: Renderer, turn: dict[str, int]) -> None:
    """How full the context window was at a turn."""
    options = r.options
    if not options.context_window_snapshot_enabled:
        return
    own = r.state.families
    told = turn.get("prompt_tokens", 0)
    guessed = own.conversation_tokens + own.result_tokens
    used = told if told > 0 else guessed
    ratio, headroom = fullness(used, options.model_context_window)
    r.emit(
        "context.window.snapshot",
        {
            "provider_reported_tokens": told, "provider_reported": told > 0, "estimated_total_tokens": guessed,
            "max_context_tokens": options.model_context_window, "usage_ratio": ratio, "headroom_tokens": headroom,
            "breakdown": {
                "system_prompt_tokens": 0, "conversation_tokens": own.conversation_tokens, "tool_result_tokens": own.result_tokens,
                "estimated": True,
            },
        },
    )  # fmt: skip
    threshold = options.context_window_warning_threshold
    if 0 < threshold <= ratio:
        r.emit(
            "context.window.warning",
            {
                "usage_ratio": ratio, "threshold": threshold, "provider_reported": told > 0, "tokens_used": used,
                "max_context_tokens": options.model_context_window,
            },
        )  # fmt: skip


def fullness(used: int, window: int) -> tuple[float, int]:
    """(ratio, tokens left) of a context window; 0 and 0 when its size is unknown. What is left may be below zero."""
    return (used / window, window - used) if window > 0 else (0.0, 0)


# --- the end --------------------------------------------------------------------------------------------------------


def graph(r: Renderer) -> None:
    """The causal graph, before the run's end."""
    own = r.causal
    if own is None:
        return
    made = own.graph.as_dict()
    edges = [*own.graph.edges, *causal.data_flow(own.calls, own.results)]
    data: dict[str, object] = {"graph": {**made, "edges": edges}}
    if not own.context:
        data["context"] = "not-recorded"
    if own.graph.cut:
        data["truncated"] = True
    r.emit("causal.graph.snapshot", data)


def error_context(r: Renderer) -> None:
    """What went before a failure, right before run.failed."""
    options, state = r.options, r.state
    if not options.error_chain_enabled:
        return
    kind = state.failed_by if state.failed_by in _CLASSES else "provider"
    own = state.families
    r.emit(
        "error.context",
        {
            "class": kind, "error": f"[{kind}] {state.failed or 'the run failed'}"[: limits.TEXT],
            "snapshot": {
                "captured_at": r.ts, "tool_calls": own.window_calls, "messages": own.window_messages, "depth": options.error_context_depth,
            },
        },
    )  # fmt: skip
