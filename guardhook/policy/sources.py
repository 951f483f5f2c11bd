"""Reading policy sources so that later changes are noticed: identity from the very descriptors that were read. Cold."""

from __future__ import annotations

import os
import stat
import time

from guardhook.core import limits
from guardhook.policy import compiled

# A file changed this recently may change again within the same time stamp; its content is kept as a digest too.
_RACY_SECONDS = 2.0


class SourceError(Exception):
    """A file or folder that can't be read. path and the message are for a person."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class Sources:
    """Collects what was read. root: a project's folder, below which no link is followed and sizes are limited."""

    def __init__(self, *, project: bool = False) -> None:
        self.found: list[compiled.Source] = []
        self._project = project
        self._kinds = ("linkless", "linkless") if project else ("file", "folder")

    def text(self, name: str, data: bytes) -> None:
        """A file of the shipped folder whose content is its identity (the stamp of frozen shipped policies)."""
        self.found.append((name, "text", None, compiled.digest(data)))

    def absent(self, path: str) -> None:
        self.found.append((path, self._kinds[0], None, None))

    def file(self, path: str) -> bytes | None:
        """The content of a file, None when there is none. Raises SourceError."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if self._project else 0)
        try:
            fd = os.open(path, flags)
        except (FileNotFoundError, NotADirectoryError):
            self.absent(path)
            return None
        except OSError as error:
            self._unread(path)
            raise SourceError(path, self._reason(path, error)) from None
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                self._unread(path)
                raise SourceError(path, "not a plain file; policies are plain files")
            if self._project and info.st_size > limits.PROJECT_FILE_BYTES:
                self._unread(path)
                raise SourceError(path, f"larger than {limits.PROJECT_FILE_BYTES // 1024} KiB; split it")
            with os.fdopen(os.dup(fd), "rb") as stream:
                data = stream.read(limits.PROJECT_FILE_BYTES + 1 if self._project else -1)
        except OSError as error:
            self._unread(path)
            raise SourceError(path, f"can't be read: {error.strerror}") from None
        finally:
            os.close(fd)
        self._note(path, self._kinds[0], info, compiled.digest(data))
        return data

    def folder(self, path: str) -> list[str] | None:
        """The names of the `*.toml` files in a folder, sorted; None when there is no folder. Raises SourceError."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | (os.O_NOFOLLOW if self._project else 0)
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            self.absent(path)
            return None
        except NotADirectoryError as error:
            if not os.path.lexists(path):
                self.absent(path)
                return None
            self._unread(path)
            raise SourceError(path, self._reason(path, error)) from None
        except OSError as error:
            self._unread(path)
            raise SourceError(path, self._reason(path, error)) from None
        try:
            info = os.fstat(fd)
            names = os.listdir(fd)
        except OSError as error:
            self._unread(path)
            raise SourceError(path, f"can't be read: {error.strerror}") from None
        finally:
            os.close(fd)
        self._note(path, self._kinds[1], info, compiled.folder_digest(names), linkless_folder=self._project)
        return sorted(n for n in names if n.endswith(".toml") and not n.startswith("."))

    def _note(self, path: str, kind: str, info: os.stat_result, content: bytes, linkless_folder: bool = False) -> None:
        racy = time.time() - max(info.st_mtime, info.st_ctime) < _RACY_SECONDS
        if linkless_folder:
            kind = "folder" if racy else kind
        self.found.append((path, kind, compiled.identity(info), content if racy else None))

    def _unread(self, path: str) -> None:
        """Remembers something that could not be read, so that a change of it is noticed."""
        try:
            info = os.lstat(path) if self._project else os.stat(path)
        except OSError:
            self.absent(path)
        else:
            self.found.append((path, self._kinds[0], compiled.identity(info), None))

    def _reason(self, path: str, error: OSError) -> str:
        if self._project and os.path.islink(path):
            return "a link; policies of a project are plain files"
        if isinstance(error, NotADirectoryError):
            return "not a folder"
        return f"can't be read: {error.strerror}"
