"""Packing: a recording in which equal values are written once.

`{"format", "values": [node…], "recording": node}`. A node is JSON with two forms of one key: `{"$gh:ref": i}` stands for `values[i]`, and
`{"$gh:esc": {…}}` for the inner object as it is, so that data which looks like a reference survives. What is shared are
strings, lists and objects of which there are two or more, with a compact text of 64 characters or more. Equal means equal text: order of keys and the kind of number count.

`Packer` takes values one after the other and keeps only those that differ, so a long run is packed in the memory of its packed form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.archive import plain

FORMAT = "guardhook.recording.packed.v1"
FAMILY = "guardhook.recording.packed."
REF = "$gh:ref"
ESC = "$gh:esc"
LEAST_CHARS = 64


class Handle:
    """A value that is kept in a Packer's tables, in the place of the value itself."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Known(NamedTuple):
    """A distinct value: its shape (members that are known themselves are Handles) and the characters of its compact text."""

    shape: object
    chars: int
    height: int


_CONTAINER = (dict, list)
_HANDLES: frozenset[type] = frozenset((Handle,))
# In text without escapes: whatever may be a string long enough to be pooled.
_LONG = re.compile(f'"[^"]{{{LEAST_CHARS - 2}}}').search


class Packer:
    """Finds equal values among all that it is given."""

    def __init__(self) -> None:
        self._known: list[_Known] = []
        self._handles: list[Handle] = []
        self._numbers: dict[object, int] = {}
        self._keys: dict[str, int] = {}
        # Of the value at hand: what became of its containers, by identity. A token is a Handle or the text of something short.
        self._done: dict[int, Handle | str] = {}

    def add(self, value: object) -> object:
        """Takes a value in, and gives what stands for it in further values. The value must not change afterwards. Raises TypeError."""
        token = self._token(value)
        self._done.clear()
        return token if isinstance(token, Handle) else value

    def packed(self, root: object) -> dict[str, object]:
        """The packed form of a value, which may hold what `add` gave. Raises TypeError."""
        top = self.add(root)
        values: list[object] = []
        recording = _Writer(self._known, self._uses(top), values).write(top)
        return {"format": FORMAT, "values": values, "recording": recording}

    # --- finding equal values -----------------------------------------------------------------------------------

    def _token(self, value: object) -> Handle | str:
        if isinstance(value, Handle):
            return value
        if not isinstance(value, _CONTAINER):
            return self._scalar(value)
        stack: list[object] = [value]
        above: set[int] = set()
        while stack:
            item = stack[-1]
            here = id(item)
            if here in self._done:
                stack.pop()
                continue
            assert isinstance(item, _CONTAINER)
            if here not in above:
                if self._leaf(item):
                    stack.pop()
                    continue
                above.add(here)
                if len(above) > plain.MOST_DEPTH:
                    raise TypeError(f"nested deeper than {plain.MOST_DEPTH} levels, or a cycle")
                waiting = []
                for below in plain.members(item):
                    if isinstance(below, _CONTAINER) and id(below) not in self._done and not self._leaf(below):
                        if id(below) in above:
                            raise TypeError("a value contains itself")
                        waiting.append(below)
                if waiting:
                    stack.extend(waiting)
                    continue
            above.discard(here)
            self._done[here] = self._inner(item)
            stack.pop()
        return self._done[id(value)]

    def _leaf(self, item: dict[str, object] | list[object]) -> bool:
        """Deals with a container of scalars, none of which could be pooled: its text is made at once, by C code."""
        kinds = plain.kinds(item, _HANDLES)
        if not kinds <= plain.SCALARS or (type(item) is dict and (REF in item or ESC in item)):
            return False
        text = plain.quick(item, kinds)
        if len(text) >= LEAST_CHARS:
            if str in kinds and ("\\" in text or _LONG(text) is not None):
                return False
            self._done[id(item)] = self._number(text, item, len(text), 1)
        else:
            self._done[id(item)] = text
        return True

    def _scalar(self, value: object) -> Handle | str:
        text = plain.spelled(plain.scalar(value))
        return self._number(text, value, len(text), 0) if type(value) is str and len(text) >= LEAST_CHARS else text

    def _inner(self, item: dict[str, object] | list[object]) -> Handle | str:
        """Deals with a container whose members have been dealt with."""
        tokens: list[object] = ["{" if isinstance(item, dict) else "["]
        chars = 1 + max(1, len(item))
        height = 0
        shape: dict[str, object] | list[object] = {} if isinstance(item, dict) else []
        for key, member in item.items() if isinstance(item, dict) else enumerate(item):
            if isinstance(member, Handle):
                token: Handle | str = member
            elif isinstance(member, _CONTAINER):
                token = self._done[id(member)]
            else:
                token = self._scalar(member)
            name: object = token
            there: object = token
            if isinstance(token, Handle):
                name = token.number
                known = self._known[token.number]
                chars += known.chars
                height = max(height, known.height)
            else:
                there = member
                chars += len(token)
                height = max(height, 1 if isinstance(member, _CONTAINER) else 0)
            if isinstance(shape, dict):
                assert isinstance(key, str)
                chars += self._key(key)
                tokens.append(key)
                shape[key] = there
            else:
                shape.append(there)
            tokens.append(name)
        if height >= plain.MOST_DEPTH:
            raise TypeError(f"nested deeper than {plain.MOST_DEPTH} levels")
        return self._number(tuple(tokens), shape, chars, height + 1)

    def _key(self, key: str) -> int:
        """Characters of a key and its colon."""
        found = self._keys.get(key)
        if found is None:
            found = len(plain.text(key)) + 1
            if len(self._keys) < 100_000:
                self._keys[key] = found
        return found

    def _number(self, name: object, shape: object, chars: int, height: int) -> Handle:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._known)
            self._known.append(_Known(shape, chars, height))
            self._handles.append(Handle(number))
        return self._handles[number]

    def _uses(self, top: object) -> list[int]:
        """How often each distinct value is used: once for every place in a distinct container, the members of a repeated one not again."""
        uses = [0] * len(self._known)
        if not isinstance(top, Handle):
            return uses
        uses[top.number] = 1
        reached = {top.number}
        stack = [top.number]
        while stack:
            for member in plain.members(self._known[stack.pop()].shape):
                if isinstance(member, Handle):
                    uses[member.number] += 1
                    if member.number not in reached:
                        reached.add(member.number)
                        stack.append(member.number)
        return uses


class _Writer:
    """Writes nodes. A pooled value takes its slot before its members take theirs."""

    def __init__(self, known: list[_Known], uses: list[int], values: list[object]) -> None:
        self._known = known
        self._pooled = [n >= 2 and k.chars >= LEAST_CHARS for n, k in zip(uses, known, strict=True)]
        self._slots: dict[int, int] = {}
        self._values = values
        # Containers under way: what is still to be written of each, and where to.
        self._stack: list[tuple[Iterator[tuple[object, object]], dict[str, object] | list[object]]] = []

    def write(self, top: object) -> object:
        if not isinstance(top, Handle):
            return top
        node = self._place(top.number)
        while self._stack:
            rest, into = self._stack[-1]
            for key, member in rest:
                found = self._place(member.number) if isinstance(member, Handle) else member
                if isinstance(into, dict):
                    assert isinstance(key, str)
                    into[key] = found
                else:
                    into.append(found)
                if self._stack[-1][1] is not into:  # a container was begun: it comes first
                    break
            else:
                self._stack.pop()
        return node

    def _place(self, number: int) -> object:
        if number in self._slots:
            return {REF: self._slots[number]}
        pooled = self._pooled[number]
        slot = len(self._values)
        if pooled:
            self._slots[number] = slot
            self._values.append(None)
        node = self._begin(self._known[number].shape)
        if pooled:
            self._values[slot] = node
            return {REF: slot}
        return node

    def _begin(self, shape: object) -> object:
        if isinstance(shape, dict):
            escaped = REF in shape or ESC in shape
            if not escaped and Handle not in set(map(type, shape.values())):
                return shape
            inner: dict[str, object] = {}
            self._stack.append((iter(shape.items()), inner))
            return {ESC: inner} if escaped else inner
        if isinstance(shape, list) and Handle in set(map(type, shape)):
            items: list[object] = []
            self._stack.append((iter(enumerate(shape)), items))
            return items
        return shape


def pack_recording(recording: object) -> dict[str, object]:
    """The packed form of a recording. Parts without anything repeated are shared with it, not copied. Raises TypeError."""
    return Packer().packed(recording)


def is_packed_recording(value: object) -> bool:
    """Whether a value says of itself that it is a packed recording. Nothing is looked at but its format."""
    return isinstance(value, dict) and value.get("format") == FORMAT
