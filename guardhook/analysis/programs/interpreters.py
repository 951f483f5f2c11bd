"""Interpreters of scripting languages: inline code, scripts, standard input."""

from __future__ import annotations

from guardhook.analysis import inline
from guardhook.analysis.call import Call, options
from guardhook.analysis.command import script
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs import index
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, concat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# language -> (options whose value is code, letters with a value, long options with a value)
_CODE = {
    "python": (("-c",), "cmWXQ", ("--check-hash-based-pycs",)),
    "node": (("-e", "--eval", "-p", "--print", "-pe", "-ep"), "erpC", ("--eval", "--print", "--require", "--import", "--loader", "--input-type", "--env-file", "--experimental-loader", "-pe", "-ep")),
    "perl": (("-e", "-E"), "eEIMmF", ()),
    "ruby": (("-e",), "eIrCFKEW", ("--require",)),
    "php": (("-r", "-B", "-R", "-E", "--run"), "rBREcdfSt", ("--run", "--file")),
    "lua": (("-e",), "el", ()),
    "osascript": (("-e",), "els", ()),
    "r": (("-e",), "e", ()),
    "julia": (("-e", "-E", "--eval"), "eE", ("--eval", "--project")),
    "groovy": (("-e",), "e", ()),
    "elixir": (("-e", "--eval"), "e", ("--eval",)),
    "tcl": (("-c",), "cf", ()),
}  # fmt: skip
_REPL = frozenset(("python", "node", "ruby", "php", "lua", "r", "julia", "groovy"))
# Options of node that do something by themselves.
_NODE_TASKS = ("--test", "--run", "--check", "--v8-options", "--completion-bash", "--build-snapshot", "--prof-process")
# Modules that `python -m` runs and that matter.
_MODULES = frozenset(("pip", "pipx", "uv", "poetry", "twine", "awscli", "build", "flit"))


def _interpreter(call: Call) -> Val:
    language = index.language(call.name) or "python"
    names, short, long = _CODE.get(language, (("-e", "-c"), "ec", ()))
    args = _unclustered(call.args, language)
    if language == "node" and call.name in ("deno", "bun") and args:
        return _deno(call, args)
    if call.network:
        call.emit("run_fetched", ("network-shell",), detail=f"an interpreter on a connection to {call.network}")
    opts = options(args, short=short, long=long, permute=False)
    codes = opts.every(*names)
    module = opts.value("-m") if language == "python" else None
    if call.name in ("irb", "ipython", "ipython3", "bpython", "ghci") and not opts.rest and not codes:
        return _repl(call, language)
    _loads(
        call,
        opts.every("-r", "--require", "--import", "--loader", "--experimental-loader") if language == "node" else [],
    )
    if module is not None:
        return _module(call, module, opts.rest)
    if codes:
        return _codes(call, language, codes, opts.given, opts.rest)
    rest = opts.rest
    if not rest and language == "node" and any(t.startswith(_NODE_TASKS) for t in call.texts()):
        return call.result()
    if not rest or rest[0].text in ("-", "/dev/stdin", "/dev/fd/0"):
        if opts.has("--version", "-V", "-v", "--help", "-h", "-i") and call.stdin is None and not opts.has("-i"):
            return UNKNOWN
        return _stdin(call, language)
    if language == "node" and rest[0].text == "inspect":
        rest = rest[1:]
    if language == "python" and opts.has("-i") and call.stdin is None:
        call.emit("run", ("interactive", "repl"), detail="takes code that no hook sees")
    return _file(call, language, rest)


def _unclustered(args: list[Val], language: str) -> list[Val]:
    """`perl -lane CODE`, `ruby -ne CODE`: the cluster ends in the option that takes the code."""
    if language not in ("perl", "ruby", "node"):
        return args
    out: list[Val] = []
    for position, value in enumerate(args):
        text = value.text
        if not text.startswith("-") or text in ("--", "-"):
            out.extend(args[position:])
            break
        if language == "perl" and len(text) > 2 and text[1] != "-":
            if text.startswith("-i"):
                out.append(Val("-i"))
                if text[-1:] == "e":
                    out.append(Val("-e"))
                elif text[-1:] == "E":
                    out.append(Val("-E"))
                continue
            at = next((i for i, c in enumerate(text[1:], 1) if c in "eE"), -1)
            if at > 0 and not any(c in text[1:at] for c in "IMm"):
                out.extend(Val("-" + c) for c in text[1:at] if c.isalpha())
                out.append(Val("-" + text[at:], value.taint, value.origin))
                continue
        out.append(value)
    return out


def _codes(call: Call, language: str, codes: list[Val], given: set[str], rest: list[Val]) -> Val:
    code = concat([Val(c.text + "\n", c.taint, c.origin) for c in codes])
    call.walker.note_origin(code, call.span, "inline")
    if code.text.strip() == HOLE:
        if not code.taint & {"network", "decoded"}:
            call.emit("run_dynamic", ("inline", "variable"), detail=codes[0].raw or "code that isn't known")
        return UNKNOWN
    if language == "osascript":
        return _osascript(call, code)
    if language in ("perl", "ruby") and "-i" in given:
        for value in rest:
            call.change("write", value, ("in-place",))
    elif language in ("perl", "ruby") and given & {"-n", "-p"}:
        for value in rest:
            call.read(value)
    variables = {f"argv{n}": v for n, v in enumerate(rest[:4])}
    if call.stdin is not None:
        for name in ("sys.stdin", "STDIN", "stdin", "process.stdin"):
            variables[name] = Val(call.stdin.text, call.stdin.taint, call.stdin.origin)
    if (
        language == "node"
        and given & {"-p", "--print"}
        and code.text.startswith("process.env")
        and ";" not in code.text
    ):
        code = Val(f"console.log({code.text.strip()})", code.taint, code.origin)
    out = inline.scan(call, code, language, variables=variables)
    if call.stdin is not None and call.stdin.taint:
        out = Val(out.text, out.taint | call.stdin.taint, out.origin or call.stdin.origin)
    if "-p" in given and language == "node":
        return UNKNOWN
    return out


def _loads(call: Call, values: list[Val]) -> None:
    for value in values:
        if value.text.startswith(("http:", "https:", "data:")):
            call.emit(
                "run_fetched" if value.text.startswith("http") else "run_decoded", ("inline",), detail=value.shown
            )
        elif "/" in value.text:
            _file(call, "node", [value])


def _module(call: Call, module: Val, rest: list[Val]) -> Val:
    name = module.text
    if name in _MODULES or name in ("json.tool", "http.server"):
        if name == "http.server":
            bound = options(call.args, short="bdm", long=("--bind", "--directory", "--protocol")).value("-b", "--bind")
            host = bound.text if bound is not None and bound.known else "0.0.0.0"
            local = host in ("127.0.0.1", "localhost", "::1")
            flags = ("listen", "server", "local") if local else ("listen", "server")
            call.emit("connect", flags, host=host, detail="serves the current folder")
            return UNKNOWN
        if name == "json.tool":
            return call.output()
        return call.run([Val(name), *rest], "python -m")
    if name in ("code", "pdb", "IPython") and not rest:
        return _repl(call, "python")
    if name in ("this", "timeit", "cProfile", "trace", "pdb", "runpy") and rest:
        if name == "timeit":
            for value in rest:
                if not value.text.startswith("-"):
                    inline.scan(call, value, "python")
            return UNKNOWN
        operands = [v for v in rest if not v.text.startswith("-")]
        return _file(call, "python", operands) if operands else UNKNOWN
    if module.known and name.replace(".", "").replace("_", "").isalnum():
        # A module of the current folder comes before an installed one.
        place = name.replace(".", "/")
        for path in (f"./{place}.py", f"./{place}/__main__.py"):
            out = script(call, Val(path, module.taint), rest, "python")
            if out is not None:
                return out
    return call.result()


def _repl(call: Call, language: str) -> Val:
    if call.stdin is not None:
        return _stdin(call, language)
    call.emit("run", ("interactive", "repl"), detail="takes code that no hook sees")
    return UNKNOWN


def _stdin(call: Call, language: str) -> Val:
    given = call.stdin
    if given is None:
        if language in _REPL and not call.network:
            call.emit("run", ("interactive", "repl"), detail="takes code that no hook sees")
        return UNKNOWN
    call.walker.note_origin(given, call.span, "stdin")
    if given.text.strip() == HOLE:
        from guardhook.analysis.programs.shells import on_disk

        text = on_disk(call, given)
        if text is not None:
            return inline.scan_file(call, text, language)
        if not given.taint & {"network", "decoded"}:
            call.emit("run_dynamic", ("stdin",), detail=given.origin or "code that isn't known")
        return UNKNOWN
    return inline.scan(call, given, language)


def _file(call: Call, language: str, rest: list[Val]) -> Val:
    path = rest[0]
    if path.text.rpartition("/")[2] in ("artisan", "manage.py"):
        return call.run([Val(path.text.rpartition("/")[2]), *rest[1:]], call.name)
    if path.text.rpartition("/")[2] == "setup.py" and "upload" in [v.text for v in rest[1:]]:
        call.emit("publish", ("pypi",), detail="setup.py upload")
    if path.text.startswith(("http://", "https://")):
        call.emit("run_fetched", ("script",), detail=path.shown)
        return UNKNOWN
    out = script(call, path, rest[1:], language)
    if out is None and language == "python" and path.known and not path.text.endswith(".py"):
        out = script(call, Val(path.text.rstrip("/") + "/__main__.py", path.taint), rest[1:], language)  # a folder
    if out is None:
        if path.text == HOLE:
            call.emit("run_dynamic", ("script",), detail=path.raw or "a script whose name isn't known")
        return call.result()
    return out


def _deno(call: Call, args: list[Val]) -> Val:
    verb = args[0].text
    rest = args[1:]
    if verb in ("eval", "-e", "--eval", "-p", "--print") and rest:
        opts = options(rest, permute=False)
        return _codes(call, "node", opts.rest[:1], set(), opts.rest[1:]) if opts.rest else UNKNOWN
    if call.name == "bun" and verb not in ("run", "x") and not verb.endswith((".js", ".ts", ".mjs", ".tsx", ".jsx")):
        return index.handler("packages", "bun")(call)
    if verb == "run":
        operands = options(rest, permute=False).rest
        if operands and operands[0].text == "-":
            return _stdin(call, "node")
        if call.name == "bun" and operands and "." not in operands[0].text:
            return index.handler("packages", "bun")(call)  # a script of package.json
        return _file(call, "node", operands) if operands else UNKNOWN
    if verb == "install" and any("://" in a.text for a in rest):
        call.emit("run_fetched", ("install",), detail=call.argv[-1])
    if verb == "task" and rest and call.name == "deno":
        from guardhook.analysis.programs.recipes import scripts

        text = scripts(call, "deno.json", "tasks", rest[0].text)
        return call.code(Val(text), "script", "deno task", state=call.state.fork()) if text else call.result()
    if verb == "x" and call.name == "bun":
        return call.run(rest, "bun x")
    if verb.endswith((".js", ".ts", ".mjs", ".tsx", ".jsx")):
        return _file(call, "node", args)
    return call.result()


def _osascript(call: Call, code: Val) -> Val:
    """AppleScript: `do shell script "…"`."""
    text = code.text
    at = 0
    while True:
        at = text.find("do shell script", at)
        if at < 0:
            break
        begin = text.find('"', at)
        if begin < 0:
            break
        end = begin + 1
        while end < len(text) and text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        call.code(Val(text[begin + 1 : end].replace('\\"', '"').replace("\\\\", "\\")), "inline")
        if "administrator privileges" in text[end : end + 80]:
            call.emit("privilege", ("administrator", "as-root"), detail="administrator privileges")
        at = end
    lowered = text.lower()
    if "display dialog" in lowered and ("password" in lowered or "hidden answer" in lowered):
        call.emit("read", ("credential", "dialog"), path_classes=frozenset(("secret",)), detail="asks for a password")
    if "empty trash" in lowered or ("delete" in lowered and "finder" in lowered):
        call.emit("delete", ("trash",), path_classes=frozenset(("home_child",)), detail="through the Finder")
    if "login item" in lowered:
        call.emit("persist", ("autostart",), detail="a login item")
    return UNKNOWN


def awk(call: Call) -> Val:
    """awk: `system(…)`, pipes to and from commands, files that it writes."""
    opts = options(
        call.args,
        short="fFveiEl",
        long=("--file", "--field-separator", "--assign", "--source", "--include"),
        permute=False,
    )
    operands = list(opts.rest)
    codes = opts.every("-e", "--source")
    for value in opts.every("-f", "--file"):
        known = call.walker.files.get(call.place(value).text)
        if value.text in ("-", "/dev/stdin"):
            known = call.input
        text = call.script_text(call.place(value).text, "awk") if known is None else None
        if known is not None:
            codes.append(known)
        elif text is not None:
            codes.append(Val(text))
    if not codes and operands and not opts.every("-f", "--file"):
        codes = [operands.pop(0)]
    names: dict[str, Val] = {}
    for value in opts.every("-v", "--assign"):
        name, _, text = value.text.partition("=")
        names[name] = Val(text, value.taint)
    inputs = [call.read(v) for v in operands if "=" not in v.text]
    if any("inplace" in v.text for v in opts.every("-i", "--include")):
        for v in operands:
            call.change("write", v, ("in-place",))
    source = concat(inputs) if inputs else call.input
    printed: Val | None = None
    for code in codes:
        if code.text.strip() == HOLE and not code.known:
            call.walker.note_origin(code, call.span, "inline")
            continue
        printed = _awk_code(call, code, names, source) or printed
    if printed is not None and source.origin and all(c.text.lstrip().startswith("{") for c in codes):
        return Val(printed.text, printed.taint, source.origin)  # every line: nothing is chosen
    if printed is not None:
        return Val(printed.text, printed.taint, printed.origin if printed.origin != source.origin else "")
    return (
        Val(HOLE, source.taint | frozenset(("listing",)) & source.taint, source.origin)
        if source.text
        else Val(HOLE, source.taint, source.origin)
    )


def _awk_code(call: Call, code: Val, names: dict[str, Val], source: Val) -> Val | None:
    from guardhook.analysis.tokens import ID, LINE, OP, STR, tokens

    toks = tokens(code.text, "awk")
    printed: Val | None = None

    def text(begin: int, end: int) -> Val:
        out: list[Val] = []
        k = begin
        while k < end:
            kind, word, _ = toks[k]
            if kind == STR:
                out.append(Val(word))
            elif kind == ID and word in names and (k + 1 >= end or toks[k + 1][1] != "("):
                out.append(names[word])
            elif kind == OP and word == "$":
                field = source.text.strip()
                out.append(
                    Val(
                        field if field and HOLE not in field and " " not in field and "\n" not in field else HOLE,
                        source.taint,
                        source.origin,
                    )
                )
                k += 1
            elif kind in (LINE,) or word in ("(", ")", ","):
                pass
            else:
                out.append(UNKNOWN)
            k += 1
        return concat(out)

    i = 0
    while i < len(toks):
        kind, word, _ = toks[i]
        end = i
        if kind == ID and word == "system" and i + 1 < len(toks) and toks[i + 1][1] == "(":
            depth = 0
            for end in range(i + 1, len(toks)):
                if toks[end][1] == "(":
                    depth += 1
                elif toks[end][1] == ")":
                    depth -= 1
                    if depth == 0:
                        break
            call.code(text(i + 2, end), "inline", "awk", stdin=EMPTY)
        elif kind == ID and i + 1 < len(toks) and toks[i + 1][1] == "=" and toks[i + 1][0] == OP:
            end = next(
                (k for k in range(i + 2, len(toks)) if toks[k][1] in (";", "}") or toks[k][0] == LINE), len(toks)
            )
            names[word] = text(i + 2, end)
        elif kind == STR and word.startswith("/inet"):
            host = (word.split("/") + [""] * 5)[4]
            call.emit("connect", ("raw", "upload"), program="/dev/tcp", host=host, detail="awk opens a connection")
        elif kind in (STR, ID) and i + 2 < len(toks) and toks[i + 1][1] in ("|", "|&") and toks[i + 2][1] == "getline":
            call.code(Val(word) if kind == STR else names.get(word, UNKNOWN), "inline", "awk", stdin=EMPTY)
        elif kind == ID and word in ("print", "printf"):
            end = next(
                (
                    k
                    for k in range(i + 1, len(toks))
                    if (toks[k][1] in (";", "}", "|", ">", ">>") and toks[k][0] == OP) or toks[k][0] == LINE
                ),
                len(toks),
            )
            what = text(i + 1, end) if end > i + 1 else Val(source.text or HOLE, source.taint, source.origin)
            if end < len(toks) and toks[end][1] in ("|", ">", ">>"):
                stop = next(
                    (k for k in range(end + 1, len(toks)) if toks[k][1] in (";", "}") or toks[k][0] == LINE), len(toks)
                )
                target = text(end + 1, stop)
                if toks[end][1] == "|":
                    call.code(target, "inline", "awk", stdin=what)
                elif target.text not in ("/dev/stderr", "/dev/stdout"):
                    call.change("write", target, ("inline",))
            else:
                printed = what if what.text else printed
        i += 1
    return printed


HANDLERS: dict[str, Handler] = {"": _interpreter}
