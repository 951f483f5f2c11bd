"""JSON schemas of what the interface takes and gives. Further members may be added to what it gives."""

from __future__ import annotations

Schema = dict[str, object]

_TEXT: Schema = {"type": "string"}
_OPTIONAL_TEXT: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "integer"}
_OPTIONAL_NUMBER: Schema = {"type": ["integer", "null"]}
_AMOUNT: Schema = {"type": ["number", "null"]}
_YES: Schema = {"type": "boolean"}
_ANY: Schema = {}
_MAP: Schema = {"type": "object"}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TRACE: dict[str, Schema] = {
    "id": _TEXT, "agent_name": _TEXT, "agent_version": _OPTIONAL_TEXT, "trigger": _TEXT,
    "status": {"enum": ["running", "completed", "failed", "timeout"]}, "input": _ANY, "output": _ANY, "started_at": _TEXT, "ended_at": _OPTIONAL_TEXT,
    "total_duration_ms": _OPTIONAL_NUMBER, "total_tokens": _OPTIONAL_NUMBER, "total_cost_usd": _AMOUNT, "error": _OPTIONAL_TEXT, "tags": _list(_ANY),
    "metadata": _MAP, "parent_trace_id": _OPTIONAL_TEXT, "forked_from_step": _OPTIONAL_NUMBER, "session_id": _OPTIONAL_TEXT, "created_at": _TEXT,
}  # fmt: skip
_STEP: dict[str, Schema] = {
    "id": _TEXT, "trace_id": _TEXT, "step_number": _NUMBER, "step_type": _TEXT, "name": _TEXT, "input": _ANY, "output": _ANY, "started_at": _OPTIONAL_TEXT,
    "ended_at": _OPTIONAL_TEXT, "duration_ms": _OPTIONAL_NUMBER, "tokens_used": _OPTIONAL_NUMBER, "model": _OPTIONAL_TEXT, "error": _OPTIONAL_TEXT,
    "metadata": _MAP, "parent_step_number": _OPTIONAL_NUMBER, "caused_by_step_number": _OPTIONAL_NUMBER,
}  # fmt: skip
_DECISION: dict[str, Schema] = {
    "id": _TEXT, "step_id": _TEXT, "options": _list(_ANY), "chosen": _TEXT, "rationale": _OPTIONAL_TEXT, "confidence": _AMOUNT, "decided_by": _TEXT,
}  # fmt: skip
_RUN: dict[str, Schema] = {
    "run_id": _TEXT, "trace_id": _TEXT, "session_id": _OPTIONAL_TEXT, "dialect": _OPTIONAL_TEXT, "client": _OPTIONAL_TEXT, "opened_at": _OPTIONAL_TEXT,
    "closed_at": _OPTIONAL_TEXT, "open": _YES, "first_seq": _OPTIONAL_NUMBER, "last_seq": _OPTIONAL_NUMBER,
}  # fmt: skip
_SIMULATION: dict[str, Schema] = {
    "mode": {"const": "simulate"}, "events_replayed": _NUMBER, "step_count": _NUMBER, "matched": _YES, "mismatches": _list(_ANY),
}  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "Any": _ANY,
    "Error": _object({"error": _object({"code": _TEXT, "message": _TEXT})}),
    "Health": _object({"ok": _YES, "version": _TEXT}),
    "Trace": _object(_TRACE),
    "TraceItem": _object({**_TRACE, "step_count": _NUMBER, "effective_tokens": _OPTIONAL_NUMBER}),
    "TracePage": _object({"items": _list(_ref("TraceItem")), "total": _NUMBER}),
    "Decision": _object(_DECISION),
    "Step": _object(_STEP, {"decision": _ref("Decision"), "snapshot": {"type": ["object", "null"]}}),
    "TraceWithSteps": _object({"id": _TEXT, "steps": _list(_ref("Step"))}, {**_TRACE, "evals": _list(_MAP), "step_window": _MAP}),
    "Decisions": _object({"trace_id": _TEXT, "decisions": _list(_object({"step_number": _NUMBER, "name": _TEXT}, _DECISION))}),
    "Why": _object({"trace_id": _TEXT, "step": _NUMBER, "chain": _list(_object({"step_number": _NUMBER, "step_type": _TEXT, "name": _TEXT, "link": _TEXT, "decision": _ANY}))}),
    "Stats": _object({"since": _OPTIONAL_TEXT, "overall": _MAP, "by_status": _MAP, "by_agent": _list(_MAP)}),
    "StepEvents": {"type": "string", "description": "Server-sent events `step` and `step_ended` (data: Step) and `trace` (data: TraceItem)."},
    "JournalEvents": {"type": "string", "description": "Server-sent events named after the journal line's type; data: {trace_id, ts, seq, type, data}."},
    "Run": _object(_RUN),
    "RunPage": _object({"items": _list(_ref("Run")), "total": _NUMBER}),
    "Stated": _object({}, {"complete": _YES, "packed": _YES, "run_id": _TEXT, "session_id": _TEXT, "principal": _TEXT, "tenant": _TEXT, "started_at": _ANY, "ended_at": _ANY, "dropped_events": _NUMBER, "policy_id": _TEXT, "privacy": _TEXT, "max_events": _NUMBER}),
    "Archive": _object({"format": _TEXT, "producer": _MAP, "run": _MAP, "privacy": _MAP, "recording": _MAP}, {"configuration": _MAP}),
    "Account": _object({"account": _MAP, "shown": _MAP}),
    "Shown": _object({"pointer": _TEXT}, {"value": _ANY, "withheld": {"enum": ["not-allowed", "too-large", "missing", "redacted"]}}),
    "Assessment": _object({"assessment": {"type": ["object", "null"]}}),
    "RolloutLines": {"type": "string", "description": "One JSON object for each line: {ts, seq, type, data}."},
    "ReplayRequest": _object(
        {"rollout_path": _TEXT, "mode": {"enum": ["simulate", "fork"]}},
        {"fork_step": _NUMBER, "detect_drift": _YES, "detail": _YES},
    ),
    "Replay": {"oneOf": [
        _object(_SIMULATION, {"detail": _MAP}),
        _object({"mode": {"const": "simulate"}, "matched": _YES, "integrity": _MAP, "drift": _MAP}),
        _object({"mode": {"const": "fork"}, "run_id": _TEXT, "from_step": _NUMBER, "original_step_count": _NUMBER, "original_outcome": _TEXT, "messages_restored": _NUMBER}),
    ]},
}  # fmt: skip
