"""`guardhook account`: what an answer rests on, in plain words, from a recorded run or an archive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from guardhook.archive.account.declarations import CONFIG, Declarations
from guardhook.archive.unpacking import DEFAULT_UNPACK_MAX_BYTES
from guardhook.commands import reading, rollout_named
from guardhook.commands.archive import refusals, settings_of
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail
from guardhook.policy.settings import Settings

_FINDS = {"warn": ("warn", "bad"), "bad": ("bad",)}
_UNSURE = ("not-sure", "ask")


@click.command("account")
@click.argument("name", metavar="TRACE|RUN|FILE")
@click.option("--turn", default="last", metavar="N|last", help="Which turn of the run.")
@click.option("--session", is_flag=True, help="Every turn, and totals.")
@click.option("--standing", is_flag=True, help="Only how far the answer stands, and why.")
@click.option("--declarations", metavar="FILE", help="Declared checks and tools for this report (JSON or TOML).")
@click.option("--show", metavar="POINTER", help="What a pointer of the account points at, if it may be shown.")
@click.option("--paths", type=click.Choice(["shown", "hidden"]), default="shown", help="Whether names of files are told.")  # fmt: skip
@click.option("--markdown", is_flag=True, help="Markdown, for a ticket.")
@click.option("--fail-on", type=click.Choice(["warn", "bad", "not-sure"]), multiple=True, help="Status 3 when the tone or the standing is this (or worse).")  # fmt: skip
@click.option("--max-bytes", type=reading.Number(least=0), default=DEFAULT_UNPACK_MAX_BYTES, metavar="N", help="The most that is read of a file.")  # fmt: skip
@reading.as_json
@reading.directory
def command(
    name: str, turn: str, session: bool, standing: bool, declarations: str | None, show: str | None, paths: str, markdown: bool,
    fail_on: tuple[str, ...], max_bytes: int, as_json: bool, directory: str | None,
) -> None:  # fmt: skip
    """What was asked, checked and found, how sure it is, and what is wrong, with who vouches for each sentence."""
    from guardhook.archive.account import account, assess, shown

    if sum((session, standing, show is not None)) > 1:
        fail("only one of --session, --standing and --show", as_json=as_json)
    if markdown and (as_json or standing or session or show is not None):
        fail("--markdown is for the account of one turn, without --json", as_json=as_json)
    if session and turn != "last":
        fail("--session tells of every turn; --turn names one", as_json=as_json)
    if standing and set(fail_on) - {"not-sure"}:
        fail("--standing has no tone; with it --fail-on takes not-sure only", as_json=as_json)
    folders = resolve(directory)
    config = settings_of(folders, as_json)
    declared = _declared(declarations, config, as_json)
    hide = paths == "hidden"
    place = _turn(turn, as_json)
    recording, run_id = _recording(name, config, max_bytes, as_json, directory)
    try:
        if show is not None:
            _show(shown.Shower(recording, run_id=run_id, declarations=declared, hide_paths=hide).show(show), as_json)
            return
        if standing:
            found = assess.assess_turn(recording, run_id=run_id, turn=place, declarations=declared)
            _standing(found, as_json)
            _finish(fail_on, None, None if found is None else str(found["standing"]))
            return
        if session:
            told = account.account_for_session(recording, run_id=run_id, declarations=declared, hide_paths=hide)
            _print(told, as_json, "session")
            _finish(fail_on, str(told["tone"]), told["standing"])
            return
        told = account.account_for_answer(recording, run_id=run_id, turn=place, declarations=declared, hide_paths=hide)
    except assess.UnknownTurn as error:
        fail(str(error), as_json=as_json)
    _print(told, as_json, "markdown" if markdown else "text")
    summary = told["summary"]
    assert isinstance(summary, dict)
    _finish(fail_on, str(summary["tone"]), told["standing"])


def _turn(turn: str, as_json: bool) -> int | str:
    if turn == "last":
        return turn
    if not (turn.isascii() and turn.isdigit() and 0 < len(turn) < 10 and int(turn) > 0):
        fail(f"--turn takes a number from 1 on, or `last`, not {turn!r}", as_json=as_json)
    return int(turn)


def _declared(path: str | None, config: Settings, as_json: bool) -> Declarations:
    """What config.toml declares; a file given for this report counts in its place."""
    from guardhook.archive.account import declarations

    try:
        if path is None:
            return declarations.of(config.section("account"), origin=CONFIG)
        return declarations.of(_file(path, as_json))
    except (TypeError, ValueError) as error:
        fail(f"{path or '[account] in config.toml'}: {error}", as_json=as_json)


def _file(path: str, as_json: bool) -> object:
    from guardhook.archive import plain, reader
    from guardhook.policy import tomltext

    with refusals(as_json, path):
        data = reader.read_bytes(path, max_bytes=1 << 20)
        if data.lstrip()[:1] == b"{":
            return plain.loads(data)
        try:
            return tomltext.loads(data.decode())
        except ValueError as error:
            fail(f"{path}: {error}", code=1, as_json=as_json)


def _recording(
    name: str, config: Settings, max_bytes: int, as_json: bool, directory: str | None
) -> tuple[dict[str, object], str | None]:
    """The recording and the run to tell of: of a file (an archive, a bundle, a rollout), else of the store."""
    if name.endswith(".jsonl"):
        rollout = rollout_named.from_file(name, as_json)
        events = [{"ts": e.ts, "seq": e.seq, "type": e.type, "data": e.payload or {}} for e in rollout.events]
        return {"snapshot": None, "events": events, "structure": None}, None
    if os.path.exists(name) and (os.sep in name or os.path.isfile(name)):
        from guardhook.archive import collection

        with refusals(as_json, name):
            document = collection.one(name, max_bytes=max_bytes)
        run = document.run.get("runId")
        named = {d.get("run_id") for e in document.events if isinstance(e, dict) and isinstance(d := e.get("data"), dict)}  # fmt: skip
        # An archive of the newest events may hold none that names the run.
        return document.recording, run if isinstance(run, str) and run in named else None
    from guardhook.archive import source
    from guardhook.rollout import options, runs

    with reading.opened(directory, as_json) as store:
        ref = runs.find_in(store, name)
        try:
            chosen = options.of(config)
        except options.BadOptions as error:
            fail(str(error), as_json=as_json)
        found = source.gather(resolve(directory), store, ref, options=chosen)
    return found.recording, ref.run_id


def _show(leaf: dict[str, object], as_json: bool) -> None:
    from guardhook.views.text import one_line

    if as_json:
        reading.print_json(leaf)
    elif "withheld" in leaf:
        known = "`guardhook account ID --json` lists the pointers of an account, such as event:0:data/prompt"
        fail(f"withheld: {leaf['withheld']}", code=1, hints=[known])
    else:
        click.echo(one_line(str(leaf["value"])))


def _standing(found: dict[str, object] | None, as_json: bool) -> None:
    from guardhook.views import account as view

    if as_json:
        reading.print_json(found)
    else:
        _out(view.standing_text(found, reading.paint()))


def _print(told: dict[str, object], as_json: bool, how: str) -> None:
    from guardhook.views import account as view

    with reading.heard():
        if as_json:
            reading.print_json(told)
        elif how == "markdown":
            _out(view.as_markdown(told))
        elif how == "session":
            _out(view.session_text(told, reading.paint(), reading.width()))
        else:
            _out(view.as_text(told, reading.paint(), reading.width()))


def _out(lines: Iterator[str]) -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    for line in lines:
        click.echo(line)


def _finish(fail_on: tuple[str, ...], tone: str | None, standing: object) -> None:
    for word in fail_on:
        if (word == "not-sure" and standing in _UNSURE) or tone in _FINDS.get(word, ()):
            raise SystemExit(3)
