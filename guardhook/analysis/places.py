"""Places in the source of what was read from a text inside it: backticks and here-documents are unescaped before they are parsed."""

from __future__ import annotations

_LEAVES = frozenset((str, bool, int, type(None)))
_PLACES = frozenset(("start", "end"))


def shift(found: object, by: int, whole: tuple[int, int] | None = None) -> None:
    """Moves every node and word below `found` by so many characters, or to `whole` where the inner text isn't the outer one."""
    stack = [found]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind in _LEAVES or id(item) in seen:
            continue
        if isinstance(item, (tuple, list)):
            stack.extend(item)
            continue
        seen.add(id(item))
        if whole is not None:
            item.start, item.end = whole  # type: ignore[attr-defined]
        else:
            item.start += by  # type: ignore[attr-defined]
            item.end += by  # type: ignore[attr-defined]
        for base in kind.__mro__[:-1]:
            stack.extend([getattr(item, name) for name in base.__dict__["__slots__"] if name not in _PLACES])
