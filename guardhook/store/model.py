"""What the store hands out: traces, steps, decisions, snapshots, evaluations, events, runs. Plain tuples with named fields.

JSON columns stay text until somebody asks: fields that end in `_json` are compact JSON text, `as_dict` gives the documented shape with
them parsed (keys in the order of the documentation, absent values None).
"""

from __future__ import annotations

from _blake2 import blake2b
from typing import NamedTuple

from guardhook.core.jsontext import PayloadError, loads_text

STEP_TYPES = ("thought", "tool_call", "llm_call", "retrieval", "output", "decision", "error", "guard_check")
STATUSES = ("running", "completed", "failed", "timeout")
TRIGGERS = ("manual", "user_message", "cron", "webhook", "api", "event")
DECIDERS = ("agent", "user", "policy")
EVALUATORS = ("rubric", "llm_judge", "policy_check")

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def make_id(prefix: str, *parts: str) -> str:
    """`prefix_` and 12 characters of the URL-safe alphabet, always the same for the same parts."""
    number = int.from_bytes(blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=9).digest(), "big")
    out = []
    for _ in range(12):
        number, rest = divmod(number, 64)
        out.append(_ALPHABET[rest])
    return f"{prefix}_{''.join(out)}"


def step_id(trace_id: str, number: int) -> str:
    """The id of a step."""
    return make_id("stp", trace_id, str(number))


def parsed(text: str | None, otherwise: object) -> object:
    """The value of a JSON column; otherwise when it is absent or no JSON."""
    if text is None:
        return otherwise
    try:
        return loads_text(text, bounded=False)
    except PayloadError:
        return otherwise


def _object(text: str | None) -> dict[str, object]:
    value = parsed(text, {})
    return value if isinstance(value, dict) else {}


class Trace(NamedTuple):
    """One trace without its steps. status is as of reading: a harness that vanished shows as `timeout`."""

    id: str
    agent_name: str
    agent_version: str | None
    trigger: str
    status: str
    input_json: str
    output_json: str | None
    started_at: str
    ended_at: str | None
    total_duration_ms: int | None
    total_tokens: int | None
    total_cost_usd: float | None
    error: str | None
    tags_json: str
    metadata_json: str
    parent_trace_id: str | None
    forked_from_step: int | None
    session_id: str | None
    created_at: str
    # Beside the documented shape:
    dialect: str | None
    project: str | None  # the pinned project root, None when unknown
    live: bool  # written by a harness's hooks (else recorded, imported, forked)
    step_count: int
    effective_tokens: int | None  # total_tokens, else the sum over the steps
    effective_duration_ms: int | None  # total_duration_ms, else end - start
    serial: int  # key of this store only; changes when the store is rebuilt
    last_us: int | None  # when anything was last heard of it, microseconds since the epoch

    @property
    def input(self) -> object:
        return parsed(self.input_json, {})

    @property
    def output(self) -> object:
        return parsed(self.output_json, None)

    @property
    def metadata(self) -> dict[str, object]:
        return _object(self.metadata_json)

    @property
    def tags(self) -> list[object]:
        value = parsed(self.tags_json, [])
        return value if isinstance(value, list) else []

    def as_dict(self) -> dict[str, object]:
        """The trace's documented shape (without steps and evals)."""
        return {
            "id": self.id,
            "agent_name": self.agent_name,
            "agent_version": self.agent_version,
            "trigger": self.trigger,
            "status": self.status,
            "input": self.input,
            "output": self.output,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "total_duration_ms": self.total_duration_ms,
            "total_tokens": self.total_tokens,
            "total_cost_usd": self.total_cost_usd,
            "error": self.error,
            "tags": self.tags,
            "metadata": self.metadata,
            "parent_trace_id": self.parent_trace_id,
            "forked_from_step": self.forked_from_step,
            "session_id": self.session_id,
            "created_at": self.created_at,
        }

    def as_item(self) -> dict[str, object]:
        """The shape of one item of a list."""
        return {**self.as_dict(), "step_count": self.step_count, "effective_tokens": self.effective_tokens}


class Decision(NamedTuple):
    """What was chosen at a step, and why. step_number says where."""

    step_number: int
    step_name: str
    options_json: str
    chosen: str
    rationale: str | None
    confidence: float | None
    decided_by: str

    @property
    def options(self) -> list[object]:
        value = parsed(self.options_json, [])
        return value if isinstance(value, list) else []

    def as_dict(self, trace_id: str) -> dict[str, object]:
        """The documented shape of a decision."""
        step = step_id(trace_id, self.step_number)
        return {
            "id": make_id("dec", step),
            "step_id": step,
            "options": self.options,
            "chosen": self.chosen,
            "rationale": self.rationale,
            "confidence": self.confidence,
            "decided_by": self.decided_by,
        }


class Step(NamedTuple):
    """One step. decision is there when the step carries one."""

    step_number: int
    step_type: str
    name: str
    input_json: str
    output_json: str | None
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    tokens_used: int | None
    model: str | None
    error: str | None
    metadata_json: str
    parent_step_number: int | None
    caused_by_step_number: int | None
    options_json: str | None
    chosen: str | None
    rationale: str | None
    confidence: float | None
    decided_by: str | None

    @property
    def input(self) -> object:
        return parsed(self.input_json, {})

    @property
    def output(self) -> object:
        return parsed(self.output_json, None)

    @property
    def metadata(self) -> dict[str, object]:
        return _object(self.metadata_json)

    @property
    def decision(self) -> Decision | None:
        if self.chosen is None:
            return None
        return Decision(
            self.step_number, self.name, self.options_json or "[]", self.chosen, self.rationale, self.confidence,
            self.decided_by or "agent",
        )  # fmt: skip

    def as_dict(self, trace_id: str) -> dict[str, object]:
        """The step's documented shape; `decision` only when there is one."""
        out: dict[str, object] = {
            "id": step_id(trace_id, self.step_number),
            "trace_id": trace_id,
            "step_number": self.step_number,
            "step_type": self.step_type,
            "name": self.name,
            "input": self.input,
            "output": self.output,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "duration_ms": self.duration_ms,
            "tokens_used": self.tokens_used,
            "model": self.model,
            "error": self.error,
            "metadata": self.metadata,
            "parent_step_number": self.parent_step_number,
            "caused_by_step_number": self.caused_by_step_number,
        }
        decision = self.decision
        if decision is not None:
            out["decision"] = decision.as_dict(trace_id)
        return out


class Snapshot(NamedTuple):
    """What a step saw: context, environment, state of its tools."""

    step_number: int
    context_window_json: str
    environment_json: str
    tool_state_json: str
    token_count: int

    def as_dict(self) -> dict[str, object]:
        """The documented shape. A context window that is no JSON is given as its text."""
        return {
            "context_window": parsed(self.context_window_json, self.context_window_json),
            "environment": _object(self.environment_json),
            "tool_state": _object(self.tool_state_json),
            "token_count": self.token_count,
        }


class Evaluation(NamedTuple):
    """A stored result of an evaluator."""

    id: str
    trace_id: str
    evaluator_type: str
    evaluator_name: str
    score: float
    passed: bool
    details_json: str
    evaluated_at: str

    def as_dict(self) -> dict[str, object]:
        return {
            "id": self.id,
            "trace_id": self.trace_id,
            "evaluator_type": self.evaluator_type,
            "evaluator_name": self.evaluator_name,
            "score": self.score,
            "passed": self.passed,
            "details": _object(self.details_json),
            "evaluated_at": self.evaluated_at,
        }


class Happening(NamedTuple):
    """Something in a session that is no step: a prompt, a start or end, a notification. It lies before the step `before_step`.

    event is the canonical event; text is the prompt, message or reason.
    """

    seq: int
    ts: str
    event: str
    native_event: str | None
    before_step: int
    text: str | None
    detail_json: str

    @property
    def detail(self) -> dict[str, object]:
        return _object(self.detail_json)


class Run(NamedTuple):
    """One segment of a session, from an opening event to the session's end."""

    segment: int
    run: str
    first_seq: int
    last_seq: int
    opened_at: str
    closed_at: str | None


class Problem(NamedTuple):
    """A journal line that could not be folded, or a gap. line counts from 1."""

    file: str
    line: int
    offset: int
    kind: str
    detail: str
