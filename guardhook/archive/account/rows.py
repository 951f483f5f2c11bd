"""The seven rows of an account, each from its own part of the record. Nothing here judges; it tells what guardhook.archive.account.view found."""

from __future__ import annotations

import contextlib

from guardhook.archive.account import calls, results, words
from guardhook.archive.account.assess import LIFTING
from guardhook.archive.account.calls import Call
from guardhook.archive.account.record import kept_out, prompt_of
from guardhook.archive.account.templates import Teller, Value
from guardhook.archive.account.view import LABELS, REACHABLE, UNREACHABLE, View

Line = dict[str, object]
HEADINGS = (
    ("asked", "You asked"), ("understood", "It understood"), ("checked", "It checked"), ("not-checked", "It did not check"), ("found", "It found"),
    ("how-sure", "How sure"), ("anything-wrong", "Anything wrong"),
)  # fmt: skip
LISTED = 5
PROMPT_CHARS = 2000
_PLANS = frozenset(("todowrite", "todo_write", "write_todos", "update_plan"))
_SKILLS = frozenset(("skill", "use_skill", "activate_skill"))
_HIDDEN = "names left out"


class Rows:
    """Writes the lines. hide_paths leaves the names of files out of them."""

    def __init__(self, view: View, assessment: dict[str, object] | None, *, hide_paths: bool = False) -> None:
        self.view = view
        self.assessment = assessment
        self.hide_paths = hide_paths
        self.teller = Teller()

    def all(self) -> list[tuple[str, str, list[Line]]]:
        """(id, heading, lines) of each row, in order."""
        made = (self.asked, self.understood, self.checked, self.missed, self.found, self.sure, self.wrong)
        return [(id, heading, make()) for (id, heading), make in zip(HEADINGS, made, strict=True)]

    def _pair(self, name: str, n: int, *, pointers: tuple[str, ...] = (), basis: tuple[str, ...] = (), **values: object) -> Line:  # fmt: skip
        """The sentence for one or for many."""
        return self.teller.fill(name + (".one" if n == 1 else ".many"), {"n": n, **values}, pointers=pointers, basis=basis)  # fmt: skip

    def _files(self, those: list[Call]) -> list[str]:
        if self.hide_paths:
            return [_HIDDEN]
        # A name of nothing but control characters has nothing to show.
        return [words.clean(p) or "?" for p in dict.fromkeys(path for c in those for path in c.paths)]

    # --- the rows ---------------------------------------------------------------------------------------------------

    def asked(self) -> list[Line]:
        view, say = self.view, self.teller.say
        out: list[Line] = []
        first = view.prompts[0] if view.prompts else None
        found = prompt_of(first) if first is not None else None
        if first is None or found is None or kept_out(found[0]) or not words.clean(found[0]).strip():
            out.append(say("asked.none", status="not-recorded"))
        else:
            text, path = found
            shown, clipped = words.clip(text, PROMPT_CHARS)
            if clipped:
                out.append(say("asked.prompt.clipped", pointers=(first.at(path),), shown=len(shown), total=len(text), prompt=shown))  # fmt: skip
            else:
                out.append(say("asked.prompt", pointers=(first.at(path),), prompt=shown))
        steered = [e for e in view.prompts[1:] if e.main]
        if steered:
            out.append(self._pair("asked.steered", len(steered), pointers=tuple(e.at("type") for e in steered)))
        for event in view.events:
            if event.type == "hook.completed" and event.data.get("mutated") is True:
                out.append(say("asked.context", pointers=(_decision(event.seq, "policy"),), policy=event.text("policy") or "guardhook"))  # fmt: skip
        return out

    def understood(self) -> list[Line]:
        view = self.view
        out: list[Line] = []
        plan = next((c for c in reversed(view.calls) if c.tool.casefold() in _PLANS and _plan(c) is not None), None)
        if plan is not None:
            out.append(self._pair("understood.plan", _plan(plan) or 0, pointers=(plan.pointer("data/tool"),)))
        skills: dict[str, Call] = {}
        for call in view.calls:
            if call.tool.casefold() in _SKILLS and isinstance(call.arguments, dict):
                name = next((v for n in ("skill", "name", "command") if isinstance(v := call.arguments.get(n), str)), None)  # fmt: skip
                if name is not None and words.is_label(name):
                    skills.setdefault(name, call)
        out += [self.teller.say("understood.skill", pointers=(call.pointer("data/tool"),), skill=name) for name, call in list(skills.items())[:LISTED]]  # fmt: skip
        helpers = [e for e in view.events if e.type == "spawn_agent.started"]
        if helpers:
            types = list(
                dict.fromkeys(words.clean(e.text("agent_type") or "")[:60] or "no type given" for e in helpers)
            )
            out.append(self._pair("understood.delegated", len(helpers), types=types, pointers=tuple(e.at("type") for e in helpers)))  # fmt: skip
        return out or [self.teller.say("understood.none", status="not-recorded")]

    def checked(self) -> list[Line]:
        view, say = self.view, self.teller.say
        out: list[Line] = []
        if view.ran:
            out.append(self._pair("checked.total", len(view.ran)))
            counts: dict[str, list[Call]] = {}
            for call in view.ran:
                counts.setdefault(call.tool, []).append(call)
            for tool, those in list(counts.items())[:LISTED]:
                out.append(self._pair("checked.tool", len(those), tool=tool, pointers=tuple(c.pointer("data/tool") for c in those)))  # fmt: skip
        for call in view.ran:
            if call.check is None:
                continue
            label = Value(call.check.label, "app" if view.declared.origin != "config" else "record")
            pointers = (call.pointer("outcome"), f"declaration:label:{call.check.id}")
            if call.verdict == "pass":
                out.append(say("checked.verify.pass", pointers=pointers, label=label))
            elif call.verdict == "fail":
                out.append(say("checked.verify.fail", pointers=pointers, label=label, code=calls.exit_code(call.end)))
            else:
                out.append(say("checked.verify.unclear", pointers=pointers, label=label))
        stopped: dict[tuple[str, str], list[Call]] = {}
        for call in view.refused:
            if call.by == "guardhook":
                stopped.setdefault((call.policy, call.tool), []).append(call)
            else:
                out.append(say("checked.refused.harness", pointers=(call.pointer(),), tool=call.tool))
        for (policy, tool), those in list(stopped.items())[:12]:
            out.append(self._pair("checked.refused", len(those), policy=policy, tool=tool, pointers=tuple(_decision(c.blocked.seq, "policy") for c in those if c.blocked is not None)))  # fmt: skip
        out += [say("checked.declined", pointers=(c.pointer(),), tool=c.tool) for c in view.declined]
        if not out and view.open:
            return [self._pair("checked.unknown", len(view.open), pointers=tuple(c.pointer("data/tool") for c in view.open))]  # fmt: skip
        return out or [say("checked.none", status="recorded" if not view.calls else "not-recorded")]

    def missed(self) -> list[Line]:
        view, say = self.view, self.teller.say
        out: list[Line] = []
        for tool in dict.fromkeys(c.tool for c in (*view.refused, *view.declined)):
            those = tuple(c.pointer() for c in (*view.refused, *view.declined) if c.tool == tool)
            out.append(say("missed.refused", pointers=those, tool=tool))
        if view.changes:
            if not view.declared.checks:
                out.append(say("missed.nodeclared"))
            elif not view.attempts():
                out.append(say("missed.untested", pointers=tuple(c.pointer("path") for c in view.changes)))
            if view.declared.checks and any(c.verdict == "pass" for c in view.calls) and view.unverified():
                those_ = view.unverified()
                n = len({path for c in those_ for path in c.paths})
                out.append(self._pair("missed.changed", n, files=self._files(those_), pointers=tuple(c.pointer("path") for c in those_)))  # fmt: skip
        for call in view.ran:
            for place, what in enumerate(call.shape.left_out):
                out.append(say("missed.coverage", pointers=(call.pointer(f"coverage/{place}"),), tool=call.tool, what=what))  # fmt: skip
        silent = list(dict.fromkeys(c.tool for c in view.ran if c.shape.shape != results.UNKNOWN and not c.shape.declared))  # fmt: skip
        if silent:
            out.append(self._pair("missed.limits", len(silent)))
        if view.lost:
            out.append(self._pair("missed.lost", view.lost, pointers=tuple(e.at("type") for e in view.events if e.type == "recorder.drop_detected")))  # fmt: skip
        if view.calls and not view.posts and view.registered:
            out.append(say("missed.hooks", hooks=["results of tools"]))
        elif view.open and not view.posts and view.stop is not None:
            out.append(say("missed.results"))
        return out or [say("missed.none")]

    def found(self) -> list[Line]:
        view = self.view
        told: list[tuple[int, Call]] = []
        for place, call in enumerate(view.calls):
            if call.outcome in (calls.REFUSED, calls.DECLINED):
                continue
            first = call.outcome in (calls.FAILED, calls.OPEN) or call.shape.shape in (results.EMPTY, results.ABSENT)
            told.append((place if first else place + (1 << 40), call))
        told.sort(key=lambda item: item[0])
        out = [self._result(call) for _, call in told[:LISTED]]
        if len(told) > LISTED:
            out.append(self._pair("found.more", len(told) - LISTED))
        return out or [self.teller.say("found.none", status="not-recorded")]

    def _result(self, call: Call) -> Line:
        say, shape, tool = self.teller.say, call.shape, call.tool
        pointers = (call.pointer(),)
        if call.outcome == calls.OPEN:
            return say("found.noresult", pointers=pointers, status="not-recorded", tool=tool)
        if call.withheld is not None:
            return say(
                "found.withheld", pointers=(_decision(call.withheld.seq, "policy"),), tool=tool, policy=call.policy
            )
        if call.outcome == calls.FAILED:
            return say("found.failed", pointers=pointers, tool=tool, kind=calls.error_kind(call))
        if calls.is_cut(call):
            return say("found.cut", pointers=pointers, tool=tool)
        if shape.shape == results.ABSENT and shape.searched is not None and words.clean(shape.searched):
            return say("found.absent", pointers=(call.pointer("coverage/searched"),), tool=tool, scope=shape.searched)
        if shape.shape in (results.EMPTY, results.ABSENT):
            return say("found.empty", pointers=pointers, tool=tool)
        if shape.shape == results.ROWS:
            return self._pair("found.rows", shape.rows or 0, tool=tool, pointers=(call.pointer("rows"),))
        output = calls.output_of(call.end) if call.end is not None else None
        length = len(results.shown(output)) if isinstance(output, str) else 0
        return self._pair("found.output", length, pointers=pointers, tool=tool)

    def sure(self) -> list[Line]:
        view, say, found = self.view, self.teller.say, self.assessment
        if view.stop is None and view.asked is None and found is None:
            return [say("sure.noanswer", status="not-recorded")]
        if found is None:
            return [say("sure.unassessed", status="not-recorded")]
        reasons = found.get("reasons")
        standing = found.get("standing")
        if standing == "ask":
            return [say("sure.ask", pointers=(view.asked.at("type"),) if view.asked is not None else ())]
        if standing == "not-sure" and isinstance(reasons, list):
            pointers = tuple(w for row in reasons for w in row["witness"])
            return [say("sure.notsure", pointers=pointers, basis=_basis(reasons, view), reasons=[REASONS.get(str(row["reason"]), str(row["reason"])) for row in reasons])]  # fmt: skip
        if standing == "known":
            return [say("sure.known")]
        if standing == "consistent":
            checked = found.get("checked")
            n = sum(1 for row in checked if row["ran"] and row["check"] in LIFTING) if isinstance(checked, list) else 0
            return [self._pair("sure.consistent", n)]
        return [say("sure.unassessed", status="not-recorded")]

    def wrong(self) -> list[Line]:
        view, say = self.view, self.teller.say
        out: list[Line] = []
        for check in view.checks:
            lines = [line for signal in check.signals for line in self.of_signal(signal.kind, signal.calls)]
            out += lines[:3]
            if len(lines) > 3:
                out.append(say("row.more", n=len(lines) - 3))
        failed = sum(1 for c in view.ran if c.outcome == calls.FAILED)
        refused, open_ = len(view.refused) + len(view.declined), len(view.open)
        if failed or refused or open_:
            out.append(say("wrong.counts", failed=failed, refused=refused, open=open_))
        for check in view.checks:
            if check.state == UNREACHABLE:
                out.append(
                    say("wrong.unreachable", status="not-recorded", check=LABELS[check.id], because=check.because)
                )
        clean = sum(1 for c in view.checks if c.state == REACHABLE and not c.signals)
        if clean:
            out.append(say("wrong.clean", n=clean, m=len(view.checks)))
        return out or [say("wrong.clean", n=0, m=len(view.checks))]

    def of_signal(self, kind: str, those: tuple[Call, ...]) -> list[Line]:
        """The sentences that tell of a signal."""
        view, say = self.view, self.teller.say
        pointers = tuple(c.pointer() for c in those)
        if kind == "decided-not-enforced":
            return [say("wrong.enforced", pointers=(c.pointer(), _decision(c.blocked.seq, "policy")) if c.blocked is not None else (), policy=c.policy, tool=c.tool) for c in those]  # fmt: skip
        if kind == "changed-unverified":
            return [self._pair("wrong.unverified", len(those), pointers=pointers)]
        if kind == "verification-failed-last":
            check = those[0].check
            voucher = "app" if view.declared.origin != "config" else "record"
            return [say("wrong.verifyfailed", pointers=pointers, label=Value(check.label if check is not None else None, voucher))]  # fmt: skip
        if kind == "undeclared-empty-used":
            return [say("wrong.emptyused", pointers=pointers, tool=those[0].tool)]
        if kind == "undeclared-empty-in-view":
            return [self._pair("wrong.emptyview", len(those), pointers=pointers, tool=those[0].tool)]
        counts = {id(call): n for call, n in calls.retries(view.calls)}
        return [say("wrong.retry", pointers=(c.pointer(),), tool=c.tool, n=counts.get(id(c))) for c in those]

    def summary(self, run: str | None) -> Line:
        """How the turn stands, in one sentence; signals are added by the caller."""
        view, say = self.view, self.teller.say
        if not view.events:
            if view.record.foreign and run is not None:
                with contextlib.suppress(ValueError):
                    return say("summary.foreign", run=run)
            return say("summary.nothing", status="not-recorded")
        if view.asked is not None:
            return say("summary.waiting", basis=("harness",))
        if view.stop is None:
            return say("summary.noanswer", status="not-recorded")
        n = len(view.ran)
        if view.signals:
            return self._pair("summary.answered", n, basis=("harness",))
        ran = sum(1 for c in view.checks if c.state == REACHABLE)
        return self._pair("summary.answered.clean", n, m=ran, k=len(view.checks), basis=("harness",))


REASONS = {
    "call-denied": "a call was stopped", "result-error": "a call failed", "result-missing": "a result is missing", "result-truncated": "a result was cut",
    "empty-undeclared": "a result was empty without saying what was searched", "declared-absent": "a tool found nothing",
    "coverage-gap": "a tool did not look everywhere", "changed-unverified": "changes were not checked", "answer-check-failed": "a declared check failed",
    "value-unsupported": "the answer names what stands in no result", "stopped-early": "it was stopped early",
    "check-unreachable": "a check could not run", "capture-gap": "events are missing",
}  # fmt: skip
_OF_RECORD = frozenset(("check-unreachable", "capture-gap", "changed-unverified"))


def _basis(reasons: list[dict[str, object]], view: View) -> tuple[str, ...]:
    """Who vouches for the witnesses of reasons: our own record, what the harness reported, or what a tool said."""
    found: list[str] = []
    for row in reasons:
        reason = str(row["reason"])
        if reason in ("empty-undeclared", "declared-absent", "coverage-gap"):
            tool = next((c.tool for c in view.ran if c.pointer() in row["witness"]), calls.UNNAMED)  # type: ignore[operator]
            found.append(f"tool:{words.clean(tool)[:200]}")
        elif reason == "value-unsupported":
            found.append("model")
        elif reason == "call-denied":
            found.append("record" if all(c.by == "guardhook" for c in (*view.refused, *view.declined)) else "harness")
        else:
            found.append("record" if reason in _OF_RECORD else "harness")
    return tuple(found)


def _plan(call: Call) -> int | None:
    """How many steps a plan has."""
    if isinstance(call.arguments, dict):
        for name in ("todos", "plan", "steps", "items"):
            value = call.arguments.get(name)
            if isinstance(value, list) and value:
                return len(value)
    return None


def _decision(seq: int, field: str) -> str:
    return f"decision:{seq}:{field}"
