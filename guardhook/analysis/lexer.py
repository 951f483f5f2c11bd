"""Words: quoting, expansions, substitutions. One pass, no look-back; POSIX.1-2017 2.2-2.6 and bash 5.2 where it goes further."""

from __future__ import annotations

from guardhook.analysis.nodes import ARITH, CMD, HOLE, LIT, PROC, VAR, Seq, Unparsable, Word
from guardhook.analysis.places import shift
from guardhook.core import limits

SPECIAL = frozenset(" \t\n;&|<>()'\"\\$`\0")
_BLANK = frozenset(" \t")
_DQ_SPECIAL = frozenset('"\\$`\0')
NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
NAME = NAME_START | frozenset("0123456789")
_DIGITS = frozenset("0123456789")
_SPECIAL_PARAMETERS = frozenset("@*#?-$!0123456789")
_ANSI = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?"}  # fmt: skip
_ARITHMETIC_SPECIAL = frozenset("()$`'\"\\\0")
_HEX = frozenset("0123456789abcdefABCDEF")
_EXTGLOB = frozenset("?*+@!")


class Budget:
    """What all texts of one analysis may use together."""

    __slots__ = ("reread", "simple", "words")

    def __init__(self) -> None:
        self.words = limits.COMMAND_WORDS
        self.simple = limits.COMMAND_SIMPLE
        self.reread = 2 * limits.COMMAND_BYTES  # characters that may be read again because `((` was no arithmetic


class Lexer:
    """Reads words of `text`; the grammar on top is guardhook.analysis.parser."""

    __slots__ = ("budget", "depth", "i", "n", "plain", "s")

    def __init__(self, text: str, depth: int, budget: Budget) -> None:
        self.s = text + "\0"  # ends every scan without a test of the length
        self.n = len(text)
        self.plain: set[int] = set()  # places where `((` was tried as arithmetic and is none
        self.i = 0
        self.depth = depth
        self.budget = budget

    # The parser overrides this; a lexer alone can't read substitutions.
    def substitution(self) -> Seq:
        raise NotImplementedError

    def nested(self, text: str) -> Seq:
        raise NotImplementedError

    def enter(self) -> None:
        self.depth += 1
        if self.depth > limits.COMMAND_NESTING:
            raise Unparsable(f"nested deeper than {limits.COMMAND_NESTING} levels", self.i, cap=True)

    def spend(self) -> None:
        """Words, quoted pieces and expansions count alike: each costs as much later on."""
        self.budget.words -= 1
        if self.budget.words < 0:
            raise Unparsable(f"more than {limits.COMMAND_WORDS} words", self.i, cap=True)

    def word(self) -> Word:
        """The word at the current place; empty when an operator or the end stands there."""
        start = self.i
        parts = self._parts(SPECIAL, "")
        if parts:
            self.spend()
        return Word(parts, start, self.i)

    def _parts(self, special: frozenset[str], until: str) -> list[tuple]:  # type: ignore[type-arg]
        """Parts up to an unquoted blank or operator, or, when until is given, up to that character."""
        s, n = self.s, self.n
        parts: list[tuple] = []  # type: ignore[type-arg]
        while self.i < n:
            i = self.i
            c = s[i]
            if c not in special:
                j = i + 1
                while s[j] not in special:
                    j += 1
                parts.append((LIT, s[i:j], False))
                self.i = j
            elif c == "'":
                j = s.find("'", i + 1)
                if j < 0:
                    raise Unparsable("a single quote is never closed", i)
                parts.append((LIT, s[i + 1 : j], True))
                self.i = j + 1
                self.spend()
            elif c == '"':
                self.i = i + 1
                self.spend()
                self._double(parts)
            elif c == "\\":
                if i + 1 >= n:
                    parts.append((LIT, "\\", True))
                    self.i = n
                elif s[i + 1] == "\n":
                    self.i = i + 2
                else:
                    parts.append((LIT, s[i + 1], True))
                    self.i = i + 2
            elif c == "$":
                self._dollar(parts, False)
            elif c == "`":
                self._backtick(parts, False)
            elif c == HOLE:
                parts.append((VAR, HOLE, "", None, False))
                self.i = i + 1
            elif until:
                if c == until:
                    return parts
                # Inside `${x:-…}` blanks and operators are plain text.
                if c in "<>" and s.startswith("(", i + 1):
                    self._process(parts, c)
                else:
                    parts.append((LIT, c, False))
                    self.i = i + 1
            elif c in "<>" and s.startswith("(", i + 1):
                self._process(parts, c)
            elif c == "(" and parts and parts[-1][0] == LIT and not parts[-1][2] and parts[-1][1][-1] in _EXTGLOB:
                self._extglob(parts)
            else:
                return parts
        return parts

    def _process(self, parts: list[tuple], direction: str) -> None:  # type: ignore[type-arg]
        self.i += 2
        self.enter()
        body = self.substitution()
        self.depth -= 1
        parts.append((PROC, direction, body))

    def _extglob(self, parts: list[tuple]) -> None:  # type: ignore[type-arg]
        """`?(a|b)`, `*( )`, `!( )`: kept as pattern text."""
        begin = self.i
        depth = 0
        s = self.s
        while self.i < self.n:
            c = s[self.i]
            if c == "(":
                depth += 1
            elif c == ")":
                depth -= 1
                if depth == 0:
                    self.i += 1
                    # What it can match isn't worked out: a glob that may be anything.
                    parts.append((LIT, "*", False))
                    return
            elif c == "\n":
                break
            self.i += 1
        raise Unparsable("unexpected `(`", begin)

    def _double(self, parts: list[tuple]) -> None:  # type: ignore[type-arg]
        """The inside of a double-quoted string, the opening quote already read."""
        s, n = self.s, self.n
        begin = self.i - 1
        count = len(parts)
        while self.i < n:
            i = self.i
            c = s[i]
            if c not in _DQ_SPECIAL:
                j = i + 1
                while s[j] not in _DQ_SPECIAL:
                    j += 1
                parts.append((LIT, s[i:j], True))
                self.i = j
            elif c == '"':
                if len(parts) == count:
                    parts.append((LIT, "", True))
                self.i = i + 1
                return
            elif c == "\\":
                self._escape_in_double(parts)
            elif c == "$":
                self._dollar(parts, True)
            elif c == "`":
                self._backtick(parts, True)
            else:
                parts.append((VAR, HOLE, "", None, True))
                self.i = i + 1
        raise Unparsable("a double quote is never closed", begin)

    def _escape_in_double(self, parts: list[tuple]) -> None:  # type: ignore[type-arg]
        s, i = self.s, self.i
        follow = s[i + 1 : i + 2]
        if follow == "\n":
            self.i = i + 2
        elif follow and follow in '$`"\\':
            parts.append((LIT, follow, True))
            self.i = i + 2
        else:
            parts.append((LIT, "\\", True))
            self.i = i + 1

    def heredoc_body(self, text: str) -> Word:
        """The parts of an unquoted here-document: like double quotes, but quotes are plain text."""
        inner = self.sub_lexer(text)
        parts: list[tuple] = []  # type: ignore[type-arg]
        s, n = inner.s, len(text)
        stops = frozenset("\\$`\0")
        while inner.i < n:
            i = inner.i
            c = s[i]
            if c not in stops:
                j = i + 1
                while s[j] not in stops:
                    j += 1
                parts.append((LIT, s[i:j], True))
                inner.i = j
            elif c == "\\":
                if s[i + 1 : i + 2] == '"':
                    parts.append((LIT, "\\", True))
                    inner.i = i + 1
                else:
                    inner._escape_in_double(parts)
            elif c == "$":
                inner._dollar(parts, True)
            elif c == "`":
                inner._backtick(parts, True)
            else:
                parts.append((VAR, HOLE, "", None, True))
                inner.i = i + 1
        return Word(parts or [(LIT, "", True)], 0, n)

    def sub_lexer(self, text: str) -> Lexer:
        raise NotImplementedError

    def _dollar(self, parts: list[tuple], quoted: bool) -> None:  # type: ignore[type-arg]
        s, i = self.s, self.i
        self.spend()
        c = s[i + 1 : i + 2]
        if not c:
            parts.append((LIT, "$", True))
            self.i = i + 1
        elif c in NAME_START:
            j = i + 2
            while j < self.n and s[j] in NAME:
                j += 1
            parts.append((VAR, s[i + 1 : j], "", None, quoted))
            self.i = j
        elif c == "(":
            self._dollar_paren(parts, quoted)
        elif c == "{":
            self._brace(parts, quoted)
        elif c in _SPECIAL_PARAMETERS:
            parts.append((VAR, c, "", None, quoted))
            self.i = i + 2
        elif c == "'" and not quoted:
            self._ansi(parts)
        elif c == '"' and not quoted:
            self.i = i + 2
            self._double(parts)
        elif c == "[":
            j = s.find("]", i)
            if j < 0:
                raise Unparsable("`$[` is never closed", i)
            parts.append((VAR, HOLE, "", None, quoted))
            self.i = j + 1
        else:
            parts.append((LIT, "$", True))
            self.i = i + 1

    def _dollar_paren(self, parts: list[tuple], quoted: bool) -> None:  # type: ignore[type-arg]
        begin = self.i
        self.enter()
        if self.s.startswith("((", begin + 1):
            self.i = begin + 3
            word = self.arithmetic()
            if word is not None:
                parts.append((ARITH, word, quoted))
                self.depth -= 1
                return
        self.i = begin + 2
        parts.append((CMD, self.substitution(), quoted))
        self.depth -= 1

    def arithmetic(self) -> Word | None:
        """The text up to `))`, expansions read. None, with the place restored, when it isn't arithmetic after all."""
        begin = self.i
        if begin in self.plain:
            return None
        s, n = self.s, self.n
        parts: list[tuple] = []  # type: ignore[type-arg]
        depth = 0
        while self.i < n:
            i = self.i
            c = s[i]
            if c == "(":
                depth += 1
                if depth > limits.COMMAND_NESTING:
                    raise Unparsable(f"nested deeper than {limits.COMMAND_NESTING} levels", i, cap=True)
            elif c == ")":
                if depth == 0:
                    if s.startswith("))", i):
                        self.i = i + 2
                        return Word(parts or [(LIT, "", True)], begin, i)
                    break
                depth -= 1
            elif c == "$":
                self._dollar(parts, True)
                continue
            elif c == "`":
                self._backtick(parts, True)
                continue
            elif c == "'":
                j = s.find("'", i + 1)
                if j < 0:
                    break
                self.i = j + 1
                continue
            elif c == '"':
                self.i = i + 1
                self._double(parts)
                continue
            elif c == "\\" or c == HOLE:
                parts.append((LIT, s[i : i + 1], True) if c != HOLE else (VAR, HOLE, "", None, True))
                self.i = i + 1
                continue
            j = i + 1
            while s[j] not in _ARITHMETIC_SPECIAL:
                j += 1
            parts.append((LIT, s[i:j], True))
            self.i = j
        self.budget.reread -= self.i - begin
        if self.budget.reread < 0:
            raise Unparsable("too many parentheses that may or may not be arithmetic", begin, cap=True)
        self.plain.add(begin)
        self.i = begin
        return None

    def _brace(self, parts: list[tuple], quoted: bool) -> None:  # type: ignore[type-arg]
        """`${…}`."""
        s, n = self.s, self.n
        begin = self.i
        i = begin + 2
        prefix = ""
        if (i < n and s[i] in "#!" and i + 1 < n and s[i + 1] not in "}:-+=?%/#^,@") or s.startswith("##}", i):
            prefix = s[i]
            i += 1
        j = i
        if j < n and s[j] in NAME_START:
            while j < n and s[j] in NAME:
                j += 1
        elif j < n and s[j] in _DIGITS:
            while j < n and s[j] in _DIGITS:
                j += 1
        elif (j < n and s[j] in _SPECIAL_PARAMETERS) or s.startswith(HOLE, j):
            j += 1
        else:
            # `${ cmd; }` (bash 5.3, ksh) runs a command; anything else is a bad substitution.
            if j < n and s[j] in " \t\n|":
                self.i = j + 1
                self.enter()
                parts.append((CMD, self.substitution_until_brace(), quoted))
                self.depth -= 1
                return
            raise Unparsable("a `${` expansion that can't be read", begin)
        name = s[i:j]
        if j < n and s[j] == "[":
            close = self._subscript(j)
            name += s[j : close + 1]
            j = close + 1
        operator = prefix
        if j >= n:
            raise Unparsable("`${` is never closed", begin)
        if s[j] != "}":
            length = 2 if s[j : j + 2] in (":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,") else 1
            operator += s[j : j + length]
            self.i = j + length
            self.enter()
            start = self.i
            argument = Word(self._parts(_IN_BRACE_DOUBLE if quoted else _IN_BRACE, "}"), start, self.i)
            self.depth -= 1
            if self.i >= n:
                raise Unparsable("`${` is never closed", begin)
            parts.append((VAR, name, operator, argument, quoted))
        else:
            self.i = j
            parts.append((VAR, name, operator, None, quoted))
        self.i += 1

    def substitution_until_brace(self) -> Seq:
        raise NotImplementedError

    def _subscript(self, at: int) -> int:
        depth = 0
        for j in range(at, min(self.n, at + 1024)):
            c = self.s[j]
            if c == "[":
                depth += 1
            elif c == "]":
                depth -= 1
                if depth == 0:
                    return j
        raise Unparsable("`[` in `${…}` is never closed", at)

    def _ansi(self, parts: list[tuple]) -> None:  # type: ignore[type-arg]
        """`$'…'`: escapes of ANSI C (bash 5.2 QUOTING)."""
        s, n = self.s, self.n
        i = self.i + 2
        out: list[str] = []
        while i < n:
            c = s[i]
            if c == "'":
                parts.append((LIT, "".join(out).split("\0", 1)[0], True))
                self.i = i + 1
                return
            if c != "\\":
                j = i + 1
                while j < n and s[j] not in "'\\":
                    j += 1
                out.append(s[i:j])
                i = j
                continue
            text, i = ansi_escape(s, i)
            out.append(text)
        raise Unparsable("`$'` is never closed", self.i)

    def _backtick(self, parts: list[tuple], quoted: bool) -> None:  # type: ignore[type-arg]
        s, n = self.s, self.n
        begin = self.i
        i = begin + 1
        out: list[str] = []
        escapes = '$`\\"' if quoted else "$`\\"
        while i < n:
            j = i
            while j < n and s[j] != "`" and s[j] != "\\":
                j += 1
            out.append(s[i:j])
            if j >= n:
                break
            if s[j] == "`":
                self.i = j + 1
                self.enter()
                text = "".join(out)
                tree = self.nested(text)
                shift(tree, begin + 1, None if len(text) == j - begin - 1 else (begin, self.i))
                parts.append((CMD, tree, quoted))
                self.depth -= 1
                return
            follow = s[j + 1 : j + 2]
            out.append(follow if follow and follow in escapes else s[j : j + 2])
            i = j + 2
        raise Unparsable("a backtick is never closed", begin)


_IN_BRACE = SPECIAL | frozenset("}")
_IN_BRACE_DOUBLE = frozenset('}"\\$`\0')


def ansi_escape(s: str, i: int) -> tuple[str, int]:
    """The character that the escape at s[i] (a backslash) stands for, and the place after it."""
    c = s[i + 1 : i + 2]
    if c in _ANSI and c:
        return _ANSI[c], i + 2
    if c in ("x", "u", "U"):
        most = {"x": 2, "u": 4, "U": 8}[c]
        j = i + 2
        while j < len(s) and j < i + 2 + most and s[j] in _HEX:
            j += 1
        if j == i + 2:
            return s[i:j], j
        code = int(s[i + 2 : j], 16)
        return (chr(code) if code < 0x110000 else "\ufffd"), j
    if c == "c" and i + 2 < len(s):
        return chr(ord(s[i + 2]) & 0x1F), i + 3
    if c and c in "01234567":
        j = i + 1
        while j < len(s) and j < i + 4 and s[j] in "01234567":
            j += 1
        return chr(int(s[i + 1 : j], 8) & 0xFF), j
    return s[i : i + 2], i + 2
