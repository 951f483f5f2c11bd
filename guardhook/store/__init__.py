"""The trace store: everything that was recorded, as traces and steps, for commands and for programs.

    from guardhook.store import open_store, Filter
    with open_store(folders) as store:                    # folders: guardhook.core.folders.Folders
        page = store.traces(Filter(status="failed"), sort="-started_at", limit=10)
        for step in store.steps(page.items[0], first=1, last=50):
            print(step.step_number, step.name, step.input)

- `open_store(folders)` brings `<data>/traces.db` up to date with the journal and gives a `Store`. It raises `Missing` and creates
  nothing where nothing was ever recorded. A damaged traces.db is moved aside and rebuilt; `on_notice` is told so.
- `Store` (guardhook.store.query) answers: get, traces, iterate, steps, step, decisions, snapshots, evaluations, happenings, prompts,
  runs, stats, problems. Rows are the tuples of guardhook.store.model; `as_dict` gives the documented JSON shapes.
- `TraceRecorder` (guardhook.store.recorder) writes traces of your own program into the journal of the same store, `Appender`
  (guardhook.store.append) many lines at once: imports, forks, evaluations.
- `Follower` (guardhook.store.watch) tells what is new in a trace under way.
- What other commands do stands in modules of their own: export and parquet (`write`), golden_check (`Check`), diff (`compare`), backtest (`run`), rejudge (`judge`: one
  trace under today's policies), fork (`fork`), gc (`collect`), demo (`load`, `reset`).

Everything raised is a `StoreError` (guardhook.store.errors).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardhook.store.errors import (
    Ambiguous,
    BadQuery,
    Corrupt,
    Foreign,
    Locked,
    Missing,
    Newer,
    NotFound,
    ReadOnly,
    StoreError,
    Unusable,
)
from guardhook.store.model import Decision, Evaluation, Happening, Problem, Run, Snapshot, Step, Trace
from guardhook.store.opening import open_store
from guardhook.store.query import Filter, Page, Store

if TYPE_CHECKING:
    from guardhook.store.append import Appender
    from guardhook.store.recorder import TraceRecorder

__all__ = [
    "Ambiguous",
    "Appender",
    "BadQuery",
    "Corrupt",
    "Decision",
    "Evaluation",
    "Filter",
    "Foreign",
    "Happening",
    "Locked",
    "Missing",
    "Newer",
    "NotFound",
    "Page",
    "Problem",
    "ReadOnly",
    "Run",
    "Snapshot",
    "Step",
    "Store",
    "StoreError",
    "Trace",
    "TraceRecorder",
    "Unusable",
    "open_store",
]


def __getattr__(name: str) -> object:
    """Writers are imported when asked for: reading commands start without them."""
    if name == "TraceRecorder":
        from guardhook.store.recorder import TraceRecorder

        return TraceRecorder
    if name == "Appender":
        from guardhook.store.append import Appender

        return Appender
    raise AttributeError(name)
