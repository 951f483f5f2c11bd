"""`guardhook backtest`: what other policies would have said to the calls that were recorded."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator

import click

from guardhook.commands import progress, reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.store.backtest import LOOSER, STRICTER, Outcome

_EXAMPLES = 3
_UNREAD = 3
_WORDS = {
    "newly_denied": "newly denied",
    "newly_reviewed": "newly reviewed",
    "newly_allowed": "newly allowed",
    "eased": "review instead of denial",
}


@click.command("backtest")
@click.option("--policies", metavar="DIR", help="Policy files to take in place of your own policies folder.")
@click.option("--preset", metavar="PRESET", help="Try this preset: balanced or strict.")
@click.option("--enable", multiple=True, metavar="NAME", help="Try a shipped policy or pack switched on (cloud, databases, …).")  # fmt: skip
@click.option("--disable", multiple=True, metavar="NAME", help="Try a shipped policy or pack switched off.")
@click.option("--since", metavar="TIME", default="30d", show_default=True, help="Calls since a date or for a while.")
@reading.project
@click.option("--fail-on", multiple=True, metavar="WHAT", help="Status 1 when anything gets `looser` or `stricter`.")
@click.option("--limit", type=reading.Number(least=-1), default=100, show_default=True, metavar="N", help="Changed calls in --json; -1 for all.")  # fmt: skip
@reading.as_json
@reading.directory
def command(
    policies: str | None,
    preset: str | None,
    enable: tuple[str, ...],
    disable: tuple[str, ...],
    since: str,
    project: str | None,
    fail_on: tuple[str, ...],
    limit: int,
    as_json: bool,
    directory: str | None,
) -> None:
    """Judge recorded calls again, under other policies.

    With --policies, --preset, --enable or --disable they are compared with the policies in force now, else the policies in force now with the verdicts recorded then.
    Nothing is switched on or off by this. Calls that were recorded redacted, cut or stripped can't be judged and are counted as unevaluable. Status 2 when --fail-on has nothing to judge.
    """
    from guardhook.store import Missing, StoreError, backtest

    for name in fail_on:
        if name not in ("looser", "stricter"):
            fail(f"--fail-on {name!r}: there are looser and stricter", as_json=as_json)
    if preset is not None and preset not in ("balanced", "strict"):
        fail(f"no preset {preset!r}; there are balanced and strict", as_json=as_json)
    if policies is not None and not policies.strip():
        fail("--policies needs a value", as_json=as_json)
    only = reading.narrowed(time.time(), as_json, since=since, project=project)
    folders = resolve(directory)
    try:
        _there(folders.journal)
        after = backtest.compiled(folders, policies=policies, preset=preset, enable=enable, disable=disable)
        other = policies is not None or preset is not None or enable or disable
        before = backtest.compiled(folders) if other else None
        found = backtest.run(
            folders, after, before, since_us=only.since_us, project=only.project, keep=limit if as_json else 0,
            progress=progress.Bar("judging", least=2, patience=progress.PATIENCE),
        )  # fmt: skip
    except Missing as error:
        fail(error.message, code=2 if fail_on else 1, as_json=as_json)
    except StoreError as error:
        fail(error.message, as_json=as_json)
    for problem in found.unread[:_UNREAD]:
        say(f"left out: journal/{problem}")
    if len(found.unread) > _UNREAD:
        say(f"left out: {len(found.unread) - _UNREAD:,} more files that can't be read")
    if fail_on and found.unread:
        fail(f"{_count(len(found.unread), 'file')} of the journal can't be read, so nothing can be said of all calls", as_json=as_json)  # fmt: skip
    if fail_on and not found.judged:
        fail("no recorded call could be judged, so nothing can be said", as_json=as_json)
    with reading.heard():
        if as_json:
            reading.print_json({"since": since, **found.as_dict()})
        else:
            _print(found, since)
    if ("looser" in fail_on and any(found.totals[k] for k in LOOSER)) or (
        "stricter" in fail_on and any(found.totals[k] for k in STRICTER)
    ):
        raise SystemExit(1)


def _there(journal: str) -> None:
    from guardhook.journal import read
    from guardhook.store import Missing

    if not read.exists(journal):
        raise Missing(f"nothing has been recorded yet ({journal} does not exist)", journal)


def _print(found: Outcome, since: str) -> None:
    from guardhook.views.text import one_line

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no Unicode gets escapes, not an error
            stream.reconfigure(errors="backslashreplace")
    paint, width = reading.paint(), reading.width()
    told = "the verdicts recorded" if found.against == "recorded" else "the policies in force"
    click.echo(
        f"{found.judged:,} calls of {_count(len(found.sessions), 'session')} on {_count(len(found.days), 'day')} judged again"
        f" (since {one_line(since, 30)}), compared with {told}."
    )
    lost = sum(found.unevaluable.values())
    if lost:
        why = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in found.unevaluable.items() if n)
        click.echo(paint.yellow(f"{lost:,} unevaluable ({why})."))
    click.echo(paint.bold(", ".join(f"{found.totals[k]:,} {_WORDS[k]}" for k in _WORDS if found.totals[k] or k in ("newly_denied", "newly_allowed")) + "."))  # fmt: skip
    for line in _felt(found):
        click.echo(line)
    for policy, count in found.ranked():
        parts = ", ".join(f"{n:,} {_WORDS[k]}" for k, n in count.calls.items() if n)
        click.echo(f"\n{paint.bold(one_line(policy, 60))}: {parts}, in {_count(len(count.sessions), 'session')}, on {_count(len(count.days), 'day')}")  # fmt: skip
        if count.reason:
            click.echo(f"  {one_line(count.reason, max(20, width - 4))}")
        shown = count.commonest(_EXAMPLES)
        for alike in shown:
            mark = paint.red("✘") if alike.kind in STRICTER else paint.green("✔")
            say = f"{alike.calls:,} × {one_line(alike.tool or '?', 16)}  {one_line(alike.call, max(20, width))}"
            click.echo(f"  {mark} {one_line(say, max(20, width - 4))}")
            click.echo(paint.dim(f"      last {alike.ts[:10]}, {one_line(alike.trace_id, 40)}"))
        others = sum(count.calls.values()) - sum(a.calls for a in shown)
        if others:
            click.echo(paint.dim(f"    and {others:,} more; --json names them, `guardhook show ID` shows the session"))


def _felt(found: Outcome) -> Iterator[str]:
    """What it would have been to work with these policies."""
    stopped = sum(found.totals[k] for k in STRICTER)
    days = set().union(*(c.days for c in found.policies.values() if any(c.calls[k] for k in STRICTER)))
    if not found.judged:
        yield "So nothing can be said of them."
    elif not stopped:
        yield "No work would have been held up that was not."
    else:
        yield (
            f"So one call in {max(1, round(found.judged / stopped)):,} would have been held up that was not, on {len(days):,} of"
            f" {_count(len(found.days), 'day')} with work: about {_rate(stopped / len(found.days))} a day."
        )
        if found.totals["newly_reviewed"]:
            yield "A review asks you where the harness can ask, and is a denial where it can't."


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
