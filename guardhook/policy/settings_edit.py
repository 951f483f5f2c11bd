"""Changing config.toml: `guardhook config set`. Cold.

Comments, order and everything that a change is not about stay as they are, mistakes included.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import tomlkit

from guardhook.core.folders import Folders
from guardhook.policy import edit, tomltext
from guardhook.policy.settings import FILE, Key
from guardhook.policy.settings_check import wrong

_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


class BadValue(ValueError):
    """A value that a setting does not take, and what it takes."""


def convert(key: Key, name: str, text: str) -> object:
    """The typed value that a text means for a setting. Raises BadValue."""
    given = text.strip()
    if not given:
        raise BadValue("a value is needed; `guardhook config unset` goes back to the default")
    value: object = given
    if key.kind == "boolean":
        if given.lower() not in (*_TRUE, *_FALSE):
            raise BadValue("true or false is needed")
        value = given.lower() in _TRUE
    elif key.kind in ("integer", "number"):
        value = _number(given)
    elif key.kind == "list":
        value = _list(given)
    elif key.kind == "table":
        raise BadValue(f"this is a table; write it into {FILE} by hand")
    problem = wrong(key, name, value)
    if problem is not None:
        raise BadValue(problem)
    return value


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text) if "_" not in text else text
        except ValueError:
            continue
    return text


def _list(text: str) -> list[str]:
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, list) or not all(isinstance(part, str) for part in found):
            raise BadValue('a list of texts is needed, such as ["a", "b"] or a,b')
        return found
    return [part.strip() for part in text.split(",") if part.strip()]


def put(folders: Folders, name: str, value: object) -> str:
    """Sets a value in the user's file and gives its path. Raises edit.EditError."""
    with edit.editing(folders):
        path = f"{folders.config}/{FILE}"
        document = edit.document_of(path)
        before = document.unwrap()
        *above, last = name.split(".")
        table: Any = document
        for word in above:
            if word not in table:
                table[word] = tomlkit.table()
            table = table[word]
            if not isinstance(table, Mapping):
                raise edit.EditError(f"{path}: `{word}` is no table; mend it first")
        _assign(table, last, value)
        _save(path, document, _changed(before, name, value))
        return path


def drop(folders: Folders, name: str) -> str | None:
    """Takes a value out of the user's file and gives its path; None when it was not there. Raises edit.EditError."""
    with edit.editing(folders):
        path = f"{folders.config}/{FILE}"
        document = edit.document_of(path)
        before = document.unwrap()
        *above, last = name.split(".")
        table: Any = document
        for word in above:
            table = table.get(word) if isinstance(table, Mapping) else None
        if not isinstance(table, Mapping) or last not in table:
            return None
        del table[last]  # type: ignore[attr-defined]
        _save(path, document, _changed(before, name, None))
        return path


def _assign(table: Any, last: str, value: object) -> None:
    plain = [k for k in table if not isinstance(table[k], (dict, list)) or isinstance(table[k], tomlkit.items.Array)]
    if last in table or not plain or not isinstance(table, tomlkit.items.Table):
        table[last] = value
        return
    # At the table's end a new line would land behind the comment of what comes next.
    item = tomlkit.item(value)
    item.trivia.trail = table[plain[-1]].trivia.trail
    if item.trivia.trail:
        table.value._insert_after(plain[-1], last, item)  # tomlkit offers no other way
    else:  # the file's last line, without an end
        table[last] = value


def _changed(before: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    """What the file must say afterwards. value None: without the name."""
    out: dict[str, Any] = json.loads(json.dumps(before, default=str))
    *above, last = name.split(".")
    table = out
    for word in above:
        table = table.setdefault(word, {})
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value
    return out


def _save(path: str, document: tomlkit.TOMLDocument, wanted: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    try:
        made = json.loads(json.dumps(tomltext.loads(text), default=str))
    except ValueError:
        made = None
    if made != wanted:
        raise edit.EditError(f"{path}: the change would alter more than this value, so nothing was written; edit it by hand")  # fmt: skip
    edit.replace(path, text.encode("utf-8"), 0o600)
