"""How far answers stand, recorded as evaluations of their traces when a session stops. The same fold as `account --standing`, on the same events.

`<data>/standing.json` remembers how far each run was looked at, so that nothing is rendered twice; it may be deleted at any time. Each turn is recorded once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from guardhook.archive import plain, sinks, source
from guardhook.archive.account import calls
from guardhook.archive.account.assess import assess
from guardhook.archive.account.declarations import Declarations
from guardhook.archive.account.record import Record
from guardhook.archive.account.view import View
from guardhook.archive.errors import UnreadableError
from guardhook.core.folders import Folders
from guardhook.rollout import runs
from guardhook.rollout.options import Options
from guardhook.rollout.runs import RunRef
from guardhook.store import Store, StoreError
from guardhook.store.append import Appender
from guardhook.store.model import make_id

FILE = "standing.json"
NAME = "standing"
MOST_RUNS = 50  # looked at by one command
FIRST_US = 86_400_000_000  # what ended longer ago when this was switched on is left alone
_SCORES = {"known": 1.0, "consistent": 1.0, "not-assessed": 0.5, "not-sure": 0.0, "ask": 0.0}


def keep_up(store: Store, folders: Folders, declared: Declarations, options: Options) -> int:
    """Records the standing of all turns that ended since the last time, and gives how many. Raises StoreError, OSError."""
    seen = _seen(folders)
    first = seen is None
    looked = dict(seen or {})
    written = 0
    left = MOST_RUNS
    for ref, last_us in _stopped(store):
        if looked.get(ref.run_id, -1) >= ref.last_seq:
            continue
        if first and last_us < int(store.now * 1_000_000) - FIRST_US:
            looked[ref.run_id] = ref.last_seq
            continue
        if left == 0:
            break
        left -= 1
        written += _record(store, folders, ref, declared, options)
        looked[ref.run_id] = ref.last_seq
    if looked != seen:
        _keep(folders, looked)
    if written:
        from guardhook.store import project

        project.catch_up(store.connection, folders.journal)
    return written


def _stopped(store: Store) -> Iterator[tuple[RunRef, int]]:
    """Runs of hook sessions whose agent has stopped, oldest first, with when they were heard of last."""
    rows = store.connection.execute(
        "SELECT r.run, t.last_us FROM agent_trace_runs r JOIN agent_traces t ON t.serial = r.serial WHERE t.live AND t.status != 'running'"
    )
    ended = {str(run): int(us or 0) for run, us in rows}
    for ref in runs.list_in(store, copies=False):
        if ref.run_id in ended:
            yield ref, ended[ref.run_id]


def _record(store: Store, folders: Folders, ref: RunRef, declared: Declarations, options: Options) -> int:
    try:
        recording = source.gather(folders, store, ref, options=options).recording
    except StoreError:
        return 0  # the journal has nothing of it any more
    record = Record(recording, ref.run_id)
    every = calls.collect(record, declared)
    lines: list[tuple[str, dict[str, object]]] = []
    for place, turn in enumerate(record.turns):
        made = make_id("evl", ref.run_id, NAME, str(place + 1))
        view = View(record, turn, declared, every)
        found = assess(view) if view.stop is not None else None
        if found is None or _known(store, made):
            continue
        standing = str(found["standing"])
        lines.append((
            "eval.result",
            {
                "id": made, "evaluator_type": "policy_check", "evaluator_name": NAME, "score": _SCORES[standing], "passed": standing not in ("not-sure", "ask"),
                "details": {"run_id": ref.run_id, "turn": place + 1, **{k: v for k, v in found.items() if k != "notBuilt"}},
            },
        ))  # fmt: skip
    if lines:
        Appender(folders, dialect="eval").put(ref.trace_id, lines)
    return len(lines)


def _known(store: Store, name: str) -> bool:
    return store.connection.execute("SELECT 1 FROM agent_trace_evals WHERE id = ?", (name,)).fetchone() is not None


def _seen(folders: Folders) -> dict[str, int] | None:
    """How far each run was looked at; None when that is not known."""
    try:
        with open(f"{folders.data}/{FILE}", "rb") as file:
            value = plain.loads(file.read(64 << 20))
    except (OSError, UnreadableError):
        return None
    if not isinstance(value, dict):
        return None
    return {k: v for k, v in value.items() if type(v) is int}


def _keep(folders: Folders, looked: dict[str, int]) -> None:
    fd = os.open(folders.data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sinks.place(fd, FILE, (plain.encode(looked) + b"\n",))
    finally:
        os.close(fd)
