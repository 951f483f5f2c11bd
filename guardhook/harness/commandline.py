"""The command that a harness runs: made from a launcher path and an event, and read back only when it is exactly that.

A launcher carries dialect and mode in its file name and takes at most the event as argument. Where there are no launchers
(Windows) the hook program itself is registered and is told both by options.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
import shlex
from dataclasses import dataclass

from guardhook.harness.errors import HarnessError

PROGRAM = "guardhook-hook"
_EVENT = re.compile(r"[A-Za-z]{1,40}")


@dataclass(frozen=True)
class Command:
    """A registered command that is exactly ours."""

    launcher: str
    event: str | None
    mode: str  # enforce or observe


def arguments(dialect: str, launcher: str, mode: str, event: str) -> list[str]:
    """What follows the launcher's path."""
    if launcher_mode(dialect, launcher):
        return [event]
    return ["hook", event, *(["--enforce"] if mode == "enforce" else []), "--dialect", dialect]


def read(dialect: str, words: list[str]) -> Command | None:
    """The words of a command, when they are what `arguments` gives (or a launcher alone), else None."""
    if not words:
        return None
    launcher, rest = words[0], words[1:]
    if mode := launcher_mode(dialect, launcher):
        if len(rest) > 1 or (rest and not _EVENT.fullmatch(rest[0])):
            return None
        return Command(launcher, rest[0] if rest else None, mode)
    if _name(launcher) == PROGRAM and len(rest) >= 2 and rest[0] == "hook" and _EVENT.fullmatch(rest[1]):
        for mode in ("enforce", "observe"):
            if rest == arguments(dialect, launcher, mode, rest[1]):
                return Command(launcher, rest[1], mode)
    return None


def build(platform: str, words: list[str]) -> str:
    """One string for a harness that hands the command to a shell (PowerShell on Windows). Raises HarnessError."""
    launcher = words[0]
    if platform == "win32":
        if re.search(r"[\"'`$%&|<>^\r\n]", launcher):
            raise HarnessError(f"the launcher's path can't be quoted for PowerShell: {launcher}")
        first = f'& "{launcher}"' if " " in launcher else launcher
    else:
        # Inside single quotes fish still reads a backslash, other shells do not; a quote can't be written in both.
        if re.search(r"['\\\x00-\x1f\x7f]", launcher):
            raise HarnessError(
                f"the launcher's path can't be quoted for every shell: {launcher!r}", "choose another folder with --dir"
            )
        first = shlex.quote(launcher)
    return " ".join([first, *words[1:]])


def parse(platform: str, dialect: str, command: str) -> Command | None:
    """A command text that `build` could have made from words of ours, else None: no operator, no second program."""
    words = split(platform, command)
    found = read(dialect, words)
    try:
        return found if found and build(platform, words) == command else None
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
    name = _name(path)
    mode = name.removeprefix(dialect + ".")
    return mode if mode in ("enforce", "observe") and name != mode else None


def ours(dialect: str, command: object, args: object = None) -> bool:
    """Whether a command starts a launcher of this harness, or the hook program for it, whatever else it does."""
    if not isinstance(command, str):
        return False
    if isinstance(args, list):  # the exec form: the command is one path, however it is spelt
        words = [command, *(a for a in args if isinstance(a, str))]
    else:
        words = split("win32", command) if "\\" in command else _shell_words(command)
    if not words:
        return False
    if launcher_mode(dialect, words[0]):
        return True
    return _name(words[0]) == PROGRAM and "--dialect" in words[:-1] and words[words.index("--dialect") + 1] == dialect


def _shell_words(command: str) -> list[str]:
    """Words with operators apart, so that a launcher followed by `;` is still seen."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return []


def _name(path: str) -> str:
    base: str = ntpath.basename(path) if "\\" in path else posixpath.basename(path)
    return base.removesuffix(".exe")
