"""Taking secrets out of what is in the journal already: files are rewritten line by line, each put in place with one rename. Cold.

Tickets, times and runs stay as they are. Most of a file is rewritten without its lock; writers wait only for what was appended meanwhile. A process killed at any
point leaves each file as it was or as it should be, and the session's head follows. The journal's generation is raised before the first file changes, so
that stores are made anew.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from guardhook.core.jsontext import dumps
from guardhook.journal import files, generation, line, read, redact, write

LOCK_SECONDS = 5.0
_TEMPORARY = ".redact.tmp"
_IMPORTS_LOCK = ".lock"
_MARKS = re.compile(rb"\[REDACTED:([a-z_]{1,32})\]")
_ATTEMPTS = 3

Rows = tuple[redact.Row, ...]


class Busy(Exception):
    """A file that is in use and stays as it is."""


class Wanted(NamedTuple):
    """What to do with which lines. since: an RFC 3339 time in the form of a line's ts, None for all. mode is that of hook payloads."""

    rows: Rows
    mode: str = "redacted"
    since: str | None = None


class File(NamedTuple):
    """One file's result. lines and changed are counts; found counts markers by name; the file was (or would be) rewritten when changed is not 0."""

    folder: str
    key: str
    lines: int
    changed: int
    found: dict[str, int]
    busy: bool = False


def places(journal: str, keys: frozenset[str] | None = None) -> list[read.SessionFile]:
    """All data files, imports among them, or those of some sessions. Raises OSError."""
    found = read.session_files(journal)
    imports = f"{journal}/{read.IMPORTS}"
    if os.path.isdir(imports):
        names = sorted(n.removesuffix(write.SUFFIX) for n in os.listdir(imports) if n.endswith(write.SUFFIX))
        found += [read.SessionFile(read.IMPORTS, name) for name in names]
    return [file for file in found if keys is None or file.key in keys]


class Redactor:
    """Rewrites files one after the other; the generation is raised with the first one that changes."""

    def __init__(self, journal: str, wanted: Wanted, *, dry_run: bool = False) -> None:
        self._journal = journal
        self._wanted = wanted
        self._dry = dry_run
        self.rewritten = False
        self._rewriting = generation.Rewriting(journal)

    def file(self, place: read.SessionFile) -> File:
        """One file. Raises OSError (files.Unsafe) for one that can't be read or written."""
        if self._dry:
            return self._count(place)
        try:
            return self._rewrite(place)
        except (Busy, TimeoutError):
            return File(place.day, place.key, 0, 0, {}, busy=True)

    def _count(self, place: read.SessionFile) -> File:
        lines = changed = 0
        found: Counter[str] = Counter()
        fd = read.open_session(self._journal, place)
        try:
            for entry in read.entries(fd):
                lines += 1
                new = redacted(entry.raw, self._wanted)
                if new != entry.raw:
                    changed += 1
                    found += _marks(entry.raw, new)
        finally:
            os.close(fd)
        return File(place.day, place.key, lines, changed, dict(found))

    def _rewrite(self, place: read.SessionFile) -> File:
        with _folder(self._journal, place.day) as folder:
            if place.day != read.IMPORTS and _exists(folder, place.key + write.PACKED):
                counted = self._count(place)
                if not counted.changed:
                    return counted
                self._expanded(place)
            for last in (False,) * (_ATTEMPTS - 1) + (True,):
                with _Copy(folder, place.key, self._wanted) as copy:
                    if not last:
                        copy.take(copy.size())
                        if not copy.changed and copy.complete():
                            return copy.result(place)
                    with self._locked(place) as held:
                        if copy.moved():  # rewritten or removed by somebody else meanwhile
                            continue
                        copy.take(copy.size())
                        copy.rest()
                        if copy.changed:
                            self._put(copy, held, place)
                        return copy.result(place)
            raise Busy

    def _put(self, copy: _Copy, held: write.Session | None, place: read.SessionFile) -> None:
        self._rewriting.of(place.key)
        self.rewritten = True
        if held is None or held.head.day != place.day:
            copy.place()
            return
        known = held.head.size
        held.head.size = 0  # killed from here on, the next writer reads the head out of whichever file is there
        _save(held)
        copy.place()
        # What the head did not know of (an interrupted writer's line, an unfinished one) the next writer still has to find.
        held.head.size = copy.where(known)
        _save(held)

    @contextlib.contextmanager
    def _locked(self, place: read.SessionFile) -> Iterator[write.Session | None]:
        """Keeps writers of the file away. Raises TimeoutError."""
        deadline = time.monotonic() + LOCK_SECONDS
        if place.day == read.IMPORTS:
            with _folder(self._journal, read.IMPORTS) as folder:
                fd = files.open_file(_IMPORTS_LOCK, folder, os.O_RDWR, create=True)
                try:
                    files.lock(fd, deadline, "the journal is locked")
                    yield None
                finally:
                    os.close(fd)
            return
        held = write.Session(self._journal, place.key, "", "")
        try:
            held.lock(deadline)
            yield held
        finally:
            held.close()

    def _expanded(self, place: read.SessionFile) -> None:
        """A compressed file is made a plain one; gc compresses it again when it is due."""
        from guardhook.journal import pack

        with self._locked(place) as held:
            assert held is not None
            pack.expand(held, place.day)


class _Copy:
    """The new file beside the old one, line by line."""

    def __init__(self, folder: int, key: str, wanted: Wanted) -> None:
        self._folder = folder
        self._key = key
        self._wanted = wanted
        self._old = files.open_file(key + write.SUFFIX, folder, os.O_RDONLY)
        self._offset = 0
        self._new = -1
        self.lines = 0
        self.changed = 0
        self._found: Counter[str] = Counter()
        try:
            self._status = os.fstat(self._old)
            _unlink(key + _TEMPORARY, folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._new = os.open(key + _TEMPORARY, flags, 0o600, dir_fd=folder)
            self._out = os.fdopen(self._new, "wb", buffering=1 << 20)
        except BaseException:
            os.close(self._old)
            raise

    def __enter__(self) -> _Copy:
        return self

    def __exit__(self, *rest: object) -> None:
        os.close(self._old)
        with contextlib.suppress(OSError):  # what was not written may still be in its buffer
            self._out.close()
        _unlink(self._key + _TEMPORARY, self._folder)

    def size(self) -> int:
        return os.fstat(self._old).st_size

    def moved(self) -> bool:
        """Whether the name means another file now."""
        try:
            now = os.stat(self._key + write.SUFFIX, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            raise Busy from None
        return (now.st_dev, now.st_ino) != (self._status.st_dev, self._status.st_ino) or now.st_size < self._offset

    def complete(self) -> bool:
        return self._offset == self.size()

    def take(self, end: int) -> None:
        """Copies complete lines up to a size."""
        for entry in read.entries(self._old, self._offset):
            if entry.end > end:
                break
            self._line(entry.raw, b"\n")
            self._offset = entry.end
            self.lines += 1

    def rest(self) -> None:
        """Copies what follows the last line feed."""
        raw = b""
        while chunk := os.pread(self._old, 1 << 20, self._offset + len(raw)):
            raw += chunk
        if raw:
            self._line(raw, b"")
            self._offset += len(raw)

    def _line(self, raw: bytes, end: bytes) -> None:
        new = redacted(raw, self._wanted)
        if new != raw:
            self.changed += 1
            self._found += _marks(raw, new)
        self._out.write(new + end)

    def place(self) -> None:
        """Puts the new file in place. The old one's time stays: gc goes by when a session was last heard of."""
        self._out.flush()
        os.fsync(self._out.fileno())
        os.utime(self._out.fileno(), ns=(self._status.st_atime_ns, os.fstat(self._old).st_mtime_ns))
        name = self._key + write.SUFFIX
        os.rename(self._key + _TEMPORARY, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def where(self, old: int) -> int:
        """The place in the new file that a place between two lines of the old one has become."""
        if old >= self._offset:
            return os.fstat(self._out.fileno()).st_size
        lines = sum(1 for entry in read.entries(self._old) if entry.end <= old)
        new = files.open_file(self._key + write.SUFFIX, self._folder, os.O_RDONLY)
        try:
            ends = (entry.end for entry in read.entries(new))
            return next(islice(ends, lines - 1, None), 0) if lines else 0
        finally:
            os.close(new)

    def result(self, place: read.SessionFile) -> File:
        return File(place.day, place.key, self.lines, self.changed, dict(self._found))


def redacted(raw: bytes, wanted: Wanted) -> bytes:
    """A line without its line feed as it should stand; the same bytes where nothing is to change. What is no line is treated as text."""
    try:
        found = line.parse(raw)
    except line.BadLine:
        text = raw.decode("utf-8", "surrogateescape")
        new = redact.redact_text(text, wanted.rows)
        return raw if new == text else new.encode("utf-8", "surrogateescape")
    if wanted.since is not None and found.ts < wanted.since:
        return raw
    own = {name: item for name, item in found.data.items() if name in line.WRITER_KEYS}
    body = {name: item for name, item in found.data.items() if name not in line.WRITER_KEYS}
    new_body = _hook(body, wanted) if found.type == line.RECEIVED else _other(body, wanted.rows)
    if new_body == body:
        return raw
    first, rest = dumps(own)[:-1], line.body(new_body)
    between = "," if own and rest != "}" else ""
    return (
        f'{{"ts":{dumps(found.ts)},"seq":{found.seq},"type":{dumps(found.type)},"data":{first}{between}{rest}}}'.encode(
            "ascii"
        )
    )


def _hook(body: dict[str, object], wanted: Wanted) -> dict[str, object]:
    if body.get("redaction") in ("hashed", "none") or body.get("stripped"):
        return body  # no more can be taken out
    out = redact.protect(
        {k: v for k, v in body.items() if k not in ("redacted", "cut", "redaction")}, wanted.rows, wanted.mode
    )
    if wanted.mode == "redacted" and not out["redacted"] and "redaction" in body:
        out["redaction"] = body["redaction"]  # kept in full, and there was nothing to take out
    for name in ("redacted", "cut"):
        before, now = body.get(name), out.get(name, [])
        if name not in body and not now:
            out.pop(name, None)
        if isinstance(before, list) and isinstance(now, list):
            # A text that was redacted before and is no more to change still counts.
            out[name] = [""] if "" in now else [*before, *(p for p in now if p not in before)]
    # Members keep their places, so that a line that needn't change doesn't.
    return {**{k: out[k] for k in body if k in out}, **out}


def _other(body: dict[str, object], rows: Rows) -> dict[str, object]:
    """Recorded, imported and evaluated things: what was said in them. Their modes stay: ids and states must be what they are."""
    event, pointers = redact.redact(body.get("event"), rows, "redacted")
    if not pointers:
        return body
    before = body.get("redacted")
    known = before if isinstance(before, list) else []
    return {**body, "event": event, "redacted": [*known, *(p for p in pointers if p not in known)]}


def _marks(old: bytes, new: bytes) -> Counter[str]:
    """Which markers a line has more of than before."""
    after = Counter(name.decode() for name in _MARKS.findall(new))
    after.subtract(name.decode() for name in _MARKS.findall(old))
    return +after


def _save(held: write.Session) -> None:
    os.pwrite(held._lock, write.render_head(held.head), 0)
    os.fsync(held._lock)


@contextlib.contextmanager
def _folder(journal: str, name: str) -> Iterator[int]:
    root = files.open_folder(journal)
    try:
        folder = files.open_folder(name, root)
    finally:
        os.close(root)
    try:
        yield folder
    finally:
        os.close(folder)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _unlink(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)
