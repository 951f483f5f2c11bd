"""Traces written out: `json` (one array), `jsonl` (one trace a line), `golden` (baselines for `check`). Memory grows neither with the number of
traces nor with their length. Parquet files are written by guardhook.store.parquet.

A trace is its documented shape with `steps`; `evals` and each step's `snapshot` only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
            _document(out, store, trace, evals, snapshots, one_line=True)
        else:
            out("[\n  " if done.traces == 0 else ",\n  ")
            if format == "golden":
                _golden(_Indented(out), store, trace)
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


def _golden(out: Write, store: Store, trace: Trace) -> None:
    from guardhook.store.jsonout import pretty

    text = pretty(golden.entry(store, trace, steps=False))
    before, empty, after = text.partition('\n  "steps_summary": []')  # only the entry's own keys stand in this column
    out(before + empty[:-1])
    lead = "\n    "
    for step in store.steps(trace):
        out(lead + pretty(golden.summary(step)).replace("\n", "\n    "))
        lead = ",\n    "
    out(("]" if lead[0] == "\n" else "\n  ]") + after)


def _tail(store: Store, trace: Trace, evals: bool) -> dict[str, object]:
    return {"evals": [e.as_dict() for e in store.evaluations(trace)]} if evals else {}


def _document(out: Write, store: Store, trace: Trace, evals: bool, snapshots: bool, *, one_line: bool = False) -> None:
    from guardhook.store import steps_json

    (steps_json.write_line if one_line else steps_json.write)(
        out, store.shape(trace), trace.id, store.steps(trace), _tail(store, trace, evals),
        store.snapshots(trace) if snapshots else None,
    )  # fmt: skip
