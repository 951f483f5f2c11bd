"""A pause that a person asked for: reviews and the user's own policies stop blocking until it ends.

`guardhook pause` (guardhook.commands.pause) writes the file `pause` into the data folder. It is believed only when everything
about it holds: a plain file, not linked, closed to others, owned by this user or by root, made during this boot, not yet over
by the clock that counts from the boot (setting the wall clock moves nothing), at most MOST seconds long. Anything else counts as no pause.

What a pause never weakens: denials of the shipped, system and project layers, reviews of the system layer (unless root paused),
whatever concerns the guard itself, and faults. Where root installed guardhook for all users, only root's file counts.
Linux only: other systems have no boot id that can be read this cheaply, so there a pause is never believed.
"""

from __future__ import annotations

import posix
import sys
import time

from guardhook.core.verdict import BLOCKING, strictest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.verdict import Match, Verdict

FILE = "pause"
MAGIC = "guardhook pause 1"
MOST = 3600  # seconds
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MOST_BYTES = 1024
_KEYS = ("boot", "owner", "start", "end")
_OTHERS = "it is writable by others, or linked"


class Pause:
    """A pause that holds now. start and end: nanoseconds since the boot."""

    __slots__ = ("end", "owner", "start")

    def __init__(self, owner: int, start: int, end: int) -> None:
        self.owner = owner
        self.start = start
        self.end = end


class NotPaused(Exception):
    """There is a file, but no pause that holds. The message says why."""


def weaken(verdict: Verdict, data_folder: str) -> Verdict:
    """The verdict as it is while paused: the same object, unchanged where there is no pause. Never raises."""
    pause = current(data_folder)
    if pause is None:
        return verdict
    if verdict.mode != "observe":
        verdict.mode = "paused"
    if verdict.action not in BLOCKING or verdict.cause != "policy":
        return verdict
    if not any(m.policy == verdict.policy and m.action == verdict.action for m in verdict.matches):
        return verdict  # not said by a policy: the canary, the harness's own settings
    kept = [m for m in verdict.matches if not _weak(m, pause)]
    best = strictest(kept)
    if best is not None and best.action in BLOCKING:
        _cite(verdict, best, best.action, best.reason)
        return verdict
    lifted = strictest([m for m in verdict.matches if _weak(m, pause)])
    if lifted is not None:
        _cite(verdict, lifted, "warn", f"let through because a person paused guardhook: {lifted.reason}")
    return verdict


def current(data_folder: str) -> Pause | None:
    """The pause that holds now, None where there is none or it can't be believed. Never raises."""
    try:
        return examine(data_folder)
    except Exception:
        return None


def examine(data_folder: str) -> Pause | None:
    """As `current`, but says why a file is not believed. None: there is no file. Raises NotPaused."""
    try:
        fd = posix.open(
            data_folder + "/" + FILE, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotPaused(f"the pause file can't be read ({error.strerror})") from None
    try:
        info = posix.fstat(fd)
        folder = posix.lstat(data_folder)
        data = posix.read(fd, _MOST_BYTES)
    except OSError as error:
        raise NotPaused(f"the pause file can't be read ({error.strerror})") from None
    finally:
        posix.close(fd)
    _check_place(info, folder)
    return _parse(data, info.st_uid)


def _check_place(info: posix.stat_result, folder: posix.stat_result) -> None:
    me = posix.geteuid()
    if info.st_mode & 0o170000 != 0o100000 or info.st_nlink != 1 or info.st_mode & 0o022:
        raise NotPaused(_OTHERS)
    if folder.st_mode & 0o170000 != 0o040000 or folder.st_mode & 0o022 or folder.st_uid not in (0, me):
        raise NotPaused("the data folder is a link, or others may write to it")
    if info.st_uid == 0:
        return
    if info.st_uid != me or info.st_mode & 0o077:
        raise NotPaused("the pause file belongs to another user, or others may read it")
    if folder.st_uid != me or system_scope():
        raise NotPaused("guardhook was installed by root for all users, so only root may pause it")


def _parse(data: bytes, owner: int) -> Pause:
    lines = data.decode("ascii").split("\n")
    if len(lines) != 2 + len(_KEYS) or lines[0] != MAGIC or lines[-1]:
        raise NotPaused("the pause file is damaged")
    found: dict[str, str] = {}
    for name, line in zip(_KEYS, lines[1:-1], strict=True):
        key, _, found[name] = line.partition("=")
        if key != name:
            raise NotPaused("the pause file is damaged")
    numbers = [found[name] for name in ("owner", "start", "end")]
    if not all(n.isdecimal() and len(n) < 20 for n in numbers):
        raise NotPaused("the pause file is damaged")
    said, start, end = (int(n) for n in numbers)
    if said != owner:
        raise NotPaused("the pause file was made by another user")
    if found["boot"] != boot_id():
        raise NotPaused("the pause was made before this machine was started")
    if not 0 <= end - start <= MOST * 1_000_000_000:
        raise NotPaused("the pause file is damaged")
    if not start <= boot_time() < end:
        raise NotPaused("the pause is over")
    return Pause(owner, start, end)


def render(owner: int, start: int, end: int) -> bytes:
    """The content of the file; the inverse of reading it. Raises OSError where the boot id can't be read."""
    return f"{MAGIC}\nboot={boot_id()}\nowner={owner}\nstart={start}\nend={end}\n".encode("ascii")


def boot_id() -> str:
    """What tells this boot from every other one. Raises OSError."""
    fd = posix.open(BOOT_ID, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        text = posix.read(fd, 64).decode("ascii").strip()
    finally:
        posix.close(fd)
    if len(text) != 36:
        raise OSError(5, "no boot id")
    return text


def boot_time() -> int:
    """Nanoseconds since the boot, sleep included. Raises AttributeError where there is no such clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def system_scope() -> bool:
    """Whether this is a program that root placed for all users (its manifest is root's) and another user runs it."""
    if posix.geteuid() == 0:
        return False
    program = (
        sys.executable.rpartition("/")[0]
        if getattr(sys, "frozen", False)
        else __file__.rpartition("/guardhook/gate/")[0]
    )
    try:
        return posix.stat(program + "/MANIFEST").st_uid == 0
    except OSError:
        return False


def _weak(match: Match, pause: Pause) -> bool:
    if getattr(match.effect, "kind", "") == "guard_change":
        return False
    if match.layer == "user":
        return True
    return match.action == "require_review" and (match.layer != "system" or pause.owner == 0)


def _cite(verdict: Verdict, match: Match, action: str, reason: str) -> None:
    verdict.action = action
    verdict.policy = match.policy
    verdict.reason = reason
    verdict.suggest = match.suggest
    verdict.layer = match.layer
    verdict.span = match.span
