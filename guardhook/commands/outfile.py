"""Files that commands write for a person: whole or not at all, and for their owner only unless they were there with other rights."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO

from guardhook.commands.output import fail


@contextlib.contextmanager
def binary(path: str, *, replace: bool = True, as_json: bool = False) -> Iterator[IO[bytes]]:
    """A file to write, which gets its name when the block ends well. A pipe or device is written as it is.

    replace: whether a file that is there may go. Ends the command with a clear line when it can't be written.
    """
    final = os.path.realpath(path)
    special = os.path.exists(final) and not os.path.isfile(final)
    if not replace and not special and os.path.lexists(path):
        fail(f"{path} is there already", hints=["--force replaces it"], as_json=as_json)
    written = final if special else f"{final}.{os.getpid()}.tmp"
    try:
        mode = os.stat(final).st_mode & 0o777 if os.path.isfile(final) else 0o600
        flags = os.O_WRONLY | (0 if special else os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0))
        file = os.fdopen(os.open(written, flags, mode), "wb")
    except OSError as error:
        fail(f"{path}: can't be written: {error.strerror}", code=1, as_json=as_json)
    try:
        with file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            os.replace(written, final)
    except OSError as error:
        _drop(written, special)
        fail(f"{path}: can't be written: {error.strerror}", code=1, as_json=as_json)
    except BaseException:
        _drop(written, special)
        raise


def _drop(path: str, special: bool) -> None:
    if not special:
        with contextlib.suppress(OSError):
            os.unlink(path)
