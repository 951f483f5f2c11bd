"""What installing depends on outside the settings files: the platform, the person's folders, the environment, the clients.

Everything enters here as an argument, so that a test can describe another machine (macOS, Windows, another root) and
the code behind it stays the same.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Machine:
    """One machine as seen by one person. root is put before every system path (empty outside tests)."""

    platform: str  # as sys.platform: linux, darwin, win32
    home: str
    cwd: str
    project: str  # the folder that project scope means
    env: Mapping[str, str] = field(default_factory=dict)
    root: str = ""

    @property
    def windows(self) -> bool:
        return self.platform == "win32"

    def join(self, *parts: str) -> str:
        """Joins with the separator of that platform, not of the one this runs on."""
        return ntpath.join(*parts) if self.windows else posixpath.join(*parts)

    def system(self, linux: str, darwin: str, windows: str) -> str:
        """A path that only the administrator writes, for each platform."""
        chosen = {"darwin": darwin, "win32": windows}.get(self.platform, linux)
        return self.root + chosen

    def folder(self, variable: str, *default: str) -> str:
        """The folder that a variable names when it holds an absolute path, else the default below the home folder."""
        value = self.env.get(variable, "")
        if value and (ntpath.isabs(value) if self.windows else posixpath.isabs(value)):
            return value
        return self.join(self.home, *default)

    def which(self, name: str, *also: str) -> str | None:
        """A client's program: on PATH (absolute entries only), else one of the places it usually installs to."""
        path = os.pathsep.join(p for p in self.env.get("PATH", "").split(os.pathsep) if os.path.isabs(p))
        found = shutil.which(name, path=path) if path else None
        if found:
            return found
        return next((p for p in also if os.path.isfile(p) and os.access(p, os.X_OK)), None)


def here(project: str | None = None, *, environ: Mapping[str, str] | None = None) -> Machine:
    """The machine that this process runs on. project defaults to the enclosing repository, else the current folder."""
    env = dict(os.environ if environ is None else environ)
    cwd = os.getcwd()
    return Machine(
        platform=sys.platform,
        home=os.path.expanduser("~"),
        cwd=cwd,
        project=os.path.abspath(project) if project else repository(cwd),
        env=env,
    )


def repository(folder: str) -> str:
    """The nearest folder upwards that has a `.git`, else the folder itself."""
    at = folder
    while True:
        if os.path.lexists(os.path.join(at, ".git")):
            return at
        parent = os.path.dirname(at)
        if parent == at:
            return folder
        at = parent
