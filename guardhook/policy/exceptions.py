"""The user's exceptions: listing, adding and removing them in `exceptions.toml`. Cold; comments and layout stay."""

from __future__ import annotations

import datetime
import time
from typing import Any, NamedTuple

import msgspec
import tomlkit

from guardhook.core.folders import Folders
from guardhook.policy import check, edit, load, tomlfile
from guardhook.policy.model import ExceptionFile, Pattern, PolicyException

FILE = "exceptions.toml"


class Listed(NamedTuple):
    """One exception as it stands in the file. number counts from 1; until is the last day (or instant) on which it holds, as written."""

    number: int
    policy: str
    until: str
    expired: bool
    reason: str
    pattern: dict[str, object]


def listed(folders: Folders, now: float | None = None) -> list[Listed]:
    """All exceptions in the order of the file. Raises EditError when it can't be used."""
    path = f"{folders.config}/{FILE}"
    try:
        with open(path, "rb") as file:
            found = tomlfile.parse(file.read(), path, ExceptionFile).exception
    except FileNotFoundError:
        return []
    except OSError as error:
        raise edit.EditError(f"{path}: can't be read: {error.strerror}") from None
    except tomlfile.PolicyError as error:
        raise edit.EditError(str(error)) from None
    moment = time.time() if now is None else now
    return [
        Listed(number, e.policy, str(e.expires), _expired(e, moment), e.reason, dict(e.match.given()))
        for number, e in enumerate(found, 1)
    ]


def _expired(entry: PolicyException, now: float) -> bool:
    try:
        return load.expiry(entry.expires) <= now
    except (ValueError, OverflowError):
        return False  # it is an error, told by whoever loads it


def add(folders: Folders, policy: str, pattern: Pattern, reason: str, until: datetime.date) -> None:
    """Excepts what the pattern matches from a policy, up to and including a day. Raises EditError."""
    if not reason.strip():
        raise edit.EditError("a reason is needed; say why this is excepted")
    if load.expiry(until) <= time.time():
        raise edit.EditError(f"{until} is over; an exception ends on a day to come")
    try:
        check.pattern(pattern, "match")
    except check.Problem as problem:
        raise edit.EditError(f"{problem.field}: {problem}") from None
    if not pattern.given():
        raise edit.EditError("an empty pattern excepts nothing; name what is excepted, or disable the policy instead")
    with edit.editing(folders):
        found = edit.find(folders, policy)
        if found.layer == "system":
            raise edit.EditError(f"{found.policy.name!r} is a system policy, which a user can't except; ask whoever keeps {found.path}")  # fmt: skip
        path = f"{folders.config}/{FILE}"
        document = edit.document_of(path)
        table = tomlkit.table()
        if document.as_string().strip():
            table.trivia.indent = "\n"
        table["policy"] = found.policy.name
        table["match"] = edit.item(msgspec.to_builtins(pattern))
        table["reason"] = reason.strip()
        table["expires"] = until
        entries: Any = document.get("exception")
        if entries is None:
            document["exception"] = tomlkit.aot()
            entries = document["exception"]
        entries.append(table)
        edit.write(path, document, ExceptionFile)


def remove(folders: Folders, numbers: set[int]) -> None:
    """Removes exceptions by their numbers in `listed`. Raises EditError."""
    with edit.editing(folders):
        path = f"{folders.config}/{FILE}"
        document = edit.document_of(path)
        entries: Any = document.get("exception")
        for number in sorted(numbers, reverse=True):
            if entries is None or not 1 <= number <= len(entries):
                raise edit.EditError(f"there is no exception {number}; `guardhook guard exception list` shows all", 1)
            del entries[number - 1]
        if not entries:
            del document["exception"]
        edit.write(path, document, ExceptionFile)
