"""Events without their contents, where a person wants those hashed or left out: names, times, figures and what failed stay."""

from __future__ import annotations

from guardhook.journal import redact

MODES = ("hashed", "none")
NOT_KEPT = "[not kept]"  # where something must stand
# Fields of events in which no text of others stands.
PLAIN = frozenset((
    "step_number", "step_type", "started_at", "ended_at", "duration_ms", "tokens_used", "parent_step", "caused_by_step", "agent_name",
    "trigger", "status", "session_id", "total_tokens", "total_duration_ms", "total_cost_usd", "created_at", "dialect", "parent_trace_id",
    "forked_from_step", "confidence", "decided_by", "token_count", "score", "passed", "evaluator_type", "evaluated_at",
))  # fmt: skip
_KEPT = PLAIN | {"parent_step_number", "caused_by_step_number", "name", "model", "agent_version", "evaluator_name", "tags", "id", "project"}  # fmt: skip
_KEPT_METADATA = frozenset((
    "source", "source_format", "source_file", "source_version", "call", "kind", "agent_id", "agent_type", "hook_anchor", "usage", "records",
    "models", "model", "interrupted", "blocked", "compacted", "unanswered", "item_type", "permission", "exit_code", "signal", "finalized",
))  # fmt: skip


def bare(fields: dict[str, object], mode: str) -> tuple[dict[str, object], list[str]]:
    """The fields with contents hashed or left out, and JSON pointers of what was changed. mode is one of MODES."""
    out: dict[str, object] = {}
    pointers: list[str] = []
    for name, value in fields.items():
        if name in _KEPT or value is None or isinstance(value, bool):
            out[name] = value
            continue
        if name == "metadata" and isinstance(value, dict):
            out[name] = kept = {
                k: v for k, v in value.items() if k in _KEPT_METADATA or not isinstance(v, (str, list, dict))
            }
            rest = {k: v for k, v in value.items() if k not in kept}
            if rest:
                changed, _ = redact.redact(rest, (), mode)
                out[name] = {**kept, **changed} if isinstance(changed, dict) else kept
                pointers.append("/metadata")
        elif name == "decision" and isinstance(value, dict):
            out[name], more = bare(value, mode)
            pointers += [f"/decision{pointer}" for pointer in more]
        elif name == "chosen" and mode == "none":
            out[name] = NOT_KEPT
            pointers.append("/chosen")
        elif name == "options" and mode == "none":
            pointers.append("/options")
        else:
            out[name], changes = redact.redact(value, (), mode)
            pointers += [f"/{name}"] if changes else []
    return out, pointers
