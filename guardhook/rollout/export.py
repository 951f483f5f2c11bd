"""Rollout files: `<folder>/<YYYY-MM-DD>/<run id>.jsonl`, 0600 in folders of 0700, written aside and put in place with one rename.

The day is the UTC date on which the run was opened and never changes. A run that has a file already keeps the settings that the file's first line names.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from guardhook.core.folders import Folders
from guardhook.core.jsontext import dumps
from guardhook.journal import files
from guardhook.rollout.lines import Event, encode, fitting
from guardhook.rollout.options import Options
from guardhook.rollout.plain import plain
from guardhook.rollout.render import render
from guardhook.rollout.runs import RunRef
from guardhook.rollout.turns import by_turn
from guardhook.store.errors import Unusable

SUFFIX = ".jsonl"
AUDIT = "audit"  # the audit trail's file of a day
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
_FIRST_BYTES = 4 << 20
_PART = ".part"
_LEFT_S = 86_400  # whoever wrote it is gone by then
_swept: set[str] = set()


class Written(NamedTuple):
    """A file that was written; changed says whether its bytes are others than before."""

    path: str
    run_id: str
    events: int
    bytes: int
    changed: bool


class Name(NamedTuple):
    """Where a rollout lies below the rollout folder."""

    day: str
    run_id: str

    @property
    def relative(self) -> str:
        return f"{self.day}/{self.run_id}{SUFFIX}"


def name_of(ref: RunRef) -> Name:
    """Raises Unusable for an id that no hook gives and that would name another place than a file of the folder."""
    if _RUN_ID.fullmatch(ref.run_id) is None or ref.run_id == AUDIT:
        raise Unusable(f"the journal names a run {dumps(plain(ref.run_id, 100))}, and no file can be called so")
    return Name(ref.day, ref.run_id)


def outside(folders: Folders, path: str) -> None:
    """Raises Unusable for a rollout folder in the journal, whose files of a day would be taken for sessions."""
    real, journal = os.path.realpath(path), os.path.realpath(folders.journal)
    if real == journal or real.startswith(journal + "/"):
        raise Unusable(f"{path} lies in the journal; rollouts need a folder of their own", path)


def lines(events: Iterable[Event]) -> Iterator[bytes]:
    """The lines of a file. An event that can't be made to fit the loader's bounds becomes a marker of its loss."""
    for event in events:
        raw = fitting(event)
        yield raw if raw is not None else encode(_too_large(event))


def _too_large(event: Event) -> Event:
    data = event.get("data")
    told: dict[str, object] = {"step": data.get("step", 0)} if isinstance(data, dict) else {"step": 0}
    seq = event["seq"]
    told.update(
        dropped_event_id=str(seq), dropped_event_type=event["type"], dropped_seq=seq, reason="too large", count=1
    )
    return {"ts": event["ts"], "seq": seq, "type": "recorder.drop_detected", "data": told}


def options_for(folder: str, name: Name, options: Options) -> Options:
    """The options to render a run with: those that its file there was rendered with, else the given ones."""
    try:
        with Folder(folder) as place:
            first = place.first_line(name)
    except OSError:
        return options
    try:
        found = msgspec.json.decode(first)
    except (msgspec.DecodeError, ValueError):
        return options
    data = found.get("data") if isinstance(found, dict) else None
    if not isinstance(data, dict) or found.get("type") != "run.started" or data.get("run_id") != name.run_id:
        return options
    return options.kept(data.get("forensics"), data.get("tenant_id"))


def write(folders: Folders, ref: RunRef, folder: str, options: Options, *, turns: bool = False) -> list[Written]:
    """Writes a run's file, or one for each of its turns. Raises StoreError."""
    outside(folders, folder)
    out: list[Written] = []
    try:
        with Folder(folder, create=True) as place:
            if not turns:
                chosen = options_for(folder, name_of(ref), options)
                out.append(place.put(name_of(ref), lines(render(folders, ref, options=chosen))))
            else:
                for turn in by_turn(render(folders, ref, options=options), ref.run_id):
                    out.append(place.put(Name(turn.day, turn.run_id), lines(turn.events)))
    except OSError as error:
        raise Unusable(f"{error.filename or folder}: {error.strerror or error}", folder) from None
    return out


class Folder:
    """A rollout folder, opened. Nothing below it is reached through a link. Raises OSError."""

    def __init__(self, path: str, *, create: bool = False) -> None:
        self.path = os.path.abspath(path)
        real = os.path.realpath(self.path)  # the folder itself may be a link: whoever named it chose that
        # A folder that is there keeps its mode: it may be somebody's home or project. What lies in it is private anyhow.
        self._fd = files.open_root(real) if create and not os.path.isdir(real) else files.open_folder(real)
        self._create = create

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *rest: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    def first_line(self, name: Name) -> bytes:
        with self.opened(name, os.O_RDONLY) as fd:
            return os.read(fd, _FIRST_BYTES).partition(b"\n")[0]

    @contextlib.contextmanager
    def opened(self, name: Name, flags: int, *, create: bool = False) -> Iterator[int]:
        """A descriptor of a rollout's file."""
        day = files.open_folder(name.day, self._fd, create=create)
        try:
            fd = files.open_file(name.run_id + SUFFIX, day, flags, create=create)
            try:
                yield fd
            finally:
                os.close(fd)
        finally:
            os.close(day)

    def put(self, name: Name, raw_lines: Iterable[bytes]) -> Written:
        """Writes a whole file, or leaves the one that is there when its bytes are the same."""
        day = files.open_folder(name.day, self._fd, create=True)
        # Not named by the process: in containers they all have the same number, and what a killed one left would stand in the way for good.
        aside = f".{name.run_id}.{os.urandom(6).hex()}{_PART}"
        try:
            self._sweep(day, name.day)
            fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=day)
            try:
                with os.fdopen(fd, "wb", buffering=1 << 20) as file:
                    count = 0
                    for raw in raw_lines:
                        file.write(raw)
                        count += 1
                    file.flush()
                    size = file.tell()
                    if self._same(day, name, aside, size):
                        return Written(f"{self.path}/{name.relative}", name.run_id, count, size, False)
                    os.fsync(file.fileno())
                os.rename(aside, name.run_id + SUFFIX, src_dir_fd=day, dst_dir_fd=day)
                os.fsync(day)
                return Written(f"{self.path}/{name.relative}", name.run_id, count, size, True)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(aside, dir_fd=day)
        finally:
            os.close(day)

    def _sweep(self, day: int, called: str) -> None:
        """Removes what commands that were killed left behind, once for each folder of a day."""
        place = f"{self.path}/{called}"
        if place in _swept:
            return
        _swept.add(place)
        with os.scandir(day) as found:
            names = [e.name for e in found if e.name.startswith(".") and e.name.endswith(_PART)]
        for name in names:
            with contextlib.suppress(OSError):
                if time.time() - os.stat(name, dir_fd=day, follow_symlinks=False).st_mtime > _LEFT_S:
                    os.unlink(name, dir_fd=day)

    def _same(self, day: int, name: Name, aside: str, size: int) -> bool:
        try:
            old = files.open_file(name.run_id + SUFFIX, day, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            if os.fstat(old).st_size != size:
                return False
            new = files.open_file(aside, day, os.O_RDONLY)
            try:
                while True:
                    left, right = os.read(old, 1 << 20), os.read(new, 1 << 20)
                    if left != right:
                        return False
                    if not left:
                        return True
            finally:
                os.close(new)
        finally:
            os.close(old)
