"""Where things live. The hook takes no folder from the environment: what it guards could have written it.

Three ways to know the folders, in this order: `--dir`, the file `folders` that `install` writes beside the hook program,
and the home folder of the user database. Commands that a person runs use `guardhook.commands.folders` instead, which asks platformdirs.
"""

from __future__ import annotations

import posix
import sys

BAKED = "folders"
SYSTEM_POSIX = "/etc/guardhook"
SYSTEM_DARWIN = "/Library/Application Support/guardhook"


class Folders:
    """Absolute folders of one installation."""

    __slots__ = ("config", "data", "system")

    def __init__(self, config: str, data: str, system: str) -> None:
        self.config = config  # config.toml, policies/, exceptions.toml of the user
        self.data = data  # journal/, compiled/, versions/, bin/, traces.db
        self.system = system  # config.toml, policies/ of the machine

    @property
    def journal(self) -> str:
        return self.data + "/journal"

    @property
    def compiled(self) -> str:
        return self.data + "/compiled"

    @property
    def user_policies(self) -> str:
        return self.config + "/policies"

    @property
    def system_policies(self) -> str:
        return self.system + "/policies"


def explicit(folder: str, system: str | None = None) -> Folders:
    """`--dir FOLDER`: configuration, policies, journal and store in one folder. The machine's own policies still apply."""
    absolute = folder if folder.startswith("/") else posix.getcwd() + "/" + folder
    return Folders(absolute, absolute, system or system_folder(sys.platform))


def system_folder(platform: str) -> str:
    """The folder that only the administrator writes."""
    return SYSTEM_DARWIN if platform == "darwin" else SYSTEM_POSIX


def parse_baked(text: str) -> Folders:
    """Reads the baked file: lines `config=…`, `data=…`, `system=…` with absolute paths. Raises ValueError."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if not equals or key not in ("config", "data", "system") or not value.startswith("/") or key in found:
            raise ValueError(f"the file `{BAKED}` beside the hook program is damaged; run `guardhook install` again")
        found[key] = value
    if len(found) != 3:
        raise ValueError(f"the file `{BAKED}` beside the hook program is incomplete; run `guardhook install` again")
    return Folders(found["config"], found["data"], found["system"])


def render_baked(folders: Folders) -> str:
    """The text of the baked file, the inverse of parse_baked. Raises ValueError for a path with a line break in it."""
    for value in (folders.config, folders.data, folders.system):
        if "\n" in value or not value.startswith("/"):
            raise ValueError(f"not a usable absolute path: {value!r}")
    return f"config={folders.config}\ndata={folders.data}\nsystem={folders.system}\n"


def unbaked(home: str, platform: str) -> Folders:
    """The platform's usual folders below a home folder (XDG defaults; macOS Application Support)."""
    if platform == "darwin":
        base = home + "/Library/Application Support/guardhook"
        return Folders(base, base, system_folder(platform))
    return Folders(home + "/.config/guardhook", home + "/.local/share/guardhook", system_folder(platform))


def for_hook(directory: str | None, program: str) -> Folders:
    """The folders that a hook process uses. program is the folder that the hook program lies in. Raises ValueError, OSError, KeyError."""
    if directory is not None:
        return explicit(directory)
    try:
        fd = posix.open(program + "/" + BAKED, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
    except FileNotFoundError:
        import pwd

        return unbaked(pwd.getpwuid(posix.getuid()).pw_dir, sys.platform)
    try:
        data = posix.read(fd, 16384)
    finally:
        posix.close(fd)
    return parse_baked(data.decode("utf-8"))
