"""Which process is the harness, for payloads without a session id: one file per harness process and folder."""

from __future__ import annotations

import posix

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ash", "ksh", "busybox", "env", "timeout"))
_LAUNCHERS = (b".enforce", b".observe")
_STEPS = 6


def stand_in(cwd: str | None) -> str:
    """A text that is the same for all hooks of one harness process in one folder, and for no other harness process.

    Linux: the process id and start time of the nearest ancestor that is neither our launcher nor a shell started for one command. Where there is no
    /proc, the login session's id stands for it: weaker, since two harnesses in one terminal share it.
    """
    where = cwd if cwd is not None else _cwd()
    found = ancestor()
    if found is None:
        return f"none\0session {posix.getsid(0)}\0{where}"
    return f"none\0process {found[0]} {found[1]}\0{where}"


def ancestor() -> tuple[int, str] | None:
    """Process id and start time (clock ticks since boot) of the harness; None where /proc does not tell."""
    pid = posix.getppid()
    result: tuple[int, str] | None = None
    for _ in range(_STEPS):
        fields = _stat(pid)
        if fields is None:
            return result
        result = (pid, fields[19])
        parent = int(fields[1])
        if parent <= 1 or not _passing(pid):
            return result
        pid = parent
    return result


def _passing(pid: int) -> bool:
    """Whether a process only stands between the harness and this one."""
    words = _slurp(f"/proc/{pid}/cmdline").split(b"\0")[:4]
    if any(word.endswith(_LAUNCHERS) for word in words[:2]) or _executable(pid).endswith(_LAUNCHERS):
        return True
    name = words[0].rpartition(b"/")[2].decode("ascii", "replace")
    if name in ("env", "timeout"):
        return True
    return name in _SHELLS and len(words) > 2 and words[1][:1] == b"-" and b"c" in words[1]


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from `state` on. The command name before them may hold anything, so the last bracket counts."""
    text = _slurp(f"/proc/{pid}/stat").decode("ascii", "replace")
    fields = text[text.rfind(")") + 1 :].split()
    return fields if len(fields) > 19 and fields[1].isdecimal() else None


def _executable(pid: int) -> bytes:
    try:
        return posix.readlink(b"/proc/%d/exe" % pid)
    except OSError:
        return b""


def _slurp(path: str) -> bytes:
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(fd, 8192)
    except OSError:
        return b""
    finally:
        posix.close(fd)


def _cwd() -> str:
    try:
        return posix.getcwd()
    except OSError:
        return ""
