"""Running a command with a controlling terminal of its own, and typing into it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# The person-at-a-terminal checks look at real ancestors, and whoever runs the tests may be an agent: these are replaced.
ALONE = """
import guardhook.commands.person as person
person.ancestors = lambda *a, **k: []
from guardhook.__main__ import main
main()
"""
REAL = "from guardhook.__main__ import main; main()"
PROMPT = re.compile(r"Type `([^`]+)`")


class Ran:
    """What a command did: status, its streams, and all that stood on the terminal."""

    def __init__(self, status: int, stdout: str, stderr: str, screen: str) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.screen = screen

    def __repr__(self) -> str:
        return f"status={self.status} stdout={self.stdout!r} stderr={self.stderr!r} screen={self.screen!r}"


def environment(home: Path, **more: str) -> dict[str, str]:
    clean = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(home), "LANG": "C.UTF-8"}
    return {**clean, "PYTHONPATH": str(REPOSITORY), **more}


def typed(phrase: str) -> str:
    """What a person types who agrees."""
    return phrase + "\n"


def at_terminal(
    words: list[str],
    env: dict[str, str],
    answer: Callable[[str], str] = typed,
    *,
    code: str = ALONE,
    stdin: str = "",
    ahead: str = "",
    cwd: Path | None = None,
) -> Ran:
    """Runs `guardhook WORDS` in a session of its own. answer(phrase) is what is typed at the prompt; ahead is typed before."""
    master, slave = pty.openpty()
    if ahead:
        os.write(master, ahead.encode())
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=cwd,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        pass_fds=(slave,),
    )
    os.close(slave)
    assert process.stdin is not None
    process.stdin.write(stdin.encode())
    process.stdin.close()
    process.stdin = None
    screen = b""
    answered = False
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready = select.select([master], [], [], 0.05)[0]
        if ready:
            try:
                screen += os.read(master, 65536)
            except OSError:  # the last process with the terminal ended
                break
            match = PROMPT.search(screen.decode("utf-8", "replace"))
            if match and not answered and b"as it is: " in screen:
                answered = True
                os.write(master, answer(match[1]).encode())
        elif process.poll() is not None:
            break
    stdout, stderr = process.communicate(timeout=30)
    os.close(master)
    return Ran(process.returncode, stdout.decode(), stderr.decode(), screen.decode("utf-8", "replace"))


def plain(words: list[str], env: dict[str, str], *, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    """Runs `guardhook WORDS` with no controlling terminal at all."""
    done = subprocess.run(
        [sys.executable, "-m", "guardhook", *words],
        input=stdin,
        capture_output=True,
        env=env,
        cwd=cwd,
        timeout=60,
        check=False,
        start_new_session=True,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), "")
