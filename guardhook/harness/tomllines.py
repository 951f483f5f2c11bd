"""TOML as lines: what can be taken out, renamed or added without parsing and writing the whole file.

tomlkit keeps comments and order too, but moves blank lines and drops some comments when tables go. These functions change lines
and nothing else. They know headers from look-alikes inside multi-line strings and arrays; their callers still parse
what came out and compare.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from guardhook.policy import tomltext

Place = tuple[str, int, int]  # event, group, handler (-1: the group itself)
_GROUP = re.compile(rb"[ \t]*\[\[[ \t]*hooks[ \t]*\.[ \t]*(\w+)[ \t]*\]\]")
_HANDLER = re.compile(rb"[ \t]*\[\[[ \t]*hooks[ \t]*\.[ \t]*(\w+)[ \t]*\.[ \t]*hooks[ \t]*\]\]")
_TOKEN = re.compile(
    rb"#[^\n]*|\"\"\"(?:\\.|[^\\])*?\"{3,5}|'''.*?'{3,5}|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|[\[\]{}\n]", re.S
)


def fresh(data: bytes) -> list[bool]:
    """Per line: whether it begins a statement, that is, not inside a string, an array or an inline table."""
    starts = [True]
    depth = 0
    at = 0
    while match := _TOKEN.search(data, at):
        token = match.group()
        at = match.end()
        line = data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        if token == b"[" and depth == 0 and starts[-1] and not line.strip():
            # A header: it ends with its line, whatever quotes and brackets are in it.
            end = data.find(b"\n", at)
            at = len(data) if end < 0 else end
        elif token == b"\n":
            starts.append(depth == 0)
        elif token in (b"[", b"{"):
            depth += 1
        elif token in (b"]", b"}"):
            depth -= 1
        else:
            starts += [False] * token.count(b"\n")
    return starts


def headers(data: bytes) -> list[bool]:
    """Per line: whether it is a table's header."""
    return [new and line.lstrip()[:1] == b"[" for new, line in zip(fresh(data), data.split(b"\n"), strict=True)]


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends; unlike splitlines, only a line feed ends one."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def quoted(text: str) -> str:
    """A TOML basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value_of(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def append(data: bytes, block: str) -> bytes:
    """The file with a block of text at its end, in the file's own line ends."""
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    text = block.strip("\n").encode().replace(b"\n", newline) + newline
    if data and not data.endswith(b"\n"):
        data += newline
    return data + (newline if data else b"") + text


def rename_tables(data: bytes, table: str, names: Mapping[str, str | None]) -> bytes:
    """Renames (None: removes) tables `[table."name"]` that have a header of their own, as text: comments around them stay.

    Removed are the header and the plain `key = value` lines below it. The caller checks what came out of it.
    """
    kept: list[bytes] = []
    removing = False
    for header, line in zip(headers(data), _lines(data), strict=False):
        name = _table_name(line, table) if header else None
        if name is not None and name in names:
            new = names[name]
            removing = new is None
            if new is not None:
                line = f"[{table}.{quoted(new)}]".encode() + line[len(line.rstrip(b"\r\n")) :]
            elif kept and not kept[-1].strip():
                kept.pop()
        elif header or line.strip()[:1] == b"#":
            removing = False
        if not removing or not line.strip():
            kept.append(line)
    return b"".join(kept)


def drop_empty_table(data: bytes, table: str) -> bytes:
    """Takes the header `[table]` away where nothing stands below it."""
    lines = _lines(data)
    for at, (header, line) in enumerate(zip(headers(data), lines, strict=False)):
        if header and line.strip() == f"[{table}]".encode():
            after = next((x.strip()[:1] for x in lines[at + 1 :] if x.strip()[:1] not in (b"", b"#")), b"[")
            if after == b"[":
                start = at - 1 if at and not lines[at - 1].strip() else at
                return b"".join(lines[:start] + lines[at + 1 :])
    return data


def _table_name(line: bytes, table: str) -> str | None:
    text = line.strip()
    if not text.startswith(f"[{table}.".encode()):
        return None
    try:
        values: Any = tomltext.loads(text.decode("utf-8"))
    except ValueError:
        return None
    for key in table.split("."):
        values = values[key]
    return next(iter(values)) if len(values) == 1 else None


def rewrite(data: bytes, change: Mapping[Place, Mapping[str, Any] | None]) -> bytes:
    """Rewrites the lines of handlers (None: removes them, and groups that have no other); comments and all else stay.

    Right for tables with headers of their own and values of one line; the callers check what came out.
    """
    lines, heads = _lines(data), headers(data)
    places = _places(lines, heads)
    counts: Counter[tuple[str, int]] = Counter((e, n) for e, n, i in places.values() if i >= 0)
    dropped: Counter[tuple[str, int]] = Counter((e, n) for (e, n, _), new in change.items() if new is None)
    kept: list[bytes] = []
    rewriting = False
    for at, line in enumerate(lines):
        place = places.get(at)
        if place is not None or heads[at]:
            whole = place is not None and place[2] < 0 and 0 < counts[place[:2]] == dropped[place[:2]]
            new = change.get(place) if place is not None else None
            rewriting = whole or (place is not None and place in change)
            if rewriting and new is None:
                if kept and not kept[-1].strip():
                    kept.pop()
                continue
            kept.append(line)
            if new is not None:
                newline = line[len(line.rstrip(b"\r\n")) :]
                kept += [f"{key} = {value_of(value)}".encode() + newline for key, value in new.items()]
        elif not rewriting or not line.strip() or line.lstrip()[:1] == b"#":
            kept.append(line)
    return b"".join(kept)


def _places(lines: list[bytes], heads: list[bool]) -> dict[int, Place]:
    """Line number -> what its header begins: a group (handler -1) or a handler."""
    found: dict[int, Place] = {}
    group: Counter[str] = Counter()
    handler: Counter[tuple[str, int]] = Counter()
    for at, line in enumerate(lines):
        if not heads[at]:
            continue
        if match := _GROUP.match(line):
            event = match.group(1).decode()
            found[at] = (event, group[event], -1)
            group[event] += 1
        elif match := _HANDLER.match(line):
            event = match.group(1).decode()
            number = group[event] - 1
            found[at] = (event, number, handler[event, number])
            handler[event, number] += 1
    return found
