"""The compiled policy files that the gate reads: one for shipped, system and user policies, one for each project.

A file is a magic line, a 32-byte digest and one marshalled tuple. It is believed only when it lies in a private folder, is a
plain file of this user or of root that nobody else may write, its digest holds, and every source it was made from is unchanged.
Anything else raises: `Stale` (make it again), `Damaged` (make it again, somebody or something broke it), `Broken` (it is current,
and says that the sources have an error: making it again can't help, and the gate blocks with the reason).
"""

from __future__ import annotations

import errno
import marshal
import posix
import sys
from _blake2 import blake2b

from guardhook import __version__
from guardhook.core import restore
from guardhook.core.folders import Folders

MAGIC = b"guardhook compiled policies\n"
FORMAT = 2
DIGEST_SIZE = 32
MOST_BYTES = 64 * 1024 * 1024
POLICY_FILE = "policies.bin"
PROJECT_FOLDER = "projects"
PROJECT_POLICIES = ".guardhook/policies"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What became of one source: (path, kind, identity, digest). kind: `file`, `folder`, `linkless` (a project's: links are not
# followed), `text` (a file of the shipped folder, named without it, whose content is its identity). identity is None for a source that does not exist. digest is set where
# the source changed so shortly before it was read that a later change might carry the same time stamps.
Source = tuple[str, str, "tuple[int, ...] | None", "bytes | None"]


class CompiledError(Exception):
    """The compiled policies can't be used. The message is for a person."""


class Stale(CompiledError):
    """They are missing, or older than their sources or than this program."""


class Damaged(CompiledError):
    """The file is not what the compiler wrote, or others may write it."""


class Broken(CompiledError):
    """The sources have an error. The message names the file, the line and what to do."""


class Compiled:
    """One compiled policy set. Rows stay marshalled until they are needed."""

    __slots__ = ("_patterns", "_restored", "_rows", "_triggers", "config", "index", "layer", "policies", "problems", "quick", "redact", "set")  # fmt: skip

    def __init__(self, body: tuple[Any, ...]) -> None:
        (
            self.set,  # hex id of the policy set
            self.layer,  # "" for the main set, "project"
            self.policies,  # marshalled rows of the enabled policies, by priority (high first), then name
            self.index,  # event -> groups, see guardhook.policy.index
            self._patterns,  # marshalled frozen patterns
            self.config,  # what the hook needs of config.toml
            self.redact,  # frozen redaction rows
            self.quick,  # tool kind -> marshalled trigger words, or None where they can't be listed
            self.problems,  # what a person should be told: ignored files, expired exceptions, …
        ) = body
        self._triggers: frozenset[str] | None = None
        self._rows: dict[int, tuple[Any, ...]] = {}
        self._restored: dict[int, restore.Pattern] = {}

    set: str
    layer: str
    policies: tuple[bytes, ...]
    index: dict[str, tuple[tuple[Any, ...], ...]]
    _patterns: tuple[bytes, ...]
    config: dict[str, object]
    redact: tuple[object, ...]
    quick: dict[str, bytes | None]
    problems: list[str]

    def row(self, number: int) -> tuple[Any, ...]:
        """The policy at this place, see guardhook.policy.index for its fields."""
        row = self._rows.get(number)
        if row is None:
            row = self._rows[number] = marshal.loads(self.policies[number])
        return row

    def triggers(self, kind: str) -> frozenset[str] | None:
        """The words of which one stands in every plain command that a policy could match; None: the quick pass is off."""
        if self._triggers is None:
            packed = self.quick.get(kind)
            if packed is None:
                return None
            self._triggers = marshal.loads(packed)
        return self._triggers

    def pattern(self, number: int) -> restore.Pattern:
        """The regular expression at this place, restored when it is first needed. Raises whatever the engine raises."""
        pattern = self._restored.get(number)
        if pattern is None:
            pattern = self._restored[number] = restore.restore(marshal.loads(self._patterns[number]))
        return pattern


def shipped_folder() -> str:
    """Where the shipped policy files lie: beside the frozen program, in the installed package, or in the source tree."""
    if getattr(sys, "frozen", False):
        base: str = getattr(sys, "_MEIPASS", "") or sys.executable.rpartition("/")[0]
        return base + "/policies"
    package = __file__.rpartition("/policy/")[0]
    packaged = package + "/shipped_policies"
    try:
        posix.stat(packaged)
    except OSError:
        return package.rpartition("/")[0] + "/policies"
    return packaged


def shipped_digest_file(folder: str) -> str | None:
    """The file whose content identifies the shipped policies of a frozen program, whose folder may change each time."""
    return folder + "/DIGEST" if getattr(sys, "frozen", False) else None


def identity(info: posix.stat_result) -> tuple[int, ...]:
    """What tells that a file or folder is the same and unchanged."""
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=DIGEST_SIZE).digest()


def folder_digest(names: list[str]) -> bytes:
    return digest("\0".join(sorted(names)).encode("utf-8", "surrogateescape"))


def program_identity() -> tuple[object, ...]:
    """What a compiled file depends on besides its sources."""
    return (FORMAT, __version__, restore.engine_identity())


def origin(folders: Folders) -> tuple[str, ...]:
    """The folders a main file was compiled for. The shipped one counts only where it doesn't move."""
    return (folders.config, folders.system, "" if getattr(sys, "frozen", False) else shipped_folder())


def project_file(folders: Folders, root: str) -> str:
    """The cache file for a project. root is the absolute path of its folder."""
    key = blake2b(root.rstrip("/").encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return f"{folders.compiled}/{PROJECT_FOLDER}/{key}.bin"


def load(folders: Folders) -> Compiled:
    """The compiled shipped, system and user policies. Raises Stale, Damaged, Broken."""
    blob = _read_private(folders.compiled, POLICY_FILE)
    return _current(blob, origin(folders))


def load_project(folders: Folders, root: str) -> Compiled | None:
    """The compiled policies of the project at root, None when it has none. Raises Stale, Damaged."""
    root = root.rstrip("/")
    try:
        posix.lstat(f"{root}/{PROJECT_POLICIES}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise Stale(f"the project's policies can't be looked at: {error.strerror}") from None
    folder, _, name = project_file(folders, root).rpartition("/")
    return _current(_read_private(folder, name), ("project", root))


def load_bytes(blob: bytes) -> Compiled:
    """A set from the bytes of a compiled file; the sources are not looked at. Raises Damaged, Stale, Broken."""
    _, _, wrong, body = _open(blob)
    if wrong:
        raise Broken(wrong)
    return Compiled(body)


def _current(blob: bytes, expected: tuple[str, ...]) -> Compiled:
    made_for, sources, error, body = _open(blob)
    if made_for != expected:
        raise Stale("the compiled policies were made for other folders")
    for source in sources:
        if not unchanged(source):
            raise Stale(f"changed since the policies were compiled: {source[0]}")
    if error:
        raise Broken(error)
    return Compiled(body)


def _open(blob: bytes) -> tuple[tuple[str, ...], tuple[Source, ...], str, tuple[object, ...]]:
    start = len(MAGIC) + DIGEST_SIZE
    if len(blob) <= start or not blob.startswith(MAGIC):
        raise Damaged("the compiled policy file is not one")
    content = memoryview(blob)[start:]
    if digest(content) != blob[len(MAGIC) : start]:
        raise Damaged("the compiled policy file is damaged: its digest does not hold")
    program, made_for, sources, wrong, body = marshal.loads(content)
    try:
        same = program == program_identity()
    except ImportError as error:
        raise Broken(str(error)) from None
    if not same:
        raise Stale("the policies were compiled by another version")
    return made_for, sources, wrong, body


def _read_private(folder: str, name: str) -> bytes:
    """Reads a file that only this user or root can have written."""
    try:
        _check_owner(posix.lstat(folder), folder, 0o040000)
        fd = posix.open(f"{folder}/{name}", posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise Stale("the policies have not been compiled yet") from None
    except OSError as error:
        raise Damaged(f"the compiled policies can't be read: {folder}/{name}: {error.strerror}") from None
    try:
        info = posix.fstat(fd)
        _check_owner(info, f"{folder}/{name}", 0o100000)
        size = info.st_size
        if size > MOST_BYTES:
            raise Damaged("the compiled policy file is too large")
        chunks = []
        while size > 0:
            chunk = posix.read(fd, size)
            if not chunk:
                raise Damaged("the compiled policy file changed while it was read")
            chunks.append(chunk)
            size -= len(chunk)
    except OSError as error:
        raise Damaged(f"the compiled policies can't be read: {folder}/{name}: {error.strerror}") from None
    finally:
        posix.close(fd)
    return b"".join(chunks)


def _check_owner(info: posix.stat_result, path: str, kind: int) -> None:
    if info.st_mode & 0o170000 != kind:
        raise Damaged(f"{path} is not a plain {'folder' if kind == 0o040000 else 'file'}")
    if info.st_uid not in (0, posix.geteuid()):
        raise Damaged(f"{path} belongs to another user")
    if info.st_mode & 0o022:
        raise Damaged(f"{path} can be written by others")


def unchanged(source: Source) -> bool:
    """Whether a source is still what it was when it was compiled."""
    path, kind, known, content = source
    if kind == "text":
        # The shipped policies of a frozen program: wherever it is unpacked this time, the stamp must be the same.
        return content is not None and _content(f"{shipped_folder()}/{path}", kind) == content
    try:
        info = posix.lstat(path) if kind == "linkless" else posix.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return known is None
    except OSError:
        return False
    if known is None or identity(info) != known:
        return False
    return content is None or _content(path, kind) == content


def _content(path: str, kind: str) -> bytes | None:
    try:
        if kind == "folder":
            return folder_digest(posix.listdir(path))
        follow = posix.O_NOFOLLOW if kind == "linkless" else 0
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK | follow)
        try:
            data = b""
            while chunk := posix.read(fd, 1 << 20):
                data += chunk
        finally:
            posix.close(fd)
    except OSError:
        return None
    return digest(data)
