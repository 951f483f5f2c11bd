"""Raising the journal's generation: whoever rewrites or removes files does it first, so that stores are made anew from what is there."""

from __future__ import annotations

from guardhook.core import atomic
from guardhook.journal import read


def advance(journal: str) -> int:
    """Raises the generation by one, durably, and gives it. Raises OSError."""
    number = read.generation(journal) + 1
    atomic.replace(f"{journal}/{read.GENERATION}", f"{number}\n".encode("ascii"))
    return number
