"""What an importer is, and what it tells: runs out of files that other programs wrote.

An importer is one module with the members of `Importer`. It gives runs one after the other; each is a start (fields of the native `trace_start`) and a stream
of events, so that a file of any size is read in constant memory. The events are what the journal keeps (guardhook.store.recorded): `trace.step`,
`trace.step_start`, `trace.step_end`, `trace.decision`, `trace.snapshot`, `trace.end`, and `eval.result`. guardhook.intake.import_write puts them into
`journal/imports/`, guardhook.intake.import_run finds files, knows those that did not change, and keeps one bad file from stopping the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from guardhook.core.folders import Folders
from guardhook.store.model import make_id

PROBLEMS_MOST = 200  # named per file; all are counted


class ImportFailed(Exception):
    """A file that can't be imported at all; the message says why, without the file's name."""


class Event(NamedTuple):
    """One event of a run. type as in the journal (`trace.step`); us: when it happened, microseconds since the epoch, None when unknown."""

    type: str
    fields: dict[str, object]
    us: int | None = None


class Identity(NamedTuple):
    """What makes two imports the same run: the importer's format, the session, and the file's base name. trace: the id that the run has already."""

    format: str
    session: str | None
    file: str
    trace: str | None = None

    def trace_id(self, path: str) -> str:
        """The run's id in the store: always the same for the same run. A run without session or id is told by where its file lies."""
        if self.trace is not None:
            return self.trace
        return make_id("trc", self.format, self.session or f"\0{os.path.realpath(path)}", self.file)


class Run(NamedTuple):
    """One run. start: fields of `trace_start`, what only copies have (parent_trace_id, status …) included. events must be read before the next run is asked for.

    us: when it began. The last event is a `trace.end`, unless start has a status already.
    """

    identity: Identity
    start: dict[str, object]
    events: Iterator[Event]
    us: int | None = None


class Problem(NamedTuple):
    """A record that could not be used, or not wholly. line counts from 1; 0 when the file has no lines."""

    file: str
    line: int
    reason: str


class Counts:
    """What became of a file's records: read = imported + skipped + malformed.

    skipped records hold nothing that a trace keeps (bookkeeping, unknown kinds, repeated ones); malformed ones should have.
    mended records were used although a field had the wrong type.
    """

    __slots__ = (
        "bytes",
        "duplicates",
        "imported",
        "malformed",
        "mended",
        "problems",
        "read",
        "skipped",
        "steps",
        "tokens",
    )

    def __init__(self) -> None:
        self.read = self.imported = self.skipped = self.malformed = self.mended = self.duplicates = 0
        self.steps = 0
        self.tokens = 0
        self.bytes = 0  # read so far, for progress
        self.problems: list[Problem] = []

    def bad(self, file: str, line: int, reason: str) -> None:
        """A record that can't be used."""
        self.malformed += 1
        self.note(file, line, reason)

    def note(self, file: str, line: int, reason: str) -> None:
        """Something that a person should know of a record."""
        if len(self.problems) < PROBLEMS_MOST:
            self.problems.append(Problem(file, line, reason))

    def as_dict(self) -> dict[str, object]:
        return {
            "read": self.read,
            "imported": self.imported,
            "skipped": self.skipped,
            "malformed": self.malformed,
            "mended": self.mended,
            "duplicates": self.duplicates,
        }


class Importer(Protocol):
    """One format. A module fits that has `NAME`, `detect`, `files` and `read` at its top level, and a row in guardhook.intake.detect."""

    @property
    def NAME(self) -> str:
        """The format's name, in lower case with hyphens: `--format`, metadata.source_format, and part of the journal file's name."""

    def detect(self, path: str, head: bytes) -> bool:
        """Whether a file is of this format, by its path and its first 64 KiB. Must not raise."""

    def files(self, path: str) -> list[str]:
        """Further files that belong to this one (of sub-agents). They are not imported by themselves, and a change of one is a change of the whole."""

    def read(self, path: str, fd: int, counts: Counts) -> Iterator[Run]:
        """The runs in a file. fd: the opened file, a regular one; further files are opened with records.open_file.

        Raises ImportFailed when there is nothing to import, OSError.
        """


@runtime_checkable
class Beside(Protocol):
    """What an importer may have as well: something that doesn't belong into the journal, such as policies."""

    def beside(self, path: str, fd: int, folders: Folders, dry_run: bool) -> list[str]:
        """Called after the runs of a file; gives lines for a person, saying what was done, or would be."""
