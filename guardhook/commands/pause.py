"""`guardhook pause`: for a while, a person takes the reviews and their own policies off. What that weakens: guardhook.gate.pause.

JSON: `{"ok": true, "paused": bool, "seconds_left": int, "weakens": [...], "note": str|null}`; seconds_left is 0 when not paused.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat

import click

from guardhook.commands import person
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.jsontext import printable
from guardhook.gate import pause

_UNITS = {"": 60, "s": 1, "m": 60, "min": 60, "h": 3600}
WEAKENS = ("reviews", "policies of the user layer")


@click.command("pause")
@click.argument("duration", required=False)
@click.option("--status", is_flag=True, help="Tell whether guardhook is paused, and for how long still.")
@click.option("--end", is_flag=True, help="End the pause now.")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(duration: str | None, status: bool, end: bool, directory: str | None, as_json: bool) -> None:
    """Let reviews and your own policies pass for a while (15m, 90s, at most 60m).

    Only a person at a terminal can do this. Denials of the shipped, system and project policies stay, faults still block, and
    everything is recorded as paused.
    """
    if sum((duration is not None, status, end)) != 1:
        fail("give a duration such as 15m, or one of --status and --end", as_json=as_json)
    folder = resolve(directory).data
    if status:
        _status(folder, as_json)
    elif end:
        _end(folder, as_json)
    else:
        assert duration is not None
        _begin(folder, _seconds(duration, as_json), as_json)


def _seconds(text: str, as_json: bool) -> int:
    match = re.fullmatch(r"(\d{1,5})\s*(s|m|min|h|)", text.strip().lower(), re.ASCII)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < seconds <= pause.MOST:
        hints = ["a duration is a number with s, m or h: 90s, 15m, 1h (minutes without a unit)"]
        fail(f"{text!r}: a pause lasts from one second to 60 minutes", hints=hints, as_json=as_json)
    return seconds


def _begin(folder: str, seconds: int, as_json: bool) -> None:
    try:
        pause.boot_id()
        pause.boot_time()
    except (OSError, AttributeError):
        fail("this system tells no boot id and boot clock, so a pause can't be bound to it", as_json=as_json)
    _may_pause(folder, as_json)
    words = _words(seconds)
    lines = [
        f"guardhook will be paused for {words}. Until then",
        "  - what needs a review passes, with a note in the journal;",
        "  - your own policies block nothing;",
        "  - denials of the shipped, system and project policies stay.",
    ]
    try:
        person.ensure()
        agreed = person.confirm(lines, person.phrase_for(f"pause for {words}"))
    except person.NotAPerson as error:
        hints = ["a pause is for a person: type it in a terminal of your own, outside any agent or editor"]
        fail(f"not paused: {error}", hints=hints, as_json=as_json)
    if not agreed:
        fail("not paused: the phrase was not typed", as_json=as_json)
    now = pause.boot_time()
    content = pause.render(os.geteuid(), now, now + seconds * 1_000_000_000)
    try:
        _write(folder, content)
        held = pause.examine(folder)
    except OSError as error:
        fail(f"not paused: {error.filename or folder}: {error.strerror}", code=1, as_json=as_json)
    except pause.NotPaused as error:
        fail(f"not paused: {error}", code=1, as_json=as_json)
    if held is None:
        fail("not paused: somebody removed the pause file", code=1, as_json=as_json)
    _tell(held, None, as_json)


def _may_pause(folder: str, as_json: bool) -> None:
    try:
        info = os.lstat(folder)
    except OSError:
        fail(f"{folder} does not exist, so there is nothing to pause", as_json=as_json)
    if not stat.S_ISDIR(info.st_mode):
        fail(f"{folder} is a link or no folder, so a pause in it would not be believed", as_json=as_json)
    if os.geteuid() == 0:
        return
    if info.st_uid != os.geteuid() or pause.system_scope():
        fail("guardhook was installed by root for all users, so only root may pause it", as_json=as_json)


def _write(folder: str, content: bytes) -> None:
    """Puts the file in place with one rename, by descriptor of a folder that is no link. Raises OSError."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        name = f".{pause.FILE}.{secrets.token_hex(8)}"
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=at)
        try:
            if os.geteuid() == 0:
                os.fchmod(fd, 0o644)  # the hooks of other users read it
            os.write(fd, content)
            os.fsync(fd)
            os.rename(name, pause.FILE, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=at)
            raise
        finally:
            os.close(fd)
    finally:
        os.close(at)


def _status(folder: str, as_json: bool) -> None:
    note = None
    held = None
    try:
        held = pause.examine(folder)
    except pause.NotPaused as error:
        note = str(error)
    except (OSError, ValueError):
        note = "the pause file is damaged"
    _tell(held, note, as_json)


def _end(folder: str, as_json: bool) -> None:
    """Anybody may do this: it only makes the gate stricter."""
    try:
        os.unlink(f"{folder}/{pause.FILE}")
        note = "the pause was ended"
    except FileNotFoundError:
        note = "there was no pause"
    except OSError as error:
        fail(f"the pause can't be ended: {folder}/{pause.FILE}: {error.strerror}", code=1, as_json=as_json)
    _tell(None, note, as_json)


def _tell(held: pause.Pause | None, note: str | None, as_json: bool) -> None:
    left = 0 if held is None else max(0, -(-(held.end - pause.boot_time()) // 1_000_000_000))
    if as_json:
        emit(
            {
                "ok": True,
                "paused": held is not None,
                "seconds_left": left,
                "weakens": list(WEAKENS) if held is not None else [],
                "note": note,
            }
        )
        return
    if note:
        say(printable(note))
    click.echo(f"paused for another {_words(left)}" if held is not None else "not paused")


def _words(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    parts = [f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in ((minutes, "minute"), (rest, "second")) if n]
    return " ".join(parts) or "0 seconds"
