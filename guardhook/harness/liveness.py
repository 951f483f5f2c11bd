"""When a harness last reached us: a registration that looks right and never fires is the failure nobody notices."""

from __future__ import annotations

import os
import time

from guardhook.core.folders import Folders
from guardhook.harness.model import Finding

_TAIL = 256 * 1024
_DAYS = 14


def finding(folders: Folders, dialect: str, now: float | None = None) -> Finding:
    """The last event in the journal that was no canary."""
    seen = last_event(folders.journal, dialect)
    if seen is None:
        return Finding("liveness", None, "no event of this harness is in the journal yet")
    age = max(0.0, (time.time() if now is None else now) - seen) / 86400
    words = "less than a day" if age < 1 else f"{age:.0f} days"
    if age > _DAYS:
        return Finding(
            "liveness", None, f"the last event is {words} old: if you used it since, its calls did not reach guardhook"
        )
    return Finding("liveness", True, f"the last event is {words} old")


def last_event(journal: str, dialect: str) -> float | None:
    """Seconds since the epoch of the newest event of a harness, None when there is none."""
    try:
        days = sorted(
            (e.name for e in os.scandir(journal) if e.is_dir(follow_symlinks=False) and e.name[:2] == "20"),
            reverse=True,
        )
    except OSError:
        return None
    for day in days:
        newest: float | None = None
        for entry in os.scandir(os.path.join(journal, day)):
            # Files are named by the dialect, then a hash.
            if entry.name.startswith(dialect + "-") and entry.name.endswith(".jsonl") and _real(entry.path):
                newest = max(newest or 0.0, entry.stat().st_mtime)
        if newest is not None:
            return newest
    return None


def _real(path: str) -> bool:
    """Whether a file holds anything but canaries: `doctor` writes those itself."""
    try:
        with open(path, "rb") as file:
            lines = file.read(_TAIL).split(b"\n")
    except OSError:
        return False
    return any(b'"hook.received"' in line and b'"canary":true' not in line for line in lines)
