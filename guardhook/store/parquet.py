"""Steps as a Parquet file: one row per step, with what is known of its trace. For tools that count over many sessions.

Written in row groups, so that memory depends neither on the number of traces nor on their length. Columns that begin with `trace_` are the trace's; a trace without steps has one row
whose step columns are null. input, output, metadata, options, snapshot and evals are JSON text. A time that can't be read is null. Needs pyarrow (`guardhook[parquet]`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

from guardhook.store.errors import StoreError
from guardhook.store.instants import micros
from guardhook.store.model import Snapshot, Step, Trace, step_id
from guardhook.store.query import Store

GROUP_ROWS = 20_000
GROUP_CHARS = 32 << 20  # of text in one row group

# name -> kind. `shared` is text that many rows of a trace have in common, kept once per row group.
TRACE_COLUMNS = {
    "trace_id": "shared", "trace_agent_name": "shared", "trace_agent_version": "shared", "trace_trigger": "shared", "trace_status": "shared",
    "trace_input": "shared", "trace_output": "shared", "trace_started_at": "time", "trace_ended_at": "time", "trace_duration_ms": "integer",
    "trace_tokens": "integer", "trace_cost_usd": "number", "trace_error": "shared", "trace_tags": "shared", "trace_metadata": "shared",
    "trace_parent_id": "shared", "trace_forked_from_step": "integer", "trace_session_id": "shared", "trace_dialect": "shared", "trace_project": "shared",
}  # fmt: skip
STEP_COLUMNS = {
    "step_id": "text", "step_number": "integer", "step_type": "shared", "name": "text", "input": "text", "output": "text", "started_at": "time",
    "ended_at": "time", "duration_ms": "integer", "tokens_used": "integer", "model": "shared", "error": "text", "metadata": "text",
    "parent_step_number": "integer", "caused_by_step_number": "integer", "options": "text", "chosen": "text", "rationale": "text",
    "confidence": "number", "decided_by": "shared",
}  # fmt: skip
Row = tuple[object, ...]


class MissingLibrary(StoreError):
    """pyarrow is not installed."""


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingLibrary("Parquet files need pyarrow, which is not installed") from None
    return pyarrow, pyarrow.parquet


def require() -> None:
    """Raises MissingLibrary."""
    _arrow()


def write(
    file: IO[bytes], store: Store, traces: Iterable[Trace], *, evals: bool = False, snapshots: bool = False
) -> int:
    """Writes all steps of the traces and gives how many rows there are. Raises MissingLibrary, OSError."""
    pa, pq = _arrow()
    columns = {**TRACE_COLUMNS, **({"trace_evals": "shared"} if evals else {}), **STEP_COLUMNS}
    if snapshots:
        columns["snapshot"] = "text"
    types = {
        "text": pa.string(), "shared": pa.dictionary(pa.int32(), pa.string()), "integer": pa.int64(), "number": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    written = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _groups(_rows(store, traces, evals, snapshots), list(columns.values())):
            arrays = [
                _array(pa, kind, types[kind], values)
                for kind, values in zip(columns.values(), zip(*rows, strict=True), strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=len(rows))
            written += len(rows)
    return written


def _array(pa: Any, kind: str, type_: Any, values: tuple[object, ...]) -> Any:
    if kind != "shared":
        return pa.array(values, type_)
    places: dict[object, int] = {}
    indices = [None if v is None else places.setdefault(v, len(places)) for v in values]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(list(places), pa.string()))


def _groups(rows: Iterator[Row], kinds: list[str]) -> Iterator[list[Row]]:
    texts = [index for index, kind in enumerate(kinds) if kind == "text"]
    shared = [index for index, kind in enumerate(kinds) if kind == "shared"]
    group: list[Row] = []
    size = 0
    before: Row | None = None
    for row in rows:
        group.append(row)
        size += sum(len(value) for index in texts if isinstance(value := row[index], str))
        if before is None or before[0] != row[0]:
            size += sum(len(value) for index in shared if isinstance(value := row[index], str))
        before = row
        if len(group) >= GROUP_ROWS or size >= GROUP_CHARS:
            yield group
            group, size, before = [], 0, None
    if group:
        yield group


def _rows(store: Store, traces: Iterable[Trace], evals: bool, snapshots: bool) -> Iterator[Row]:
    for trace in traces:
        head = _trace(trace)
        if evals:
            from guardhook.core.jsontext import dumps

            head = (*head, dumps([e.as_dict() for e in store.evaluations(trace)]))
        seen = store.snapshots(trace) if snapshots else iter(())
        waiting = next(seen, None)
        empty = True
        for step in store.steps(trace):
            empty = False
            row = (*head, *_step(trace.id, step))
            if snapshots:
                while waiting is not None and waiting.step_number < step.step_number:
                    waiting = next(seen, None)
                row = (*row, _snapshot(waiting) if waiting and waiting.step_number == step.step_number else None)
            yield row
        if empty:
            yield (*head, *[None] * (len(STEP_COLUMNS) + snapshots))


def _trace(trace: Trace) -> Row:
    return (
        trace.id, trace.agent_name, trace.agent_version, trace.trigger, trace.status, trace.input_json, trace.output_json,
        micros(trace.started_at), micros(trace.ended_at), trace.effective_duration_ms, trace.effective_tokens, trace.total_cost_usd,
        trace.error, trace.tags_json, trace.metadata_json, trace.parent_trace_id, trace.forked_from_step, trace.session_id, trace.dialect,
        trace.project,
    )  # fmt: skip


def _step(trace_id: str, step: Step) -> Row:
    return (
        step_id(trace_id, step.step_number), step.step_number, step.step_type, step.name, step.input_json, step.output_json,
        micros(step.started_at), micros(step.ended_at), step.duration_ms, step.tokens_used, step.model, step.error, step.metadata_json,
        step.parent_step_number, step.caused_by_step_number, step.options_json, step.chosen, step.rationale, step.confidence,
        step.decided_by,
    )  # fmt: skip


def _snapshot(snapshot: Snapshot) -> str:
    from guardhook.core.jsontext import dumps

    return dumps(snapshot.as_dict())
