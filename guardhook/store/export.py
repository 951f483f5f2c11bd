"""Traces written out: `json` (one array), `jsonl` (one trace a line), `golden` (baselines for `check`). Memory does not grow with a trace
in json, nor with the number of traces in any format.

A trace is its documented shape with `steps`; `evals` and each step's `snapshot` only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from guardhook.store import golden
from guardhook.store.model import Trace
from guardhook.store.query import Store

FORMATS = ("json", "jsonl", "golden")
Write = Callable[[str], object]


class Written:
    """What went into an export."""

    def __init__(self) -> None:
        self.traces = 0
        self.unfinished = 0  # whose status was not completed


def write(
    out: Write,
    store: Store,
    traces: Iterable[Trace],
    format: str = "json",
    *,
    evals: bool = False,
    snapshots: bool = False,
) -> Written:
    """Writes the traces to out as ASCII text. Golden leaves forks out and knows neither evals nor snapshots of its own."""
    if format not in FORMATS:
        raise ValueError(f"no format {format!r}")
    done = Written()
    for trace in traces:
        if format == "golden" and trace.parent_trace_id is not None:
            continue
        if format == "jsonl":
            _line(out, store, trace, evals, snapshots)
        else:
            out("[\n  " if done.traces == 0 else ",\n  ")
            if format == "golden":
                from guardhook.store.jsonout import pretty

                out(pretty(golden.entry(store, trace)).replace("\n", "\n  "))
            else:
                _document(_Indented(out), store, trace, evals, snapshots)
        done.traces += 1
        done.unfinished += trace.status != "completed"
    if format != "jsonl":
        out("\n]\n" if done.traces else "[]\n")
    return done


class _Indented:
    """Passes text on two columns to the right, without the line feed at its very end."""

    def __init__(self, out: Write) -> None:
        self._out = out

    def __call__(self, text: str) -> None:
        self._out(text.removesuffix("\n").replace("\n", "\n  "))


def head(store: Store, trace: Trace) -> dict[str, object]:
    """The trace's own shape; prompts after the first one stand in its metadata."""
    out = trace.as_dict()
    later = store.prompts(trace)[1:]
    metadata = out["metadata"]
    if later and isinstance(metadata, dict):
        metadata.setdefault("follow_up_prompts", later)
    return out


def _tail(store: Store, trace: Trace, evals: bool) -> dict[str, object]:
    return {"evals": [e.as_dict() for e in store.evaluations(trace)]} if evals else {}


def _document(out: Write, store: Store, trace: Trace, evals: bool, snapshots: bool) -> None:
    from guardhook.store import steps_json

    steps_json.write(
        out, head(store, trace), trace.id, store.steps(trace), _tail(store, trace, evals),
        store.snapshots(trace) if snapshots else None,
    )  # fmt: skip


def _line(out: Write, store: Store, trace: Trace, evals: bool, snapshots: bool) -> None:
    """The indented document without its white space, which is never inside a string there."""
    from guardhook.store.steps_json import ascii_json

    parts: list[str] = []
    _document(parts.append, store, trace, evals, snapshots)
    text = "".join(parts)
    try:
        out(ascii_json(msgspec.json.format(text, indent=-1)) + "\n")
    except (msgspec.MsgspecError, ValueError):
        out("".join(line.strip() for line in text.split("\n")) + "\n")
