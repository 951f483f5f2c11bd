"""Folding tool calls: opened, judged, asked about, ended, refused, interrupted."""

from __future__ import annotations

from guardhook.store.facts import Facts, flat, text
from guardhook.store.state import OPEN_MOST, RECENT, Open, Sink, State
from guardhook.store.steps import add, millis, parent_of

INTERRUPTED = "interrupted: no result came"
SAME_US = 1_000_000  # a permission request and the call that it is about are no further apart
TEXT_CHARS = 4000
_SPAWN_IDS = ("agentId", "agent_id")


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


def open_call(sink: Sink, state: State, facts: Facts) -> Open:
    """A new step for a call, remembered until its result comes."""
    parent = parent_of(sink, state, facts)
    metadata = _marks(facts)
    if facts.call is not None:
        metadata["call"] = facts.call
    if facts.event == "permission_request":
        metadata["permission"] = "asked"
    number = add(
        sink, state, facts, "tool_call", facts.tool or "tool", input=facts.input, model=facts.model, metadata=metadata, parent=parent
    )  # fmt: skip
    found = Open(number, facts.call, facts.agent, facts.tool or "tool", facts.canon, facts.us, facts.cut, facts.kind)
    state.open.append(found)
    if len(state.open) > OPEN_MOST:
        del state.open[0]
    return found


def by_call(state: State, call: str | None) -> Open | None:
    """The remembered call with this id, the newest one."""
    if call is None:
        return None
    return next((o for o in reversed(state.open) if o.call == call), None)


def match(state: State, facts: Facts, *, waiting: bool = False) -> Open | None:
    """The call that an event is about: by id, else the oldest open one of equal agent, tool and input.

    Where both have ids, only equal ids fit. waiting: interrupted calls don't count.
    """
    found = by_call(state, facts.call)
    if found is not None:
        return found
    like = (facts.agent, facts.tool or "tool", facts.canon)
    for closed in ("",) if waiting else ("", "interrupted"):
        for open in state.open:
            if open.closed == closed and (facts.call is None or open.call is None) and open.like() == like:
                return open
    return None


def pre_tool(sink: Sink, state: State, facts: Facts) -> None:
    """A call that is about to happen."""
    call = None
    if facts.call is not None:
        # A permission request, which has no id, may have come first.
        like = (facts.agent, facts.tool or "tool", facts.canon)
        for open in state.open:
            if open.call is None and not open.closed and open.us > facts.us - SAME_US and open.like() == like:
                call = open
    if call is None:
        call = open_call(sink, state, facts)
    else:
        call.call = facts.call
        sink.change(state, call.number, {}, {"call": facts.call})
    judged(sink, state, facts, call)


def permission_request(sink: Sink, state: State, facts: Facts) -> None:
    """The harness asks its user about a call, mostly one that was told of before."""
    call = match(state, facts, waiting=True)
    if call is None:
        call = open_call(sink, state, facts)
    else:
        sink.change(state, call.number, {}, {"permission": "asked"})
    judged(sink, state, facts, call)


def judged(sink: Sink, state: State, facts: Facts, call: Open | None) -> None:
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
    number = add(
        sink, state, facts, "guard_check", f"guard:{policy or text(verdict.get('cause')) or 'fault'}", output=said, ended=True,
        duration=0, metadata=more, cause=cause, parent=parent_of(sink, state, facts),
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
        trim(state)
        by = f"policy {policy}" if policy is not None else "guardhook"
        until = " until a person approves" if action == "require_review" else ""
        changes = {"ended_at": millis(facts.ts), "duration_ms": 0, "error": f"blocked by {by}{until}: {reason}"}
    sink.change(state, call.number, changes, {"verdict": action, **({"blocked": True} if blocked else {})})


def post_tool(sink: Sink, state: State, facts: Facts) -> None:
    """The result of a call, or its failure."""
    call = match(state, facts)
    if call is None:
        metadata = {**_marks(facts), "unpaired": True}
        if facts.call is not None:
            metadata["call"] = facts.call
        add(
            sink, state, facts, "tool_call", facts.tool or "tool", input=facts.input, output=facts.output, ended=True,
            duration=facts.duration, error=facts.failure(), model=facts.model, metadata=metadata,
            parent=parent_of(sink, state, facts),
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


def trim(state: State) -> None:
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


def interrupt(sink: Sink, state: State, facts: Facts, *, everyone: bool = False, agent: str | None = None) -> None:
    """Marks open calls as interrupted: those of one agent (None: the main one), or everyone's."""
    for open in state.open:
        if not open.closed and (everyone or open.agent == agent):
            open.closed = "interrupted"
            sink.change(state, open.number, {"ended_at": millis(facts.ts), "error": INTERRUPTED}, {"interrupted": True})
    trim(state)


def permission_denied(sink: Sink, state: State, facts: Facts) -> None:
    """The harness itself refused a call."""
    call = match(state, facts)
    if call is None:
        call = open_call(sink, state, facts)
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


def batch(sink: Sink, state: State, facts: Facts) -> None:
    """What the model was told about a batch of calls: the only word about those that a person refused."""
    calls = facts.payload.get("tool_calls")
    for entry in calls if isinstance(calls, list) else []:
        found = by_call(state, text(entry.get("tool_use_id"))) if isinstance(entry, dict) else None
        if found is not None and found.closed == "":
            found.closed = "interrupted"  # a result of its own may yet come
            answer = entry.get("tool_response")
            error = answer if isinstance(answer, str) else flat(answer)
            sink.change(
                state, found.number, {"output": answer, "ended_at": millis(facts.ts), "error": error[:TEXT_CHARS] or "no result"}, {"from_batch": True}
            )  # fmt: skip
