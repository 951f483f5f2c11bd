"""How commands speak: results on stdout, words for people on stderr, one JSON shape for errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from guardhook.core.jsontext import dumps, printable


class Refused(click.ClickException):
    """A command that will not or can't do what was asked. exit_code: 1 failed, 2 usage or refused (contract of the CLI)."""

    def __init__(self, message: str, *, hints: Sequence[str] = (), code: int = 2, as_json: bool = False) -> None:
        super().__init__(message)
        self.hints = tuple(hints)
        self.exit_code = code  # type: ignore[misc]
        self.as_json = as_json

    def show(self, file: object = None) -> None:
        if self.as_json:
            emit({"ok": False, "error": self.message, "hints": list(self.hints)})
            return
        say(f"guardhook: {self.message}")
        for hint in self.hints:
            say(f"  {hint}")


def fail(message: str, *, hints: Sequence[str] = (), code: int = 2, as_json: bool = False) -> NoReturn:
    """Ends the command: one line on stderr, or `{"ok": false, "error", "hints"}` on stdout with as_json."""
    raise Refused(message, hints=hints, code=code, as_json=as_json)


def emit(value: object) -> None:
    """One line of JSON on stdout."""
    click.echo(dumps(value))


def say(text: str) -> None:
    """One line for a person on stderr; control characters in it become visible escapes. When nobody listens any more, what a command does goes on all the same."""
    if sys.stderr is None:  # closed by whoever started us
        return
    try:
        print(printable(text, 4000), file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
