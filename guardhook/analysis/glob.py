"""Shell patterns: brace lists, and matching with marks. No `re`, no `fnmatch`: both cost start-up time."""

from __future__ import annotations

from guardhook.analysis.nodes import CLASS, HOLE, LIT, QUERY, STAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BRACE_WORDS = 512
REPLACE_CHARS = 64
MARKS = frozenset((HOLE, STAR, QUERY, CLASS))


def braces(parts: list[tuple]) -> list[list[tuple]]:  # type: ignore[type-arg]
    """Brace expansion of a word's parts (bash 5.2 3.5.1). One list when there is nothing to expand, at most BRACE_WORDS."""
    for part in parts:
        if part[0] == LIT and not part[2] and "{" in part[1]:
            break
    else:
        return [parts]
    # One item per character of unquoted text, one per other part.
    items: list[tuple] = []  # type: ignore[type-arg]
    for part in parts:
        if part[0] == LIT and not part[2] and len(part[1]) < 4096:
            items.extend((LIT, char, False) for char in part[1])
        else:
            items.append(part)
    out: list[list[tuple]] = []  # type: ignore[type-arg]
    _expand(items, out, 0)
    return out


def _expand(items: list[tuple], out: list[list[tuple]], depth: int) -> None:  # type: ignore[type-arg]
    pending = [items]
    work = 0
    while pending and len(out) < BRACE_WORDS and work < 4 * BRACE_WORDS:
        work += 1
        current = pending.pop(0)
        found = _first_brace(current)
        if found is None:
            out.append(_join(current))
            continue
        begin, end, alternatives = found
        pending = [current[:begin] + a + current[end + 1 :] for a in alternatives] + pending
    if not out:
        out.append(_join(items))


_Items = list[tuple]  # type: ignore[type-arg]
_Found = tuple[int, int, list[list[tuple]]] | None  # type: ignore[type-arg]


def _first_brace(items: list[tuple]) -> _Found:  # type: ignore[type-arg]
    """The leftmost brace list that expands: its place and its alternatives."""
    opens: list[tuple[int, list[int]]] = []
    closed: list[tuple[int, int, list[int]]] = []
    for i, item in enumerate(items):
        if item[0] != LIT or item[2]:
            continue
        char = item[1]
        if char == "{":
            opens.append((i, []))
        elif char == "," and opens:
            opens[-1][1].append(i)
        elif char == "}" and opens:
            begin, cuts = opens.pop()
            closed.append((begin, i, cuts))
            if not opens and closed:
                found = _outermost(items, closed)
                if found is not None:
                    return found
                closed = []
    return _outermost(items, closed)


def _outermost(items: _Items, closed: list[tuple[int, int, list[int]]]) -> _Found:
    for begin, end, cuts in sorted(closed):
        if cuts:
            edges = [begin, *cuts, end]
            return begin, end, [items[a + 1 : b] for a, b in zip(edges, edges[1:], strict=False)]  # noqa: RUF007
        sequence = _sequence(items[begin + 1 : end])
        if sequence is not None:
            return begin, end, sequence
    return None


def _sequence(items: list[tuple]) -> list[list[tuple]] | None:  # type: ignore[type-arg]
    """`{1..5}`, `{a..e}`, with an optional step."""
    if any(item[0] != LIT for item in items):
        return None
    ends = "".join(item[1] for item in items).split("..")
    if len(ends) not in (2, 3):
        return None
    try:
        if all(e.lstrip("-").isdecimal() and e.isascii() and len(e) < 10 for e in ends[:2]):
            first, last = int(ends[0]), int(ends[1])
            width = (
                max(len(e) for e in ends[:2])
                if any(e.lstrip("-").startswith("0") and len(e) > 1 for e in ends[:2])
                else 0
            )
            make: Callable[[int], str] = _padded(width)
        elif all(len(e) == 1 and e.isalpha() for e in ends[:2]):
            first, last = ord(ends[0]), ord(ends[1])
            make = chr
        else:
            return None
        step = abs(int(ends[2])) or 1 if len(ends) == 3 else 1
    except ValueError:
        return None
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [[(LIT, make(n), True)] for n in numbers[:BRACE_WORDS]]


def _padded(width: int) -> Callable[[int], str]:
    return lambda n: str(n).zfill(width)


def _join(items: list[tuple]) -> list[tuple]:  # type: ignore[type-arg]
    """Runs of single unquoted characters as one part again."""
    out: list[tuple] = []  # type: ignore[type-arg]
    run: list[str] = []
    for item in items:
        if item[0] == LIT and not item[2]:
            run.append(item[1])
            continue
        if run:
            out.append((LIT, "".join(run), False))
            run = []
        out.append(item)
    if run:
        out.append((LIT, "".join(run), False))
    return out


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern with marks (or holes, which are anything) can match the whole text. Linear in pattern times text."""
    p = t = 0
    star = -1
    mark = 0
    n, m = len(text), len(pattern)
    while t < n:
        c = pattern[p] if p < m else ""
        if c in (STAR, HOLE):
            star, mark = p, t
            p += 1
            continue
        if c and (c == QUERY or c == text[t]):
            p += 1
            t += 1
            continue
        if c == CLASS:
            end, hit = _class(pattern, p, text[t])
            if hit:
                p = end
                t += 1
                continue
        if star < 0:
            return False
        p = star + 1
        mark += 1
        t = mark
    while p < m and (pattern[p] == STAR or pattern[p] == HOLE):
        p += 1
    return p == m


def _class(pattern: str, at: int, char: str) -> tuple[int, bool]:
    """A bracket expression: the place after it, and whether it holds the character. An unclosed one is a plain `[`."""
    end = pattern.find("]", at + 2)
    if end < 0:
        return at + 1, char == "["
    body = pattern[at + 1 : end]
    negate = body[:1] in ("!", "^")
    if negate:
        body = body[1:]
    if ":" in body or CLASS in body:
        return end + 1, True  # `[[:alpha:]]`: taken as anything
    hit = False
    i = 0
    while i < len(body):
        if i + 2 < len(body) and body[i + 1] == "-":
            hit = hit or body[i] <= char <= body[i + 2]
            i += 3
        else:
            hit = hit or body[i] == char
            i += 1
    return end + 1, hit != negate


def strip_prefix(pattern: str, text: str, longest: bool) -> str | None:
    """`${text#pattern}` and `##`. None when working it out would cost too much."""
    if MARKS.isdisjoint(pattern):
        return text.removeprefix(pattern)
    if pattern[0] == STAR and MARKS.isdisjoint(pattern[1:]) and len(pattern) > 1:
        at = text.rfind(pattern[1:]) if longest else text.find(pattern[1:])
        return text[at + len(pattern) - 1 :] if at >= 0 else text
    if len(text) > REPLACE_CHARS:
        return None
    order = range(len(text), -1, -1) if longest else range(len(text) + 1)
    for n in order:
        if matches(pattern, text[:n]):
            return text[n:]
    return text


def strip_suffix(pattern: str, text: str, longest: bool) -> str | None:
    """`${text%pattern}` and `%%`. None when working it out would cost too much."""
    if MARKS.isdisjoint(pattern):
        return text.removesuffix(pattern)
    if pattern[-1] == STAR and MARKS.isdisjoint(pattern[:-1]) and len(pattern) > 1:
        at = text.find(pattern[:-1]) if longest else text.rfind(pattern[:-1])
        return text[:at] if at >= 0 else text
    if len(text) > REPLACE_CHARS:
        return None
    order = range(len(text) + 1) if longest else range(len(text), -1, -1)
    for n in order:
        if matches(pattern, text[n:]):
            return text[:n]
    return text


def replace(pattern: str, new: str, text: str, every: bool) -> str | None:
    """`${text/pattern/new}` and `//`; leftmost longest. None when working it out would cost too much."""
    if not pattern:
        return text
    if MARKS.isdisjoint(pattern):
        return text.replace(pattern, new) if every else text.replace(pattern, new, 1)
    if len(text) > REPLACE_CHARS:
        return None
    out: list[str] = []
    i = 0
    while i < len(text):
        for j in range(len(text), i, -1):
            if matches(pattern, text[i:j]):
                out.append(new)
                i = j
                break
        else:
            out.append(text[i])
            i += 1
            continue
        if not every:
            break
    out.append(text[i:])
    return "".join(out)
