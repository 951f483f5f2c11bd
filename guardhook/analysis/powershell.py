"""A PowerShell subset: pipelines of commands with parameters; cmdlets by their canonical names or aliases.

What isn't a cmdlet goes to the same program handlers as in the shell. `$( )`, `( )` and `{ }` are walked too; variables
are followed where their value is constant.
"""

from __future__ import annotations

from guardhook.analysis.call import Call
from guardhook.analysis.cmdlets import CMDLETS, Arguments, Item, path_of, printed
from guardhook.analysis.decode import base64_text
from guardhook.analysis.nodes import HOLE, STAR, Unparsable
from guardhook.analysis.powershell_text import KEYWORDS, Piece, matching, statements
from guardhook.analysis.values import EMPTY, NONE, UNKNOWN, State, Val, concat
from guardhook.analysis.walk import Walker
from guardhook.core import limits

_ALIASES = {
    "ri": "remove-item", "rm": "remove-item", "rmdir": "remove-item", "rd": "remove-item", "del": "remove-item", "erase": "remove-item", "gc": "get-content", "cat": "get-content", "type": "get-content", "sc": "set-content", "ac": "add-content",
    "clc": "clear-content", "ni": "new-item", "md": "new-item", "mkdir": "new-item", "cp": "copy-item", "copy": "copy-item", "cpi": "copy-item", "mv": "move-item", "move": "move-item", "mi": "move-item", "ren": "rename-item", "rni": "rename-item",
    "iwr": "invoke-webrequest", "curl": "invoke-webrequest", "wget": "invoke-webrequest", "irm": "invoke-restmethod", "iex": "invoke-expression", "icm": "invoke-command", "saps": "start-process", "start": "start-process", "spps": "stop-process",
    "kill": "stop-process", "cd": "set-location", "sl": "set-location", "chdir": "set-location", "pushd": "push-location", "popd": "pop-location", "gci": "get-childitem", "ls": "get-childitem", "dir": "get-childitem", "echo": "write-output", "write": "write-output",
    "sal": "set-alias", "nal": "set-alias", "pwd": "get-location", "gl": "get-location", "foreach": "foreach-object", "%": "foreach-object", "where": "where-object", "?": "where-object", "sasv": "start-service", "spsv": "stop-service", "sp": "set-itemproperty", "clear-recyclebin": "clear-recyclebin", "tee": "tee-object", "gp": "get-itemproperty",
}  # fmt: skip


_PLACES = frozenset(("fullname", "pspath", "path", "name"))


def program(call: Call) -> Val:
    """`pwsh` and `powershell` as programs."""
    args = call.args
    index = 0
    while index < len(args):
        text = (
            args[index].text.lower().replace("/", "-", 1)
            if args[index].text.startswith("/")
            else args[index].text.lower()
        )
        rest = args[index + 1 :]
        if not text.startswith("-"):
            break
        if len(text) > 1 and ("-command".startswith(text) or text == "-c"):
            if rest and rest[0].text == "-":
                return run_code(call, call.input)
            return run_code(call, Val(" ".join(a.text for a in rest), rest[0].taint if rest else NONE))
        if len(text) > 1 and ("-encodedcommand".startswith(text) or text in ("-ec", "-enc")) and rest:
            decoded = base64_text(rest[0].text)
            call.emit("run_decoded", ("inline",), detail="-EncodedCommand")
            return run_code(call, Val(decoded, rest[0].taint)) if decoded else UNKNOWN
        if len(text) > 2 and "-file".startswith(text) and rest:
            return _file(call, rest[0])
        index += (
            2
            if text
            in (
                "-executionpolicy",
                "-ep",
                "-ex",
                "-exec",
                "-windowstyle",
                "-w",
                "-version",
                "-inputformat",
                "-outputformat",
                "-workingdirectory",
                "-wd",
                "-configurationname",
            )
            else 1
        )
    if index < len(args):
        return (
            _file(call, args[index])
            if args[index].text.lower().endswith(".ps1")
            else run_code(call, Val(" ".join(a.text for a in args[index:])))
        )
    if call.stdin is not None:
        return run_code(call, call.stdin)
    call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
    return UNKNOWN


def _file(call: Call, path: Val) -> Val:
    known = call.walker.files.get(call.place(path).text)
    if known is not None:
        return run_code(call, known)
    text = call.script_text(call.place(path).text, "powershell")
    return run_code(call, Val(text)) if text else call.result()


def run_code(call: Call, code: Val) -> Val:
    call.walker.note_origin(code, call.span, "inline")
    if code.text.strip() == HOLE:
        if not code.taint:
            call.emit("run_dynamic", ("inline",), detail=code.raw or "code that isn't known")
        return UNKNOWN
    keep = call.walker.base, call.walker.via
    call.walker.base, call.walker.via = call.span, (*call.walker.via, call.name)
    try:
        return walk(call.walker, code.text, call.state.fork())
    finally:
        call.walker.base, call.walker.via = keep


def walk(walker: Walker, text: str, state: State) -> Val:
    """Walks a script: every pipeline in it, whatever control structure it stands in."""
    walker.depth += 1
    walker.spend(1 + (len(text) >> 8))
    if walker.depth > limits.COMMAND_NESTING // 2:
        raise Unparsable(f"nested deeper than {limits.COMMAND_NESTING // 2} levels", cap=True)
    outputs: list[Val] = []
    for pipeline in statements(text):
        stdin: Val | None = None
        for element in pipeline:
            stdin = _element(walker, element, state, stdin)
        if stdin is not None and stdin is not EMPTY:
            outputs.append(stdin)
    walker.depth -= 1
    return concat(outputs)


def _value(walker: Walker, source: str, state: State) -> Val:
    """A word's value: quotes and backticks removed, variables replaced."""
    out: list[str] = []
    taint = NONE
    i, n = 0, len(source)
    quote = ""
    ended = -1  # where a string or a variable came to its end
    if source.startswith(('@"', "@'")) and source.endswith(source[1] + "@"):
        inner = source[source.find("\n") + 1 : -3]
        if source[1] == "'":
            return Val(inner, raw=source)
        source, n, quote = inner, len(inner), "@"
    while i < n:
        c = source[i]
        if c == "`" and quote != "'":
            out.append({"n": "\n", "t": "\t", "0": ""}.get(source[i + 1 : i + 2], source[i + 1 : i + 2]))
            i += 2
        elif c == quote:
            quote = ""
            i += 1
            ended = i
        elif c in "'\"" and not quote:
            quote = c
            i += 1
        elif c == "+" and not quote and ended == i and source[i + 1 : i + 2] in ("'", '"', "$"):
            i += 1  # `'a'+'b'`
        elif c == "$" and quote != "'" and i + 1 < n:
            value, i = _variable(walker, source, i, state)
            taint |= value.taint
            if not quote and source[i : i + 1] == "." and source[i + 1 : i + 2].isalpha():
                end = i + 1
                while end < n and (source[end].isalnum() or source[end] == "_"):
                    end += 1
                if source[end : end + 1] != "(":
                    # A property: those of a file that say where it lies are the file.
                    value = value if source[i + 1 : end].lower() in _PLACES else Val(HOLE, value.taint - {"env-secret"})
                    i = end
            out.append(value.text)
            ended = i
        elif c == "*" and not quote:
            out.append(STAR)
            i += 1
        else:
            out.append(c)
            i += 1
    return Val("".join(out), taint, raw=source)


def _variable(walker: Walker, source: str, i: int, state: State) -> tuple[Val, int]:
    if source.startswith("$(", i):
        end = matching(source, i + 1)
        return walk(walker, source[i + 2 : end], state), end + 1
    if source.startswith("${", i):
        end = source.find("}", i)
        end = len(source) if end < 0 else end
        name, i = source[i + 2 : end], end + 1
    else:
        j = i + 1
        while j < len(source) and (source[j].isalnum() or source[j] in "_:"):
            j += 1
        name, i = source[i + 1 : j], j
    lowered = name.lower()
    if lowered in ("home", "env:userprofile", "env:home"):
        return Val(walker.home), i
    if lowered in ("env:systemroot", "env:windir"):
        return Val("/Windows"), i
    if lowered in ("env:systemdrive",):
        return Val("C:"), i
    if lowered in ("env:temp", "env:tmp", "env:tmpdir"):
        return Val("/tmp"), i
    if lowered == "profile" or lowered.startswith("profile."):
        return Val(walker.home + "/.config/powershell/profile.ps1"), i
    if lowered in ("pwd", "psscriptroot"):
        return Val(walker.cwd(state) or HOLE), i
    if lowered in ("env:programfiles", "env:programdata"):
        return Val("/ProgramData"), i
    if lowered.startswith("env:"):
        from guardhook.analysis.expand import secret_name

        return Val(HOLE, frozenset(("env-secret",)) if secret_name(name[4:]) else NONE, "$" + name), i
    value = state.vars.get("ps:" + lowered)
    return (value if isinstance(value, Val) else UNKNOWN), i


def _element(walker: Walker, words: list[Piece], state: State, stdin: Val | None) -> Val:
    """One command of a pipeline, or an expression, with its redirections."""
    walker.steps += 1
    if walker.steps > 4000:
        raise Unparsable("more than 4000 steps", cap=True)
    targets: list[tuple[Val, bool]] = []
    if any(w[0] == "redirect" for w in words):
        kept: list[Piece] = []
        for index, piece in enumerate(words):
            if index and words[index - 1][0] == "redirect":
                if piece[0] == "word" and piece[1].lower() != "$null":
                    targets.append((_value(walker, piece[1], state), words[index - 1][1] == ">>"))
            elif piece[0] != "redirect":
                kept.append(piece)
        words = kept
    out = _unredirected(walker, words, state, stdin) if words else EMPTY
    for target, append in targets:
        call = Call(walker, "powershell", [], state, None, {}, walker.base or (0, len(walker.text)), "")
        flags = ("redirect", "append") if append else ("redirect", "truncate")
        walker.pour(call.change("write", path_of(target.text), flags).text, out, append)
    return EMPTY if targets else out


def _unredirected(walker: Walker, words: list[Piece], state: State, stdin: Val | None) -> Val:
    kind, source = words[0]
    span = walker.base or (0, len(walker.text))
    called = kind == "call"
    if called:
        words = words[1:]
        if not words:
            return EMPTY
        kind, source = words[0]
    if kind == "word" and len(words) > 1 and words[1] in (("word", "="), ("word", "+=")) and source[0] in "$[":
        return _assign(walker, words, state, span)
    if kind == "hash":
        return _table(walker, source, state)
    if kind == "block":
        return concat([walk(walker, inner, state) for piece, inner in words if piece in ("block", "group")])
    if kind == "group":
        value = _group(walker, words, state, stdin, span)
        if called and "scriptblock" in source.lower():
            return run_code(Call(walker, "powershell", [], state, stdin, {}, span, ""), value)
        if called:
            return _command(walker, value, _arguments(walker, words, state, span), state, stdin, span)
        return value
    lowered = source.lower()
    if lowered == "foreach" and len(words) > 1 and words[1][0] == "group" and " in " in words[1][1].lower():
        return _foreach(walker, words, state)
    if lowered in KEYWORDS:
        if lowered in ("return", "throw") and len(words) > 1:
            return _element(walker, words[1:], state, stdin)
        outputs = [(piece, walk(walker, inner, state)) for piece, inner in words[1:] if piece in ("block", "group")]
        return concat([value for piece, value in outputs if piece == "block"])
    if not called and (
        source[0] in "'\"$[@!-" or not source.strip("0123456789.") or (len(words) == 1 and "(" in source)
    ):
        return _expression(walker, words, state, span)
    name = _value(walker, source, state)
    return _command(walker, name, _arguments(walker, words, state, span), state, stdin, span)


def _assign(walker: Walker, words: list[Piece], state: State, span: tuple[int, int]) -> Val:
    """`$name = …`, `[type]$name = …`."""
    value = _element(walker, words[2:], state, None) if len(words) > 2 else EMPTY
    variable = words[0][1].rpartition("]")[2].lstrip("$").lower()
    if words[1][1] == "+=":
        before = state.vars.get("ps:" + variable)
        value = concat([before if isinstance(before, Val) else UNKNOWN, value])
    if not variable:
        return value
    state.vars["ps:" + variable] = value
    if variable.startswith("env:"):
        from guardhook.analysis import guard

        call = Call(walker, "env", [], state, None, {variable[4:].upper(): value}, span, "")
        guard.environment(call)
    return EMPTY


def _table(walker: Walker, text: str, state: State) -> Val:
    """`@{ name = value }`: only the values are expressions."""
    values: list[Val] = []
    for pipeline in statements(text):
        for words in pipeline:
            named = len(words) > 2 and words[1] == ("word", "=")
            value = _element(walker, words[2:] if named else words[:0], state, None)
            values.append(value)
    return Val(HOLE, frozenset().union(*(v.taint for v in values)))


def _foreach(walker: Walker, words: list[Piece], state: State) -> Val:
    """`foreach ($x in …) { … }`: the body with each of a few known values."""
    head = words[1][1]
    at = head.lower().index(" in ")
    items = _element(walker, pieces[0][0], state, None) if (pieces := statements(head[at + 4 :])) else UNKNOWN
    lines = [w for w in items.text.replace(",", "\n").split("\n") if w.strip()]
    for line in lines[:8] or [HOLE]:
        state.vars["ps:" + head[:at].strip().lstrip("$").lower()] = Val(line.strip(), items.taint, items.origin)
        for piece, inner in words[2:]:
            if piece == "block":
                walk(walker, inner, state)
    return UNKNOWN


def _arguments(walker: Walker, words: list[Piece], state: State, span: tuple[int, int]) -> list[Item]:
    args: list[Item] = []
    for number, (piece, inner) in enumerate(words[1:], 1):
        following = words[number + 1] if number + 1 < len(words) else ("", "")
        if piece == "group" and following[0] == "word" and following[1].startswith("."):
            args.append(Item("group", _group(walker, words[number:], state, None, span), inner))
            break
        if piece == "word":
            value = _value(walker, inner, state)
            option = inner.startswith("-") and len(inner) > 1 and not inner[1].isdigit()
            args.append(Item("parameter" if option else "word", value))
        elif piece == "group":
            args.append(Item("group", walk(walker, inner, state), inner))
        elif piece == "hash":
            args.append(Item("group", _table(walker, inner, state), inner))
        elif piece == "block":
            args.append(Item("block", UNKNOWN, inner))
    return args


def _group(walker: Walker, words: list[tuple[str, str]], state: State, stdin: Val | None, span: tuple[int, int]) -> Val:
    value = walk(walker, words[0][1], state)
    rest = "".join(w[1] for w in words[1:])
    lowered = rest.lower()
    if lowered.startswith((".downloadstring", ".downloaddata", ".downloadfile", ".openread")) or (
        "webclient" in words[0][1].lower() and "download" in lowered
    ):
        arguments = next((w[1] for w in words[1:] if w[0] == "group"), rest.partition("(")[2].rstrip(")"))
        pieces = [_value(walker, p.strip(), state) for p in arguments.split(",")]
        call = Call(walker, "webclient", [], state, stdin, {}, span, "")
        from guardhook.analysis.programs.network import connect

        connect(call, pieces[0], [])
        if "downloadfile" in lowered and len(pieces) > 1:
            place = call.change("write", path_of(pieces[1].text), ("download",))
            walker.files[place.text] = Val(HOLE, frozenset(("network",)), pieces[0].shown)
        return Val(HOLE, frozenset(("network",)), pieces[0].shown)
    return value


def _expression(walker: Walker, words: list[Piece], state: State, span: tuple[int, int]) -> Val:
    """Something that starts with a variable, a string, a number or a type is no command: its value, when it is a sum of known texts."""
    values: list[Val] = []
    summed = True
    for kind, source in words:
        if kind == "word" and source in ("+", ","):
            continue
        if kind == "word" and (source[0] in "'\"$[@" or "(" in source):
            if len(words) == 1 and (source[0] == '"' or source[5:].isidentifier()):
                values.append(printed(_value(walker, source, state)))
                continue
            values.append(_term(walker, source, _value(walker, source, state), state, span))
        elif kind in ("group", "block"):
            values.append(walk(walker, source, state))
        elif kind == "hash":
            values.append(_table(walker, source, state))
        elif kind == "word" and len(words) > 1:
            summed = False
        else:
            values.append(_value(walker, source, state))
    out = concat(values)
    return out if summed else Val(HOLE, out.taint, out.origin)


def _term(walker: Walker, source: str, value: Val, state: State, span: tuple[int, int]) -> Val:
    """`[IO.File]::Delete('x')`, `$x.Method(…)`, a string."""
    lowered = source.lower()
    call = Call(walker, "powershell", [], state, None, {}, span, "")
    at = source.find("(")
    inner = source[at + 1 : matching(source, at)].strip() if at >= 0 else ""
    first = EMPTY
    if inner.startswith(("(", "$(", "[")) or inner[:1].isalpha():
        first = walk(walker, inner, state)
    elif inner:
        first = _value(walker, inner.split(",")[0].strip(), state)
    if "]::" in source:
        method = lowered.partition("::")[2].partition("(")[0]
        if "file]" in lowered or "directory]" in lowered:
            if method == "delete":
                call.change(
                    "delete", path_of(first.text), {"inline"} | ({"recursive", "force"} if "true" in lowered else set())
                )
            elif method.startswith(("write", "append", "create")):
                call.change("write", path_of(first.text), ("inline",))
            elif method.startswith("read"):
                return call.read(Val(path_of(first.text), first.taint))
        elif method == "frombase64string":
            text = base64_text(first.text)
            return Val(text if text is not None else HOLE, first.taint | {"decoded"}, "base64")
        elif method == "getstring" and "frombase64string" in lowered:
            text = base64_text(_value(walker, source.rpartition("(")[2].rstrip(")"), state).text)
            return Val(text if text is not None else HOLE, frozenset(("decoded",)), "base64")
        elif method == "create" and "scriptblock" in lowered:
            return run_code(call, first) if ".invoke" in lowered or lowered.endswith(")()") else first
        elif method == "start" and "process" in lowered:
            return call.run([first], "powershell")
        return UNKNOWN
    if ".downloadstring(" in lowered:
        from guardhook.analysis.programs.network import connect

        connect(call, first, [])
        return Val(HOLE, frozenset(("network",)), first.shown)
    if ".invoke(" in lowered or ".invokescript(" in lowered:
        return run_code(call, first if first.text else value)
    return value


def _command(
    walker: Walker, name: Val, args: list[Item], state: State, stdin: Val | None, span: tuple[int, int]
) -> Val:
    lowered = name.text.lower().rpartition("\\")[2]
    # `curl.exe` is the program, `curl` a cmdlet.
    cmdlet = lowered.removesuffix(".exe") if lowered.endswith(".exe") else _ALIASES.get(lowered, lowered)
    handler = CMDLETS.get(cmdlet)
    call = Call(walker, cmdlet, [a.value for a in args], state, stdin, {}, span, "")
    for item in args:
        if item.kind == "block" and cmdlet not in ("invoke-command", "start-job"):
            state.vars["ps:_"] = stdin if stdin is not None else UNKNOWN
            walk(walker, item.block, state)
    if handler is None:
        from guardhook.analysis.command import run

        words = [
            Val(path_of(name.text) if "\\" in name.text else name.text, name.taint, name.origin, name.raw),
            *(a.value for a in args),
        ]
        return run(walker, words, state, stdin, {}, span)
    call.emit("run")
    return handler(call, Arguments(args))
