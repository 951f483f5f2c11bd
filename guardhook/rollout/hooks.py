"""Hook events as rollout events. The table is in docs/rollouts.md; what each step number means is in guardhook.rollout.render."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardhook.rollout import calls, families, models
from guardhook.rollout.parts import begin, marks, ready, session, step_done
from guardhook.rollout.state import RECENT, Ending
from guardhook.store.facts import Facts, canonical, text
from guardhook.store.lines import Raw

if TYPE_CHECKING:
    from guardhook.rollout.render import Renderer

AGAIN_US = 1_000_000
_ONCE = frozenset(("user_prompt", "stop", "session_end", "session_start", "subagent_start", "subagent_stop"))
_WAITING = frozenset(("permission_prompt", "idle_prompt", "elicitation_dialog", "ToolPermission", "agent_needs_input"))
_TOLD = ("source", "reason", "trigger", "notification_type", "title", "message", "error", "file_path", "from_model", "to_model", "status")  # fmt: skip
TOLD_CHARS = 4000


def feed(r: Renderer, item: Raw) -> None:
    """One `hook.received` line. Canary lines count nowhere."""
    data = item.data
    if data.get("canary") is True:
        return
    facts = Facts(data, item.seq, item.ts, r.us)
    if _again(r, facts):
        return
    _EVENTS.get(facts.event, _other)(r, facts)


def _again(r: Renderer, facts: Facts) -> bool:
    """Whether another registration told of this event already (as guardhook.store.fold sees it)."""
    recent = r.state.recent
    if facts.call is not None:
        key, said = f"{facts.call}\0{facts.event}", f"{facts.tool}\0{facts.canon}"
        before = recent.get(key)
        again = before is not None and (before == said or before.partition("\0")[0] != str(facts.tool))
    elif facts.event in _ONCE:
        key = (
            f"{facts.native}\0{facts.agent}\0{canonical({k: v for k, v in facts.payload.items() if k != 'timestamp'})}"
        )
        said = str(facts.us)
        again = facts.us - int(recent.get(key, -AGAIN_US)) < AGAIN_US
    else:
        return False
    if not again:
        recent.pop(key, None)
        recent[key] = said
        if len(recent) > RECENT:
            del recent[next(iter(recent))]
        return False
    if facts.verdict is not None and facts.event in ("pre_tool", "permission_request"):
        calls.judge_late(r, facts)
    return True


# --- the session -------------------------------------------------------------------------------------------------


def _session_start(r: Renderer, facts: Facts) -> None:
    state = r.state
    if state.started:
        _unknown(r, facts)
        return
    if not state.held:
        state.held = session(facts)
        state.held_ts = r.ts


def _user_prompt(r: Renderer, facts: Facts) -> None:
    state = r.state
    prompt = facts.prompt
    if not state.started:
        begin(r, facts, prompt)
        calls.judged_message(r, facts, "user_prompt_submit")
        return
    if state.stopped:
        calls.settle(r, everyone=True)
        before = state.messages
        r.bump()
        r.emit("conversation.continued", {"message": prompt or "", "prior_message_count": before, **marks(facts)})
    else:
        r.ensure()
        calls.settle(r, everyone=True)
        r.emit("steering.received", {"message": prompt or "", "content": prompt or "", **marks(facts)})
    state.messages += 1
    state.stopped, state.failed, state.failed_by, state.aborted, state.ending = False, None, None, False, None
    families.said(r, "user", prompt or "")
    calls.judged_message(r, facts, "user_prompt_submit")


def _stop(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    state = r.state
    settled = calls.settle(r, agent=facts.agent)
    if state.active:
        r.bump()
    message = facts.message
    told = state.turn == [state.step, (message or "").strip()]
    if not told:
        r.emit("llm.turn.completed", {"content": message or "", "tool_calls": [], "basis": "stop", **marks(facts)})
        families.turn(r)
    if message is not None:
        r.emit("assistant.message", {"content": message, **marks(facts)})
        state.messages += 1
        families.said(r, "assistant", message)
    step_done(r, settled)
    r.emit("run.waiting_for_user", {})
    state.stopped = True
    state.failed = state.failed_by = None
    state.aborted = False


def _session_end(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    state = r.state
    unfinished = calls.settle(r, everyone=True)
    if unfinished:
        step_done(r, unfinished)
    reason = text(facts.payload.get("reason"))
    how = "failed" if state.failed is not None else "cancelled" if state.aborted else "completed"
    state.ending = Ending(how, {} if reason is None else {"reason": reason}, r.ts)


# --- sub-agents, compaction, notifications -------------------------------------------------------------------------


def _subagent_start(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    r.emit("spawn_agent.started", {"agent_type": facts.agent_type, **marks(facts)})


def _subagent_stop(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    unfinished = calls.settle(r, agent=facts.agent) if facts.agent is not None else []
    data: dict[str, object] = {"agent_type": facts.agent_type, **marks(facts)}
    if facts.message is not None:
        data["output"] = facts.message
    if unfinished:
        data["unfinished"] = unfinished
    r.emit("spawn_agent.completed", data)


def _compact(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    after = (facts.native or "").lower().startswith(("post", "after"))
    found = {n: v for n in ("trigger", "compact_summary") if (v := text(facts.payload.get(n))) is not None}
    r.emit("auto_compact.completed" if after else "auto_compact.started", {**found, **marks(facts)})


def _notification(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    kind = text(facts.payload.get("notification_type"))
    found = {"kind": kind, **_told(facts, ("title", "message")), **marks(facts)}
    r.emit("run.waiting_for_user" if kind in _WAITING else "hook.notification", found)


def _other(r: Renderer, facts: Facts) -> None:
    """Anything else is kept as what it is."""
    state = r.state
    if facts.native == "PostToolBatch":
        calls.batch(r, facts)
        return
    _unknown(r, facts)
    if facts.native == "StopFailure":
        settled = calls.settle(r, agent=facts.agent)
        step_done(r, settled)
        state.failed = text(facts.payload.get("last_assistant_message")) or facts.error or "the turn failed"
        state.failed_by = "provider"
        state.stopped = True
    elif facts.event == "interrupt":
        settled = calls.settle(r, agent=facts.agent)
        step_done(r, settled)
        state.aborted = state.stopped = True


def _unknown(r: Renderer, facts: Facts) -> None:
    ready(r, facts)
    r.emit("hook.unknown", {"event": facts.native or facts.event, **_told(facts, _TOLD), **marks(facts)})
    calls.judged_message(r, facts, facts.event)


def _told(facts: Facts, names: tuple[str, ...]) -> dict[str, object]:
    return {n: v[:TOLD_CHARS] for n in names if (v := text(facts.payload.get(n))) is not None}


_EVENTS = {
    "session_start": _session_start,
    "user_prompt": _user_prompt,
    "pre_tool": calls.pre_tool,
    "permission_request": calls.permission_request,
    "permission_denied": calls.permission_denied,
    "post_tool": calls.post_tool,
    "post_tool_failure": calls.post_tool,
    "stop": _stop,
    "session_end": _session_end,
    "subagent_start": _subagent_start,
    "subagent_stop": _subagent_stop,
    "compact": _compact,
    "notification": _notification,
    "model_request": models.request,
    "model_response": models.response,
}
