"""The grammar of shell commands (POSIX.1-2017 2.10 and what bash adds), by recursive descent over the lexer."""

from __future__ import annotations

from guardhook.analysis.lexer import NAME, NAME_START, Budget, Lexer
from guardhook.analysis.nodes import (
    ARRAY,
    CMD,
    LIT,
    Case,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipe,
    Redirect,
    Seq,
    Simple,
    Test,
    Unparsable,
    Word,
)
from guardhook.core import limits

_RESERVED = frozenset((
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select",
    "time", "{", "}", "!", "[[", "in", "coproc",
))  # fmt: skip
_CLOSERS = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}"))
_REDIRECTS = ("<<<", "<<-", "&>>", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "<", ">")
_DIGITS = frozenset("0123456789")


def parse(text: str, depth: int = 0, budget: Budget | None = None) -> Seq:
    """The tree of a whole command text. Raises Unparsable; never another exception, never recursion without bound."""
    parser = Parser(text, depth, budget or Budget())
    tree = parser.sequence(())
    parser.read_heredocs()
    if parser.i < parser.n:
        raise Unparsable(f"unexpected `{parser.s[parser.i]}`", parser.i)
    return tree


class Parser(Lexer):
    """See parse. pending holds the here-documents whose bodies start at the next line end."""

    __slots__ = ("pending",)

    def __init__(self, text: str, depth: int, budget: Budget) -> None:
        super().__init__(text, depth, budget)
        self.pending: list[tuple[Redirect, str, bool]] = []

    # --- hooks of the lexer

    def substitution(self) -> Seq:
        body = self.sequence((")",))
        if self.i >= self.n:
            raise Unparsable("`(` is never closed", body.start)
        self.i += 1
        return body

    def substitution_until_brace(self) -> Seq:
        body = self.sequence(("}",))
        self._expect("}", body.start)
        return body

    def nested(self, text: str) -> Seq:
        self.count()
        inner = Parser(text, self.depth, self.budget)
        tree = inner.sequence(())
        inner.read_heredocs()
        if inner.i < inner.n:
            raise Unparsable(f"unexpected `{text[inner.i]}` between backticks", self.i)
        return tree

    def sub_lexer(self, text: str) -> Lexer:
        return Parser(text, self.depth, self.budget)

    def count(self) -> None:
        self.budget.simple -= 1
        if self.budget.simple < 0:
            raise Unparsable(f"more than {limits.COMMAND_SIMPLE} commands", self.i, cap=True)

    # --- tokens

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
        while True:
            self.blanks()
            if self.i < self.n and self.s[self.i] == "\n":
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
                lines.append(line)
            text = "\n".join(lines) + ("\n" if lines else "")
            if redirect.quoted:
                redirect.target = Word([(LIT, text, True)], begin, self.i)
            else:
                redirect.target = self.heredoc_body(text)
                redirect.target.start, redirect.target.end = begin, self.i

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

    # --- lists and pipelines

    def sequence(self, closers: tuple[str, ...]) -> Seq:
        """Commands up to one of the closers (left in place) or the end of the text."""
        node = Seq(self.i)
        operator = ""
        s = self.s
        while True:
            self.linebreak()
            if self.i >= self.n:
                break
            if self._closing(closers):
                break
            command = self.pipeline()
            self.blanks()
            i = self.i
            background = False
            if s.startswith("&&", i):
                following = "&&"
                self.i += 2
            elif s.startswith("||", i):
                following = "||"
                self.i += 2
            elif i < self.n and s[i] == ";" and not s.startswith(";;", i) and not s.startswith(";&", i):
                following = ";"
                self.i += 1
            elif i < self.n and s[i] == "&":
                following = ";"
                background = True
                self.i += 1
            elif i < self.n and s[i] == "\n":
                following = ";"
                self.newline()
            else:
                following = "end"
            node.items.append((operator, command, background))
            operator = following
            if following == "end":
                self.blanks()
                if self.i < self.n and not self._closing(closers):
                    raise Unparsable(f"unexpected `{s[self.i]}`", self.i)
                break
        if operator in ("&&", "||"):
            raise Unparsable(f"nothing follows `{operator}`", self.i)
        node.end = self.i
        return node

    def _closing(self, closers: tuple[str, ...]) -> bool:
        s, i = self.s, self.i
        c = s[i]
        if c == ")":
            return ")" in closers
        if c == ";" and ";;" in closers:
            return s.startswith(";;", i) or s.startswith(";&", i)
        word = self.peek_word()
        if word in _CLOSERS:
            if word in closers:
                return True
            raise Unparsable(f"unexpected `{word}`", i)
        return False

    def pipeline(self) -> Node:
        begin = self.i
        word = self.peek_word()
        while word in ("!", "time"):
            self.i += len(word)
            self.blanks()
            if word == "time":
                while self.s.startswith("-p", self.i) or self.s.startswith("-- ", self.i):
                    self.i += 2
                    self.blanks()
            if self.i >= self.n or self.s[self.i] in ";\n&|)":
                return Simple(begin)
            word = self.peek_word()
        commands = [self.command()]
        while True:
            self.blanks()
            s, i = self.s, self.i
            if i < self.n and s[i] == "|" and not s.startswith("||", i):
                self.i += 2 if s.startswith("|&", i) else 1
                self.linebreak()
                if self.i >= self.n:
                    raise Unparsable("nothing follows `|`", i)
                commands.append(self.command())
            else:
                break
        if len(commands) == 1:
            return commands[0]
        node = Pipe(begin, commands)
        node.end = self.i
        return node

    # --- commands

    def command(self) -> Node:
        self.count()
        s, i = self.s, self.i
        c = s[i] if i < self.n else ""
        if c == "(":
            return self._with_redirects(self._parenthesis())
        word = self.peek_word()
        if word in _RESERVED:
            node = self._reserved(word)
            if node is not None:
                return node if isinstance(node, Function) else self._with_redirects(node)
        return self._simple()

    def _with_redirects(self, node: Node) -> Node:
        while True:
            self.blanks()
            redirect = self._redirect()
            if redirect is None:
                break
            node.redirects.append(redirect)
        node.end = self.i
        return node

    def _parenthesis(self) -> Node:
        begin = self.i
        self.enter()
        if self.s.startswith("((", begin):
            self.i = begin + 2
            word = self.arithmetic()
            if word is not None:
                self.depth -= 1
                return Test(begin, [word])
        self.i = begin + 1
        body = self.sequence((")",))
        if self.i >= self.n:
            raise Unparsable("`(` is never closed", begin)
        self.i += 1
        self.depth -= 1
        return Group(begin, body, True)

    def _reserved(self, word: str) -> Node | None:
        begin = self.i
        if word in ("in", "time", "!"):
            return None
        if word in _CLOSERS:
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

    def _redirect(self) -> Redirect | None:
        s, n, i = self.s, self.n, self.i
        if i >= n:
            return None
        c = s[i]
        j = i
        if c in _DIGITS:
            while j < n and s[j] in _DIGITS:
                j += 1
            if j >= n or s[j] not in "<>":
                return None
        elif c == "{":
            close = s.find("}", i, i + 64)
            if close < 0 or close + 1 >= n or s[close + 1] not in "<>" or not s[i + 1 : close].isidentifier():
                return None
            j = close + 1
        elif c not in "<>" and not s.startswith("&>", i):
            return None
        for operator in _REDIRECTS:
            if s.startswith(operator, j):
                break
        else:
            return None
        if operator in ("<", ">") and s.startswith("(", j + 1):
            return None  # process substitution: a word
        fd = s[i:j].strip("{}")
        self.i = j + len(operator)
        self.blanks()
        target = self.word()
        if not target.parts:
            raise Unparsable(f"nothing follows `{operator}`", i)
        redirect = Redirect(fd, operator, target, i, self.i)
        if operator in ("<<", "<<-"):
            raw = s[target.start : target.end]
            redirect.quoted = any(q in raw for q in "'\"\\")
            delimiter = "".join(part[1] for part in target.parts if part[0] == LIT)
            if any(part[0] != LIT for part in target.parts):
                delimiter = raw
            self.pending.append((redirect, delimiter, operator == "<<-"))
            redirect.target = Word([(LIT, "", True)], target.start, target.end)
        return redirect

    def _simple(self) -> Node:
        node = Simple(self.i)
        s, n = self.s, self.n
        while True:
            self.blanks()
            redirect = self._redirect()
            if redirect is not None:
                node.redirects.append(redirect)
                continue
            start = self.i
            if not node.words and self._assignment(node):
                continue
            word = self.word()
            if not word.parts:
                break
            if not node.words and not node.assignments:
                self.blanks()
            if not node.words and not node.assignments and s.startswith("(", self.i):
                # Only `name ()` may go on here.
                self.i += 1
                self.blanks()
                if s.startswith(")", self.i):
                    self.i += 1
                    self.linebreak()
                    return self._function_body(start, s[word.start : word.end])
                raise Unparsable("unexpected `(`", self.i)
            node.words.append(word)
            if self.i < n and s[self.i] == "(":
                # `declare -a x=( … )`, `export x=( … )`
                last = word.parts[-1]
                if last[0] == LIT and not last[2] and last[1].endswith("=") and len(node.words) > 1:
                    node.words[-1] = Word([*word.parts, (ARRAY, self._array())], start, self.i)
                    continue
                raise Unparsable("unexpected `(`", self.i)
        node.end = self.i
        if not node.words and not node.assignments and not node.redirects:
            if self.i < n:
                raise Unparsable(f"unexpected `{s[self.i]}`", self.i)
            raise Unparsable("a command is missing", self.i)
        return node

    def _array(self) -> tuple[Word, ...]:
        begin = self.i
        self.i += 1
        words: list[Word] = []
        while True:
            self.linebreak()
            if self.s.startswith(")", self.i):
                self.i += 1
                return tuple(words)
            word = self.word()
            if not word.parts:
                raise Unparsable("`=(` is never closed", begin)
            words.append(word)

    def _assignment(self, node: Simple) -> bool:
        """Reads `name=value`, `name+=value`, `name[i]=value`, `name=( … )` into the node if one stands here."""
        s, n, i = self.s, self.n, self.i
        if i >= n or s[i] not in NAME_START:
            return False
        j = i + 1
        while j < n and s[j] in NAME:
            j += 1
        name = s[i:j]
        if j < n and s[j] == "[":
            close = s.find("]", j, j + 256)
            if close < 0 or not (s.startswith("=", close + 1) or s.startswith("+=", close + 1)):
                return False
            name = s[i : close + 1]
            j = close + 1
        append = s.startswith("+=", j)
        if append:
            j += 1
        if not s.startswith("=", j):
            return False
        self.i = j + 1
        if s.startswith("(", self.i):
            start = self.i
            node.assignments.append((name, append, Word([(ARRAY, self._array())], start, self.i)))
            return True
        word = self.word()
        node.assignments.append((name, append, word))
        return True


def simple_commands(node: object) -> list[Simple]:
    """Every simple command of a tree in source order, those inside substitutions included (for tests and `explain`)."""
    out: list[Simple] = []
    _collect(node, out)
    return out


def _collect(node: object, out: list[Simple]) -> None:
    if isinstance(node, Simple):
        out.append(node)
        for _, _, word in node.assignments:
            _collect(word, out)
        for word in node.words:
            _collect(word, out)
    elif isinstance(node, Seq):
        for _, child, _ in node.items:
            _collect(child, out)
    elif isinstance(node, Pipe):
        for child in node.commands:
            _collect(child, out)
    elif isinstance(node, If):
        for condition, body in node.branches:
            _collect(condition, out)
            _collect(body, out)
        _collect(node.otherwise, out)
    elif isinstance(node, Loop):
        _collect(node.condition, out)
        _collect(node.body, out)
    elif isinstance(node, For):
        for word in node.words or ():
            _collect(word, out)
        _collect(node.body, out)
    elif isinstance(node, Case):
        _collect(node.word, out)
        for patterns, body in node.items:
            for word in patterns:
                _collect(word, out)
            _collect(body, out)
    elif isinstance(node, (Group, Function)):
        _collect(node.body, out)
    elif isinstance(node, Test):
        for word in node.words:
            _collect(word, out)
    elif isinstance(node, Word):
        for part in node.parts:
            for item in part[1:]:
                if isinstance(item, tuple):
                    for word in item:
                        _collect(word, out)
                elif not isinstance(item, (str, bool)):
                    _collect(item, out)
    if isinstance(node, Node):
        for redirect in node.redirects:
            _collect(redirect.target, out)


__all__ = ["CMD", "Parser", "parse", "simple_commands"]
