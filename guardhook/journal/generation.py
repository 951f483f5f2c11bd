"""Raising the journal's generation: whoever rewrites or removes files does it first, so that stores are made anew from what is there."""

from __future__ import annotations

import os

from guardhook.journal import read


def advance(journal: str) -> int:
    """Raises the generation by one, durably, and gives it. Raises OSError."""
    number = read.generation(journal) + 1
    temporary = f"{journal}/{read.GENERATION}.{os.getpid()}.{os.urandom(4).hex()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(f"{number}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, f"{journal}/{read.GENERATION}")
    return number
