"""What the application was started with, and who is asking."""

from __future__ import annotations

import hmac
import os
import stat
import threading
from hashlib import sha256
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.rollout.options import Options
from guardhook.store import Store, open_store
from guardhook.store.query import IDLE_SECONDS

LEAST_TOKEN = 16
_MOST_FILE = 1 << 20
STREAMS = 16
DRIFTS = 2


class TokenError(Exception):
    """A token file that can't be used; the message names file and line, never a token."""


class Caller(NamedTuple):
    """Who asks. tenant None: the owner of this installation, who sees everything."""

    tenant: str | None = None


OWNER = Caller()


class Tokens:
    """Bearer tokens and the tenants they stand for. Only their SHA-256 is kept."""

    def __init__(self, pairs: list[tuple[str, str | None]]) -> None:
        self._known = [(sha256(token.encode()).digest(), Caller(tenant)) for token, tenant in pairs]

    def __len__(self) -> int:
        return len(self._known)

    def caller(self, token: str) -> Caller | None:
        """Whose token this is, None when it is nobody's. Takes the same time for every token."""
        given = sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for digest, caller in self._known:
            if hmac.compare_digest(given, digest):
                found = caller
        return found


def read_tokens(path: str) -> Tokens:
    """The tokens in a file: a line is `TOKEN` (the owner's) or `TENANT TOKEN`; blank lines and `#` lines are left out.

    The file must be a regular one that only its owner (or root) can read. Raises TokenError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise TokenError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise TokenError(f"{path}: not a regular file")
        if status.st_uid not in (0, os.geteuid()):
            raise TokenError(f"{path}: belongs to another user")
        if status.st_mode & 0o077:
            raise TokenError(f"{path}: others can read it; run `chmod 600` on it")
        data = os.read(fd, _MOST_FILE + 1)
    finally:
        os.close(fd)
    if len(data) > _MOST_FILE:
        raise TokenError(f"{path}: larger than {_MOST_FILE} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TokenError(f"{path}: line {data[: error.start].count(10) + 1}: not UTF-8") from None
    pairs: list[tuple[str, str | None]] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise TokenError(f"{path}: line {number}: a line is TOKEN or TENANT TOKEN")
        if len(words[-1]) < LEAST_TOKEN:
            raise TokenError(f"{path}: line {number}: the token is shorter than {LEAST_TOKEN} characters")
        if any(words[-1] == known for known, _ in pairs):
            raise TokenError(f"{path}: line {number}: this token stands in the file already")
        pairs.append((words[-1], words[0] if len(words) == 2 else None))
    if not pairs:
        raise TokenError(f"{path}: there is no token in it")
    return Tokens(pairs)


class Slots:
    """A bounded number of things at once; asking never waits."""

    def __init__(self, number: int) -> None:
        self._left = threading.Semaphore(number)

    def take(self) -> bool:
        return self._left.acquire(blocking=False)

    def give(self) -> None:
        self._left.release()


class Context:
    """One running application. tokens None: whoever reaches the port is the owner."""

    def __init__(
        self,
        folders: Folders,
        *,
        tokens: Tokens | None = None,
        hosts: tuple[str, ...] = (),
        origins: tuple[str, ...] = (),
        rollout_dir: str | None = None,
        tenant: str | None = None,
        options: Options | None = None,
        close_on: str = "session_end",
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.folders = folders
        self.tokens = tokens
        self.hosts = frozenset(name.lower() for name in hosts)  # Host names beside those of the loopback interface
        self.origins = frozenset(origins)
        self.rollout_dir = rollout_dir
        self.tenant = tenant  # whose the records of this machine are that don't say it themselves
        self.options = options  # what rollouts tell
        self.idle_seconds = idle_seconds  # after how long without an event a running trace counts as timed out
        self.close_on = close_on  # what ends a run: `session_end`, or `stop` where each turn is one
        self.drifts = Slots(DRIFTS)
        self.streams = Slots(STREAMS)
        self.stopping = threading.Event()  # streams end when it is set

    def open(self) -> Store:
        """The store, brought up to date, which whoever asked closes. Raises StoreError."""
        return open_store(self.folders, idle_seconds=self.idle_seconds)
