"""Tool calls: announced, started, judged, asked about, ended.

Calls are named by the harness's own id; where there is none, `gh_<n>` in the order of their start. A result belongs to the call with its id, else to the
oldest open one of the same agent, tool and input, else to the oldest open one of the same tool (`pairing: "fifo"`), else to none (`unpaired`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from guardhook.core.jsontext import PayloadError, loads_text
from guardhook.rollout import families, limits
from guardhook.rollout.lines import dump
from guardhook.rollout.parts import begin, marks, ready
from guardhook.rollout.state import ANNOUNCED_MOST, CLOSED_MOST, OPEN_MOST, Call, Closed
from guardhook.store.facts import Facts, text

if TYPE_CHECKING:
    from guardhook.rollout.render import Renderer

SAME_US = 1_000_000  # a permission request and the call that it is about are no further apart
UNKNOWN = "unknown"  # the name of a tool that nobody named
_DECISIONS = {"allow": "allow", "warn": "warn", "require_review": "ask", "deny": "deny"}
_REASONS = ("permissionDecisionReason", "reason", "message", "systemMessage", "user_message", "agent_message", "errorMessage")  # fmt: skip


def pre_tool(r: Renderer, facts: Facts) -> None:
    """A call that is about to happen, and the verdict on it."""
    begin(r, facts)
    call = None
    if facts.call is not None:
        call = next((c for c in reversed(r.state.open) if c.native is None and c.via == "permission_request" and _like(c, facts) and abs(facts.us - c.us) <= SAME_US), None)  # fmt: skip
    if call is None:
        call = _start(r, facts)
    else:
        call.native = facts.call
        r.state.aliases[str(facts.call)] = call.id
    _judged(r, facts, call, "pre_tool_use")


def permission_request(r: Renderer, facts: Facts) -> None:
    """The harness asks its user about a call, mostly one that was told of before."""
    begin(r, facts)
    call = _open(r, facts.call) or next((c for c in r.state.open if _like(c, facts)), None)
    if call is None and (over := _over(r, facts)) is not None:
        r.emit("tool.approval_required", {**over, "source": "harness", **marks(facts)})
        if facts.verdict is not None:
            hook = {
                "stage": "permission_request",
                "hook": "guardhook",
                "tool": over["tool"],
                "call_id": over["call_id"],
            }
            _verdict(r, facts, facts.verdict, hook)
        return
    if call is None:
        call = _start(r, facts, via="permission_request")
    r.emit("tool.approval_required", {"call_id": call.id, "tool": call.tool, "source": "harness", **marks(facts)})
    call.pending = True
    _judged(r, facts, call, "permission_request")


def judge_late(r: Renderer, facts: Facts) -> None:
    """The verdict of a second registration on a call that the first one only recorded."""
    call = _open(r, facts.call)
    if call is not None and not call.judged:
        _judged(r, facts, call, "pre_tool_use")


def permission_denied(r: Renderer, facts: Facts) -> None:
    """The harness itself refused a call."""
    begin(r, facts)
    reason = text(facts.payload.get("reason")) or "permission denied"
    call = _open(r, facts.call) or next((c for c in r.state.open if _like(c, facts)), None)
    if call is None and (over := _over(r, facts)) is not None:
        r.emit("tool.approval_denied", {**over, "reason": reason, **marks(facts)})
        return
    call = call or _start(r, facts)
    r.emit("tool.approval_denied", {"call_id": call.id, "tool": call.tool, "reason": reason, **marks(facts)})
    _refused(r, facts, call, reason, reason)


def post_tool(r: Renderer, facts: Facts) -> None:
    """The result of a call, or its failure."""
    ready(r, facts)
    state = r.state
    state.active = True
    call, pairing = _match(r, facts)
    error = facts.failure()
    data: dict[str, object] = {"call_id": None, "tool": facts.tool or UNKNOWN, "output": _text(facts.output)}
    if error is not None:
        data["error"] = error
    exit_code = _exit_code(facts.output)
    if exit_code is not None:
        data["exit_code"] = exit_code
    duration = facts.duration
    data["executed"] = True
    if call is not None:
        data["call_id"] = call.id
        if call.pending:
            r.emit("tool.approval_granted", {"call_id": call.id, "tool": call.tool, **marks(facts)})
        if duration is None:
            duration = max(0, (facts.us - call.us) // 1000)
        if pairing:
            data["pairing"] = pairing
        _echo(r, facts, data, call.canon, call.arguments, call.cut, call.id)
        state.open.remove(call)
        _close(r, call, "done")
    else:
        name, known = _closed(r, facts.call)
        data["call_id"] = name
        if known is None:
            data["unpaired"] = True
        else:
            if known.how == "denied":
                data["ran_although_denied"] = True
            elif known.how == "unfinished":
                data["late"] = True
                known.how = "done"
            _echo(r, facts, data, known.canon, known.arguments, known.arguments == "", name)
    if duration is not None:
        data["duration_ms"] = duration
    r.emit("tool.call.completed", {**data, **marks(facts)})
    families.result(r, str(data["call_id"]), str(data["tool"]), str(data["output"]), error)


def batch(r: Renderer, facts: Facts) -> None:
    """What the model was told about a batch of calls: the only word about those that a person refused. It counts when no other comes."""
    begin(r, facts)
    entries = facts.payload.get("tool_calls")
    for entry in entries if isinstance(entries, list) else []:
        call = _open(r, text(entry.get("tool_use_id"))) if isinstance(entry, dict) else None
        if call is not None:
            call.answer = [_text(entry.get("tool_response")) or "no result"]


def settle(r: Renderer, *, everyone: bool = False, agent: str | None = None) -> list[str]:
    """Closes what is open: calls of one agent (None: the main one), or everyone's. Gives the ids of those without any result."""
    state = r.state
    unfinished: list[str] = []
    left: list[Call] = []
    for call in state.open:
        if not (everyone or call.agent == agent):
            left.append(call)
        elif call.answer:
            answer = str(call.answer[0])
            r.emit(
                "tool.call.completed",
                {"call_id": call.id, "tool": call.tool, "output": answer, "error": answer[: limits.MESSAGE], "executed": None, "basis": "batch"},
            )  # fmt: skip
            _close(r, call, "unfinished")
        else:
            unfinished.append(call.id)
            _close(r, call, "unfinished")
    state.open = left
    return unfinished


def judged_message(r: Renderer, facts: Facts, stage: str) -> None:
    """The verdict on an event that is no call, where it says anything: most prompts are allowed by no policy at all."""
    verdict = facts.verdict
    if verdict is None:
        return
    action = text(verdict.get("action")) or "allow"
    if action == "allow" and verdict.get("policy") is None and not _fault(verdict):
        return
    r.ensure()
    hook = {"stage": stage, "hook": "guardhook"}
    r.emit("hook.started", {**hook})
    reason = text(verdict.get("reason"))
    took = _took(verdict)
    if _fault(verdict):
        r.emit("hook.failed", {**hook, "error": reason or text(verdict.get("cause")) or "fault", "mode": text(verdict.get("mode")), "ignored": not facts.blocked()})  # fmt: skip
        return
    data = {
        **hook,
        "action": _DECISIONS.get(action, action),
        "mutated": False,
        "policy": text(verdict.get("policy")),
        "reason": reason,
    }
    r.emit("hook.completed", {**data, **_unenforced(verdict), "duration_ms": took, **({"blocked": True} if facts.blocked() else {})})  # fmt: skip


def numbered(r: Renderer) -> str:
    """The next id for a call that has none."""
    r.state.numbered += 1
    return f"gh_{r.state.numbered}"


def announce(r: Renderer, announced: list[list[str | None]]) -> None:
    """Calls that a model's answer named, each as [the harness's id, tool, digest of the input, our id]: their starts need no announcement of ours."""
    state = r.state
    state.announced.extend(announced)
    del state.announced[:-ANNOUNCED_MOST]


def start(
    r: Renderer, *, native: str | None, tool: str | None, given: object, canon: str | None, agent: str | None, cut: bool, us: int,
    extra: dict[str, object], basis: str = "pre_tool",
) -> Call:  # fmt: skip
    """A call's announcement, unless there was one, and its start."""
    state = r.state
    name = tool or UNKNOWN
    arguments = dump(given) if given is not None else "{}"
    if not arguments:
        arguments = '""'
    known = _take_announced(r, native, name, canon)
    declared = state.basis == "declared" and state.declared_agent == agent
    overlapping = any(c.agent == agent and c.step == state.step for c in state.open)
    if state.step == 0 or not (declared or overlapping):
        r.bump()
    more: dict[str, object] = {}
    if known is not None and known[0] is None and known[3] is not None:
        call_id = known[3]
        if native is not None:
            state.aliases[native] = call_id
    else:
        call_id, more = _named(r, native)
    call = Call(call_id, native, name, agent, canon, arguments, state.step, us, cut, via=basis)
    if known is None:
        r.emit(
            "llm.turn.completed",
            {
                "content": "", "tool_calls": [{"id": call_id, "name": name, "arguments": arguments}], "synthetic": True, "basis": basis, **extra,
            },
        )  # fmt: skip
        families.turn(r)
    r.emit("tool.call.started", {"call_id": call_id, "tool": name, "arguments": arguments, **more, **extra})
    state.active = True
    state.turn_calls += 1
    state.open.append(call)
    if len(state.open) > OPEN_MOST:
        _close(r, state.open.pop(0), "unfinished")
    kind = extra.get("kind")
    families.called(r, call, kind if isinstance(kind, str) else None)
    return call


def finished(r: Renderer, call: Call, data: dict[str, object]) -> None:
    """The end of a call that a recorded trace told of."""
    r.emit("tool.call.completed", {"call_id": call.id, "tool": call.tool, **data})
    r.state.open.remove(call)
    _close(r, call, "done")
    error = data.get("error")
    families.result(r, call.id, call.tool, str(data.get("output", "")), error if isinstance(error, str) else None)


def _start(r: Renderer, facts: Facts, via: str = "pre_tool") -> Call:
    extra = marks(facts)
    if facts.kind is not None:
        extra = {"kind": facts.kind, **extra}
    return start(
        r, native=facts.call, tool=facts.tool, given=facts.input, canon=facts.canon, agent=facts.agent, cut=facts.cut, us=facts.us,
        extra=extra, basis=via,
    )  # fmt: skip


def _judged(r: Renderer, facts: Facts, call: Call, stage: str) -> None:
    verdict = facts.verdict
    if verdict is None:
        return
    call.judged = True
    action, reason, policy = (
        text(verdict.get("action")) or "allow",
        text(verdict.get("reason")),
        text(verdict.get("policy")),
    )
    blocked = facts.blocked()
    _verdict(r, facts, verdict, {"stage": stage, "hook": "guardhook", "tool": call.tool, "call_id": call.id})
    if blocked:
        families.mutated(r, call.id, "guardhook", "Block", call.arguments, call.arguments)
        r.emit("tool.call.blocked", {"call_id": call.id, "tool": call.tool, "reason": reason, "policy": policy})
        _refused(r, facts, call, _denial(verdict), "permission_denied")
    elif action == "require_review" and verdict.get("mode") == "enforce":
        r.emit(
            "tool.approval_required", {"call_id": call.id, "tool": call.tool, "source": "guardhook", "reason": reason}
        )
        call.pending = True


def _verdict(r: Renderer, facts: Facts, verdict: dict[str, object], hook: dict[str, object]) -> None:
    """What was found about a call, whatever follows from it."""
    r.emit("tool_hook.started", {**hook})
    action, reason = text(verdict.get("action")) or "allow", text(verdict.get("reason"))
    took = _took(verdict)
    if _fault(verdict):
        failed = {
            "error": reason or text(verdict.get("cause")) or "fault",
            "ignored": not facts.blocked(),
            "duration_ms": took,
        }
        r.emit("tool_hook.failed", {**hook, **failed})
        return
    decided = {"decision": _DECISIONS.get(action, action), "policy": text(verdict.get("policy")), "reason": reason, "mutated": False}  # fmt: skip
    r.emit("tool_hook.completed", {**hook, **decided, **_unenforced(verdict), "duration_ms": took})


def _refused(r: Renderer, facts: Facts, call: Call, output: str, error: str) -> None:
    data = {"output": output, "error": error, "executed": False, "duration_ms": 0}
    r.emit("tool.call.completed", {"call_id": call.id, "tool": call.tool, **data, **marks(facts)})
    if call in r.state.open:
        r.state.open.remove(call)
    _close(r, call, "denied")
    families.result(r, call.id, call.tool, output, error)


def _fault(verdict: dict[str, object]) -> bool:
    """Whether guardhook itself failed: then no policy decided, and the call was blocked for that."""
    return text(verdict.get("cause")) not in (None, "policy")


def _unenforced(verdict: dict[str, object]) -> dict[str, object]:
    mode = text(verdict.get("mode")) or "enforce"
    return {} if mode == "enforce" else {"mode": mode}


def _took(verdict: dict[str, object]) -> float:
    us = verdict.get("us")
    return us / 1000 if type(us) is int and us >= 0 else 0


def _denial(verdict: dict[str, object]) -> str:
    """What the harness was told, in the words that it hands on; the reason where no answer was recorded."""
    answer = verdict.get("answer")
    if isinstance(answer, dict):
        out, err = text(answer.get("stdout")), text(answer.get("stderr"))
        if out is not None:
            try:
                found = _reason(loads_text(out))
            except PayloadError:
                found = out.strip()
            if found:
                return found
        if err is not None:
            return err.strip()
    return text(verdict.get("reason")) or ""


def _reason(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    for name in _REASONS:
        found = text(value.get(name))
        if found is not None:
            return found
    return next((found for v in value.values() if (found := _reason(v)) is not None), None)


def _echo(
    r: Renderer, facts: Facts, data: dict[str, object], canon: str | None, arguments: str, cut: bool, name: str
) -> None:
    """The input as the result repeats it: its digest, and all of it where it is not what was judged."""
    if facts.canon is None or canon is None or cut or facts.cut:
        return
    data["input_digest"] = facts.canon
    if facts.canon != canon:
        data["executed_arguments"] = dump(facts.input)
        families.mutated(r, name, "unknown", "Modify", arguments, dump(facts.input))


def _like(call: Call, facts: Facts) -> bool:
    return (call.agent, call.tool, call.canon) == (facts.agent, facts.tool or UNKNOWN, facts.canon)


def _open(r: Renderer, native: str | None) -> Call | None:
    return None if native is None else next((c for c in reversed(r.state.open) if c.native == native), None)


def _match(r: Renderer, facts: Facts) -> tuple[Call | None, str | None]:
    found = _open(r, facts.call)
    if found is not None:
        return found, None
    state = r.state
    if facts.call is not None and (_name_of(r, facts.call) in state.closed):
        return None, None
    free = [c for c in state.open if facts.call is None or c.native is None]
    found = next((c for c in free if _like(c, facts)), None)
    if found is not None:
        return found, None
    found = next((c for c in free if c.agent == facts.agent and c.tool == (facts.tool or UNKNOWN)), None)
    return found, "fifo" if found is not None else None


def _closed(r: Renderer, native: str | None) -> tuple[str, Closed | None]:
    """The name of a call that is not open, and what is still known of it."""
    if native is None:
        return _named(r, None)[0], None
    name = _name_of(r, native)
    known = r.state.closed.get(name)
    return (name, known) if known is not None else (_named(r, native)[0], None)


def _over(r: Renderer, facts: Facts) -> dict[str, object] | None:
    """Call and tool of an event about a call that has had its end already (we denied it and the harness asked all the same): it does not start once more."""
    if facts.call is None:
        return None
    name = _name_of(r, facts.call)
    known = r.state.closed.get(name)
    return None if known is None else {"call_id": name, "tool": known.tool, "late": True}


def _close(r: Renderer, call: Call, how: str) -> None:
    closed = r.state.closed
    closed.pop(call.id, None)
    closed[call.id] = Closed(call.tool, call.canon, how, call.arguments if how == "unfinished" and not call.cut else "")
    if len(closed) > CLOSED_MOST:
        del closed[next(iter(closed))]


def _name_of(r: Renderer, native: str) -> str:
    if len(native.encode("utf-8", "replace")) > limits.CALL_ID:
        return r.state.aliases.get(_digest(native), "")
    return r.state.aliases.get(native, native)


def _named(r: Renderer, native: str | None) -> tuple[str, dict[str, object]]:
    """The id that a call goes by, and what to add where it is not the harness's own."""
    state = r.state
    if native is not None and len(native.encode("utf-8", "replace")) <= limits.CALL_ID:
        return state.aliases.get(native, native), {}
    name = numbered(r)
    if native is None:
        return name, {}
    digest = _digest(native)
    state.aliases[digest] = name
    return name, {"call_id_sha256": digest}


def _digest(native: str) -> str:
    return hashlib.sha256(native.encode("utf-8", "replace")).hexdigest()


def _take_announced(r: Renderer, native: str | None, tool: str, canon: str | None) -> list[str | None] | None:
    announced = r.state.announced
    for index, entry in enumerate(announced):
        same = entry[0] == native if entry[0] is not None and native is not None else entry[1:3] == [tool, canon]
        if same:
            return announced.pop(index)
    return None


def _text(output: object) -> str:
    return "" if output is None else dump(output)


def _exit_code(output: object) -> int | None:
    if isinstance(output, dict):
        for name in ("exit_code", "exitCode"):
            code = output.get(name)
            if type(code) is int:
                return code
    return None
