"""An account for people: as text for a terminal, as Markdown for a ticket. Both show every sentence with who vouches for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guardhook.archive.account.assess import LAYERS
from guardhook.views.text import Paint, block, one_line

_TONES = {"ok": "✔", "warn": "!", "bad": "✘", "unknown": "?"}
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&@:])")

Json = dict[str, object]


def as_text(account: Json, paint: Paint, width: int) -> Iterator[str]:
    """Lines for a terminal."""
    yield _summary(account, paint)
    for row in _list(account, "rows"):
        yield ""
        yield paint.bold(one_line(str(row["heading"])))
        for line in _list(row, "lines"):
            said = paint.dim(f"  [{one_line(str(line['source']))}]")
            wrapped = _wrapped(one_line(str(line["text"])), max(20, width - 4))
            for place, piece in enumerate(wrapped):
                last = place == len(wrapped) - 1
                yield f"  {'- ' if place == 0 else '  '}{piece}{said if last else ''}"
        if row.get("more"):
            yield f"  - {row['more']} more."
    notes = list(_notes(account))
    if notes:
        yield ""
        yield from (paint.dim(one_line(note)) for note in notes)


def as_markdown(account: Json) -> Iterator[str]:
    """Lines of Markdown. What others said is escaped: it can make no link, no heading and no HTML."""
    summary = account["summary"]
    assert isinstance(summary, dict)
    run = account["run"]
    assert isinstance(run, dict)
    yield f"**{escaped(str(summary['sentence']))}**"
    yield ""
    yield f"Run `{_code(str(run.get('runId') or 'unknown'))}`, turn {run.get('turn') or '-'} of {run.get('turns')}. Tone: {summary['tone']}. Standing: {account.get('standing') or '-'}."  # fmt: skip
    for row in _list(account, "rows"):
        yield ""
        yield f"### {row['heading']}"
        yield ""
        for line in _list(row, "lines"):
            yield f"- {_rendered(line)} _({escaped(str(line['source']))})_"
        if row.get("more"):
            yield f"- {row['more']} more."
    notes = list(_notes(account))
    if notes:
        yield ""
        yield from (f"{escaped(note)}  " for note in notes)


def standing_text(assessment: Json | None, paint: Paint) -> Iterator[str]:
    """An assessment in a few lines."""
    if assessment is None:
        yield "no answer: nothing stands or falls"
        return
    yield f"{paint.bold(str(assessment['standing']))}  ({assessment['assessment']})"
    for row in _list(assessment, "reasons"):
        if row["reason"] not in LAYERS:  # of a later version: its meaning is not known here
            continue
        more = f": {one_line(str(row['check']))}, {one_line(str(row['because']))}" if "check" in row else ""
        yield f"  {one_line(str(row['reason']))}{more}  {paint.dim(' '.join(map(one_line, map(str, _any(row, 'witness')))))}"  # fmt: skip
    for row in _list(assessment, "checked"):
        yield paint.dim(f"  {row['check']}: {row['ran']} of {row['of']}")
    if assessment.get("keptOut"):
        yield f"  kept out of the record: {', '.join(map(str, _any(assessment, 'keptOut')))}"


def session_text(session: Json, paint: Paint, width: int) -> Iterator[str]:
    """All turns of a session, each with its account, after a line of totals."""
    totals = session["totals"]
    assert isinstance(totals, dict)
    yield f"{_TONES.get(str(session['tone']), '?')} {_counted(len(_list(session, 'turns')), 'turn')}, {_counted(totals.get('calls', 0), 'call')}, {totals.get('failed', 0)} failed, {totals.get('refused', 0)} stopped. Standing of the worst: {session.get('standing') or '-'}."  # fmt: skip
    for place, account in enumerate(_list(session, "turns"), 1):
        yield ""
        yield paint.bold(f"--- turn {place} ---")
        yield from as_text(account, paint, width)


def _counted(n: object, word: str) -> str:
    return f"{n} {word if n == 1 else word + 's'}"


def _summary(account: Json, paint: Paint) -> str:
    summary = account["summary"]
    assert isinstance(summary, dict)
    tone = str(summary["tone"])
    colour = {"ok": paint.green, "warn": paint.yellow, "bad": paint.red}.get(tone, paint.dim)
    return f"{colour(_TONES.get(tone, '?'))} {paint.bold(one_line(str(summary['sentence'])))}"


def _notes(account: Json) -> Iterator[str]:
    run = account["run"]
    assert isinstance(run, dict)
    if run.get("complete") is False:
        yield "The end of this run is not in the record."
    if account["unread"]:
        yield f"{account['unread']} lines or events could not be read."
    if account["foreign"]:
        yield f"{account['foreign']} events of other runs were not read."


def _list(value: Json, name: str) -> list[Json]:
    found = value[name]
    assert isinstance(found, list)
    return found


def _any(value: Json, name: str) -> list[object]:
    found = value[name]
    assert isinstance(found, list)
    return found


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width, break_on_hyphens=False) or block(text, width)


def _rendered(line: Json) -> str:
    """A sentence with its parts marked up: names as code, words of others as they are."""
    out = []
    for part in _list(line, "parts"):
        text = str(part["text"])
        out.append(f"`{_code(text)}`" if part["type"] == "code" and text.strip() else escaped(text))
    return "".join(out)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", one_line(text)).replace("\\.", ".").replace("\\-", "-").replace("\\:", ":")


def _code(text: str) -> str:
    return one_line(text).replace("`", "'")
