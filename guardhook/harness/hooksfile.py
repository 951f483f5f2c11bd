"""The hooks table that Claude Code, Codex and Gemini share in JSON: `hooks.<Event>[] = {…, hooks: [handler, …]}`.

Our entries are groups of one handler. They are appended, never put first: Codex trusts hooks by their position, so
that an entry before another one would cost that other its trust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guardhook.harness import jsonc, jsonedit
from guardhook.harness.errors import HarnessError
from guardhook.harness.jsonc import Document, Node
from guardhook.harness.model import ABSENT, FileEdit, JsonPath, Undo

Ours = Callable[[object], bool]  # is this handler one of ours?


def parse(path: str, data: bytes | None) -> Document:
    """A settings file, or an empty object where there is none. Raises HarnessError with file, line and column."""
    try:
        document = jsonc.parse_bytes(data or b"")
    except jsonc.JsoncError as error:
        raise HarnessError(
            f"{path}:{error.line}:{error.column}: {error.message}",
            "the file was not changed; put this right, then run the command again",
        ) from None
    if document.root.kind != "object":
        raise HarnessError(f"{path}:1:1: the settings are not an object", "the file was not changed")
    return document


def refuse_extras(document: Document, path: str, client: str, *, comments: bool, bom: bool) -> None:
    """Refuses what is not plain JSON where a client does not read it: it would start without our hooks, or not at all.

    comments and bom say whether this client reads those; none reads a comma before a closing bracket. Raises HarnessError.
    """
    found = [(document.trailing, "a comma before a closing bracket")]
    found += [] if comments else [(document.comment, "a comment")]
    found += [(0, "a byte-order mark")] if document.bom and not bom else []
    for offset, what in found:
        if offset >= 0:
            line, column = document.position(offset)
            raise HarnessError(
                f"{path}:{line}:{column}: {what}: {client} can't read this file, and runs no hook of it",
                "take it out, then run the command again",
            )


def place(document: Document, path: str, node: Node) -> str:
    """`file:line:column` of a value, for messages."""
    line, column = document.position(node.start)
    return f"{path}:{line}:{column}"


def hooks_node(document: Document, path: str) -> Node | None:
    """The hooks table. Raises HarnessError where it, or an event in it, is not what the clients read, or is there twice."""
    _once(document, path, document.root)
    hooks = document.root.get("hooks")
    if hooks is None:
        return None
    if hooks.kind != "object":
        raise HarnessError(
            f"{place(document, path, hooks)}: `hooks` is not an object",
            "no hook of this file can run; put it right first",
        )
    _once(document, path, hooks)
    return hooks


def _once(document: Document, path: str, node: Node) -> None:
    seen: set[str] = set()
    for child in node.children:
        if child.key in seen:
            line, column = document.position(child.start)
            raise HarnessError(
                f"{path}:{line}:{column}: {child.key!r} is there twice", "keep one of them; the file was not changed"
            )
        seen.add(str(child.key))


@dataclass
class Handler:
    """One handler as it stands in the file."""

    event: str
    group: int
    index: int
    value: Any
    alone: bool  # nothing else is in its group
    group_value: Any
    node: Node


def handlers(document: Document, path: str) -> list[Handler]:
    """Every handler of every event, in order. Malformed groups are passed over; `hooks_node` refuses malformed tables."""
    found: list[Handler] = []
    hooks = hooks_node(document, path)
    for child in hooks.children if hooks else ():
        for number, group in enumerate(child.node.children if child.node.kind == "array" else ()):
            inner = group.node.get("hooks") if group.node.kind == "object" else None
            if inner is None or inner.kind != "array":
                continue
            group_value = group.node.plain()
            found += [
                Handler(
                    str(child.key), number, index, one.node.plain(), len(inner.children) == 1, group_value, one.node
                )
                for index, one in enumerate(inner.children)
            ]
    return found


@dataclass
class _Work:
    path: str
    document: Document
    ours: Ours
    created: list[JsonPath] = field(default_factory=list)
    previous: list[tuple[JsonPath, Any, Any]] = field(default_factory=list)


def register(
    path: str, data: bytes | None, groups: Mapping[str, Any], ours: Ours, settings: Mapping[JsonPath, Any] | None = None
) -> FileEdit:
    """The edit that leaves exactly the given groups (event -> group) as ours, and sets the given values.

    A group of ours that is already right is not touched, one that differs is replaced where it stands. Raises HarnessError.
    """
    work = _Work(path, parse(path, data), ours)
    hooks = hooks_node(work.document, path)
    for child in hooks.children if hooks else ():
        if child.key in groups and child.node.kind != "array":
            raise HarnessError(
                f"{place(work.document, path, child.node)}: `hooks.{child.key}` is not a list", "put it right first"
            )
    for event in dict.fromkeys([h.event for h in handlers(work.document, path) if ours(h.value)]):
        _settle(work, event, groups.get(event))
    standing = {h.event for h in handlers(work.document, path) if ours(h.value)}
    for event, group in groups.items():
        if event not in standing:
            _append(work, event, group)
    for where, value in (settings or {}).items():
        _set(work, where, value)
    after = work.document.encode()
    if data is None:
        after = after if after.endswith(b"\n") else after + b"\n"
    edit = FileEdit(path, data, after, work.created, work.previous)
    _verify(edit, ours)
    return edit


def unregister(path: str, data: bytes, ours: Ours, undo: Undo) -> FileEdit:
    """The edit that takes our handlers out, the containers that became empty with them, and our settings. Raises HarnessError."""
    work = _Work(path, parse(path, data), ours)
    events = dict.fromkeys(h.event for h in handlers(work.document, path) if ours(h.value))
    for event in events:
        _settle(work, event, None)
        node = jsonedit.find(work.document, ("hooks", event))
        if node is not None and not node.children and (not undo.known or ("hooks", event) in undo.created):
            work.document = jsonedit.drop(work.document, ("hooks", event))
    hooks = work.document.root.get("hooks")
    if events and hooks is not None and not hooks.children and (not undo.known or ("hooks",) in undo.created):
        work.document = jsonedit.drop(work.document, ("hooks",))
    for where, mine, theirs in undo.previous:
        now = jsonedit.find(work.document, where)
        if now is None or not jsonedit.same(now.plain(), mine):
            continue  # somebody chose another value since
        if theirs == ABSENT:
            work.document = jsonedit.drop(work.document, where)
            for depth in range(len(where) - 1, 0, -1):
                parent = jsonedit.find(work.document, where[:depth])
                if parent is not None and not parent.children and where[:depth] in undo.created:
                    work.document = jsonedit.drop(work.document, where[:depth])
        else:
            work.document = jsonedit.put(work.document, where, theirs)
    edit = FileEdit(path, data, work.document.encode(), previous=list(undo.previous))
    _verify(edit, ours)
    return edit


def _settle(work: _Work, event: str, group: Any) -> None:
    """Leaves at most one of our handlers in an event: in the place of the first, with the wanted group (None: none)."""
    while True:
        mine = [h for h in handlers(work.document, work.path) if h.event == event and work.ours(h.value)]
        kept = next((h for h in mine if h.alone), None) if group is not None else None
        spare = next((h for h in reversed(mine) if h is not kept), None)
        if spare is None:
            break
        array = jsonedit.find(work.document, ("hooks", event))
        assert array is not None
        if spare.alone:
            work.document = jsonedit.remove(work.document, array, spare.group)
        else:
            inner = array.children[spare.group].node.get("hooks")
            assert inner is not None
            work.document = jsonedit.remove(work.document, inner, spare.index)
    if kept is not None and not jsonedit.same(kept.group_value, group):
        array = jsonedit.find(work.document, ("hooks", event))
        assert array is not None
        work.document = jsonedit.replace(work.document, array.children[kept.group].node, group)


def _append(work: _Work, event: str, group: Any) -> None:
    if jsonedit.find(work.document, ("hooks",)) is None:
        work.document = jsonedit.put(work.document, ("hooks",), {})
        work.created.append(("hooks",))
    array = jsonedit.find(work.document, ("hooks", event))
    if array is None:
        work.document = jsonedit.put(work.document, ("hooks", event), [group])
        work.created.append(("hooks", event))
    else:
        work.document = jsonedit.insert(work.document, array, group)


def _set(work: _Work, where: JsonPath, value: Any) -> None:
    now = jsonedit.find(work.document, where)
    if now is not None and jsonedit.same(now.plain(), value):
        return
    for depth in range(1, len(where)):
        parent = jsonedit.find(work.document, where[:depth])
        if parent is None:
            work.created.append(where[:depth])
        elif parent.kind != "object":
            raise HarnessError(
                f"{place(work.document, work.path, parent)}: `{'.'.join(where[:depth])}` is not an object",
                "put it right first",
            )
        else:
            _once(work.document, work.path, parent)
    work.previous.append((where, value, ABSENT if now is None else now.plain()))
    work.document = jsonedit.put(work.document, where, value)


def _verify(edit: FileEdit, ours: Ours) -> None:
    """Both texts must say the same once our own part is left out: an edit that did more is never written."""
    before, after = (_rest(edit, data, ours) for data in (edit.before, edit.after))
    if not jsonedit.same(before, after):
        raise HarnessError(
            f"{edit.path}: the edit would change more than guardhook's own entries",
            "nothing was written; please report this",
        )


def _rest(edit: FileEdit, data: bytes | None, ours: Ours) -> Any:
    value: Any = jsonc.parse_bytes(data or b"").root.plain()
    hooks = value.get("hooks")
    if isinstance(hooks, dict):
        for event, groups in list(hooks.items()):
            if isinstance(groups, list):
                hooks[event] = [g for g in (_group_rest(g, ours) for g in groups) if g is not None]
            if hooks[event] == []:
                del hooks[event]
        if not hooks:
            del value["hooks"]
    for where, _, _ in edit.previous:
        holders = [value]
        for key in where[:-1]:
            inner = holders[-1].get(key)
            if not isinstance(inner, dict):
                break
            holders.append(inner)
        else:
            holders[-1].pop(where[-1], None)
        for depth in range(len(holders) - 1, 0, -1):
            if not holders[depth]:
                holders[depth - 1].pop(where[depth - 1], None)
    return value


def _group_rest(group: Any, ours: Ours) -> Any:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    rest = [h for h in group["hooks"] if not ours(h)]
    if len(rest) == len(group["hooks"]):
        return group
    return {**group, "hooks": rest} if rest else None
