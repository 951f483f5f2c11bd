"""From journal lines to traces: a pure function of the lines of one session, in their order.

`hook` takes one line at a time and tells a sink what changed. All memory is in the trace's State, so folding can stop anywhere
and go on later with the same result. What each event does:

- session_start, user_prompt, pre_tool, permission_request, subagent_start open the session's trace when there is none; results and ends
  of a session that nothing opened make no trace.
- pre_tool: a tool_call step. Verdicts other than a plain allow: a guard_check step caused by it, with a decision. A blocked call is closed at once.
- post_tool, post_tool_failure: close the call with the same id, else the oldest open one of equal agent, tool and input. A result that fits no
  call becomes a step of its own, marked `unpaired`.
- user_prompt: kept in order; the first one is the trace's input. The trace runs again.
- stop: completed, the last message is the trace's output. session_end: completed, unless the last turn failed. Calls of the main agent that are open then are interrupted,
  until a late result says otherwise.
- sub-agents: a thought step `subagent:<type>`; all of the agent's steps have it as their parent.
- model requests: llm_call steps, with model and tokens.
- canary lines count nowhere.
"""

from __future__ import annotations

from guardhook.store.calls import (
    TEXT_CHARS,
    batch,
    by_call,
    interrupt,
    judged,
    permission_denied,
    permission_request,
    post_tool,
    pre_tool,
)
from guardhook.store.facts import Facts, canonical, flat, text
from guardhook.store.model import make_id
from guardhook.store.state import RECENT, Sink, State
from guardhook.store.steps import add, anchor_of, count_tokens, follow_run, millis, parent_of

OPENING = frozenset(("session_start", "user_prompt", "pre_tool", "permission_request", "subagent_start"))
_ONCE = frozenset(("user_prompt", "stop", "session_end", "session_start", "subagent_start", "subagent_stop"))
AGAIN_US = 1_000_000
_DETAIL = (
    "source", "reason", "trigger", "notification_type", "title", "error", "file_path", "from_model", "to_model", "status",
    "tool_name", "kind",
)  # fmt: skip
_TEXT = ("message", "custom_instructions", "compact_summary", "last_assistant_message", "details")


def trace_id(key: str) -> str:
    """The id of the trace of a journal file: the same however often the store is rebuilt."""
    return make_id("trc", key)


def hook(
    sink: Sink, state: State | None, key: str, seq: int, ts: str, us: int, data: dict[str, object]
) -> State | None:
    """Folds one `hook.received` line. Gives the trace's state, None as long as nothing opened one."""
    if data.get("canary") is True:
        return state
    facts = Facts(data, seq, ts, us)
    if state is None:
        if facts.event not in OPENING and not facts.blocked():
            return None
        state = _new(key, facts)
    _seen(sink, state, facts)
    if _duplicate(sink, state, facts):
        return state
    _EVENTS.get(facts.event, _other)(sink, state, facts)
    return state


def _new(key: str, facts: Facts) -> State:
    data = facts.data
    dialect = text(data.get("dialect"))
    started = millis(facts.ts)
    state = State(
        id=trace_id(key),
        agent_name=dialect or "agent",
        started_at=started,
        created_at=started,
        trigger="user_message",
        dialect=dialect,
        live=True,
        started_us=facts.us,
        session_id=text(data.get("session")),
        agent_version=text(data.get("client")),
    )
    state.metadata = {"dialect": dialect, "cwd": text(data.get("cwd"))}
    for name in ("transcript_path", "permission_mode"):
        found = text(facts.payload.get(name))
        if found is not None:
            state.metadata[name] = found
    return state


def _seen(sink: Sink, state: State, facts: Facts) -> None:
    """What every line of a trace says: the run it belongs to, the project, when it was heard of last."""
    data = facts.data
    state.last_us = max(state.last_us or 0, facts.us)
    if state.project is None:
        state.project = text(data.get("root"))
    if state.agent_version is None:
        state.agent_version = text(data.get("client"))
    if "model" not in state.metadata:
        model = facts.model
        if model is not None:
            state.metadata["model"] = model
    follow_run(sink, state, facts.seq, facts.ts, data)


def _duplicate(sink: Sink, state: State, facts: Facts) -> bool:
    """Whether this event was recorded before: two registrations that one client loads, told by call id and event.

    An id that is used again for the same tool with another input is no copy; nothing may hide behind a known id.
    """
    if facts.call is not None:
        key, said = f"{facts.call}\0{facts.event}", f"{facts.tool}\0{facts.canon}"
        before = state.recent.get(key)
        again = before is not None and (before == said or before.partition("\0")[0] != str(facts.tool))
    elif facts.event in _ONCE:
        # Without a call there is only the sameness of all that was said, at nearly the same time.
        key, said = f"{facts.native}\0{facts.agent}\0{_digest(facts)}", str(facts.us)
        again = facts.us - int(state.recent.get(key, -AGAIN_US)) < AGAIN_US
    else:
        return False
    if not again:
        state.recent.pop(key, None)
        state.recent[key] = said
        if len(state.recent) > RECENT:
            del state.recent[next(iter(state.recent))]
        return False
    if facts.verdict is not None and facts.event in ("pre_tool", "permission_request"):
        # The first copy may come from a registration that only records.
        found = by_call(state, facts.call)
        if found is not None and not found.judged:
            judged(sink, state, facts, found)
    return True


def _digest(facts: Facts) -> str:
    return canonical({k: v for k, v in facts.payload.items() if k != "timestamp"})


# --- other events ------------------------------------------------------------------------------------------------


def _user_prompt(sink: Sink, state: State, facts: Facts) -> None:
    interrupt(sink, state, facts)
    prompt = facts.prompt
    blocked = facts.blocked()
    sink.happen(
        state, facts.seq, millis(facts.ts), "user_prompt", facts.native, prompt, {"blocked": True} if blocked else {}
    )
    if prompt is not None and state.input is None:
        state.input = {"prompt": prompt}
    judged(sink, state, facts, None)
    state.status, state.ended_at, state.ended_us, state.error = "running", None, None, None


def _stop(sink: Sink, state: State, facts: Facts) -> None:
    interrupt(sink, state, facts)
    _said(sink, state, facts)
    state.status, state.ended_at, state.ended_us = "completed", millis(facts.ts), facts.us


def _said(sink: Sink, state: State, facts: Facts) -> None:
    message = facts.message
    if message is not None:
        state.output = {"text": message}
        add(sink, state, facts, "output", "assistant_message", output={"text": message}, ended=True, model=facts.model)


def _session_end(sink: Sink, state: State, facts: Facts) -> None:
    interrupt(sink, state, facts, everyone=True)
    _other(sink, state, facts)
    if (
        state.status == "running"
    ):  # the time between the last answer and the end is not the agent's; a turn that failed stays so
        state.status, state.ended_at, state.ended_us = "completed", millis(facts.ts), facts.us


def _subagent_start(sink: Sink, state: State, facts: Facts) -> None:
    if facts.agent is None or facts.agent not in state.anchors:
        anchor_of(sink, state, facts)


def _subagent_stop(sink: Sink, state: State, facts: Facts) -> None:
    if facts.agent is None:
        return
    if facts.agent not in state.anchors:
        anchor_of(sink, state, facts)
    anchor = state.anchors[facts.agent]
    anchor.open = False
    interrupt(sink, state, facts, agent=facts.agent)
    message = facts.message
    changes: dict[str, object] = {"ended_at": millis(facts.ts), "duration_ms": max(0, (facts.us - anchor.us) // 1000)}
    if message is not None:
        changes["output"] = {"text": message}
    sink.change(state, anchor.number, changes, {})


def _model_request(sink: Sink, state: State, facts: Facts) -> None:
    model = facts.model
    key = flat([facts.agent, facts.payload.get("request_id"), facts.payload.get("attempt_number")])
    number = add(sink, state, facts, "llm_call", model or "model", model=model, parent=parent_of(sink, state, facts))
    state.request = [key, number, facts.us, 0]
    judged(sink, state, facts, None)


def _model_response(sink: Sink, state: State, facts: Facts) -> None:
    key = flat([facts.agent, facts.payload.get("request_id"), facts.payload.get("attempt_number")])
    tokens = facts.tokens
    error = facts.error
    if not state.request or state.request[0] != key:
        model = facts.model
        number = add(
            sink, state, facts, "llm_call", model or "model", model=model, parent=parent_of(sink, state, facts)
        )
        state.request = [key, number, facts.us, 0]
    _, number_, us, counted = state.request
    assert isinstance(number_, int) and isinstance(us, int) and isinstance(counted, int)
    changes: dict[str, object] = {"ended_at": millis(facts.ts), "duration_ms": max(0, (facts.us - us) // 1000)}
    if tokens is not None:
        # A streamed answer tells its usage with every piece: the last word counts, once.
        count_tokens(state, tokens - counted)
        state.request[3] = tokens
        changes["tokens_used"] = tokens
    status = text(facts.payload.get("status"))
    if error is not None or status in ("failed", "error"):
        changes["error"] = error or f"status {status}"
    sink.change(state, number_, changes, {})


def _other(sink: Sink, state: State, facts: Facts) -> None:
    """Anything else is kept as something that happened, with its few telling fields."""
    payload = facts.payload
    if facts.native == "PostToolBatch":
        batch(sink, state, facts)
        return
    detail: dict[str, object] = {}
    for name in _DETAIL:
        value = payload.get(name)
        if isinstance(value, str) and value:
            detail[name] = value[:200]
    said = next((found for found in (text(payload.get(name)) for name in _TEXT) if found), None)
    sink.happen(
        state,
        facts.seq,
        millis(facts.ts),
        facts.event,
        facts.native,
        None if said is None else said[:TEXT_CHARS],
        detail,
    )
    if facts.native == "StopFailure":
        state.status, state.ended_at, state.ended_us = "failed", millis(facts.ts), facts.us
        state.error = text(payload.get("last_assistant_message")) or facts.error or "the turn failed"
        interrupt(sink, state, facts)
    elif facts.event == "interrupt":
        interrupt(sink, state, facts)
    judged(sink, state, facts, None)


_EVENTS = {
    "pre_tool": pre_tool,
    "permission_request": permission_request,
    "post_tool": post_tool,
    "post_tool_failure": post_tool,
    "user_prompt": _user_prompt,
    "stop": _stop,
    "session_end": _session_end,
    "subagent_start": _subagent_start,
    "subagent_stop": _subagent_stop,
    "permission_denied": permission_denied,
    "model_request": _model_request,
    "model_response": _model_response,
}
