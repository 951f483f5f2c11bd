"""The account of one answer: seven rows of sentences, the facts below them, and one sentence on top. Pure: no clock, no locale, no order of sets."""

from __future__ import annotations

from guardhook.archive.account import calls, limits, results, templates, words
from guardhook.archive.account.assess import assess, which
from guardhook.archive.account.calls import Call
from guardhook.archive.account.declarations import Declarations
from guardhook.archive.account.record import Record, kept_out, prompt_of
from guardhook.archive.account.rows import Rows
from guardhook.archive.account.view import NOT_APPLICABLE, UNREACHABLE, View
from guardhook.archive.facts import text_of

KIND = "guardhook/answer-account"
SHAPE = 1
RANK = ("ok", "unknown", "warn", "bad")
STANDINGS = ("known", "consistent", "not-assessed", "not-sure", "ask")  # best first


def account_for_answer(
    recording: object,
    *,
    run_id: str | None = None,
    turn: int | str = "last",
    declarations: Declarations | None = None,
    hide_paths: bool = False,
) -> dict[str, object]:
    """The account of a turn (1, 2, … or `last`) of a recording. What is damaged in it is passed over line by line and counted.

    Raises TypeError for what is no recording, UnknownTurn.
    """
    record = Record(recording, run_id)
    declared = declarations or Declarations()
    every = calls.collect(record, declared)
    return _account(record, which(record, turn), declared, every, hide_paths)


def account_for_session(
    recording: object,
    *,
    run_id: str | None = None,
    declarations: Declarations | None = None,
    hide_paths: bool = False,
) -> dict[str, object]:
    """An account for every turn, and totals. The session's word is that of its worst turn; standings are never averaged."""
    record = Record(recording, run_id)
    declared = declarations or Declarations()
    every = calls.collect(record, declared)
    turns = [_account(record, place, declared, every, hide_paths) for place in range(len(record.turns))]
    standings = [text_of(t["standing"]) for t in turns]
    told = [s for s in standings if s is not None]
    totals: dict[str, int] = {}
    for one in turns:
        facts = one["facts"]
        assert isinstance(facts, dict)
        for name, count in facts["counts"].items():
            totals[name] = totals.get(name, 0) + count
    return {
        "kind": "guardhook/session-account",
        "shape": SHAPE,
        "run": {
            "runId": record.run,
            "turns": len(record.turns),
            "harness": record.harness(),
            "complete": record.ended(),
        },
        "turns": turns,
        "totals": totals,
        "standing": max(told, key=STANDINGS.index) if told else None,
        "tone": max((_tone_of(t) for t in turns), key=RANK.index, default="unknown"),
        "unread": record.unread + sum(_whole(t["unread"]) for t in turns) - record.unread * len(turns),
        "foreign": record.foreign,
        "scope": record.scope,
    }


def _tone_of(account: dict[str, object]) -> str:
    summary = account["summary"]
    assert isinstance(summary, dict)
    return str(summary["tone"])


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _account(
    record: Record, place: int | None, declared: Declarations, every: list[Call], hide_paths: bool
) -> dict[str, object]:
    view = View(record, None if place is None else record.turns[place], declared, every)
    assessment = assess(view) if place is not None else None
    writer = Rows(view, assessment, hide_paths=hide_paths)
    rows: list[dict[str, object]] = []
    for id, heading, lines in writer.all():
        kept, more = limits.row(lines, writer.teller)
        row: dict[str, object] = {"id": id, "heading": heading, "lines": kept}
        if more:
            row["more"] = more
        row["chips"] = list(dict.fromkeys(str(line["source"]) for line in kept))
        row["status"] = "recorded" if any(line["status"] == "recorded" for line in kept) else "not-recorded"
        rows.append(row)
    summary = _summary(view, writer, assessment)
    account: dict[str, object] = {
        "kind": KIND,
        "shape": SHAPE,
        "templates": {"set": templates.SET, "version": templates.VERSION},
        "run": {"runId": record.run, "turn": None if place is None else place + 1, "turns": len(record.turns), "harness": record.harness(), "complete": record.ended()},
        "question": _question(view),
        "answer": _answer(view),
        "facts": _facts(view, hide_paths),
        "rows": rows,
        "checks": [{"id": c.id, "state": c.state, **({"because": c.because} if c.because is not None else {})} for c in view.checks],
        "signals": [{"id": s.kind, "check": s.check, "tone": s.tone, "count": len(s.calls), "pointers": [c.pointer() for c in s.calls[:12]]} for s in view.signals],
        "unreachable": [{"check": c.id, "because": c.because} for c in view.checks if c.state == UNREACHABLE],
        "standing": assessment["standing"] if assessment is not None else None,
        "summary": summary,
        "unread": record.unread + writer.teller.unread,
        "foreign": record.foreign,
        "scope": record.scope,
    }  # fmt: skip
    limits.shrink(account)
    return account


def _summary(view: View, writer: Rows, assessment: dict[str, object] | None) -> dict[str, object]:
    """One sentence and the tone: the state of the turn, then at most two signals."""
    lines = [writer.summary(view.record.run)]
    for signal in view.signals[:2]:
        lines += writer.of_signal(signal.kind, signal.calls)[:1]
    if view.record.scope == "unfiltered" and view.events:
        lines.append(writer.teller.say("scope.unfiltered"))
    return {
        "sentence": " ".join(str(line["text"]) for line in lines),
        "parts": [part for line in lines for part in line["parts"]],  # type: ignore[attr-defined]
        "templates": [line["template"] for line in lines],
        "source": templates.weakest([str(line["source"]) for line in lines]),
        "tone": _tone(view, assessment),
    }


def _tone(view: View, assessment: dict[str, object] | None) -> str:
    tones = {signal.tone for signal in view.signals}
    standing = assessment["standing"] if assessment is not None else None
    if "bad" in tones:
        return "bad"
    if "warn" in tones or standing == "not-sure":
        return "warn"
    unreachable = any(c.state == UNREACHABLE for c in view.checks)
    unclear = view.stop is None or standing in (None, "not-assessed", "ask")
    return "unknown" if unreachable or unclear or view.lost else "ok"


def _fact(
    value: object, source: str, pointers: list[str], *, missing: str | None = None, clipped: bool = False
) -> dict[str, object]:
    out: dict[str, object] = {"value": value, "source": source, "status": "recorded" if value is not None else "not-recorded", "pointers": pointers}  # fmt: skip
    if missing is not None:
        out["missing"] = missing
    if clipped:
        out["clipped"] = True
    return out


def _question(view: View) -> dict[str, object]:
    first = view.prompts[0] if view.prompts else None
    found = prompt_of(first) if first is not None else None
    if first is None or found is None:
        return _fact(None, "record", [], missing="lost" if view.lost else "no-event")
    if kept_out(found[0]):
        return _fact(None, "record", [first.at(found[1])], missing="unreadable")
    text, clipped = words.clip(found[0], limits.QUESTION_CHARS)
    return _fact(text, "harness", [first.at(found[1])], clipped=clipped)


def _answer(view: View) -> dict[str, object]:
    if view.answer is None:
        return _fact(None, "record", [], missing="lost" if view.lost else "no-event")
    if view.answer_text is None:
        return _fact(None, "record", [view.answer.at("data/content")], missing="unreadable")
    text, clipped = words.clip(view.answer_text, limits.ANSWER_CHARS)
    return _fact(text, "model", [view.answer.at("data/content")], clipped=clipped)


def _facts(view: View, hide_paths: bool) -> dict[str, object]:
    counts = {"calls": len(view.calls)}
    for name in (calls.RAN, calls.FAILED, calls.REFUSED, calls.DECLINED, calls.OPEN):
        counts[name] = sum(1 for c in view.calls if c.outcome == name)
    counts["unnamed"] = sum(1 for c in view.calls if c.tool == calls.UNNAMED)
    for name in (results.EMPTY, results.ABSENT, results.ROWS):
        counts[name] = sum(1 for c in view.ran if c.shape.shape == name)
    counts["changes"] = len(view.changes)
    counts["lost"] = view.lost
    listed = view.calls[: limits.CALLS]
    return {
        "calls": [_call(c, hide_paths) for c in listed],
        "omitted": len(view.calls) - len(listed),
        "counts": counts,
        "checks": {state: sum(1 for c in view.checks if c.state == state) for state in ("reachable", UNREACHABLE, NOT_APPLICABLE)},
    }  # fmt: skip


def _call(call: Call, hide_paths: bool) -> dict[str, object]:
    out: dict[str, object] = {"tool": words.clip(call.tool, words.NAME_CHARS)[0], "outcome": call.outcome}
    if call.by is not None:
        out["by"] = call.by
    if call.by == "guardhook" or call.withheld is not None:
        out["policy"] = words.clip(call.policy, words.NAME_CHARS)[0]
    if call.withheld is not None:
        out["withheld"] = True
    code = calls.exit_code(call.end)
    if code is not None:
        out["exitCode"] = code
    if call.shape.shape != results.UNKNOWN:
        out["emptiness"] = call.shape.shape
    if call.shape.rows is not None:
        out["rows"] = call.shape.rows
    if call.check is not None:
        out["check"] = call.check.id
        out["verdict"] = call.verdict
    if call.changes and not hide_paths and call.path is not None:
        out["path"] = words.clip(call.path, words.NAME_CHARS)[0]
    if calls.is_cut(call):
        out["cut"] = True
    out["pointer"] = call.pointer()
    return out
