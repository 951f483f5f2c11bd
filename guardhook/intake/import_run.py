"""Importing files and folders: finding them, knowing those that did not change, keeping one bad file from stopping the others."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from _blake2 import blake2b
from collections.abc import Callable, Iterator
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.intake import detect, import_write, records
from guardhook.intake.import_write import Exists, Origin, Part, Pending, Writer
from guardhook.intake.imports import Beside, Counts, Event, Importer, ImportFailed, Run
from guardhook.journal import line
from guardhook.journal.write import HEADS
from guardhook.store.errors import StoreError
from guardhook.store.fold import trace_id
from guardhook.store.instants import iso_ms

VERSION = 1  # raised when importers give something else for the same file
_EDGE = 64 * 1024
_SUFFIXES = (".jsonl", ".json", "traces.db")
_COMPRESSED = re.compile(r"rollout-.*\.jsonl\.zst", re.DOTALL)  # Codex can be told to do that to old logs
_FOLDERS_MOST_DEEP = 32
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
_OTHERS = (
    ("ingest", "ingest"),
    ("record", "recorder"),
    ("fork", "fork"),
)  # commands that write traces, and their journal files' kind

IMPORTED, REPLACED, UNCHANGED, EXISTS, EMPTY, FAILED, UNKNOWN = (
    "imported", "replaced", "unchanged", "exists", "empty", "failed", "unknown",
)  # fmt: skip


class Found(NamedTuple):
    """A file to import. named: a person named it, it was not found in a folder."""

    path: str
    named: bool
    size: int


class Options(NamedTuple):
    """How to import. since_us: only files changed since, microseconds since the epoch."""

    format: str | None = None
    dry_run: bool = False
    tags: tuple[str, ...] = ()
    replace: bool = False
    since_us: int | None = None
    redaction: str = "redacted"


class Made(NamedTuple):
    """One run of a file. hooks: the trace of the same session that hooks recorded, if they did."""

    trace_id: str
    session: str | None
    status: str  # imported, replaced, exists, empty
    steps: int
    tokens: int | None
    hooks: str | None

    def as_dict(self) -> dict[str, object]:
        return {
            "trace_id": self.trace_id,
            "session": self.session,
            "status": self.status,
            "steps": self.steps,
            "total_tokens": self.tokens,
            "hook_trace": self.hooks,
        }


class Result:
    """What became of one file. status is that of its runs; counts is None when nothing of it was read."""

    __slots__ = ("counts", "error", "format", "notes", "path", "runs", "status")

    def __init__(self, path: str) -> None:
        self.path = path
        self.format: str | None = None
        self.status = FAILED
        self.runs: list[Made] = []
        self.counts: Counts | None = None
        self.error: str | None = None
        self.notes: list[str] = []

    def as_dict(self) -> dict[str, object]:
        return {
            "path": self.path,
            "format": self.format,
            "status": self.status,
            "traces": [run.as_dict() for run in self.runs],
            "records": None if self.counts is None else self.counts.as_dict(),
            "problems": [] if self.counts is None else [p._asdict() for p in self.counts.problems],
            "notes": self.notes,
            "error": self.error,
        }


def collect(paths: list[str], since_us: int | None, refused: Callable[[str, str], None]) -> list[Found]:
    """The files below these paths. refused(path, why) is told what is neither a file nor a folder (in folders such things are passed over), and folders that can't be read."""
    found: dict[str, Found] = {}
    for given in paths:
        path = os.path.abspath(os.path.expanduser(given))
        try:
            status = os.lstat(path)
        except OSError as error:
            refused(given, error.strerror or str(error))
            continue
        if stat.S_ISDIR(status.st_mode):
            for inner in _below(path, 0, refused):
                found.setdefault(inner.path, inner)
        elif stat.S_ISREG(status.st_mode):
            found[path] = Found(path, True, status.st_size)
        elif stat.S_ISLNK(status.st_mode):
            refused(given, f"a link; name what it leads to: {os.path.realpath(path)}")
        else:
            refused(given, "neither a file nor a folder")
    if since_us is None:
        return list(found.values())
    return [f for f in found.values() if f.named or changed(f.path) >= since_us]


def _below(folder: str, depth: int, refused: Callable[[str, str], None]) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            inner = sorted(entries, key=lambda e: e.name)
    except FileNotFoundError:
        return
    except OSError as error:
        refused(folder, error.strerror or str(error))
        return
    for entry in inner:
        try:
            if entry.is_dir(follow_symlinks=False):
                if depth < _FOLDERS_MOST_DEEP:
                    yield from _below(entry.path, depth + 1, refused)
            elif entry.is_file(follow_symlinks=False) and entry.name.endswith(_SUFFIXES):
                yield Found(entry.path, False, entry.stat(follow_symlinks=False).st_size)
            elif entry.is_file(follow_symlinks=False) and _COMPRESSED.fullmatch(entry.name):
                refused(entry.path, "a compressed log, which can't be read; decompress it (zstd -d) first")
        except OSError:
            continue


def changed(path: str) -> int:
    """When a file was changed last, microseconds since the epoch; 0 when unknown."""
    try:
        return os.lstat(path).st_mtime_ns // 1000
    except OSError:
        return 0


def fingerprint(path: str, fd: int) -> Part:
    """What a file looks like now. Raises OSError."""
    status = os.fstat(fd)
    digest = blake2b(os.pread(fd, _EDGE, 0), digest_size=16)
    if status.st_size > _EDGE:
        digest.update(os.pread(fd, _EDGE, max(_EDGE, status.st_size - _EDGE)))
    return Part(_readable(path), status.st_size, status.st_mtime_ns, status.st_ino, digest.hexdigest())


def _readable(path: str) -> str:
    """A path as text that JSON can hold; bytes that are no UTF-8 are written out."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class Import:
    """One import command: files in, results out. Use as a context; nothing is written (and no folder made) with dry_run.

    forks(trace id) names the forks of a trace: a run with forks is not replaced. progress(bytes done, in all) is told while reading.
    Raises Locked, Unusable when the journal can't be written.
    """

    def __init__(
        self,
        folders: Folders,
        options: Options,
        *,
        forks: Callable[[str], list[str]] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._folders = folders
        self._options = options
        self._forks = forks
        self._progress = progress
        self._look()
        self._put: set[str] = set()  # traces of this command
        self._writer: Writer | None = None
        self._done = self._total = 0

    def _look(self) -> None:
        """What was imported so far."""
        self._known = import_write.known(self._folders.journal)
        self._by_trace = {origin.trace: origin for origin in self._known.values()}

    def __enter__(self) -> Import:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def run(self, found: list[Found]) -> Iterator[Result]:
        """Imports the files, one after the other. Raises Locked, Unusable."""
        owned: set[str] = set()
        work: list[tuple[Found, Importer]] = []
        early: list[Result] = []
        for file in found:
            known, failure = self._importer(file)
            if failure is not None:
                early.append(failure)
            elif known is not None:
                work.append((file, known))
                owned.update(known.files(file.path))
        yield from early
        self._total = sum(file.size for file, _ in work)
        for file, known in work:
            if file.path in owned and not file.named:
                self._done += file.size
                continue
            yield self._file(file, known)
            self._done += file.size
            self._tell(0)

    def _tell(self, more: int) -> None:
        if self._progress is not None:
            self._progress(min(self._done + more, self._total), self._total)

    def _importer(self, file: Found) -> tuple[Importer | None, Result | None]:
        """The importer of a file, or why there is none. Files in folders that nobody knows are passed over."""
        result = Result(file.path)
        try:
            fd = records.open_file(file.path)
        except OSError as error:
            result.error = error.strerror or str(error)
            return None, result
        try:
            if self._options.format is not None and file.named:
                return detect.importer(self._options.format), None
            found = detect.find(file.path, fd)
            if found is None and file.named:
                result.status, result.error = UNKNOWN, detect.unknown(fd)
                return None, result
        except OSError as error:
            result.error = error.strerror or str(error)
            return None, result
        finally:
            os.close(fd)
        if found is None:
            return None, None
        if self._options.format not in (None, found.NAME):
            return None, None
        return found, None

    def _file(self, file: Found, importer: Importer) -> Result:
        result = Result(file.path)
        result.format = importer.NAME
        try:
            fd = records.open_file(file.path)
        except OSError as error:
            result.error = error.strerror or str(error)
            return result
        try:
            parts = [fingerprint(os.path.realpath(file.path), fd)]
            for more in importer.files(file.path):
                part = _part(more)
                if part is not None:
                    parts.append(part)
            before = self._known.get(parts[0].path)
            if before is not None and _same(before, importer, parts) and not (self._options.replace and file.named):
                result.status = UNCHANGED
                result.runs.append(Made(before.trace, before.session, UNCHANGED, 0, None, None))
                return result
            self._read(file, fd, importer, parts, result)
        except (ImportFailed, StoreError) as error:
            if isinstance(error, StoreError) and self._writer is None and not self._options.dry_run:
                raise  # no file will fare better
            result.status, result.error = FAILED, str(error)
        except OSError as error:
            where = f"{self._folders.journal}: " if error.errno in _NO_ROOM else ""  # not what is wrong with the file
            result.status, result.error = FAILED, where + (error.strerror or str(error))
        except RecursionError:
            result.status, result.error = FAILED, "nested too deep"
        finally:
            os.close(fd)
        return result

    def _read(self, file: Found, fd: int, importer: Importer, parts: list[Part], result: Result) -> None:
        path = file.path
        counts = result.counts = Counts()
        first: Pending | None = None
        try:
            for index, run in enumerate(importer.read(path, fd, counts)):
                trace = run.identity.trace_id(path)
                origin = Origin(importer.NAME, VERSION, index, trace, run.identity.session, parts)
                made, pending = self._one(run, trace, origin, counts, file.named)
                result.runs.append(made)
                if made.status == EXISTS and (other := self._elsewhere(trace, origin)) is not None:
                    result.notes.append(f"the same run was imported from {other}; to have this one in its place, --replace it by its name")  # fmt: skip
                if pending is None:
                    continue
                self._put.add(trace)
                if index == 0:
                    first = pending
                    self._by_trace[trace] = origin
                else:
                    pending.commit()
            if first is not None:
                first.commit()
                first = None
        finally:
            if first is not None:
                first.discard()
        if isinstance(importer, Beside):
            result.notes += importer.beside(path, fd, self._folders, self._options.dry_run)
        if not result.runs:
            if not result.notes:
                raise ImportFailed("nothing to import was found in it")
            result.status = IMPORTED
            return
        statuses = {made.status for made in result.runs}
        result.status = next(s for s in (REPLACED, IMPORTED, EXISTS, UNCHANGED, EMPTY) if s in statuses)

    def _one(self, run: Run, trace: str, origin: Origin, counts: Counts, named: bool) -> tuple[Made, Pending | None]:
        """Writes one run aside."""
        start = run.start
        if self._options.tags:
            before = start.get("tags")
            start["tags"] = list(dict.fromkeys([*(before if isinstance(before, list) else []), *self._options.tags]))
        start.setdefault("created_at", iso_ms(time.time_ns() // 1000))
        hooks = self._hooks(start.get("dialect"), run.identity.session)
        metadata = start.get("metadata")
        if hooks is not None and isinstance(metadata, dict):
            metadata["hook_trace"] = hooks
        if run.identity.trace is not None and (where := self._taken(trace)) is not None:
            counts.note(
                run.identity.file, 0, f"{trace} is left out: a trace of this id is in the store already, by `{where}`"
            )
            return Made(trace, run.identity.session, EXISTS, 0, None, hooks), None
        if self._options.replace and (trace in self._put or not named) and self._elsewhere(trace, origin) is not None:
            return self._existing(trace, origin, run.identity.session, hooks), None
        watched = _Watched(run.events, counts, self._tell)
        run = run._replace(events=iter(watched))
        pending: Pending | None = None
        if self._options.dry_run:
            status = self._expected(run, trace)
            for _ in run.events:
                pass
        else:
            if self._writer is None:
                self._writer = Writer(self._folders, replace=self._options.replace, redaction=self._options.redaction)
                self._look()  # another import may have ended meanwhile
            try:
                pending = self._writer.put(run, trace, origin, self._may_replace)
                status = REPLACED if pending.replaces else IMPORTED
            except Exists:
                return self._existing(trace, origin, run.identity.session, hooks), None
        # Copies of what a store held may be empty.
        if not watched.steps and not start.get("input") and "verbatim" not in start:
            if pending is not None:
                pending.discard()
            return Made(trace, run.identity.session, EMPTY, 0, None, hooks), None
        return Made(trace, run.identity.session, status, watched.steps, watched.tokens, hooks), pending

    def _elsewhere(self, trace: str, origin: Origin) -> str | None:
        """Another file that the run was imported from, if it is still there: of two files with one identity neither may take the other's place unasked."""
        before = self._by_trace.get(trace)
        if before is None or not origin.parts or before.parts[0].path == origin.parts[0].path:
            return None
        return before.parts[0].path if os.path.lexists(before.parts[0].path) else None

    def _existing(self, trace: str, origin: Origin, session: str | None, hooks: str | None) -> Made:
        """A run that is there: the same from another place, or one that has changed since."""
        before = self._by_trace.get(trace)
        same = before is not None and [(p.size, p.digest) for p in before.parts] == [(p.size, p.digest) for p in origin.parts]  # fmt: skip
        return Made(trace, session, UNCHANGED if same else EXISTS, 0, None, hooks)

    def _expected(self, run: Run, trace: str) -> str:
        there = os.path.exists(f"{self._folders.journal}/imports/{line.key(run.identity.format, trace)}.jsonl")
        return IMPORTED if not there else REPLACED if self._options.replace else EXISTS

    def _taken(self, trace: str) -> str | None:
        """What else wrote a trace of this id, for runs that bring their own: the store would take only one of both."""
        heads = f"{self._folders.journal}/{HEADS}"
        return next((name for name, kind in _OTHERS if os.path.exists(f"{heads}/{line.key(kind, trace)}")), None)

    def _may_replace(self, trace: str) -> None:
        forks = [] if self._forks is None else self._forks(trace)
        if forks:
            raise ImportFailed(f"{trace} has forks ({', '.join(forks[:5])}), so it is not replaced")

    def _hooks(self, dialect: object, session: str | None) -> str | None:
        """The trace that hooks recorded of this session."""
        if not isinstance(dialect, str) or not session:
            return None
        key = line.key(dialect, session)
        return trace_id(key) if os.path.exists(f"{self._folders.journal}/{HEADS}/{key}") else None


class _Watched:
    """Events on their way: counts steps and tokens, tells progress."""

    def __init__(self, events: Iterator[Event], counts: Counts, tell: Callable[[int], None]) -> None:
        self._events = events
        self._counts = counts
        self._tell = tell
        self.steps = 0
        self.tokens: int | None = None

    def __iter__(self) -> Iterator[Event]:
        for number, event in enumerate(self._events):
            if event.type in ("trace.step", "trace.step_start"):
                self.steps += 1
            elif event.type == "trace.end":
                total = event.fields.get("total_tokens")
                self.tokens = total if isinstance(total, int) else None
            if not number % 1000:
                self._tell(self._counts.bytes)
            yield event


def _part(path: str) -> Part | None:
    try:
        fd = records.open_file(path)
    except OSError:
        return None
    try:
        return fingerprint(os.path.realpath(path), fd)
    finally:
        os.close(fd)


def _same(before: Origin, importer: Importer, parts: list[Part]) -> bool:
    return before.format == importer.NAME and before.version == VERSION and before.parts == parts
