"""What all reading commands share: options, opening the store, telling its errors, where to print."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import click

from guardhook.commands import progress, rollout_shared, standing_shared
from guardhook.commands.folders import mentions, resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders
from guardhook.store import (
    Ambiguous,
    BadQuery,
    Corrupt,
    Filter,
    Missing,
    NotFound,
    Store,
    StoreError,
    open_store,
    schema,
)
from guardhook.store.jsonout import pretty
from guardhook.store.query import IDLE_SECONDS
from guardhook.views.text import Paint

F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 80
_FAR = 1 << 53  # no number of steps or traces is larger, and SQLite and JSON can say this one


class Number(click.ParamType):  # type: ignore[type-arg]
    """A number as people write it: `25`, `1e2`, `0x20`; nothing is 0."""

    name = "number"

    def __init__(self, *, least: float | None = None, most: float | None = None, whole: bool = True) -> None:
        self.least = least
        self.most = most
        self.whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | int:
        if isinstance(value, str):
            value = self._parse(value.strip(), param, ctx)
        if self.whole and value != int(value):
            self.fail(f"{value} is no whole number", param, ctx)
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            bounds = f"at least {self.least:g}" if self.most is None else f"between {self.least:g} and {self.most:g}"
            self.fail(f"it must be {bounds}" if abs(value) > _FAR else f"{value} is not {bounds}", param, ctx)
        return max(-_FAR, min(int(value), _FAR)) if self.whole else value

    def _parse(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            if text[:2].lower() in ("0x", "0o", "0b") and "_" not in text:
                return int(text, 0)
            value = float(text) if text else 0.0
        except ValueError:
            value = float("nan")
        if value - value != 0.0 or "_" in text:
            self.fail(f"{text!r} is no number", param, ctx)
        return value


def directory(function: F) -> F:
    return click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")(function)  # fmt: skip


def as_json(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")(function)


def project(function: F) -> F:
    return click.option(
        "--project",
        is_flag=False,
        flag_value=".",
        default=None,
        metavar="[DIR]",
        help="Only traces of this project (without DIR: the current one).",
    )(function)


def filters(function: F) -> F:
    """The narrowing options: --status --agent --tag --session --since --project."""
    for option in (
        click.option("--since", metavar="TIME", help="Started since a date (2026-08-16) or for a while (30d, 12h)."),
        click.option("--session", metavar="ID", help="The session id or its start."),
        click.option("--tag", metavar="TAG", help="Exactly this tag."),
        click.option("--agent", metavar="TEXT", help="Part of the agent's name."),
        click.option("--status", metavar="STATUS", help="running, completed, failed or timeout."),
    ):
        function = option(function)
    return project(function)


def narrowed(
    store_now: float,
    json_wanted: bool,
    *,
    status: str | None = None,
    agent: str | None = None,
    tag: str | None = None,
    session: str | None = None,
    since: str | None = None,
    project: str | None = None,
) -> Filter:
    """The filter that the options mean. An empty value is a mistake, never `any`."""
    given = {
        "--status": status,
        "--agent": agent,
        "--tag": tag,
        "--session": session,
        "--since": since,
        "--project": project,
    }
    for name, value in given.items():
        if value is not None and not value.strip():
            fail(f"{name} needs a value", as_json=json_wanted)
    bound = None
    if since is not None:
        from guardhook.store import instants

        try:
            bound = instants.since(since, int(store_now * 1_000_000))
        except BadQuery as error:
            fail(error.message, as_json=json_wanted)
    return Filter(
        status=status, agent=agent, tag=tag, session=session, since_us=bound,
        project=None if project is None else project_root(project, as_json=json_wanted),
    )  # fmt: skip


def chosen_of(known: Sequence[str], text: str | None, *, as_json: bool = False) -> tuple[str, ...] | None:
    """The names that `--fields` gives, each once; None where it is not given."""
    if text is None:
        return None
    chosen = tuple(dict.fromkeys(f.strip() for f in text.split(",") if f.strip()))
    unknown = [f for f in chosen if f not in known]
    if not chosen:
        fail("--fields needs a value", as_json=as_json)
    if unknown:
        fail(f"no field {unknown[0]!r}; there are {', '.join(known)}", as_json=as_json)
    return chosen


def project_root(folder: str, *, as_json: bool = False) -> str:
    """The project that a folder belongs to, as hooks pin it; the folder itself when it belongs to none."""
    from guardhook.gate import roots

    try:
        path = os.path.abspath(os.path.expanduser(folder))
    except FileNotFoundError:
        fail("--project: the current folder is not there any more", as_json=as_json)
    return roots.find_root(path) or roots.real(path)


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """For commands that print without a store: a terminal that knows no Unicode gets escapes, and a reader may have seen enough (`| head`)."""
    _harmless_streams()
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """For commands whose status is an answer: it stays what it is when the reader has left (`| head`). What comes then goes nowhere."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _harmless_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def opened(directory: str | None, as_json: bool, *, nothing: object = None) -> Iterator[Store]:
    """The store, caught up. Whatever is wrong with it, or with an id, ends the command in the documented way.

    nothing: what to print with --json where nothing was ever recorded, for commands to which that is no failure.
    """
    _harmless_streams()
    try:
        folders = resolve(directory)
        store = open_store(
            folders, idle_seconds=idle_seconds(folders), progress=progress.Bar(), on_notice=say, temporary=True
        )
        rollout_shared.keep_up(store, folders)
        standing_shared.keep_up(store, folders)
    except Missing as error:
        if nothing is None:
            fail(error.message, code=1, as_json=as_json)
        if as_json:
            print_json(nothing)
        else:
            say(error.message)
        raise SystemExit(0) from None
    except StoreError as error:
        fail(error.message, as_json=as_json)
    try:
        with store:
            yield store
    except NotFound as error:
        known = ["`guardhook list` shows the ids of traces; the whole id of a session names its trace, too"]
        fail(error.message, code=1, as_json=as_json, hints=known if error.message.startswith("no trace ") else ())
    except Ambiguous as error:
        fail(error.message, hints=error.candidates, as_json=as_json)
    except StoreError as error:
        fail(error.message, as_json=as_json)
    except sqlite3.DatabaseError as error:
        _broken(store.path, error, as_json)
    except BrokenPipeError:
        # The reader has seen enough (`| head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


def _broken(path: str, error: sqlite3.DatabaseError, as_json: bool) -> NoReturn:
    """Damage that shows only while reading: the file goes aside, so that the next command rebuilds it."""
    told = schema.told(error, path)
    if not isinstance(told, Corrupt):
        fail(told.message, as_json=as_json)
    try:
        kept = schema.set_aside(path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    except OSError:
        fail(told.message, as_json=as_json)
    fail(
        f"{path} was damaged; it is kept as {kept}", code=1, as_json=as_json,
        hints=["run the command again: the store is rebuilt from the journal"],
    )  # fmt: skip


def idle_seconds(folders: Folders) -> float:
    """After how long without an event a running trace counts as timed out: `[capture] idle_minutes` of config.toml. A file that can't be read says nothing."""
    if not mentions(folders, b"idle_minutes"):
        return IDLE_SECONDS
    from guardhook.policy import settings

    try:
        minutes = settings.read(folders).get("capture.idle_minutes")
    except settings.SettingsError:
        return IDLE_SECONDS
    if isinstance(minutes, (int, float)) and not isinstance(minutes, bool) and 0 < minutes < 1e6:
        return minutes * 60.0
    return IDLE_SECONDS


def width() -> int:
    """Columns of the terminal; 80 in a pipe, or what COLUMNS says."""
    try:
        given = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        given = 0
    if given > 0:
        return min(given, 1000)
    if sys.stdout.isatty():
        with contextlib.suppress(OSError):
            return os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH
    return WIDTH


def paint() -> Paint:
    """Colours on a terminal, unless NO_COLOR is set or it is a dumb one."""
    return Paint(sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def print_json(value: object) -> None:
    sys.stdout.write(pretty(value) + "\n")
    sys.stdout.flush()
