"""The sentences. A closed table with a version: changing one word of it changes its digest, which a test holds.

`{name:kind}` is filled in one pass, so values are never read as templates. Kinds: plain, code, quote, label, count, list. Numbers come as pairs of
sentences, for one and for many; no article stands before a placeholder. No sentence says that nothing is wrong.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from guardhook.archive.account import words

SET = "guardhook-answer-account"
VERSION = 2
# Who vouches, strongest first. `tool` is written with the tool's name.
VOUCHERS = ("person", "record", "harness", "tool", "model", "app")
_PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}", re.ASCII)


class Template(NamedTuple):
    """A sentence, and who vouches for it at most."""

    id: str
    text: str
    voucher: str


def _table() -> dict[str, Template]:
    rows = (
        ("asked.prompt", "The request as reported: {prompt:quote}", "harness"),
        ("asked.prompt.clipped", "The request as reported (first {shown:count} of {total:count} characters): {prompt:quote}", "harness"),
        ("asked.steered.one", "One more message came in while it worked.", "harness"),
        ("asked.steered.many", "{n:count} more messages came in while it worked.", "harness"),
        ("asked.context", "Guardhook added text to the request under rule {policy:code}.", "record"),
        ("asked.none", "The request is not recorded.", "record"),
        ("understood.plan.one", "It wrote down a plan of one step.", "model"),
        ("understood.plan.many", "It wrote down a plan of {n:count} steps.", "model"),
        ("understood.skill", "It used the skill {skill:label}.", "harness"),
        ("understood.delegated.one", "It handed work to one helper ({types:list}).", "harness"),
        ("understood.delegated.many", "It handed work to {n:count} helpers ({types:list}).", "harness"),
        ("understood.none", "The record holds no statement of how it read the request.", "record"),
        ("checked.total.one", "One tool call ran.", "harness"),
        ("checked.total.many", "{n:count} tool calls ran.", "harness"),
        ("checked.tool.one", "{tool:code} ran once.", "harness"),
        ("checked.tool.many", "{tool:code} ran {n:count} times.", "harness"),
        ("checked.verify.pass", "{label:label} ran and reported success.", "harness"),
        ("checked.verify.fail", "{label:label} ran and reported failure (exit code {code:plain}).", "harness"),
        ("checked.verify.unclear", "{label:label} ran, but its own result cannot be told from the record.", "harness"),
        ("checked.refused.one", "Rule {policy:code} stopped one call to {tool:code}.", "record"),
        ("checked.refused.many", "Rule {policy:code} stopped {n:count} calls to {tool:code}.", "record"),
        ("checked.refused.harness", "The coding tool itself did not permit {tool:code}.", "harness"),
        ("checked.declined", "A call to {tool:code} was turned down at a prompt.", "harness"),
        ("checked.unknown.one", "One tool call is recorded, and not whether it ran.", "record"),
        ("checked.unknown.many", "{n:count} tool calls are recorded, and not whether they ran.", "record"),
        ("checked.none", "No tool call is recorded for this turn.", "record"),
        ("missed.refused", "What {tool:code} would have shown is missing: it was stopped.", "record"),
        ("missed.changed.one", "One file changed after the last check that passed: {files:list}.", "harness"),
        ("missed.changed.many", "{n:count} files changed after the last check that passed: {files:list}.", "harness"),
        ("missed.untested", "Files changed and no declared check ran afterwards.", "harness"),
        ("missed.nodeclared", "No checks are declared for this project, so testing cannot be judged.", "record"),
        ("missed.limits.one", "One tool did not say what it left out.", "record"),
        ("missed.limits.many", "{n:count} tools did not say what they left out.", "record"),
        ("missed.coverage", "{tool:code} said it did not look at {what:quote}.", "tool"),
        ("missed.lost.one", "One event reached guardhook and was not stored.", "record"),
        ("missed.lost.many", "{n:count} events reached guardhook and were not stored.", "record"),
        ("missed.hooks", "These hooks were not installed: {hooks:list}.", "record"),
        ("missed.results", "No result of any tool is recorded. Perhaps the hooks that tell of results were not installed.", "record"),
        ("missed.none", "The record names nothing it left out. That is not proof that nothing was.", "record"),
        ("found.rows.one", "{tool:code} returned one row.", "tool"),
        ("found.rows.many", "{tool:code} returned {n:count} rows.", "tool"),
        ("found.output.one", "{tool:code} returned one character of output.", "tool"),
        ("found.output.many", "{tool:code} returned {n:count} characters of output.", "tool"),
        ("found.empty", "{tool:code} returned nothing and did not say what it searched.", "tool"),
        ("found.absent", "{tool:code} reported that nothing matched in {scope:quote}.", "tool"),
        ("found.failed", "{tool:code} reported an error ({kind:code}).", "harness"),
        ("found.cut", "The output of {tool:code} was cut before it was recorded.", "record"),
        ("found.withheld", "{tool:code} ran; rule {policy:code} kept its result back.", "record"),
        ("found.noresult", "{tool:code} started and no result is recorded.", "record"),
        ("found.more.one", "One further call is not listed here but was judged.", "record"),
        ("found.more.many", "{n:count} further calls are not listed here but were judged.", "record"),
        ("found.none", "No results are recorded.", "record"),
        ("sure.known", "A declared check that covers the answer passed afterwards.", "harness"),
        ("sure.consistent.one", "One check ran and does not speak against the answer.", "record"),
        ("sure.consistent.many", "{n:count} checks ran and none speaks against the answer.", "record"),
        ("sure.notsure", "Not sure: {reasons:list}.", "record"),
        ("sure.ask", "It is waiting for a reply from you.", "harness"),
        ("sure.unassessed", "Nothing in the record lets this answer be judged.", "record"),
        ("sure.noanswer", "The record shows no answer.", "record"),
        ("wrong.enforced", "Rule {policy:code} stopped a call to {tool:code}, yet a result for it is recorded.", "harness"),
        ("wrong.unverified.one", "One reported change came after the last check that passed, or no check ran.", "harness"),
        ("wrong.unverified.many", "{n:count} reported changes came after the last check that passed, or no check ran.", "harness"),
        ("wrong.verifyfailed", "The last declared check, {label:label}, failed.", "harness"),
        ("wrong.emptyused", "All results of this turn were empty without saying what was searched.", "tool"),
        ("wrong.emptyview.one", "One result of this turn was empty without saying what was searched.", "tool"),
        ("wrong.emptyview.many", "{n:count} results of this turn were empty without saying what was searched.", "tool"),
        ("wrong.retry", "The same call to {tool:code} failed {n:count} times unchanged.", "harness"),
        ("wrong.counts", "{failed:count} failed, {refused:count} stopped, {open:count} without a result.", "harness"),
        ("wrong.unreachable", "The check “{check:label}” could not run: {because:plain}.", "record"),
        ("wrong.clean", "{n:count} of {m:count} checks ran and raised nothing.", "record"),
        ("unreadable.line", "This line could not be written from the record.", "record"),
        ("row.more", "{n:count} more.", "record"),
        ("scope.unfiltered", "The record names no single run, so all of it was read.", "record"),
        ("summary.answered.one", "It answered after one call.", "record"),
        ("summary.answered.many", "It answered after {n:count} calls.", "record"),
        ("summary.answered.clean.one", "It answered after one call; {m:count} of {k:count} checks ran.", "record"),
        ("summary.answered.clean.many", "It answered after {n:count} calls; {m:count} of {k:count} checks ran.", "record"),
        ("summary.waiting", "It is waiting for your reply.", "record"),
        ("summary.noanswer", "The record shows no answer.", "record"),
        ("summary.nothing", "The record holds nothing for this turn.", "record"),
        ("summary.foreign", "No event in this record belongs to run {run:code}.", "record"),
    )  # fmt: skip
    return {row[0]: Template(*row) for row in rows}


TABLE = _table()


def digest() -> str:
    """SHA-256 of the table, its order included."""
    text = "\n".join("\t".join(row) for row in TABLE.values())
    return hashlib.sha256(f"{SET}\t{VERSION}\n{text}".encode()).hexdigest()


def weakest(vouchers: list[str]) -> str:
    """The weakest of several vouchers."""
    return max(vouchers, key=lambda v: VOUCHERS.index(v.partition(":")[0]))


class Value(NamedTuple):
    """A value with who vouches for it; pass it where the value decides whether the sentence is true."""

    value: object
    voucher: str


class Teller:
    """Fills templates. unread counts the lines that could not be written."""

    def __init__(self) -> None:
        self.unread = 0

    def say(
        self, name: str, *, pointers: tuple[str, ...] = (), basis: tuple[str, ...] = (), status: str = "recorded", **values: object
    ) -> dict[str, object]:  # fmt: skip
        """A sentence. basis: vouchers of hidden inputs. A value that is missing or of the wrong kind gives `unreadable.line`, never an error."""
        return self.fill(name, values, pointers=pointers, basis=basis, status=status)

    def fill(
        self, name: str, values: dict[str, object], *, pointers: tuple[str, ...] = (), basis: tuple[str, ...] = (), status: str = "recorded"
    ) -> dict[str, object]:  # fmt: skip
        """As `say`."""
        template = TABLE.get(name)
        try:
            if template is None:
                raise ValueError(name)
            return _sentence(template, values, pointers, basis, status)
        except (ValueError, TypeError, KeyError):
            self.unread += 1
            return _sentence(TABLE["unreadable.line"], {}, pointers, (), "not-recorded")


def _sentence(
    template: Template, values: dict[str, object], pointers: tuple[str, ...], basis: tuple[str, ...], status: str
) -> dict[str, object]:
    vouchers = list(basis)
    used: dict[str, object] = {}
    clipped = False
    parts: list[dict[str, str]] = []
    at = 0
    for match in _PLACE.finditer(template.text):
        if match.start() > at:
            parts.append({"type": "text", "text": template.text[at : match.start()]})
        at = match.end()
        value = values[match[1]]
        if isinstance(value, Value):
            vouchers.append(value.voucher)
            value = value.value
        part, kept, cut = _filled(match[2] or "plain", value)
        clipped = clipped or cut
        used[match[1]] = kept
        parts.append(part)
    if at < len(template.text):
        parts.append({"type": "text", "text": template.text[at:]})
    own = template.voucher
    if own == "tool":
        own = f"tool:{used.get('tool') or 'unnamed'}"
    out: dict[str, object] = {
        "text": "".join(part["text"] for part in parts),
        "parts": parts,
        "template": {"id": template.id, "version": VERSION},
        "vars": used,
        "source": weakest([own, *vouchers]),
        "status": status,
        "pointers": list(pointers[:12]),
    }
    if clipped:
        out["clipped"] = True
    return out


def _filled(kind: str, value: object) -> tuple[dict[str, str], object, bool]:
    """The part of a sentence that a value becomes, the value as it is kept, and whether it was cut."""
    if kind == "count":
        if type(value) is not int:
            raise TypeError("no number")
        return {"type": "text", "text": str(value)}, value, False
    if kind == "list":
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            raise TypeError("no list")
        items = [words.clip(v, words.NAME_CHARS) for v in value]
        texts = [text for text, _ in items]
        return {"type": "text", "text": words.joined(texts)}, texts[:12], any(cut for _, cut in items)
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str):
        raise TypeError("no text")
    most = {"code": words.NAME_CHARS, "label": words.LABEL_CHARS}.get(kind, words.LONG_CHARS)
    text, cut = words.clip(value, most)
    if not text:
        raise ValueError("nothing is left of a value")
    return {"type": kind if kind in ("code", "quote", "label") else "text", "text": text}, text, cut
