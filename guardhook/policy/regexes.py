"""Regular expressions of policies: which are accepted, how they are compiled, and the literals that every match contains."""

from __future__ import annotations

import functools
from typing import Any

import regex

FLAGS = regex.VERSION0 | regex.IGNORECASE
# A literal shorter than this occurs nearly everywhere and saves nothing.
_SHORTEST = 2
_MOST_LITERALS = 24


class RegexError(ValueError):
    """The pattern is not accepted; the message says why."""


@functools.lru_cache(maxsize=4096)
def compile_regex(source: str) -> Any:
    """A `regex` pattern object, ignoring case. Raises RegexError for what doesn't compile or may backtrack without end."""
    if source == "":
        raise RegexError("an empty regular expression matches everything; name what it should find")
    try:
        pattern = regex.compile(source, FLAGS, cache_pattern=False)
    except RecursionError:
        raise RegexError("the regular expression is nested too deeply") from None
    except (regex.error, ValueError, OverflowError) as error:
        raise RegexError(f"not a valid regular expression: {error}") from None
    if repeated_group(source):
        raise RegexError(
            "a group that holds `|`, `+`, `*` or `{` is repeated without a bound, which can take for ever; "
            "bound the repeat ({0,20}), or move the alternatives out of the repeated group"
        )
    return pattern


def secret_problem(source: str, *, endless: bool = False) -> str | None:
    """Why a user's pattern for secrets can't be used; None when it can. Case counts in these. endless: may it be one that can take for ever?"""
    from guardhook.core.restore import freeze

    try:
        pattern = regex.compile(source, regex.V0, cache_pattern=False)
        freeze(pattern)
    except RecursionError:
        return f"the pattern {source!r} is nested too deeply"
    except (regex.error, ValueError, OverflowError) as error:
        return f"the pattern {source!r} can't be used: {error}"
    if pattern.search("") is not None:
        return f"the pattern {source!r} matches the empty text, so it would redact everything"
    if not endless and repeated_group(source):
        return f"the pattern {source!r} repeats a group that holds `|`, `+`, `*` or `{{` without a bound, which can take for ever; bound the repeat ({{0,20}})"
    return None


def repeated_group(source: str) -> bool:
    """Whether an unbounded quantifier follows a group whose body has `|`, `+`, `*` or `{` outside escapes and classes."""
    groups: list[bool] = []
    i = 0
    while i < len(source):
        char = source[i]
        if char == "\\":
            i += 2
            continue
        if char == "[":
            i = _class_end(source, i)
            continue
        if char == "(":
            groups.append(False)
            i = _prefix_end(source, i + 1)
            continue
        if char == ")" and groups:
            risky = groups.pop()
            if risky and _unbounded(source, i + 1):
                return True
            # What a group holds, the group around it holds too.
            if groups and risky:
                groups[-1] = True
        elif char in "|+*{" and groups:
            groups[-1] = True
        i += 1
    return False


def _class_end(source: str, start: int) -> int:
    i = start + 1
    if source[i : i + 1] == "^":
        i += 1
    if source[i : i + 1] == "]":
        i += 1
    while i < len(source) and source[i] != "]":
        i += 2 if source[i] == "\\" else 1
    return i + 1


def _prefix_end(source: str, start: int) -> int:
    """After `?:`, a look-around, an atomic group's or a named group's prefix."""
    if source[start : start + 1] != "?":
        return start
    for prefix in ("?:", "?=", "?!", "?<=", "?<!", "?>", "?|"):
        if source.startswith(prefix, start):
            return start + len(prefix)
    if source.startswith(("?P<", "?<"), start):
        end = source.find(">", start)
        return end + 1 if end > 0 else start
    return start + 1


def _unbounded(source: str, at: int) -> bool:
    if source[at : at + 1] in ("+", "*"):
        return True
    if source[at : at + 1] != "{":
        return False
    low, comma, high = source[at + 1 : source.find("}", at)].partition(",")
    return bool(comma) and high.strip() == "" and low.strip().isdigit()


@functools.lru_cache(maxsize=4096)
def required_literals(source: str) -> tuple[str, ...] | None:
    """Lower-case ASCII literals of which at least one stands in (the folded form of) every text that matches.

    None where none are certain. Sound by construction: read from the engine's own syntax tree, and every node that is not known
    to consume exactly what it shows ends a literal. Only printable ASCII counts, which folding never tears apart.
    """
    try:
        tree = _parse(source)
        found = _required(tree)
    except Exception:  # the tree is not a public interface: anything unexpected only costs speed
        return None
    if not found or len(found) > _MOST_LITERALS or min(map(len, found)) < _SHORTEST:
        return None
    return tuple(sorted(found))


def _parse(source: str) -> Any:
    from regex import _regex_core as core

    flags = int(FLAGS)
    while True:
        try:
            text = core.Source(source)
            info = core.Info(flags, text.char_type, {})
            info.guess_encoding = core.UNICODE
            text.ignore_space = bool(info.flags & core.VERBOSE)
            tree = core._parse_pattern(text, info)
        except core._UnscopedFlagSet:
            if info.global_flags == flags:
                raise
            flags = info.global_flags
            continue
        if info.flags & (core.REVERSE | core.LOCALE) or not text.at_end():
            raise ValueError("not read from left to right")
        return tree


def _required(node: Any) -> frozenset[str] | None:
    """The alternatives of which one must occur, None when nothing is certain."""
    name = type(node).__name__
    if name in ("Character", "String", "Literal"):
        text = _text(node)
        return frozenset((text,)) if text else None
    if name == "Sequence":
        return _of_sequence(node.items)
    if name == "Branch":
        out: frozenset[str] = frozenset()
        for branch in node.branches:
            found = _required(branch)
            if found is None:
                return None
            out |= found
        return out or None
    if name in ("Group", "Atomic"):
        return _required(node.subpattern)
    if name in ("GreedyRepeat", "LazyRepeat", "PossessiveRepeat"):
        return _required(node.subpattern) if node.min_count >= 1 else None
    return None


def _of_sequence(items: list[Any]) -> frozenset[str] | None:
    best: frozenset[str] | None = None
    run = ""
    for item in [*items, None]:
        text = _text(item) if item is not None else ""
        if text:
            run += text
            continue
        for found in (frozenset((run,)) if run else None, _required(item) if item is not None else None):
            if found and _worth(found) > _worth(best):
                best = found
        run = ""
    return best


def _worth(found: frozenset[str] | None) -> tuple[int, int]:
    """Longer is better, and of equals the one with fewer alternatives."""
    return (min(map(len, found)), -len(found)) if found else (0, 0)


def _text(node: Any) -> str:
    """The literal text that a node consumes, "" when it is not exactly known."""
    name = type(node).__name__
    if name == "Character" and node.positive and not node.zerowidth:
        codes = [node.value]
    elif name in ("String", "Literal"):
        codes = list(node.characters)
    else:
        return ""
    text = "".join(map(chr, codes))
    return text.lower() if text.isascii() and text.isprintable() else ""
