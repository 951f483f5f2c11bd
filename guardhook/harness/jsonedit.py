"""Single edits of a JSON-with-comments text: insert, replace, remove. Every function gives a new text, parsed again.

Inserting and then removing the same child gives the former text back, except that a container which was empty and
oddly spaced (`[ ]`) comes back as `[]`.
"""

from __future__ import annotations

import json
import re

from guardhook.harness import jsonc
from guardhook.harness.jsonc import Document, Node

_MISSING = object()


def insert(doc: Document, container: Node, value: object, key: str | None = None) -> Document:
    """Adds a last member (with key) or a last element (without)."""
    text = doc.text
    if container.start == container.end:  # the document of an empty file
        newline = _newline(text)
        unit = _unit(doc)
        member = f"{json.dumps(key, ensure_ascii=False)}: {_render(value, unit, newline, True, doc)}"
        return _parsed(doc, "{" + newline + unit + member + newline + "}" + newline)
    spread = _spread(doc, container)
    indent = _child_indent(doc, container)
    newline = _newline(text)
    body = _render(value, indent, newline, spread, doc)
    if key is not None:
        body = json.dumps(key, ensure_ascii=False) + (": " if spread or _spaced(text) else ":") + body
    trailing = bool(container.children) and container.children[-1].comma >= 0
    lead = newline + indent if spread else " " if container.children and _spaced(text) else ""
    piece = lead + body + ("," if trailing else "")
    if spread and "\n" not in text[container.solid : container.end - 1]:
        piece += newline + _line_indent(text, container.start)
    edits = [(container.solid, container.solid, piece)]
    if container.children and not trailing:
        edits.insert(0, (container.children[-1].node.end, container.children[-1].node.end, ","))
    return _parsed(doc, _splice(text, edits))


def replace(doc: Document, node: Node, value: object) -> Document:
    """Puts another value in the place of a value."""
    spread = "\n" in doc.text.strip()
    indent = _line_indent(doc.text, node.start)
    return _parsed(
        doc, _splice(doc.text, [(node.start, node.end, _render(value, indent, _newline(doc.text), spread, doc))])
    )


def remove(doc: Document, container: Node, index: int) -> Document:
    """Takes a child out, with the white space before it and the one comma that it no longer needs."""
    text = doc.text
    child = container.children[index]
    left = child.start
    while text[left - 1] in " \t\r\n":
        left -= 1
    end = child.comma + 1 if child.comma >= 0 else child.node.end
    if left in doc.line_comments and not re.match(r"[ \t]*\r?\n", text[end:]):
        left = child.start  # the line break that ends a comment must stay
    cuts = [(left, end, "")]
    if child.comma < 0 and index > 0:
        comma = container.children[index - 1].comma
        cuts.insert(0, (comma, comma + 1, ""))
    if len(container.children) == 1 and not container.commented:
        cuts = [(container.start + 1, container.end - 1, "")]
    elif index == 0 and "\n" not in text[left : child.start]:
        after = end
        while text[after] in " \t":
            after += 1
        cuts = [(left, after, "")]
    return _parsed(doc, _splice(text, cuts))


def find(doc: Document, path: tuple[str, ...]) -> Node | None:
    """The value at a path of member names, None when it isn't there."""
    node: Node | None = doc.root
    for key in path:
        if node is None or node.kind != "object":
            return None
        node = node.get(key)
    return node


def put(doc: Document, path: tuple[str, ...], value: object) -> Document:
    """Sets the value at a path, adding the objects that are missing on the way. Raises ValueError where one is something else."""
    node = find(doc, path)
    if node is not None:
        return doc if same(node.plain(), value) else replace(doc, node, value)
    for depth in range(len(path) - 1, -1, -1):
        parent = find(doc, path[:depth])
        if parent is not None:
            if parent.kind != "object":
                raise ValueError(".".join(path[:depth]))
            for key in reversed(path[depth + 1 :]):
                value = {key: value}
            return insert(doc, parent, value, path[depth])
    raise AssertionError("the root is always there")


def drop(doc: Document, path: tuple[str, ...]) -> Document:
    """Takes the member at a path away, if it is there."""
    parent = find(doc, path[:-1])
    if parent is None or parent.kind != "object":
        return doc
    for index in range(len(parent.children) - 1, -1, -1):
        if parent.children[index].key == path[-1]:
            return remove(doc, parent, index)
    return doc


def same(left: object, right: object) -> bool:
    """Equality that tells 1, 1.0 and true apart and minds the order of members."""
    return json.dumps(left) == json.dumps(right)


def _parsed(old: Document, text: str) -> Document:
    document = jsonc.parse(text)
    document.bom = old.bom
    return document


def _splice(text: str, edits: list[tuple[int, int, str]]) -> str:
    out: list[str] = []
    at = 0
    for start, end, piece in sorted(edits, key=lambda e: e[:2]):  # stable: equal places keep the given order
        out += (text[at:start], piece)
        at = end
    out.append(text[at:])
    return "".join(out)


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _line_indent(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    return re.match(r"[ \t]*", text[start:]).group()  # type: ignore[union-attr]


def _spread(doc: Document, container: Node) -> bool:
    """Whether the container's children stand on lines of their own."""
    if container.children:
        first, last = container.children[0], container.children[-1]
        return "\n" in doc.text[container.start : first.start] or "\n" in doc.text[last.node.end : container.end]
    if "\n" in doc.text[container.start : container.end]:
        return True
    return "\n" in doc.text.strip() or doc.root is container


def _child_indent(doc: Document, container: Node) -> str:
    if container.children:
        start = container.children[0].start
        line = doc.text.rfind("\n", 0, start) + 1
        if not doc.text[line:start].strip(" \t") and line > container.start:
            return doc.text[line:start]
    return _line_indent(doc.text, container.start) + _unit(doc)


def _unit(doc: Document) -> str:
    """One step of indentation, as the file's first indented line shows it."""
    match = re.search(r'\n([ \t]+)["{\[]', doc.text)
    return match.group(1) if match else "  "


def _spaced(text: str) -> bool:
    return not re.search(r'":\S', text)


def _render(value: object, indent: str, newline: str, spread: bool, doc: Document) -> str:
    """A value's text. Spread out, the elements of a list get a line each; everything below stays on one line."""
    if spread and isinstance(value, list) and value:
        step = newline + indent + _unit(doc)
        return "[" + ",".join(step + _render(v, "", newline, False, doc) for v in value) + newline + indent + "]"
    spaced = spread or _spaced(doc.text)
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))
