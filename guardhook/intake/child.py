"""Running a program as if nobody stood between it and its caller: descriptors, terminal, process group and signals stay what they are.

The program stays in the wrapper's process group, so that the terminal's Ctrl-C and Ctrl-Z reach it as they would without a wrapper. Signals that somebody sends to
the wrapper alone are passed on. Which of both a signal was is told by the kernel where it says who sent it (Linux); elsewhere those that a terminal
can send are taken to be the terminal's while the wrapper is its foreground job.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

POLL_SECONDS = 0.2
_DEADLY = (signal.SIGTERM, signal.SIGHUP)  # after which a program that goes on is killed
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_PASSED_ON = (*_OF_TERMINALS, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)
_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
# Python ignores these two; the program must not inherit that.
_PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)
_SI_KERNEL = 0x80  # Linux: the kernel itself sent it, such as the terminal driver


class NotStarted(Exception):
    """The program could not be started; the message says why."""


class Ended:
    """How a program ended. code: as the shell would say it, 128 + number for signals."""

    def __init__(self, status: int) -> None:
        self.signal: str | None = None
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            self.code = 128 + number
            try:
                self.signal = signal.Signals(number).name
            except ValueError:  # a real-time one
                self.signal = f"signal {number}"
        else:
            self.code = os.WEXITSTATUS(status)


def run(
    words: Sequence[str], env: dict[str, str], *, grace: float | None, tick: Callable[[], None], last: bool = False
) -> tuple[Ended, float]:
    """Runs the program to its end. Gives how it ended and how many seconds it ran.

    tick is called every POLL_SECONDS. grace: seconds after a SIGTERM or SIGHUP that was passed on until the program is killed, None for never.
    last: this process only reports after that. A signal meant for the program, such as a second Ctrl-C, which comes when that has ended, is ignored then.
    Raises NotStarted.
    """
    # What the caller ignores (nohup) stays ignored, in the program too.
    watched = [number for number in _PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]
    # Where the caller ignores this one, the kernel would forget how the program ended.
    children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        with _inbox([*watched, signal.SIGCHLD]) as inbox:
            try:
                return _watch(words, env, inbox, grace, tick)
            finally:
                if last:
                    for number in watched:
                        signal.signal(number, signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGCHLD, children or signal.SIG_DFL)


def _watch(
    words: Sequence[str], env: dict[str, str], inbox: _Inbox, grace: float | None, tick: Callable[[], None]
) -> tuple[Ended, float]:
    begun = time.monotonic()
    pid = _spawn(list(words), env, inbox.mask)
    deadline: float | None = None
    while True:
        found = inbox.wait(POLL_SECONDS)
        if found is not None and found[0] != signal.SIGCHLD:
            number, of_terminal = found
            if not of_terminal:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                if grace is not None and deadline is None and number in _DEADLY:
                    deadline = time.monotonic() + grace
        status = _reap(pid)
        if status is not None:
            return Ended(status), time.monotonic() - begun
        if deadline is not None and time.monotonic() >= deadline:
            deadline = None
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        tick()


def _spawn(words: list[str], env: dict[str, str], mask: set[int] | None) -> int:
    """Starts the program with the caller's own signal settings and every descriptor that it would have inherited."""
    more: dict[str, object] = {"setsigdef": _PYTHONS}
    if mask is not None:
        more["setsigmask"] = mask
    try:
        return os.posix_spawnp(words[0], words, env, **more)  # type: ignore[arg-type]
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise NotStarted(f"{words[0]}: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte
        raise NotStarted(f"{words[0]}: {error}") from None
    # A script that does not name its interpreter is the shell's, as for every other program that runs commands.
    path = shutil.which(words[0]) or words[0]
    try:
        return os.posix_spawn("/bin/sh", ["sh", path, *words[1:]], env, **more)  # type: ignore[arg-type]
    except OSError as error:
        raise NotStarted(f"{words[0]}: {error.strerror or error}") from None


def _reap(pid: int) -> int | None:
    """The wait status once the program has ended. When it was stopped at the terminal, so is the wrapper, until both go on."""
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not found or os.WIFCONTINUED(status):
            if not found:
                return None
            continue
        if not os.WIFSTOPPED(status):
            return status
        number = os.WSTOPSIG(status)
        if number in _STOPS and _has_terminal():
            time.sleep(0.02)  # Ctrl-Z stopped both; if `fg` was quicker than this report, it is stale
            again, now = os.waitpid(pid, os.WNOHANG | os.WCONTINUED)
            if again and not os.WIFCONTINUED(now):
                return now
            if not again:
                os.kill(os.getpid(), number)  # of no effect where no shell could make it go on again
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


# --- signals -------------------------------------------------------------------------------------------------------


class _Inbox(Protocol):
    """Signals that were sent to this process, one at a time."""

    mask: set[int] | None  # the signal mask that the program must get; None: this process's own

    def wait(self, seconds: float) -> tuple[int, bool] | None:
        """(number, whether the terminal sent it to the whole process group), None when there was none for so long."""
        raise NotImplementedError

    def close(self) -> None:
        """Puts back what was there before. Signals that nobody took until now are forgotten."""
        raise NotImplementedError


class _Waited:
    """Signals are blocked and asked for, which also tells who sent them.

    Waiting has no limit of time: CPython's sigtimedwait makes up a signal when this process was stopped (Ctrl-Z) while it waited. A SIGCHLD from time to time ends it.
    """

    def __init__(self, numbers: set[int]) -> None:
        self._numbers = numbers
        self._over = threading.Event()
        self.mask: set[int] | None = set(signal.pthread_sigmask(signal.SIG_BLOCK, numbers))
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        self._ticking.start()

    def _tick(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            os.kill(os.getpid(), signal.SIGCHLD)

    def wait(self, seconds: float) -> tuple[int, bool] | None:
        info = signal.sigwaitinfo(self._numbers)
        return info.si_signo, info.si_code == _SI_KERNEL and info.si_signo in _OF_TERMINALS

    def close(self) -> None:
        self._over.set()
        self._ticking.join()
        while signal.sigtimedwait(self._numbers, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask or set())


class _Handled:
    """Signals by handlers, where they can't be asked for."""

    mask: set[int] | None = None

    def __init__(self, numbers: set[int]) -> None:
        self._came: list[int] = []
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        self._before = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._kept = {n: signal.signal(n, lambda number, frame: self._came.append(number)) for n in numbers}

    def wait(self, seconds: float) -> tuple[int, bool] | None:
        if not self._came:
            select.select([self._wake], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 512)
        if not self._came:
            return None
        number = self._came.pop(0)
        return number, number in _OF_TERMINALS and _in_foreground()

    def close(self) -> None:
        for number, handler in self._kept.items():
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)
        signal.set_wakeup_fd(self._before)
        os.close(self._wake)
        os.close(self._woken)


def _in_foreground() -> bool:
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(fd)


@contextlib.contextmanager
def _inbox(numbers: list[int]) -> Iterator[_Inbox]:
    inbox: _Inbox = _Waited(set(numbers)) if sys.platform == "linux" else _Handled(set(numbers))
    try:
        yield inbox
    finally:
        inbox.close()
