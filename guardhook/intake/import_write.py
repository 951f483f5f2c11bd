"""Writing imported runs into the journal: `journal/imports/<key>.jsonl`, one file for each run, replaceable as a unit.

The first line of a file is a note: where the run came from, and what its files looked like (Origin). So that is known even when the store was deleted.
A file is written aside and put in its place with one rename; replacing one raises the journal's generation first. Secrets are taken out as hooks do.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from guardhook.core import limits
from guardhook.core.folders import Folders
from guardhook.core.jsontext import dumps
from guardhook.intake import bare, records
from guardhook.intake.imports import Event, Run
from guardhook.journal import files, fit, generation, line, read, redact
from guardhook.store.errors import Locked, Unusable

LOCK_SECONDS = 5.0
_BATCH_BYTES = 48 * 1024
# Between texts that are looked at together. Values of secrets end at white space, and a bracket closes what looks like a marker of ours: no rule finds
# less in the joined text than in its parts.
_BORDER = "\n]\0\n"
_PART = ".part"
_NOTE_BYTES = 64 << 20  # a session may have very many files of sub-agents
_LOCK = ".lock"


class Part(msgspec.Struct, frozen=True):
    """What a file looked like when it was imported. digest: of its first and last bytes."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    digest: str


class Origin(msgspec.Struct, frozen=True):
    """Where a run came from. number: its place among the runs of its file; the first one is written last, so that it stands for all of them."""

    format: str
    version: int
    number: int
    trace: str
    session: str | None
    parts: list[Part]  # the file itself first


class _NoteData(msgspec.Struct):
    origin: Origin


class _Note(msgspec.Struct):
    data: _NoteData


class Exists(Exception):
    """The run was imported before."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace


class Writer:
    """Writes runs. Holds the lock of the imports folder from its making to `close`: one import at a time.

    Raises Locked when another import runs, Unusable when the journal can't be written.
    """

    def __init__(self, folders: Folders, *, replace: bool = False, redaction: str = "redacted") -> None:
        self._journal = folders.journal
        self._replace = replace
        self._rewriting = generation.Rewriting(folders.journal)
        self._redactor = _Redactor(folders, redaction)
        self._fds: list[int] = []
        try:
            root = files.open_root(self._journal)
            self._fds.append(root)
            self._folder = files.open_folder(read.IMPORTS, root, create=True)
            self._fds.append(self._folder)
            lock = files.open_file(_LOCK, self._folder, os.O_RDWR, create=True)
            self._fds.append(lock)
            files.lock(lock, time.monotonic() + LOCK_SECONDS, "another import is running")
            self._sweep()
        except TimeoutError:
            self.close()
            raise Locked(
                f"another import into {self._journal} is running; try again when it is done", self._journal
            ) from None
        except OSError as error:
            self.close()
            raise Unusable(f"{self._journal}: {error.strerror or error}", self._journal) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def _sweep(self) -> None:
        """Removes what killed imports left; whoever holds the lock is the only one who writes here."""
        for name in os.listdir(self._folder):
            if name.endswith(_PART):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=self._folder)

    def has(self, format: str, trace: str) -> bool:
        """Whether the run is in the journal already."""
        try:
            os.stat(line.key(format, trace) + ".jsonl", dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def put(self, run: Run, trace: str, origin: Origin, may_replace: Callable[[str], None]) -> Pending:
        """Writes a run aside. Nothing counts until the result's `commit`; `discard` it otherwise.

        Raises Exists (before anything is read) when it is there and not to be replaced. may_replace is asked before an existing run is replaced, and may raise.
        """
        key = line.key(run.identity.format, trace)
        there = self.has(run.identity.format, trace)
        if there:
            if not self._replace:
                raise Exists(trace)
            may_replace(trace)
        temporary = f".{key}.{os.getpid()}.{os.urandom(4).hex()}{_PART}"
        try:
            fd = os.open(
                temporary,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=self._folder,
            )
        except OSError as error:
            raise Unusable(f"{self._journal}: {error.strerror or error}", self._journal) from None
        pending = Pending(self, temporary, key + ".jsonl", there)
        try:
            with os.fdopen(fd, "wb", buffering=1 << 20) as file:
                _write(file, run, trace, origin, self._redactor)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            pending.discard()
            raise
        return pending

    def _commit(self, temporary: str, name: str, replaces: bool) -> None:
        try:
            if replaces:
                self._rewriting.of(name.removesuffix(".jsonl"))
            os.rename(temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            os.fsync(self._folder)
        except OSError as error:
            raise Unusable(f"{self._journal}: {error.strerror or error}", self._journal) from None

    def _discard(self, temporary: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=self._folder)


class Pending:
    """A run that was written but isn't in its place yet."""

    def __init__(self, writer: Writer, temporary: str, name: str, replaces: bool) -> None:
        self._writer = writer
        self._temporary = temporary
        self._name = name
        self.replaces = replaces

    def commit(self) -> None:
        """Puts the run in its place. Raises Unusable."""
        self._writer._commit(self._temporary, self._name, self.replaces)

    def discard(self) -> None:
        self._writer._discard(self._temporary)


def known(journal: str) -> dict[str, Origin]:
    """Origins of all imports by the path of their file, read from the first line of each."""
    found: dict[str, Origin] = {}
    folder = f"{journal}/{read.IMPORTS}"
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    decode = msgspec.json.Decoder(_Note).decode
    for name in names:
        if not name.endswith(".jsonl"):
            continue
        try:
            with os.fdopen(records.open_file(f"{folder}/{name}"), "rb", buffering=1 << 13) as file:
                origin = decode(file.readline(_NOTE_BYTES)).data.origin
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if origin.number == 0 and origin.parts:
            found[origin.parts[0].path] = origin
    return found


def _write(file: BinaryIO, run: Run, trace: str, origin: Origin, redactor: _Redactor) -> None:
    """The lines of a run: the note, its start, its events."""
    format = run.identity.format
    now = time.time_ns()
    writer: dict[str, object] = {"v": line.VERSION, "run": line.run_id(format, trace, 1), "segment": 1}
    forms = _Forms({**writer, "root": None}, f'"trace":{dumps(trace)},"dialect":{dumps(format)},"event":')
    note = {"origin": msgspec.to_builtins(origin)}
    file.write(line.build(now, 1, line.NOTE, {**writer, "root": None}, line.body(note)))
    seq = 1
    at = now if run.us is None else run.us * 1000
    for event, body, marks in redactor.through(_all(run)):
        seq += 1
        at = at if event.us is None else event.us * 1000
        if seq == 2 or event.type == "trace.end":
            own = {**writer, "opens" if seq == 2 else "closes": True, "root": None}
            file.write(line.build(at, seq, event.type, own, f"{forms.before}{body}{marks}}}"))
        else:
            file.write(forms.line(at, seq, event.type, body, marks))


class _Forms:
    """Lines of one run by the thousand: what `line.build` makes, cut out of one example of each type."""

    def __init__(self, own: dict[str, object], before: str) -> None:
        self._own = own
        self.before = before  # in front of the event
        self._middle: dict[str, str] = {}
        self._minute = -1
        self._stamp = ""

    def line(self, at: int, seq: int, type: str, body: str, marks: str) -> bytes:
        middle = self._middle.get(type)
        if middle is None:
            example = line.build(0, 1, type, self._own, self.before + "}").decode("ascii")
            middle = self._middle[type] = example.partition('"seq":1')[2].removesuffix("}}\n")
        minute, within = divmod(at, 60_000_000_000)
        if minute != self._minute:
            self._minute, self._stamp = minute, line.iso(minute * 60_000_000_000)[:17]
        second, rest = divmod(within // 1000, 1_000_000)
        return f'{{"ts":"{self._stamp}{second:02d}.{rest:06d}Z","seq":{seq}{middle}{body}{marks}}}}}\n'.encode("ascii")


def _all(run: Run) -> Iterator[Event]:
    yield Event("trace.start", run.start, run.us)
    yield from run.events


_encode = msgspec.json.Encoder().encode


def _text(value: object) -> str:
    """Compact JSON, ASCII only. The quick encoder is used where its result is ASCII anyhow."""
    try:
        quick = _encode(value)
        if quick.isascii():
            return quick.decode("ascii")
    except (UnicodeEncodeError, OverflowError, RecursionError):
        pass
    return dumps(value)


class _Redactor:
    """Takes secrets out of events. Most texts hold none, and asking once for many costs a fraction of asking for each."""

    def __init__(self, folders: Folders, mode: str) -> None:
        self._mode = mode
        self._rows: tuple[redact.Row, ...] = ()
        self._names: dict[str, bool] = {}  # names of members that were looked at, and whether they hold secrets
        if mode == "redacted":
            from guardhook.journal.rules import configured

            self._rows = configured(folders)
        # A user's own pattern may care where a text begins and ends, which joined texts don't tell.
        self._own = any(where == "any" for _, where, *_ in self._rows)

    def through(self, events: Iterator[Event]) -> Iterator[tuple[Event, str, str]]:
        """(event, its fields as JSON, what the line says about changes) in order."""
        batch: list[tuple[Event, str]] = []
        size = 0
        for event in events:
            try:
                text = _text(event.fields)
            except RecursionError:
                event = event._replace(
                    fields={k: v for k, v in event.fields.items() if not isinstance(v, (dict, list))}
                )
                text = _text(event.fields)
            if len(text) > limits.RECORD_BYTES:
                yield from self._batch(batch)
                batch, size = [], 0
                yield self._large(event)
                continue
            batch.append((event, text))
            size += len(text)
            if size >= _BATCH_BYTES:
                yield from self._batch(batch)
                batch, size = [], 0
        yield from self._batch(batch)

    def _batch(self, batch: list[tuple[Event, str]]) -> Iterator[tuple[Event, str, str]]:
        if self._mode in bare.MODES:
            for event, _ in batch:
                fields, pointers = bare.bare(event.fields, self._mode)
                yield event, _text(fields), _marks(pointers, [])
            return
        if self._mode == "full" or self._harmless(batch):
            for event, text in batch:
                yield event, text, ""
            return
        for event, text in batch:
            before = {k: v for k, v in event.fields.items() if k not in bare.PLAIN}
            after, pointers = redact.redact(before, self._rows, self._mode)
            if isinstance(after, dict) and pointers:
                yield event, _text({**event.fields, **after}), _marks(pointers, [])
            else:
                yield event, text, ""

    def _harmless(self, batch: list[tuple[Event, str]]) -> bool:
        """Whether no text of a batch would be changed: no member is named like a secret, and all texts with a border between stay as they are."""
        if self._own:
            return False
        texts: list[str] = []
        names = self._names
        stack: list[dict[str, object] | list[object]] = []
        for event, _ in batch:
            for name, value in event.fields.items():
                if name in bare.PLAIN:
                    continue
                if isinstance(value, str):
                    texts.append(value)
                elif isinstance(value, (dict, list)):
                    stack.append(value)
            while stack:
                item = stack.pop()
                if isinstance(item, dict):
                    for key in item:
                        if names[key] if key in names else self._name(key):
                            return False
                    inner = list(item.values())
                else:
                    inner = item
                for value in inner:
                    if isinstance(value, str):
                        texts.append(value)
                    elif isinstance(value, (dict, list)):
                        stack.append(value)
        joined = _BORDER.join(texts)
        return redact.redact_text(joined, self._rows) == joined

    def _name(self, key: str) -> bool:
        if len(self._names) > 10_000:
            self._names.clear()
        self._names[key] = secret = redact.secret_name(key)
        return secret

    def _large(self, event: Event) -> tuple[Event, str, str]:
        """An event that is too long for a line: its longest texts lose their ends."""
        room = limits.RECORD_BYTES * 3 // 4
        step = fit.level(event.fields, room)
        fields, cut = (event.fields, list[str]()) if step is None else fit.clip(event.fields, step + fit.MARGIN)
        assert isinstance(fields, dict)
        pointers: list[str] = []
        if self._mode in bare.MODES:
            fields, pointers = bare.bare(fields, self._mode)
            return event, _text(fields), _marks(pointers, cut)
        fields, pointers = redact.redact(fields, self._rows, self._mode)
        if step is not None:
            fields, cut = fit.trim(fields, cut, step)
        text = _text(fields)
        if len(text) > 2 * limits.RECORD_BYTES and isinstance(fields, dict):  # it is not its texts that are long
            fields = {k: v for k, v in fields.items() if k in bare.PLAIN or (isinstance(v, str) and len(v) <= 4096)}
            cut = [f"/{name}" for name in event.fields if name not in fields]
            text = _text(fields)
        return event, text, _marks(pointers, cut)


def _marks(redacted: list[str], cut: list[str]) -> str:
    out = f',"redacted":{dumps(redacted)}' if redacted else ""
    return out + (f',"cut":{dumps(cut)}' if cut else "")
