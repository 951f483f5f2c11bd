"""The grammar of shell commands (POSIX.1-2017 2.10 and what bash adds), by recursive descent over the lexer."""

from __future__ import annotations

from guardhook.analysis.compound import RESERVED, Compound
from guardhook.analysis.lexer import NAME, NAME_START, Budget, Lexer
from guardhook.analysis.nodes import (
    ARRAY,
    LIT,
    Function,
    Group,
    Node,
    Pipe,
    Redirect,
    Seq,
    Simple,
    Test,
    Unparsable,
    Word,
)

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


class Parser(Compound):
    """See parse. pending holds the here-documents whose bodies start at the next line end."""

    __slots__ = ()

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
        if word in RESERVED:
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
