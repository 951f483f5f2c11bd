"""The question of `guard check` on a terminal: only an answer that follows it counts."""

from __future__ import annotations

import os
import pty
import select
import sys

CODE = """
import sys, time
from guardhook.commands.guard_check import ask_on_terminal
sys.stdin.readline()  # everything before this line was typed ahead
time.sleep(0.3)
print("RESULT", ask_on_terminal("because", seconds=float(sys.argv[1])), flush=True)
"""


def asked(ahead: bytes, answer: bytes, seconds: float) -> str:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", CODE, str(seconds)])
    said = b""
    try:
        os.write(terminal, b"start\n" + ahead)
        answered = False
        while b"RESULT" not in said or b"\n" not in said[said.index(b"RESULT") :]:
            if not select.select([terminal], [], [], 20)[0]:
                break
            try:
                said += os.read(terminal, 4096)
            except OSError:
                break
            if b"[y/N]" in said and not answered and answer:
                answered = True
                os.write(terminal, answer)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return said.partition(b"RESULT ")[2].split(b"\r")[0].decode()


def test_an_answer_after_the_question_counts() -> None:
    assert asked(b"", b"y\n", 20) == "True"
    assert asked(b"", b"n\n", 20) == "False"


def test_a_yes_that_was_typed_ahead_is_no_answer() -> None:
    """A script that fills the terminal's buffer before the question approved its own review."""
    assert asked(b"y\ny\n", b"", 0.5) == "False"
