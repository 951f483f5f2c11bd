"""What goes wrong with a harness's files, in words for the person who installs."""

from __future__ import annotations


class HarnessError(Exception):
    """Something a person must put right first. The message names the file; hints say what to do."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints
