"""Following a trace while it happens: new steps as they come, and open ones when they end.

Waiting costs a look at the size of one or two files per turn: the journal is read only when the trace's own file grew.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.journal import line
from guardhook.store import project, schema
from guardhook.store.errors import Locked
from guardhook.store.model import Step, Trace
from guardhook.store.query import Store

STATUS_SECONDS = 5.0  # how often the status is asked for without news: a harness may have vanished


class Seen(NamedTuple):
    """A step that is new, or one that was open when it was seen first and has ended."""

    step: Step
    ended: bool


class Follower:
    """What is new in a trace since the last look. trace is its latest state."""

    def __init__(self, store: Store, trace: Trace, journal_dir: str) -> None:
        self.trace = trace
        self._store = store
        self._journal = journal_dir
        self._key: str | None = store.key(trace)
        self._files: list[tuple[str, int, int]] | None = None
        self._asked = 0.0
        self._last = 0
        self._numbers: set[int] = set()
        self._names: set[str] = set()  # of the steps of a trace that is told in parts: their numbers change
        self._open: set[int] = set()

    def stale(self) -> bool:
        """Whether it is worth looking: a file that the trace may go on in changed, or its status was not asked for in a while."""
        now = [self._state(folder) for folder in dict.fromkeys((self._folder(), line.day(time.time_ns())))]
        if now == self._files and time.monotonic() - self._asked < STATUS_SECONDS:
            return False
        self._files = now
        self._asked = time.monotonic()
        return True

    def _folder(self) -> str:
        """Where the trace's latest lines are: a run stays in the folder of the day that it began on."""
        row = self._store.connection.execute(
            "SELECT MAX(c.folder) FROM cursors c JOIN sources s ON s.id = c.source WHERE s.key = ?", (self._key,)
        ).fetchone()
        return str(row[0] or "")

    def _state(self, folder: str) -> tuple[str, int, int]:
        try:
            status = os.stat(f"{self._journal}/{folder}/{self._key}.jsonl")
        except OSError:
            return folder, 0, 0
        return folder, status.st_ino, status.st_size

    def look(self) -> Iterator[Seen]:
        """Brings the store up to date for this trace and gives what is new, by step number. Raises StoreError."""
        try:
            if self._key is not None and os.path.isdir(self._journal):
                project.catch_up(self._store.connection, self._journal, keys=(self._key,))
        except sqlite3.Error as error:
            told = schema.told(error, self._store.path)
            if isinstance(told, Locked):  # another one is reading the journal in; the next turn will do
                self._files = None
                return
            raise told from None
        self._store.now = time.time()
        self.trace = self._store.get(self.trace.id)
        for number in sorted(self._open):
            step = next(self._store.steps(self.trace, number, number), None)
            if step is None or step.ended_at is not None:
                self._open.discard(number)
                if step is not None:
                    yield Seen(step, ended=True)
        if self.trace.step_count > len(self._numbers) + len(self._names):
            yield from self._new_parts() if not self._numbers else self._new()

    def _new_parts(self) -> Iterator[Seen]:
        """Steps of a trace that is told in parts are told apart by their part; other traces have none."""
        rows = self._store.connection.execute(
            "SELECT name, number FROM agent_trace_parts WHERE serial = ? AND number IS NOT NULL ORDER BY number",
            (self.trace.serial,),
        ).fetchall()
        for name, number in rows:
            if name not in self._names:
                self._names.add(name)
                yield Seen(self._store.step(self.trace, number), ended=False)
        if not rows:
            yield from self._new()

    def _new(self) -> Iterator[Seen]:
        before = self._store.count_steps(self.trace, 1, self._last) if self._last else 0
        if before > len(self._numbers):  # steps with lower numbers came late
            for number, _ in self._store.links(self.trace, 1, self._last):
                if number not in self._numbers:
                    yield self._first(self._store.step(self.trace, number))
        for step in self._store.steps(self.trace, self._last + 1):
            self._last = step.step_number
            yield self._first(step)

    def _first(self, step: Step) -> Seen:
        self._numbers.add(step.step_number)
        if step.ended_at is None:
            self._open.add(step.step_number)
        return Seen(step, ended=False)
