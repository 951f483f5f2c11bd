"""The parse tree of shell text. Every node keeps its place in the source; words keep where each piece comes from."""

from __future__ import annotations

# Kinds of word parts. A part is a tuple whose first item is one of these:
#   (LIT, text, quoted)                    text as written; quoted text is never split, globbed or expanded again
#   (VAR, name, operator, Word|None, quoted)   `$name`, `${name<operator>word}`; name "\0" is a piece nobody knows
#   (CMD, Seq, quoted)                     `$( )` and backticks
#   (ARITH, Word, quoted)                  `$(( ))`
#   (PROC, "<" or ">", Seq)                process substitution
#   (ARRAY, tuple[Word])                   the right side of `name=( … )`, only in assignments
LIT, VAR, CMD, ARITH, PROC, ARRAY = range(6)

# Marks inside expanded text. They can't stand in an argument of a real process: NUL ends a string in C, and the other
# three are replaced in literal text before parsing.
HOLE = "\0"  # a piece that isn't known, possibly empty
STAR = "\x01"  # an active `*`
QUERY = "\x02"  # an active `?`
CLASS = "\x03"  # an active `[`


class Unparsable(Exception):
    """The text is not shell that this parser understands, or it is over a cap. why is for a person."""

    def __init__(self, why: str, at: int = 0, *, cap: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.at = at
        self.cap = cap


class Word:
    """One word. literal is its text when nothing in it is expanded, globbed or brace-expanded, else None."""

    __slots__ = ("end", "literal", "parts", "start")

    def __init__(self, parts: list[tuple], start: int, end: int) -> None:  # type: ignore[type-arg]
        self.parts = parts
        self.start = start
        self.end = end
        self.literal = _literal(parts)


_ACTIVE = frozenset("*?{~")


def _literal(parts: list[tuple]) -> str | None:  # type: ignore[type-arg]
    if len(parts) == 1:
        part = parts[0]
        if part[0] == LIT and (part[2] or _plain(part[1])):
            text: str = part[1]
            return text
        return None
    out = []
    for part in parts:
        if part[0] != LIT or not (part[2] or _plain(part[1])):
            return None
        out.append(part[1])
    return "".join(out)


def _plain(text: str) -> bool:
    """Whether unquoted text means itself: nothing to expand, no bracket expression (`[` alone is a command)."""
    return _ACTIVE.isdisjoint(text) and ("[" not in text or "]" not in text)


class Redirect:
    """operator is one of `< > >> >| <> <& >& &> &>> << <<- <<<`; for here-documents target is the body."""

    __slots__ = ("end", "fd", "operator", "quoted", "start", "target")

    def __init__(self, fd: str, operator: str, target: Word, start: int, end: int) -> None:
        self.fd = fd  # digits, a variable name for `{name}>`, or ""
        self.operator = operator
        self.target = target
        self.start = start
        self.end = end
        self.quoted = False  # here-document with a quoted delimiter


class Node:
    """Base of commands."""

    __slots__ = ("end", "redirects", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.redirects: list[Redirect] = []


class Simple(Node):
    """Assignments, then a command with its words."""

    __slots__ = ("assignments", "words")

    def __init__(self, start: int) -> None:
        super().__init__(start)
        # (name, appends?, value word or None for an array, array words, has a subscript)
        self.assignments: list[tuple[str, bool, Word]] = []
        self.words: list[Word] = []


class Seq(Node):
    """Pipelines joined by `;`, newline, `&`, `&&`, `||`: (operator before it, node, runs in the background)."""

    __slots__ = ("items",)

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.items: list[tuple[str, Node, bool]] = []


class Pipe(Node):
    """Commands joined by `|` or `|&`."""

    __slots__ = ("commands",)

    def __init__(self, start: int, commands: list[Node]) -> None:
        super().__init__(start)
        self.commands = commands


class Group(Node):
    """`( … )` when subshell, else `{ …; }`."""

    __slots__ = ("body", "subshell")

    def __init__(self, start: int, body: Seq, subshell: bool) -> None:
        super().__init__(start)
        self.body = body
        self.subshell = subshell


class If(Node):
    """(condition, body) pairs, then the else body."""

    __slots__ = ("branches", "otherwise")

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.branches: list[tuple[Seq, Seq]] = []
        self.otherwise: Seq | None = None


class Loop(Node):
    """`while`, `until`."""

    __slots__ = ("body", "condition")

    def __init__(self, start: int, condition: Seq, body: Seq) -> None:
        super().__init__(start)
        self.condition = condition
        self.body = body


class For(Node):
    """`for`, `select`; words is None for the positional parameters. The arithmetic form has name ""."""

    __slots__ = ("body", "name", "words")

    def __init__(self, start: int, name: str, words: list[Word] | None, body: Seq) -> None:
        super().__init__(start)
        self.name = name
        self.words = words
        self.body = body


class Case(Node):
    """word, then (patterns, body) items."""

    __slots__ = ("items", "word")

    def __init__(self, start: int, word: Word) -> None:
        super().__init__(start)
        self.word = word
        self.items: list[tuple[list[Word], Seq]] = []


class Function(Node):
    """A definition."""

    __slots__ = ("body", "name")

    def __init__(self, start: int, name: str, body: Node) -> None:
        super().__init__(start)
        self.name = name
        self.body = body


class Test(Node):
    """`[[ … ]]` and `(( … ))`: only the expansions inside matter. operators are the bare words in between."""

    __slots__ = ("words",)

    def __init__(self, start: int, words: list[Word]) -> None:
        super().__init__(start)
        self.words = words
