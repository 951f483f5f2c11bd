"""Which project a folder belongs to: the nearest folder upwards that holds `.guardhook` or `.git`."""

from __future__ import annotations

import posix

_DEEPEST = 64


def find_root(cwd: str | None) -> str | None:
    """The real path of the project root, or None when there is none or cwd is not a usable absolute path."""
    if not cwd or not cwd.startswith("/") or "\0" in cwd or len(cwd) > 4096:
        return None
    folder = real(cwd)
    for _ in range(_DEEPEST):
        for name in ("/.guardhook", "/.git"):
            try:
                posix.stat(("" if folder == "/" else folder) + name)
            except OSError:
                continue
            return folder
        if folder == "/":
            return None
        folder = folder[: folder.rindex("/")] or "/"
    return None


def real(path: str) -> str:
    """The path without links, dots and double slashes. What does not exist is kept as written; loops end after 40 links."""
    done = ""
    rest = path.split("/")[::-1]
    links = 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            done = done[: done.rfind("/")] if done else ""
            continue
        here = done + "/" + name
        try:
            target = posix.readlink(here)
        except (OSError, ValueError):
            done = here
            continue
        links += 1
        if links > 40:
            return here
        if target.startswith("/"):
            done = ""
        rest.extend(target.split("/")[::-1])
    return done or "/"
