"""Constant folding for code in scripting languages: what an expression's value is, as far as its text tells."""

from __future__ import annotations

from guardhook.analysis import inline_tables as tables
from guardhook.analysis.decode import base32_text, base64_text, hex_text, translate
from guardhook.analysis.inline_tokens import Cursor, Value
from guardhook.analysis.nodes import HOLE, STAR
from guardhook.analysis.tokens import COMMAND, ID, LINE, NUM, OP, STR, tokens
from guardhook.analysis.values import EMPTY, NONE, UNKNOWN, Val, activate, concat

SLICE = 400  # tokens of one argument that are evaluated
_DEPTH = 12


class Folder(Cursor):
    """Values of expressions, folded where they are constant."""

    __slots__ = ()

    def action(self, chain: str) -> str:
        """What the table says of a call, by its whole name or, where that is unmistakable, its last part."""
        found = self.table.get(chain)
        if found:
            return found
        last = chain.rpartition(".")[2]
        if chain.startswith(("shelljs.", "sh.")) and last not in ("exec", "cd", "echo", "Command"):
            known = self.aliases.values()
            return "named" if chain[:3] != "sh." or any(a == "sh" or a.startswith("sh.") for a in known) else ""
        if last != chain:
            two = ".".join(chain.split(".")[-2:])
            return self.table.get(two) or self.table.get("*." + last, "")
        return self.table.get("*." + last, "") if self.language in ("perl", "php", "ruby") else ""

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
        end = min(end, begin + SLICE, len(self.toks))
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
            if (
                kind == ID
                and self.language in ("perl", "ruby")
                and i + 1 < end
                and toks[i + 1][0] == STR
                and not pieces
            ):
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
        if chain == "compile":
            return first
        if last in ("mkdtemp", "mkstemp", "gettempdir", "mkdtempSync", "mktmpdir", "TemporaryDirectory"):
            return Val("/tmp/tmp." + HOLE + "x" if last != "gettempdir" else "/tmp")
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
        if last in tables.LISTING and values and "." in chain:
            return Val(first.text.rstrip("/") + "/" + STAR, first.taint)
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
        if method in ("glob", "rglob") and args:
            pattern = self.text(self.value(*args[0], depth + 1)).text
            deep = method == "rglob" or pattern.startswith("**/")
            name = activate(pattern.removeprefix("**/")) if pattern.strip(HOLE) else STAR
            return Val(plain.text.rstrip("/") + "/" + name, plain.taint | {"found"} if deep else plain.taint)
        if method in tables.LISTING or method in ("glob", "rglob"):
            return Val(plain.text.rstrip("/") + "/" + STAR, plain.taint)
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
        for k in range(begin, min(end, begin + SLICE, len(self.toks))):
            kind, word, _ = self.toks[k]
            if kind != ID:
                continue
            if word in tables.DECODERS:
                found.add("decoded")
            elif word in tables.FETCHERS:
                found.add("network")
            elif (
                word in ("environ", "ENV")
                and (
                    self.toks[min(k + 1, len(self.toks) - 1)][1] not in ("[", ".", "{")
                    or self.toks[min(k + 2, len(self.toks) - 1)][1] in ("items", "values", "copy", "to_h", "map")
                )
            ) or (
                word == "env"
                and k > 1
                and self.toks[k - 2][1] == "process"
                and self.toks[min(k + 1, len(self.toks) - 1)][1] not in ("[", ".")
            ):
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
