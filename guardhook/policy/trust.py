"""Projects whose words may reach the agent: their policy files as a person saw them, remembered by digest. Cold.

A project's policies always count, since they only tighten. Their names, reasons and suggestions are text from a repository, and
stay out of every answer until `guardhook trust` (guardhook.commands.trust). Trust belongs to a real path and to the exact content of all its
policy files; when a file changes, comes or goes it is withdrawn by itself.

The file `<data>/trusted` is JSON: `{"v": 1, "projects": {root: {"digest": hex, "files": {name: hex}, "since": epoch seconds}}}`.
It is believed only as a plain file of this user or root that nobody else may read or write; else nothing is trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from guardhook.core import atomic
from guardhook.core.folders import Folders
from guardhook.policy import compiled
from guardhook.policy.sources import SourceError, Sources

FILE = "trusted"
_MOST_BYTES = 8 * 1024 * 1024
LOCK_SECONDS = 10.0


class TrustError(Exception):
    """What was trusted can't be read or written. The message says why and what to do."""


@dataclass
class Project:
    """The policy files of a project as they are now, in the order in which they are read."""

    root: str
    files: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def digests(self) -> dict[str, str]:
        return {name: blake2b(data, digest_size=32).hexdigest() for name, data in self.files.items()}

    @property
    def digest(self) -> str:
        """One digest over the names and contents of all files."""
        whole = blake2b(digest_size=32)
        for name, content in self.digests.items():
            whole.update(f"{name}\0{content}\0".encode("utf-8", "surrogateescape"))
        return whole.hexdigest()


def read_project(root: str) -> Project:
    """The files that the compiler would read, by its own rules (plain files, no links, limited sizes)."""
    project = Project(os.path.realpath(root))
    folder = f"{project.root}/{compiled.PROJECT_POLICIES}"
    if os.path.islink(os.path.dirname(folder)):
        project.problems.append(f"{os.path.dirname(folder)}: a link; policies of a project are plain files")
        return project
    sources = Sources(project=True)
    try:
        names = sources.folder(folder) or []
    except SourceError as error:
        project.problems.append(f"{error.path}: {error}")
        return project
    for name in names:
        try:
            data = sources.file(f"{folder}/{name}")
        except SourceError as error:
            # Not read by the compiler either; but what it is must not change unnoticed.
            project.problems.append(f"{error.path}: {error}")
            data = b"\0unreadable"
        if data is not None:
            project.files[name] = data
    return project


def state(folders: Folders, root: str) -> str:
    """`trusted`, `changed` (trusted before, then something changed), `untrusted`, or `none` (no policy files)."""
    return _state(load(folders), read_project(root))


def _state(known: dict[str, dict[str, object]], project: Project) -> str:
    entry = known.get(project.root)
    if entry is not None:
        return "trusted" if project.files and entry.get("digest") == project.digest else "changed"
    return "untrusted" if project.files else "none"


def holds(folders: Folders, root: str, read: Sources) -> bool:
    """Whether the project is trusted just as the compiler read it. read: what it read; the trust file is added to it.

    The files are read a second time here; that they are the same ones follows from their being unchanged afterwards.
    """
    aside = Sources()
    with contextlib.suppress(SourceError):
        aside.file(f"{folders.data}/{FILE}")
    read.found.extend(aside.found)
    trusted = state(folders, root) == "trusted"
    return trusted and all(compiled.unchanged(source) for source in read.found)


def note(folders: Folders, root: str) -> str | None:
    """What a person who lists policies should know about the trust in a project."""
    return {
        "untrusted": f"{root}: not trusted, so the names and reasons of its policies stay out of answers (`guardhook trust`)",
        "changed": f"{root}: its policies changed since they were trusted; look at them again with `guardhook trust`",
    }.get(state(folders, root))


def load(folders: Folders) -> dict[str, dict[str, object]]:
    """root -> entry. What can't be believed is empty: nothing is trusted then."""
    try:
        fd = os.open(f"{folders.data}/{FILE}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1 or info.st_uid not in (0, os.geteuid()):
            return {}
        if info.st_mode & 0o077 or info.st_size > _MOST_BYTES:
            return {}
        with os.fdopen(os.dup(fd), "rb") as stream:
            value = json.loads(stream.read())
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(fd)
    projects = value.get("projects") if isinstance(value, dict) and value.get("v") == 1 else None
    if not isinstance(projects, dict):
        return {}
    return {root: entry for root, entry in projects.items() if isinstance(entry, dict)}


def add(folders: Folders, project: Project, now: float | None = None) -> None:
    """Remembers the project as it was read. Raises TrustError."""
    entry: dict[str, object] = {
        "digest": project.digest,
        "files": project.digests,
        "since": int(time.time() if now is None else now),
    }
    _change(folders, lambda known: known.update({project.root: entry}))


def remove(folders: Folders, root: str) -> bool:
    """Forgets a project; False when it was not known. Raises TrustError."""
    if root not in load(folders):
        return False
    _change(folders, lambda known: known.pop(root, None))
    return True


def _change(folders: Folders, edit: Callable[[dict[str, dict[str, object]]], object]) -> None:
    """Reads, edits and replaces the file under a lock, by one rename."""
    path = f"{folders.data}/{FILE}"
    try:
        os.makedirs(folders.data, mode=0o700, exist_ok=True)
        info = os.lstat(folders.data)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
            raise TrustError(f"{folders.data} is not a folder of your own that nobody else may write to")
        with atomic.locked(f"{path}.lock", LOCK_SECONDS):
            known = load(folders)
            edit(known)
            atomic.replace(path, json.dumps({"v": 1, "projects": known}, indent=1, sort_keys=True).encode("utf-8"))
    except OSError as error:
        raise TrustError(f"{error.filename or path}: {error.strerror}; make the folder writable for yourself") from None
