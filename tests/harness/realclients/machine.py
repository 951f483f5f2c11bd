"""A machine of one's own for tests that need root: /etc and /opt as scratch copies that only the started programs see."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

from realclients import process
from realclients.driver import Home


def possible() -> bool:
    return os.getuid() == 0 and process.namespaces()


def own_machine(home: Home) -> Path:
    """Gives a home its own /etc, in which root lives in that home, and its own /opt; returns the folder that is /etc there."""
    etc, opt = home.base / "etc", home.base / "opt"
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    user = pwd.getpwuid(os.getuid())
    lines = (etc / "passwd").read_text().splitlines()
    for number, line in enumerate(lines):
        fields = line.split(":")
        if fields[0] == user.pw_name:
            fields[5] = str(home.path)
            lines[number] = ":".join(fields)
    (etc / "passwd").write_text("\n".join(lines) + "\n")
    opt.mkdir()
    for entry in Path("/opt").iterdir():
        if entry.is_dir() and not entry.is_symlink():
            (opt / entry.name).mkdir()
            home.binds.append((str(entry), str(opt / entry.name)))
        else:
            shutil.copy2(entry, opt / entry.name, follow_symlinks=False)
    home.binds += [(str(etc), "/etc"), (str(opt), "/opt")]
    return etc
