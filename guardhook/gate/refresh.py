"""Rebuilding a stale compiled policy file: in this process where the compiler is at hand, else by the full program.

The unpacked hook program has no compiler: msgspec, regex and tomllib stay out of it. It starts the program `guardhook`
that lies beside it, with a clean environment, and takes the compiled policies from its stdout.
"""

from __future__ import annotations

import posix
import sys
import time

from guardhook.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.folders import Folders
    from guardhook.policy.compiled import Compiled

_MOST = 64 * 1024 * 1024
_TOO_LONG = f"compiling the policies took longer than {limits.RECOMPILE_SECONDS} seconds; `guardhook policy compile` does it ahead"


class RefreshError(Exception):
    """The policies could not be compiled; the message is for a person and names the file where one is at fault."""


def refresh(folders: Folders, program: str, project: str | None = None, deadline: float | None = None) -> Compiled:
    """Compiled policies, freshly made, and written to the data folder where that is possible. Raises RefreshError.

    program is the folder that the running program lies in; project is a project root, None for the other layers; deadline is a
    time.monotonic value, RECOMPILE_SECONDS from now unless given.
    """
    from guardhook.policy import compiled

    if deadline is None:
        deadline = time.monotonic() + limits.RECOMPILE_SECONDS
    lock, waited = _lock(folders.compiled, deadline)
    try:
        if waited:  # somebody else has just compiled
            try:
                found = compiled.load(folders) if project is None else compiled.load_project(folders, project)
                if found is not None:
                    return found
            except compiled.CompiledError:
                pass
        words = ["policy", "compile", "--stdout", "--config", folders.config, "--data", folders.data]
        words += ["--system", folders.system]
        if project is not None:
            words += ["--project", project]
        return compiled.load_bytes(_run(_compiler(program), words, deadline, lock))
    except compiled.CompiledError as error:
        raise RefreshError(f"the compiled policies are unusable: {error}") from None
    finally:
        if lock is not None:
            posix.close(lock)


def _lock(folder: str, deadline: float) -> tuple[int | None, bool]:
    """The right to compile, and whether it was waited for: ten hooks at once must not start ten compilers.

    Nothing is locked where nothing can be written. Raises RefreshError when the wait takes too long.
    """
    import fcntl

    try:
        try:
            posix.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        fd = posix.open(folder + "/.refresh", posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW, 0o600)
    except OSError:
        return None, False
    waited = False
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                posix.close(fd)
                raise RefreshError(_TOO_LONG) from None
            waited = True
            time.sleep(0.005)
            continue
        except OSError:  # a file system without locks
            return fd, False
        return fd, waited


def _compiler(program: str) -> list[str]:
    """The command line of the full program."""
    if getattr(sys, "frozen", False):
        beside = program + "/guardhook"
        if sys.executable.rpartition("/")[2] != "guardhook-hook":
            return [sys.executable]
        return [beside]
    package = __file__.rpartition("/guardhook/gate/")[0]  # not `program`: an installed hook script lies elsewhere
    code = f"import sys; sys.path.insert(0, {package!r}); from guardhook.__main__ import main; main()"
    # -P: without it `-c` puts the current folder, a repository's, before everything that is imported.
    return [sys.executable, "-E", "-P", "-c", code]


def _run(command: list[str], words: list[str], deadline: float, lock: int | None) -> bytes:
    """What the compiler prints. One that is too slow for this hook goes on alone, and its result serves the next one.

    It holds the lock meanwhile, so that hooks which come before it is done wait for it instead of starting others.
    """
    out_read, out_write = posix.pipe()
    err_read, err_write = posix.pipe()
    null = posix.open("/dev/null", posix.O_RDONLY)
    actions = [
        (posix.POSIX_SPAWN_DUP2, null, 0),
        (posix.POSIX_SPAWN_DUP2, out_write, 1),
        (posix.POSIX_SPAWN_DUP2, err_write, 2),
        # In place of whatever was inherited there: a compiler that outlives the hook must not hold the launcher's pipe.
        (posix.POSIX_SPAWN_DUP2, null if lock is None else lock, 3),
    ]
    # A fixed PATH and nothing of the caller's: the compiler must not be steered by what the gate guards.
    clean = {b"PATH": b"/usr/local/bin:/usr/bin:/bin", b"LANG": b"C.UTF-8"}
    try:
        pid = posix.posix_spawn(command[0], command + words, clean, file_actions=actions, setpgroup=0)
    except OSError as error:
        raise RefreshError(f"the policy compiler can't be started ({error.strerror}: {command[0]})") from None
    finally:
        posix.close(out_write)
        posix.close(err_write)
        posix.close(null)
    try:
        blob, complaint, done = _collect(out_read, err_read, deadline)
        status = _wait(pid, deadline) if done else None
        if status is None:
            pid = 0
            raise RefreshError(_TOO_LONG)
        pid = 0
        if status != 0:
            words_of_it = complaint.decode("utf-8", "replace").strip().splitlines()
            said = words_of_it[0].removeprefix("guardhook: ") if words_of_it else f"status {status}"
            raise RefreshError(f"the policies can't be used: {said}")
        return blob
    finally:
        posix.close(out_read)
        posix.close(err_read)
        if pid:
            _kill(pid)


def _collect(out: int, err: int, deadline: float) -> tuple[bytes, bytes, bool]:
    """Both streams until they end. False when the deadline came first."""
    posix.set_blocking(out, False)
    posix.set_blocking(err, False)
    parts: dict[int, list[bytes]] = {out: [], err: []}
    open_ends = {out, err}
    size = 0
    while open_ends:
        quiet = True
        for fd in tuple(open_ends):
            try:
                chunk = posix.read(fd, 1 << 20)
            except BlockingIOError:
                continue
            quiet = False
            if chunk:
                parts[fd].append(chunk)
                size += len(chunk)
            else:
                open_ends.discard(fd)
        if time.monotonic() > deadline or size > _MOST:
            return b"", b"", False
        if quiet:
            time.sleep(0.002)
    return b"".join(parts[out]), b"".join(parts[err]), True


def _wait(pid: int, deadline: float) -> int | None:
    while True:
        done, status = posix.waitpid(pid, posix.WNOHANG)
        if done:
            return posix.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.002)


def _kill(pid: int) -> None:
    try:
        posix.killpg(pid, 9)
        posix.waitpid(pid, 0)
    except OSError:
        pass
