"""`guardhook report`: a trace as one HTML file, for a browser or a ticket."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from guardhook import __version__
from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.outfile import binary
from guardhook.commands.output import fail

if TYPE_CHECKING:
    from guardhook.core.folders import Folders
    from guardhook.store import Store, Trace
    from guardhook.views.report.page import Section

ACCOUNT_STEPS = 50_000  # the account of a run is made in memory


@click.command("report")
@click.argument("trace_id", metavar="ID")
@click.argument("other_id", metavar="[OTHER]", required=False)
@click.option("-o", "--output", metavar="FILE", help="Write here; `-` is standard output. Default: guardhook-<id>.html in this folder.")  # fmt: skip
@click.option("--from-step", type=reading.Number(least=1), metavar="N", help="From this step on.")
@click.option("--to-step", type=reading.Number(least=1), metavar="N", help="Up to this step.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@reading.as_json
@reading.directory
def command(
    trace_id: str,
    other_id: str | None,
    output: str | None,
    from_step: int | None,
    to_step: int | None,
    force: bool,
    as_json: bool,
    directory: str | None,
) -> None:
    """Write a trace as one self-contained HTML file; with OTHER, both traces and their differences."""
    from guardhook.store.diff import compare
    from guardhook.views.report import page

    if from_step is not None and to_step is not None and from_step > to_step:
        fail(f"--from-step {from_step} lies after --to-step {to_step}", as_json=as_json)
    if output is not None and not output.strip():
        fail("--output needs a value", as_json=as_json)
    folders = resolve(directory)
    with reading.opened(directory, as_json) as store:
        traces = [store.get(name) for name in (trace_id, other_id) if name is not None]
        parts = [page.Part(trace, sections(folders, store, trace), from_step, to_step) for trace in traces]
        diff = compare(store, traces[0], traces[1]) if len(traces) == 2 else None
        if output == "-":
            page.write(sys.stdout.buffer.write, store, parts, version=__version__, diff=diff)
            sys.stdout.buffer.flush()
            return
        path = output or _name(traces)
        with binary(path, replace=force, as_json=as_json) as file:
            page.write(file.write, store, parts, version=__version__, diff=diff)
            size = file.tell() if file.seekable() else None
    if as_json:
        reading.print_json({"file": os.path.abspath(path), "bytes": size, "traces": [trace.id for trace in traces]})
    else:
        from guardhook.views.text import one_line

        click.echo(one_line(path) + ("" if size is None else f"  {_size(size)}"))


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


def sections(folders: Folders, store: Store, trace: Trace) -> list[Section]:
    """What else is known of a trace: the account of its last answer, and its evaluations."""
    from guardhook.views.report.page import ACCOUNT, Section

    out = []
    runs = store.runs(trace)
    if runs and trace.step_count <= ACCOUNT_STEPS:
        out.append(_account(folders, store, runs[-1].run))
    elif runs:
        why = f"Left out: the trace has more than {ACCOUNT_STEPS:,} steps. `guardhook account` makes it."
        out.append(Section(ACCOUNT, [], why, "warn"))
    found = store.evaluations(trace)
    if found:
        rows = [
            (entry.evaluator_name, [f"{entry.score * 100:.0f}%, {'passed' if entry.passed else 'failed'}"], "ok" if entry.passed else "bad")
            for entry in found
        ]  # fmt: skip
        out.append(Section("Evaluations", rows))
    return out


def _account(folders: Folders, store: Store, run: str) -> Section:
    from guardhook.archive import source
    from guardhook.archive.account import account, declarations
    from guardhook.policy import settings
    from guardhook.rollout import options, runs
    from guardhook.views.report import page

    try:
        config = settings.read(folders)
        declared = declarations.of(config.section("account"), origin=declarations.CONFIG)
        gathered = source.gather(folders, store, runs.find_in(store, run), options=options.of(config))
    except (settings.SettingsError, options.BadOptions, TypeError, ValueError) as error:
        return page.Section(page.ACCOUNT, [], f"There is none: {error}", "warn")
    return page.account(account.account_for_answer(gathered.recording, run_id=run, declarations=declared))


def _name(traces: list[Trace]) -> str:
    """A file name that no trace id can turn into a path."""
    names = ("".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in trace.id)[:80] for trace in traces)  # fmt: skip
    return f"guardhook-{'-'.join(names)}.html"
