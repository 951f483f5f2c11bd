"""rich, as we use it: no markup from data, no colours in pipes, widths as given."""

from __future__ import annotations

import errno
import os
from typing import IO

from rich.console import Console
from rich.text import Text

from guardhook.views.text import one_line

_STYLES = {"●": "cyan", "✔": "green", "✘": "red", "⧖": "yellow", "⚠": "yellow"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))  # rich would end the program as failed


def console(file: IO[str], width: int, *, colour: bool) -> Console:
    """A console that never looks at the environment: the caller has. A reader that left raises BrokenPipeError, as with `print`."""
    return _Console(
        file=file, width=width, force_terminal=colour, no_color=not colour, color_system="standard" if colour else None,
        highlight=False, markup=False, emoji=False, legacy_windows=False,
    )  # fmt: skip


def cell(text: str, columns: int) -> Text:
    """A table cell: one harmless line of at most this many columns, coloured by the status symbol that it starts with."""
    return Text(one_line(text, columns), style=_STYLES.get(text[:1], ""), no_wrap=True, overflow="ellipsis")
