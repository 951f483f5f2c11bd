"""`guardhook import`: runs that other programs wrote down become traces."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import stat
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import click

from guardhook.commands import progress, reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from guardhook.core.folders import Folders
    from guardhook.intake.import_run import Result

STDIN = "stdin.jsonl"
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")  # as shells name what `<(command)` writes to
_PROBLEMS_SHOWN = 10


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--format", "format_", metavar="FORMAT", help="The format of the files, where it is not recognised.")
@click.option("--dry-run", is_flag=True, help="Say what would be imported; write nothing.")
@click.option("--tags", metavar="LIST", help="Tags for all imported traces, with commas between.")
@click.option("--replace", is_flag=True, help="Import again what was imported before and has changed since.")
@click.option("--since", metavar="TIME", help="In folders: files changed since a date (2026-08-16) or for a while (30d).")  # fmt: skip
@reading.as_json
@reading.directory
@reading.printing()
def command(
    paths: tuple[str, ...],
    format_: str | None,
    dry_run: bool,
    tags: str | None,
    replace: bool,
    since: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Import session logs of Claude Code, Codex, Gemini CLI and Qwen Code, files or whole folders.

    What was imported before and did not change is recognised without reading it. `-` is standard input.
    """
    from guardhook.intake import detect, import_run
    from guardhook.store import StoreError

    if format_ is not None and format_ not in detect.TABLE:
        fail(f"no format {format_!r}; there are {', '.join(detect.TABLE)}", as_json=as_json)
    if any(not path.strip() for path in paths):
        fail("a path is empty", as_json=as_json)
    folders = resolve(directory)
    options = import_run.Options(
        format_, dry_run, _tags(tags, as_json), replace, _since(since, as_json), _redaction(folders, as_json)
    )
    failed: list[Result] = []

    def refused(path: str, why: str) -> None:
        result = import_run.Result(path)
        result.error = why
        failed.append(result)

    # Records are trees, which end without the collector; at its usual pace it takes a twentieth of the time, and finds nothing.
    gc.freeze()
    gc.set_threshold(100_000)
    bar = progress.Bar("importing")
    results: list[Result] = []
    spooled = contextlib.ExitStack()
    try:
        with spooled, import_run.Import(folders, options, forks=_Forks(folders), progress=bar) as work:
            given = {_spooled(spooled, name, refused, as_json): name for name in dict.fromkeys(paths)}
            found = import_run.collect([name for name in given if name is not None], options.since_us, refused)
            results += failed
            for result in work.run(found):
                result.path = given.get(result.path, result.path)  # not the copy's
                results.append(result)
                if not as_json:
                    bar.clear()
                    with reading.heard():  # what is left is imported all the same
                        _tell(result, dry_run, len(found) > 1)
    except StoreError as error:
        bar.clear()
        fail(error.message, code=1, as_json=as_json)
    bar.clear()
    for result in failed if not as_json else []:
        _tell(result, dry_run, True)
    with reading.heard():
        bad = _finish(results, dry_run, as_json)
    if bad:
        raise SystemExit(1)


def _finish(results: list[Result], dry_run: bool, as_json: bool) -> bool:
    """Says how it ended; gives whether that is a failure."""
    from guardhook.intake.import_run import EMPTY, FAILED, UNKNOWN

    bad = [r for r in results if r.status in (FAILED, UNKNOWN)]
    if not bad and results and len(results) == 1 and results[0].status == EMPTY:
        bad = results
    counts: dict[str, int] = {}
    for result in results:
        counts[result.status] = counts.get(result.status, 0) + 1
    if as_json:
        reading.print_json({"ok": not bad, "dry_run": dry_run, "counts": counts, "files": [r.as_dict() for r in results]})  # fmt: skip
    elif not results:
        say("no session log was found there")
    elif len(results) > 1:
        click.echo(", ".join(f"{n:,} {_WORDS.get(s, s)}" for s, n in counts.items()))
    return bool(bad) or not results


_WORDS = {
    "exists": "imported before, and other now (--replace takes what has changed)",
    "empty": "without a step or prompt",
    "unknown": "of an unknown format",
}


def _tell(result: Result, dry_run: bool, many: bool) -> None:
    """One file, for a person."""
    from guardhook.intake.import_run import EMPTY, EXISTS, FAILED, UNCHANGED, UNKNOWN
    from guardhook.views.text import one_line

    path = one_line(result.path)
    if result.status in (FAILED, UNKNOWN):
        say(f"{path}: {result.error}")
    elif result.status == EMPTY:
        say(f"{path}: neither a step nor a prompt in it; nothing was imported")
    elif result.status == UNCHANGED:
        if not many:
            click.echo(f"{path}: unchanged, imported before as {result.runs[0].trace_id}")
    elif result.status == EXISTS:
        changed = "" if result.notes else ", and changed since; --replace takes it again"
        say(f"{path}: imported before as {result.runs[0].trace_id}{changed}")
    else:
        done = {"imported": "would be imported", "replaced": "would be replaced"} if dry_run else {}
        for run in result.runs:
            tokens = "" if run.tokens is None else f", {_many(run.tokens, 'token')}"
            click.echo(
                f"{run.trace_id}  {done.get(run.status, run.status)}: {_many(run.steps, 'step')}{tokens}  {path}"
            )
            if run.hooks is not None:
                click.echo(f"  hooks recorded the same session as {run.hooks}; both stay, with the session id in common")  # fmt: skip
    _records(result, many)
    for note in result.notes:
        click.echo(f"  {one_line(note)}")


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _records(result: Result, many: bool) -> None:
    from guardhook.views.text import count

    counts = result.counts
    if counts is None or not counts.read:
        return
    if not many:
        parts = [f"{_many(counts.read, 'record')}: {count(counts.imported)} used, {count(counts.skipped)} without content for a trace"]  # fmt: skip
        parts += [f"{count(counts.duplicates)} of them repeated"] if counts.duplicates else []
        parts += [f"{count(counts.malformed)} malformed"] if counts.malformed else []
        parts += [f"{count(counts.mended)} with fields of a wrong type"] if counts.mended else []
        click.echo("  " + ", ".join(parts))
    for problem in counts.problems[:_PROBLEMS_SHOWN]:
        place = f"line {problem.line}: " if problem.line else ""
        say(f"  {problem.file}: {place}{problem.reason}")
    if len(counts.problems) > _PROBLEMS_SHOWN:
        say(f"  … {len(counts.problems) - _PROBLEMS_SHOWN} more such lines (--json tells them)")


def _spooled(stack: contextlib.ExitStack, name: str, refused: Callable[[str, str], None], as_json: bool) -> str | None:
    """The path to read in place of a name: standard input and pipes are copied to a file, since formats are read twice or from any place. None: it was refused."""
    try:
        if name in ("-", "/dev/stdin"):
            if sys.stdin.isatty():
                fail("there is nothing on standard input", hints=["guardhook import - < FILE"], as_json=as_json)
            return _copied(stack, sys.stdin.buffer, STDIN)
        if name.startswith(_DESCRIPTORS) or stat.S_ISFIFO(os.lstat(name).st_mode):
            with open(name, "rb") as pipe:
                return _copied(stack, pipe, os.path.basename(name))
    except OSError as error:
        refused(name, error.strerror or str(error))
        return None
    return name


def _copied(stack: contextlib.ExitStack, source: BinaryIO, name: str) -> str:
    path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="guardhook-")), name)
    with open(path, "xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    return path


def _tags(text: str | None, as_json: bool) -> tuple[str, ...]:
    if text is None:
        return ()
    tags = tuple(dict.fromkeys(t.strip() for t in text.split(",") if t.strip()))
    if not tags:
        fail("--tags needs a value", as_json=as_json)
    return tags


def _since(text: str | None, as_json: bool) -> int | None:
    if text is None:
        return None
    from guardhook.store import BadQuery, instants

    try:
        return instants.since(text, time.time_ns() // 1000)
    except BadQuery as error:
        fail(error.message, as_json=as_json)


def _redaction(folders: Folders, as_json: bool) -> str:
    from guardhook.journal.redact import MODES
    from guardhook.policy import settings

    try:
        mode = settings.read(folders).get("capture.mode", "redacted")
    except settings.SettingsError as error:
        fail(str(error), as_json=as_json)
    return mode if isinstance(mode, str) and mode in MODES else "redacted"


class _Forks:
    """Names the forks of a trace. The store is opened with the first question only."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._known: dict[str, list[str]] | None = None

    def __call__(self, trace: str) -> list[str]:
        if self._known is None:
            from guardhook.store import open_store

            self._known = {}
            with open_store(self._folders, on_notice=say) as store:
                for found in store.iterate():
                    # Forks that came with their original are replaced together with it.
                    if found.parent_trace_id is not None and "imported_from" not in found.metadata:
                        self._known.setdefault(found.parent_trace_id, []).append(found.id)
        return self._known.get(trace, [])
