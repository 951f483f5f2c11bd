"""Golden files: what a good run did, kept to compare later runs with. This module makes entries; guardhook.store.golden_check compares.

An entry: {id, agent_name, input, expected_output, steps_summary: [{step_number, step_type, name, input (of tool calls), model (when known),
failed}], eval_criteria: [{evaluator_name, score, passed}], metadata: the trace's own, with status, total_duration_ms, total_tokens, tags}.
"""

from __future__ import annotations

import hashlib
import json

from guardhook.store.model import Step, Trace
from guardhook.store.query import Store

_OURS = ("status", "total_duration_ms", "total_tokens", "tags")
_EXACT = 1 << 53  # up to here a float is the whole number that it looks like
DISPLACED = "trace_metadata_"  # before a key of the trace's metadata whose name the entry needs itself


def entry(store: Store, trace: Trace, *, steps: bool = True) -> dict[str, object]:
    """The golden entry of a trace. steps=False leaves `steps_summary` empty, for who writes the summaries one by one."""
    metadata = {(DISPLACED + k if k in _OURS else k): v for k, v in trace.metadata.items()}
    return {
        "id": trace.id,
        "agent_name": trace.agent_name,
        "input": trace.input,
        "expected_output": trace.output,
        "steps_summary": [summary(step) for step in store.steps(trace)] if steps else [],
        "eval_criteria": [
            {"evaluator_name": e.evaluator_name, "score": e.score, "passed": e.passed}
            for e in store.evaluations(trace)
            if not _skipped(e.as_dict()["details"])
        ],
        "metadata": {
            **metadata,
            "status": trace.status,
            "total_duration_ms": trace.effective_duration_ms,
            "total_tokens": trace.effective_tokens,
            "tags": trace.tags,
        },
    }


def _skipped(details: object) -> bool:
    """An evaluation that was not made says nothing of the run."""
    return isinstance(details, dict) and details.get("skipped") is True


def summary(step: Step) -> dict[str, object]:
    """What a golden entry keeps of a step."""
    out: dict[str, object] = {"step_number": step.step_number, "step_type": step.step_type, "name": step.name}
    if step.step_type == "tool_call":
        out["input"] = step.input
    if step.model is not None:
        out["model"] = step.model
    out["failed"] = step.error is not None
    return out


def match_key(agent: object, given: object) -> str | None:
    """What a run and its baseline have in common: the agent, and the input whatever the order of its keys. None: matches nothing."""
    if not isinstance(agent, str) or given is None or given in ("", {}, []):
        return None
    digest = hashlib.sha256(canonical(given).encode()).hexdigest()
    return f"{agent}\0{digest}"


def canonical(value: object) -> str:
    """ASCII text that is equal for equal JSON values, whatever the order of keys; `1.0` is `1`, and `true` is not."""
    return json.dumps(_whole(value), sort_keys=True, separators=(",", ":"))


def _whole(value: object) -> object:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, dict):
        return {key: _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, list) else value
