"""Folding `trace.part` lines: a run told in parts that arrive in any order, late, or more than once (spans and log records of OTLP).

data.event of such a line:
- part: the part's identity within the trace; a part that is there already changes nothing. role: `step`, `root` (the run as a whole), `prompt`,
  `event` (something between the steps), `detail` (messages of the step that it is within) or `metrics`.
- at: when it began, microseconds since the epoch; parts without it come last. ended: when it ended, likewise.
- within, cause: identities of the part that it lies in and of the one that caused it; call: the id of a tool call.
- trace: facts about the whole run: agent, service, version, trigger, session, dialect, format, metadata.
- of a step and a root: step_type, name, input, output, duration_ms, tokens_used, model, error, metadata, decision; answer: its output is also the run's;
  cost: US dollars; fails: the run failed with it unless its root says otherwise.
- of a detail: input, output, lists of messages; they count where the step has none of its own.
- of a prompt: text; of an event: event, native, text, detail; of metrics: metrics, name -> {unit, kind, value} or {…, values: {attributes: value}}.

The trace is what all of its parts say together, in whatever order they came. The earliest root is the run itself and no step; later roots are
steps. Steps are numbered by their start in the end (guardhook.store.arrange).
"""

from __future__ import annotations

from guardhook.store import instants, protocol
from guardhook.store.facts import flat, text
from guardhook.store.given import Refused, decision_of, structured
from guardhook.store.model import STEP_TYPES
from guardhook.store.state import Lead, Part, Parts, Row, Sink, State
from guardhook.store.steps import count_tokens, follow_run, millis

ROLES = ("step", "root", "prompt", "event", "detail", "metrics")
_US_MOST = 253_402_300_800_000_000  # the year 10000
_METRICS_MOST = 200  # series kept per trace
_NEVER = 1 << 62  # sorts behind every instant


def apply(
    sink: Sink, state: State | None, seq: int, ts: str, us: int, data: dict[str, object], event: dict[str, object]
) -> State:
    """Folds one part into its trace. Raises Refused."""
    name, role = event.get("part"), event.get("role")
    problem = protocol.id_problem(name)
    if problem is not None or not isinstance(name, str):
        raise Refused(f"the part: {problem}")
    if role not in ROLES:
        raise Refused(f"role is none of {', '.join(ROLES)}")
    if role in ("step", "root") and (event.get("step_type") not in STEP_TYPES or not text(event.get("name"))):
        raise Refused("the part has no step_type or name that could be used")
    decision = event.get("decision")
    if decision is not None and (not isinstance(decision, dict) or protocol.decision_problem(decision)):
        raise Refused("the decision can't be used")
    facts = event.get("trace")
    if not isinstance(facts, dict):
        facts = {}
    if state is None:
        state = _begin(text(data.get("trace")) or "", ts, facts)
    elif state.parts is None:
        raise Refused("the trace was not told in parts")
    state.last_us = max(state.last_us or 0, us)
    follow_run(sink, state, seq, ts, data)
    if sink.part_known(state, name):
        return state
    parts = state.parts
    assert parts is not None
    kind = "decision" if role == "step" and event.get("step_type") == "decision" else str(role)
    part = Part(
        name, kind, seq, _instant(event.get("at")), None, text(event.get("within")), text(event.get("cause")), text(event.get("call"))
    )  # fmt: skip
    lead = Lead(
        role != "root", _NEVER if part.at is None or role == "detail" else part.at, part.within is not None, name
    )
    _facts(state, parts, lead, facts)
    _time(state, part, event)
    if role == "detail":
        part.row = _row(part, {**event, "step_type": "thought", "name": "detail"})
    elif role == "prompt":
        _prompt(sink, state, parts, part, ts, event)
    elif role == "event":
        _happening(sink, state, part, ts, event)
    elif role == "metrics":
        _metrics(state, event)
    else:
        _step(sink, state, parts, part, lead, event)
    sink.part(state, part)
    return state


def _begin(name: str, ts: str, facts: dict[str, object]) -> State:
    now = millis(ts)
    state = State(id=name, agent_name="agent", started_at=now, created_at=now, status="completed", parts=Parts())
    state.trigger = protocol.trigger(facts.get("trigger"))
    state.dialect = text(facts.get("dialect"))
    form = text(facts.get("format"))
    if form is not None:
        state.metadata["source_format"] = form
    if facts.get("rooted") is True:
        state.metadata["synthetic_trace"] = True
    return state


def _instant(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _US_MOST else None


def _facts(state: State, parts: Parts, lead: Lead, facts: dict[str, object]) -> None:
    """What is known of the run as a whole: the leading part (the root, else the earliest) names it, others fill what is missing."""
    leads = parts.lead is None or lead < parts.lead
    if leads:
        parts.lead = lead
    agent = text(facts.get("agent")) or text(facts.get("service"))
    if agent is not None and (leads or state.agent_name == "agent"):
        state.agent_name = agent
    version = protocol.plain(facts.get("version"))
    if version is not None and (leads or state.agent_version is None):
        state.agent_version = version
    session = text(facts.get("session"))
    if session is not None and (leads or state.session_id is None):
        state.session_id = session
    given = facts.get("metadata")
    if isinstance(given, dict):
        for key, value in given.items():
            state.metadata.setdefault(key, value)


def _time(state: State, part: Part, event: dict[str, object]) -> None:
    ended = _instant(event.get("ended"))
    first = part.at if part.at is not None else ended
    if first is not None and (state.started_us is None or first < state.started_us):
        state.started_us, state.started_at = first, instants.iso_ms(first)
    last = ended if ended is not None else part.at
    if last is not None and (state.ended_us is None or last > state.ended_us):
        state.ended_us, state.ended_at = last, instants.iso_ms(last)
    if state.started_us is not None and state.ended_us is not None and state.ended_us >= state.started_us:
        state.total_duration_ms = (state.ended_us - state.started_us) // 1000


def _moment(part: Part, ts: str) -> str:
    return millis(ts) if part.at is None else instants.iso_ms(part.at)


def _prompt(sink: Sink, state: State, parts: Parts, part: Part, ts: str, event: dict[str, object]) -> None:
    said = text(event.get("text"))
    if said is None:
        return
    sink.happen(state, part.seq, _moment(part, ts), "user_prompt", text(event.get("native")), said, {})
    at = _NEVER if part.at is None else part.at
    if parts.prompt is None or at < parts.prompt[0]:
        parts.prompt = (at, said)
        if not parts.says_input:
            state.input = {"prompt": said}


def _happening(sink: Sink, state: State, part: Part, ts: str, event: dict[str, object]) -> None:
    detail = event.get("detail")
    sink.happen(
        state,
        part.seq,
        _moment(part, ts),
        text(event.get("event")) or "other",
        text(event.get("native")),
        text(event.get("text")),
        detail if isinstance(detail, dict) else {},
    )


def _step(sink: Sink, state: State, parts: Parts, part: Part, lead: Lead, event: dict[str, object]) -> None:
    row = _row(part, event)
    if row.tokens_used:
        state.total_tokens = max(0, min((state.total_tokens or 0) + row.tokens_used, protocol.MOST))
    cost = protocol.cost(event.get("cost"))
    if cost is not None and cost >= 0:
        state.total_cost_usd = (state.total_cost_usd or 0.0) + cost
    decision = event.get("decision")
    if part.role == "root" and (parts.root is None or lead < parts.root):
        before = parts.root
        parts.root = lead
        part.row = row
        if before is not None:  # an agent within the one that we hear of now
            old = sink.part_step(state, before.name, state.next)
            if old is not None:
                _add(sink, state, old)
        _identity(state, parts, row)
        return
    part.number = state.next
    row.number = state.next
    _add(sink, state, row)
    if isinstance(decision, dict):
        sink.decide(state, row.number, decision_of(decision))
    at = _NEVER if part.at is None else part.at
    if event.get("answer") is True and row.output is not None and (parts.answer is None or at >= parts.answer[0]):
        parts.answer = (at, row.output)
        if not parts.says_output:
            state.output = row.output
    if event.get("fails") is True and (parts.failed_at is None or at < parts.failed_at):
        parts.failed_at = at
        if parts.root is None:
            state.status, state.error = "failed", row.error or "error"


def _identity(state: State, parts: Parts, row: Row) -> None:
    """The root is the run itself: what it says goes, and only what it does not say is taken from other parts."""
    parts.says_input, parts.says_output = row.input != {}, row.output is not None
    prompt = {} if parts.prompt is None else {"prompt": parts.prompt[1]}
    state.input = row.input if parts.says_input else prompt
    state.output = row.output if parts.says_output or parts.answer is None else parts.answer[1]
    state.status, state.error = ("completed", None) if row.error is None else ("failed", row.error)
    kept = {key: value for key, value in state.metadata.items() if key not in parts.own and key != "synthetic_trace"}
    parts.own = [key for key in row.metadata if key not in kept]
    state.metadata = {**row.metadata, **kept}


def _add(sink: Sink, state: State, row: Row) -> None:
    state.next = max(state.next, row.number + 1)
    state.step_count += 1
    if row.tokens_used is not None:
        count_tokens(state, row.tokens_used)
    sink.add(state, row)


def _row(part: Part, event: dict[str, object]) -> Row:
    metadata = event.get("metadata")
    ended = _instant(event.get("ended"))
    tokens, duration = protocol.whole(event.get("tokens_used")), protocol.whole(event.get("duration_ms"))
    given = structured(event.get("input"))
    return Row(
        0,
        "thought" if part.role == "root" else str(event["step_type"]),
        str(event["name"]),
        {} if given is None else given,
        structured(event.get("output")),
        None if part.at is None else instants.iso_ms(part.at),
        None if ended is None else instants.iso_ms(ended),
        None if duration is None or duration < 0 else duration,
        None if tokens is None or tokens < 0 else tokens,
        protocol.plain(event.get("model")),
        protocol.error_text(event.get("error"), flat),
        dict(metadata) if isinstance(metadata, dict) else {},
        None,
        None,
    )


def _metrics(state: State, event: dict[str, object]) -> None:
    """Sums: differences are added up, running totals replace each other, each series on its own."""
    given = event.get("metrics")
    if not isinstance(given, dict):
        return
    before = state.metadata.get("metrics")
    kept: dict[str, object] = dict(before) if isinstance(before, dict) else {}
    for name, told in given.items():
        if not isinstance(told, dict):
            continue
        value = protocol.cost(told.get("value"))
        if value is None or (name not in kept and len(kept) >= _METRICS_MOST):
            continue
        old = kept.get(name)
        if isinstance(old, dict) and told.get("adds") is True:
            value += protocol.cost(old.get("value")) or 0.0
        kept[name] = {"value": value, "unit": text(told.get("unit")) or ""}
    state.metadata["metrics"] = kept
