"""Reading packed recordings: first how much they stand for, then, if that is not too much, what.

The measuring walk counts the bytes of the plain recording's compact text without building any of it, each pooled value once, and stops at the
first sum above the bound: a few kilobytes can stand for more than any disk holds. It also finds whatever is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from guardhook.archive import plain
from guardhook.archive.errors import PackedRecordingError, PackedRecordingTooLargeError
from guardhook.archive.packing import ESC, FAMILY, FORMAT, REF

DEFAULT_UNPACK_MAX_BYTES = 536_870_912
_CONTAINER = (dict, list)
_TRIED = 5  # levels: the recording, its lists, their elements and what these hold
_MARKS = (f'"{REF}"', f'"{ESC}"')

_MARK_BYTES = tuple(mark.encode() for mark in _MARKS)


def unpack_recording(
    value: object, *, max_bytes: float = DEFAULT_UNPACK_MAX_BYTES, copy: bool = False, parsed: bool = False
) -> object:
    """The recording that a packed one stands for; anything else is given back as it is.

    max_bytes: the most that its plain compact text may take, infinity for trusted input. References to one pooled value give one and the same
    object, so the result must not be changed unless copy is set. parsed: the value came from `plain.loads`, so that all of it is known
    to be JSON. Raises TypeError (max_bytes), PackedRecordingError, PackedRecordingTooLargeError.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, (int, float)) or not max_bytes >= 0:
        raise TypeError(f"max_bytes must be a number of at least 0, not {max_bytes!r}")
    format = value.get("format") if isinstance(value, dict) else None
    if not isinstance(format, str) or not format.startswith(FAMILY):
        return value
    assert isinstance(value, dict)
    if format != FORMAT:
        raise PackedRecordingError(f"unknown format {format!r} of a packed recording")
    values = value.get("values")
    if type(values) is not list:
        raise PackedRecordingError("the packed recording has no list of values")
    if "recording" not in value:
        raise PackedRecordingError("the packed recording has no recording")
    measure = _Measure(values, max_bytes, parsed)
    measure.all(value["recording"])
    found = _Build(values, measure.plain).build(value["recording"])
    if copy:
        try:
            return plain.loads(plain.encode(found))
        except TypeError as error:
            raise PackedRecordingError(str(error)) from None
    return found


def plain_size(value: object) -> int:
    """Bytes of the plain recording's compact text. Raises PackedRecordingError."""
    if not isinstance(value, dict) or value.get("format") != FORMAT or type(value.get("values")) is not list:
        return len(plain.encode(value))
    return _Measure(value["values"], math.inf).all(value.get("recording"))


def _reference(node: dict[str, object], slots: int) -> int | None:
    """The slot that a node refers to, None when it is no reference. Raises PackedRecordingError."""
    if len(node) != 1 or REF not in node:
        return None
    index = node[REF]
    if type(index) is not int or not 0 <= index < slots:
        raise PackedRecordingError(f"a reference to {index!r:.40}, where there are {slots} values")
    return index


def literal(node: dict[str, object]) -> dict[str, object]:
    """The object that a node means: of an escape the inner one, else itself."""
    if len(node) == 1:
        inner = node.get(ESC)
        if isinstance(inner, dict):
            return inner
    return node


class _Frame:
    """A container being measured. slot: the pooled value that it is, None inside one."""

    __slots__ = ("depth", "height", "here", "members", "size", "slot")

    def __init__(self, members: Iterator[object], size: float, slot: int | None, here: int, depth: int) -> None:
        self.depth = depth
        self.members = members
        self.size = size
        self.slot = slot
        self.here = here
        self.height = 0


class _Measure:
    """Sizes and heights of pooled values, each found once."""

    def __init__(self, values: list[object], bound: float, parsed: bool = False) -> None:
        self._parsed = parsed
        self._values = values
        self._bound = bound
        self._size: dict[int, float] = {}
        self._height: dict[int, int] = {}
        self._open: set[int] = set()
        self._keys: dict[str, int] = {}
        self.plain: set[int] = set()  # identities of containers that hold no marks at any depth

    def all(self, root: object) -> int:
        """Bytes of the root. Values that nothing refers to are looked at too, but add nothing."""
        total = self._walk(root, None)
        self._bound = math.inf
        for slot in range(len(self._values)):
            if slot not in self._size:
                self._walk(self._values[slot], slot)
        return int(total)

    def _over(self, size: float) -> None:
        if size > self._bound:
            raise PackedRecordingTooLargeError(self._bound)

    def _walk(self, root: object, slot: int | None) -> float:
        """Measures a node, and all pooled values that it needs."""
        top = _Frame(iter((root,)), 0, slot, 0, 0)
        if slot is not None:
            self._open.add(slot)
        stack = [top]
        while stack:
            frame = stack[-1]
            pushed = False
            for member in frame.members:
                below = self._member(frame, member)
                self._over(frame.size)
                if below is not None:
                    if len(stack) > 2 * plain.MOST_DEPTH:
                        raise PackedRecordingError(f"nested deeper than {plain.MOST_DEPTH} levels")
                    stack.append(below)
                    pushed = True
                    break
            if pushed:
                continue
            stack.pop()
            if frame.height > plain.MOST_DEPTH:
                raise PackedRecordingError(f"nested deeper than {plain.MOST_DEPTH} levels")
            if frame.slot is not None:
                self._open.discard(frame.slot)
                self._size[frame.slot] = frame.size
                self._height[frame.slot] = frame.height
            if stack:
                # The frame of a slot or of the whole is one around the value itself, and no level of its own.
                stack[-1].size += frame.size
                stack[-1].height = max(stack[-1].height, frame.height + (frame.here != 0))
                self._over(stack[-1].size)
        return top.size

    def _member(self, frame: _Frame, member: object) -> _Frame | None:
        """Adds a member to its container, or gives the frame that must be measured first."""
        if not isinstance(member, _CONTAINER):
            frame.size += self._scalar(member)
            return None
        if isinstance(member, dict):
            slot = _reference(member, len(self._values))
            if slot is not None:
                if slot in self._open:
                    raise PackedRecordingError(f"value {slot} contains itself")
                if slot in self._size:
                    frame.size += self._size[slot]
                    frame.height = max(frame.height, self._height[slot])
                    return None
                self._open.add(slot)
                return _Frame(iter((self._values[slot],)), 0, slot, 0, frame.depth)
        found = self._whole(member)
        if found is None and self._parsed and frame.depth < _TRIED:
            found = self._unmarked(member)
        if found is not None:
            size, height = found
            self.plain.add(id(member))
            frame.size += size
            frame.height = max(frame.height, height)
            return None
        if isinstance(member, list):
            return _Frame(iter(member), 1 + max(1, len(member)), None, id(member), frame.depth + 1)
        inner = literal(member)
        size = 1 + max(1, len(inner)) + sum(map(self._key, inner))
        self._over(size)
        return _Frame(iter(inner.values()), size, None, id(member), frame.depth + 1)

    def _whole(self, node: dict[str, object] | list[object]) -> tuple[int, int] | None:
        """Size and height of a container without marks whose members are scalars, or objects of scalars: done at once, by C code."""
        height = 1
        kinds = self._kinds(node)
        if not kinds <= plain.SCALARS:
            if type(node) is not list or not kinds <= plain.SCALARS | {dict}:
                return None
            height = 2
            for row in node:
                if isinstance(row, dict) and not self._kinds(row) <= plain.SCALARS:
                    return None
        try:
            text = plain.quick(node, kinds) if height == 1 else plain.text(node)
            if any(mark in text for mark in _MARKS):
                return None
            return plain.size(text), height
        except TypeError as error:
            raise PackedRecordingError(str(error)) from None

    def _unmarked(self, node: dict[str, object] | list[object]) -> tuple[int, int] | None:
        """Size and height of any container without marks, of a document that is known to be JSON. Tried near the top only, or it would not be linear."""
        data = plain.encode(node)
        if any(mark in data for mark in _MARK_BYTES):
            return None
        height = plain.height(data)
        return None if height is None else (len(data), height)

    def _kinds(self, node: dict[str, object] | list[object]) -> set[type]:
        try:
            return plain.kinds(node)
        except TypeError as error:
            raise PackedRecordingError(str(error)) from None

    def _scalar(self, value: object) -> int:
        try:
            return plain.size(plain.scalar(value))
        except TypeError as error:
            raise PackedRecordingError(str(error)) from None

    def _key(self, key: str) -> int:
        """Bytes of a key and its colon."""
        found = self._keys.get(key)
        if found is None:
            found = self._scalar(key) + 1
            if len(self._keys) < 100_000:
                self._keys[key] = found
        return found


class _Build:
    """Builds what a measured node stands for. No cycle and no bad reference is left in it."""

    def __init__(self, values: list[object], unmarked: set[int]) -> None:
        self._values = values
        self._plain = unmarked
        self._slots: dict[int, object] = {}
        self._stack: list[tuple[Iterator[tuple[object, object]], dict[str, object] | list[object]]] = []

    def build(self, root: object) -> object:
        found = self._begin(root)
        while self._stack:
            rest, into = self._stack[-1]
            for key, member in rest:
                below = self._begin(member)
                if isinstance(into, dict):
                    assert isinstance(key, str)
                    into[key] = below
                else:
                    into.append(below)
                if self._stack[-1][1] is not into:
                    break
            else:
                self._stack.pop()
        return found

    def _begin(self, node: object) -> object:
        """The value of a node; if it is a container with marks, it is begun, and filled later."""
        if not isinstance(node, _CONTAINER) or id(node) in self._plain:
            return node
        if isinstance(node, list):
            items: list[object] = []
            self._stack.append((iter(enumerate(node)), items))
            return items
        slot = _reference(node, len(self._values))
        if slot is not None:
            return self._pooled(slot)
        inner: dict[str, object] = {}
        self._stack.append((iter(literal(node).items()), inner))
        return inner

    def _pooled(self, slot: int) -> object:
        """The value of a slot. One that is a reference itself is followed: the measuring walk has seen that this ends."""
        followed = []
        last: int | None = slot
        while last is not None and last not in self._slots:
            followed.append(last)
            node = self._values[last]
            last = (
                _reference(node, len(self._values)) if isinstance(node, dict) and id(node) not in self._plain else None
            )
        found = self._begin(self._values[followed[-1]]) if last is None else self._slots[last]
        self._slots.update(dict.fromkeys(followed, found))
        return found
