"""`guardhook guard exception`: what a policy does not apply to, until when and why.

JSON: `list` gives `{"ok": true, "exceptions": [{number, policy, until, expired, reason, pattern}]}`, the others `{"ok": true, "policy", "until"}` and `{"ok": true, "removed": [number], "warnings"}`.
"""

from __future__ import annotations

import datetime
import re

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say

_dir = click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_LENGTH = re.compile(r"(\d{1,4}) ?([dw])", re.ASCII | re.IGNORECASE)


@click.group(name="exception")
def command() -> None:
    """List, add and remove exceptions from policies."""


@command.command("list")
@_dir
@_json
def list_(directory: str | None, as_json: bool) -> None:
    """List your exceptions, those that have expired as well."""
    from guardhook.core.jsontext import dumps
    from guardhook.policy import edit, exceptions
    from guardhook.views.text import one_line

    try:
        found = exceptions.listed(resolve(directory))
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    if as_json:
        emit({"ok": True, "exceptions": [entry._asdict() for entry in found]})
        return
    for entry in found:
        ended = "expired, " if entry.expired else ""
        click.echo(one_line(f"{entry.number}  {entry.policy}  {ended}until {entry.until}  {dumps(entry.pattern)}", 200))
        click.echo(one_line(f"   {entry.reason}", 200))
    if not found:
        say("there are no exceptions")


@command.command()
@click.argument("policy")
@click.option("--pattern", required=True, metavar="JSON", help="What is excepted: a JSON object of match keys.")
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@click.option("--until", required=True, metavar="DAY", help="The last day on which it holds (2030-01-31), or for how long (14d, 2w).")  # fmt: skip
@_dir
@_json
def add(policy: str, pattern: str, reason: str, until: str, directory: str | None, as_json: bool) -> None:
    """Except something from a policy for a while. POLICY is its id or name; system policies have no exceptions."""
    from guardhook.commands import guard
    from guardhook.policy import edit, exceptions

    day = _day(until, as_json)
    given = guard.usable(guard.pattern_of(pattern, "--pattern", as_json), "--pattern", as_json)
    try:
        exceptions.add(resolve(directory), policy, given, reason, day)
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    _done({"policy": policy, "until": str(day)}, f"excepted from {policy} until {day}", directory, as_json)


@command.command()
@click.argument("numbers", nargs=-1, type=int)
@click.option("--expired", is_flag=True, help="All that have expired.")
@_dir
@_json
def remove(numbers: tuple[int, ...], expired: bool, directory: str | None, as_json: bool) -> None:
    """Remove exceptions by their NUMBERS in `guard exception list`."""
    from guardhook.policy import edit, exceptions

    folders = resolve(directory)
    try:
        chosen = set(numbers) | {e.number for e in exceptions.listed(folders) if expired and e.expired}
        if not numbers and not expired:
            fail("a number or --expired is needed", as_json=as_json)
        if chosen:
            exceptions.remove(folders, chosen)
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    _done({"removed": sorted(chosen)}, f"{len(chosen)} exception(s) removed", directory, as_json)


def _done(result: dict[str, object], said: str, directory: str | None, as_json: bool) -> None:
    from guardhook.commands.guard import recompile

    warnings: list[str] = []
    recompile(directory, warnings)
    if as_json:
        emit({"ok": True, **result, "warnings": warnings})
        return
    for line in warnings:
        say(f"warning: {line}")
    say(said)


def _day(text: str, as_json: bool) -> datetime.date:
    length = _LENGTH.fullmatch(text.strip())
    try:
        if length is None:
            return datetime.date.fromisoformat(text.strip())
        return datetime.date.today() + datetime.timedelta(days=int(length[1]) * (7 if length[2].lower() == "w" else 1))
    except (ValueError, OverflowError):
        fail(f"--until {text!r}: a day (2030-01-31) or a length of time (14d, 2w) is needed", as_json=as_json)
