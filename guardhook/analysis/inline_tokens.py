"""Finding one's way in the tokens of a program: names, brackets, statements, arguments."""

from __future__ import annotations

from guardhook.analysis import inline_tables as tables
from guardhook.analysis.call import Call
from guardhook.analysis.tokens import ID, LINE, OP, Token
from guardhook.analysis.values import Val

Value = Val | list[Val]


class Cursor:
    """Tokens of one program, and the values of its names."""

    __slots__ = ("aliases", "call", "language", "names", "table", "toks", "work")

    def __init__(self, call: Call, language: str) -> None:
        self.call = call
        self.language = language
        self.names: dict[str, Value] = {}
        self.aliases: dict[str, str] = {}
        self.table = tables.of(language)
        self.toks: list[Token] = []
        self.work = 40_000  # evaluations

    def chain(self, i: int) -> tuple[str, int]:
        """`a.b.c`, `A::B`, `$x->y` from token i, aliases resolved; and the place after it."""
        toks = self.toks
        parts = [toks[i][1]]
        j = i + 1
        while (
            j + 1 < len(toks)
            and toks[j][0] == OP
            and toks[j][1] in (".", "::", "->", "?.")
            and toks[j + 1][0] == ID
            and not (toks[j][1] == "." and self.language in ("perl", "php"))
        ):
            parts.append(toks[j + 1][1])
            j += 2
        alias = self.aliases.get(parts[0])
        if alias:
            parts[0] = alias
        return ".".join(parts), j

    def statement(self, i: int) -> int:
        """The end of the statement that i is in: a line end or `;` outside brackets."""
        toks = self.toks
        depth = 0
        n = min(len(toks), i + 4000)
        while i < n:
            kind, word, _ = toks[i]
            if kind == OP:
                if word in "([{":
                    depth += 1
                elif word in ")]}":
                    if depth == 0:
                        return i
                    depth -= 1
                elif word == ";" and depth == 0:
                    return i
            elif (kind == LINE and depth == 0) or (
                kind == ID
                and depth == 0
                and word in ("if", "unless", "and", "or")
                and self.language in ("perl", "ruby")
            ):
                return i
            i += 1
        return i

    def close(self, i: int) -> int:
        """The place of the bracket that closes the one at i."""
        toks = self.toks
        depth = 0
        n = min(len(toks), i + 20_000)
        start = i
        while i < n:
            if toks[i][0] == OP:
                if toks[i][1] in "([{" and toks[i][1]:
                    depth += 1
                elif toks[i][1] in ")]}":
                    depth -= 1
                    if depth == 0:
                        return i
            i += 1
        self.work -= i - start
        return i

    def split(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Arguments between begin and end, cut at commas outside brackets."""
        toks = self.toks
        out: list[tuple[int, int]] = []
        depth = 0
        start = begin
        for i in range(begin, min(end, len(toks))):
            kind, word, _ = toks[i]
            if kind != OP:
                continue
            if word in ("(", "[", "{"):
                depth += 1
            elif word in (")", "]", "}"):
                depth -= 1
            elif word == "," and depth == 0:
                out.append((start, i))
                start = i + 1
        if start < end:
            out.append((start, end))
        return out

    def keyword(self, a: tuple[int, int]) -> bool:
        return (
            self.language in ("python", "ruby")
            and a[1] - a[0] > 2
            and self.toks[a[0]][0] == ID
            and self.toks[a[0] + 1][1] in ("=", ":")
        )
