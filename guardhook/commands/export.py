"""`guardhook export`: traces as JSON, JSON lines, a golden file for `check`, or a Parquet file of their steps."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Iterator
from typing import IO

import click

from guardhook.commands import outfile, progress, reading
from guardhook.commands.output import fail, say
from guardhook.store import Filter, Store, Trace

PARQUET = "parquet"


@click.command("export")
@click.argument("trace_id", metavar="[ID]", required=False)
@click.option(
    "--format", "format", default="json", show_default=True, metavar="FORMAT", help="json, jsonl, golden or parquet."
)
@reading.filters
@click.option("--all-projects", is_flag=True, help="Golden: of all projects, not only of the current one.")
@click.option("--with-evals", is_flag=True, help="With the evaluations.")
@click.option("--with-snapshots", is_flag=True, help="With what each step saw.")
@click.option("--output", "-o", "path", metavar="FILE", help="Write to this file instead of stdout.")
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

    json is one array, jsonl has one trace a line, golden is what `guardhook check` compares with (of the current project unless told otherwise),
    parquet has one row per step and needs a FILE.
    """
    from guardhook.store import export

    if format not in (*export.FORMATS, PARQUET):
        fail(f"no format {format!r}; there are {', '.join((*export.FORMATS, PARQUET))}")
    filters = (status, agent, tag, session, since, project)
    if trace_id is not None and (any(f is not None for f in filters) or all_projects):
        fail("an ID is one trace: filters don't go with it")
    if project is not None and all_projects:
        fail("--project and --all-projects contradict each other")
    if path is not None and not path.strip():
        fail("--output needs a value")
    if format == PARQUET:
        _parquet_possible(path)
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
        traces = _watched(store, chosen, quiet=path is None and sys.stdout.isatty())
        if format == PARQUET and path is not None:
            from guardhook.store import parquet

            with outfile.binary(path) as target:
                parquet.write(target, store, traces, evals=with_evals, snapshots=with_snapshots)
            return
        with _target(path) as file:
            done = export.write(file.write, store, traces, format, evals=with_evals, snapshots=with_snapshots)
        if golden and path is not None:
            if not done.traces:
                hint = " of this project (--all-projects takes all)" if project == "." else ""
                say(f"no trace{hint} matches: the golden file is empty, and `check` refuses an empty one")
            elif done.unfinished:
                say(f"{done.unfinished} of {done.traces} entries are not from completed runs")


def _parquet_possible(path: str | None) -> None:
    from guardhook.store import parquet

    if path is None:
        fail("a Parquet file is not text: --output FILE is needed")
    try:
        parquet.require()
    except parquet.MissingLibrary as error:
        fail(error.message, hints=["pip install 'guardhook[parquet]' adds it; the single-file executable does not carry it"])  # fmt: skip


def _watched(store: Store, chosen: Filter, *, quiet: bool) -> Iterator[Trace]:
    """The traces, with a bar for who waits at a terminal."""
    bar = progress.Bar("exporting", least=2, patience=progress.PATIENCE)
    total = 0 if quiet or not sys.stderr.isatty() else store.traces(chosen, limit=0).total
    for number, trace in enumerate(store.iterate(chosen)):
        bar(number, total)
        yield trace
    bar(total, total)


@contextlib.contextmanager
def _target(path: str | None) -> Iterator[IO[str]]:
    """Where to write text. A file appears whole or not at all; a new one is for its owner only, since prompts are in it."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with outfile.binary(path) as file:
        text = io.TextIOWrapper(file, encoding="ascii", newline="\n")
        try:
            yield text
            text.flush()
        finally:
            with contextlib.suppress(OSError, ValueError):
                text.detach()
