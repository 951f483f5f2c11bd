"""`guardhook redact`: takes secrets out of what was recorded already."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders
from guardhook.journal import redact_stored
from guardhook.store import Store, StoreError, Trace

_KEYS = """
  SELECT s.key FROM sources s JOIN agent_traces t ON t.source = s.id WHERE t.id = ?1 OR t.parent_trace_id = ?1
  UNION SELECT s.key FROM sources s JOIN agent_trace_evals e ON e.source = s.id WHERE e.trace_id = ?1
"""


@click.command("redact")
@click.argument("trace_id", metavar="[TRACE]", required=False)
@click.option("--all", "everything", is_flag=True, help="Everything in the journal.")
@click.option("--since", metavar="TIME", help="Lines recorded since a date (2026-08-16) or for a while (30d, 12h).")
@click.option("--mode", type=click.Choice(["redacted", "hashed", "none"]), default="redacted", show_default=True, help="What is left of the payloads of hook events.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only count what would change.")
@reading.as_json
@reading.directory
def command(
    trace_id: str | None,
    everything: bool,
    since: str | None,
    mode: str,
    dry_run: bool,
    as_json: bool,
    directory: str | None,
) -> None:
    """Take secrets out of the journal for good, by the rules and patterns of today: of TRACE (with its copies and evaluations), or with --all or --since.

    The stores made of the journal follow. An audit trail keeps what it has: its entries can't be changed without breaking the chain.
    """
    if (trace_id is not None) + everything + (since is not None) != 1:
        fail("name one: TRACE, --all or --since TIME", as_json=as_json)
    folders = resolve(directory)
    bound, keys = None, None
    if since is not None:
        bound = _bound(since, as_json)
    with reading.opened(directory, as_json) as store:
        if trace_id is not None:
            keys = _keys(store, store.get(trace_id))
    from guardhook.journal.rules import configured

    wanted = redact_stored.Wanted(configured(folders), mode, bound)
    redactor = redact_stored.Redactor(folders.journal, wanted, dry_run=dry_run)
    found: list[redact_stored.File] = []
    unread: list[str] = []
    try:
        for place in redact_stored.places(folders.journal, keys):
            try:
                found.append(redactor.file(place))
            except OSError as error:
                unread.append(f"{place.day}/{place.key}: {error.strerror or error}")
    except OSError as error:
        fail(f"{folders.journal}: {error.strerror or error}", code=1, as_json=as_json)
    finally:
        if redactor.rewritten:
            _follow(folders, as_json)
    _tell(folders, found, unread, dry_run, as_json)
    if unread or any(file.busy for file in found):
        raise SystemExit(1)


def _bound(since: str, as_json: bool) -> str:
    """A time as lines have it."""
    from guardhook.journal import line
    from guardhook.store import BadQuery, instants

    if not since.strip():
        fail("--since needs a value", as_json=as_json)
    try:
        return line.iso(instants.since(since, int(time.time() * 1_000_000)) * 1000)
    except BadQuery as error:
        fail(error.message, as_json=as_json)


def _keys(store: Store, trace: Trace) -> frozenset[str]:
    """The files that hold something of a trace: its own, its copies', its evaluations'."""
    return frozenset(str(row[0]) for row in store.connection.execute(_KEYS, (trace.id,)))


def _follow(folders: Folders, as_json: bool) -> None:
    """Makes traces.db and the rollout folder anew. What is overwritten there is overwritten with zeros."""
    from guardhook.commands.rollout_shared import keep_up
    from guardhook.store import open_store, project, schema

    path = f"{folders.data}/{schema.FILE}"
    try:
        connection = schema.connect(path, create=True)
        try:
            connection.execute("PRAGMA secure_delete=ON")
            project.catch_up(connection, folders.journal)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
        for suffix in ("", "-wal", "-shm"):  # only a memory of what the rollout folder has
            with contextlib.suppress(OSError):
                os.unlink(f"{folders.data}/rollouts.db{suffix}")
        with open_store(folders) as store:
            keep_up(store, folders)
    except (StoreError, sqlite3.Error, OSError) as error:
        say(f"guardhook: {path} still has what was there: {error}; delete it, it is made anew from the journal")


def _tell(folders: Folders, found: list[redact_stored.File], unread: list[str], dry_run: bool, as_json: bool) -> None:
    total: dict[str, int] = {}
    for file in found:
        for name, number in file.found.items():
            total[name] = total.get(name, 0) + number
    changed = sum(file.changed for file in found)
    busy = [f"{file.folder}/{file.key}" for file in found if file.busy]
    trail = _audit(folders) if changed else False
    waiting = _waiting(folders)
    if as_json:
        reading.print_json({
            "dry_run": dry_run, "files": sum(1 for f in found if f.changed), "lines": sum(f.lines for f in found), "changed": changed, "found": dict(sorted(total.items())),
            "busy": busy, "unread": unread, "waiting": waiting, "audit_trail_kept": trail,
        })  # fmt: skip
        return
    word = "would change" if dry_run else "changed"
    what = ", ".join(f"{name} {number}" for name, number in sorted(total.items()))
    click.echo(f"{changed:,} line(s) in {sum(1 for f in found if f.changed):,} of {len(found):,} file(s) {word}" + (f": {what}" if what else ""))  # fmt: skip
    for name in busy:
        say(f"{name} is in use and stays as it is; try again")
    for text in unread:
        say(f"{text}; it stays as it is")
    if waiting:
        say(f"{waiting} entries wait for the next hooks to take them into the journal; they were not looked at")
    if trail:
        say("the audit trail keeps what it has; a day's whole file can be deleted, its entries can't be changed")


def _waiting(folders: Folders) -> int:
    """How many entries are not in the journal yet."""
    from guardhook.journal import spool

    found = 0
    for _, _, names in os.walk(spool.folder_of(folders.journal)):
        found += len(names)
    return found


def _audit(folders: Folders) -> bool:
    """Whether there is an audit trail, which this command leaves alone."""
    from guardhook.policy import config, settings
    from guardhook.rollout import audit

    try:
        return bool(audit.files_in(config.audit_folder(settings.read(folders).get("forensics.rollout_dir"), folders)))
    except (settings.SettingsError, audit.Unreadable):
        return False
