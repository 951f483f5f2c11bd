"""What reading commands do for `[archive] standing = true`: turns that ended since are assessed, and the result is kept with their traces."""

from __future__ import annotations

from guardhook.commands.folders import mentions
from guardhook.core.folders import Folders
from guardhook.store import Store


def keep_up(store: Store, folders: Folders) -> None:
    """Records standings where that is asked for. What goes wrong is told, and never ends the command that was asked for.

    Costs a look at two files where it is not.
    """
    if not mentions(folders, b"standing"):
        return
    from guardhook.archive.account import declarations
    from guardhook.archive.standing import keep_up as record
    from guardhook.commands.output import say
    from guardhook.policy.settings import SettingsError, read
    from guardhook.rollout import options
    from guardhook.store import StoreError

    try:
        config = read(folders)
        if config.get("archive.standing") is not True:
            return
        declared = declarations.of(config.section("account"), origin=declarations.CONFIG)
        record(store, folders, declared, options.of(config))
    except (StoreError, SettingsError, options.BadOptions, TypeError, ValueError, OSError) as error:
        say(f"guardhook: standings could not be recorded: {getattr(error, 'message', None) or error}")
