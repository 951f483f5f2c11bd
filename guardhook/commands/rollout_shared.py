"""What is set about rollouts, and keeping the rollout folder up to date. Naming a run or a file: guardhook.commands.rollout_named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from guardhook.commands import progress
from guardhook.commands.folders import mentions
from guardhook.commands.output import fail
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.policy.settings import Settings
    from guardhook.rollout.options import Options
    from guardhook.store import Store

ENVIRONMENT = "GUARDHOOK_ROLLOUT_DIR"


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


def keep_up(store: Store, folders: Folders) -> None:
    """Brings the rollout folder up to date where one is set. What goes wrong is told, and never ends the command that was asked for.

    Costs a look at two files where none is set.
    """
    if not os.environ.get(ENVIRONMENT, "").strip() and not mentions(folders, b"rollout_dir"):
        return
    from guardhook.commands.output import Refused, say
    from guardhook.rollout.live import sync
    from guardhook.store import StoreError

    try:
        found = settings(folders, False)
        target = rollout_dir(found, False)
        if target is None:
            return
        chosen = options(found, False, tenant=tenant(found))
        bar = progress.Bar("writing rollouts", least=2)
        report = sync(store, folders, target, chosen, turns=turns(found, False), progress=bar)
    except (StoreError, Refused, OSError) as error:
        say(
            f"guardhook: the rollout folder could not be brought up to date: {getattr(error, 'message', None) or error}"
        )
        return
    if report.problems:
        others = f" (and {len(report.problems) - 1} others)" if len(report.problems) > 1 else ""
        say(f"guardhook: {target}: a rollout could not be written: {report.problems[0]}{others}")
