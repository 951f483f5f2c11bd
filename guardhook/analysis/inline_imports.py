"""What the names of a program text stand for: modules, functions, values that grow, variables of the environment."""

from __future__ import annotations

from guardhook.analysis import inline_tables as tables
from guardhook.analysis.inline_tokens import Value
from guardhook.analysis.inline_values import SLICE, Folder
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.tokens import ID, STR
from guardhook.analysis.values import UNKNOWN, Val, concat

# What `from module import *` brings along, as far as it matters.
_STARRED = {
    "os": ("system", "popen", "remove", "unlink", "rmdir", "removedirs", "rename", "replace", "execv", "execvp", "execl", "execlp", "chmod", "chown", "truncate", "kill"),
    "subprocess": ("run", "call", "Popen", "check_call", "check_output", "getoutput", "getstatusoutput"),
    "shutil": ("rmtree", "move", "copy", "copyfile", "copytree", "chown"),
}  # fmt: skip

_BROUGHT = frozenset(("network", "decoded"))
_SERIALISERS = frozenset(("stringify", "dumps", "dict", "str", "repr", "entries", "assign", "encode", "urlencode", "inspect"))  # fmt: skip


class Importer(Folder):
    """Follows `import`, `require` and their relatives; and what is added to a name's value."""

    __slots__ = ()

    def extended(self, chain: str, more: Value) -> None:
        """`text += more`."""
        before = self.names.get(chain)
        if isinstance(before, list):
            self.names[chain] = [*before, *(more if isinstance(more, list) else [more])]
        else:
            self.names[chain] = concat([before if before is not None else UNKNOWN, self.text(more)])

    def destructured(self, i: int, j: int, end: int) -> None:
        """`const x = require('m')`: x stands for the module."""
        module = self.module(j + 1, end)
        if module:
            k = next((k + 1 for k in range(j + 1, end) if self.toks[k][1] == ")"), end)
            while k + 1 < end and self.toks[k][1] == "." and self.toks[k + 1][0] == ID:
                module += "." + self.toks[k + 1][1]
                k += 2
            self.aliases[self.toks[i][1]] = module

    def serviced(self, method: str, args: list[tuple[int, int]]) -> None:
        """Methods of a database's or a provider's client."""
        if method in tables.STATEMENTS or method.startswith(("delete_", "terminate_")):
            from guardhook.analysis import inline_special as special

            special.service(self, method, args)

    def unpacked(self, i: int) -> None:
        """`const { execSync: run, rm } = require('m')`: each name stands for a function of the module."""
        toks = self.toks
        module = self.module(i + 1, min(i + 8, len(toks)))
        begin = next((k for k in range(i - 1, max(i - 80, -1), -1) if toks[k][1] == "{"), -1)
        if not module or begin < 0:
            return
        for first, last in self.split(begin + 1, i - 1):
            if toks[first][0] == ID:
                self.aliases[toks[last - 1][1]] = f"{module}.{toks[first][1]}"

    def renamed(self, name: str, begin: int, end: int) -> None:
        """`run = os.system`, `run = partial(subprocess.run, shell=True)`: another name for a function."""
        if begin >= end or self.toks[begin][0] != ID:
            return
        chain, k = self.chain(begin)
        if chain == "getattr" and k < end and self.toks[k][1] == "(":
            pieces = self.split(k + 1, self.close(k))
            if len(pieces) > 1 and self.toks[pieces[0][0]][0] == ID:
                chain = f"{self.chain(pieces[0][0])[0]}.{self.text(self.value(*pieces[1])).text}"
                k = end
        if chain.rpartition(".")[2] == "partial" and k + 1 < end and self.toks[k + 1][0] == ID:
            chain, k = self.chain(k + 1)
        elif k < end:
            return
        if self.action(chain):
            self.aliases[name] = chain

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
                if name.strip() == "*":
                    self.aliases.update({n: f"{module}.{n}" for n in _STARRED.get(module, ())})
                    continue
                self.aliases[(alias or name).strip()] = f"{module}.{name.strip()}"
            return end
        return i

    def whole_variable(self, argument: tuple[int, int]) -> bool:
        """Whether an argument is one environment variable and nothing else: no length of it, no beginning."""
        toks = self.toks[argument[0] : argument[1]]
        names = [t[1] for t in toks if t[0] == ID]
        plain = all(t[0] in (ID, STR) or t[1] in (".", "(", ")", "[", "]", "{", "}") for t in toks)
        known = {"os", "environ", "get", "getenv", "process", "env", "ENV", "fetch", "Deno"}
        if "process" in names:
            names = names[:2]
        return plain and sum(t[1] in ("(", "[", "{") for t in toks) <= 1 and known.issuperset(names)

    def serialised(self, i: int) -> bool:
        """`JSON.stringify(process.env)`, `dict(os.environ)`: the whole environment as a text."""
        toks = self.toks
        while i > 1 and toks[i - 1][1] in (".", "{", "...", "*"):
            i -= 1
        return i > 1 and toks[i - 1][1] == "(" and toks[i - 2][1] in _SERIALISERS

    def handed_on(self, i: int) -> None:
        """`fetch(…).then(eval)`: eval handed to somebody who calls it with what was fetched."""
        if "network" in self.taint(max(0, i - SLICE), i):
            self.call.emit("run_fetched", ("inline",), detail="what was fetched is evaluated")
        else:
            self.call.emit("run_dynamic", ("inline", "eval"), detail="eval of a text that isn't known")

    def recursive(self, args: list[tuple[int, int]]) -> bool:
        return any(self.toks[i][1] == "recursive" for a in args for i in range(a[0], min(a[1], a[0] + 40)))

    def holds(self, path: str, argument: tuple[int, int], *, append: bool = False) -> None:
        """A constant text that is written to a file."""
        value = self.text(self.value(*argument))
        if value.known and path and HOLE not in path:
            before = self.call.walker.files.get(path)
            fresh = not append or before is None or HOLE in before.text
            self.call.walker.pour(path, Val(value.text, value.taint, value.origin), append=not fresh)

    def filled(self, path: str) -> None:
        """A file that a program writes which also fetches or decodes something: that is what it holds."""
        taint = self.taint(0, len(self.toks)) & _BROUGHT
        if taint and path and HOLE not in path:
            self.call.walker.files[path] = Val(HOLE, frozenset(taint), "code that fetches or decodes")

    def address(self, positional: list[tuple[int, int]]) -> str:
        """The host among the arguments of a connection: the first string."""
        for begin, end in positional:
            for k in range(begin, end):
                if self.toks[k][0] == STR:
                    return self.toks[k][1]
        return ""


def exec_words(words: list[Val], chain: str) -> list[Val]:
    """os.execv(path, [argv0, …]), execlp(file, argv0, …), spawn*(mode, file, …)."""
    if "spawn" in chain and not chain.endswith("posix_spawn"):
        words = words[1:]
    return [words[0], *words[2:]] if len(words) > 1 else words


def mode_flags_of(scanner: Folder, positional: list[tuple[int, int]]) -> set[str]:
    from guardhook.analysis.programs.files import mode_flags

    for a in positional:
        text = scanner.text(scanner.value(*a)).text.lower().removeprefix("0o").removeprefix("0")
        if text.isdecimal() and 2 <= len(text) <= 4:
            return mode_flags(text)
    return set()
