"""A harness reports that one of its settings files changed: does the change take the gate away?

Claude Code (2.1.332, measured) applies such a change to the running session unless a ConfigChange hook objects. Only
three kinds of change are objected to: the file in which guardhook is registered no longer names its launcher, the file
switches hooks off, or it does not parse (then nobody can say what it does).
"""

from __future__ import annotations

import posix
from _stat import S_ISREG

from guardhook.core.jsontext import PayloadError, loads, printable, strings
from guardhook.core.verdict import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.event import Event

# Written by `install`: one line per registration, `dialect <tab> scope <tab> settings file`.
REGISTRATIONS = "registrations"
POLICY = "guardhook-settings"
_MOST = 1024 * 1024
# Variables that a settings file can set for the client and that keep hooks from running (2.1.197, 2.1.332).
_SWITCHES = ("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_DISABLE_HOOKS")


def judge(event: Event, data_folder: str) -> Verdict | None:
    """A deny, or None when the change leaves the gate in place."""
    path = event.payload.get("file_path")
    if not isinstance(path, str) or not path.endswith(".json"):
        return None
    ours = _registered(data_folder, event.dialect, path)
    try:
        text = _read(path)
    except FileNotFoundError:
        return _deny(f"{path} was deleted, and guardhook is registered there") if ours else None
    except OSError as error:
        return _deny(f"{path} can't be read ({error.strerror})")
    try:
        settings = loads(text)
    except PayloadError as error:
        return _deny(f"{path} does not parse: {error}")
    if not isinstance(settings, dict):
        return _deny(f"{path} is not a JSON object")
    if settings.get("disableAllHooks"):
        return _deny(f"{path} switches all hooks off (disableAllHooks)")
    env = settings.get("env")
    if isinstance(env, dict):
        for name in _SWITCHES:
            if name in env:
                return _deny(f"{path} sets {name}, which keeps hooks from running")
    launcher = f"{data_folder}/bin/{event.dialect}."
    if ours and not any(launcher in text for text in strings(settings.get("hooks"))):
        return _deny(f"{path} no longer registers guardhook")
    return None


def _deny(reason: str) -> Verdict:
    return Verdict("deny", printable(reason), POLICY)


def _registered(data_folder: str, dialect: str, path: str) -> bool:
    try:
        lines = _read(f"{data_folder}/{REGISTRATIONS}").decode("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(line.startswith(f"{dialect}\t") and line.split("\t")[-1] == path for line in lines)


def _read(path: str) -> bytes:
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    try:
        if not S_ISREG(posix.fstat(fd).st_mode):
            raise OSError(22, "not a regular file")
        return posix.read(fd, _MOST)
    finally:
        posix.close(fd)
