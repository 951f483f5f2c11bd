"""What an installation remembers about each settings file it changed: how it was before, and how it was left.

Below the data folder: `installs/<hash of the path>.json` and, beside it, `.before` with the file's former bytes (the backup). When
a file is still exactly as it was left, uninstalling brings those bytes back; otherwise only our entries are taken out.
`registrations` lists every registered file, one line each, for the gate, which objects when a harness drops us from one.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass, field
from typing import Any

from guardhook.core.folders import Folders
from guardhook.harness.errors import HarnessError
from guardhook.harness.files import digest
from guardhook.harness.model import JsonPath, Undo

FOLDER = "installs"
REGISTRATIONS = (
    "registrations"  # dialect, scope and settings file, parted by tabs (read by guardhook.gate.configchange)
)


@dataclass
class Record:
    """One changed file. before None: it did not exist. after is the SHA-256 of what we left."""

    dialect: str
    scope: str
    path: str
    before: bytes | None
    after: str
    created: list[JsonPath] = field(default_factory=list)
    previous: list[tuple[JsonPath, Any, Any]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # made for it, outermost first

    def undo(self) -> Undo:
        return Undo(tuple(self.created), tuple(self.previous), known=True)

    def untouched(self, data: bytes | None) -> bool:
        """Whether nobody changed the file since."""
        return data is not None and digest(data) == self.after


def load(folders: Folders, path: str) -> Record | None:
    """The record of a file, None when there is none or it can't be believed (then removal goes by the entries alone)."""
    stem = _stem(folders, path)
    try:
        with open(stem + ".json", encoding="utf-8") as file:
            value = json.load(file)
        before = None
        if value["before"] is not None:
            with open(stem + ".before", "rb") as file:
                before = file.read()
        if digest(before) != value["before"] or value["path"] != path:
            return None
        created = [tuple(p) for p in value["created"]]
        previous = [(tuple(p), ours, theirs) for p, ours, theirs in value["previous"]]
        return Record(
            value["dialect"], value["scope"], path, before, value["after"], created, previous, list(value["folders"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(folders: Folders, record: Record) -> str | None:
    """Stores a record; gives the path of the backup, None where there was no file to back up. Raises HarnessError."""
    stem = _stem(folders, record.path)
    value = {
        "v": 1,
        "dialect": record.dialect,
        "scope": record.scope,
        "path": record.path,
        "before": digest(record.before),
        "after": record.after,
        "created": record.created,
        "previous": record.previous,
        "folders": record.folders,
    }
    try:
        os.makedirs(os.path.dirname(stem), mode=0o700, exist_ok=True)
        if record.before is not None:
            _put(stem + ".before", record.before)
        _put(stem + ".json", json.dumps(value, indent=1).encode() + b"\n")
    except OSError as error:
        raise HarnessError(f"{stem}.json can't be written: {error.strerror}") from None
    return None if record.before is None else stem + ".before"


def forget(folders: Folders, path: str) -> None:
    """Removes a record and its backup."""
    for suffix in (".json", ".before"):
        try:
            os.unlink(_stem(folders, path) + suffix)
        except FileNotFoundError:
            pass
    try:
        os.rmdir(os.path.join(folders.data, FOLDER))
    except OSError:
        pass


def known(folders: Folders, dialect: str, scope: str | None = None) -> list[Record]:
    """The records of a harness, of one scope or of all, by path."""
    folder = os.path.join(folders.data, FOLDER)
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if name.endswith(".json"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    path = json.load(file)["path"]
            except (OSError, ValueError, KeyError, TypeError):
                continue
            record = load(folders, path)
            if record and record.dialect == dialect and scope in (None, record.scope):
                found.append(record)
    return sorted(found, key=lambda r: r.path)


def registrations(folders: Folders) -> list[tuple[str, str, str]]:
    """Every (dialect, scope, settings file) that is registered from this data folder."""
    try:
        with open(os.path.join(folders.data, REGISTRATIONS), encoding="utf-8") as file:
            rows = [tuple(line.rstrip("\n").split("\t")) for line in file]
    except (OSError, ValueError):
        return []
    return [(r[0], r[1], r[2]) for r in rows if len(r) == 3]


def register(folders: Folders, dialect: str, scope: str, paths: list[str], *, project: str) -> None:
    """Sets the registered files of a harness in a scope ([]: none). Files of other projects stay. Raises HarnessError."""
    rows = [
        r
        for r in registrations(folders)
        if r[:2] != (dialect, scope) or (scope == "project" and not r[2].startswith(project.rstrip("/\\") + os.sep))
    ]
    # A path with a tab or a line break can't be listed; the gate then minds that file's own switches only.
    rows += [(dialect, scope, path) for path in paths if not any(c in path for c in "\t\r\n")]
    file = os.path.join(folders.data, REGISTRATIONS)
    try:
        if rows:
            _put(file, "".join("\t".join(r) + "\n" for r in sorted(rows)).encode("utf-8", "surrogateescape"))
        elif os.path.lexists(file):
            os.unlink(file)
    except OSError as error:
        raise HarnessError(f"{file} can't be written: {error.strerror}") from None


def _stem(folders: Folders, path: str) -> str:
    name = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return os.path.join(folders.data, FOLDER, name)


def _put(path: str, data: bytes) -> None:
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
