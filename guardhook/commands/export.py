"""`guardhook export`: traces as JSON, JSON lines, or a golden file for `check`."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import IO

import click

from guardhook.commands import reading
from guardhook.commands.output import fail, say
from guardhook.store import Filter


@click.command("export")
@click.argument("trace_id", metavar="[ID]", required=False)
@click.option("--format", "format", default="json", show_default=True, metavar="FORMAT", help="json, jsonl or golden.")
@reading.filters
@click.option("--all-projects", is_flag=True, help="Golden: of all projects, not only of the current one.")
@click.option("--with-evals", is_flag=True, help="With the evaluations.")
@click.option("--with-snapshots", is_flag=True, help="With what each step saw.")
@click.option("--output", "path", metavar="FILE", help="Write to this file instead of stdout.")
@reading.directory
def command(
    trace_id: str | None,
    format: str,
    status: str | None,
    agent: str | None,
    tag: str | None,
    session: str | None,
    since: str | None,
    project: str | None,
    all_projects: bool,
    with_evals: bool,
    with_snapshots: bool,
    path: str | None,
    directory: str | None,
) -> None:
    """Write traces out: one by its ID, or all that the filters leave.

    json is one array, jsonl has one trace a line, golden is what `guardhook check` compares with (of the current project unless told otherwise).
    """
    from guardhook.store import export

    if format not in export.FORMATS:
        fail(f"no format {format!r}; there are {', '.join(export.FORMATS)}")
    filters = (status, agent, tag, session, since, project)
    if trace_id is not None and (any(f is not None for f in filters) or all_projects):
        fail("an ID is one trace: filters don't go with it")
    if project is not None and all_projects:
        fail("--project and --all-projects contradict each other")
    if path is not None and not path.strip():
        fail("--output needs a value")
    golden = format == "golden"
    if golden and project is None and not all_projects and trace_id is None:
        project = "."
    chosen = reading.narrowed(
        time.time(), False, status=status, agent=agent, tag=tag, session=session, since=since, project=project
    )
    if golden and (with_evals or with_snapshots):
        say("--with-evals and --with-snapshots change nothing in a golden file")
    with reading.opened(directory, False) as store:
        if trace_id is not None:
            chosen = Filter(ids=(store.get(trace_id).id,))
        with _target(path) as file:
            done = export.write(
                file.write, store, store.iterate(chosen), format, evals=with_evals, snapshots=with_snapshots
            )
        if golden and path is not None:
            if not done.traces:
                hint = " of this project (--all-projects takes all)" if project == "." else ""
                say(f"no trace{hint} matches: the golden file is empty, and `check` refuses an empty one")
            elif done.unfinished:
                say(f"{done.unfinished} of {done.traces} entries are not from completed runs")


@contextlib.contextmanager
def _target(path: str | None) -> Iterator[IO[str]]:
    """Where to write. A file appears whole or not at all; a new one is for its owner only, since prompts are in it."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    final = os.path.realpath(path)
    special = os.path.exists(final) and not os.path.isfile(final)
    written = final if special else f"{final}.{os.getpid()}.tmp"
    try:
        mode = os.stat(final).st_mode & 0o777 if os.path.isfile(final) else 0o600
        flags = os.O_WRONLY | (0 if special else os.O_CREAT | os.O_EXCL)
        file = os.fdopen(os.open(written, flags, mode), "w", encoding="ascii")
    except OSError as error:
        fail(f"{path}: can't be written: {error.strerror}", code=1)
    try:
        with file:
            yield file
        if not special:
            os.replace(written, final)
    except OSError as error:
        _drop(written, special)
        fail(f"{path}: can't be written: {error.strerror}", code=1)
    except BaseException:
        _drop(written, special)
        raise


def _drop(path: str, special: bool) -> None:
    if not special:
        with contextlib.suppress(OSError):
            os.unlink(path)
