"""Would today's guardhook see and judge a recorded run as it did then? Two layers, without any model and without running anything.

Pipeline drift: the recorded payloads go through today's recognition, reading, policies and rendering, and the rollout that comes out is compared with the old one.
Policy drift: every call that was judged then is judged under today's policies. Calls whose payload was not kept whole can't be judged again: they are
listed as unevaluable and stay as they were. After the first call that is judged more strictly the rest of the run is what did not happen then, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from guardhook.core.folders import Folders
from guardhook.core.verdict import RANK
from guardhook.journal import line
from guardhook.policy.compiled import Compiled
from guardhook.rollout import limits
from guardhook.rollout.canonical import DRIFT, canonical, equal, sorted_json
from guardhook.rollout.compare import diff, score
from guardhook.rollout.export import lines as encoded
from guardhook.rollout.lines import Event as Rendered
from guardhook.rollout.load import Event, Rollout, RolloutError, load_lines, outcome
from guardhook.rollout.options import Options
from guardhook.rollout.rejudge import Again, Rejudge
from guardhook.rollout.render import Renderer, lines_of, render
from guardhook.rollout.runs import RunRef, find
from guardhook.rollout.simulate import Result, simulate, text_of
from guardhook.store.errors import NotFound
from guardhook.store.lines import Raw

_COSTS = ("cumulative_cost_usd", "turn_cost_usd", "cost_totals", "cost_status", "pricing_version")
CLASSES = ("stricter", "looser", "cited_policy", "error")
LISTED = 1_000


class DriftError(Exception):
    """Nothing can be said about drift; the message is for a person."""


@dataclass
class Policies:
    """How today's policies judge the calls that were judged then."""

    now: str
    then: set[str | None] = field(default_factory=set)
    evaluated: int = 0
    unevaluable: list[dict[str, object]] = field(default_factory=list)
    changes: list[dict[str, object]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    firm: int = 0  # changes that count: stricter, looser or error, and not owed to the machine as it is now

    def as_dict(self) -> dict[str, object]:
        then = next(iter(self.then)) if len(self.then) == 1 else None
        return {
            "policy_set": {"then": then, "now": self.now},
            "evaluated": self.evaluated,
            "unevaluable": self.unevaluable,
            "changes": self.changes,
            "counts": self.counts,
            "matched": self.firm == 0,
        }


@dataclass
class Drift:
    """Everything that was found about one run."""

    run_id: str
    integrity: Result
    pipeline: dict[str, object]
    policy: Policies

    @property
    def matched(self) -> bool:
        return self.integrity.matched and self.clean

    @property
    def clean(self) -> bool:
        """Whether nothing drifted, whatever the recording itself is like."""
        return bool(self.pipeline["matched"]) and self.policy.firm == 0

    def drift(self) -> dict[str, object]:
        """The documented shape of `drift`."""
        return {**self.pipeline, "policy": self.policy.as_dict()}

    def as_dict(self, mode: str = "drift") -> dict[str, object]:
        four = self.integrity.as_dict()
        del four["mode"]
        return {"mode": mode, "matched": self.matched, "integrity": four, "drift": self.drift()}


SCRIPT = "script"  # the dialect of `guard check`


def measure(
    folders: Folders, ref: RunRef, main: Compiled, *, original: Rollout | None = None, options: Options | None = None, strict: bool = False
) -> Drift:  # fmt: skip
    """Drift of a run that the journal has. original: an older rollout of it, to compare with instead of a rendering of today.

    strict: changes that are owed to files on this machine count as well. Raises StoreError, DriftError.
    """
    if ref.dialect == SCRIPT:
        raise DriftError(
            f"{ref.run_id}: what `guard check` was asked carries no harness's payload, so nothing can be recognised again"
        )
    options = options or Options()
    # Judging costs far more than counting, so that of a run which is surely or probably too long comes first.
    if (ref.last_seq - ref.first_seq) * 4 > limits.EVENTS:
        for number, _ in enumerate(render(folders, ref, options=options)):
            if number >= limits.EVENTS:
                raise _too_many(ref)
    rejudge = Rejudge(folders, main)
    policy = Policies(rejudge.policy_set)
    old, new = Renderer(ref, options), Renderer(ref, options)
    before: list[Rendered] = []
    after: list[Rendered] = []
    unevaluable: list[dict[str, object]] = []
    found = hooks = False
    for item in lines_of(folders, ref):
        then = old.feed(item)
        before.extend(then)
        if len(before) > limits.EVENTS:
            raise _too_many(ref)
        if item.data.get("run") != ref.run_id:
            new.feed(item)
            continue
        found = True
        if item.type != line.RECEIVED or item.data.get("canary") is True:
            after.extend(new.feed(item))
            continue
        hooks = True
        again = rejudge.line(item.data)
        where = _where(then)
        if again.why is not None and again.why != "paused" and len(unevaluable) < LISTED:
            unevaluable.append({**where, "why": again.why})
        if item.data.get("event") == "pre_tool" and then:
            _judge(policy, rejudge, item.data, again, where, strict)
        after.extend(new.feed(Raw(item.ts, item.seq, item.type, again.data)))
    if not found:
        raise NotFound(f"the journal holds nothing of {ref.run_id} any more", folders.journal)
    if not hooks:
        raise DriftError(f"{ref.run_id} was not told by hooks: there are no payloads to look at again")
    before.extend(old.finish())
    after.extend(new.finish())
    try:
        first = original.events if original is not None else load_lines(encoded(before), ref.run_id).events
        second = load_lines(encoded(after), ref.run_id).events
    except RolloutError as error:
        raise DriftError(error.message) from None
    gaps = original.gaps if original is not None else []
    return Drift(ref.run_id, simulate(first, gaps), {**compare(first, second), "unevaluable": unevaluable}, policy)


def _too_many(ref: RunRef) -> DriftError:
    return DriftError(f"{ref.run_id} has more than the {limits.EVENTS} events that a rollout may have")


def of_rollout(folders: Folders, rollout: Rollout, main: Compiled, *, strict: bool = False) -> Drift:
    """Drift of a rollout file, with the payloads that the journal has of its run. Raises DriftError when it has none, StoreError."""
    run_id = rollout.start.get("run_id")
    if not isinstance(run_id, str):
        raise DriftError("the rollout names no run, so its payloads can't be found")
    try:
        ref = find(folders, run_id)
    except NotFound:
        raise DriftError(f"the journal has no run {run_id}: drift needs the recorded payloads") from None
    options = Options().kept(rollout.start.get("forensics"), rollout.start.get("tenant_id"))
    return measure(folders, ref, main, original=rollout, options=options, strict=strict)


def compare(original: list[Event], replayed: list[Event]) -> dict[str, object]:
    """Two streams of the same run. In a step the order of events does not count, nor do times, ids and what it cost."""
    a, b = _ordered(canonical(original, DRIFT)), _ordered(canonical(replayed, DRIFT))
    priced = diff(a, b)
    shape = diff(_ordered(_without_costs(a)), _ordered(_without_costs(b)))
    ends = _ends(outcome(original), outcome(replayed))
    added = [s.step for s in shape.steps if s.status == "only_in_b"]
    removed = [s.step for s in shape.steps if s.status == "only_in_a"]
    changed = [s.step for s in shape.steps if s.status == "diverged"]
    return {
        "added_steps": added,
        "removed_steps": removed,
        "changed_steps": changed,
        "divergent_tool_calls": _calls(original, replayed),
        "cost_delta_usd": priced.cost_delta,
        "outcome_diff": ends,
        "score": score(a, b).as_dict(),
        "matched": not added and not removed and not changed and ends == "identical",
    }


def _ordered(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda e: (e.step, e.type, sorted_json(e.payload)))


def _without_costs(events: list[Event]) -> list[Event]:
    return [
        Event(e.seq, e.type, e.step, None if e.payload is None else {k: v for k, v in e.payload.items() if k not in _COSTS}, e.ts)
        for e in events
    ]  # fmt: skip


def _ends(a: str, b: str) -> str:
    if a == b:
        return "identical"
    return {("completed", "failed"): "completed-vs-failed", ("failed", "completed"): "failed-vs-completed"}.get(
        (a, b), "diverged"
    )


def _calls(original: Iterable[Event], replayed: Iterable[Event]) -> list[dict[str, object]]:
    left, right = _started(original), _started(replayed)
    out: list[dict[str, object]] = []
    for key in sorted(left.keys() | right.keys()):
        a, b = left.get(key), right.get(key)
        if a is not None and b is not None and a[0] == b[0] and equal(a[1], b[1]):
            continue
        entry: dict[str, object] = {
            "step": key[0],
            "call_id": key[1],
            "side": "replayed" if a is None else "original" if b is None else "both",
        }
        for name, one in (("original", a), ("replayed", b)):
            if one is not None:
                entry[f"{name}_tool"], entry[f"{name}_args"] = one
        out.append(entry)
    return out


def _started(events: Iterable[Event]) -> dict[tuple[int, str], tuple[str, str]]:
    out: dict[tuple[int, str], tuple[str, str]] = {}
    nameless = 0
    for event in events:
        if event.type != "tool.call.started" or event.payload is None:
            continue
        name = event.payload.get("call_id")
        if not isinstance(name, str) or not name:
            nameless += 1
            name = f"call-{nameless}"
        out.setdefault(
            (event.step, name), (text_of(event.payload.get("tool")), text_of(event.payload.get("arguments")))
        )
    return out


def _where(events: list[Rendered]) -> dict[str, object]:
    """Step and call of what a line became."""
    step: object = None
    for event in events:
        data = event.get("data")
        if isinstance(data, dict):
            step = data.get("step")
            if isinstance(data.get("call_id"), str):
                return {"step": step, "call_id": data["call_id"]}
    return {"step": step, "call_id": None}


def _judge(
    policy: Policies, rejudge: Rejudge, data: dict[str, object], again: Again, where: dict[str, object], strict: bool
) -> None:
    then = data.get("verdict")
    if not isinstance(then, dict):
        policy.unevaluable.append({**where, "why": "not judged then"})
        return
    if again.why is not None:
        policy.unevaluable.append({**where, "why": again.why})
        return
    known = then.get("set")
    policy.then.add(known if isinstance(known, str) else None)
    policy.evaluated += 1
    old_action, old_policy = str(then.get("action") or "allow"), then.get("policy")
    change: dict[str, object] = {
        **where,
        "tool": data.get("tool"),
        "then": {"action": old_action, "policy": old_policy},
    }
    verdict = again.verdict
    if verdict is None or (verdict.cause != "policy" and then.get("cause") == "policy") or verdict.degraded:
        why = again.failed or (verdict.reason if verdict is not None else "it is no call any more")
        change.update(now={"action": "deny", "policy": None, "reason": why})
        kind = "error"
    elif (verdict.action, verdict.policy) == (old_action, old_policy):
        return
    else:
        change.update(now={"action": verdict.action, "policy": verdict.policy, "reason": verdict.reason})
        before, after = RANK.get(old_action, 0), RANK[verdict.action]
        kind = "stricter" if after > before else "looser" if after < before else "cited_policy"
    change["class"] = kind
    if kind != "error" and again.event is not None and verdict is not None:
        bare = rejudge.without_disk(again.event, data)
        if (bare.action, bare.policy) != (verdict.action, verdict.policy):
            change["environment"] = True
    first = next((c for c in policy.changes if c["class"] in ("stricter", "error")), None)
    if first is not None:
        change["after_divergence"] = True
    elif kind in ("stricter", "error"):
        change["first_divergent_call"] = True
    policy.counts[kind] += 1
    policy.firm += kind != "cited_policy" and (strict or "environment" not in change)
    policy.changes.append(change)
