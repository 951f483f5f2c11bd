"""Checking a journal: what is damaged, what is merely unfinished, what waits.

Damage is whatever a writer would not have left behind: lines that are not lines, tickets that repeat, go back or are missing, files that
are links, have two names, belong to somebody else or can be read by others. Gap lines are no damage: the loss is on record there.
"""

from __future__ import annotations

import itertools
import os
import stat

import msgspec

from guardhook.journal import files, generation, line, read, spool, write
from guardhook.journal.recover import is_day

_LOCK = ".lock"


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    severity: str  # damage, warning
    file: str  # below the data folder
    what: str
    offset: int | None = None  # bytes


class Report(msgspec.Struct):
    """What a check of a whole journal found."""

    sessions: int = 0
    files: int = 0
    lines: int = 0
    gaps: int = 0
    spooled: int = 0
    findings: list[Finding] = []

    @property
    def damaged(self) -> bool:
        return any(f.severity == "damage" for f in self.findings)

    def add(self, severity: str, file: str, what: str, offset: int | None = None) -> None:
        self.findings.append(Finding(severity, file, what, offset))


def verify(journal_dir: str) -> Report:
    """Checks everything below a journal folder, and the spool beside it. Changes nothing. Raises OSError when the folder itself can't be read."""
    report = Report(findings=[])
    name = os.path.basename(journal_dir)
    _folder(report, journal_dir, name)
    for entry in sorted(os.listdir(journal_dir)):
        if entry in (write.HEADS, read.IMPORTS) or is_day(entry):
            _folder(report, f"{journal_dir}/{entry}", f"{name}/{entry}")
        elif entry not in (generation.NUMBER, generation.LOG):
            report.add("warning", f"{name}/{entry}", "is not the journal's")
    by_key: dict[str, list[read.SessionFile]] = {}
    for file in _session_files(report, journal_dir):
        by_key.setdefault(file.key, []).append(file)
    for key in sorted(by_key):
        report.sessions += 1
        _session(report, journal_dir, key, by_key[key])
    _heads(report, journal_dir, by_key)
    _imports(report, journal_dir)
    _spool(report, journal_dir)
    return report


def _session_files(report: Report, journal_dir: str) -> list[read.SessionFile]:
    found = []
    for day in sorted(d for d in os.listdir(journal_dir) if is_day(d)):
        try:
            found.extend(read.session_files(journal_dir, day=day))
        except OSError as error:
            report.add("damage", f"{os.path.basename(journal_dir)}/{day}", f"can't be read: {error.strerror or error}")
    return found


def _folder(report: Report, path: str, shown: str) -> None:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        report.add("damage", shown, "is not a folder")
    elif status.st_uid != os.geteuid():
        report.add("damage", shown, "belongs to another user")
    elif stat.S_IMODE(status.st_mode) & 0o077:
        report.add("damage", shown, f"can be reached by others (mode {stat.S_IMODE(status.st_mode):04o})")


def _mode(report: Report, status: os.stat_result, shown: str) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        report.add("damage", shown, f"can be read or written by others (mode {mode:04o})")


class _Tickets:
    """The seq numbers of a session over all its files, to find what is missing or doubled."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.doubled = 0
        self.explained: set[int] = set()  # tickets of gap lines that say that lines before them are lost

    def add(self, seq: int) -> None:
        self.doubled += seq in self.seen
        self.seen.add(seq)

    def missing(self) -> int:
        """How many tickets between the first and the last are nowhere, not counting what a gap line accounts for."""
        lost = 0
        ordered = sorted(self.seen)
        for before, after in itertools.pairwise(ordered):
            if after - before > 1 and after not in self.explained:
                lost += after - before - 1
        return lost


def _session(report: Report, journal_dir: str, key: str, parts: list[read.SessionFile]) -> None:
    name = os.path.basename(journal_dir)
    tickets = _Tickets()
    sizes: dict[str, int] = {}
    for part in parts:
        shown = f"{name}/{part.day}/{part.key}{write.SUFFIX}"
        report.files += 1
        try:
            opened = read.open_known(journal_dir, part)
        except OSError as error:
            report.add("damage", shown, f"is not read: {error.strerror or error}")
            continue
        if opened.problem is not None:
            report.add("damage", f"{shown}.gz", f"is not read: {opened.problem}")
        try:
            _mode(report, opened.status, shown)
            sizes[part.day] = _lines(report, opened.fd, shown, tickets) - opened.base
        finally:
            os.close(opened.fd)
    shown = f"{name}/*/{key}{write.SUFFIX}"
    if tickets.doubled:
        report.add("damage", shown, f"{tickets.doubled} tickets occur twice")
    if lost := tickets.missing():
        report.add("damage", shown, f"{lost} tickets are missing: lines were removed")
    _head(report, journal_dir, key, sizes, max(tickets.seen, default=0))


def _lines(report: Report, fd: int, shown: str, tickets: _Tickets) -> int:
    """Checks the lines of one file; gives the offset after the last complete one."""
    last = 0
    end = 0
    torn: read.Entry | None = None  # a bad line that the next gap line may account for
    for entry in read.entries(fd):
        end = entry.end
        found = entry.line
        if torn is not None:
            if found is None or found.type != line.GAP or found.data.get("reason") not in ("torn", "shrunk", "foreign"):
                report.add("damage", shown, f"a line can't be read: {torn.problem}", torn.offset)
            torn = None
        if found is None:
            torn = entry
            continue
        report.lines += 1
        if found.type == line.GAP:
            report.gaps += 1
            tickets.explained.add(found.seq)
        if found.seq <= last:
            report.add("damage", shown, f"ticket {found.seq} follows ticket {last}", entry.offset)
        last = found.seq
        tickets.add(found.seq)
    if torn is not None:
        report.add("damage", shown, f"a line can't be read: {torn.problem}", torn.offset)
    left = os.fstat(fd).st_size - end
    if left > 0:
        report.add(
            "warning", shown, f"ends in an unfinished line of {left} bytes; the next event marks it as a gap", end
        )
    return end


def _head(report: Report, journal_dir: str, key: str, sizes: dict[str, int], last: int) -> None:
    shown = f"{os.path.basename(journal_dir)}/{write.HEADS}/{key}"
    try:
        fd = _open_head(journal_dir, key)
    except FileNotFoundError:
        report.add("warning", shown, "the head is missing; the next event derives it from the file")
        return
    except OSError as error:
        report.add("damage", shown, f"is not read: {error.strerror or error}")
        return
    try:
        _mode(report, os.fstat(fd), shown)
        head = write.parse_head(os.read(fd, 1 << 16))
    finally:
        os.close(fd)
    if head is None:
        report.add("warning", shown, "the head can't be read; the next event derives it from the file")
    elif head.day not in sizes:
        report.add("damage", shown, f"names a file of {head.day} that is not there")
    elif sizes[head.day] < head.size:
        report.add("damage", shown, f"the file of {head.day} lost its last {head.size - sizes[head.day]} bytes")
    elif sizes[head.day] > head.size or head.seq <= last:
        report.add(
            "warning", shown, "is behind its file (a writer was interrupted); the next event brings it up to date"
        )


def _open_head(journal_dir: str, key: str) -> int:
    root = files.open_folder(journal_dir)
    try:
        heads = files.open_folder(write.HEADS, root)
        try:
            return files.open_file(key, heads, os.O_RDONLY)
        finally:
            os.close(heads)
    finally:
        os.close(root)


def _heads(report: Report, journal_dir: str, by_key: dict[str, list[read.SessionFile]]) -> None:
    try:
        keys = read.head_keys(journal_dir)
    except OSError:
        return  # reported with its folder
    for key in keys:
        if key not in by_key:
            report.add(
                "warning",
                f"{os.path.basename(journal_dir)}/{write.HEADS}/{key}",
                "has no file (nothing was appended yet, or files were removed)",
            )


def _imports(report: Report, journal_dir: str) -> None:
    """Imported runs: put in place whole, so what is unfinished there is damage."""
    path, name = f"{journal_dir}/{read.IMPORTS}", f"{os.path.basename(journal_dir)}/{read.IMPORTS}"
    try:
        entries = sorted(os.listdir(path))
    except FileNotFoundError:
        return
    except OSError as error:
        report.add("damage", name, f"can't be read: {error.strerror or error}")
        return
    for entry in entries:
        shown = f"{name}/{entry}"
        if not entry.endswith(write.SUFFIX):
            if not entry.startswith("."):
                report.add("warning", shown, "is not the journal's")
            elif entry != _LOCK:
                report.add("warning", shown, "was never finished; the next import removes it")
            continue
        report.files += 1
        try:
            fd = read.open_session(journal_dir, read.SessionFile(read.IMPORTS, entry.removesuffix(write.SUFFIX)))
        except OSError as error:
            report.add("damage", shown, f"is not read: {error.strerror or error}")
            continue
        try:
            _mode(report, os.fstat(fd), shown)
            tickets = _Tickets()
            if _lines(report, fd, shown, tickets) != os.fstat(fd).st_size:
                report.add("damage", shown, "its end is missing")
            elif not _whole(fd):
                report.add("damage", shown, "its last lines are missing")
            if lost := tickets.missing() + (min(tickets.seen, default=1) - 1):
                report.add("damage", shown, f"{lost} tickets are missing: lines were removed")
        finally:
            os.close(fd)


def _whole(fd: int) -> bool:
    """Whether an import's last line is its end. Runs copied as they were (`verbatim`) need none: their start may tell it."""
    for entry in itertools.islice(read.entries(fd), 2):
        event = None if entry.line is None else entry.line.data.get("event")
        if isinstance(event, dict) and event.get("verbatim") is True:
            return True
    size = os.fstat(fd).st_size
    look = 1 << 16
    while b"\n" not in (tail := os.pread(fd, look, max(0, size - look))[:-1]) and look < size:
        look *= 4
    try:
        return line.parse(tail[tail.rfind(b"\n") + 1 :]).data.get("closes") is True
    except line.BadLine:
        return False


def _spool(report: Report, journal_dir: str) -> None:
    folder = spool.folder_of(journal_dir)
    if not os.path.lexists(folder):
        return
    try:
        _folder(report, folder, "spool")
        for key in sorted(os.listdir(folder)):
            _folder(report, f"{folder}/{key}", f"spool/{key}")
            names = os.listdir(f"{folder}/{key}")
            for name in sorted(names):
                if name.endswith(spool.DAMAGED):
                    report.add("damage", f"spool/{key}/{name}", "a waiting entry can't be read")
                elif name.startswith("."):
                    report.add("warning", f"spool/{key}/{name}", "an entry that was never finished")
                else:
                    report.spooled += 1
    except OSError as error:
        report.add("damage", "spool", f"can't be read: {error.strerror or error}")
