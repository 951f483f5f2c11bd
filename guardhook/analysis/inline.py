"""A light scan of code in scripting languages: which calls it makes, with which constant arguments.

No text search: names are looked up where they are called, strings count only as arguments. What isn't constant is a
hole; what flows in from the network, a decoder or a secret file is tracked like in the shell.
"""

from __future__ import annotations

from guardhook.analysis import inline_tables as tables
from guardhook.analysis.call import Call
from guardhook.analysis.decode import base32_text, base64_text, hex_text, translate
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.tokens import COMMAND, ID, LINE, NUM, OP, STR, Token, tokens
from guardhook.analysis.values import EMPTY, NONE, UNKNOWN, State, Val, activate, concat
from guardhook.analysis.walk import Walker

_SLICE = 400  # tokens of one argument that are evaluated
_DEPTH = 12
Value = Val | list[Val]


def scan(call: Call, code: Val, language: str, variables: dict[str, Val] | None = None) -> Val:
    """Effects of code that an interpreter is given; what it prints, where that is constant."""
    if language == "sh":
        return call.code(code, "inline")
    scanner = Scanner(call, language)
    scanner.names.update(variables or {})
    return scanner.run(code.text)


def scan_text(walker: Walker, text: str, language: str, state: State) -> None:
    """As scan, for code that a tool is given outright."""
    call = Call(walker, language, [], state, None, {}, (0, len(text)), "")
    scan(call, Val(text), language)


class Scanner:
    """One program text. `out` collects what it prints."""

    __slots__ = ("aliases", "call", "language", "names", "out", "secret", "sent", "table", "toks", "work")

    def __init__(self, call: Call, language: str) -> None:
        self.call = call
        self.language = language
        self.names: dict[str, Value] = {}
        self.aliases: dict[str, str] = {}
        self.table = tables.of(language)
        self.toks: list[Token] = []
        self.out: list[Val] = []
        self.secret = ""  # where secrets were read from
        self.sent = ""  # where data was sent to
        self.work = 40_000

    def run(self, text: str) -> Val:
        self.toks = tokens(text, self.language)
        toks = self.toks
        self.loops()
        i, n = 0, len(toks)
        while i < n:
            kind, word, _ = toks[i]
            if kind == ID:
                i = self.name(i)
            elif kind == COMMAND:
                self.shell(self.interpolate(word), "backtick")
                i += 1
            else:
                i += 1
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
        for i in range(len(toks) - 3):
            if toks[i][0] == ID and toks[i][1] in ("in", "of") and toks[i - 1][0] == ID and i > 1 and toks[i - 2][1] in ("for", "const", "let", "var", "my"):
                if toks[i + 1][1] in ("[", "(") or toks[i + 1][0] == ID:
                    end = self.term_end(i + 1, len(toks))
                    value = self.value(i + 1, end)
                    if isinstance(value, list) or value.known:
                        self.names[toks[i - 1][1]] = value
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
        if following[1] in ("=", ":=") and following[0] == OP and self.at_start(i):
            end = self.statement(j + 1)
            self.names[chain] = self.value(j + 1, end)
            self.destructured(i, j, end)
            return j + 1
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

    def handed_on(self, i: int) -> None:
        """`fetch(…).then(eval)`: eval handed to somebody who calls it with what was fetched."""
        if "network" in self.taint(max(0, i - _SLICE), i):
            self.call.emit("run_fetched", ("inline",), detail="what was fetched is evaluated")
        else:
            self.call.emit("run_dynamic", ("inline", "eval"), detail="eval of a text that isn't known")

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

    def destructured(self, i: int, j: int, end: int) -> None:
        """`const x = require('m')`: x stands for the module."""
        module = self.module(j + 1, end)
        if module:
            self.aliases[self.toks[i][1]] = module

    def module(self, begin: int, end: int) -> str:
        toks = self.toks
        k = begin
        if k < end and toks[k][1] == "await":
            k += 1
        if (
            k + 2 < end
            and toks[k][1] in ("require", "__import__", "import_module", "import")
            and toks[k + 1][1] == "("
            and toks[k + 2][0] == STR
        ):
            return toks[k + 2][1].removeprefix("node:")
        if k + 4 < end and toks[k][1] == "importlib":
            return self.module(k + 2, end)
        return ""

    def imports(self, i: int) -> int:
        """`import a as b`, `from a import b as c`, `import {a} from 'b'`. The place after it, or i when it is none."""
        toks = self.toks
        end = self.statement(i)
        words = [t[1] for t in toks[i:end]]
        if self.language == "node":
            module = next((t[1] for t in toks[i:end] if t[0] == STR), "").removeprefix("node:")
            if words[0] != "import" or words[1:2] == ["("] or not module:
                return i
            for position, token in enumerate(toks[i + 1 : end]):
                if token[0] == ID and token[1] not in ("from", "as", "type"):
                    before = words[position] if position else ""
                    self.aliases[token[1]] = module if before in ("import", "as", "*") else f"{module}.{token[1]}"
            return end
        if self.language != "python":
            return i
        if words[0] == "import":
            for piece in " ".join(words[1:]).split(","):
                name, _, alias = piece.partition(" as ")
                name = name.replace(" ", "")
                self.aliases[(alias or name.split(".")[0]).strip()] = name if alias else name.split(".")[0]
            return end
        if words[0] == "from" and "import" in words:
            at = words.index("import")
            module = "".join(words[1:at])
            for piece in " ".join(w for w in words[at + 1 :] if w not in "()").split(","):
                name, _, alias = piece.partition(" as ")
                self.aliases[(alias or name).strip()] = f"{module}.{name.strip()}"
            return end
        return i

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
        action = self.action(chain)
        if action:
            self.perform(action, chain, args, i)
        elif "." in chain:
            receiver, _, method = chain.rpartition(".")
            known = self.names.get(receiver)
            if method in tables.PATH_METHODS and isinstance(known, Val):
                self.path_method(known, method, args)
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
        while k + 2 < len(toks) and toks[k][1] == "." and toks[k + 1][0] == ID and toks[k + 2][1] == "(":
            end = self.close(k + 2)
            method = toks[k + 1][1]
            if method in tables.PATH_METHODS:
                self.path_method(self.text(value), method, self.split(k + 3, end))
                return
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
            self.call.change(kind, path, flags)

    def action(self, chain: str) -> str:
        """What the table says of a call, by its whole name or, where that is unmistakable, its last part."""
        found = self.table.get(chain)
        if found:
            return found
        last = chain.rpartition(".")[2]
        if last != chain:
            two = ".".join(chain.split(".")[-2:])
            return self.table.get(two) or self.table.get("*." + last, "")
        return self.table.get("*." + last, "") if self.language in ("perl", "php", "ruby") else ""

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
                words = _exec_words(words, chain)
            self.argv(words, chain)
        elif action == "eval":
            self.evaluated(self.text(first), chain)
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
            call.change("write", self.text(first), ("inline", "truncate"))
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
            call.change(action, self.text(target), _mode(self, positional) | {"inline"})
        elif action in ("move", "copy"):
            self.moved(action, positional)
        elif action in ("connect", "upload"):
            self.connected(action, chain, positional, keywords, first)
        elif action == "print":
            values = [self.text(self.value(*a)) for a in positional]
            for value in values:
                self.out.append(value)
            self.out.append(
                Val("\n")
                if chain not in ("print", "printf", "process.stdout.write", "sys.stdout.write")
                or (self.language == "python" and chain == "print")
                else EMPTY
            )
        elif action == "kill":
            call.emit("process", ("kill", "inline"), detail=chain)
        elif action == "load":
            self.call.emit(
                "run_decoded" if "decoded" in self.text(first).taint else "run_dynamic",
                ("inline", "load"),
                detail=chain,
            ) if self.text(first).taint else None
        elif action == "setuid":
            call.emit("privilege", ("setuid", "inline"), detail=chain)

    def keyword(self, a: tuple[int, int]) -> bool:
        return (
            self.language in ("python", "ruby")
            and a[1] - a[0] > 2
            and self.toks[a[0]][0] == ID
            and self.toks[a[0] + 1][1] in ("=", ":")
        )

    def recursive(self, args: list[tuple[int, int]]) -> bool:
        return any(self.toks[i][1] == "recursive" for a in args for i in range(a[0], min(a[1], a[0] + 40)))

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
                    self.shell(Val(texts[0].strip("| ")), chain)
                    return
            elif len(texts) == 2:
                mode, path = texts[0], Val(texts[1])
                if texts[0] in ("-|", "|-"):
                    self.shell(path, chain)
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
            self.call.change("write", path, {"inline"} | ({"append"} if "a" in mode or ">>" in mode else {"truncate"}))
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
            for k in range(a[0], min(a[1], a[0] + _SLICE)):
                if self.toks[k][0] == ID:
                    found = self.names.get(self.toks[k][1])
                    taint |= self.text(found).taint if found is not None else NONE
            taint |= self.text(self.value(a[0] + (2 if self.keyword(a) else 0), a[1])).taint
        host = host_of(url.text) if url.text != HOLE else ""
        if "connect" in chain and not url.text.startswith("http"):
            host = self.address(positional)
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

    def address(self, positional: list[tuple[int, int]]) -> str:
        for a in positional:
            for k in range(a[0], a[1]):
                if self.toks[k][0] == STR:
                    return self.toks[k][1]
        return ""

    # --- running

    def shell(self, value: Value, chain: str) -> None:
        text = self.text(value)
        if self.raw_network():
            self.call.emit("run_fetched", ("network-shell", "inline"), detail=f"{chain} on a connection")
        if text.text == HOLE and not text.taint:
            self.call.emit("run_dynamic", ("inline",), detail=f"{chain} of a text that isn't known")
            return
        self.call.code(text, "inline", f"{self.language}", stdin=EMPTY)

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
            self.call.code(words[0], "inline", self.language, stdin=EMPTY)
            return
        self.call.run(words, self.language, stdin=EMPTY)

    def raw_network(self) -> bool:
        """Whether this program has a raw connection and hands it to what it starts."""
        names = {t[1] for t in self.toks if t[0] == ID} if len(self.toks) < 2000 else set()
        return (
            bool(names & {"socket", "TCPSocket", "Socket", "createConnection", "fsockopen", "IO::Socket::INET"})
            and bool(
                names
                & {
                    "dup2",
                    "pty",
                    "fileno",
                    "pipe",
                    "proc_open",
                    "STDIN",
                    "net",
                    "spawn",
                    "popen",
                    "PeerAddr",
                    "fdopen",
                    "gets",
                    "recv",
                }
            )
            and bool(
                names & {"connect", "createConnection", "fsockopen", "TCPSocket", "open", "Socket", "inet_aton", "INET"}
            )
        )

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

    # --- values

    def text(self, value: Value) -> Val:
        if isinstance(value, list):
            taint = NONE
            for v in value:
                taint |= v.taint
            return Val(" ".join(v.text for v in value), taint)
        return value

    def value(self, begin: int, end: int, depth: int = 0) -> Value:
        """The value of an expression: constants folded, calls looked through, the rest a hole with its taint."""
        self.work -= 1
        end = min(end, begin + _SLICE, len(self.toks))
        if begin >= end or depth > _DEPTH or self.work < 0:
            return UNKNOWN
        pieces: list[Val] = []
        toks = self.toks
        i = begin
        joined = True
        divide = False
        while i < end:
            kind, word, _ = toks[i]
            if kind == LINE or word in (";", "await", "new", "return", "async", "\\", "&"):
                i += 1
                continue
            if kind == OP and word in ("+", ".", "..", "~"):
                joined = True
                i += 1
                continue
            if kind == OP and word in ("/", "//") and pieces:
                joined, divide = True, True
                i += 1
                continue
            if kind == OP and word == "%" and pieces and pieces[-1].text:
                j = self.term_end(i + 1, end)
                pieces[-1] = self.formatted(pieces[-1], self.term_value(i + 1, j, depth))
                i = j
                continue
            if kind == OP and word == "*" and pieces:
                i += 2
                pieces[-1] = Val(HOLE, pieces[-1].taint)
                continue
            if kind == OP and word not in ("(", "[", "{"):
                # A comparison, a condition, a keyword argument: not something to fold.
                return Val(HOLE, self.taint(begin, end))
            if kind == ID and self.language in ("perl", "ruby") and i + 1 < end and toks[i + 1][0] == STR and not pieces:
                return self.function(word, self.split(i + 1, end), depth + 1, i, end)
            j = self.term_end(i, end)
            value = self.term_value(i, j, depth)
            if isinstance(value, list):
                if not pieces and j >= end:
                    return value
                if not pieces and j < end and toks[j][1] == "+":
                    more = self.value(j + 1, end, depth + 1)
                    return [*value, *(more if isinstance(more, list) else [more])]
                value = self.text(value)
            if not joined and kind not in (STR, COMMAND):
                return Val(HOLE, self.taint(begin, end))
            if divide and pieces:
                pieces[-1] = Val(pieces[-1].text.rstrip("/") + "/" + value.text, pieces[-1].taint | value.taint)
                divide = False
            else:
                pieces.append(value)
            joined = False
            i = max(j, i + 1)
        if not pieces:
            return UNKNOWN
        out = concat(pieces)
        return Val(out.text, out.taint, out.origin)

    def term_end(self, i: int, end: int) -> int:
        """The end of one term: a string, or a name with its calls, subscripts and methods."""
        toks = self.toks
        if i >= end:
            return end
        j = self.close(i) + 1 if toks[i][1] in ("(", "[", "{") and toks[i][0] == OP else i + 1
        dots = ("->", "::", "?.") if self.language in ("perl", "php") else (".", "::", "?.")
        while j < end:
            word = toks[j][1]
            if (toks[j][0] == OP and word in ("(", "[")) or (word == "{" and self.language == "perl"):
                j = self.close(j) + 1
            elif toks[j][0] == OP and word in dots and j + 1 < end and toks[j + 1][0] == ID:
                j += 2
            else:
                break
        return min(j, end)

    def term_value(self, i: int, j: int, depth: int = 0) -> Value:
        toks = self.toks
        if i >= min(j, len(toks)):
            return UNKNOWN
        kind, word, extra = toks[i]
        value: Value
        if kind == STR:
            value = self.interpolate(word) if extra else Val(word)
            k = i + 1
        elif kind == NUM:
            value, k = Val(word), i + 1
        elif kind == COMMAND:
            value, k = Val(HOLE), i + 1
        elif kind == OP and word in ("(", "["):
            end = self.close(i)
            items = self.split(i + 1, end)
            if word == "(" and len(items) == 1 and (self.language != "perl" or j <= end + 1):
                value = self.value(*items[0], depth + 1)
            else:
                values = [self.value(*a, depth + 1) for a in items[:64]]
                value = [v if isinstance(v, Val) else self.text(v) for v in values]
            k = end + 1
        elif kind == ID:
            value, k = self.named(i, j, depth)
        else:
            return Val(HOLE, self.taint(i, j))
        return self.after(value, k, j, depth)

    def named(self, i: int, j: int, depth: int) -> tuple[Value, int]:
        """A name, with its call if one follows."""
        toks = self.toks
        chain, k = self.chain(i)
        if k < j and toks[k][1] == "(":
            end = self.close(k)
            args = self.split(k + 1, end)
            return self.function(chain, args, depth, i, end), end + 1
        if chain in self.names:
            return self.names[chain], k
        if (
            k < j
            and toks[k][1] in ("[", "{")
            and chain in ("os.environ", "ENV", "process.env", "_ENV", "_SERVER", "_ENV")
        ):
            end = self.close(k)
            return self.environment(self.text(self.value(k + 1, end, depth + 1)).text), end + 1
        if chain.startswith("process.env."):
            return self.environment(chain.rpartition(".")[2]), k
        if chain in ("os.environ", "process.env", "ENV", "_ENV"):
            return Val(HOLE, frozenset(("environment",)), "the environment"), k
        if toks[i][1] in self.names:
            base = self.names[toks[i][1]]
            return base, k
        return Val(HOLE), k

    def environment(self, name: str) -> Val:
        if name in ("HOME", "USERPROFILE"):
            return Val(self.call.walker.home)
        if name == "USER":
            return Val(self.call.walker.facts.user)
        from guardhook.analysis.expand import secret_name

        found = self.call.state.vars.get(name)
        if isinstance(found, Val):
            return found
        env = self.call.env.get(name)
        if isinstance(env, Val):
            return env
        return Val(HOLE, frozenset(("env-secret",)), "$" + name) if secret_name(name) else UNKNOWN

    def function(self, chain: str, args: list[tuple[int, int]], depth: int, i: int, end: int) -> Value:
        """The value of a call, for the functions that programs build arguments with."""
        last = chain.rpartition(".")[2]
        values = [self.value(*a, depth + 1) for a in args[:16]] if depth < _DEPTH else []
        first = self.text(values[0]) if values else EMPTY
        if chain in (
            "os.path.join",
            "path.join",
            "path.resolve",
            "File.join",
            "posixpath.join",
            "os.path.abspath",
            "path.normalize",
        ):
            out = ""
            taint = NONE
            for v in values:
                piece = self.text(v)
                taint |= piece.taint
                out = piece.text if piece.text.startswith("/") or not out else out.rstrip("/") + "/" + piece.text
            return Val(out, taint)
        if last in ("expanduser", "expandvars", "expand_path", "realpath", "abspath", "normpath", "resolve"):
            text = first.text.replace("$HOME", self.call.walker.home)
            if text == "~" or text.startswith("~/"):
                text = self.call.walker.home + text[1:]
            return Val(text, first.taint)
        if chain.endswith(("Path.home", "os.homedir", "homedir", "Dir.home")):
            return Val(self.call.walker.home)
        if last in ("getcwd", "cwd", "pwd") and not args:
            return Val(self.call.walker.cwd(self.call.state) or HOLE)
        if last in ("getenv", "env") or chain in ("os.environ.get", "ENV.fetch", "Deno.env.get"):
            return self.environment(first.text)
        if last in (
            "Path",
            "PosixPath",
            "PurePath",
            "str",
            "String",
            "bytes",
            "list",
            "tuple",
            "shlex.split",
            "Pathname",
            "fspath",
            "Buffer.from",
            "decode",
            "encode",
            "URI",
            "URI.parse",
            "parse",
            "Request",
            "strip",
            "trim",
        ) or chain in ("Buffer.from", "shlex.quote", "URI.parse", "Pathname.new", "urllib.request.Request", "URL"):
            if chain == "Buffer.from" and len(values) > 1:
                coding = self.text(values[1]).text
                return self.decoded(first, base64_text if "64" in coding else hex_text)
            if chain.endswith("shlex.split"):
                return [Val(w, first.taint) for w in first.text.split()]
            if len(values) > 1 and last in ("Path", "PosixPath"):
                return Val("/".join(self.text(v).text.rstrip("/") for v in values), first.taint)
            return first
        if last in (
            "b64decode",
            "decode64",
            "base64_decode",
            "atob",
            "decode_base64",
            "urlsafe_b64decode",
            "standard_b64decode",
            "urlsafe_decode64",
            "strict_decode64",
            "a2b_base64",
            "decodebytes",
        ):
            return self.decoded(first, base64_text)
        if last in ("b32decode",):
            return self.decoded(first, base32_text)
        if last in ("fromhex", "unhexlify", "hex2bin", "a2b_hex"):
            return self.decoded(first, hex_text)
        if chain in ("codecs.decode",) or last == "str_rot13":
            coding = self.text(values[1]).text if len(values) > 1 else "rot13"
            return self.decoded(first, _rot13 if "rot" in coding else base64_text if "64" in coding else hex_text)
        if last in ("chr", "fromCharCode", "fromCodePoint"):
            numbers = [self.text(v).text for v in values]
            if all(n.isdecimal() and int(n) < 0x110000 for n in numbers):
                return Val("".join(chr(int(n)) for n in numbers))
        if last in (
            "decompress",
            "inflate",
            "gzinflate",
            "gunzipSync",
            "inflateSync",
            "gzuncompress",
            "unpack",
            "loads",
            "b85decode",
            "a85decode",
            "decrypt",
            "unescape",
            "convert_uudecode",
            "gzdecode",
            "brotliDecompressSync",
        ):
            return (
                Val(HOLE, first.taint | {"decoded"}, chain)
                if last != "loads" or chain.startswith(("marshal", "pickle"))
                else Val(HOLE, first.taint)
            )
        if last in ("glob", "iglob", "globSync", "rglob"):
            return Val(activate(first.text), first.taint)
        if last in ("reversed", "strrev", "reverse"):
            return Val(first.text[::-1], first.taint) if first.known else first
        action = self.action(chain)
        if action in ("connect", "upload"):
            return Val(HOLE, frozenset(("network",)), first.text.replace(HOLE, "…") or chain)
        if action in ("open", "read"):
            if first.text.startswith(("http://", "https://")):
                return Val(HOLE, frozenset(("network",)), first.text)
            place = self.call.place(first)
            return (
                Val(HOLE, frozenset(("secret",)), place.path) if "secret" in place.classes else Val(HOLE, first.taint)
            )
        return Val(HOLE, self.taint(i, end))

    def decoded(self, value: Val, decoder: object) -> Val:
        text = decoder(value.text) if value.known else None  # type: ignore[operator]
        return Val(text if text is not None else HOLE, value.taint | {"decoded"}, value.origin or "a decoder")

    def after(self, value: Value, k: int, j: int, depth: int) -> Value:
        """Methods and subscripts behind a term: `.join(…)`, `.format(…)`, `[::-1]`, `.read()` …"""
        toks = self.toks
        while k < min(j, len(toks)):
            word = toks[k][1]
            if word in (".", "->", "?.", "::") and k + 1 < j and toks[k + 1][0] == ID:
                method = toks[k + 1][1]
                if k + 2 < j and toks[k + 2][1] == "(":
                    end = self.close(k + 2)
                    value = self.method(value, method, self.split(k + 3, end), depth)
                    k = end + 1
                else:
                    value = (
                        Val(HOLE, self.text(value).taint, self.text(value).origin)
                        if method not in ("parent", "reverse", "strip", "text", "content", "value")
                        else (self.text(value) if method != "reverse" else Val(self.text(value).text[::-1]))
                    )
                    k += 2
            elif word == "[":
                end = self.close(k)
                inside = "".join(t[1] for t in toks[k + 1 : end])
                plain = self.text(value)
                if inside in (":-1", "::-1") or inside == "::-1":
                    value = Val(plain.text[::-1], plain.taint, plain.origin) if plain.known else plain
                elif isinstance(value, list) and inside.isdecimal() and int(inside) < len(value):
                    value = value[int(inside)]
                else:
                    value = Val(HOLE, plain.taint, plain.origin)
                k = end + 1
            else:
                k += 1
        return value

    def method(self, value: Value, method: str, args: list[tuple[int, int]], depth: int) -> Value:
        plain = self.text(value)
        if method == "join":
            items = self.value(*args[0], depth + 1) if args else EMPTY
            if isinstance(value, list):  # JavaScript, Ruby: list.join(separator)
                separator = self.text(items).text
                return Val(separator.join(v.text for v in value), plain.taint)
            if isinstance(items, list):
                return Val(plain.text.join(v.text for v in items), self.text(items).taint)
            if args and plain.known:
                items_text = self.text(items)
                return items_text if not plain.text else Val(HOLE, items_text.taint)
        if method in (
            "read",
            "decode",
            "strip",
            "trim",
            "text",
            "encode",
            "toString",
            "rstrip",
            "lstrip",
            "chomp",
            "to_s",
            "body",
            "readlines",
            "content",
            "json",
            "getvalue",
            "splitlines",
            "resolve",
            "absolute",
            "expanduser",
            "as_posix",
            "read_text",
            "read_bytes",
            "then",
            "unpack1",
            "force_encoding",
            "lower",
        ):
            if method in ("decode", "toString", "unpack1") and args:
                coding = self.text(self.value(*args[0], depth + 1)).text
                if "rot" in coding or "64" in coding or "hex" in coding or coding.startswith("m"):
                    return self.decoded(
                        plain, _rot13 if "rot" in coding else hex_text if "hex" in coding else base64_text
                    )
            if method in ("read_text", "read_bytes"):
                place = self.call.place(plain)
                return Val(HOLE, frozenset(("secret",)), place.path) if "secret" in place.classes else Val(HOLE)
            if method == "expanduser" and plain.text.startswith("~"):
                return Val(self.call.walker.home + plain.text[1:], plain.taint)
            return value
        if method in ("split", "split_whitespace") and plain.known:
            separator = self.text(self.value(*args[0], depth + 1)).text if args else ""
            pieces = (
                plain.text.split(separator)
                if separator
                else plain.text.split()
                if self.language == "python"
                else list(plain.text)
            )
            return [Val(p, plain.taint) for p in pieces]
        if method in ("replace", "gsub", "sub", "replaceAll", "tr") and len(args) >= 2 and plain.known:
            old, new = (self.text(self.value(*a, depth + 1)).text for a in args[:2])
            return (
                Val(plain.text.replace(old, new), plain.taint)
                if HOLE not in old + new and old
                else Val(HOLE, plain.taint)
            )
        if method == "format":
            return self.formatted(plain, [self.text(self.value(*a, depth + 1)) for a in args])
        if method in ("reverse", "concat", "joinpath", "add", "push"):
            if method == "reverse":
                return list(reversed(value)) if isinstance(value, list) else Val(plain.text[::-1], plain.taint)
            more = [self.text(self.value(*a, depth + 1)) for a in args]
            joiner = "/" if method == "joinpath" else ""
            return Val(joiner.join([plain.text, *(m.text for m in more)]), plain.taint)
        return Val(HOLE, plain.taint, plain.origin)

    def formatted(self, template: Val, values: Value) -> Val:
        items = values if isinstance(values, list) else [values]
        text = template.text
        taint = template.taint
        for item in items:
            taint |= item.taint
            for mark in ("%s", "%r", "{}"):
                if mark in text:
                    text = text.replace(mark, item.text, 1)
                    break
        return Val(text, taint)

    def interpolate(self, text: str) -> Val:
        """`f"{x}"`, `${x}`, `#{x}`, `$x` inside a string."""
        if not any(c in text for c in "{$#@"):
            return Val(text)
        out: list[str] = []
        taint = NONE
        i = 0
        while i < len(text):
            c = text[i]
            if c == "{" and self.language == "python":
                if text.startswith("{{", i):
                    out.append("{")
                    i += 2
                    continue
                name, i = _braced(text, i)
            elif (c == "$" and text.startswith("${", i) and self.language != "python") or (
                c == "#" and text.startswith("#{", i) and self.language == "ruby"
            ):
                name, i = _braced(text, i + 1)
            elif (
                c in "$@"
                and self.language in ("perl", "php", "tcl")
                and i + 1 < len(text)
                and (text[i + 1].isalpha() or text[i + 1] == "_")
            ):
                j = i + 1
                while j < len(text) and (text[j].isalnum() or text[j] == "_"):
                    j += 1
                name = text[i + 1 : j]
                i = j
                if text.startswith("{", i) and name == "ENV":
                    key, i = _braced(text, i)
                    found: Value = self.environment(key.strip("'\""))
                    out.append(self.text(found).text)
                    continue
            else:
                out.append(c)
                i += 1
                continue
            value = self.looked_up(name)
            taint |= value.taint
            out.append(value.text)
        return Val("".join(out), taint)

    def looked_up(self, name: str) -> Val:
        name = name.strip()
        found = self.names.get(name)
        if found is not None:
            return self.text(found)
        if name.startswith(("process.env.", "ENV[", "os.environ[")):
            return self.environment(
                name.replace("process.env.", "").replace("ENV[", "").replace("os.environ[", "").strip("]'\"")
            )
        if name.strip("'\"") != name and len(name) > 1:
            return Val(name.strip("'\""))
        inner = tokens(name, self.language) if len(name) < 400 and "(" in name else []
        if inner:
            keep, self.toks = self.toks, inner
            value = self.text(self.value(0, len(inner), 4))
            self.toks = keep
            return value
        return UNKNOWN

    def taint(self, begin: int, end: int) -> frozenset[str]:
        """What can flow out of tokens that weren't folded: by the names in them."""
        found: set[str] = set()
        for k in range(begin, min(end, begin + _SLICE, len(self.toks))):
            kind, word, _ = self.toks[k]
            if kind != ID:
                continue
            if word in tables.DECODERS:
                found.add("decoded")
            elif word in tables.FETCHERS:
                found.add("network")
            elif word in ("environ", "ENV") and self.toks[min(k + 1, len(self.toks) - 1)][1] not in ("[", ".", "{"):
                found.add("environment")
            else:
                known = self.names.get(word)
                if known is not None:
                    found |= self.text(known).taint
        return frozenset(found)


def _braced(text: str, i: int) -> tuple[str, int]:
    end = text.find("}", i)
    if end < 0:
        return "", len(text)
    name = text[i + 1 : end]
    if name.count("(") and "(" in name:
        return name, end + 1
    return name.partition("!")[0].partition(":")[0] if "://" not in name else name, end + 1


def _rot13(text: str) -> str | None:
    return translate(text, ["A-Za-z", "N-ZA-Mn-za-m"])


def _exec_words(words: list[Val], chain: str) -> list[Val]:
    """os.execv(path, [argv0, …]), execlp(file, argv0, …), spawn*(mode, file, …)."""
    if "spawn" in chain and not chain.endswith("posix_spawn"):
        words = words[1:]
    return [words[0], *words[2:]] if len(words) > 1 else words


def _mode(scanner: Scanner, positional: list[tuple[int, int]]) -> set[str]:
    from guardhook.analysis.programs.files import mode_flags

    for a in positional:
        text = scanner.text(scanner.value(*a)).text.lower().removeprefix("0o").removeprefix("0")
        if text.isdecimal() and 2 <= len(text) <= 4:
            return mode_flags(text)
    return set()
