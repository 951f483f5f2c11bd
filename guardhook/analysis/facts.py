"""What the analyser may know about the machine. Everything enters as an argument: nothing here reads the environment.

`Facts` answers from what it was given and knows no files (analysis of a text alone, and tests that set `files`).
`DiskFacts` looks at the real file system, with a budget, and never follows what is not a regular file or folder.
"""

from __future__ import annotations

from guardhook.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# How much the analyser may read from disk for one event. The number of looks is bounded, not the time: see core.limits.
FILES = 64
LOOKS = 256
TOTAL_BYTES = 4 * limits.SCRIPT_BYTES


class Facts:
    """Home folder, user name, project root, guardhook's own places; and the questions that need a file system."""

    __slots__ = ("brought", "environment", "files", "guard_paths", "home", "marked", "project_root", "unread", "user")

    def __init__(
        self,
        *,
        home: str = "/home/user",
        user: str = "user",
        project_root: str | None = None,
        guard_paths: tuple[str, ...] = (),
        files: dict[str, str] | None = None,
        marked: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.home = home.rstrip("/") or "/"
        self.user = user
        self.project_root = project_root.rstrip("/") or "/" if project_root else None
        self.guard_paths = guard_paths  # absolute prefixes that are guardhook's own
        self.files = files or {}
        self.marked = marked or {}  # absolute path -> `network` or `decoded`: what the session brought to disk before
        # Filled by the analysis: path -> `network` or `decoded`, what this call leaves on disk.
        self.brought: dict[str, str] = {}
        # Why the last read_script gave nothing although something lies there; "" when nothing does, or that isn't known.
        self.unread = ""
        self.environment = environment or {}  # variables whose values the caller vouches for; mostly empty

    def read_script(self, path: str) -> str | None:
        """The text of a regular file of at most SCRIPT_BYTES; None when there is none or it may not be read."""
        return self.files.get(path)

    def exists(self, path: str) -> bool | None:
        """Whether something lies at the path; None when that isn't known."""
        return True if path in self.files else None

    def is_dir(self, path: str) -> bool | None:
        """Whether a folder lies at the path (links followed); None when that isn't known."""
        prefix = path.rstrip("/") + "/"
        return True if any(name.startswith(prefix) for name in self.files) else None

    def realpath_prefix(self, path: str) -> str:
        """The path with links resolved in the part of it that exists; as given when that isn't known."""
        return path


class DiskFacts(Facts):
    """Facts from the real file system. Anything that can't be told within the budget is not known."""

    __slots__ = ("_bytes", "_files", "_looks", "_person")

    def __init__(self, *, person: Callable[[], tuple[str, str]] | None = None, **known: object) -> None:
        """person gives home folder and user name, and is only called when one of them is asked for."""
        super().__init__(**known)  # type: ignore[arg-type]
        if person is not None:
            self._person = person
            del self.home, self.user
        self._files = FILES
        self._looks = LOOKS
        self._bytes = TOTAL_BYTES

    def __getattr__(self, name: str) -> str:
        if name not in ("home", "user"):
            raise AttributeError(name)
        home, self.user = self._person()
        self.home = home.rstrip("/") or "/"
        return self.home if name == "home" else self.user

    def _look(self) -> bool:
        self._looks -= 1
        return self._looks >= 0

    def read_script(self, path: str) -> str | None:
        import posix

        self.unread = ""
        if not path.startswith("/") or "\0" in path:
            return None
        if self._files <= 0 or self._bytes <= 0:
            self.unread = "more scripts than are read for one call"
            return None
        self._files -= 1
        try:
            # O_NONBLOCK: opening a FIFO must not hang. Links are followed, as the program itself would.
            fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK | posix.O_NOCTTY)
        except PermissionError:
            self.unread = "it may not be read"
            return None
        except (OSError, ValueError):
            return None
        try:
            status = posix.fstat(fd)
            if status.st_mode & 0o170000 != 0o100000:
                if status.st_mode & 0o170000 != 0o040000 and path != "/dev/null":
                    self.unread = "it is no regular file"
                return None
            if status.st_size > limits.SCRIPT_BYTES:
                self._too_long(posix.read(fd, 512))
                return None
            pieces: list[bytes] = []
            left = limits.SCRIPT_BYTES + 1
            while left > 0:
                piece = posix.read(fd, min(left, 65536))
                if not piece:
                    break
                pieces.append(piece)
                left -= len(piece)
        except OSError:
            return None
        finally:
            posix.close(fd)
        data = b"".join(pieces)
        self._bytes -= len(data)
        if len(data) > limits.SCRIPT_BYTES:
            self._too_long(data[:512])
            return None
        return data.decode("utf-8", "replace")

    def _too_long(self, head: bytes) -> None:
        """Notes that a text is too long to be read; programs and other binary files aren't scripts."""
        if b"\0" not in head:
            kind = "a script" if head.startswith(b"#!") else "a text"
            self.unread = f"it is {kind} longer than {limits.SCRIPT_BYTES // 1024} KiB"

    def exists(self, path: str) -> bool | None:
        import posix

        if not self._look():
            return None
        try:
            posix.lstat(path)
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            return None
        return True

    def is_dir(self, path: str) -> bool | None:
        import posix

        if not self._look():
            return None
        try:
            return posix.stat(path).st_mode & 0o170000 == 0o040000
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            return None

    def realpath_prefix(self, path: str) -> str:
        import posix

        if not path.startswith("/"):
            return path
        done = ""
        rest = [part for part in path.split("/") if part]
        links = 0
        while rest:
            part = rest.pop(0)
            if part == ".":
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            here = done + "/" + part
            if not self._look():
                return path
            try:
                target = posix.readlink(here)
            except FileNotFoundError:
                return "/".join([here, *rest])
            except (OSError, ValueError):
                done = here  # no link, or one that can't be read
                continue
            links += 1
            if links > 16:
                return path
            if target.startswith("/"):
                done = ""
            rest = [p for p in target.split("/") if p] + rest
        return done or "/"
