"""The file itself: what can be read without scripts first, then the timeline's data and the script that shows it."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from guardhook.core.jsontext import printable
from guardhook.store import Store, Trace
from guardhook.store.diff import Diff
from guardhook.views import text
from guardhook.views.report import data
from guardhook.views.report.script import SCRIPT
from guardhook.views.report.style import STYLE

Write = Callable[[bytes], object]
_LINE_CHARS = 4_000
_DIFFERENCES_MOST = 2_000
_KEYS = (
    ("/", "search"), ("↑ ↓", "move"), ("Enter", "open"), ("n p", "next and previous objection or error"), ("Esc", "back"),
)  # fmt: skip


class Section(NamedTuple):
    """A block of plain statements: an account's rows, evaluations. lines: (heading, texts, tone), tone is ok, warn, bad or empty."""

    title: str
    lines: Sequence[tuple[str, Sequence[str], str]]
    summary: str = ""
    tone: str = ""


ACCOUNT = "Account of the last answer"


def account(told: dict[str, object]) -> Section:
    """An account (guardhook.archive.account) as a section: each sentence with who vouches for it."""
    summary, rows = told.get("summary"), told.get("rows")
    lines = []
    for row in rows if isinstance(rows, list) else ():
        said = [f"{line['text']} [{line['source']}]" for line in row["lines"]]
        if row.get("more"):
            said.append(f"{row['more']} more.")
        lines.append((str(row["heading"]), said, ""))
    if not isinstance(summary, dict):
        return Section(ACCOUNT, lines)
    return Section(
        ACCOUNT, lines, str(summary["sentence"]), {"ok": "good"}.get(str(summary["tone"]), str(summary["tone"]))
    )


class Part(NamedTuple):
    """One trace of the report and the window of its steps."""

    trace: Trace
    sections: Sequence[Section] = ()
    first: int | None = None
    last: int | None = None


def write(out: Write, store: Store, parts: Sequence[Part], *, version: str, diff: Diff | None = None) -> None:
    """Writes the report of one trace, or of two with their differences. Memory does not grow with the traces' values."""
    measures = [data.measure(store, part.trace, part.first, part.last) for part in parts]
    most = data.ceiling(measures)
    out(_head(parts).encode())
    for index, (part, measured) in enumerate(zip(parts, measures, strict=True)):
        out(_summary(part, measured, index, len(parts)).encode())
    if diff is not None:
        out(_differences(diff).encode())
    out(_timeline(parts).encode())
    out(b'<script type="application/json" id="data">[')
    for index, (part, measured) in enumerate(zip(parts, measures, strict=True)):
        out(b",[" if index else b"[")
        before = b""
        for row in data.rows(store, part.trace, part.first, measured.last, most):
            out(before + row)
            before = b",\n"
        out(b"]")
    out(b"]</script>\n<script>" + SCRIPT.encode() + b"</script>\n")
    shortened = f" Values longer than {most:,} bytes are cut." if any(size > most for one in measures for size in one.sizes) else ""  # fmt: skip
    out(
        f"<footer>Made by guardhook {esc(version)} from its own record.{shortened}</footer>\n</body>\n</html>\n".encode()
    )


def esc(value: object) -> str:
    """Anything as one harmless line of HTML text."""
    return html.escape(printable(str(value), _LINE_CHARS))


def lines(value: str) -> str:
    """As esc, but line breaks stay."""
    cut = value[:_LINE_CHARS] + ("…" if len(value) > _LINE_CHARS else "")
    return "\n".join(html.escape(printable(line, _LINE_CHARS)) for line in cut.replace("\r\n", "\n").split("\n"))


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _head(parts: Sequence[Part]) -> str:
    names = " and ".join(esc(part.trace.id) for part in parts)
    # Only this very style and script may act, and nothing may be fetched or sent.
    policy = f"default-src 'none'; style-src 'sha256-{_hash(STYLE)}'; script-src 'sha256-{_hash(SCRIPT)}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{names}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )


def _summary(part: Part, measured: data.Measure, index: int, of: int) -> str:
    trace = part.trace
    agent = trace.agent_name + (f" {trace.agent_version}" if trace.agent_version else "")
    letter = f"{'AB'[index]}: " if of > 1 else ""
    out = [
        f"<section>\n<h1>{letter}{esc(agent)}</h1>\n",
        f'<p><span class="status {esc(trace.status)}">{esc(trace.status)}</span> <span class="soft mono">{esc(trace.id)}</span></p>\n',
    ]
    if trace.error:
        out.append(f'<blockquote class="bad">{lines(trace.error)}</blockquote>\n')
    facts = [
        ("Started", trace.started_at),
        ("Ended", trace.ended_at),
        ("Duration", text.duration(trace.effective_duration_ms)),
        ("Steps", f"{trace.step_count:,}"),
        ("Tool calls", f"{measured.counts.get('tool_call', 0):,}"),
        ("Objections of the gate", f"{measured.denied:,}"),
        ("Errors", f"{measured.errors:,}"),
        ("Tokens", None if trace.effective_tokens is None else f"{trace.effective_tokens:,}"),
        ("Cost", None if trace.total_cost_usd is None else text.cost(trace.total_cost_usd)),
        ("Project", trace.project),
        ("Session", trace.session_id),
        ("Tags", ", ".join(map(str, trace.tags)) or None),
    ]
    out.append("<dl>" + "".join(f"<div><dt>{name}</dt><dd>{esc(value)}</dd></div>" for name, value in facts if value is not None) + "</dl>\n")  # fmt: skip
    prompt = trace.input.get("prompt") if isinstance(trace.input, dict) else None
    if isinstance(prompt, str):
        out.append(f"<h2>Asked</h2>\n<blockquote>{lines(prompt)}</blockquote>\n")
    answer = trace.output.get("text") if isinstance(trace.output, dict) else None
    if isinstance(answer, str):
        out.append(f"<h2>Answered</h2>\n<blockquote>{lines(answer)}</blockquote>\n")
    out.extend(_section(section) for section in part.sections)
    out.append(_denials(measured, index if of > 1 else None))
    if measured.last is not None or part.first is not None:
        until = "the end" if measured.last is None else f"step {measured.last:,}"
        out.append(f'<p class="warn">Shown are the steps from {part.first or 1:,} to {until}, of {trace.step_count:,}.</p>\n')  # fmt: skip
    return "".join(out) + "</section>\n"


def _section(section: Section) -> str:
    out = [f"<h2>{esc(section.title)}</h2>\n"]
    if section.summary:
        out.append(f'<p class="{esc(section.tone)}">{esc(section.summary)}</p>\n')
    rows = []
    for heading, texts, tone in section.lines:
        said = "".join(f"<p>{esc(line)}</p>" for line in texts)
        rows.append(f'<dt>{esc(heading)}</dt><dd class="{esc(tone)}">{said}</dd>')
    return "".join(out) + '<dl class="wide">' + "".join(rows) + "</dl>\n"


def _denials(measured: data.Measure, of: int | None) -> str:
    if not measured.denials:
        return "<h2>Objections of the gate</h2>\n<p>None is recorded.</p>\n"
    out = [f'<h2>Objections of the gate ({measured.denied:,})</h2>\n<ul class="denials">\n']
    mark = "" if of is None else f' data-of="{of}"'
    for denial in measured.denials:
        kind = "" if denial.action == "deny" else ' class="ask"'
        where = denial.call or denial.number
        what = f' <span class="mono">{esc(denial.what[:300])}</span>' if denial.what else ""
        out.append(
            f'<li{kind}><a href="#step-{where}" data-step="{where}"{mark}>#{where}</a> <b>{esc(denial.action.replace("_", " "))}</b> '
            f'by <span class="mono">{esc(denial.policy)}</span>{what}<br><span class="soft">{esc(denial.reason)}</span></li>\n'
        )
    if measured.denied > len(measured.denials):
        out.append(f"<li>{measured.denied - len(measured.denials):,} more are in the timeline.</li>\n")
    return "".join(out) + "</ul>\n"


def _differences(diff: Diff) -> str:
    out = [f"<section>\n<h2>Differences ({len(diff.differences):,})</h2>\n"]
    if not diff.differences:
        return out[0] + "<p>The traces are identical.</p>\n</section>\n"
    if diff.divergence_step is not None:
        out.append(f'<p>They part at step <a href="#step-{diff.divergence_step}" data-step="{diff.divergence_step}">{diff.divergence_step}</a>.</p>\n')  # fmt: skip
    out.append("<table><thead><tr><th>Step</th><th>Field</th><th>A</th><th>B</th></tr></thead><tbody>\n")
    for one in diff.differences[:_DIFFERENCES_MOST]:
        number = one.step_number
        # A step that only one of them has is looked for there.
        of = {"missing_left": ' data-of="1"', "missing_right": ' data-of="0"'}.get(one.field, "")
        place = "trace" if number is None else f'<a href="#step-{number}" data-step="{number}"{of}>#{number}</a>'
        field = {"missing_left": "only in B", "missing_right": "only in A"}.get(one.field, one.field)
        old, new = (_value(v) for v in (one.left_value, one.right_value))
        out.append(f'<tr><td>{place}</td><td>{esc(field)}</td><td class="mono">{old}</td><td class="mono">{new}</td></tr>\n')  # fmt: skip
    out.append("</tbody></table>\n")
    if len(diff.differences) > _DIFFERENCES_MOST:
        out.append(f"<p>{len(diff.differences) - _DIFFERENCES_MOST:,} more are not listed.</p>\n")
    return "".join(out) + "</section>\n"


def _value(value: object) -> str:
    if value is None:
        return '<span class="soft">nothing</span>'
    said = value if isinstance(value, str) else data.encode(value).decode()
    return esc(said if len(said) <= 400 else said[:400] + "…")


def _buttons(kind: str, rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<button type="button" data-{kind}="{name}" aria-pressed="false">{said}</button>' for name, said in rows)  # fmt: skip


def _timeline(parts: Sequence[Part]) -> str:
    traces = _buttons("trace", ((str(i), "AB"[i]) for i in range(len(parts)))) if len(parts) > 1 else ""
    filters = _buttons("filter", (("all", "All"), ("prompts", "Prompts and answers"), ("tools", "Tool calls"), ("blocked", "Objections"), ("errors", "Failures")))  # fmt: skip
    keys = " ".join(f"<kbd>{key}</kbd> {what}" for key, what in _KEYS)
    return (
        "<noscript><p>The timeline needs scripts; this file allows only its own.</p></noscript>\n"
        f'<section id="timeline" hidden>\n<h2>Timeline</h2>\n<div class="bar">{traces}'
        '<input type="search" id="search" placeholder="Search names, inputs, outputs, errors" aria-label="Search the timeline" autocomplete="off" spellcheck="false">'
        f'{filters}<span id="found" class="soft" role="status"></span></div>\n'
        '<div class="panes"><div class="list" id="list" tabindex="0" role="listbox" aria-label="Steps"><div id="space"></div><div class="rows" id="rows"></div></div>'
        f'<div class="detail" id="detail" tabindex="0" aria-label="Details"></div></div>\n<p id="unprinted"></p>\n<p class="soft keys">{keys}</p>\n</section>\n</main>\n'
    )
