"""Compound commands of the shell grammar: conditions, loops, `case`, functions, `[[ ]]`; and the tokens around commands."""

from __future__ import annotations

from guardhook.analysis.lexer import NAME, NAME_START, Budget, Lexer
from guardhook.analysis.nodes import (
    LIT,
    Case,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Redirect,
    Seq,
    Test,
    Unparsable,
    Word,
)
from guardhook.analysis.places import shift
from guardhook.core import limits

RESERVED = frozenset((
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select",
    "time", "{", "}", "!", "[[", "in", "coproc",
))  # fmt: skip
CLOSERS = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}"))


class Compound(Lexer):
    """The part of the parser that reads compound commands. pending holds here-documents whose bodies start at the next line end."""

    __slots__ = ("pending",)

    def __init__(self, text: str, depth: int, budget: Budget) -> None:
        super().__init__(text, depth, budget)
        self.pending: list[tuple[Redirect, str, bool]] = []

    def sequence(self, closers: tuple[str, ...]) -> Seq:
        raise NotImplementedError

    def command(self) -> Node:
        raise NotImplementedError

    def count(self) -> None:
        self.budget.simple -= 1
        if self.budget.simple < 0:
            raise Unparsable(f"more than {limits.COMMAND_SIMPLE} commands", self.i, cap=True)

    def blanks(self) -> None:
        """Skips blanks, line continuations and a comment."""
        s, n = self.s, self.n
        i = self.i
        while i < n:
            c = s[i]
            if c == " " or c == "\t":
                i += 1
            elif c == "\\" and s.startswith("\n", i + 1):
                i += 2
            elif c == "\r" and (i + 1 >= n or s[i + 1] == "\n"):
                i += 1
            elif c == "#":
                end = s.find("\n", i)
                i = n if end < 0 else end
                break
            else:
                break
        self.i = i

    def newline(self) -> None:
        """At a line end: skips it and the bodies of here-documents that wait for it."""
        self.i += 1
        if self.pending:
            self.read_heredocs()

    def linebreak(self) -> None:
        s = self.s
        while True:
            if not self.pending:
                i = self.i
                while s[i] in " \t\n":
                    i += 1
                self.i = i
            self.blanks()
            if self.i < self.n and s[self.i] == "\n":
                self.newline()
            else:
                return

    def read_heredocs(self) -> None:
        pending, self.pending = self.pending, []
        s, n = self.s, self.n
        for redirect, delimiter, strip in pending:
            lines: list[str] = []
            begin = self.i
            while self.i < n:
                end = s.find("\n", self.i)
                line = s[self.i : n if end < 0 else end]
                self.i = n if end < 0 else end + 1
                if strip:
                    line = line.lstrip("\t")
                if line == delimiter or line == delimiter + "\r":
                    break
                if self.depth and line.startswith(delimiter) and line[len(delimiter) :].lstrip()[:1] == ")":
                    # `$(cat <<END … END)`: bash lets the end of the substitution end the document too.
                    self.i = s.index(")", self.i - (end >= 0) - len(line) + len(delimiter))
                    break
                lines.append(line)
            text = "\n".join(lines) + ("\n" if lines else "")
            if redirect.quoted:
                redirect.target = Word([(LIT, text, True)], begin, self.i)
            else:
                target = self.heredoc_body(text)
                if len(target.parts) > 1 or target.parts[0][0] != LIT:
                    shift(target.parts, begin, (begin, self.i) if strip else None)
                target.start, target.end = begin, self.i
                redirect.target = target

    def peek_word(self) -> str:
        """The raw text of a plain word at this place, for reserved words; "" for anything else."""
        s, n, i = self.s, self.n, self.i
        j = i
        if j < n and s[j] in "{}!":
            j += 1
            if j >= n or s[j] in " \t\n;&|<>()" or s[i] == "}":
                return s[i]
            return ""
        if s.startswith("[[", i):
            j += 2
        else:
            while s[j] in NAME and j < i + 9:
                j += 1
        if j < n and s[j] not in " \t\n;&|<>()\r":
            return ""
        return s[i:j]

    def _expect(self, word: str, begin: int) -> None:
        self.blanks()
        if self.peek_word() != word:
            raise Unparsable(f"`{word}` is missing", begin)
        self.i += len(word)

    def _closing(self, closers: tuple[str, ...]) -> bool:
        s, i = self.s, self.i
        c = s[i]
        if c == ")":
            return ")" in closers
        if c == ";" and ";;" in closers:
            return s.startswith(";;", i) or s.startswith(";&", i)
        word = self.peek_word()
        if word in CLOSERS:
            if word in closers:
                return True
            raise Unparsable(f"unexpected `{word}`", i)
        return False

    def _reserved(self, word: str) -> Node | None:
        begin = self.i
        if word in ("in", "time", "!"):
            return None
        if word in CLOSERS:
            raise Unparsable(f"unexpected `{word}`", begin)
        self.enter()
        self.i += len(word)
        node: Node | None
        if word == "{":
            body = self.sequence(("}",))
            self._expect("}", begin)
            node = Group(begin, body, False)
        elif word == "if":
            node = self._if(begin)
        elif word in ("while", "until"):
            condition = self.sequence(("do",))
            node = Loop(begin, condition, self._do(begin))
        elif word in ("for", "select"):
            node = self._for(begin)
        elif word == "case":
            node = self._case(begin)
        elif word == "function":
            node = self._function(begin)
        elif word == "[[":
            node = self._test(begin)
        else:
            self.blanks()
            node = self._coproc()
        self.depth -= 1
        return node

    def _coproc(self) -> Node:
        """`coproc [NAME] command`: a name may only stand before a compound command."""
        keep = self.i
        if self.i < self.n and self.s[self.i] in NAME_START:
            name = self.word()
            self.blanks()
            if name.literal and (self.s.startswith("{", self.i) or self.s.startswith("(", self.i)):
                return self.command()
            self.i = keep
        return self.command()

    def _if(self, begin: int) -> Node:
        node = If(begin)
        while True:
            condition = self.sequence(("then",))
            self._expect("then", begin)
            body = self.sequence(("elif", "else", "fi"))
            node.branches.append((condition, body))
            word = self.peek_word() if self.i < self.n else ""
            if word == "elif":
                self.i += 4
                continue
            if word == "else":
                self.i += 4
                node.otherwise = self.sequence(("fi",))
            self._expect("fi", begin)
            return node

    def _do(self, begin: int) -> Seq:
        self.linebreak()
        if self.peek_word() == "{":
            self.i += 1
            body = self.sequence(("}",))
            self._expect("}", begin)
            return body
        self._expect("do", begin)
        body = self.sequence(("done",))
        self._expect("done", begin)
        return body

    def _for(self, begin: int) -> Node:
        self.blanks()
        if self.s.startswith("((", self.i):
            self.i += 2
            word = self.arithmetic()
            if word is None:
                raise Unparsable("`for ((` can't be read", begin)
            self.blanks()
            if self.s.startswith(";", self.i):
                self.i += 1
            return For(begin, "", [word], self._do(begin))
        name = self.word().literal
        if not name:
            raise Unparsable("`for` without a name", begin)
        self.linebreak()
        words: list[Word] | None = None
        if self.peek_word() == "in":
            self.i += 2
            words = []
            while True:
                self.blanks()
                word = self.word()
                if not word.parts:
                    break
                words.append(word)
        if self.s.startswith(";", self.i):
            self.i += 1
        return For(begin, name, words, self._do(begin))

    def _case(self, begin: int) -> Node:
        self.blanks()
        word = self.word()
        if not word.parts:
            raise Unparsable("`case` without a word", begin)
        node = Case(begin, word)
        self.linebreak()
        self._expect("in", begin)
        s = self.s
        while True:
            self.linebreak()
            if self.peek_word() == "esac":
                self.i += 4
                return node
            if self.i >= self.n:
                raise Unparsable("`case` is never closed", begin)
            if s[self.i] == "(":
                self.i += 1
                self.blanks()
            patterns: list[Word] = []
            while True:
                self.blanks()
                pattern = self.word()
                if not pattern.parts:
                    raise Unparsable("a pattern of `case` can't be read", self.i)
                patterns.append(pattern)
                self.blanks()
                if s.startswith("|", self.i):
                    self.i += 1
                elif s.startswith(")", self.i):
                    self.i += 1
                    break
                else:
                    raise Unparsable("a pattern of `case` can't be read", self.i)
            body = self.sequence((";;", "esac"))
            node.items.append((patterns, body))
            if s.startswith(";;&", self.i):
                self.i += 3
            elif s.startswith(";;", self.i) or s.startswith(";&", self.i):
                self.i += 2

    def _function(self, begin: int) -> Node:
        self.blanks()
        name = self.word()
        if not name.parts:
            raise Unparsable("`function` without a name", begin)
        self.blanks()
        if self.s.startswith("(", self.i):
            self.i += 1
            self.blanks()
            if not self.s.startswith(")", self.i):
                raise Unparsable("unexpected `(`", self.i)
            self.i += 1
        self.linebreak()
        return self._function_body(begin, self.s[name.start : name.end])

    def _function_body(self, begin: int, name: str) -> Node:
        if self.i >= self.n:
            raise Unparsable("a function without a body", begin)
        self.enter()
        body = self.command()
        self.depth -= 1
        node = Function(begin, name, body)
        node.end = self.i
        return node

    def _test(self, begin: int) -> Node:
        """`[[ … ]]`; the right side of `=~` may hold bare parentheses and bars."""
        s, n = self.s, self.n
        words: list[Word] = []
        regex = False
        while True:
            while self.i < n and s[self.i] in " \t\n\r":
                self.i += 1
            if self.i >= n:
                raise Unparsable("`[[` is never closed", begin)
            if s.startswith("]]", self.i) and (self.i + 2 >= n or s[self.i + 2] in " \t\n;&|)<>\r"):
                self.i += 2
                return Test(begin, words)
            start = self.i
            if regex:
                parts: list[tuple] = []  # type: ignore[type-arg]
                while self.i < n and s[self.i] not in " \t\n":
                    more = self.word().parts
                    parts.extend(more)
                    if not more:
                        parts.append((LIT, s[self.i], True))
                        self.i += 1
                words.append(Word(parts, start, self.i))
                regex = False
                continue
            word = self.word()
            if word.parts:
                words.append(word)
                regex = s[start : self.i] == "=~"
            elif s[self.i] in "()&|<>":
                self.i += 1
            else:
                raise Unparsable("`[[` can't be read", self.i)
