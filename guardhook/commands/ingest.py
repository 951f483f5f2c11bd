"""`guardhook ingest`: whole traces from a file or a pipe."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.commands.record import redaction, tag_list

if TYPE_CHECKING:
    from guardhook.intake.ingest import Problem, Report

_SHOWN = 10


@click.command("ingest")
@click.argument("path", metavar="FILE|-")
@click.option("--format", "form", metavar="FORMAT", help="json or jsonl (default: told by the text).")
@click.option("--tags", metavar="LIST", help="Tags for every trace, with commas between.")
@click.option("--dry-run", is_flag=True, help="Only check; write nothing.")
@reading.as_json
@reading.directory
def command(path: str, form: str | None, tags: str | None, dry_run: bool, as_json: bool, directory: str | None) -> None:
    """Take in whole traces, such as `guardhook export` writes: JSON (one trace or a list) or JSON lines. Traces that are not valid are told and left out."""
    from guardhook.intake import documents, recording
    from guardhook.intake.ingest import Ingest
    from guardhook.store import StoreError

    if form is not None and form not in documents.FORMATS:
        fail(f"no format {form!r}; there are {', '.join(documents.FORMATS)}", as_json=as_json)
    if not path.strip():
        fail("a FILE is needed, or - for stdin", as_json=as_json)
    folders = resolve(directory)
    shown = _Shown("stdin" if path == "-" else path, quiet=as_json)
    work = Ingest(
        folders, tags=tag_list(tags), dry_run=dry_run, redaction=redaction(folders, as_json), root=recording.project_here(), told=shown,
    )  # fmt: skip
    fd = _open(path, as_json)
    broken: str | None = None
    try:
        with work:
            for item in documents.read(fd, form):
                work.take(item)
    except (documents.NotReadable, OSError) as error:
        broken = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    except StoreError as error:
        fail(error.message, code=1, as_json=as_json)
    finally:
        os.close(fd)
    shown.rest(work.report.faults + work.report.failures)
    _finish(work.report, dry_run, as_json, shown.name, broken)


def _open(path: str, as_json: bool) -> int:
    if path == "-":
        return os.dup(0)
    try:
        fd = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        if os.path.isdir(fd):
            os.close(fd)
            fail(f"{path}: a folder", code=1, as_json=as_json)
        return fd
    except (OSError, ValueError) as error:
        fail(f"{path}: {getattr(error, 'strerror', None) or error}", code=1, as_json=as_json)


class _Shown:
    """Prints the first problems, with the file's name."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self.name = name
        self._quiet = quiet
        self._count = 0

    def __call__(self, problem: Problem) -> None:
        self._count += 1
        if not self._quiet and self._count <= _SHOWN:
            say(f"{self.name}: {problem}")

    def rest(self, total: int) -> None:
        if not self._quiet and total > _SHOWN:
            say(f"and {total - _SHOWN:,} more")


def _finish(report: Report, dry_run: bool, as_json: bool, name: str, broken: str | None) -> None:
    failed = broken is not None or report.faults > 0 or report.failures > 0 or not report.traces
    if broken is None and not report.read:
        broken = "no traces in it"
    with reading.heard():
        _tell(report, dry_run, as_json, name, broken, failed)
    if failed:
        if not report.traces and not as_json:
            _other_kind(name)
        raise SystemExit(1)


def _other_kind(name: str) -> None:
    """Says so when a file of which nothing could be used is a harness's session log."""
    from guardhook.intake import detect, records

    with contextlib.suppress(OSError, ValueError):
        fd = records.open_file(os.path.expanduser(name))
        try:
            known = detect.find(name, fd)
        finally:
            os.close(fd)
        if known is not None:
            say(f"  it looks like a session log ({known.NAME}): guardhook import {name}")


def _tell(report: Report, dry_run: bool, as_json: bool, name: str, broken: str | None, failed: bool) -> None:
    if as_json:
        reading.print_json({
            "ok": not failed,
            "error": None if broken is None else f"{name}: {broken}",
            "dry_run": dry_run,
            "traces_inserted": 0 if dry_run else report.traces,
            "traces_valid": report.traces,
            "steps": report.steps,
            "validation_errors": report.faults,
            "insert_failures": report.failures,
            "forks": report.forks,
            "forks_without_original": report.orphans,
            "evals": report.evals,
            "evals_left_out": report.evals_lost,
            "new_ids": report.renamed,
            "traces": report.inserted,
            "problems": [{"trace": p.trace, "line": p.line, "field": p.field, "message": p.message} for p in report.problems],
        })  # fmt: skip
    else:
        if broken is not None:
            say(f"guardhook: {name}: {broken}")
        _print(report, dry_run)


def _print(report: Report, dry_run: bool) -> None:
    from guardhook.views.text import box, count

    notes = [
        (report.orphans, "{} of {} fork(s) come from a trace that is neither in this store nor in the file", report.forks),
        (report.evals_lost, "{} evaluation(s) are not usable and are left out", 0),
        (report.renamed, "{} trace(s) get a new id, because theirs is taken", 0),
    ]  # fmt: skip
    for number, words, more in notes:
        if number:
            click.echo(words.format(count(number), count(more)))
    rows = [
        ("Traces valid (dry run)" if dry_run else "Traces inserted", count(report.traces)),
        ("Total steps", count(report.steps)),
        ("Validation errors", count(report.faults)),
        ("Insert failures", count(report.failures)),
    ]
    for line in box(rows, reading.width()):
        click.echo(line)
