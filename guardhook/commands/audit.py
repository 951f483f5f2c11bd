"""`guardhook audit`: checking the audit trail, and keeping its head elsewhere."""

from __future__ import annotations

import os
import shlex
import subprocess
import time

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders
from guardhook.rollout import audit as trail

LEAST_KEY = 16
_EXEC_SECONDS = 60


@click.group("audit")
def command() -> None:
    """Check the audit trail, or keep its head elsewhere. See docs/audit.md."""


@command.command("verify")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--anchors", "anchor_file", metavar="FILE", help="Hashes that `audit anchor` kept: the chain must contain them.")  # fmt: skip
@click.option("--key-file", metavar="FILE", help="The key that the anchors were made with.")
@reading.as_json
@reading.directory
def verify(files: tuple[str, ...], anchor_file: str | None, key_file: str | None, as_json: bool, directory: str | None) -> None:  # fmt: skip
    """Follow the chain of each FILE (without: of every day) and name the first bad line. 0 whole, 3 broken, 1 unreadable."""
    if key_file is not None and anchor_file is None:
        fail("--key-file belongs to --anchors", as_json=as_json)
    folders = resolve(directory)
    try:
        anchors = [] if anchor_file is None else trail.read_anchors(anchor_file, _key(key_file, as_json))
        paths = list(files) or trail.files_in(_folder(folders, as_json))
        found = [trail.verify(path, [a for a in anchors if a.day == trail.day_of(path)]) for path in paths]
    except trail.Unreadable as error:
        fail(str(error), code=1, as_json=as_json)
    gone = [] if files else sorted({a.day for a in anchors} - {trail.day_of(path) for path in paths})
    waiting = trail.missed(folders) if not files else 0
    whole = not gone and all(one.bad is None for one in found)
    with reading.heard():
        if as_json:
            reading.print_json(
                {"ok": whole, "files": [_shape(one) for one in found], "missing_days": gone, "waiting": waiting}
            )
        else:
            for one in found:
                click.echo(_said(one))
            for day in gone:
                click.echo(f"{day}: entries of this day were anchored, and its file is gone")
            if not found and not gone:
                say("there is no audit trail; `[forensics] audit_trail_enabled = true` in config.toml begins one")
            if waiting:
                say(f"{waiting} entries could not be written in time and wait for the next one")
            if found and anchor_file is None:
                say("whether entries were cut off at the end can only be told with --anchors")
    if not whole:
        raise SystemExit(3)


def _shape(one: trail.Verified) -> dict[str, object]:
    bad = None if one.bad is None else one.bad._asdict()
    return {
        "file": one.path,
        "entries": one.entries,
        "head": one.head,
        "first": one.first,
        "last": one.last,
        "bad": bad,
    }


def _said(one: trail.Verified) -> str:
    from guardhook.views.text import one_line

    if one.bad is not None:
        text = f"{one.path}: line {one.bad.line}: {one.bad.kind}: {one.bad.message}; {one.entries} entries before it are whole"
    else:
        text = f"{one.path}: {one.entries} entries, the chain is whole, head {one.head}"
    return one_line(text)


@command.command("anchor")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--to", "target", metavar="FILE", help="Append the anchor to this file, better on another machine's disk.")  # fmt: skip
@click.option("--exec", "program", metavar="COMMAND", help="Run this with {hash}, {entries} and {day} put in; no shell.")  # fmt: skip
@click.option("--key-file", metavar="FILE", help="Add a keyed hash (HMAC-SHA256), so that nobody else can make anchors.")  # fmt: skip
@reading.directory
def anchor(
    file: str | None, target: str | None, program: str | None, key_file: str | None, directory: str | None
) -> None:
    """Print the head of FILE's chain (without: of the newest day) as one line of JSON, and keep it elsewhere. A broken chain is not anchored."""
    try:
        if file is None:
            files = trail.files_in(_folder(resolve(directory), False))
            if not files:
                fail("there is no audit trail to anchor", code=1)
            file = files[-1]
        found = trail.verify(file)
    except trail.Unreadable as error:
        fail(str(error), code=1)
    if found.bad is not None:
        fail(_said(found), code=3)
    if not found.entries:
        fail(f"{file}: there is no entry to anchor", code=1)
    made = trail.anchor(found, _key(key_file, False))
    text = made.text(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    if target is not None:
        _append(target, text)
    if program is not None:
        _run(program, made)
    click.echo(text)


def _append(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, text.encode() + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        fail(f"{path}: {error.strerror or error}", code=1)


def _run(program: str, made: trail.Anchor) -> None:
    try:
        words = [w.replace("{hash}", made.hash).replace("{entries}", str(made.entries)).replace("{day}", made.day) for w in shlex.split(program)]  # fmt: skip
        if not words:
            fail("--exec needs a command")
        done = subprocess.run(words, stdin=subprocess.DEVNULL, timeout=_EXEC_SECONDS, check=False)
    except ValueError as error:
        fail(f"--exec {program!r}: {error}")
    except (OSError, subprocess.TimeoutExpired) as error:
        fail(f"--exec {words[0]}: {getattr(error, 'strerror', None) or 'took too long'}", code=1)
    if done.returncode:
        fail(f"--exec {words[0]} ended with status {done.returncode}", code=1)


def _folder(folders: Folders, as_json: bool) -> str:
    from guardhook.policy import config, settings

    try:
        given = settings.read(folders).get("forensics.rollout_dir")
    except settings.SettingsError as error:
        fail(str(error), as_json=as_json)
    return config.audit_folder(given, folders)


def _key(path: str | None, as_json: bool) -> bytes | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            key = file.read(1 << 16).strip()
    except OSError as error:
        fail(f"{path}: {error.strerror or error}", as_json=as_json)
    if len(key) < LEAST_KEY:
        fail(f"{path}: a key has at least {LEAST_KEY} bytes", as_json=as_json)
    return key
