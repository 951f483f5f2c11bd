"""`guardhook check`: recorded runs against a golden file. Status 1 is a regression, 2 a gate that can't tell."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import click

from guardhook.commands import reading
from guardhook.commands.output import Refused, fail
from guardhook.store import Filter, Store, Trace
from guardhook.store.golden_check import DEFAULT_FIELDS, FIELDS, Blind, Check, Report, Result, load

_SHOWN = 60


@click.command("check")
@click.option("--golden", "path", metavar="FILE", help="What `guardhook export --format golden` wrote. Needed.")
@click.option("--trace", "trace_id", metavar="ID", help="Only this trace, whatever its status.")
@click.option("--agent", metavar="TEXT", help="Part of the agent's name.")
@click.option("--agent-exact", metavar="NAME", help="The agent's whole name.")
@click.option("--since", metavar="TIME", help="Started since a date (2026-08-16) or for a while (30d, 12h).")
@reading.project
@click.option("--all-projects", is_flag=True, help="Runs of all projects, not only of the current one.")
@click.option("--fields", metavar="LIST", help=f"What to compare: {', '.join(FIELDS)} (default: all but model).")
@click.option("--strict", is_flag=True, help="Runs without a baseline and baselines without a run fail, too.")
@click.option("--allow-empty", is_flag=True, help="No run to compare is no error.")
@click.option("--junit", metavar="FILE", help="Write a JUnit file as well.")
@reading.as_json
@reading.directory
def command(
    path: str | None,
    trace_id: str | None,
    agent: str | None,
    agent_exact: str | None,
    since: str | None,
    project: str | None,
    all_projects: bool,
    fields: str | None,
    strict: bool,
    allow_empty: bool,
    junit: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Hold recorded runs against golden ones: same steps, same inputs, same outcome.

    Runs of the current project, unless told otherwise; forks and running ones are left out. Status 0: as before; 1: a regression;
    2: nothing could be compared, which is never taken for success.
    """
    try:
        if path is None:
            fail("--golden FILE is needed", as_json=as_json)
        if agent is not None and agent_exact is not None:
            fail("--agent and --agent-exact contradict each other", as_json=as_json)
        if project is not None and all_projects:
            fail("--project and --all-projects contradict each other", as_json=as_json)
        for name, value in (("--trace", trace_id), ("--agent-exact", agent_exact), ("--junit", junit)):
            if value is not None and not value.strip():
                fail(f"{name} needs a value", as_json=as_json)
        only = reading.narrowed(
            time.time(), as_json, agent=agent, since=since,
            project="." if project is None and not all_projects and trace_id is None else project,
        )  # fmt: skip
        check = _prepared(path, fields, strict, as_json)
        with _gate(directory, as_json) as store:
            for trace in _candidates(store, only._replace(agent_exact=agent_exact, forks=False), trace_id, allow_empty):
                check.add(store, trace)
            report = check.report(may_be_empty=allow_empty or trace_id is not None)
    except Refused as error:
        if junit and junit.strip():
            _junit(junit, [("check", "gate", "error", error.message, [])], as_json)
        raise
    if junit:
        _junit(junit, list(_cases(report)), as_json)
    with reading.heard():
        if as_json:
            reading.print_json(report.as_dict())
        else:
            _print(report)
    if not report.ok:
        raise SystemExit(1)


def _prepared(path: str, fields: str | None, strict: bool, as_json: bool) -> Check:
    chosen = reading.chosen_of(FIELDS, fields, as_json=as_json) or DEFAULT_FIELDS
    try:
        with open(path, "rb") as file:
            entries = load(file.read())
    except OSError as error:
        fail(f"{path}: can't be read: {error.strerror}", as_json=as_json)
    except Blind as error:
        fail(f"{path}: {error.message}", as_json=as_json)
    return Check(entries, fields=chosen, named=fields is not None, strict=strict)


@contextlib.contextmanager
def _gate(directory: str | None, as_json: bool) -> Iterator[Store]:
    """The store; whatever is missing or wrong, the gate can't run, which is status 2."""
    try:
        with reading.opened(directory, as_json) as store:
            yield store
    except Refused as error:
        error.exit_code = 2  # type: ignore[misc]
        raise


def _candidates(store: Store, only: Filter, trace_id: str | None, allow_empty: bool) -> Iterator[Trace]:
    if trace_id is not None:
        yield store.get(trace_id)
        return
    found = False
    for trace in store.iterate(only):
        if trace.status != "running":
            found = True
            yield trace
    if found or allow_empty:
        return
    if store.traces(only._replace(forks=True), limit=1).total:
        raise Blind("all runs that match are still running or forks: there is nothing to compare")
    raise Blind(
        "no run matches: there is nothing to compare"
        + (f" (only runs of {only.project} count; --all-projects takes all)" if only.project else "")
    )


def _print(report: Report) -> None:
    from guardhook.views.text import one_line

    paint, width = reading.paint(), reading.width()
    for result in report.results:
        name = f"{one_line(result.trace_id, 20)}  {one_line(result.agent_name, 40)}"
        if not result.matched:
            click.echo(f"{paint.dim('○ unmatched')}  {name}")
        elif result.passed:
            click.echo(f"{paint.green('✔ pass')}  {name}")
        else:
            click.echo(f"{paint.red('✘ REGRESSED')}  {name}")
            for line in _told(result):
                click.echo("    " + one_line(line, max(width - 4, 60)))
    said = f"{report.count('passed')} passed, {report.count('failed')} regressed, {report.count('unmatched')} unmatched"
    if report.uncovered:
        said += f", {len(report.uncovered)} baselines not exercised"
    click.echo(said)


def _told(result: Result) -> Iterator[str]:
    for d in result.divergences:
        place = "" if d.step_number is None else f" @step {d.step_number}"
        yield f"{d.field}{place}: golden {_value(d.golden)} → got {_value(d.candidate)}"


def _value(value: object) -> str:
    from guardhook.core.jsontext import dumps
    from guardhook.views.text import one_line

    return one_line(value if isinstance(value, str) else dumps(value), _SHOWN)


Row = tuple[str, str, str, str, list[str]]


def _cases(report: Report) -> Iterator[Row]:
    for result in report.results:
        if not result.matched:
            yield result.agent_name, result.trace_id, "failure" if report.strict else "skipped", "no baseline", []
        elif result.passed:
            yield result.agent_name, result.trace_id, "passed", "", []
        else:
            lines = list(_told(result))
            yield result.agent_name, result.trace_id, "failure", f"{len(lines)} divergence(s)", lines
    for number, entry in enumerate(report.uncovered, 1):
        name = f"baseline {entry.get('id') or number}"
        yield (
            str(entry.get("agent_name")), name, "failure" if report.strict else "skipped", "no run was held against it", [],
        )  # fmt: skip
    if report.uncompared:
        yield "check", "fields", "error", f"{report.uncompared} run(s) whose baselines say nothing about a field", []


def _junit(path: str, rows: list[Row], as_json: bool) -> None:
    from guardhook.views import junit

    text = junit.document("guardhook check", [junit.Case(*row) for row in rows])
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path}: can't be written: {error.strerror}", as_json=as_json)
