"""What the commands about rollouts share: settings, the rollout folder, and naming a run or a file."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from guardhook.commands.folders import mentions
from guardhook.commands.output import fail
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.policy.settings import Settings
    from guardhook.rollout.load import Rollout
    from guardhook.rollout.options import Options
    from guardhook.rollout.runs import RunRef
    from guardhook.store import Store

F = TypeVar("F", bound=Callable[..., Any])
ENVIRONMENT = "GUARDHOOK_ROLLOUT_DIR"


def headless(function: F) -> F:
    return click.option("--allow-headless", is_flag=True, help="Take files that don't begin with run.started, to save what is left of them.")(function)  # fmt: skip


def settings(folders: Folders, as_json: bool) -> Settings:
    """config.toml; one that can't be used ends the command."""
    from guardhook.policy.settings import SettingsError, read

    try:
        return read(folders)
    except SettingsError as error:
        fail(str(error), as_json=as_json)


def options(found: Settings, as_json: bool, *, tenant: str | None = None) -> Options:
    """What `[forensics]` asks for; a value that means nothing ends the command."""
    from guardhook.rollout.options import BadOptions, of

    try:
        return of(found, tenant=tenant)
    except BadOptions as error:
        fail(str(error), as_json=as_json)


def tenant(found: Settings) -> str | None:
    """To whom runs belong, as `[identity]` says."""
    value = found.get("identity.tenant")
    return value if isinstance(value, str) and value.strip() else None


def rollout_dir(found: Settings, as_json: bool) -> str | None:
    """The rollout folder: the environment's, else config.toml's. Blank is none."""
    given = os.environ.get(ENVIRONMENT, "").strip()
    if not given:
        value = found.get("forensics.rollout_dir")
        if value is not None and not isinstance(value, str):
            fail("[forensics] rollout_dir in config.toml is no text", as_json=as_json)
        given = (value or "").strip()
    return os.path.abspath(os.path.expanduser(given)) if given else None


def turns(found: Settings, as_json: bool) -> bool:
    """Whether `[forensics] close_on` makes every turn a rollout of its own."""
    value = found.get("forensics.close_on", "session_end")
    if value not in ("session_end", "stop"):
        fail(f"[forensics] close_on in config.toml: {value!r}; there are session_end and stop", as_json=as_json)
    return value == "stop"


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
    from guardhook.commands import reading
    from guardhook.commands.folders import resolve

    if is_file(name):
        return from_file(name, as_json, allow_headless=allow_headless)
    found: list[Rollout] = []
    with reading.opened(directory, as_json) as store:
        found.append(from_store(store, resolve(directory), name, as_json))
    return found[0]


def keep_up(store: Store, folders: Folders) -> None:
    """Brings the rollout folder up to date where one is set. What goes wrong is told, and never ends the command that was asked for.

    Costs a look at two files where none is set.
    """
    if not os.environ.get(ENVIRONMENT, "").strip() and not mentions(folders, b"rollout_dir"):
        return
    from guardhook.commands import reading
    from guardhook.commands.output import Refused, say
    from guardhook.rollout.live import sync
    from guardhook.store import StoreError

    try:
        found = settings(folders, False)
        target = rollout_dir(found, False)
        if target is None:
            return
        chosen = options(found, False, tenant=tenant(found))
        bar = reading.Bar("writing rollouts", least=2)
        report = sync(store, folders, target, chosen, turns=turns(found, False), progress=bar)
    except (StoreError, Refused, OSError) as error:
        say(
            f"guardhook: the rollout folder could not be brought up to date: {getattr(error, 'message', None) or error}"
        )
        return
    if report.problems:
        others = f" (and {len(report.problems) - 1} others)" if len(report.problems) > 1 else ""
        say(f"guardhook: {target}: a rollout could not be written: {report.problems[0]}{others}")
