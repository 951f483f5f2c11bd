"""How far an answer stands, in one word, with the reasons. Silence never proves anything: without a reason and without a check, nothing is assessed.

The value is unknown with any reason, known with support, unrefuted when a check ran that could have spoken against it, else not applicable.
"""

from __future__ import annotations

import hashlib
import re

from guardhook.archive.account import calls, results, shells
from guardhook.archive.account.calls import Call
from guardhook.archive.account.declarations import CONFIG, Declarations
from guardhook.archive.account.record import Record, prompt_of
from guardhook.archive.account.view import UNREACHABLE, View

# What a recording of hooks can't show. Never counted as having run.
NOT_BUILT = (
    "argument-assumed", "argument-asked", "argument-read", "argument-unverified", "derived-from-reading", "period-beyond-retention",
    "period-differs-from-asked", "period-not-held", "period-partly-held", "period-undeclared", "period-unknown", "sources-conflict", "steps-unfinished",
    "value-contingent", "value-survived-revision",
)  # fmt: skip
LAYERS = {
    "asked": None, "call-denied": 2, "result-error": 3, "result-missing": 3, "result-truncated": 3, "empty-undeclared": 3, "declared-absent": 3,
    "coverage-gap": 3, "changed-unverified": 4, "answer-check-failed": 4, "value-unsupported": 4, "stopped-early": 4, "check-unreachable": None,
    "capture-gap": None,
}  # fmt: skip
LIFTING = frozenset(("result-shape", "tool-coverage", "verification", "names-and-numbers"))
WITNESSES = 12
_TOKENS = re.compile(r"`([^`\s]{2,80})`|((?:[\w.-]*/){1,20}[\w.-]+)|(?<![\w.])(\d[\d.,]*\d)(?![\w])", re.ASCII)


class UnknownTurn(ValueError):
    """A turn that the record does not have."""


def assess_turn(
    recording: object,
    *,
    run_id: str | None = None,
    turn: int | str = "last",
    declarations: Declarations | None = None,
) -> dict[str, object] | None:
    """The assessment of a turn (1, 2, … or `last`); None when it has no stop and nothing is pending. Pure.

    Raises TypeError for what is no recording, UnknownTurn.
    """
    record = Record(recording, run_id)
    declared = declarations or Declarations()
    every = calls.collect(record, declared)
    place = which(record, turn)
    return None if place is None else assess(View(record, record.turns[place], declared, every))


def which(record: Record, turn: int | str) -> int | None:
    """The place of a turn; None when the record has none at all. Raises UnknownTurn."""
    if turn == "last":
        return len(record.turns) - 1 if record.turns else None
    if type(turn) is not int or not 1 <= turn <= len(record.turns):
        raise UnknownTurn(f"there is no turn {turn!r}; the record has {len(record.turns)}")
    return turn - 1


def assess(view: View) -> dict[str, object] | None:
    """The assessment of a view, None without an answer."""
    if view.stop is None and view.asked is None and view.early is None:
        return None
    reasons = _reasons(view)
    checked = _checked(view)
    support = _support(view) if not reasons and not view.kept_out else None
    lifted = any(row["check"] in LIFTING and row["ran"] for row in checked)
    if reasons:
        value, standing = "unknown", "ask" if reasons[0]["reason"] == "asked" else "not-sure"
    elif view.kept_out:
        value, standing = "not-applicable", "not-assessed"
    elif support is not None:
        value, standing = "known", "known"
    elif lifted:
        value, standing = "unrefuted", "consistent"
    else:
        value, standing = "not-applicable", "not-assessed"
    out: dict[str, object] = {"assessment": value, "standing": standing, "reasons": reasons}
    if support is not None:
        out["support"] = support
    out["checked"] = checked
    out["turnFrom"] = "person" if view.prompts else "whole-record"
    if view.kept_out:
        out["keptOut"] = view.kept_out
    out["notBuilt"] = list(NOT_BUILT)
    return out


def _reasons(view: View) -> list[dict[str, object]]:
    """All reasons that fire, in the order of the table."""
    found: list[dict[str, object]] = []

    def fire(reason: str, witness: list[str], **more: object) -> None:
        layer = LAYERS[reason]
        row: dict[str, object] = {"reason": reason}
        if layer is not None:
            row["layer"] = layer
        found.append({**row, **more, "witness": witness[:WITNESSES]})

    def of_calls(reason: str, those: list[Call]) -> None:
        if those:
            fire(reason, [c.pointer() for c in those])

    if view.asked is not None:
        fire("asked", [view.asked.at("type")])
    of_calls(
        "call-denied",
        [c for c in (*view.refused, *view.declined) if not _made_good(view, c, (calls.RAN, calls.FAILED))],
    )
    of_calls(
        "result-error", [c for c in view.ran if c.outcome == calls.FAILED and not _made_good(view, c, (calls.RAN,))]
    )
    if view.posts and not view.lost and view.stop is not None:
        of_calls("result-missing", [c for c in view.open if c.asked is None])
    of_calls("result-truncated", [c for c in view.ran if calls.is_cut(c)])
    of_calls("empty-undeclared", [c for c in view.ran if c.shape.shape == results.EMPTY])
    of_calls("declared-absent", [c for c in view.ran if c.shape.shape == results.ABSENT])
    of_calls("coverage-gap", [c for c in view.ran if c.shape.left_out])
    if any(s.kind == "changed-unverified" for s in view.signals):
        of_calls("changed-unverified", view.unverified() or view.changes)
    of_calls("answer-check-failed", [c for c in view.last_results().values() if c.verdict == "fail"])
    unsupported = unsupported_of(view)
    if unsupported:
        fire("value-unsupported", unsupported, atLeast=len(unsupported) > WITNESSES)
    if view.early is not None:
        fire("stopped-early", [view.early.at("type")])
    for check in view.checks:
        # What is not armed (no declaration, no hook for results) is no reason; nor is a gap twice.
        if check.state == UNREACHABLE and check.needs in ("hidden", "pairing"):
            fire("check-unreachable", [c.pointer() for c in view.attempts()] if check.needs == "hidden" else [], check=check.id, because=check.because)  # fmt: skip
    if view.check("verification").state == "not-applicable" and _hidden(view):
        fire("check-unreachable", [c.pointer() for c in _hidden(view)], check="verification", because="a check ran, but its own result is not in the record")  # fmt: skip
    if view.open and view.posts and view.lost:
        fire("check-unreachable", [c.pointer() for c in view.open], check="pairing", because="events are missing from the record")  # fmt: skip
    if view.lost:
        fire("capture-gap", [e.at("type") for e in view.events if e.type == "recorder.drop_detected"])
    return sorted(found, key=lambda row: list(LAYERS).index(str(row["reason"])))


def _made_good(view: View, call: Call, outcomes: tuple[str, ...]) -> bool:
    """Whether a later call of the same tool on the same target ended otherwise."""
    last = view.last_of(call)
    return any(last.get(outcome, -1) > call.place for outcome in outcomes)


def _hidden(view: View) -> list[Call]:
    """Declared checks that ran, whose result nobody can tell, and that had no result that can be told."""
    told = view.last_results()
    return [c for c in view.attempts() if c.verdict == "unclear" and c.outcome == calls.RAN and c.check is not None and c.check.id not in told]  # fmt: skip


def _checked(view: View) -> list[dict[str, object]]:
    done = [c for c in view.ran if c.end is not None]
    started = [c for c in view.calls if c.start is not None]
    allowed = [c for c in started if c.outcome not in (calls.REFUSED, calls.DECLINED)]
    rows = [
        _row(2, "guard-decision", started, [c for c in started if c.decision is not None or c.blocked is not None]),
        _row(3, "pairing", allowed, [c for c in allowed if c.outcome in (calls.RAN, calls.FAILED)]),
        _row(3, "result-shape", done, [c for c in done if c.shape.shape != results.UNKNOWN]),
        _row(3, "tool-coverage", done, [c for c in done if c.shape.declared]),
    ]
    told = view.last_results()
    rows.append({"layer": 4, "check": "verification", "ran": len(told), "of": len(view.declared.checks), "witness": [c.pointer() for c in told.values()][:WITNESSES]})  # fmt: skip
    if view.declared.names_and_numbers:
        tokens = len(tokens_of(view.answer_text)) if view.answer_text is not None else 0
        rows.append({"layer": 4, "check": "names-and-numbers", "ran": 1 if tokens else 0, "of": 1, "witness": []})
    return rows


def _row(layer: int, check: str, of: list[Call], ran: list[Call]) -> dict[str, object]:
    return {"layer": layer, "check": check, "ran": len(ran), "of": len(of), "witness": [c.pointer() for c in ran][:WITNESSES]}  # fmt: skip


def _support(view: View) -> dict[str, object] | None:
    """A declared check that covers the answer, passed last of all, under rules in force, and declared when the run was captured."""
    started = view.record.started
    captured = started.text("declarations_sha256") if started is not None else None
    if view.declared.origin != CONFIG or captured is None or captured != view.declared.digest() or view.stop is None:
        return None
    after = max(
        (c.done if c.done is not None else c.place for c in view.calls if c.changes or c.unclassified), default=-1
    )
    for call in reversed(view.calls):
        check = call.check
        if check is None or not check.covers_answer or call.verdict != "pass" or call.place <= after:
            continue
        decision = call.decision
        if decision is None or decision.text("mode") is not None:
            continue
        command = shells.command_of(call.arguments) or ""
        out: dict[str, object] = {"kind": "declared-check", "check_id": check.id, "call_id": call.id, "command_digest": _digest(command)}  # fmt: skip
        if view.answer_text is not None:
            out["answer_digest"] = _digest(view.answer_text)
        return out
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def tokens_of(text: str) -> list[str]:
    """Names and numbers in an answer: code in quotes, paths, numbers of two digits or more; each once."""
    found: dict[str, None] = {}
    for match in _TOKENS.finditer(text[:100_000]):
        token = next(group for group in match.groups() if group is not None)
        if match[3] is None or sum(c.isdigit() for c in token) >= 2:
            found.setdefault(token.rstrip(".,"))
    return list(found)


def unsupported_of(view: View) -> list[str]:
    """Names and numbers of the answer that stand in no prompt, argument or result of the turn, as pointers to the answer. Only when switched on."""
    if not view.declared.names_and_numbers or view.answer is None or view.answer_text is None:
        return []
    pile = [found[0] for e in view.prompts if (found := prompt_of(e)) is not None]
    for call in view.calls:
        pile += [str(call.start.data.get("arguments", "")) if call.start is not None else "", str(calls.output_of(call.end) or "") if call.end is not None else ""]  # fmt: skip
    seen = "\n".join(pile)
    return [view.answer.at(f"data/content#{n}") for n, token in enumerate(tokens_of(view.answer_text)) if token not in seen]  # fmt: skip
