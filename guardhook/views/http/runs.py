"""Runs, and each as its rollout."""

from __future__ import annotations

from itertools import islice

from guardhook.rollout import runs
from guardhook.rollout.runs import RunRef
from guardhook.store import NotFound, Store
from guardhook.views.http.answers import LINES, Answer
from guardhook.views.http.call import Call, tenant_of
from guardhook.views.http.traces import MOST


def items(call: Call) -> Answer:
    """Runs, the newest first."""
    limit = call.number("limit", 25, 1, MOST)
    offset = call.number("offset", 0, 0, 1 << 31)
    assert limit is not None and offset is not None
    with call.store(nothing={"items": [], "total": 0}) as store:
        found = [ref for ref in runs.list_in(store, session=call.query.get("session")) if _seen(call, store, ref)]
    found.reverse()
    return Answer({"items": [shape(ref) for ref in islice(found, offset, offset + limit)], "total": len(found)})


def _seen(call: Call, store: Store, ref: RunRef) -> bool:
    return call.caller.tenant is None or call.sees(tenant_of(store.get(ref.trace_id), call.context.tenant))


def shape(ref: RunRef) -> dict[str, object]:
    return {
        "run_id": ref.run_id,
        "trace_id": ref.trace_id,
        "session_id": ref.session,
        "dialect": ref.dialect,
        "client": ref.client,
        "opened_at": ref.opened_at,
        "closed_at": ref.closed_at,
        "open": ref.open,
        "first_seq": ref.first_seq,
        "last_seq": ref.last_seq,
    }


def find(call: Call, store: Store) -> RunRef:
    """The run that the path names, if the caller may see it. Raises NotFound, Ambiguous."""
    name = call.path["id"]
    if call.caller.tenant is None:
        return runs.find_in(store, name)
    # A tenant has to give the whole id: an unclear one would tell of others' runs.
    for ref in runs.list_in(store):
        if name in (ref.run_id, ref.trace_id) and _seen(call, store, ref):
            return ref
    raise NotFound("no such run")


def show(call: Call) -> Answer:
    with call.store() as store:
        return Answer(shape(find(call, store)))


def rollout(call: Call) -> Answer:
    """The lines of the run's file. A run that has a file in the rollout folder is told with the settings that it was written with."""
    from guardhook.rollout import export, render
    from guardhook.rollout.options import Options

    store = call.context.open()
    try:
        ref = find(call, store)
    finally:
        store.close()
    options = call.context.options or Options()
    if call.context.rollout_dir is not None:
        options = export.options_for(call.context.rollout_dir, export.name_of(ref), options)
    lines = export.lines(render.render(call.context.folders, ref, options=options))
    return Answer((raw.decode() for raw in lines), type=LINES)
