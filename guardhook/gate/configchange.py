"""A harness reports that one of its settings files changed: does the change take the gate away?

Claude Code (2.1.332, measured) applies such a change to the running session unless a ConfigChange hook objects. Only
three kinds of change are objected to: the file in which guardhook is registered no longer registers its enforcing launcher for
every call, the file switches hooks off, or it does not parse (then nobody can say what it does) or has in it what makes the
client drop the whole file.
"""

from __future__ import annotations

import posix
from _stat import S_ISREG

from guardhook.core.jsontext import PayloadError, loads, printable
from guardhook.core.verdict import Verdict
from guardhook.gate.roots import real

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
    ours, several = _registered(data_folder, event.dialect, path)
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
    if ours:
        wrong = _dropped(settings.get("hooks"), f"{data_folder}/bin/{event.dialect}.", several)
        if wrong is not None:
            return _deny(f"{path} {wrong}")
    return None


# An entry of a wrong shape under one of these, and the client ignores the whole file (2.1.332).
_STRICT = ("PreToolUse", "PermissionRequest")
_TYPES = ("command", "http", "mcp_tool", "prompt", "agent")


def _dropped(hooks: object, launcher: str, several: bool) -> str | None:
    """What keeps the launcher from being asked about every call; None when nothing does.

    several: other files register this harness too, and this one may be one that only observes.
    """
    if not isinstance(hooks, dict):
        return "no longer registers guardhook"
    found: list[tuple[dict[str, object], dict[str, object]]] = []
    for event in _STRICT:
        groups = hooks.get(event, [])
        for group in groups if isinstance(groups, list) else (None,):
            if not isinstance(group, dict):
                group = {}
            handlers = group.get("hooks")
            if not isinstance(handlers, list) or not isinstance(group.get("matcher", ""), str):
                return f"has an entry in hooks.{event} that makes the client ignore all of it"
            for handler in handlers:
                if not _usable(handler):
                    return f"has an entry in hooks.{event} that makes the client ignore all of it"
                if event == _STRICT[0]:
                    found.append((group, handler))
    ours = [(g, h) for g, h in found if str(h.get("command")).startswith(launcher)]
    if not ours:
        return "no longer registers guardhook"
    for group, handler in ours:
        mode = str(handler["command"])[len(launcher) :]
        closed = handler.get("onFailure") == "block" or mode == "observe"
        whole = group.get("matcher", "") in ("", "*") and not any(
            handler.get(k) for k in ("if", "async", "asyncRewake")
        )
        told = handler.get("args") in (None, [], [_STRICT[0]])
        if (mode == "enforce" or (several and mode == "observe")) and closed and whole and told:
            return None
    return "no longer registers guardhook as it was installed (for every call, enforcing, failing closed)"


def _usable(handler: object) -> bool:
    """Whether the client takes a handler for one."""
    if not isinstance(handler, dict) or handler.get("type") not in _TYPES:
        return False
    if handler["type"] == "command" and not isinstance(handler.get("command"), str):
        return False
    timeout = handler.get("timeout", 1)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        return False
    return handler.get("onFailure", "block") in ("block", "continue")


def _deny(reason: str) -> Verdict:
    return Verdict("deny", printable(reason), POLICY)


def _registered(data_folder: str, dialect: str, path: str) -> tuple[bool, bool]:
    """Whether guardhook is registered in this file, and whether in others for this harness as well."""
    try:
        lines = _read(f"{data_folder}/{REGISTRATIONS}").decode("utf-8", "replace").splitlines()
    except OSError:
        return False, False
    known = [line.split("\t")[-1] for line in lines if line.startswith(f"{dialect}\t")]
    here = real(path)  # the client may name the file by another way that leads to it
    return any(one == path or real(one) == here for one in known), len(known) > 1


def _read(path: str) -> bytes:
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    try:
        if not S_ISREG(posix.fstat(fd).st_mode):
            raise OSError(22, "not a regular file")
        return posix.read(fd, _MOST)
    finally:
        posix.close(fd)
