"""JSON with comments and trailing commas, parsed so that every value knows where it stands in the text.

Settings files belong to people. Editing them means changing a few characters of their text, never writing a parsed value
back: comments, order, indentation, line ends, a byte-order mark and odd spacing outside our own entries stay as they are.
Offsets are characters of `Document.text`; a byte-order mark is kept apart.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

DEPTH = 100
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}


class JsoncError(ValueError):
    """The text is not JSON with comments. line and column count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@dataclass
class Child:
    """One member of an object (with its key) or one element of an array."""

    key: str | None
    start: int  # where the key starts, or the value of an element
    node: Node
    comma: int = -1  # offset of the comma after it


@dataclass
class Node:
    """A value in the text, from start to end."""

    kind: str  # object, array, scalar
    start: int
    end: int = -1
    scalar: object = None
    children: list[Child] = field(default_factory=list)
    solid: int = -1  # containers: the end of the last token or comment before the closing bracket
    commented: bool = False  # containers: a comment stands somewhere between the brackets, outside the children

    def get(self, key: str) -> Node | None:
        """The member's value; of several members of one name the last, as clients read it."""
        for child in reversed(self.children):
            if child.key == key:
                return child.node
        return None

    def plain(self) -> object:
        """The value as Python objects."""
        if self.kind == "object":
            return {str(c.key): c.node.plain() for c in self.children}
        if self.kind == "array":
            return [c.node.plain() for c in self.children]
        return self.scalar


@dataclass
class Document:
    """A parsed text. comment and trailing are the offsets of the first comment and the first trailing comma, or -1."""

    text: str
    root: Node
    bom: bool = False
    comment: int = -1
    trailing: int = -1
    line_comments: frozenset[int] = frozenset()  # where `//` comments end

    def encode(self) -> bytes:
        return (_BOM if self.bom else b"") + self.text.encode("utf-8")

    def position(self, offset: int) -> tuple[int, int]:
        return position(self.text, offset)


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column (from 1) of an offset."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def parse_bytes(data: bytes) -> Document:
    """Parses a file. An empty file, or one of white space only, counts as an empty object. Raises JsoncError."""
    bom = data.startswith(_BOM)
    body = data[len(_BOM) :] if bom else data
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8")
        raise JsoncError("the file is not valid UTF-8", *position(before, len(before))) from None
    document = parse(text)
    document.bom = bom
    return document


def parse(text: str) -> Document:
    """As parse_bytes, for a text."""
    if not text.strip(" \t\r\n"):
        return Document(text, Node("object", 0, 0, solid=0))
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.last = 0  # end of the last token or comment
        self.comments = 0
        self.comment = -1
        self.trailing = -1
        self.line_comments: set[int] = set()

    def document(self) -> Document:
        self.skip()
        root = self.value(0)
        self.skip()
        if self.at != len(self.text):
            raise self.error("there is text after the end of the value")
        return Document(self.text, root, False, self.comment, self.trailing, frozenset(self.line_comments))

    def error(self, message: str, at: int | None = None) -> JsoncError:
        return JsoncError(message, *position(self.text, self.at if at is None else at))

    def skip(self) -> None:
        """White space and comments."""
        text = self.text
        while True:
            self.at = _SPACE.match(text, self.at).end()  # type: ignore[union-attr]
            opening = text[self.at : self.at + 2]
            if opening == "//":
                end = text.find("\n", self.at)
                end = len(text) if end < 0 else end - (text[end - 1] == "\r")
                self.line_comments.add(end)
            elif opening == "/*":
                end = text.find("*/", self.at + 2) + 2
                if end < 2:
                    raise self.error("a comment is never closed")
            else:
                return
            if self.comment < 0:
                self.comment = self.at
            self.comments += 1
            self.at = self.last = end

    def value(self, depth: int) -> Node:
        if depth > DEPTH:
            raise self.error(f"nested deeper than {DEPTH} levels")
        char = self.text[self.at : self.at + 1]
        if char == "{" or char == "[":
            return self.container("object" if char == "{" else "array", "}" if char == "{" else "]", depth)
        start = self.at
        scalar = self.string() if char == '"' else self.number_or_word()
        return Node("scalar", start, self.at, scalar)

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if not match:
            raise self.error("a string is not closed, or has a raw control character in it")
        try:
            value: str = json.loads(match.group())
        except ValueError:
            raise self.error("a string has an escape that JSON does not know") from None
        self.at = self.last = match.end()
        return value

    def number_or_word(self) -> object:
        match = _NUMBER.match(self.text, self.at)
        if match:
            self.at = self.last = match.end()
            try:
                value = json.loads(match.group())
            except ValueError:  # an integer of more digits than the interpreter converts
                value = float("inf")
            if isinstance(value, float) and value - value != 0.0:
                raise self.error("a number is too large", match.start())
            return value
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at = self.last = self.at + len(word)
                return value
        found = self.text[self.at : self.at + 1]
        raise self.error(f"a value is expected, not {found!r}" if found else "the file ends where a value is expected")

    def container(self, kind: str, closing: str, depth: int) -> Node:
        node = Node(kind, self.at)
        self.at += 1
        self.last = self.at
        while True:
            seen = self.comments
            self.skip()
            node.commented = node.commented or self.comments > seen
            if self.text.startswith(closing, self.at):
                break
            if node.children and node.children[-1].comma < 0:
                raise self.error(f"`,` or `{closing}` is expected")
            start = self.at
            key: str | None = None
            if kind == "object":
                key = self.key()
            node.children.append(Child(key, start, self.value(depth + 1)))
            seen = self.comments
            self.skip()
            node.commented = node.commented or self.comments > seen
            if self.text.startswith(",", self.at):
                node.children[-1].comma = self.at
                self.at = self.last = self.at + 1
        if node.children and node.children[-1].comma >= 0 and self.trailing < 0:
            self.trailing = node.children[-1].comma
        node.solid = self.last
        self.at = self.last = node.end = self.at + 1
        return node

    def key(self) -> str:
        if not self.text.startswith('"', self.at):
            raise self.error(
                "a member's name in double quotes is expected"
                if self.at < len(self.text)
                else "the file ends inside an object"
            )
        key = self.string()
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.error("`:` is expected after a member's name")
        self.at = self.last = self.at + 1
        self.skip()
        return key
