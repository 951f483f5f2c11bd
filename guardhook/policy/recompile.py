"""What the hook program starts when its compiled policies are stale: `guardhook policy compile --stdout …`.

The hook waits for it, so it goes past the command framework. The bytes go to stdout, since the hook needs them now, and
into the data folder for the next time where that is possible.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from guardhook.core import limits
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.policy.compile import Redaction, Result

LONGEST_SECONDS = 30
FLAGS = ("--config", "--data", "--system", "--project")


class _TooSlow(BaseException):
    """Raised by the timer. Not an Exception, so that nothing on the way takes it for a fault of its own."""


def project(folders: Folders, root: str) -> Result:
    """The compiled policies of a project; none of them, with a note, where they take more processor time than a hook may wait for.

    The note is kept like any other result: a repository must not make its user wait at every call.
    """
    from guardhook.policy import compile as compiler

    def stop(signum: int, frame: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    try:
        # Again and again: raised where nobody listens (in a destructor, say), a single one would be lost.
        signal.setitimer(signal.ITIMER_PROF, limits.COMPILE_SECONDS_PROJECT, limits.COMPILE_SECONDS_PROJECT / 4)
        try:
            return compiler.compile_project(folders, root)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _TooSlow:
        return compiler.project_without(
            folders, root, f"they take more than {limits.COMPILE_SECONDS_PROJECT:g} s to compile; have fewer of them"
        )
    finally:
        signal.signal(signal.SIGPROF, before)


def main(words: list[str], redaction: Redaction) -> int:
    """words are pairs of flag and value after `policy compile --stdout`; redaction makes the frozen rows of the journal, asked for
    only where they are needed. Returns 0; 2 with one line on stderr for wrong words.
    """
    given = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not set(given) <= set(FLAGS) or not {"--config", "--data", "--system"} <= set(given):
        print("guardhook: policy compile --stdout is for the hook program only", file=sys.stderr)
        return 2
    # The hook that started this may be gone by now: nobody else ends it if it hangs.
    signal.alarm(LONGEST_SECONDS)
    try:
        return _compile(given, redaction)
    finally:
        signal.alarm(0)


def _compile(given: dict[str, str], redaction: Redaction) -> int:
    from guardhook.policy import compile as compiler

    folders = Folders(given["--config"], given["--data"], given["--system"])
    if "--project" in given:
        result = project(folders, given["--project"])
    else:
        result = compiler.compile_main(folders, redact=redaction)
    with contextlib.suppress(compiler.CompileError):
        compiler.write(result)
    sys.stdout.buffer.write(result.blob)
    sys.stdout.buffer.flush()
    return 0
