"""`guardhook rollout export`: runs as rollout files."""

from __future__ import annotations

import os
import sys
import time

import click

from guardhook.commands import reading, rollout_shared
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders
from guardhook.store import Store, StoreError


@click.command("export")
@click.argument("words", nargs=-1, metavar="[RUN] [DIR]")
@click.option("--all", "every", is_flag=True, help="Every run, into DIR.")
@click.option("--follow", is_flag=True, help="Keep DIR up to date until interrupted.")
@click.option("--by", "by", metavar="turn", help="One rollout for each turn of a run.")
@click.option("--since", metavar="TIME", help="With --all: runs opened since a date or for a while (30d).")
@click.option("--session", metavar="ID", help="With --all: only runs of this session.")
@click.option("--tenant", metavar="ID", help="What run.started says as tenant_id.")
@click.option("--interval", type=reading.Number(least=10, most=3_600_000), default=500, show_default=True, metavar="MS", help="With --follow: how often to look.")  # fmt: skip
@reading.as_json
@reading.directory
def command(
    words: tuple[str, ...],
    every: bool,
    follow: bool,
    by: str | None,
    since: str | None,
    session: str | None,
    tenant: str | None,
    interval: int,
    as_json: bool,
    directory: str | None,
) -> None:
    """Write runs out as rollout files, DIR/<date>/<run id>.jsonl.

    RUN is a run, trace or session id or the clear beginning of one; without DIR its rollout goes to stdout. --all and --follow take DIR, or the folder
    that GUARDHOOK_ROLLOUT_DIR or `[forensics] rollout_dir` names. The same journal always gives the same bytes.
    """
    if by not in (None, "turn"):
        fail(f"--by {by!r}: there is turn", as_json=as_json)
    if every and follow:
        fail("--all or --follow, not both", as_json=as_json)
    if (since is not None or session is not None) and not every:
        fail("--since and --session go with --all", as_json=as_json)
    if len(words) > (1 if every or follow else 2) or not (words or every or follow):
        fail("name a run, or give --all or --follow with a folder", as_json=as_json)
    folders = resolve(directory)
    found = rollout_shared.settings(folders, as_json)
    options = rollout_shared.options(found, as_json, tenant=tenant or rollout_shared.tenant(found))
    run = None if every or follow else words[0]
    given = words[1:] if run is not None else words
    folder = os.path.abspath(os.path.expanduser(given[0])) if given and given[0].strip() else None
    if given and folder is None:
        fail("DIR needs a value", as_json=as_json)
    if folder is None and run is None:
        folder = rollout_shared.rollout_dir(found, as_json)
        if folder is None:
            fail("no folder: give DIR, or set [forensics] rollout_dir in config.toml", as_json=as_json)
    if folder is not None:
        from guardhook.rollout.export import outside

        try:
            outside(folders, folder)
        except StoreError as error:
            fail(error.message, as_json=as_json)
    by_turns = by == "turn" or (run is None and rollout_shared.turns(found, as_json))
    if folder is None and by_turns:
        fail("--by turn makes several files and needs a folder", as_json=as_json)
    if follow:
        assert folder is not None
        _follow(directory, folders, folder, options, by_turns, interval)
        return
    bound = reading.narrowed(time.time(), as_json, since=since, session=session)
    with reading.opened(directory, as_json) as store:
        if folder is None:
            assert run is not None
            _print(store, folders, run, options)
            return
        _write(store, folders, folder, run, options, by_turns, bound.since_us, session, as_json)


def _print(store: Store, folders: Folders, run: str, options: object) -> None:
    from guardhook.rollout.export import lines
    from guardhook.rollout.options import Options
    from guardhook.rollout.render import render
    from guardhook.rollout.runs import find_in
    from guardhook.store.steps_json import ascii_json

    assert isinstance(options, Options)
    out = sys.stdout.buffer
    screen = sys.stdout.isatty()  # programs get the file's bytes, a terminal the same as ASCII
    for raw in lines(render(folders, find_in(store, run), options=options)):
        out.write(ascii_json(raw.decode()).encode() if screen else raw)
    out.flush()


def _write(
    store: Store, folders: Folders, folder: str, run: str | None, options: object, by_turns: bool, since_us: int | None,
    session: str | None, as_json: bool,
) -> None:  # fmt: skip
    from guardhook.rollout import export
    from guardhook.rollout.limits import EVENTS
    from guardhook.rollout.options import Options
    from guardhook.rollout.runs import find_in, list_in
    from guardhook.store import NotFound, instants

    assert isinstance(options, Options)
    since = None if since_us is None else instants.iso_ms(since_us)
    try:
        export.Folder(folder, create=True).close()
    except OSError as error:  # told once, not for every run
        fail(f"{folder}: {error.strerror or error}", code=1, as_json=as_json)
    refs = [find_in(store, run)] if run is not None else list_in(store, session=session, since=since, copies=False)
    done: list[export.Written] = []
    failed: list[str] = []
    for ref in refs:
        try:
            done.extend(export.write(folders, ref, folder, options, turns=by_turns))
        except NotFound as error:
            failed.append(error.message)  # gc took it away in between
        except StoreError as error:
            if run is not None:
                raise
            failed.append(error.message)
    for w in done:
        if w.events > EVENTS:
            say(
                f"guardhook: {w.run_id} has {w.events} events, more than the {EVENTS} that a rollout may have to be loaded; --by turn makes smaller ones"
            )
    if as_json:
        reading.print_json({
            "folder": folder, "files": [{"run_id": w.run_id, "path": w.path, "events": w.events, "bytes": w.bytes, "changed": w.changed} for w in done],
            "failed": failed,
        })  # fmt: skip
    else:
        from guardhook.views.text import count, one_line

        changed = sum(w.changed for w in done)
        click.echo(f"{count(len(done))} rollouts in {one_line(folder)}, {count(changed)} of them new or changed.")
        for problem in failed:
            say(f"guardhook: {problem}")
    if failed:
        raise SystemExit(1)


def _follow(
    directory: str | None, folders: Folders, folder: str, options: object, by_turns: bool, interval: int
) -> None:
    from guardhook.rollout.live import sync
    from guardhook.rollout.options import Options
    from guardhook.store import Locked, Missing, open_store

    assert isinstance(options, Options)
    told: set[str] = set()
    begun = False
    try:
        while True:
            problems: list[str] | None = None
            try:
                with open_store(folders) as store:
                    problems = sync(store, folders, folder, options, turns=by_turns).problems
                begun = True
            except (Missing, Locked):
                pass  # nothing was recorded yet, or somebody else is at it
            except StoreError as error:
                if not begun:
                    fail(error.message)
                problems = [error.message]  # a disk that comes and goes does not end what was begun
            for problem in problems or ():
                if problem not in told:
                    say(f"guardhook: {problem}")
            if problems is not None:
                told = set(problems)
            time.sleep(interval / 1000)
    except KeyboardInterrupt:
        raise SystemExit(0) from None
