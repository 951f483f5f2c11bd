"""The last act of the hook: the answer in one write per stream, the verdict byte for the launcher, and out."""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from guardhook.core.verdict import Answer

BLOCK_STATUS = 2  # the exit status that most harnesses read as a block


def finish(answer: Answer, verdict_fd: int | None, *, enforce: bool = True) -> NoReturn:
    """Writes the answer and ends the process at once, without interpreter teardown.

    If stdout can't take a JSON that the exit status alone does not express (an ask), the process blocks instead.
    """
    status = answer.exit
    if answer.stderr:
        _write(2, answer.stderr)
    if answer.stdout and not _write(1, answer.stdout) and status == 0 and enforce:
        # Whoever asked for silence or an ask can't be told: block. The line on stderr may be lost as well.
        _write(2, b"guardhook: blocked, the answer could not be written\n")
        status = BLOCK_STATUS
    if verdict_fd is not None:
        _write(verdict_fd, b"V")
    posix._exit(status)


def _write(fd: int, data: bytes) -> bool:
    try:
        while data:
            data = data[posix.write(fd, data) :]
    except (OSError, ValueError):
        return False
    return True
