"""What may stand in config.toml, and what in it is wrong: names that nothing reads, values of the wrong kind. Cold.

The table guardhook.policy.settings.KEYS decides what there is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.policy import config, settings, tomltext
from guardhook.policy.settings import FILE, KEYS, Key
from guardhook.policy.tomlfile import line_of

LOCKED = "locked"
_DURATION = re.compile(r"\d+(\.\d+)? ?(ms|s|m|h|d|w)", re.ASCII | re.IGNORECASE)
_SHOWN_CHARS = 4  # of a secret, at either end
_LONG_ENOUGH = 16  # shorter secrets show nothing at all


class Problem(NamedTuple):
    """Something in a config.toml that does nothing, or not what it looks like."""

    path: str
    line: int | None
    name: str
    message: str

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.name}: {self.message}"


def find(name: str) -> Key | None:
    """The row of a dotted name; a row that ends in `.*` stands for every key below."""
    for key in KEYS:
        if key.name == name:
            return key
    above, _, last = name.rpartition(".")
    return next((key for key in KEYS if last and key.name == f"{above}.*"), None)


def sections() -> dict[str, None]:
    """Names of all tables that hold settings: `gate`, `capture`, `capture.redaction` …"""
    out: dict[str, None] = {}
    for key in KEYS:
        words = key.name.split(".")[:-1]
        for count in range(1, len(words) + 1):
            out[".".join(words[:count])] = None
    return out


def nearest(name: str) -> str | None:
    """The setting or section whose name comes closest to one that does not exist."""
    known = [key.name for key in KEYS if not key.name.endswith(".*")] + list(sections())
    close = difflib.get_close_matches(name, known, 1, 0.6)
    if close:
        return close[0]
    ends = [
        k for k in known if k.rpartition(".")[2] == name.rpartition(".")[2]
    ]  # the right key in no or another section
    return ends[0] if ends else None


def unknown(name: str) -> str:
    """What to say of a name that is none."""
    close = nearest(name)
    return f"there is no such setting{f'; did you mean `{close}`?' if close else '; `guardhook config list` shows all'}"


def wrong(key: Key, name: str, value: object) -> str | None:
    """Why a value can't be used for a setting; None when it can."""
    said = _kind(key, value) or _bounds(key, value)
    if said is not None:
        return said
    section, _, rest = name.partition(".")
    if section not in config.SECTIONS:
        return None
    nested = value
    for word in reversed(rest.split(".")):
        nested = {word: nested}
    return config.problem(section, nested)


def _kind(key: Key, value: object) -> str | None:
    kind = key.kind
    if kind == "boolean":
        return None if isinstance(value, bool) else "true or false is needed"
    if kind in ("integer", "number"):
        fits = isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
        whole = "a whole number" if kind == "integer" else "a number"
        return None if fits and value == value and abs(value) != float("inf") else f"{whole} is needed"  # type: ignore[arg-type]
    if kind == "list":
        fits = isinstance(value, list) and all(isinstance(part, str) for part in value)
        return None if fits else "a list of texts is needed"
    if kind == "table":
        tables = value if isinstance(value, list) else [value]
        return None if all(isinstance(t, dict) for t in tables) else "a table is needed"
    if not isinstance(value, str) or not value.strip():
        return "a text is needed"
    if not value.isprintable():
        return "a text without line breaks and control characters is needed"
    if kind == "choice" and value not in key.choices:
        return f"use one of {', '.join(key.choices)}"
    if kind == "duration" and not _DURATION.fullmatch(value):
        return "a length of time is needed, such as 30d or 12h"
    return None


def _bounds(key: Key, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if key.least is not None and value < key.least:
        return f"must be at least {key.least:g}"
    if key.most is not None and value > key.most:
        return f"must be at most {key.most:g}"
    return None


def masked(value: object) -> str:
    """A secret as it may be shown: its ends, or nothing of a short one."""
    text = value if isinstance(value, str) else ""
    return f"{text[:_SHOWN_CHARS]}…{text[-_SHOWN_CHARS:]}" if len(text) >= _LONG_ENOUGH else "***"


def shown(name: str, value: object) -> object:
    """The value of a name, section or setting, with every secret in it masked."""
    if isinstance(value, dict):
        return {k: shown(f"{name}.{k}" if name else k, v) for k, v in value.items()}
    key = find(name)
    return masked(value) if key is not None and key.kind == "secret" else value


# --- what is wrong in the files ------------------------------------------------------------------------------------


def problems(folders: Folders) -> list[Problem]:
    """Everything in both files that no command reads or that can't be used. Broken files are not told here. Never raises."""
    out: list[Problem] = []
    for folder in dict.fromkeys((folders.system, folders.config)):
        path = f"{folder}/{FILE}"
        try:
            with open(path, "rb", opener=settings.plain) as file:
                text = file.read(settings.MOST_BYTES).decode("utf-8")
            found = tomltext.loads(text)
        except (OSError, ValueError, RecursionError):
            continue
        out += [Problem(path, line_of(text, name), name, said) for name, said in _walk("", found)]
    return out


def _walk(above: str, table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    tables = sections()
    for word, value in table.items():
        name = f"{above}.{word}" if above else word
        key = find(name)
        if word == LOCKED and above.count(".") == 0:
            if not isinstance(value, bool):
                yield name, "true or false is needed"
        elif key is not None:
            said = wrong(key, name, value)
            if said is not None:
                yield name, said
        elif name in tables:
            if isinstance(value, dict):
                yield from _walk(name, value)
            else:
                yield name, "a table is needed"
        else:
            yield name, f"{unknown(name)} (nothing reads it)"


def refused(found: settings.Settings, folders: Folders, name: str) -> str | None:
    """Why a user can't change a setting; None when he can."""
    if found.origin(name) == "system" and found.locked(name):
        return f"{name} is set and locked by {folders.system}/{FILE}; whoever keeps this machine can change it there"
    return None
