"""The command text that a harness runs: made from a launcher path and an event, and read back only when it is exactly that."""

from __future__ import annotations

import ntpath
import posixpath
import re
import shlex

from guardhook.harness.model import HarnessError

SUFFIXES = (".enforce", ".observe")
_EVENT = re.compile(r"[A-Za-z]{1,40}")


def build(platform: str, launcher: str, event: str | None) -> str:
    """One string for a harness that hands the command to a shell (PowerShell on Windows). Raises HarnessError."""
    if platform == "win32":
        if re.search(r"[\"'`$%&|<>^\r\n]", launcher):
            raise HarnessError(f"the launcher's path can't be quoted for PowerShell: {launcher}")
        words = f'& "{launcher}"' if " " in launcher else launcher
    else:
        # Inside single quotes fish still reads a backslash, other shells do not; a quote can't be written in both.
        if re.search(r"['\\\x00-\x1f\x7f]", launcher):
            raise HarnessError(
                f"the launcher's path can't be quoted for every shell: {launcher!r}", "choose another folder with --dir"
            )
        words = shlex.quote(launcher)
    return f"{words} {event}" if event else words


def parse(platform: str, command: str) -> tuple[str, str | None] | None:
    """Launcher and event of a command that `build` could have made, else None. The path itself is not checked."""
    words = split(platform, command)
    if not words or len(words) > 2 or (len(words) == 2 and not _EVENT.fullmatch(words[1])):
        return None
    event = words[1] if len(words) == 2 else None
    try:
        return (words[0], event) if build(platform, words[0], event) == command else None
    except HarnessError:
        return None


def split(platform: str, command: str) -> list[str]:
    """The words of a command, [] when its quotes don't close."""
    try:
        words = shlex.split(command, posix=platform != "win32")
    except ValueError:
        return []
    words = [w.strip('"') for w in words] if platform == "win32" else words
    return words[1:] if words[:1] == ["&"] else words


def launcher_mode(dialect: str, path: str) -> str | None:
    """`enforce` or `observe` when the path is named like a launcher of this harness, else None."""
    base: str = ntpath.basename(path) if "\\" in path else posixpath.basename(path)
    name = base.removesuffix(".exe")
    if name.startswith(dialect + ".") and name[len(dialect) :] in SUFFIXES:
        return name[len(dialect) + 1 :]
    return None


def ours(platform: str, dialect: str, command: object) -> bool:
    """Whether a command starts a launcher of this harness, whatever else it does."""
    if not isinstance(command, str):
        return False
    if launcher_mode(dialect, command):  # the exec form: the whole text is one path
        return True
    words = split(platform, command)
    return bool(words) and launcher_mode(dialect, words[0]) is not None
