"""Steps of a trace as lines of text, one after the other: printed plainly, so that a trace of any length takes no memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from guardhook.store.model import Happening, Step
from guardhook.views.text import Paint, block, cells, duration, fit, one_line

LABELS = {
    "thought": ("💭", "Thought"),
    "tool_call": ("🔧", "Tool Call"),
    "llm_call": ("🤖", "LLM Call"),
    "retrieval": ("🔍", "Retrieval"),
    "output": ("➡", "Output"),
    "decision": ("◆", "Decision"),
    "error": ("✘", "Error"),
    "guard_check": ("🛡", "Guard Check"),
}
NAME_CHARS = 80
ERROR_LINES = 12
_EMPTY = (None, "null", "{}", "[]")
_HAPPENED = {
    "user_prompt": "Prompt",
    "session_start": "Session started",
    "session_end": "Session ended",
    "compact": "Compacted",
    "notification": "Notification",
    "interrupt": "Interrupted",
    "config_change": "Settings changed",
}


def lines(steps: Iterable[Step], happenings: Iterator[Happening], width: int, paint: Paint) -> Iterator[str]:
    """The timeline: steps by number, and what happened between them."""
    waiting = next(happenings, None)
    last = 0
    for step in steps:
        while waiting is not None and waiting.before_step <= step.step_number:
            yield from happened(waiting, width, paint)
            waiting = next(happenings, None)
        yield from step_lines(step, width, paint)
        last = step.step_number
    while waiting is not None and waiting.before_step <= last + 1:
        yield from happened(waiting, width, paint)
        waiting = next(happenings, None)


def label(what: Happening) -> str:
    """What it is called."""
    return _HAPPENED.get(what.event) or what.native_event or what.event


def happened(what: Happening, width: int, paint: Paint) -> Iterator[str]:
    """A prompt with its whole text, anything else on one line."""
    name = one_line(label(what), 40)
    blocked = " (blocked)" if what.detail.get("blocked") else ""
    if what.event == "user_prompt":
        yield paint.cyan(f"◇ {name}{blocked}")
        for text in block(what.text or "(not recorded)", width - 2):
            yield f"{paint.dim('│')} {text}"
        return
    said = what.text or " ".join(f"{k} {v}" for k, v in what.detail.items())
    yield paint.dim(f"◇ {name}") + (" " + one_line(said, max(10, width - cells(name) - 3)) if said else "")


def head(step: Step, width: int, paint: Paint, *, before: str = "├─ ") -> str:
    """A step's first line: connector, number, icon, label, name, duration."""
    label, columns = _LABELLED.get(step.step_type) or (f"? {step.step_type}", len(step.step_type) + 2)
    took = "" if step.duration_ms is None else duration(step.duration_ms)
    if not took and step.ended_at is None:
        took = "open"
    number = str(step.step_number)
    room = width - len(before) - len(number) - columns - len(took) - 5
    name = one_line(step.name, max(8, min(NAME_CHARS, room)))
    mark = paint.red if step.error is not None else paint.yellow if step.step_type == "guard_check" else paint.bold
    said = f"{paint.dim(before)}{number} {label} {mark(chr(34) + name + chr(34))}"
    return f"{said} {paint.dim(took)}" if took else said


_LABELLED = {kind: (f"{icon} {label}", cells(f"{icon} {label}")) for kind, (icon, label) in LABELS.items()}


def step_lines(step: Step, width: int, paint: Paint) -> Iterator[str]:
    """All lines of a step."""
    yield head(step, width, paint)
    gutter = paint.dim("│") + "    "
    room = max(8, width - 13)
    if step.model is not None:
        yield f"{gutter}{paint.dim('Model   ')}{one_line(step.model, room)}"
    if step.input_json not in _EMPTY:
        yield f"{gutter}{paint.dim('Input   ')}{one_line(step.input_json, room)}"
    if step.output_json is not None and step.output_json not in _EMPTY:
        yield f"{gutter}{paint.dim('Output  ')}{one_line(step.output_json, room)}"
    if step.chosen is not None:
        yield f"{gutter}{paint.dim('Chose   ')}{one_line(step.chosen, room)}"
        if step.rationale:
            yield f"{gutter}{paint.dim('Because ')}{one_line(step.rationale, room)}"
    if step.error is not None:
        for index, text in enumerate(block(step.error, room, ERROR_LINES)):
            yield f"{gutter}{paint.red('Error   ' if index == 0 else '        ')}{text}"
    marks = notes(step)
    if marks:
        yield f"{gutter}{paint.dim('Note    ')}{fit(', '.join(marks), room)}"
    if step.tokens_used is not None:
        yield f"{gutter}{paint.dim('Tokens  ')}{step.tokens_used:,}"


_NOTES = (
    ("rewritten", "input was rewritten after it was judged"),
    ("ran_although_blocked", "ran although it was blocked"),
    ("unpaired", "result without a call"),
    ("stripped", "input not recorded"),
    ("redacted", "redacted"),
    ("output_redacted", "output redacted"),
    ("cut", "cut"),
    ("output_cut", "output cut"),
    ("paused", "while guardhook was paused"),
)


def notes(step: Step) -> list[str]:
    """What a reader must know about a step's values."""
    text = step.metadata_json
    found = [said for key, said in _NOTES if f'"{key}":' in text]
    if not found:
        return []
    metadata = step.metadata
    return [said for key, said in _NOTES if metadata.get(key)]
