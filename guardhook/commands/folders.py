"""The folders that a command run by a person uses: `--dir`, GUARDHOOK_DIR, then the platform's (XDG variables count)."""

from __future__ import annotations

import os
import sys

import platformdirs

from guardhook.core import folders as core
from guardhook.core.folders import Folders


def resolve(directory: str | None) -> Folders:
    """directory is the value of `--dir`; a blank GUARDHOOK_DIR counts as unset and `~` is expanded in it."""
    chosen = directory or os.environ.get("GUARDHOOK_DIR", "").strip()
    if chosen:
        return core.explicit(os.path.abspath(os.path.expanduser(chosen)))
    return Folders(
        platformdirs.user_config_dir("guardhook", appauthor=False),
        platformdirs.user_data_dir("guardhook", appauthor=False),
        core.system_folder(sys.platform),
    )
