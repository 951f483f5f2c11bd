"""Opening things in the private data folder without being led elsewhere.

Everything is opened relative to a folder descriptor and never through a link; what is opened must be a regular file (or a
folder) of this user, with exactly one name. A FIFO or device put in a file's place is refused without blocking on it.
Writers make files of mode 0600 and folders of mode 0700 whatever the umask says, and take rights away from others where
they have some; what the owner made read-only stays so.
"""

from __future__ import annotations

import errno
import fcntl
import posix
import time

_FOLDER = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_FILE = posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK
_TYPE = 0o170000
_REGULAR = 0o100000


class Unsafe(OSError):
    """What lies at a name is not a plain file or folder of this user, so it is neither read nor written."""


def open_folder(name: str, parent: int | None = None, *, create: bool = False) -> int:
    """A descriptor of the folder `name` below the descriptor `parent` (None: name is a path). Raises OSError, Unsafe.

    create (for writers) makes the folder, but not what lies above it, and narrows its mode.
    """
    try:
        fd = posix.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
        _mkdir(name, parent)
        fd = posix.open(name, _FOLDER, dir_fd=parent)
    try:
        status = posix.fstat(fd)
        if status.st_uid != posix.geteuid():
            raise Unsafe(errno.EPERM, "the folder belongs to another user", name)
        if create and status.st_mode & 0o077:
            posix.fchmod(fd, status.st_mode & 0o700)
    except BaseException:
        posix.close(fd)
        raise
    return fd


def open_root(path: str) -> int:
    """As open_folder with create, for an absolute path whose parents may be missing; those are made with mode 0700."""
    try:
        return open_folder(path, create=True)
    except FileNotFoundError:
        _make(path.rpartition("/")[0])
        return open_folder(path, create=True)


def _make(path: str) -> None:
    if not path:
        return
    try:
        _mkdir(path, None)
    except FileNotFoundError:
        _make(path.rpartition("/")[0])
        _mkdir(path, None)


def _mkdir(name: str, parent: int | None) -> None:
    """Makes a folder of mode 0700, unless the name exists. A folder can't be opened to mend its mode, so the umask is set meanwhile."""
    before = posix.umask(0o077)
    try:
        posix.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass
    finally:
        posix.umask(before)


def open_file(name: str, parent: int, flags: int, *, create: bool = False) -> int:
    """A descriptor of the regular file `name` in the folder `parent`. Raises OSError, Unsafe.

    flags are the access mode and O_APPEND; create (for writers) makes a missing file, and narrows the mode of a found one.
    """
    made = False
    try:
        fd = posix.open(name, flags | _FILE, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
        try:
            fd = posix.open(name, flags | _FILE | posix.O_CREAT | posix.O_EXCL, 0o600, dir_fd=parent)
            made = True
        except FileExistsError:
            fd = posix.open(name, flags | _FILE, dir_fd=parent)
    try:
        status = posix.fstat(fd)
        check(status, name)
        if made:
            posix.fchmod(fd, 0o600)
        elif create and status.st_mode & 0o077:
            posix.fchmod(fd, status.st_mode & 0o600)
    except BaseException:
        posix.close(fd)
        raise
    return fd


def check(status: posix.stat_result, name: str) -> None:
    """Raises Unsafe unless the status is that of a regular file of this user with one name."""
    if status.st_mode & _TYPE != _REGULAR:
        raise Unsafe(errno.EINVAL, "not a regular file", name)
    if status.st_uid != posix.geteuid():
        raise Unsafe(errno.EPERM, "the file belongs to another user", name)
    if status.st_nlink > 1:
        raise Unsafe(errno.EMLINK, "the file has more than one name", name)


def lock(fd: int, deadline: float, said: str) -> None:
    """Takes the lock on an opened file, asking again in short intervals. Raises TimeoutError with these words at the deadline (a time.monotonic value)."""
    pause = 0.0002
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(errno.ETIMEDOUT, said) from None
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.004)
