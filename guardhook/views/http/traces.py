"""Traces and steps, in the shapes of the commands' `--json`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from guardhook.store import Filter, Store, Trace, instants
from guardhook.views import shapes
from guardhook.views.http.answers import Answer, Refusal
from guardhook.views.http.call import Call, tenant_of

MOST = 1000
_BIG = (1 << 31) - 1


def narrowed(call: Call, store: Store) -> Filter:
    """The filter that the query means. Raises Refusal, BadQuery."""
    given = {name: call.query.get(name) for name in ("status", "agent", "tag", "session", "since", "project")}
    for name, value in given.items():
        if value is not None and not value.strip():
            raise Refusal(400, "invalid_request", f"{name} needs a value")
    since = given.pop("since")
    return Filter(**given, since_us=None if since is None else instants.since(since, int(store.now * 1_000_000)))  # type: ignore[arg-type]


def items(call: Call) -> Answer:
    limit = call.number("limit", 25, 1, MOST)
    offset = call.number("offset", 0, 0, _BIG)
    assert limit is not None and offset is not None
    sort = call.query.get("sort")
    with call.store(nothing={"items": [], "total": 0}) as store:
        chosen = narrowed(call, store)
        if call.caller.tenant is None:
            page = store.traces(chosen, sort=sort, limit=limit, offset=offset)
            return Answer({"items": [trace.as_item() for trace in page.items], "total": page.total})
        own = _own(call, store.iterate(chosen, sort=sort))
        found = [trace.as_item() for trace in islice(own, offset, offset + limit)]
        total = offset + len(found) + sum(1 for _ in own) if found or not offset else sum(1 for _ in _own(call, store.iterate(chosen)))  # fmt: skip
        return Answer({"items": found, "total": total})


def _own(call: Call, found: Iterator[Trace]) -> Iterator[Trace]:
    return (trace for trace in found if call.sees(tenant_of(trace, call.context.tenant)))


def show(call: Call) -> Answer:
    first = call.number("from_step", None, 1, _BIG)
    last = call.number("to_step", None, 1, _BIG)
    if first is not None and last is not None and first > last:
        raise Refusal(400, "invalid_request", "from_step lies after to_step")
    snapshots, steps_only = call.flag("snapshots"), call.flag("steps_only")
    store = call.context.open()
    try:
        trace = call.trace(store, call.path["id"])
        pieces = shapes.show(store, trace, first, last, snapshots=snapshots, steps_only=steps_only)
    except BaseException:
        store.close()
        raise
    return Answer(pieces, done=store.close)


def decisions(call: Call) -> Answer:
    with call.store() as store:
        return Answer(shapes.decisions(store, call.trace(store, call.path["id"])))


def why(call: Call) -> Answer:
    number = call.number("step", None, 1, _BIG)
    if number is None:
        raise Refusal(400, "invalid_request", "step is missing: the number of the step in question")
    with call.store() as store:
        return Answer(shapes.why(store, call.trace(store, call.path["id"]), number))


def stats(call: Call) -> Answer:
    with call.store(nothing=shapes.NO_STATS) as store:
        return Answer(shapes.stats(store, call.context.folders, narrowed(call, store)))
