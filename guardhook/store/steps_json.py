"""A trace with its steps as JSON, written step by step: memory does not grow with the trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from guardhook.store.jsonout import pretty
from guardhook.store.model import Snapshot, Step, step_id

_OTHER = re.compile(r"[^\x00-\x7e]")
Write = Callable[[str], object]


def step_text(step: Step, trace_id: str, snapshot: Snapshot | None = None, *, with_snapshot: bool = False) -> str:
    """One step's documented shape as indented JSON, ASCII only. Its JSON columns are passed through without being parsed."""
    shape: dict[str, object] = {
        "id": step_id(trace_id, step.step_number),
        "trace_id": trace_id,
        "step_number": step.step_number,
        "step_type": step.step_type,
        "name": step.name,
        "input": msgspec.Raw(step.input_json.encode()),
        "output": None if step.output_json is None else msgspec.Raw(step.output_json.encode()),
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "duration_ms": step.duration_ms,
        "tokens_used": step.tokens_used,
        "model": step.model,
        "error": step.error,
        "metadata": msgspec.Raw(step.metadata_json.encode()),
        "parent_step_number": step.parent_step_number,
        "caused_by_step_number": step.caused_by_step_number,
    }
    if step.decision is not None:
        shape["decision"] = step.decision.as_dict(trace_id)
    if with_snapshot:
        shape["snapshot"] = None if snapshot is None else snapshot.as_dict()
    try:
        return ascii_json(msgspec.json.format(msgspec.json.encode(shape), indent=2).decode())
    except (msgspec.MsgspecError, ValueError):  # a column that holds no JSON
        plain = step.as_dict(trace_id)
        if with_snapshot:
            plain["snapshot"] = shape["snapshot"]
        return pretty(plain)


def ascii_json(text: str) -> str:
    """JSON text with everything beyond ASCII (and DEL) escaped."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _OTHER.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def write(
    out: Write,
    head: dict[str, object],
    trace_id: str,
    steps: Iterable[Step],
    tail: dict[str, object],
    snapshots: Iterator[Snapshot] | None = None,
) -> None:
    """Writes what `pieces` gives."""
    for piece in pieces(head, trace_id, steps, tail, snapshots):
        out(piece)


def pieces(
    head: dict[str, object],
    trace_id: str,
    steps: Iterable[Step],
    tail: dict[str, object],
    snapshots: Iterator[Snapshot] | None = None,
) -> Iterator[str]:
    """`{…head, "steps": […], …tail}` and a line feed. snapshots: in order of steps; each step then says its own or null."""
    text = pretty(head)
    yield text[: text.rindex("\n}")] + ',\n  "steps": ['
    before = "\n    "
    for said in _texts(trace_id, steps, snapshots):
        yield before + said.replace("\n", "\n    ")
        before = ",\n    "
    yield "]" if before == "\n    " else "\n  ]"
    rest = pretty(tail)
    yield "," + rest[1:] + "\n" if tail else "\n}\n"


def write_line(
    out: Write,
    head: dict[str, object],
    trace_id: str,
    steps: Iterable[Step],
    tail: dict[str, object],
    snapshots: Iterator[Snapshot] | None = None,
) -> None:
    """The same as one line of JSON, written step by step as well."""
    out(_compact(pretty(head))[:-1] + ',"steps":[')
    before = ""
    for said in _texts(trace_id, steps, snapshots):
        out(before + _compact(said))
        before = ","
    out("]," + _compact(pretty(tail))[1:] + "\n" if tail else "]}\n")


def _compact(text: str) -> str:
    """Indented ASCII JSON without its white space, which is never inside a string there."""
    try:
        return ascii_json(msgspec.json.format(text, indent=-1))
    except (msgspec.MsgspecError, ValueError):
        return "".join(line.strip() for line in text.split("\n"))


def _texts(trace_id: str, steps: Iterable[Step], snapshots: Iterator[Snapshot] | None) -> Iterator[str]:
    waiting = next(snapshots, None) if snapshots is not None else None
    for step in steps:
        while waiting is not None and snapshots is not None and waiting.step_number < step.step_number:
            waiting = next(snapshots, None)
        own = waiting if waiting is not None and waiting.step_number == step.step_number else None
        yield step_text(step, trace_id, own, with_snapshot=snapshots is not None)
