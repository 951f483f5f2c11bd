"""Rollouts by what a person calls them: a file, or a run of the journal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail
from guardhook.commands.rollout_shared import options, settings
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.rollout.load import Rollout
    from guardhook.rollout.runs import RunRef
    from guardhook.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def headless(function: F) -> F:
    return click.option("--allow-headless", is_flag=True, help="Take files that don't begin with run.started, to save what is left of them.")(function)  # fmt: skip


def is_file(name: str) -> bool:
    """Whether a word names a file: it looks like a path, or there is one. Runs, traces and sessions are named by ids."""
    return "/" in name or name.endswith(".jsonl") or os.path.lexists(name)


def from_file(name: str, as_json: bool, *, allow_headless: bool = False) -> Rollout:
    """A rollout file; what it breaks ends the command with the line."""
    from guardhook.rollout.load import RolloutError, load

    try:
        return load(os.path.expanduser(name), allow_headless=allow_headless)
    except RolloutError as error:
        fail(error.message, code=1, as_json=as_json)


def from_store(store: Store, folders: Folders, name: str, as_json: bool) -> Rollout:
    """A run of the journal, rendered. Raises StoreError, which `reading.opened` tells."""
    from guardhook.rollout.export import lines
    from guardhook.rollout.load import RolloutError, load_lines
    from guardhook.rollout.render import render
    from guardhook.rollout.runs import find_in

    ref = find_in(store, name)
    try:
        return load_lines(lines(render(folders, ref, options=options(settings(folders, as_json), as_json))), ref.run_id)
    except RolloutError as error:
        hints = ["`guardhook rollout export RUN DIR --by turn` makes a rollout of each of its turns"]
        fail(f"{ref.run_id} as a rollout: {error.reason}", hints=hints, code=1, as_json=as_json)


def digest(folders: Folders, ref: RunRef, as_json: bool) -> str:
    """SHA-256 of the bytes of a run's rollout. Raises StoreError."""
    import hashlib

    from guardhook.rollout.export import lines
    from guardhook.rollout.render import render

    found = hashlib.sha256()
    for raw in lines(render(folders, ref, options=options(settings(folders, as_json), as_json))):
        found.update(raw)
    return found.hexdigest()


def tolerate() -> None:
    """A terminal that knows no Unicode gets escapes, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def named(name: str, directory: str | None, as_json: bool, *, allow_headless: bool = False) -> Rollout:
    """A rollout by what a person calls it: a file, or a run of the journal."""
    if is_file(name):
        return from_file(name, as_json, allow_headless=allow_headless)
    found: list[Rollout] = []
    with reading.opened(directory, as_json) as store:
        found.append(from_store(store, resolve(directory), name, as_json))
    return found[0]
