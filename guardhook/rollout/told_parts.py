"""Traces that were told in parts of any order (`trace.part` lines, see guardhook.store.parts): told again in the order of their times, once all are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from guardhook.journal import line
from guardhook.rollout import told
from guardhook.rollout.lines import instant
from guardhook.store.facts import text
from guardhook.store.given import structured

if TYPE_CHECKING:
    from guardhook.rollout.render import Renderer

_NEVER = 1 << 62
_US_MOST = 253_402_300_800_000_000  # the year 10000
Event = dict[str, object]


class Moment(NamedTuple):
    """A part's beginning (end 0) or its end (1). Sorted as it stands; number is its own, so that events are never compared."""

    when: int
    end: int
    ticket: int
    number: int
    event: Event


def finish(r: Renderer) -> None:
    """Everything that the parts say. The earliest root is the run itself; later ones are steps."""
    seen: set[str] = set()
    found: list[Moment] = []
    for number, item in enumerate(r.parts, 1):
        event = item.data.get("event")
        name = event.get("part") if isinstance(event, dict) else None
        if not isinstance(event, dict) or not isinstance(name, str) or name in seen:
            continue
        seen.add(name)
        began = _us(event.get("at"))
        when = began if began is not None else _us(event.get("ended"))
        found.append(Moment(_NEVER if when is None else when, 0, item.seq, number, {**event, "step_number": number}))
    found.sort()
    root = next((m for m in found if m.event.get("role") == "root"), None)
    prompt = next((m for m in found if m.event.get("role") == "prompt" and text(m.event.get("text"))), None)
    moments = [m for m in found if m is not root and m is not prompt]
    for moment in [m for m in moments if _is_step(m.event)]:
        ended = _us(moment.event.get("ended"))
        moments.append(moment._replace(when=max(moment.when, ended or moment.when), end=1))
    _start(r, found, root, prompt)
    for moment in sorted(moments):
        _at(r, moment.when)
        _tell(r, moment)
    if root is not None:
        head = root.event
        ended = _us(head.get("ended"))
        if ended is not None:
            _at(r, ended)
            error = head.get("error")
            told.end(r, {"status": "failed" if error else "completed", "error": error, "output": head.get("output")})


def _start(r: Renderer, found: list[Moment], root: Moment | None, prompt: Moment | None) -> None:
    facts = next((f for m in ([root] if root else []) + found if isinstance(f := m.event.get("trace"), dict)), {})
    _at(r, min((m.when for m in found), default=_NEVER))
    given = None if root is None else told.prompt_of(structured(root.event.get("input")))
    if given is None and prompt is not None:
        given = text(prompt.event.get("text"))
    told.start(
        r,
        {
            "input": given, "agent_name": facts.get("agent") or facts.get("service"), "agent_version": facts.get("version"),
            "dialect": facts.get("dialect"),
        },
    )  # fmt: skip


def _tell(r: Renderer, moment: Moment) -> None:
    event = moment.event
    said = text(event.get("text"))
    if _is_step(event):
        if moment.end:
            told.end_step(r, event)
        else:
            told.begin_step(r, event)
    elif event.get("role") == "prompt" and said is not None:
        r.bump()
        r.emit("conversation.continued", {"message": said, "prior_message_count": r.state.messages})
        r.state.messages += 1
    elif event.get("role") == "event":
        r.ensure()
        name = text(event.get("native")) or text(event.get("event")) or "other"
        r.emit("hook.unknown", {"event": name, **({"message": said} if said is not None else {})})


def _is_step(event: Event) -> bool:
    return event.get("role") in ("step", "root") and bool(text(event.get("step_type")) and text(event.get("name")))


def _us(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _US_MOST else None


def _at(r: Renderer, us: int) -> None:
    if us < _NEVER:
        r.us, r.ts = us, instant(line.iso(us * 1000))
