"""Putting the sample traces into the journal, and taking them out again: `guardhook demo`. Nothing else is touched, and no policy is changed."""

from __future__ import annotations

import time
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.journal import generation, line, read
from guardhook.policy.compiled import Compiled
from guardhook.store import gc
from guardhook.store.append import Appender
from guardhook.store.errors import Missing, Unusable
from guardhook.store.query import Store
from guardhook.store.rejudge import judge
from guardhook.store.samples import DIALECT, POLICIES, SAMPLES


class Hit(NamedTuple):
    """What a sample policy would say to a step."""

    policy: str
    action: str
    trace_id: str
    step_number: int | None
    name: str | None


def load(folders: Folders, *, now: float | None = None) -> list[str]:
    """Writes the samples that are not there yet and gives their ids. Raises Locked, Unusable."""
    appender = Appender(folders, dialect=DIALECT)
    now_us = int((time.time() if now is None else now) * 1_000_000)
    made = []
    for sample in SAMPLES:
        if _there(folders, sample.id):
            continue
        appender.put(sample.id, sample.lines(now_us), opens=True, closes=True)
        made.append(sample.id)
    return made


def _there(folders: Folders, trace_id: str) -> bool:
    if not read.exists(folders.journal):
        return False
    try:
        return bool(read.session_files(folders.journal, key=line.key(DIALECT, trace_id)))
    except OSError as error:
        raise Unusable(f"{folders.journal}: {error.strerror or error}", folders.journal) from None


def reset(folders: Folders) -> gc.Report:
    """Removes what `load` wrote, now or with an earlier version, and nothing else. Raises Unusable."""
    try:
        everything = gc.sessions(folders)
    except Missing:
        everything = []
    own = [s for s in everything if s.key.startswith(f"{DIALECT}-")]
    removed: list[gc.Session] = []
    rewriting = generation.Rewriting(folders.journal)
    for session in own:
        if gc.remove(folders, session, rewriting):
            removed.append(session)
    gone = sum(s.size for s in removed)
    return gc.Report(removed, len(own) - len(removed), len(everything) - len(removed), sum(s.size for s in everything), gone)  # fmt: skip


def policies() -> Compiled:
    """The sample policies, in memory only."""
    from guardhook.policy import compile as compiler
    from guardhook.policy.layers import Found
    from guardhook.policy.model import PolicyFile
    from guardhook.policy.tomlfile import parse

    found = parse(POLICIES.encode(), "samples", PolicyFile)
    return compiler.in_memory([Found(policy, "user", "samples", None) for policy in found.policy])


def hits(store: Store, folders: Folders) -> list[Hit]:
    """What the sample policies would say to the sample traces that are in the store."""
    sets = policies()
    out = []
    for trace in store.iterate(sort="started_at"):
        if not any(trace.id == sample.id for sample in SAMPLES):
            continue
        for one in judge(store, folders, trace, sets):
            if one.verdict is not None and one.verdict.policy is not None:
                out.append(Hit(one.verdict.policy, one.verdict.action, trace.id, one.step_number, one.name))
    return out
