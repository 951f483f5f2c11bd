"""`guardhook gc`: old sessions are compressed, and leave the journal when their time is over.

JSON: `{dry_run, older_than, compress_after, removed: [{trace_id, last_heard_of, bytes}], compressed: [the same], skipped, kept, bytes_before, bytes_removed, bytes_saved}`.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.store.gc import Session

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@click.command("gc")
@click.option("--older-than", metavar="TIME", help="Sessions not heard of since a date (2026-08-16) or for a while (90d).")  # fmt: skip
@click.option("--max-size", metavar="SIZE", help="Then the oldest ones, until the journal is no larger (500M, 2G).")
@click.option("--compress-after", default="7d", show_default=True, metavar="TIME", help="Compress sessions not heard of for so long; `never` leaves them.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@reading.as_json
@reading.directory
@click.pass_context
def command(
    ctx: click.Context, older_than: str | None, max_size: str | None, compress_after: str, dry_run: bool, as_json: bool, directory: str | None
) -> None:  # fmt: skip
    """Remove old sessions from the journal for good, and compress others that have been silent; sessions of the last day stay.

    Without a bound, the setting capture.retention is the one (`guardhook config set capture.retention 90d`). Compressed sessions are read like all others.
    """
    from guardhook.store import StoreError, gc
    from guardhook.store.instants import since

    folders = resolve(directory)
    asked = ctx.get_parameter_source("compress_after") is click.core.ParameterSource.COMMANDLINE
    configured = older_than is None and max_size is None
    if configured:
        older_than = _retention(folders, as_json, needed=not asked)
    most = None if max_size is None else _size(max_size, as_json)
    try:
        now = int(time.time() * 1_000_000)
        before = None if older_than is None else since(older_than, now) / 1_000_000
        packed = _compress_before(compress_after, now, as_json)
        found = gc.collect(folders, before=before, most_bytes=most, compress_before=packed, dry_run=dry_run)
    except StoreError as error:
        from guardhook.store import BadQuery

        said = error.message.replace("--since", "capture.retention" if configured else "--older-than", 1)
        fail(said, code=2 if isinstance(error, BadQuery) else 1, as_json=as_json)
    if as_json:
        reading.print_json({
            "dry_run": dry_run,
            "older_than": older_than,
            "compress_after": compress_after,
            "removed": [_shape(s) for s in found.removed],
            "compressed": [_shape(s) for s in found.compressed],
            "skipped": found.skipped,
            "kept": found.kept,
            "bytes_before": found.bytes_before,
            "bytes_removed": found.bytes_removed,
            "bytes_saved": found.bytes_saved,
        })  # fmt: skip
        return
    word = "would be removed" if dry_run else "removed"
    click.echo(f"{len(found.removed):,} session(s) {word}, {found.bytes_removed:,} of {found.bytes_before:,} bytes; {found.kept:,} stay")  # fmt: skip
    if found.compressed:
        told = "would be compressed" if dry_run else "compressed"
        click.echo(f"{len(found.compressed):,} session(s) {told}, {found.bytes_saved:,} bytes saved")
    if found.skipped:
        say(f"{found.skipped} session(s) are in use and stay")


def _shape(session: Session) -> dict[str, object]:
    from guardhook.store.fold import trace_id
    from guardhook.store.instants import iso_ms

    return {"trace_id": trace_id(session.key), "last_heard_of": iso_ms(int(session.last * 1_000_000)), "bytes": session.size}  # fmt: skip


def _compress_before(text: str, now_us: int, as_json: bool) -> float | None:
    from guardhook.store import BadQuery
    from guardhook.store.instants import since

    if text.strip().lower() == "never":
        return None
    try:
        return since(text, now_us) / 1_000_000
    except BadQuery as error:
        fail(error.message.replace("--since", "--compress-after", 1), as_json=as_json)


def _retention(folders: Folders, as_json: bool, *, needed: bool) -> str | None:
    from guardhook.policy import settings

    try:
        found = settings.read(folders).get("capture.retention")
    except settings.SettingsError as error:
        fail(str(error), as_json=as_json)
    if found is None and not needed:
        return None
    if not isinstance(found, str) or not found.strip():
        fail(
            "--older-than TIME or --max-size SIZE is needed", as_json=as_json,
            hints=["`guardhook config set capture.retention 90d` makes it a setting"],
        )  # fmt: skip
    return found


def _size(text: str, as_json: bool) -> int:
    match = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if match is None:
        fail(f"--max-size {text!r}: a number of bytes is needed, with K, M, G or T behind it if you like", as_json=as_json)  # fmt: skip
    return int(match[1]) * _UNITS[match[2]]
