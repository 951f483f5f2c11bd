"""The documented JSON shapes that are put together from several questions to the store: the same for `--json` and for the HTTP interface."""

from __future__ import annotations

import time
from collections.abc import Iterator

from guardhook.core.folders import Folders
from guardhook.store import Filter, Step, Store, Trace, steps_json
from guardhook.views.chain import chain


def show(
    store: Store,
    trace: Trace,
    first: int | None,
    last: int | None,
    *,
    snapshots: bool = False,
    steps_only: bool = False,
) -> Iterator[str]:
    """The text of `show --json` in pieces: memory does not grow with the trace."""
    tail: dict[str, object] = {}
    if not steps_only:
        tail["evals"] = [e.as_dict() for e in store.evaluations(trace)]
    shown = store.count_steps(trace, first, last)
    if shown != trace.step_count:
        tail["step_window"] = {"from": first, "to": last, "shown": shown, "omitted": trace.step_count - shown}
    head: dict[str, object] = {"id": trace.id} if steps_only else store.shape(trace)
    return steps_json.pieces(
        head, trace.id, store.steps(trace, first, last), tail, store.snapshots(trace, first, last) if snapshots else None
    )  # fmt: skip


def decisions(store: Store, trace: Trace) -> dict[str, object]:
    """What `decisions --json` says."""
    return {"trace_id": trace.id, "decisions": [_decision(step, trace.id) for step in store.decisions(trace)]}


def _decision(step: Step, trace_id: str) -> dict[str, object]:
    out: dict[str, object] = {"step_number": step.step_number, "name": step.name}
    if step.decision is not None:
        out.update(step.decision.as_dict(trace_id))
    return out


def why(store: Store, trace: Trace, number: int) -> dict[str, object]:
    """What `why --json` says. Raises NotFound."""
    return {
        "trace_id": trace.id,
        "step": number,
        "chain": [
            {
                "step_number": step.step_number,
                "step_type": step.step_type,
                "name": step.name,
                "link": link,
                "decision": None if step.decision is None else step.decision.as_dict(trace.id),
            }
            for step, link in chain(store, trace, number)
        ],
    }


def stats(store: Store, folders: Folders, chosen: Filter) -> dict[str, object]:
    """What `stats --json` says."""
    bound = None
    if chosen.since_us is not None:
        from guardhook.store import instants

        bound = instants.iso_ms(chosen.since_us)
    return {"since": bound, **store.stats(chosen, policies=enabled_policies(folders))}


NO_STATS: dict[str, object] = {
    "since": None,
    "overall": {
        "traces": 0, "steps": 0, "evals": 0, "policies": 0, "avgDurationMs": None, "avgDurationSample": 0, "totalTokens": None, "totalCost": None,
    },
    "by_status": {"running": 0, "completed": 0, "failed": 0, "timeout": 0},
    "by_agent": [],
}  # fmt: skip


def enabled_policies(folders: Folders) -> int:
    """How many policies are on, as compiled; as read from their files when those are newer."""
    from guardhook.policy import compiled, tomlfile

    try:
        return len(compiled.load(folders).policies)
    except compiled.CompiledError:
        from guardhook.policy import load

        try:
            return sum(1 for found in load.load(folders, time.time()).policies if found.on)
        except (OSError, tomlfile.PolicyError):
            return 0
