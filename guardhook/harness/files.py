"""Reading and replacing settings files without being led elsewhere, and without losing what somebody else just wrote.

What was looked at is remembered (inode and hash) and checked again right before the new file takes its place. Rules
per scope: a user's file may be reached through links that stay inside the same person's home; a project's may not
be reached through any link; a system file must lie in places that only root can write.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from guardhook.harness.errors import HarnessError
from guardhook.harness.machine import Machine

MOST = 1024 * 1024
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FLAGS = (
    os.O_RDONLY | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True)
class Seen:
    """A file as it was read. data None: it did not exist. real is where a link led."""

    path: str
    real: str
    data: bytes | None
    inode: tuple[int, int] | None = None
    mode: int = 0o600
    owner: tuple[int, int] | None = None


@dataclass
class Files:
    """All files that one command looks at and writes, by one scope's rules. homes are the folders that links must stay in."""

    machine: Machine
    scope: str
    homes: Sequence[str] = ()
    seen: dict[str, Seen] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, None when there is none; remembered for `write`, which alone minds the scope's rules."""
        if path not in self.seen:
            self.seen[path] = look(path, os.path.realpath(path))
        return self.seen[path].data

    def forget(self, path: str) -> None:
        """Somebody else was asked to change the file: the next read looks again."""
        self.seen.pop(path, None)

    def resolve(self, path: str) -> str:
        """Where the path really leads, after the scope's rules were checked. Raises HarnessError."""
        rule = {"project": self._project, "system": self._system}.get(self.scope, self._user)
        if self.scope == "project" and not _inside(path, self.machine.project):
            rule = self._user  # what a harness keeps about a project in the person's own folder
        try:
            return rule(path)
        except OSError as error:
            raise HarnessError(f"{path}: {_reason(error)}") from None

    def write(self, path: str, data: bytes | None) -> list[str]:
        """Replaces the file (None: removes it) if it is still what was read. Returns the folders that had to be made.

        Raises HarnessError when the file changed meanwhile or the file system refuses.
        """
        self.read(path)
        seen = self.seen[path]
        if self.resolve(path) != seen.real:
            raise _changed(path)
        try:
            made = _folders(os.path.dirname(seen.real), 0o755 if self.scope == "system" else 0o700)
            with _Folder(os.path.dirname(seen.real)) as folder:
                # From here on everything goes by the folder's descriptor: whatever the path leads to later doesn't matter.
                if self.resolve(path) != seen.real or not folder.is_at_its_path():
                    raise _changed(path)
                if data is not None:
                    _replace(seen, data, 0o644 if self.scope == "system" else 0o600, folder)
                elif seen.data is not None:
                    _still(seen, folder)
                    os.unlink(os.path.basename(seen.real), dir_fd=folder.fd)
        except OSError as error:
            raise HarnessError(f"{path}: {_reason(error)}", "nothing was changed in this file") from None
        self.seen[path] = look(path, seen.real)
        return made

    def _user(self, path: str) -> str:
        real = os.path.realpath(path)
        homes = [os.path.realpath(h) for h in (self.machine.home, *self.homes)]
        if not any(_inside(real, h) for h in homes):
            raise HarnessError(
                f"{path} is a link that leads out of your home folder, to {real}",
                "edit that file by hand, or remove the link",
            )
        owner = _owner(real)
        if owner is not None and hasattr(os, "geteuid") and owner != os.geteuid():
            raise HarnessError(f"{path} belongs to another user", "run guardhook as that user, without sudo")
        return real

    def _project(self, path: str) -> str:
        base = os.path.realpath(self.machine.project)
        at = base
        relative = os.path.relpath(path, self.machine.project)
        if relative.startswith(os.pardir):
            raise HarnessError(f"{path} lies outside the project")
        for part in relative.split(os.sep):
            at = os.path.join(at, part)
            if os.path.islink(at):
                raise HarnessError(
                    f"{at} is a link; a project could lead the edit to any file with it",
                    "replace the link by a file, or use --scope user",
                )
        return at

    def _system(self, path: str) -> str:
        if not hasattr(os, "geteuid"):
            return os.path.realpath(path)
        if os.geteuid() != 0:
            raise HarnessError(f"{path}: only root may change it", "run the command with sudo")
        real = os.path.realpath(path)
        base = os.path.realpath(self.machine.root) if self.machine.root else ""
        for target in dict.fromkeys((os.path.abspath(path), real)):
            at = target
            while at not in ("/", base, os.path.abspath(self.machine.root or "/")):
                _only_root(at, self.machine)
                at = os.path.dirname(at)
        return real


class _Folder:
    """An open folder. Its descriptor is None where files can't be opened relative to one (Windows): then paths are used."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd: int | None = None
        if os.open in os.supports_dir_fd:
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0))

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def is_at_its_path(self) -> bool:
        return self.fd is None or os.path.samestat(os.fstat(self.fd), os.lstat(self.path))

    def name(self, name: str) -> str:
        """How a file in it is called in system calls."""
        return name if self.fd is not None else os.path.join(self.path, name)

    def sync(self) -> None:
        if self.fd is not None:
            try:
                os.fsync(self.fd)
            except OSError:
                pass


def look(path: str, real: str, folder: _Folder | None = None) -> Seen:
    """Reads a regular file. Raises HarnessError for anything else, for very large ones and for hard-linked ones."""
    try:
        if folder is not None:
            fd = os.open(folder.name(os.path.basename(real)), _FLAGS, dir_fd=folder.fd)
        else:
            fd = os.open(real, _FLAGS)
    except FileNotFoundError:
        return Seen(path, real, None)
    except NotADirectoryError:
        raise HarnessError(f"{path}: a part of the path is not a folder") from None
    except OSError as error:
        raise HarnessError(f"{path}: {_reason(error)}") from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise HarnessError(f"{path} is not a regular file")
        if info.st_size > MOST:
            raise HarnessError(f"{path} is larger than {MOST} bytes, which no settings file is")
        if info.st_nlink > 1:
            raise HarnessError(
                f"{path} has {info.st_nlink} hard links; replacing it would cut them", "make it a file of its own first"
            )
        chunks = []
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
    finally:
        os.close(fd)
    return Seen(
        path, real, b"".join(chunks), (info.st_dev, info.st_ino), stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid)
    )


def digest(data: bytes | None) -> str | None:
    """SHA-256 in hexadecimal digits, None for a file that isn't there."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def _replace(seen: Seen, data: bytes, mode: int, folder: _Folder) -> None:
    target = os.path.basename(seen.real)
    here, name, temporary = folder.fd, folder.name(target), folder.name(f".{target}.{secrets.token_hex(6)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_BINARY", 0)
    fd = os.open(temporary, flags, 0o600, dir_fd=here)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if hasattr(os, "fchown") and seen.owner and seen.owner != _mine(fd):
                os.fchown(fd, *seen.owner)
            if hasattr(os, "fchmod"):
                os.fchmod(fd, seen.mode if seen.data is not None else mode)
            _attributes(seen, fd)
            os.fsync(fd)
        finally:
            os.close(fd)
        _still(seen, folder)
        if seen.data is None and hasattr(os, "link"):
            try:
                # Unlike a rename, this can't take another's new file away.
                os.link(temporary, name, src_dir_fd=here, dst_dir_fd=here)
            except OSError as error:
                if error.errno == errno.EEXIST:
                    raise _changed(seen.path) from None
                os.rename(temporary, name, src_dir_fd=here, dst_dir_fd=here)  # no hard links on this file system
        else:
            os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
    finally:
        try:
            os.unlink(temporary, dir_fd=here)
        except FileNotFoundError:
            pass
    folder.sync()


def _attributes(seen: Seen, fd: int) -> None:
    """Access lists and labels travel along where the file system has them."""
    if seen.data is None or not hasattr(os, "listxattr"):
        return
    try:
        for name in os.listxattr(seen.real):
            os.setxattr(fd, name, os.getxattr(seen.real, name))
    except OSError:
        pass


def _still(seen: Seen, folder: _Folder) -> None:
    now = look(seen.path, seen.real, folder)
    if now.inode != seen.inode or digest(now.data) != digest(seen.data):
        raise _changed(seen.path)


def _changed(path: str) -> HarnessError:
    return HarnessError(
        f"{path} was changed by somebody else in the meantime", "nothing was written; run the command again"
    )


def _folders(path: str, mode: int) -> list[str]:
    """Makes the missing folders of a path, outermost first, and returns those it made."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    missing.reverse()
    for folder in missing:
        os.mkdir(folder, mode)
    return missing


def _only_root(path: str, machine: Machine) -> None:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    shared = info.st_mode & 0o022
    if machine.platform == "darwin" and info.st_gid == 80:  # its group `admin` may become root anyway
        shared &= 0o002
    if info.st_uid != 0 or (shared and not stat.S_ISLNK(info.st_mode)):
        raise HarnessError(f"{path} can be written by others than root", f"chown root {path} && chmod go-w {path}")


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _owner(path: str) -> int | None:
    """Owner of a file, or of the nearest folder above it that exists."""
    while True:
        try:
            return os.stat(path).st_uid
        except (FileNotFoundError, NotADirectoryError):
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent


def _mine(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_uid, info.st_gid


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
