"""`guardhook dashboard`: the store at a glance, full screen."""

from __future__ import annotations

import sqlite3
import sys
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail
from guardhook.core.folders import Folders
from guardhook.store import Filter, StoreError, open_store
from guardhook.store.errors import Unusable

if TYPE_CHECKING:
    from guardhook.views.dashboard.facts import Facts

STEPS = 400


@click.command("dashboard")
@click.option("--refresh", type=reading.Number(least=1, most=2147483), default=5, show_default=True, metavar="SECONDS", help="How often to look anew.")  # fmt: skip
@reading.directory
def command(refresh: int, directory: str | None) -> None:
    """Show sessions under way, objections of the gate and numbers, full screen. q quits, r looks anew, Enter opens a trace."""
    folders = resolve(directory)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail("the dashboard needs a terminal", hints=["`guardhook stats` and `guardhook list` print the same things"])
    with reading.opened(directory, False):
        pass  # a store that can't be used is told before the screen is taken, and a long catch-up shows its bar

    from guardhook.views.dashboard.app import Dashboard

    # Each look has its own connection: they are made in threads.
    Dashboard(lambda: _load(folders), lambda name: _steps(folders, name), refresh).run()


def _load(folders: Folders) -> Facts:
    from guardhook.views import shapes
    from guardhook.views.dashboard.facts import gather

    try:
        with open_store(folders, idle_seconds=reading.idle_seconds(folders)) as store:
            return gather(store, shapes.stats(store, folders, Filter()))
    except (sqlite3.Error, OSError) as error:
        raise _told(error, folders) from None


def _steps(folders: Folders, name: str) -> list[str]:
    """The last lines of a trace's timeline."""
    from guardhook.views import timeline
    from guardhook.views.text import Paint

    try:
        with open_store(folders, idle_seconds=reading.idle_seconds(folders), catch_up=False) as store:
            trace = store.get(name)
            first = max(1, trace.step_count - STEPS)
            lines = timeline.lines(store.steps(trace, first), store.happenings(trace, first), 200, Paint(False))
            return list(deque(chain(lines, [f"{trace.status}"]), maxlen=STEPS * 4))
    except (sqlite3.Error, OSError) as error:
        raise _told(error, folders) from None


def _told(error: Exception, folders: Folders) -> StoreError:
    return Unusable(f"{folders.data}: {error}", folders.data)
