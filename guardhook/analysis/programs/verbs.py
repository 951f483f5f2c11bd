"""Tools with subcommands, described by rows: which words, what effect."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import Val

# (words, effect kind, flags): the words stand at the beginning of the operands; `*` is any one word, `a|b` either.
Row = tuple[str, str, tuple[str, ...]]
DRY = frozenset(
    (
        "--dry-run",
        "--dryrun",
        "--dry-run=client",
        "--dry-run=server",
        "--help",
        "-h",
        "--plan",
        "--what-if",
        "--noop",
        "--no-op",
        "--check",
        "-WhatIf",
        "--validate-only",
        "--simulate",
    )
)


def operands(call: Call, short: str = "", long: frozenset[str] | tuple[str, ...] = ()) -> list[str]:
    """The words that are no options."""
    return [v.text for v in options(call.args, short=short, long=long).rest]


def fits(pattern: str, words: list[str]) -> bool:
    """Whether the words begin as the pattern says."""
    wanted = pattern.split()
    if len(words) < len(wanted):
        return False
    return all(_fits_word(w, word) for w, word in zip(wanted, words, strict=False))


def _fits_word(pattern: str, word: str) -> bool:
    return any(p in ("*", word) or (p.endswith("*") and word.startswith(p[:-1])) for p in pattern.split("|"))


def first(rows: tuple[Row, ...], words: list[str]) -> Row | None:
    return next((row for row in rows if fits(row[0], words)), None)


def is_dry(call: Call) -> bool:
    """Whether the call only says what it would do."""
    return any(t in DRY for t in call.texts())


def note(call: Call, row: Row, words: list[str], more: set[str] | frozenset[str] = frozenset()) -> None:
    """Emits the row's effect."""
    flags = set(row[2]) | more
    if is_dry(call):
        flags.add("dry-run")
    if any(HOLE in w for w in words[:3]):
        flags.add("unknown")
    if row[1] == "read":
        call.emit("read", flags, path_classes=frozenset(("secret",)), detail=" ".join([call.name, *words])[:160])
        return
    call.emit(row[1], flags, detail=" ".join([call.name, *(Val(w).shown for w in words)])[:160])
