"""Results as a JUnit file, the form that continuous integration shows."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from guardhook.views.text import one_line


class Case(NamedTuple):
    """One test. outcome is passed, failure, error or skipped; message one line, details as many as wanted. Of a passed test both are its output."""

    group: str
    name: str
    outcome: str = "passed"
    message: str = ""
    details: Sequence[str] = ()


def document(suite: str, cases: Sequence[Case]) -> str:
    """The XML text. Whatever agents said in it is escaped first, so there is no character that XML forbids."""
    count = {o: sum(c.outcome == o for c in cases) for o in ("failure", "error", "skipped")}
    head = f'name={_attribute(suite)} tests="{len(cases)}" failures="{count["failure"]}" errors="{count["error"]}" skipped="{count["skipped"]}"'
    out = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites><testsuite {head}>"]
    for case in cases:
        start = f"<testcase classname={_attribute(case.group)} name={_attribute(case.name)}"
        if case.outcome == "passed":
            said = _text([case.message, *case.details]) if case.message else ""
            out.append(f"{start}><system-out>{said}</system-out></testcase>" if said else start + "/>")
            continue
        details = _text(case.details)
        out.append(f"{start}><{case.outcome} message={_attribute(case.message)}>{details}</{case.outcome}></testcase>")
    out.append("</testsuite></testsuites>\n")
    return "\n".join(out)


def _text(lines: Sequence[str]) -> str:
    return "\n".join(html.escape(one_line(line), quote=False) for line in lines)


def _attribute(text: str) -> str:
    return f'"{html.escape(one_line(text))}"'
