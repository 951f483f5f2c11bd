"""Putting things other than hook events into the journal: recorded runs, imports, forks, evaluations.

They are lines like all others (types `trace.*`, `fork.*`, `eval.*`, see guardhook.store.recorded), so the store made of them can be deleted at any time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from itertools import islice

from guardhook.core import limits
from guardhook.core.folders import Folders
from guardhook.journal import fit, line, redact, write
from guardhook.store.errors import Locked, Unusable
from guardhook.store.sieve import Sieve

BUDGET_SECONDS = 5.0
_BATCH = 500


class Appender:
    """Writes lines about traces. dialect names the file's kind (`recorder`, `fork`, `eval`, an import's format); each trace has its own file.

    redaction is one of redact.MODES; by default secrets are taken out before anything is written, as hooks do.
    """

    def __init__(self, folders: Folders, *, dialect: str = "recorder", redaction: str = "redacted") -> None:
        self.folders = folders
        self.dialect = dialect
        self.redaction = redaction
        self._rows: tuple[redact.Row, ...] = ()
        self._sieve: Sieve | None = None

    def put(
        self,
        trace_id: str,
        lines: Iterable[tuple[str, dict[str, object]]],
        *,
        opens: bool = False,
        closes: bool = False,
        root: str | None = None,
        whole: bool = False,
    ) -> int:
        """Appends lines (type, event) of one trace in order, and gives how many. opens: the first one begins a run; closes: the last one ends it.

        whole: with one write, all of them or none; their text is held in memory.

        Raises Locked when the journal stays locked for BUDGET_SECONDS, Unusable when it can't be written.
        """
        name = line.key(self.dialect, trace_id)
        session = write.Session(self.folders.journal, name, self.dialect, trace_id)
        written = 0
        try:
            session.lock(time.monotonic() + BUDGET_SECONDS)
            rest = iter(lines)
            entries: list[tuple[write.Record, str, str | None]] = []
            batch = list(islice(rest, _BATCH))
            while batch:
                following = list(islice(rest, _BATCH))
                seen = self._look([event for _, event in batch])
                for index, (kind, event) in enumerate(batch):
                    last = closes and not following and index == len(batch) - 1
                    first = opens and written + index == 0
                    entries.append(self._entry(trace_id, kind, event, seen[index], first, last, root))
                if not (whole and following):
                    session.drain(entries)
                    entries.clear()
                written += len(batch)
                batch = following
            session.finish()
        except TimeoutError:
            raise Locked(
                f"{self.folders.journal} is locked by another process; try again", self.folders.journal
            ) from None
        except OSError as error:
            raise Unusable(f"{self.folders.journal}: {error.strerror or error}", self.folders.journal) from None
        finally:
            session.close()
        return written

    def _look(self, events: list[dict[str, object]]) -> list[tuple[bool, int]]:
        """For each event whether it may be written as it is, and how many characters its texts have (-1: not counted)."""
        if self._sieve is None:
            if self.redaction == "redacted":
                from guardhook.journal.rules import configured

                self._rows = configured(self.folders)
            self._sieve = Sieve(self._rows)
        return [(False, -1)] * len(events) if self.redaction != "redacted" else self._sieve.look(events)

    def _entry(
        self, trace_id: str, kind: str, event: dict[str, object], seen: tuple[bool, int], opens: bool, closes: bool, root: str | None
    ) -> tuple[write.Record, str, str | None]:  # fmt: skip
        harmless, chars = seen
        cleaned: object = event
        redacted: list[str] = []
        if not harmless:
            cleaned, redacted = redact.redact(event, self._rows, self.redaction)
        cut: list[str] = []
        # What redaction puts in place of a text may be longer than the text, but never by much.
        if not 0 <= chars <= limits.RECORD_BYTES // 2:
            step = fit.level(cleaned, limits.RECORD_BYTES)
            cleaned, cut = fit.clip(cleaned, step) if step is not None else (cleaned, [])
        data: dict[str, object] = {"trace": trace_id, "dialect": self.dialect, "event": cleaned}
        if redacted:
            data["redacted"] = redacted
        if cut:
            data["cut"] = cut
        # The text stands for the data, which need not be held any longer.
        record = write.Record(kind, time.time_ns(), self.dialect, trace_id, _cwd(), root, opens, closes, {})
        return record, line.body(data), None


def _cwd() -> str:
    """The folder of this process; empty when it is gone, as for hooks."""
    try:
        return os.getcwd()
    except OSError:
        return ""
