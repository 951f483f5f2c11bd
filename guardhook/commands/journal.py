"""`guardhook journal`: read the journal as it is on disk, and check that it is whole."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator

import click
import msgspec

from guardhook.commands import folders
from guardhook.commands.output import emit, fail, say
from guardhook.core.jsontext import printable
from guardhook.journal import line, read
from guardhook.journal import verify as checking
from guardhook.journal.recover import is_day

_DIR = click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
_TOLD = ("agent_name", "step_number", "name", "chosen", "evaluator_name", "status")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@click.group("journal")
def command() -> None:
    """Read and verify the journal."""


class Shown(msgspec.Struct):
    """A line with where it came from."""

    file: read.SessionFile
    line: line.Line
    raw: bytes


@command.command("show")
@click.option("--session", metavar="ID", help="Only this session: its id, a run id, or the start of a file name.")
@click.option("--day", metavar="YYYY-MM-DD", help="Only files of this day.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="The newest N lines; 0 for all.",
)
@click.option("--raw", is_flag=True, help="The lines as they are on disk.")
@_JSON
@_DIR
def show(session: str | None, day: str | None, limit: int, raw: bool, as_json: bool, directory: str | None) -> None:
    """Print recorded events, oldest first. Times are UTC."""
    journal = folders.resolve(directory).journal
    if raw and as_json:
        fail("--raw and --json exclude each other", as_json=as_json)
    if day is not None and not is_day(day):
        fail(f"--day takes a date such as 2026-08-16, not {day!r}", as_json=as_json)
    if not read.exists(journal):
        _nothing(journal, as_json)
        return
    bad: list[str] = []
    chosen = deque(_chosen(journal, session, day, bad, as_json), maxlen=limit or None)
    if as_json:
        emit({"ok": True, "journal": journal, "lines": [_as_json(s) for s in chosen], "unreadable": len(bad)})
        return
    if raw:
        for shown in chosen:
            click.echo(shown.raw.decode("ascii", "backslashreplace"))
    else:
        _print(chosen)
        if not chosen:
            say("nothing matches" if session or day else f"no event has been recorded in {journal} yet")
    for problem in bad[:10]:
        say(problem)
    if bad:
        say(f"{len(bad)} lines or files could not be read; `guardhook journal verify` says more")


@command.command("verify")
@_JSON
@_DIR
def verify(as_json: bool, directory: str | None) -> None:
    """Check every file: exit 0 when whole, 1 when something is damaged."""
    journal = folders.resolve(directory).journal
    if not read.exists(journal):
        _nothing(journal, as_json)
        return
    try:
        report = checking.verify(journal)
    except OSError as error:
        fail(f"{journal}: {error.strerror or error}", code=1, as_json=as_json)
    if as_json:
        emit({"ok": not report.damaged, "journal": journal, **msgspec.to_builtins(report)})
    else:
        for finding in report.findings:
            place = "" if finding.offset is None else f" at byte {finding.offset}"
            click.echo(printable(f"{finding.severity}: {finding.file}{place}: {finding.what}", 4000))
        waiting = f", {report.spooled} waiting in the spool" if report.spooled else ""
        click.echo(
            f"{'damaged' if report.damaged else 'whole'}: {report.sessions} sessions, {report.files} files, {report.lines} lines, {report.gaps} gaps{waiting}"
        )
    if report.damaged:
        sys.exit(1)


def _nothing(journal: str, as_json: bool) -> None:
    if as_json:
        emit({"ok": True, "journal": journal, "lines": [], "note": "nothing has been recorded yet"})
    else:
        say(f"nothing has been recorded yet ({journal} does not exist)")


def _chosen(journal: str, session: str | None, day: str | None, bad: list[str], as_json: bool) -> Iterator[Shown]:
    """The lines of all files that the options let through, by time; lines of one file keep their order."""
    try:
        files = read.session_files(journal, day=day)
    except OSError as error:
        fail(f"{journal}: {error.strerror or error}", code=1, as_json=as_json)
    keyed: list[tuple[tuple[str, str, int], Shown]] = []
    for file in files:
        newest = ""
        for shown in _lines(journal, file, bad):
            if session is not None and not _matches(shown, session):
                continue
            # A clock that went back must not reorder a file.
            newest = max(newest, shown.line.ts)
            keyed.append(((newest, file.key, shown.line.seq), shown))
    keyed.sort(key=lambda pair: pair[0])
    return (shown for _, shown in keyed)


def _lines(journal: str, file: read.SessionFile, bad: list[str]) -> Iterator[Shown]:
    path = file.path(os.path.basename(journal))
    try:
        fd = read.open_session(journal, file)
    except OSError as error:
        bad.append(f"{path}: {error.strerror or error}")
        return
    try:
        for entry in read.entries(fd):
            if entry.line is None:
                bad.append(f"{path}: byte {entry.offset}: {entry.problem}")
            else:
                yield Shown(file, entry.line, entry.raw)
    finally:
        os.close(fd)


def _matches(shown: Shown, session: str) -> bool:
    data = shown.line.data
    return session in (data.get("session"), data.get("run")) or shown.file.key.startswith(session)


def _as_json(shown: Shown) -> dict[str, object]:
    found = shown.line
    return {
        "day": shown.file.day,
        "key": shown.file.key,
        "ts": found.ts,
        "seq": found.seq,
        "type": found.type,
        "data": found.data,
    }


def _print(chosen: deque[Shown]) -> None:
    date = ""
    for shown in chosen:
        found = shown.line
        if found.ts[:10] != date:
            date = found.ts[:10]
            click.echo(printable(date))
        click.echo(printable(f"{found.ts[11:19]}  {_words(found)}", 400).rstrip())


def _words(found: line.Line) -> str:
    data = found.data
    if found.type != line.RECEIVED:
        event = data.get("event")
        if isinstance(event, dict):  # of a run that told of itself
            told = (data.get("trace"), *(event.get(k) for k in _TOLD))
            words = [str(t) if isinstance(t, int) else _text(t) for t in told]
            return "  ".join(word for word in (f"{found.type:<16}", *words) if word)
        rest = ", ".join(f"{k} {data[k]}" for k in ("reason", "bytes", "lines") if k in data)
        return f"{found.type}  {rest}".rstrip()
    payload = data.get("payload")
    tool = data.get("tool") or (payload.get("tool_name") if isinstance(payload, dict) else None)
    verdict = data.get("verdict")
    action = policy = ""
    if isinstance(verdict, dict):
        action = _text(verdict.get("action"))
        mode = _text(verdict.get("mode"))
        if mode not in ("", "enforce"):
            action += f" ({mode})"
        policy = _text(verdict.get("policy")) or (
            _text(verdict.get("cause")) if action.startswith(("deny", "require")) else ""
        )
    row = (_text(data.get("dialect")), _text(data.get("event")), _text(tool), action)
    widths = (11, 18, 17, 14)
    return "  ".join((*(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)), policy))


def _text(value: object) -> str:
    return printable(value, 60) if isinstance(value, str) else ""
