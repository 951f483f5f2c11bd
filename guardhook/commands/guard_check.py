"""`guardhook guard check`: the gate for scripts, with the one question that only a person can answer."""

from __future__ import annotations

import os
import select
import termios
import time

import click

from guardhook.commands import folders as folders_module
from guardhook.core.jsontext import printable
from guardhook.gate import check

ASK_SECONDS = 60.0


@click.command("check")
@click.option("--dir", "directory", help="Folder with configuration, policies and journal.")
@click.option("--dialect", help="Read a raw hook payload as this dialect.")
@click.option(
    "--allow-empty",
    is_flag=True,
    help="Allow when no policy is enabled, the folder of --dir is missing, or nothing can be recorded.",
)
@click.option("--json", "as_json", is_flag=True, help="Accepted for symmetry: the verdict is always JSON.")
def command(directory: str | None, dialect: str | None, allow_empty: bool, as_json: bool) -> None:
    """Judge the step or hook payload on stdin. Status 0: go on. Status 2: stop.

    A step is {"name": …, "step_type": "tool_call", "input": {…}}. When a policy asks for a review and there is a
    terminal, a person is asked there; without one the answer is no.
    """
    status = check.run(
        directory, dialect, allow_empty=allow_empty, folders=folders_module.resolve(directory), ask=ask_on_terminal
    )
    os._exit(status)


def ask_on_terminal(reason: str, seconds: float = ASK_SECONDS) -> bool | None:
    """Asks on the controlling terminal; only `y` or `yes` approves. None when there is no terminal to ask on."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not os.isatty(2) and not os.isatty(1):
            return None
        if os.tcgetpgrp(terminal) != os.getpgrp():
            return None  # in the background nobody can answer, and asking would stop this process
        # What was typed before the question, or fed in by whoever started this, is no answer to it.
        termios.tcflush(terminal, termios.TCIFLUSH)
        question = f"guardhook: review required: {printable(reason)}\nAllow this? [y/N] "
        os.write(terminal, question.encode("utf-8", "replace"))
        answer = _line(terminal, time.monotonic() + seconds)
    except (OSError, termios.error):
        return None
    finally:
        os.close(terminal)
    return answer.strip().lower() in ("y", "yes")


def _line(terminal: int, deadline: float) -> str:
    typed = b""
    while b"\n" not in typed and len(typed) < 256:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            os.write(terminal, b"\nguardhook: nobody answered in time, so: no\n")
            return ""
        chunk = os.read(terminal, 256)
        if not chunk:
            return ""
        typed += chunk
    return typed.decode("utf-8", "replace")
