"""The same hooks table in TOML, as Codex reads it: `[[hooks.<Event>]]` groups with `[[hooks.<Event>.hooks]]` handlers.

New entries are appended as text, below a marker comment, so that not a byte above them changes. tomlkit, which keeps
comments and order, is used where something has to change in the middle. What was done is checked by parsing both texts.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from guardhook.harness import tomllines
from guardhook.harness.errors import HarnessError
from guardhook.harness.hooksfile import Ours
from guardhook.harness.model import ABSENT, FileEdit
from guardhook.policy import tomltext

BEGIN = "# The hooks below are written by `guardhook install` and removed by `guardhook uninstall`."
_DEEPEST = 100
_BOM = "\ufeff"  # which the client tolerates, and the parsers used here don't


def parse(path: str, data: bytes | None) -> dict[str, Any]:
    """A TOML file's values, {} where there is none. Raises HarnessError with file, line and column."""
    try:
        values = tomltext.loads(_text(path, data))
        _shallow(values)
        return values
    except RecursionError:
        raise HarnessError(f"{path}: nested too deeply", "the file was not changed; put this right first") from None
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        where = f":{match.group(1)}:{match.group(2)}" if match else ""
        message = re.sub(r" \(at .*\)$", "", str(error)).lower()
        raise HarnessError(
            f"{path}{where}: {message}", "the file was not changed; put this right, then run the command again"
        ) from None


def _shallow(values: object) -> None:
    """Raises RecursionError for values so deep that comparing or copying them would."""
    level, depth = [values], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise RecursionError
        level = [below for item in level if isinstance(item, (dict, list)) for below in _below(item)]


def _below(item: dict[str, Any] | list[Any]) -> list[Any]:
    return list(item.values()) if isinstance(item, dict) else item


def _text(path: str, data: bytes | None) -> str:
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        line = (data or b"").count(b"\n", 0, error.start) + 1
        raise HarnessError(f"{path}:{line}: the file is not valid UTF-8", "the file was not changed") from None
    return text.removeprefix(_BOM).replace("\r\n", "\n")


def groups(values: Mapping[str, Any]) -> list[tuple[str, int, Mapping[str, Any]]]:
    """(event, position, group) of every well-formed group."""
    hooks = values.get("hooks")
    found: list[tuple[str, int, Mapping[str, Any]]] = []
    for event, items in hooks.items() if isinstance(hooks, dict) else ():
        if event != "state" and isinstance(items, list):
            found += [
                (event, n, g) for n, g in enumerate(items) if isinstance(g, dict) and isinstance(g.get("hooks"), list)
            ]
    return found


def inline(values: Mapping[str, Any], text: str) -> bool:
    """Whether hooks are written as inline values, to which tables can't be appended."""
    return bool(groups(values)) and not re.search(r"^[ \t]*\[\[[ \t]*hooks[ \t]*\.", text, re.M)


def register(
    path: str,
    data: bytes | None,
    wanted: Mapping[str, Any],
    ours: Ours,
    pins: Mapping[tuple[str, str], Any] | None = None,
) -> FileEdit:
    """The edit that leaves exactly the given groups as ours, and sets `table.key` values (pins). Raises HarnessError."""
    values = parse(path, data)
    standing: dict[str, list[Any]] = {}
    for event, _, group in groups(values):
        standing.setdefault(event, []).extend([group] if any(ours(h) for h in group["hooks"]) else [])
    standing = {event: mine for event, mine in standing.items() if mine}
    want = {event: [group] for event, group in wanted.items()}
    after = data or b""
    if standing != want:
        if standing and standing.keys() <= want.keys() and all(len(mine) == 1 for mine in standing.values()):
            # Changed in place: Codex trusts by position, and another's position must not move.
            after = _updated(path, after, {event: want[event][0] for event in standing}, ours)
            want = {event: group for event, group in want.items() if event not in standing}
        elif standing:
            after = unregister(path, after, ours).after or b""
        after = (
            tomllines.append(after, BEGIN + "\n" + "\n".join(_render(event, mine[0]) for event, mine in want.items()))
            if want
            else after
        )
    previous: list[tuple[tuple[str, ...], Any, Any]] = []
    for (table, key), value in (pins or {}).items():
        now = values.get(table, {}).get(key) if isinstance(values.get(table), dict) else None
        if now != value:
            after = _pin(path, after, table, key, value)
            previous.append(((table, key), value, ABSENT if now is None else now))
    edit = FileEdit(path, data, after if data is not None or after else None, previous=previous)
    _verify(edit, ours, list(pins or ()))
    return edit


def unregister(
    path: str, data: bytes, ours: Ours, previous: tuple[tuple[tuple[str, ...], Any, Any], ...] = ()
) -> FileEdit:
    """The edit that takes our groups out, and puts values that we changed back where they are still ours. Raises HarnessError."""
    parse(path, data)
    after = data
    if any(ours(h) for _, _, group in groups(parse(path, data)) for h in group["hooks"]):
        after = _without(path, data, ours)
    marker = re.compile(rb"(?:(?<=\n)\r?\n)?" + re.escape(BEGIN.encode()) + rb"\r?\n")
    after = marker.sub(b"", after)
    for where, mine, theirs in previous:
        holder = parse(path, after).get(where[0])
        if isinstance(holder, dict) and holder.get(where[1]) == mine:
            after = _unpin(path, after, where[0], where[1], theirs)
    edit = FileEdit(path, data, after, previous=list(previous))
    _verify(edit, ours, [(w[0], w[1]) for w, _, _ in previous])
    return edit


def edit(path: str, data: bytes, change: Callable[[Any], None]) -> bytes:
    """Runs change(document) on a tomlkit document and gives the text. Raises HarnessError, also when a comment would be lost."""
    try:
        text = data.decode("utf-8")
        document = tomlkit.parse(text.removeprefix(_BOM))
        change(document)
        after = ((_BOM if text.startswith(_BOM) else "") + tomlkit.dumps(document)).encode("utf-8")
    except (TOMLKitError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(
            f"{path}: this file can't be edited safely ({type(error).__name__})", "edit it by hand; nothing was written"
        ) from None
    if _comments(data) - _comments(after):
        raise HarnessError(
            f"{path}: a comment would be lost by this edit", "take guardhook's entries out by hand; nothing was written"
        )
    return after


def _comments(data: bytes) -> Counter[bytes]:
    return Counter(
        line.strip() for line in data.splitlines() if line.strip()[:1] == b"#" and line.strip() != BEGIN.encode()
    )


def _render(event: str, group: Mapping[str, Any]) -> str:
    lines = [f"[[hooks.{event}]]"]
    lines += [f"{key} = {tomllines.value_of(value)}" for key, value in group.items() if key != "hooks"]
    for handler in group["hooks"]:
        lines += [
            f"[[hooks.{event}.hooks]]",
            *(f"{key} = {tomllines.value_of(value)}" for key, value in handler.items()),
        ]
    return "\n".join(lines) + "\n"


def _without(path: str, data: bytes, ours: Ours) -> bytes:
    """Takes our handlers out, and the groups that have no other."""
    gone = {(e, n, i) for e, n, g in groups(parse(path, data)) for i, h in enumerate(g["hooks"]) if ours(h)}
    after = tomllines.rewrite(data, dict.fromkeys(gone))
    try:
        if not any(ours(h) for _, _, g in groups(parse(path, after)) for h in g["hooks"]):
            return after
    except HarnessError:
        pass
    return edit(path, data, lambda document: _drop(document, ours))  # written in another way than with tables


def _updated(path: str, data: bytes, wanted: Mapping[str, Any], ours: Ours) -> bytes:
    """Gives our handlers other values where they stand."""
    change = {
        (e, n, i): wanted[e]["hooks"][0]
        for e, n, g in groups(parse(path, data))
        for i, h in enumerate(g["hooks"])
        if e in wanted and ours(h)
    }
    after = tomllines.rewrite(data, change)
    try:
        now = {
            e: g["hooks"][i]
            for e, n, g in groups(parse(path, after))
            for i in range(len(g["hooks"]))
            if (e, n, i) in change
        }
        if now == {e: g["hooks"][0] for e, g in wanted.items()}:
            return after
    except HarnessError:
        pass
    return edit(path, data, lambda document: _set(document, wanted, ours))


def _drop(document: Any, ours: Ours) -> None:
    hooks = document["hooks"]
    for event in [e for e in hooks if e != "state"]:
        for number in range(len(hooks[event]) - 1, -1, -1):
            inner = hooks[event][number].get("hooks", [])
            for index in range(len(inner) - 1, -1, -1):
                if ours(dict(inner[index].unwrap())):
                    del inner[index]
                    if not len(inner):
                        del hooks[event][number]
        if not len(hooks[event]):
            del hooks[event]
    if not len(hooks):
        del document["hooks"]


def _set(document: Any, wanted: Mapping[str, Any], ours: Ours) -> None:
    for event, group in wanted.items():
        for handler in (h for there in document["hooks"][event] for h in there["hooks"]):
            if ours(dict(handler.unwrap())):
                for key in [k for k in handler if k not in group["hooks"][0]]:
                    del handler[key]
                for key, value in group["hooks"][0].items():
                    handler[key] = value


def _pin(path: str, data: bytes, table: str, key: str, value: Any) -> bytes:
    if table not in parse(path, data):
        # Tables may stand anywhere, but keys without a table only before the first one: append as text.
        newline = b"\r\n" if b"\r\n" in data else b"\n"
        lead = newline if data and not data.endswith(b"\n") else b""
        return data + lead + f"[{table}]\n{key} = {tomllines.value_of(value)}\n".encode().replace(b"\n", newline)

    def change(document: Any) -> None:
        document[table][key] = value

    return edit(path, data, change)


def _unpin(path: str, data: bytes, table: str, key: str, theirs: Any) -> bytes:
    def change(document: Any) -> None:
        if theirs == ABSENT:
            del document[table][key]
            if not len(document[table]):
                del document[table]
        else:
            document[table][key] = theirs

    return edit(path, data, change)


def _verify(made: FileEdit, ours: Ours, pins: list[tuple[str, str]]) -> None:
    before, after = (_rest(made.path, data, ours, pins) for data in (made.before, made.after))
    if before != after:
        raise HarnessError(
            f"{made.path}: the edit would change more than guardhook's own entries",
            "nothing was written; please report this",
        )


def _rest(path: str, data: bytes | None, ours: Ours, pins: list[tuple[str, str]]) -> Any:
    values = copy.deepcopy(parse(path, data))
    hooks: Any = values.get("hooks")
    for event, number, _ in groups(values):
        inner = hooks[event][number]["hooks"]
        inner[:] = [h for h in inner if not ours(h)]
    for event in hooks if isinstance(hooks, dict) else ():
        if event == "state" or not isinstance(hooks[event], list):
            continue
        hooks[event] = [g for g in hooks[event] if not (isinstance(g, dict) and g.get("hooks") == [])]
    if isinstance(hooks, dict):
        for event in [e for e, v in hooks.items() if v == []]:
            del hooks[event]
        if not hooks:
            del values["hooks"]
    for table, key in pins:
        if isinstance(values.get(table), dict):
            values[table].pop(key, None)
            if not values[table]:
                del values[table]
    return values
