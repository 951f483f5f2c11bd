"""The audit trail: one file a day, `<folder>/<YYYY-MM-DD>/audit.jsonl`, in which each entry carries the hash of the one before.

An entry is `{timestamp, run_id, event_type, payload?, prev_hash, entry_hash}`; the first one's prev_hash is `genesis`. entry_hash is the SHA-256 of the
canonical JSON (guardhook.journal.audit_json) of `{ts, run_id, event_type, payload_json, prev_hash}`. This tells of later changes, it prevents none:
whoever can write the file can write the chain anew, which only a hash that was kept elsewhere shows (`guardhook audit anchor`).

The hash before is read from the file each time, under its lock: other processes write too. Where the file's end is not a whole entry, nothing is
written: a chain is never begun anew in the middle. What could not be written in time waits in `<data>/audit-missed/` for the next writer.
Imported only where the trail is on.
"""

from __future__ import annotations

import fcntl
import posix
import time
from _thread import allocate_lock

from guardhook.core.jsontext import PayloadError, dumps, loads
from guardhook.journal import files, line
from guardhook.journal.audit_json import canonical, text, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.event import Event
    from guardhook.journal.write import Outcome

GENESIS = "genesis"
FILE = "audit.jsonl"
MISSED = "audit-missed"
PAYLOAD_BYTES = 2 << 20
LOCK_SECONDS = 5.0
_TAIL = 8192
_WINDOW = 4 << 20
_TEXT = 256 * 1024  # characters of arguments or a prompt
_NAME = 1024
_AT_ONCE = 8  # missed entries that one writer takes in

Entry = tuple[str, str, str, "dict[str, object] | None"]  # timestamp, run, type, payload


class AuditError(OSError):
    """The trail can't be written, and was not."""


def entry_hash(ts: str, run: str, kind: str, payload: object, before: str) -> str:
    """The hash of an entry. payload None: it has none. Raises ValueError for what is no JSON."""
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from _sha2 import sha256  # type: ignore[import-not-found]  # its name from Python 3.12 on
    body = (
        f'{{"ts":{text(ts)},"run_id":{text(run)},"event_type":{text(kind)},'
        f'"payload_json":{text(canonical(payload))},"prev_hash":{text(before)}}}'
    )
    digest: str = sha256(body.encode()).hexdigest()
    return digest


def rendered(entry: Entry, before: str) -> tuple[bytes, str]:
    """The line of an entry and its hash. Raises AuditError for a payload that can't be kept."""
    ts, run, kind, payload = entry
    try:
        if payload is not None and len(canonical(payload).encode()) > PAYLOAD_BYTES:
            raise AuditError(None, f"the payload is larger than {PAYLOAD_BYTES} bytes")
        digest = entry_hash(ts, run, kind, payload, before)
        own = {} if payload is None else {"payload": payload}
        line_ = {"timestamp": ts, "run_id": run, "event_type": kind, **own, "prev_hash": before, "entry_hash": digest}
        raw = (dumps(line_) + "\n").encode("ascii")
        if len(raw) > _WINDOW:  # nothing could ever follow it
            raise AuditError(None, f"the entry is larger than {_WINDOW} bytes")
        return raw, digest
    except (ValueError, TypeError, RecursionError) as error:
        raise AuditError(None, f"the payload is not JSON: {error}") from None


class Log:
    """One day's file, open. Raises OSError (AuditError, files.Unsafe) when it or its folder is not what it must be. Threads may share it."""

    def __init__(self, folder: str, day: str) -> None:
        self._mutex = allocate_lock()
        self._fd = -1
        root = _root(folder)
        try:
            below = files.open_folder(day, root, create=True)
        finally:
            posix.close(root)
        try:
            _private(below, f"{folder}/{day}")
            fd = files.open_file(FILE, below, posix.O_RDWR | posix.O_APPEND, create=True)
        finally:
            posix.close(below)
        try:
            _private(fd, f"{folder}/{day}/{FILE}")
            last_hash(fd, posix.fstat(fd).st_size)
        except BaseException:
            posix.close(fd)
            raise
        self._fd = fd

    def close(self) -> None:
        """May be called twice."""
        with self._mutex:
            if self._fd >= 0:
                posix.close(self._fd)
                self._fd = -1

    def append(self, entries: list[Entry], *, seconds: float = LOCK_SECONDS, missed: str | None = None) -> str:
        """Chains entries on, after those that wait in the folder `missed`, with one write; gives the last hash. Raises OSError with nothing written."""
        deadline = time.monotonic() + seconds
        with self._mutex:
            if self._fd < 0:
                raise AuditError(None, "the audit file is closed")
            fd = self._fd
            files.lock(fd, deadline, "the audit file is locked")
            try:
                status = posix.fstat(fd)
                if status.st_nlink != 1:
                    raise AuditError(None, "the audit file was removed or renamed meanwhile")
                waiting, names = _waiting(missed, deadline) if missed is not None else ([], [])
                size = status.st_size
                before = last_hash(fd, size)
                chunks: list[bytes] = []
                for entry in waiting:
                    chunk, before = _standing_in(entry, before)
                    chunks.append(chunk)
                for entry in entries:
                    chunk, before = rendered(entry, before)
                    chunks.append(chunk)
                _write(fd, b"".join(chunks), size)
                if missed is not None and names:
                    _forget(missed, names)  # under the lock, or the next one takes them in as well
            finally:
                fcntl.flock(fd, fcntl.LOCK_UN)
            return before


def _standing_in(entry: Entry, before: str) -> tuple[bytes, str]:
    """As rendered, for an entry that waited: where it can't be kept, that it was there is. Else it would keep away all that come after it."""
    try:
        return rendered(entry, before)
    except AuditError as error:
        ts, run, kind, _ = entry
        return rendered((ts[:_NAME], run[:_NAME], kind[:_NAME], {"failed": str(error)}), before)


def _root(folder: str) -> int:
    """The trail's folder: made where it is missing, left as it is where it is not."""
    try:
        return files.open_folder(folder)
    except FileNotFoundError:
        return files.open_root(folder)


def _private(fd: int, path: str) -> None:
    """Raises AuditError while others can reach it: some file systems take a chmod and ignore it."""
    if posix.fstat(fd).st_mode & 0o007:
        raise AuditError(None, f"{path}: everybody can reach it, and that can't be changed here")


def last_hash(fd: int, size: int) -> str:
    """The hash that the next entry follows. Raises AuditError when the file's end is no whole entry."""
    if size == 0:
        return GENESIS
    window = _TAIL
    while True:
        start = max(0, size - window)
        data = _read(fd, start, size)
        if data[-1:] != b"\n":
            raise AuditError(None, "the audit file ends in an unfinished line")
        feed = data.rfind(b"\n", 0, len(data) - 1)
        if feed >= 0 or start == 0:
            break
        if window >= _WINDOW:
            raise AuditError(None, "the last line of the audit file is too long")
        window *= 8
    try:
        entry = loads(data[feed + 1 :], bounded=False)
    except PayloadError as error:
        raise AuditError(None, f"the last line of the audit file is no entry: {error}") from None
    found = entry.get("entry_hash") if isinstance(entry, dict) else None
    if not isinstance(found, str) or not found:
        raise AuditError(None, "the last line of the audit file is no entry")
    return found


def _read(fd: int, start: int, end: int) -> bytes:
    data = b""
    while start + len(data) < end:
        chunk = posix.pread(fd, end - start - len(data), start + len(data))
        if not chunk:
            raise AuditError(None, "the audit file can't be read to its end")
        data += chunk
    return data


def _write(fd: int, data: bytes, size: int) -> None:
    try:
        written = posix.write(fd, data)
        if written == len(data):
            return
        failure = OSError(None, f"only {written} of {len(data)} bytes could be written")
    except OSError as error:
        failure = error
    posix.ftruncate(fd, size)
    raise failure


# --- entries that could not be written in time ----------------------------------------------------------------------


def note(folder: str, entries: list[Entry]) -> None:
    """Keeps entries for the next writer, one file each. Raises OSError."""
    root = files.open_root(folder)
    try:
        for number, (ts, run, kind, payload) in enumerate(entries):
            name = f"{time.time_ns():020d}-{posix.getpid()}-{number}"
            data = dumps({"timestamp": ts, "run_id": run, "event_type": kind, "payload": payload}).encode("ascii")
            fd = files.open_file("." + name, root, posix.O_WRONLY, create=True)
            try:
                if posix.write(fd, data) != len(data):
                    raise OSError(None, "only a part could be written")
            except OSError:
                posix.unlink("." + name, dir_fd=root)
                raise
            finally:
                posix.close(fd)
            posix.rename("." + name, name, src_dir_fd=root, dst_dir_fd=root)
    finally:
        posix.close(root)


def _waiting(folder: str, deadline: float) -> tuple[list[Entry], list[str]]:
    """The oldest entries that wait, and the names of their files. What is none is left where it is, and keeps nothing else waiting."""
    try:
        root = files.open_folder(folder)
    except OSError:
        return [], []
    found: list[Entry] = []
    names: list[str] = []
    try:
        for name in sorted(n for n in posix.listdir(root) if n[:1] != "."):
            try:
                entry = _noted(name, root)
            except OSError:
                continue
            if entry is not None:
                found.append(entry)
                names.append(name)
            if len(found) == _AT_ONCE or time.monotonic() > deadline:
                break
    except OSError:
        pass
    finally:
        posix.close(root)
    return found, names


def _noted(name: str, root: int) -> Entry | None:
    fd = files.open_file(name, root, posix.O_RDONLY)
    try:
        value = loads(_read(fd, 0, posix.fstat(fd).st_size), bounded=False)
    except PayloadError:
        return None
    finally:
        posix.close(fd)
    if not isinstance(value, dict):
        return None
    ts, run, kind, payload = (value.get(k) for k in ("timestamp", "run_id", "event_type", "payload"))
    if not (isinstance(ts, str) and isinstance(run, str) and isinstance(kind, str)):
        return None
    return ts, run, kind, payload if isinstance(payload, dict) else None


def _forget(folder: str, names: list[str]) -> None:
    """Removes what is in the chain now. A crash right before leaves an entry that comes twice, never one that is lost."""
    for name in names:
        try:
            posix.unlink(f"{folder}/{name}")
        except OSError:
            pass


# --- what a hook event leaves in the trail --------------------------------------------------------------------------


def take(settings: dict[str, object], journal: str, event: Event, data: dict[str, object], now: int, outcome: Outcome, seconds: float) -> None:  # fmt: skip
    """Writes what an event means for the trail, after its journal line. seconds: what is left of the journal's time. Never raises: no decision hangs on it.

    settings: `folder`, and `more` and `less`, names of tools that count or don't. data: the line's, already redacted.
    """
    try:
        entries = entries_of(settings, journal, event, data, now, outcome)
        if not entries:
            return
        missed = f"{journal.rpartition('/')[0]}/{MISSED}"
        try:
            log = Log(str(settings["folder"]), line.day(now))
            try:
                log.append(entries, seconds=seconds, missed=missed if _exists(missed) else None)
            finally:
                log.close()
        except OSError:
            note(missed, entries)
    except Exception:
        return


def _exists(path: str) -> bool:
    try:
        posix.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return True


def entries_of(
    settings: dict[str, object], journal: str, event: Event, data: dict[str, object], now: int, outcome: Outcome
) -> list[Entry]:
    """The entries of one event: the begin and the end of a run, and each call of a tool that can change something, as it was asked for."""
    ts, run = trimmed(line.iso(now)), outcome.run or _run(journal, event)
    nothing = data.get("redaction") == "none"
    found: list[Entry] = []
    if outcome.opened:
        found.append((ts, run, "run.started", {} if nothing else _started(event, data)))
    if event.event == "pre_tool" and _counts(settings, event):
        found.append((ts, run, "audit.action", {} if nothing else _action(event, data, outcome.seq)))
    if outcome.closed:
        found.append((ts, run, "run.completed", {} if nothing else {"status": "completed"}))
    return found


def _run(journal: str, event: Event) -> str:
    """The run of an event whose journal line waits in the spool, as far as the session's head tells."""
    from guardhook.journal import write

    head = write.peek(journal, event.dialect, event.session, event.cwd)
    return line.run_id(*write.names(event.dialect, event.session, event.cwd), 1 if head is None else head.segment)


def _counts(settings: dict[str, object], event: Event) -> bool:
    from guardhook.journal import modifying

    more, less = settings.get("more", ()), settings.get("less", ())
    said = modifying.changes(event.tool, more, less)  # type: ignore[arg-type]
    if said != modifying.NO:
        return True
    return event.kind in ("shell", "file_write", "file_edit") and (event.tool or "").casefold() not in less  # type: ignore[operator]


def _started(event: Event, data: dict[str, object]) -> dict[str, object]:
    _, prompt = _recorded(event, data)
    payload = data.get("payload")
    model = payload.get("model") if isinstance(payload, dict) else None
    out: dict[str, object] = {}
    for name, said, most in (("prompt", prompt, _TEXT), ("model", model, _NAME)):
        if isinstance(said, str):
            _keep(out, name, said, most)
    return out


def _action(event: Event, data: dict[str, object], seq: int | None) -> dict[str, object]:
    out: dict[str, object] = {}
    for name, said in (("tool", data.get("tool")), ("call_id", data.get("call"))):
        if isinstance(said, str):
            _keep(out, name, said, _NAME)
        else:
            out[name] = None
    given, _ = _recorded(event, data)
    if given is not None:
        _keep(out, "arguments", given if isinstance(given, str) else dumps(given), _TEXT)
    out["seq"] = seq  # the journal's ticket; steps are counted when a rollout is rendered
    verdict = data.get("verdict")
    if isinstance(verdict, dict) and verdict.get("action") not in (None, "allow"):
        out["decision"] = verdict.get("action")
        out["mode"] = verdict.get("mode")
    return out


def _keep(out: dict[str, object], name: str, said: str, most: int) -> None:
    """A text under its name, one that is too long as its hash and size: an entry stays far below what a line may be."""
    if len(said) <= most:
        out[name] = whole(said)
    else:
        out[f"{name}_sha256"], out[f"{name}_bytes"] = _digest(said)


def _digest(arguments: str) -> tuple[str, int]:
    try:
        from _sha256 import sha256
    except ImportError:
        from _sha2 import sha256
    raw = arguments.encode("utf-8", "surrogatepass")
    return sha256(raw).hexdigest(), len(raw)


def _recorded(event: Event, data: dict[str, object]) -> tuple[object, object]:
    """The tool's input and the prompt as they were recorded, that is redacted; None where they were not."""
    payload = data.get("payload")
    if not isinstance(payload, dict):
        return None, None
    try:
        from guardhook.dialects import table

        again = table.load(event.dialect).read(payload, {}, event.native_event)
    except Exception:  # hollowed out by redaction, or a script's step, which is of no dialect
        return payload.get("tool_input"), payload.get("prompt")
    return again.input, again.prompt


def trimmed(ts: str) -> str:
    """An RFC 3339 time in UTC without trailing zeros of its fraction."""
    head, dot, tail = ts.removesuffix("Z").partition(".")
    tail = tail.rstrip("0")
    return f"{head}.{tail}Z" if dot and tail else f"{head}Z"
