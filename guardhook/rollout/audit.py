"""Checking an audit trail, and keeping its head elsewhere. How a trail is written: guardhook.journal.audit.

A chain shows what was changed, swapped, put in or taken out between its entries. It does not show that entries were cut off at its end, nor that somebody
wrote all of it anew: that takes an anchor, a hash of some entry that was kept where the writer of the file could not reach it.
"""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.core.jsontext import PayloadError, dumps, loads
from guardhook.journal import audit
from guardhook.journal.recover import is_day

LINE_BYTES = 16 << 20
_CHUNK = 1 << 20
_MEMBERS = {"timestamp", "run_id", "event_type", "prev_hash", "entry_hash"}
_TEXTS = tuple(sorted(_MEMBERS))
_ANCHOR_FILE = 64 << 20
_SALT = b"guardhook audit anchor 1\n"


class Unreadable(Exception):
    """A file that can't be read at all; the message names it."""


class Bad(NamedTuple):
    """The first line that breaks the chain. kind: parse, prev_hash, entry_hash, truncated_tail or anchor."""

    line: int
    kind: str
    message: str


class Verified(NamedTuple):
    """entries: how many are whole, counted from the beginning; head: the hash of the last of them."""

    path: str
    entries: int
    head: str
    bad: Bad | None
    first: str | None = None  # time stamps of the first and the last of them
    last: str | None = None


class Anchor(NamedTuple):
    """That the chain of a day had this hash at this entry (counted from 1). mac: keyed, None where no key was used."""

    day: str
    entries: int
    hash: str
    mac: str | None = None

    def text(self, at: str) -> str:
        own: dict[str, object] = {"day": self.day, "entries": self.entries, "entry_hash": self.hash, "anchored_at": at}
        return dumps(own if self.mac is None else {**own, "hmac": self.mac})


def verify(path: str, anchors: Iterable[Anchor] = ()) -> Verified:
    """Follows the chain to its end or to the first bad line. Memory: one line. Raises Unreadable."""
    wanted = sorted(anchors, key=lambda a: a.entries)
    before, count, number = audit.GENESIS, 0, 0
    first = last = None
    for number, raw, complete in _lines(path):
        if not complete:
            return Verified(
                path, count, before, Bad(number, "truncated_tail", "the last line is unfinished"), first, last
            )
        found = _entry(raw)
        if isinstance(found, str):
            return Verified(path, count, before, Bad(number, "parse", found), first, last)
        if found["prev_hash"] != before:
            said = "the first entry does not begin a chain" if count == 0 else "it does not follow the entry before it"
            return Verified(path, count, before, Bad(number, "prev_hash", said), first, last)
        try:
            ts, run, kind = (str(found[name]) for name in ("timestamp", "run_id", "event_type"))
            own = audit.entry_hash(ts, run, kind, found.get("payload"), before)
        except (ValueError, RecursionError) as error:
            return Verified(path, count, before, Bad(number, "parse", f"the payload has no hash: {error}"), first, last)
        if own != found["entry_hash"]:
            return Verified(path, count, before, Bad(number, "entry_hash", "it is not what was written: its hash is another one"), first, last)  # fmt: skip
        count, before = count + 1, own
        last = ts
        first = first or last
        while wanted and wanted[0].entries == count:
            anchor = wanted.pop(0)
            if anchor.hash != own:
                return Verified(path, count, before, Bad(number, "anchor", "its hash is not the one that was anchored: the chain was written anew"), first, last)  # fmt: skip
    if wanted:
        said = f"{wanted[-1].entries} entries were anchored, only {count} are there: entries were cut off"
        return Verified(path, count, before, Bad(number + 1, "anchor", said), first, last)
    return Verified(path, count, before, None, first, last)


def _entry(raw: bytes) -> dict[str, object] | str:
    """The members of a line, or what is wrong with it. A member that no hash covers is wrong."""
    try:
        value = loads(raw, bounded=False)
    except PayloadError as error:
        return str(error).replace("the payload", "the line")
    if not isinstance(value, dict):
        return "not an object"
    if not set(value) >= _MEMBERS or set(value) - _MEMBERS - {"payload"}:
        return "not the members of an entry"
    if not all(isinstance(value[name], str) for name in _TEXTS):
        return "a member is no text"
    return value


def _lines(path: str) -> Iterator[tuple[int, bytes, bool]]:
    """(number, bytes, whether it is complete). Raises Unreadable."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable(f"{path}: not a regular file")
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Unreadable(f"{path}: not a regular file")
        number, rest = 0, b""
        try:
            while chunk := file.read(_CHUNK):
                *whole, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else [rest + chunk]
                for raw in whole:
                    number += 1
                    yield number, raw, True
                if len(rest) > LINE_BYTES:
                    break
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror or error}") from None
        if rest:
            yield number + 1, rest, False


def files_in(folder: str) -> list[str]:
    """The trails below a rollout folder, by day. Raises Unreadable."""
    try:
        days = sorted(name for name in os.listdir(folder) if is_day(name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unreadable(f"{folder}: {error.strerror or error}") from None
    paths = [f"{folder}/{day}/{audit.FILE}" for day in days]
    return [path for path in paths if os.path.lexists(path)]


def missed(folders: Folders) -> int:
    """How many entries wait for the next writer."""
    try:
        return sum(1 for name in os.listdir(f"{folders.data}/{audit.MISSED}") if not name.startswith("."))
    except OSError:
        return 0


def day_of(path: str) -> str:
    """The day of a trail by its folder's name; the folder's whole name where it is no day."""
    return os.path.basename(os.path.dirname(os.path.abspath(path)))


# --- anchors ---------------------------------------------------------------------------------------------------------


def anchor(found: Verified, key: bytes | None) -> Anchor:
    day = day_of(found.path)
    return Anchor(day, found.entries, found.head, None if key is None else _mac(key, day, found.entries, found.head))


def _mac(key: bytes, day: str, entries: int, digest: str) -> str:
    return hmac.digest(key, _SALT + f"{day}\n{entries}\n{digest}".encode(), "sha256").hex()


def read_anchors(path: str, key: bytes | None) -> list[Anchor]:
    """The anchors in a file of lines that `Anchor.text` gave. With a key each one must carry the right keyed hash. Raises Unreadable, with the line."""
    found: list[Anchor] = []
    for number, raw, _ in _lines(path):
        if not raw.strip():
            continue
        try:
            value = loads(raw)
        except PayloadError:
            value = None
        if not isinstance(value, dict):
            raise Unreadable(f"{path}: line {number} is no anchor")
        day, entries, digest, mac = (value.get(name) for name in ("day", "entries", "entry_hash", "hmac"))
        if not isinstance(day, str) or type(entries) is not int or entries < 1 or not isinstance(digest, str):
            raise Unreadable(f"{path}: line {number} is no anchor")
        if key is not None and not (isinstance(mac, str) and mac.isascii() and hmac.compare_digest(mac, _mac(key, day, entries, digest))):  # fmt: skip
            raise Unreadable(f"{path}: line {number} was not made with this key")
        found.append(Anchor(day, entries, digest, mac if isinstance(mac, str) else None))
    return found
