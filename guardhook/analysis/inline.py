"""A light scan of code in scripting languages: which calls it makes, with which constant arguments.

No text search: names are looked up where they are called, strings count only as arguments. What isn't constant is a
hole; what flows in from the network, a decoder or a secret file is tracked like in the shell.
"""

from __future__ import annotations

from guardhook.analysis import inline_tables as tables
from guardhook.analysis.call import Call
from guardhook.analysis.inline_imports import Importer, exec_words, mode_flags_of
from guardhook.analysis.inline_tokens import Value
from guardhook.analysis.inline_values import SLICE
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.tokens import COMMAND, ID, LINE, OP, STR, TOKENS, tokens
from guardhook.analysis.values import EMPTY, NONE, UNKNOWN, State, Val, concat
from guardhook.analysis.walk import Walker

_ENVIRONMENTS = frozenset(("process.env", "os.environ", "ENV"))
# Words by which the languages repeat something.
_LOOPS = frozenset(("while", "until", "for", "foreach", "loop", "times", "redo"))


def scan(call: Call, code: Val, language: str, variables: dict[str, Val] | None = None) -> Val:
    """Effects of code that an interpreter is given; what it prints, where that is constant."""
    if language == "sh":
        return call.code(code, "inline")
    call.walker.spend(3)
    if language == "tcl":
        _tcl(call, code.text)
    scanner = Scanner(call, language)
    scanner.names.update(variables or {})
    return scanner.run(code.text)


def _tcl(call: Call, text: str) -> None:
    """`file delete`, whose arguments are words and no brackets."""
    for line in text.replace(";", "\n").replace("[", "\n").split("\n"):
        words = line.split()
        if words[:2] == ["file", "delete"]:
            for word in words[2:]:
                if not word.startswith("-"):
                    call.change("delete", Val(word.strip('"{}]')), ("inline", "recursive", "force"))


def scan_file(call: Call, text: str, language: str) -> Val:
    """As scan, for a script on disk: it may be longer than a value of the walk is kept."""
    scanner = Scanner(call, language)
    scanner.kind = frozenset(("script", "bundle") if language == "node" else ("script",))
    return scanner.run(text)


def scan_text(walker: Walker, text: str, language: str, state: State) -> None:
    """As scan, for code that a tool is given outright."""
    call = Call(walker, language, [], state, None, {}, (0, len(text)), "")
    scan(call, Val(text), language)


class Scanner(Importer):
    """One program text. `out` collects what it prints."""

    __slots__ = ("kind", "opened_for_writing", "out", "secret", "sent")

    def __init__(self, call: Call, language: str) -> None:
        super().__init__(call, language)
        self.opened_for_writing = ""
        self.out: list[Val] = []
        self.kind = frozenset(("inline",))  # flags of a code that is more than is read
        self.secret = ""  # where secrets were read from
        self.sent = ""  # where data was sent to

    def run(self, text: str) -> Val:
        self.toks = tokens(text, self.language)
        toks = self.toks
        self.loops()
        words = {t[1] for t in toks if t[0] == ID}
        if "fork" in words and words & _LOOPS:
            self.call.emit("process", ("fork-bomb", "inline"), detail="forks in a loop")
        i, n = 0, len(toks)
        while i < n:
            kind, word, _ = toks[i]
            if kind == ID:
                i = self.name(i)
            elif kind == COMMAND:
                self.shell(self.interpolate(word), "backtick")
                i += 1
            else:
                if word == "(" and kind == OP and self.language in ("python", "ruby"):
                    self.bracketed(i)
                elif word == "$" and self.language == "node" and i + 1 < n and toks[i + 1][0] == STR:
                    self.shell(self.interpolate(toks[i + 1][1]), "$")  # zx, Bun
                i += 1
        if self.work < 0 or n >= TOKENS:
            self.call.emit("unverified", self.kind | {"cap"}, detail="more code than is read at once")
        if self.secret and self.sent:
            self.call.emit("secret_flow", ("network", "inline"), host=self.sent, detail=f"{self.secret} to {self.sent}")
        if not self.out:
            return (
                EMPTY
                if "print" not in text
                and "console" not in text
                and "puts" not in text
                and "echo" not in text
                and "write" not in text
                else self.call.result()
            )
        return concat(self.out)

    def loops(self) -> None:
        """Loop variables stand for all items of a constant list, before the body is looked at (comprehensions put it first)."""
        toks = self.toks
        for i in range(2, len(toks) - 3):
            if toks[i][1] == "=" and toks[i - 1][1] == "}" and self.language == "node":
                self.unpacked(i)
            if toks[i][0] == ID and toks[i][1] in ("in", "of") and toks[i - 1][0] == ID:
                first = i - 1
                while first > 1 and toks[first - 1][1] == "," and toks[first - 2][0] == ID:
                    first -= 2  # `for root, dirs, files in os.walk(…)`: the first one is the path
                if toks[first - 1][1] not in ("for", "const", "let", "var", "my"):
                    continue
                if toks[i + 1][1] in ("[", "(") or toks[i + 1][0] == ID:
                    end = self.term_end(i + 1, len(toks))
                    value = self.value(i + 1, end)
                    if isinstance(value, list) or value.known:
                        self.names[toks[first][1]] = value
            elif toks[i][1] == "as" and toks[i][0] == ID and self.language == "python":
                begin = next((k for k in range(i, max(i - 60, -1), -1) if toks[k][1] == "with"), i)
                if begin < i and toks[i + 1][0] == ID:
                    self.names[toks[i + 1][1]] = self.value(begin + 1, i)
            elif toks[i][1] == "as" and toks[i][0] == ID and self.language == "php" and toks[i + 1][0] == ID:
                begin = next((k for k in range(i, max(i - 60, -1), -1) if toks[k][1] == "foreach"), i)
                self.names[toks[i + 1][1]] = self.value(begin + 2, i)
            elif toks[i][1] == "each" and toks[i - 1][1] == "." and self.language == "ruby":
                bar = next((k for k in range(i + 1, min(i + 4, len(toks))) if toks[k][1] == "|"), 0)
                begin = i - 2
                while begin > 0 and toks[begin][1] != "[":
                    begin -= 1
                if bar and bar + 1 < len(toks):
                    self.names[toks[bar + 1][1]] = self.value(begin, i - 1)

    # --- one name

    def name(self, i: int) -> int:
        toks = self.toks
        word = toks[i][1]
        if word in ("import", "from", "require", "use") and self.language in ("python", "node", "perl"):
            done = self.imports(i)
            if done > i:
                return done
        chain, j = self.chain(i)
        following = toks[j] if j < len(toks) else (LINE, "\n", 0)
        if chain == "sys.modules":
            from guardhook.analysis import inline_special as special

            return special.module_table(self, j)
        if following[0] == OP and (
            following[1] in ("+=", ".=") or (following[1] == "<<" and self.language == "ruby" and chain in self.names)
        ):
            self.extended(chain, self.value(j + 1, self.statement(j + 1)))
            return j + 1
        if following[1] in ("=", ":=") and following[0] == OP and self.at_start(i):
            end = self.statement(j + 1)
            self.names[chain] = self.value(j + 1, end)
            self.destructured(i, j, end)
            self.renamed(chain, j + 1, end)
            return j + 1
        if chain in _ENVIRONMENTS and following[1] in (")", ",", "}") and self.serialised(i):
            self.secret = self.secret or "the environment"
        if chain == "eval" and following[1] in (")", ",") and i and self.toks[i - 1][1] in ("(", ","):
            self.handed_on(i)
        if following[1] == "(" and following[0] == OP:
            return self.called(chain, i, j)
        if (self.language in ("perl", "ruby", "php", "lua", "tcl", "julia") and following[0] in (STR, ID, COMMAND)) or (
            following[1] in "[" and self.language == "ruby" and self.spaced(chain)
        ):
            action = self.action(chain)
            if action and not (following[0] == ID and following[1] in ("if", "unless", "and", "or", "do", "eq", "ne")):
                end = self.statement(j)
                self.perform(action, chain, self.split(j, end), i)
                return j
        return j

    def bracketed(self, i: int) -> None:
        """`(Path.home() / 'x').read_text()`: a method of what the brackets come to."""
        toks = self.toks
        if self.work < 0 or (i and toks[i - 1][0] == ID):
            return
        end = self.close(i)
        self.work -= (end - i) >> 4  # brackets in brackets are looked through again and again
        if (
            end + 3 < len(toks)
            and toks[end + 1][1] == "."
            and toks[end + 2][1] in tables.PATH_METHODS
            and toks[end + 3][1] == "("
        ):
            value = self.value(i + 1, end)
            if isinstance(value, Val) and value.text.strip(HOLE):
                self.path_method(value, toks[end + 2][1], self.split(end + 4, self.close(end + 3)))

    def spaced(self, chain: str) -> bool:
        return chain in ("system", "exec", "spawn")

    def at_start(self, i: int) -> bool:
        """Whether a name stands where a statement begins (declarations may come before it)."""
        while i > 0:
            kind, word, _ = self.toks[i - 1]
            if kind == ID and word in ("my", "our", "let", "const", "var", "local", "global", "export", "await"):
                i -= 1
                continue
            return (
                kind == LINE
                or word in (";", "{", "}", ":", "(", ",", "do", "then", ")", "begin")
                or (kind == ID and word in ("else", "do", "then"))
            )
        return True

    # --- calls

    def called(self, chain: str, i: int, j: int) -> int:
        """`chain(` at i, the bracket at j. Gives the place from which the scan goes on: inside the arguments."""
        self.work -= 1
        if self.work < 0:
            return len(self.toks)
        end = self.close(j)
        args = self.split(j + 1, end)
        if chain in ("__import__", "require", "importlib.import_module", "getattr", "import") and args:
            return self.reached(chain, args, end, j)
        if chain in (
            "Path",
            "pathlib.Path",
            "pathlib.Path.home",
            "Path.home",
            "pathlib.PosixPath",
            "PosixPath",
            "PurePath",
            "Pathname.new",
            "Pathname",
            "File.new",
            "open",
            "Path.cwd",
        ):
            self.methods(self.term_value(i, end + 1), end + 1)
        if chain in tables.HANDING and len(args) > 1 and self.toks[args[0][0]][0] == STR:
            chain = self.toks[args[0][0]][1]
            args = args[1:]
        action = self.action(chain)
        self.serviced(chain.rpartition(".")[2], args)
        if chain.rpartition(".")[2] == "write" and args and self.opened_for_writing:
            self.holds(self.opened_for_writing, args[0], append=True)
        if action:
            self.perform(action, chain, args, i)
        elif "." in chain:
            receiver, _, method = chain.rpartition(".")
            known = self.names.get(receiver)
            if method in tables.PATH_METHODS and isinstance(known, Val):
                self.path_method(known, method, args)
            elif isinstance(known, list) and method in ("append", "push", "extend") and len(args) == 1:
                self.extended(receiver, self.value(*args[0]))
        return j + 1

    def reached(self, chain: str, args: list[tuple[int, int]], end: int, j: int) -> int:
        """`__import__('os').system(…)`, `require('fs').rmSync(…)`, `getattr(os, 'system')(…)`."""
        toks = self.toks
        if chain == "getattr" and len(args) >= 2:
            holder = toks[args[0][0]][1]
            holder = self.aliases.get(holder, holder)
            if args[0][1] - args[0][0] > 1:
                holder = self.module(args[0][0], args[0][1]) or holder
            attribute = self.text(self.value(*args[1]))
            target = f"{holder}.{attribute.text}"
            if HOLE in attribute.text:
                self.call.emit(
                    "run_dynamic", ("inline", "attribute"), detail=f"an attribute of {holder} that isn't known"
                )
        else:
            target = self.text(self.value(*args[0])).text.removeprefix("node:")
        k = end + 1
        if k < len(toks) and toks[k][1] == ")" and chain in ("import", "require"):
            k += 1  # `(await import('fs')).rm(…)`
        while k + 1 < len(toks) and toks[k][1] == "." and toks[k + 1][0] == ID:
            target += "." + toks[k + 1][1]
            k += 2
        if k < len(toks) and toks[k][1] == "(":
            inner = self.split(k + 1, self.close(k))
            action = self.action(target)
            if action:
                self.perform(action, target, inner, j)
            return k + 1
        return j + 1

    def methods(self, value: Value, k: int) -> None:
        """`.unlink()` and the like after an expression that gives a path."""
        toks = self.toks
        bare = (
            self.language == "ruby"
            and k + 1 < len(toks)
            and toks[k][1] == "."
            and toks[k + 1][1] in tables.PATH_METHODS
        )
        if bare and (k + 2 >= len(toks) or toks[k + 2][1] != "("):
            self.path_method(self.text(value), toks[k + 1][1], [])
            return
        while k + 2 < len(toks) and toks[k][1] == "." and toks[k + 1][0] == ID and toks[k + 2][1] == "(":
            end = self.close(k + 2)
            method = toks[k + 1][1]
            if method in tables.PATH_METHODS:
                self.path_method(self.text(value), method, self.split(k + 3, end))
                return
            found = self.text(self.method(value, method, self.split(k + 3, end), 0))
            value = found if found.text.strip(HOLE) else value
            k = end + 1

    def path_method(self, path: Val, method: str, args: list[tuple[int, int]]) -> None:
        kind, flags = tables.PATH_METHODS[method]
        if kind == "read":
            self.read(path)
        elif kind == "move":
            self.call.change("move", path)
            if args:
                self.call.change("write", self.text(self.value(*args[0])))
        else:
            place = self.call.change(kind, path, flags)
            if method == "write_text" and args:
                self.holds(place.text, args[0])

    def perform(self, action: str, chain: str, args: list[tuple[int, int]], at: int) -> None:
        positional = [a for a in args if not self.keyword(a)]
        keywords = {self.toks[a[0]][1]: a for a in args if self.keyword(a)}
        first: Value = (
            self.value(*positional[0])
            if positional
            else next(
                (
                    self.value(a[0] + 2, a[1])
                    for k, a in keywords.items()
                    if k in ("args", "command", "cmd", "path", "url", "src", "file", "cwd")
                ),
                UNKNOWN,
            )
        )
        call = self.call
        if action == "shell":
            if isinstance(first, list):
                self.argv(first, chain)
            elif len(positional) > 1 and self.language in ("perl", "ruby", "php", "node") and self.language != "php":
                rest: list[Val] = []
                for a in positional[1:]:
                    value = self.value(*a)
                    if isinstance(value, list):
                        rest.extend(value)
                    elif value.known:
                        rest.append(value)
                if rest or self.language in ("perl", "ruby"):
                    self.argv([first, *rest], chain)
                else:
                    self.shell(first, chain)
            else:
                self.shell(first, chain)
        elif action == "argv":
            words = first if isinstance(first, list) else [first]
            for a in positional[1:]:
                value = self.value(*a)
                words = [*words, *(value if isinstance(value, list) else [value])]
            if chain.rpartition(".")[2].startswith(("execv", "execl", "spawnv", "spawnl", "posix_spawn")):
                words = exec_words(words, chain)
            self.argv(words, chain)
        elif action == "eval":
            code = self.value(*positional[-1]) if chain == "Function" and positional else first
            self.evaluated(self.text(code), chain)
        elif action == "named":
            from guardhook.analysis import inline_special as special

            special.named(self, chain, positional)
        elif action in ("delete", "delete-tree", "rmdir"):
            flags = (
                {"recursive", "force"}
                if action == "delete-tree" or self.recursive(args)
                else {"empty-only"}
                if action == "rmdir"
                else set()
            )
            for a in positional or []:
                value = self.value(*a)
                for path in value if isinstance(value, list) else [value]:
                    if path.text or path.taint:
                        call.change("delete", path, flags | {"inline"})
                if self.language in ("python", "node", "php"):
                    break
            if not positional:
                call.change("delete", UNKNOWN, flags | {"inline"})
        elif action == "write":
            nothing = chain.endswith("truncate") and len(positional) > 1 and self._source(positional[1]) == "0"
            more = ("inline", "truncate", "empty") if nothing else ("inline", "truncate")
            place = call.change("write", self.text(first), more)
            self.filled(place.text)
            if len(positional) > 1 and not nothing:
                self.holds(place.text, positional[1], append="append" in chain.lower())
        elif action == "open":
            self.opened(chain, positional, keywords, first)
        elif action == "read":
            self.read(self.text(first))
        elif action in ("chmod", "chown"):
            target = (
                first
                if self.language != "perl" and not (self.language == "ruby" and len(positional) > 1)
                else self.value(*positional[-1])
            )
            call.change(action, self.text(target), mode_flags_of(self, positional) | {"inline"})
        elif action in ("move", "copy"):
            self.moved(action, positional)
        elif action in ("connect", "upload"):
            self.connected(action, chain, positional, keywords, first)
        elif action == "print":
            for a in positional:
                value = self.text(self.value(*a))
                if "env-secret" in value.taint and self.whole_variable(a):
                    call.emit("read", ("environment", "secret-variable", "inline"), detail=f"prints {value.origin}")
                self.out.append(value)
            self.out.append(
                Val("\n")
                if chain not in ("print", "printf", "process.stdout.write", "sys.stdout.write")
                or (self.language == "python" and chain == "print")
                else EMPTY
            )
        elif action == "kill":
            which = {"-1": "everything", "1": "init"}.get(self._source(positional[0]) if positional else "", "inline")
            call.emit("process", {"kill", "inline", which}, detail=chain)
        elif action == "load":
            self.call.emit(
                "run_decoded" if "decoded" in self.text(first).taint else "run_dynamic",
                ("inline", "load"),
                detail=chain,
            ) if self.text(first).taint else None
        elif action == "setuid":
            call.emit("privilege", ("setuid", "inline"), detail=chain)

    def _source(self, argument: tuple[int, int]) -> str:
        """An argument as it is written."""
        return "".join(t[1] for t in self.toks[argument[0] : argument[1]])

    def moved(self, action: str, positional: list[tuple[int, int]]) -> None:
        if not positional:
            return
        source = self.text(self.value(*positional[0]))
        if action == "move":
            self.call.change("move", source, ("inline",))
        else:
            self.read(source)
        if len(positional) > 1:
            self.call.change("write", self.text(self.value(*positional[1])), ("inline",))

    def opened(
        self, chain: str, positional: list[tuple[int, int]], keywords: dict[str, tuple[int, int]], first: Value
    ) -> None:
        path = self.text(first)
        mode = ""
        if self.language == "perl":
            texts = [self.text(self.value(*a)).text for a in positional[1:3]]
            if len(texts) == 1:
                mode, path = texts[0][:1], Val(texts[0].lstrip("<>+| "))
                if texts[0].rstrip().endswith("|") or texts[0].startswith("|"):
                    self.shell(Val(texts[0].strip("| ")), chain, stdin=texts[0].startswith("|"))
                    return
            elif len(texts) == 2:
                mode, path = texts[0], Val(texts[1])
                if texts[0] in ("-|", "|-"):
                    self.shell(path, chain, stdin=texts[0] == "|-")
                    return
        else:
            if len(positional) > 1:
                mode = self.text(self.value(*positional[1])).text
            elif "mode" in keywords:
                a = keywords["mode"]
                mode = self.text(self.value(a[0] + 2, a[1])).text
        if path.text.startswith("|") and self.language in ("ruby", "perl"):
            self.shell(Val(path.text[1:]), chain)
        elif any(c in mode for c in "wax+>"):
            more = {"inline"} | ({"append"} if "a" in mode or ">>" in mode else {"truncate"})
            self.opened_for_writing = self.call.change("write", path, more).text
            self.filled(self.opened_for_writing)
        elif path.text.startswith(("http://", "https://")):
            self.connected("connect", chain, positional, keywords, first)
        else:
            self.read(path)

    def read(self, path: Val) -> Val:
        content = self.call.read(path, ("inline",))
        if "secret" in content.taint:
            self.secret = self.secret or content.origin
        return content

    def connected(
        self,
        action: str,
        chain: str,
        positional: list[tuple[int, int]],
        keywords: dict[str, tuple[int, int]],
        first: Value,
    ) -> None:
        from guardhook.analysis.programs.network import host_flags, host_of

        url = self.text(first)
        if (
            chain.endswith((".request", "requests.request"))
            and len(positional) > 1
            and url.text.upper() in ("GET", "POST", "PUT", "PATCH", "DELETE")
        ):
            action = "upload" if url.text.upper() != "GET" else "connect"
            url = self.text(self.value(*positional[1]))
        sent = (
            action == "upload"
            or any(k in keywords for k in ("data", "json", "files", "body"))
            or (len(positional) > 1 and chain.endswith("urlopen"))
        )
        if self.language == "node":
            sent = sent or any(
                t[1] in ("body", "POST", "PUT") for a in positional[1:] for t in self.toks[a[0] : min(a[1], a[0] + 200)]
            )
        taint = url.taint
        for a in [*positional[1:], *keywords.values()]:
            for k in range(a[0], min(a[1], a[0] + SLICE)):
                if self.toks[k][0] == ID:
                    found = self.names.get(self.toks[k][1])
                    taint |= self.text(found).taint if found is not None else NONE
            taint |= self.text(self.value(a[0] + (2 if self.keyword(a) else 0), a[1])).taint
        host = host_of(url.text) if url.text != HOLE else ""
        if "connect" in chain and not url.text.startswith("http"):
            host = self.address(positional)
        if chain.endswith(("urlretrieve", "getstore", "download.file")) and len(positional) > 1:
            place = self.call.change("write", self.text(self.value(*positional[1])), ("inline", "download", "truncate"))
            self.call.walker.files[place.text] = Val(HOLE, frozenset(("network",)), url.shown)
        flags = host_flags(host, url.text) | {"inline"}
        if sent:
            flags.add("upload")
        if "socket" in chain or chain.endswith("connect"):
            flags.add("raw")
        self.call.emit("connect", flags, host=host)
        if sent or "raw" in flags or HOLE in url.text or url.taint:
            self.sent = self.sent or host or "the network"
        hot = taint & frozenset(("secret", "env-secret", "environment"))
        if hot and (sent or url.taint & hot):
            names = {"secret": "file", "env-secret": "variable", "environment": "environment"}
            self.call.emit(
                "secret_flow",
                {"network", "inline", *(names[h] for h in hot)} | flags & {"local", "drop"},
                host=host,
                detail=f"a secret to {host or 'the network'}",
            )
            self.secret = ""

    # --- running

    def shell(self, value: Value, chain: str, *, stdin: bool = False) -> None:
        """stdin: the program text writes to what it starts."""
        text = self.text(value)
        if self.raw_network(text.text):
            self.call.emit("run_fetched", ("network-shell", "inline"), detail=f"{chain} on a connection")
        if text.text == HOLE and not text.taint:
            self.call.emit("run_dynamic", ("inline",), detail=f"{chain} of a text that isn't known")
            return
        self.call.code(text, "inline", f"{self.language}", stdin=UNKNOWN if stdin else None)

    def argv(self, words: list[Val], chain: str) -> None:
        if not words:
            return
        if self.raw_network():
            self.call.emit("run_fetched", ("network-shell", "inline"), detail=f"{chain} on a connection")
        if words[0].text == HOLE and all(w.text == HOLE for w in words):
            self.call.emit("run_dynamic", ("inline",), detail=f"{chain} of a program that isn't known")
            return
        first = words[0].text
        if len(words) == 1 and " " in first:
            self.call.code(words[0], "inline", self.language)
            return
        self.call.run(words, self.language)

    def raw_network(self, command: str = "") -> bool:
        """Whether this program has a raw connection and hands it to what it starts."""
        names = {t[1] for t in self.toks if t[0] == ID} if len(self.toks) < 2000 else set()
        if names & tables.STREAMS:
            return True
        handed = names & tables.HANDED_OVER or "<&" in command
        return bool(names & tables.SOCKETS and handed and names & tables.CONNECTED)

    def evaluated(self, value: Val, chain: str) -> None:
        walker = self.call.walker
        walker.note_origin(value, self.call.span, "inline")
        if HOLE in value.text and not value.taint & {"network", "decoded"}:
            if value.text == HOLE:
                self.call.emit("run_dynamic", ("inline", "eval"), detail=f"{chain} of a text that isn't known")
            return
        if value.text.strip(HOLE) and walker.depth < 24:
            walker.depth += 1
            inner = Scanner(self.call, self.language)
            inner.aliases = dict(self.aliases)
            inner.names = dict(self.names)
            inner.run(value.text)
            self.out.extend(inner.out)
            walker.depth -= 1
