"""When a harness last reached us: a registration that looks right and never fires is the failure nobody notices."""

from __future__ import annotations

import time

from guardhook.core.folders import Folders
from guardhook.gate.silence import DAYS
from guardhook.harness.model import Finding
from guardhook.journal import heard


def finding(folders: Folders, dialect: str, now: float | None = None) -> Finding:
    """The last event in the journal that was no canary."""
    seen = heard.last(folders.journal, dialect)
    if seen is None:
        return Finding("liveness", None, "no event of this harness is in the journal yet")
    age = max(0.0, (time.time() if now is None else now) - seen) / 86400
    words = "less than a day" if age < 1 else f"{age:.0f} days"
    if age > DAYS:
        return Finding(
            "liveness", None, f"the last event is {words} old: if you used it since, its calls did not reach guardhook"
        )
    return Finding("liveness", True, f"the last event is {words} old")
