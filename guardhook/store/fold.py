"""From journal lines to traces: a pure function of the lines of one session, in their order.

`Fold.line` takes one line at a time and tells a sink what changed. All memory is in the trace's State, so folding can stop anywhere
and go on later with the same result. What each event does:

- session_start, user_prompt, pre_tool, permission_request, subagent_start open the session's trace when there is none; results and ends
  of a session that nothing opened make no trace.
- pre_tool: a tool_call step. Verdicts other than a plain allow: a guard_check step caused by it, with a decision. A blocked call is closed at once.
- post_tool, post_tool_failure: close the call with the same id, else the oldest open one of equal agent, tool and input. A result that fits no
  call becomes a step of its own, marked `unpaired`.
- user_prompt: kept in order; the first one is the trace's input. The trace runs again.
- stop: completed, the last message is the trace's output. session_end: completed. Calls of the main agent that are open then are interrupted,
  until a late result says otherwise.
- sub-agents: a thought step `subagent:<type>`; all of the agent's steps have it as their parent.
- model requests: llm_call steps, with model and tokens.
- canary lines count nowhere.
"""

from __future__ import annotations

from guardhook.store.facts import Facts, canonical, flat, text
from guardhook.store.model import make_id
from guardhook.store.protocol import MOST
from guardhook.store.state import OPEN_MOST, RECENT, Anchor, Open, Row, Sink, State

OPENING = frozenset(("session_start", "user_prompt", "pre_tool", "permission_request", "subagent_start"))
INTERRUPTED = "interrupted: no result came"
_ONCE = frozenset(("user_prompt", "stop", "session_end", "session_start", "subagent_start", "subagent_stop"))
AGAIN_US = 1_000_000
_DETAIL = (
    "source", "reason", "trigger", "notification_type", "title", "error", "file_path", "from_model", "to_model", "status",
    "tool_name", "kind",
)  # fmt: skip
_TEXT = ("message", "custom_instructions", "compact_summary", "last_assistant_message", "details")
_SPAWN_IDS = ("agentId", "agent_id")
TEXT_CHARS = 4000


def trace_id(key: str) -> str:
    """The id of the trace of a journal file: the same however often the store is rebuilt."""
    return make_id("trc", key)


def millis(ts: str) -> str:
    """A line's time stamp with milliseconds."""
    return ts[:23] + "Z" if len(ts) == 27 else ts


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


def follow_run(sink: Sink, state: State, seq: int, ts: str, data: dict[str, object]) -> None:
    """Notes which run of the session a line belongs to."""
    segment, run = data.get("segment"), data.get("run")
    if type(segment) is not int or not 0 < segment < 1 << 31 or not isinstance(run, str):
        return
    if not state.run or state.run[0] != segment:
        if state.run:
            sink.segment(state, state.run)
        state.run = [segment, run, seq, seq, millis(ts), None]
    state.run[3] = seq
    if data.get("closes"):
        state.run[5] = millis(ts)


def count_tokens(state: State, tokens: int) -> None:
    """Adds to the sum over the steps, which has to fit a column whatever producers claim."""
    state.step_tokens = max(0, min((state.step_tokens or 0) + tokens, MOST))


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
        found = _by_call(state, facts.call)
        if found is not None and not found.judged:
            _judged(sink, state, facts, found)
    return True


def _digest(facts: Facts) -> str:
    return canonical({k: v for k, v in facts.payload.items() if k != "timestamp"})


# --- steps -------------------------------------------------------------------------------------------------------


def _add(
    sink: Sink,
    state: State,
    facts: Facts,
    type: str,
    name: str,
    *,
    input: object = None,
    output: object = None,
    ended: bool = False,
    duration: int | None = None,
    error: str | None = None,
    tokens: int | None = None,
    model: str | None = None,
    metadata: dict[str, object] | None = None,
    cause: int | None = None,
    parent: int | None = None,
) -> int:
    number = state.next
    state.next += 1
    state.step_count += 1
    at = millis(facts.ts)
    own: dict[str, object] = {"seq": facts.seq}
    if facts.agent is not None:
        own["agent_id"] = facts.agent
        if facts.agent_type is not None:
            own["agent_type"] = facts.agent_type
    if metadata:
        own.update(metadata)
    if tokens is not None:
        count_tokens(state, tokens)
    sink.add(
        state,
        Row(
            number, type, name, {} if input is None else input, output, at, at if ended else None, duration, tokens, model,
            error, own, parent, cause,
        ),
    )  # fmt: skip
    return number


def _parent(sink: Sink, state: State, facts: Facts) -> int | None:
    """The anchor of the sub-agent that the event is from; made when the harness never told of its start."""
    if facts.agent is None:
        return None
    anchor = state.anchors.get(facts.agent)
    return anchor.number if anchor is not None else _anchor(sink, state, facts)


def _anchor(sink: Sink, state: State, facts: Facts) -> int:
    agent = facts.agent or ""
    spawner = state.spawned.pop(agent, None)
    if spawner is None:
        taken = {a.number for a in state.anchors.values()}
        waiting = [o for o in state.open if o.kind == "subagent" and o.agent != agent and not o.closed]
        spawner = waiting[0].number if waiting and waiting[0].number not in taken else None
    number = _add(
        sink,
        state,
        facts,
        "thought",
        f"subagent:{facts.agent_type or 'subagent'}",
        metadata={"hook_anchor": 1},
        cause=spawner,
        parent=spawner,
    )
    state.anchors[agent] = Anchor(number, facts.us, True)
    return number


def _marks(facts: Facts) -> dict[str, object]:
    """What a reader must know about the recorded values."""
    data = facts.data
    out: dict[str, object] = {}
    if facts.kind is not None:
        out["kind"] = facts.kind
    for name in ("redacted", "cut"):
        pointers = data.get(name)
        if isinstance(pointers, list) and pointers:
            out[name] = pointers[:64]
    for name in ("stripped", "paused"):
        if data.get(name):
            out[name] = True
    effects = data.get("effects")
    if isinstance(effects, list) and effects:
        out["effects"] = [_effect(e) for e in effects[:16] if isinstance(e, dict)]
    return out


def _effect(effect: dict[str, object]) -> str:
    words = [str(effect.get("kind", "?"))]
    flags = effect.get("flags")
    if isinstance(flags, list):
        words[0] += "".join(f":{f}" for f in flags)
    for name in ("program", "git", "path", "host"):
        found = text(effect.get(name))
        if found is not None:
            words.append(found[:200])
    return " ".join(words)


def _open_call(sink: Sink, state: State, facts: Facts) -> Open:
    parent = _parent(sink, state, facts)
    metadata = _marks(facts)
    if facts.call is not None:
        metadata["call"] = facts.call
    if facts.event == "permission_request":
        metadata["permission"] = "asked"
    number = _add(
        sink, state, facts, "tool_call", facts.tool or "tool", input=facts.input, model=facts.model, metadata=metadata, parent=parent
    )  # fmt: skip
    found = Open(number, facts.call, facts.agent, facts.tool or "tool", facts.canon, facts.us, facts.cut, facts.kind)
    state.open.append(found)
    if len(state.open) > OPEN_MOST:
        del state.open[0]
    return found


def _by_call(state: State, call: str | None) -> Open | None:
    if call is None:
        return None
    return next((o for o in reversed(state.open) if o.call == call), None)


def _match(state: State, facts: Facts, *, waiting: bool = False) -> Open | None:
    """The call that an event is about: by id, else the oldest open one of equal agent, tool and input.

    Where both have ids, only equal ids fit. waiting: interrupted calls don't count.
    """
    found = _by_call(state, facts.call)
    if found is not None:
        return found
    like = (facts.agent, facts.tool or "tool", facts.canon)
    for closed in ("",) if waiting else ("", "interrupted"):
        for open in state.open:
            if open.closed == closed and (facts.call is None or open.call is None) and open.like() == like:
                return open
    return None


def _pre_tool(sink: Sink, state: State, facts: Facts) -> None:
    call = None
    if facts.call is not None:
        # A permission request, which has no id, may have come first.
        like = (facts.agent, facts.tool or "tool", facts.canon)
        for open in state.open:
            if open.call is None and not open.closed and open.us > facts.us - AGAIN_US and open.like() == like:
                call = open
    if call is None:
        call = _open_call(sink, state, facts)
    else:
        call.call = facts.call
        sink.change(state, call.number, {}, {"call": facts.call})
    _judged(sink, state, facts, call)


def _permission_request(sink: Sink, state: State, facts: Facts) -> None:
    call = _match(state, facts, waiting=True)
    if call is None:
        call = _open_call(sink, state, facts)
    else:
        sink.change(state, call.number, {}, {"permission": "asked"})
    _judged(sink, state, facts, call)


def _judged(sink: Sink, state: State, facts: Facts, call: Open | None) -> None:
    """Records what the gate said about a call (or, without one, about a prompt or another event)."""
    verdict = facts.verdict
    if verdict is None:
        return
    action = text(verdict.get("action")) or "allow"
    if call is not None:
        call.judged = True
    policy = text(verdict.get("policy"))
    reason = text(verdict.get("reason")) or ""
    mode = text(verdict.get("mode")) or "enforce"
    if action == "allow":
        if call is not None:
            sink.change(state, call.number, {}, {"verdict": "allow"} if policy is None else {"verdict": "allow", "policy": policy})  # fmt: skip
        return
    said: dict[str, object] = {"action": action, "policy": policy, "reason": reason}
    more = {**said, "mode": mode}
    for name in ("layer", "cause", "span", "degraded", "set"):
        if verdict.get(name) is not None:
            more[name] = verdict[name]
    cause = call.number if call is not None else None
    number = _add(
        sink, state, facts, "guard_check", f"guard:{policy or text(verdict.get('cause')) or 'fault'}", output=said, ended=True,
        duration=0, metadata=more, cause=cause, parent=_parent(sink, state, facts),
    )  # fmt: skip
    sink.decide(
        state,
        number,
        {
            "options": [{"option": o} for o in ("allow", "warn", "require_review", "deny")],
            "chosen": action,
            "rationale": reason or None,
            "confidence": None,
            "decided_by": "policy",
        },
    )
    if call is None:
        return
    blocked = facts.blocked()
    changes: dict[str, object] = {}
    if blocked and call.closed in ("", "interrupted"):
        call.closed = "blocked"
        _trim(state)
        by = f"policy {policy}" if policy is not None else "guardhook"
        until = " until a person approves" if action == "require_review" else ""
        changes = {"ended_at": millis(facts.ts), "duration_ms": 0, "error": f"blocked by {by}{until}: {reason}"}
    sink.change(state, call.number, changes, {"verdict": action, **({"blocked": True} if blocked else {})})


def _post_tool(sink: Sink, state: State, facts: Facts) -> None:
    call = _match(state, facts)
    if call is None:
        metadata = {**_marks(facts), "unpaired": True}
        if facts.call is not None:
            metadata["call"] = facts.call
        _add(
            sink, state, facts, "tool_call", facts.tool or "tool", input=facts.input, output=facts.output, ended=True,
            duration=facts.duration, error=facts.failure(), model=facts.model, metadata=metadata,
            parent=_parent(sink, state, facts),
        )  # fmt: skip
        return
    metadata = {}
    error = facts.failure()
    if call.closed == "blocked":
        # The harness ran it all the same; nothing is more worth knowing.
        metadata["ran_although_blocked"] = True
        error = error or "ran although it was blocked"
    elif call.closed == "interrupted":
        metadata["interrupted"] = False
    if facts.canon is not None and call.canon is not None and facts.canon != call.canon and not (facts.cut or call.cut):
        metadata["rewritten"] = True
        metadata["executed_input"] = facts.input
    for name in ("redacted", "cut"):
        pointers = facts.data.get(name)
        if isinstance(pointers, list) and pointers:
            metadata[f"output_{name}"] = pointers[:64]
    duration = facts.duration
    if duration is None:
        duration = max(0, (facts.us - call.us) // 1000)
    sink.change(
        state, call.number,
        {"output": facts.output, "ended_at": millis(facts.ts), "duration_ms": duration, "error": error}, metadata,
    )  # fmt: skip
    _drop(state, call)
    if call.kind == "subagent":
        agent = _spawned(facts.output)
        if agent is not None and agent not in state.anchors:
            state.spawned[agent] = call.number
            if len(state.spawned) > 256:
                del state.spawned[next(iter(state.spawned))]


def _spawned(output: object) -> str | None:
    if isinstance(output, str) and output[:1] == "{":
        import msgspec

        try:
            output = msgspec.json.decode(output)
        except (msgspec.DecodeError, ValueError):
            return None
    if isinstance(output, dict):
        for name in _SPAWN_IDS:
            found = text(output.get(name))
            if found is not None:
                return found
    return None


def _drop(state: State, call: Open) -> None:
    """Forgets a finished call."""
    for index, open in enumerate(state.open):
        if open is call:
            del state.open[index]
            return


def _trim(state: State) -> None:
    """Blocked and interrupted calls stay a while, for a late result would be news."""
    surplus = sum(1 for o in state.open if o.closed) - RECENT
    if surplus <= 0:
        return
    kept = []
    for open in state.open:
        if open.closed and surplus > 0:
            surplus -= 1
        else:
            kept.append(open)
    state.open = kept


def _interrupt(sink: Sink, state: State, facts: Facts, *, everyone: bool = False, agent: str | None = None) -> None:
    """Marks open calls as interrupted: those of one agent (None: the main one), or everyone's."""
    for open in state.open:
        if not open.closed and (everyone or open.agent == agent):
            open.closed = "interrupted"
            sink.change(state, open.number, {"ended_at": millis(facts.ts), "error": INTERRUPTED}, {"interrupted": True})
    _trim(state)


# --- other events ------------------------------------------------------------------------------------------------


def _user_prompt(sink: Sink, state: State, facts: Facts) -> None:
    _interrupt(sink, state, facts)
    prompt = facts.prompt
    blocked = facts.blocked()
    sink.happen(
        state, facts.seq, millis(facts.ts), "user_prompt", facts.native, prompt, {"blocked": True} if blocked else {}
    )
    if prompt is not None and state.input is None:
        state.input = {"prompt": prompt}
    _judged(sink, state, facts, None)
    state.status, state.ended_at, state.ended_us, state.error = "running", None, None, None


def _stop(sink: Sink, state: State, facts: Facts) -> None:
    _interrupt(sink, state, facts)
    _said(sink, state, facts)
    state.status, state.ended_at, state.ended_us = "completed", millis(facts.ts), facts.us


def _said(sink: Sink, state: State, facts: Facts) -> None:
    message = facts.message
    if message is not None:
        state.output = {"text": message}
        _add(sink, state, facts, "output", "assistant_message", output={"text": message}, ended=True, model=facts.model)


def _session_end(sink: Sink, state: State, facts: Facts) -> None:
    _interrupt(sink, state, facts, everyone=True)
    _other(sink, state, facts)
    if state.status != "completed":  # the time between the last answer and the end is not the agent's
        state.status, state.ended_at, state.ended_us = "completed", millis(facts.ts), facts.us


def _subagent_start(sink: Sink, state: State, facts: Facts) -> None:
    if facts.agent is None or facts.agent not in state.anchors:
        _anchor(sink, state, facts)


def _subagent_stop(sink: Sink, state: State, facts: Facts) -> None:
    if facts.agent is None:
        return
    if facts.agent not in state.anchors:
        _anchor(sink, state, facts)
    anchor = state.anchors[facts.agent]
    anchor.open = False
    _interrupt(sink, state, facts, agent=facts.agent)
    message = facts.message
    changes: dict[str, object] = {"ended_at": millis(facts.ts), "duration_ms": max(0, (facts.us - anchor.us) // 1000)}
    if message is not None:
        changes["output"] = {"text": message}
    sink.change(state, anchor.number, changes, {})


def _permission_denied(sink: Sink, state: State, facts: Facts) -> None:
    call = _match(state, facts)
    if call is None:
        call = _open_call(sink, state, facts)
    reason = text(facts.payload.get("reason")) or "permission denied"
    if call.closed != "blocked":
        sink.change(
            state, call.number, {"ended_at": millis(facts.ts), "error": f"permission denied: {reason}"}, {"permission": "denied"}
        )  # fmt: skip
    call.closed = "blocked"
    sink.decide(
        state, call.number,
        {"options": [], "chosen": "deny", "rationale": reason, "confidence": None, "decided_by": "policy"},
    )  # fmt: skip


def _model_request(sink: Sink, state: State, facts: Facts) -> None:
    model = facts.model
    key = flat([facts.agent, facts.payload.get("request_id"), facts.payload.get("attempt_number")])
    number = _add(sink, state, facts, "llm_call", model or "model", model=model, parent=_parent(sink, state, facts))
    state.request = [key, number, facts.us, 0]
    _judged(sink, state, facts, None)


def _model_response(sink: Sink, state: State, facts: Facts) -> None:
    key = flat([facts.agent, facts.payload.get("request_id"), facts.payload.get("attempt_number")])
    tokens = facts.tokens
    error = facts.error
    if not state.request or state.request[0] != key:
        model = facts.model
        number = _add(sink, state, facts, "llm_call", model or "model", model=model, parent=_parent(sink, state, facts))
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
        _batch(sink, state, facts)
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
        _interrupt(sink, state, facts)
    elif facts.event == "interrupt":
        _interrupt(sink, state, facts)
    _judged(sink, state, facts, None)


def _batch(sink: Sink, state: State, facts: Facts) -> None:
    """What the model was told about a batch of calls: the only word about those that a person refused."""
    calls = facts.payload.get("tool_calls")
    for entry in calls if isinstance(calls, list) else []:
        found = _by_call(state, text(entry.get("tool_use_id"))) if isinstance(entry, dict) else None
        if found is not None and found.closed == "":
            found.closed = "interrupted"  # a result of its own may yet come
            answer = entry.get("tool_response")
            error = answer if isinstance(answer, str) else flat(answer)
            sink.change(
                state, found.number, {"output": answer, "ended_at": millis(facts.ts), "error": error[:TEXT_CHARS] or "no result"}, {"from_batch": True}
            )  # fmt: skip


_EVENTS = {
    "pre_tool": _pre_tool,
    "permission_request": _permission_request,
    "post_tool": _post_tool,
    "post_tool_failure": _post_tool,
    "user_prompt": _user_prompt,
    "stop": _stop,
    "session_end": _session_end,
    "subagent_start": _subagent_start,
    "subagent_stop": _subagent_stop,
    "permission_denied": _permission_denied,
    "model_request": _model_request,
    "model_response": _model_response,
}
