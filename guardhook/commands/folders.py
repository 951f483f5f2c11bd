"""The folders that a command run by a person uses: `--dir`, GUARDHOOK_DIR, then the platform's (XDG variables count)."""

from __future__ import annotations

import os
import sys

from guardhook.core import folders as core
from guardhook.core.folders import Folders


def mentions(folders: Folders, word: bytes) -> bool:
    """Whether a config.toml has this word: reading TOML costs more than most commands, and most settings are never made."""
    for folder in (folders.config, folders.system):
        try:
            with open(f"{folder}/config.toml", "rb") as file:
                if word in file.read():
                    return True
        except OSError:
            continue
    return False


def resolve(directory: str | None) -> Folders:
    """directory is the value of `--dir`; a blank one counts as unset, as does a blank GUARDHOOK_DIR, and `~` is expanded in them."""
    chosen = directory if directory and directory.strip() else os.environ.get("GUARDHOOK_DIR", "").strip()
    if chosen:
        return core.explicit(os.path.abspath(os.path.expanduser(chosen)))
    import platformdirs  # a start-up cost that `--dir` need not pay

    return Folders(
        platformdirs.user_config_dir("guardhook", appauthor=False),
        platformdirs.user_data_dir("guardhook", appauthor=False),
        core.system_folder(sys.platform),
    )
