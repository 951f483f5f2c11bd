"""A trace as the rows of a report's timeline, cut so that the whole file stays one that a browser opens at once."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from guardhook.store import Step, Store, Trace
from guardhook.store.model import Happening
from guardhook.views import timeline

BUDGET_BYTES = 10 << 20  # of recorded values, over all traces of a report
STEPS_MOST = 20_000
NAME_CHARS = 200
DENIALS_MOST = 500
_LEAST_BYTES = 200
_EMPTY = (None, "null", "{}", "[]")

encode = msgspec.json.Encoder().encode


class Denial(NamedTuple):
    """What the gate said against a call. call is the number of the step in question, None when it was no call."""

    number: int
    call: int | None
    action: str
    policy: str
    reason: str
    what: str


class Measure(NamedTuple):
    """What a first reading of a trace tells: bytes of its values, and what belongs into the summary."""

    sizes: array[int]
    counts: dict[str, int]
    errors: int
    denials: list[Denial]
    denied: int
    last: int | None  # the last step that is shown, None for all


_NOT_AS_IT_IS = re.compile("[<\x7f-\x9f\u2028\u2029]")


def embedded(value: object) -> bytes:
    """JSON that can stand in an HTML script element: no `<`, no line separators of JavaScript's, and nothing that controls a terminal which the page is printed on."""
    text = encode(value)
    if text.isascii() and b"<" not in text and b"\x7f" not in text:
        return text
    return _NOT_AS_IT_IS.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode()).encode()


def size(text: str) -> int:
    """Bytes that a text takes in the file."""
    return len(embedded(text))


def measure(store: Store, trace: Trace, first: int | None, last: int | None) -> Measure:
    """Reads the trace once and keeps only sizes and counts. At most STEPS_MOST steps are shown."""
    sizes: array[int] = array("Q")
    counts: dict[str, int] = {}
    denials: list[Denial] = []
    errors = denied = 0
    calls: dict[int, str] = {}
    end = last
    for shown, step in enumerate(store.steps(trace, first, last)):
        if shown == STEPS_MOST:
            end = step.step_number - 1
            break
        counts[step.step_type] = counts.get(step.step_type, 0) + 1
        errors += step.error is not None
        sizes.extend(size(v) for v in values(step) if v)
        if step.step_type == "tool_call":
            calls[step.step_number] = f"{step.name} {step.input_json[:400]}"
            if len(calls) > 64:
                del calls[next(iter(calls))]
        elif step.step_type == "guard_check" and step.chosen not in (None, "allow"):
            denied += 1
            if len(denials) < DENIALS_MOST:
                call = step.caused_by_step_number
                denials.append(
                    Denial(
                        step.step_number,
                        call,
                        str(step.chosen),
                        step.name.removeprefix("guard:"),
                        step.rationale or "",
                        calls.get(call or 0, ""),
                    )
                )
    return Measure(sizes, counts, errors, denials, denied, end)


def values(step: Step) -> tuple[str, str, str]:
    """Input, output and error of a step as they are shown; empty where there is nothing."""
    return (
        "" if step.input_json in _EMPTY else step.input_json,
        "" if step.output_json is None or step.output_json in _EMPTY else step.output_json,
        step.error or "",
    )


def ceiling(measures: list[Measure], budget: int = BUDGET_BYTES) -> int:
    """The most bytes that one value may take so that all of them together stay in the budget."""
    sizes = sorted(size for one in measures for size in one.sizes)
    left, rest = budget, len(sizes)
    for size in sizes:
        if size * rest > left:
            return max(_LEAST_BYTES, left // rest)
        left -= size
        rest -= 1
    return budget


def cut(text: str, most: int) -> tuple[str, int | None]:
    """The text's start in at most this many bytes of the file, and its true length in characters when it was cut."""
    if len(text) * 6 <= most or size(text) <= most:
        return text, None
    kept = text[:most]
    while size(kept) > most:
        kept = kept[: max(1, min(len(kept) - 1, len(kept) * most // size(kept)))]
    return kept, len(text)


def rows(store: Store, trace: Trace, first: int | None, last: int | None, most: int) -> Iterator[bytes]:
    """The rows of the timeline, one JSON text each. most: bytes of one value."""
    depths: dict[int, int] = {}
    happened = store.happenings(trace, first, last)
    waiting = next(happened, None)
    for step in store.steps(trace, first, last):
        while waiting is not None and waiting.before_step <= step.step_number:
            yield _happening(waiting, most)
            waiting = next(happened, None)
        depth = depths.get(step.parent_step_number, -1) + 1 if step.parent_step_number is not None else 0
        if step.step_type == "thought" or step.parent_step_number is not None:
            depths[step.step_number] = depth
            if len(depths) > STEPS_MOST:
                del depths[next(iter(depths))]
        yield _step(step, depth, most)
    while waiting is not None:
        yield _happening(waiting, most)
        waiting = next(happened, None)


def _step(step: Step, depth: int, most: int) -> bytes:
    facts = [step.model] if step.model else []
    if step.tokens_used is not None:
        facts.append(f"{step.tokens_used:,} tokens")
    if step.caused_by_step_number is not None:
        facts.append(f"about step {step.caused_by_step_number}")
    texts, lengths = [], []
    for value in values(step):
        text, length = cut(value, most)
        texts.append(text or None)
        lengths.append(length)
    choice = None
    if step.chosen is not None:
        choice = [step.chosen, cut(step.rationale or "", most)[0], step.decided_by or "agent"]
    row: list[object] = [
        "s", step.step_number, step.step_type, step.name[:NAME_CHARS], state(step), step.duration_ms, step.started_at, depth, facts, *texts,
        choice, timeline.notes(step), lengths if any(lengths) else None,
    ]  # fmt: skip
    return _trimmed(row)


def state(step: Step) -> str:
    """`blocked`, `error`, `guard` (the gate objected), `open` (no result), or nothing."""
    if step.step_type == "guard_check":
        return "guard" if step.chosen not in (None, "allow") else ""
    if step.metadata_json != "{}" and step.metadata.get("blocked"):
        return "blocked"
    if step.error is not None:
        return "error"
    return "open" if step.step_type == "tool_call" and step.ended_at is None else ""


def _happening(what: Happening, most: int) -> bytes:
    text, length = cut(what.text or " ".join(f"{k}: {v}" for k, v in what.detail.items()), most)
    label = timeline.label(what)
    row: list[object] = [
        "e",
        None,
        what.event,
        label[:NAME_CHARS],
        "",
        None,
        what.ts,
        0,
        None,
        text or None,
        None,
        None,
        None,
        None,
    ]
    return _trimmed([*row, [length] if length else None])


def _trimmed(row: list[object]) -> bytes:
    while row and row[-1] in (None, [], ""):
        row.pop()
    return embedded(row)
