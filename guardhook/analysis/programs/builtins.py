"""Builtins of the shell: what changes its state, and what only prints."""

from __future__ import annotations

from guardhook.analysis.call import Call, joined, options
from guardhook.analysis.expand import unescape
from guardhook.analysis.lexer import NAME
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# What `command -v` prints for a known name is a path to it; anything below /bin does.
_FOUND = "/usr/bin/"


def _nothing(call: Call) -> Val:
    return EMPTY


def change_directory(call: Call) -> Val:
    """`cd`: from here on relative paths start elsewhere."""
    state = call.state
    before = call.walker.cwd(state)
    rest = [a for a in call.args if a.text not in ("-P", "-L", "-e", "-@", "--", "-LP", "-PL")]
    if not rest:
        state.cwd = call.walker.home_of(state)
    elif rest[0].text == "-":
        state.cwd = state.old
    else:
        state.cwd = _target(call, rest[0])
    state.old = before
    return EMPTY


def _target(call: Call, value: Val) -> str | None:
    text = value.text
    if HOLE in text:
        stripped = text.replace(HOLE, "")
        if text.startswith(HOLE) or not stripped:
            return None
    if call.walker.inside == "container" and HOLE not in text:
        # Its own folders: what is mounted there is seen when something is done to it.
        from guardhook.analysis.paths import normalise

        here = call.walker.cwd(call.state) or "/"
        return normalise(text if text.startswith("/") else here + "/" + text)
    place = call.walker.place(value, call.state)
    if place.text.startswith("/"):
        return place.text
    return None


def _pushd(call: Call) -> Val:
    state = call.state
    rest = [a for a in call.args if not a.text.startswith(("-", "+")) or a.text == "-"]
    here = call.walker.cwd(state)
    if rest:
        state.stack.append(here)
        state.cwd = _target(call, rest[0])
    elif state.stack:
        state.cwd, state.stack[-1] = state.stack[-1], here
    state.old = here
    return EMPTY


def _popd(call: Call) -> Val:
    state = call.state
    state.old = call.walker.cwd(state)
    state.cwd = state.stack.pop() if state.stack else state.cwd
    return EMPTY


def _declare(call: Call) -> Val:
    state = call.state
    if call.name in ("export", "declare", "typeset") and all(a.text in ("-p", "-x", "-px", "-xp") for a in call.args):
        return Val(HOLE, frozenset(("environment",)), "the environment")
    if call.name != "export" and any(a.text[:1] == "-" and "n" in a.text for a in call.args):
        # What stands behind the name is looked up when it is used.
        names = [a.text.partition("=") for a in call.args if not a.text.startswith(("-", "+"))]
        state.refs = {**state.refs, **{name: text for name, _, text in names if name.isidentifier()}}
        return EMPTY
    for value in call.args:
        name, equals, text = value.text.partition("=")
        if equals and name.rstrip("+").isidentifier():
            state.vars[name.rstrip("+")] = Val(text, value.taint, value.origin)
            call.env[name.rstrip("+")] = state.vars[name.rstrip("+")]  # type: ignore[assignment]
            if name.startswith("PS") and len(name) == 3:
                call.walker.prompt(name, Val(text, value.taint, value.origin), state, call.span)
    if call.env:
        from guardhook.analysis import guard

        guard.environment(call)
    return EMPTY


def _alias(call: Call) -> Val:
    for value in call.args:
        name, equals, text = value.text.partition("=")
        if equals:
            call.state.aliases = {**call.state.aliases, name: source(text)}
    return EMPTY


def _hash(call: Call) -> Val:
    """`hash -p /bin/rm name`: from here on the name runs that program."""
    args = call.texts()
    if len(args) > 2 and args[0] == "-p":
        call.state.aliases = {**call.state.aliases, **dict.fromkeys(args[2:], source(args[1]))}
        return EMPTY
    return _which(call)


def _unalias(call: Call) -> Val:
    gone = set(call.texts())
    call.state.aliases = {} if "-a" in gone else {k: v for k, v in call.state.aliases.items() if k not in gone}
    return EMPTY


def _unset(call: Call) -> Val:
    for text in call.texts():
        if text.isidentifier():
            call.state.vars[text] = EMPTY
            if text in call.state.functions:
                call.state.functions = {k: v for k, v in call.state.functions.items() if k != text}
            if text.startswith(("HIST",)):
                call.emit("process", ("history",), detail="shell history")
    return EMPTY


def _set(call: Call) -> Val:
    args = call.args
    for index, value in enumerate(args):
        if value.text == "--":
            call.state.arguments = args[index + 1 :]
            return EMPTY
        if not value.text.startswith(("-", "+")):
            call.state.arguments = args[index:]
            return EMPTY
        if value.text in ("-o", "+o"):
            return EMPTY
    return EMPTY


def _shift(call: Call) -> Val:
    count = int(call.args[0].text) if call.args and call.args[0].text.isdecimal() else 1
    call.state.arguments = call.state.arguments[count:]
    return EMPTY


def _read(call: Call) -> Val:
    opts = options(call.args, short="adinNptu")
    names = [v.text for v in opts.rest if v.text.replace("_", "a").isalnum()] or ["REPLY"]
    walker = call.walker
    number = opts.value("-u")
    if number is not None:
        stream = call.state.vars.get("fd:" + number.text)
        text = stream.text.strip("\n") if isinstance(stream, Val) else HOLE
        # Which of several lines it is isn't followed.
        line = Val(
            HOLE if "\n" in text else text, *(() if not isinstance(stream, Val) else (stream.taint, stream.origin))
        )
    elif call.stdin is not None and not (walker.readers and walker.readers[-1].value is call.stdin):
        line = Val(call.stdin.text.split("\n", 1)[0], call.stdin.taint, call.stdin.origin)
    elif walker.readers:
        line = walker.readers[-1].line()
    else:
        line = UNKNOWN
    array = opts.value("-a")
    ifs = call.env.get("IFS")
    separators = ifs.text if isinstance(ifs, Val) else None
    if separators:
        pieces = line.text
        for char in separators:
            pieces = pieces.replace(char, "\n")
        words = pieces.split("\n")
    else:
        words = line.text.split() if separators is None else [line.text]
    if array is not None:
        call.state.vars[array.text] = [Val(w, line.taint, line.origin) for w in words]
        return EMPTY
    for index, name in enumerate(names):
        if HOLE in line.text and len(names) > 1:
            text = HOLE
        elif index + 1 == len(names):
            text = " ".join(words[index:]) if len(names) > 1 or separators is None else line.text
        else:
            text = words[index] if index < len(words) else ""
        call.state.vars[name] = Val(text, line.taint, line.origin)
    return EMPTY


def _mapfile(call: Call) -> Val:
    opts = options(call.args, short="dnOsucC")
    name = opts.rest[0].text if opts.rest else "MAPFILE"
    value = call.input if call.stdin is not None else UNKNOWN
    lines = value.text.rstrip("\n").split("\n") if value.text else []
    call.state.vars[name] = [Val(line, value.taint, value.origin) for line in lines[:256]]
    return EMPTY


def _echo(call: Call) -> Val:
    args = call.args
    escapes = False
    newline = True
    start = 0
    for start, value in enumerate(args):  # noqa: B007
        text = value.text
        if len(text) < 2 or text[0] != "-" or text[1:].strip("neE"):
            break
        escapes = escapes or "e" in text
        newline = newline and "n" not in text
    else:
        start = len(args)
    out = joined(args[start:])
    text = unescape(out.text) if escapes else out.text
    return Val(text + ("\n" if newline else ""), _echoed(out), out.origin)


def _echoed(value: Val) -> frozenset[str]:
    """The taint of a text that is printed: a credential among it is noted when the text reaches nobody else."""
    return value.taint | {"echoed"} if "env-secret" in value.taint else value.taint


def _printf(call: Call) -> Val:
    args = list(call.args)
    target = ""
    if len(args) >= 2 and args[0].text == "-v":
        target = args[1].text
        args = args[2:]
    if args and args[0].text == "--":
        args = args[1:]
    if not args:
        return EMPTY
    out = joined(args)
    value = Val(format_text(args[0].text, [a.text for a in args[1:]]), _echoed(out), out.origin)
    if target:
        call.state.vars[target] = value
        return EMPTY
    return value


def format_text(template: str, args: list[str]) -> str:
    """What `printf` prints: `%s %b %q %d %x %c %%`, the format used again while arguments are left."""
    template = unescape(template)
    if "%" not in template:
        return template
    out: list[str] = []
    rounds = 0
    while rounds == 0 or (args and rounds < 64):
        rounds += 1
        used = False
        i = 0
        while i < len(template):
            c = template[i]
            if c != "%":
                j = template.find("%", i)
                j = len(template) if j < 0 else j
                out.append(template[i:j])
                i = j
                continue
            j = i + 1
            while j < len(template) and template[j] in "-+ #0123456789.*":
                j += 1
            kind = template[j : j + 1]
            i = j + 1
            if kind == "%":
                out.append("%")
                continue
            if kind == "(":
                return HOLE
            used = True
            argument = args.pop(0) if args else ""
            out.append(_formatted(kind, argument))
        if not used:
            break
    return "".join(out)


def _formatted(kind: str, argument: str) -> str:
    if kind == "b":
        return unescape(argument)
    if kind == "c":
        return argument[:1]
    if kind in "dixXou" and kind:
        try:
            number = int(argument or "0", 0)
        except ValueError:
            return HOLE
        return {"x": f"{number:x}", "X": f"{number:X}", "o": f"{number:o}"}.get(kind, str(number))
    return argument


def _pwd(call: Call) -> Val:
    return Val(call.walker.cwd(call.state) or HOLE)


def _eval(call: Call) -> Val:
    args = call.args[1:] if call.args and call.args[0].text == "--" else call.args
    return call.code(joined(args), "eval")


def _source(call: Call) -> Val:
    if not call.args:
        return EMPTY
    from guardhook.analysis.programs.shells import shell_file

    path = call.args[0]
    arguments = call.state.arguments
    if len(call.args) > 1:
        call.state.arguments = call.args[1:]
    out = shell_file(call, path)
    call.state.arguments = arguments
    if out is None:
        if HOLE in path.text:
            call.walker.note_origin(path, call.span, "source")
        return call.result()
    return out


TRAPS = 64


def _trap(call: Call) -> Val:
    args = [a for a in call.args if a.text not in ("--", "-p", "-l")]
    if len(args) > 1 and args[0].text not in ("-", ""):
        traps = call.walker.traps
        if len(traps) < TRAPS:
            # It runs later, with the values that its variables have by then.
            traps.append((args[0], call.state, call.span, (*call.walker.via, "trap")))
        else:
            call.code(args[0], "trap", state=call.state.fork())
    return EMPTY


def _exec(call: Call) -> Val:
    args = list(call.args)
    while args and args[0].text.startswith("-"):
        text = args.pop(0).text
        if text.endswith("a") and args:
            args.pop(0)
    if not args:
        return EMPTY
    return call.run(args, "exec", env=dict(call.env))


def _command(call: Call) -> Val:
    args = list(call.args)
    look = False
    while args and args[0].text.startswith("-") and len(args[0].text) > 1:
        look = look or "v" in args[0].text.lower()
        if args.pop(0).text == "--":
            break
    if look:
        return _which_names(args)
    return call.run(args, call.name) if args else EMPTY


def _which_names(args: list[Val]) -> Val:
    names = [a for a in args if not a.text.startswith("-")]
    if not names:
        return EMPTY
    out = joined(names)
    return Val("\n".join(n.text if "/" in n.text else _FOUND + n.text for n in names) + "\n", out.taint, out.origin)


def _which(call: Call) -> Val:
    if call.name in ("type", "hash", "whereis"):
        if any(a.text in ("-p", "-P", "-t") for a in call.args):
            return _which_names(call.args)
        return UNKNOWN if call.name == "whereis" else EMPTY
    return _which_names(call.args)


def _test(call: Call) -> Val:
    return EMPTY


def _let(call: Call) -> Val:
    for value in call.args:
        name, equals, _ = value.text.partition("=")
        name = name.rstrip("+-*/%")
        if equals and name and all(c in NAME for c in name):
            call.state.vars[name] = UNKNOWN
    return EMPTY


def _printenv(call: Call) -> Val:
    names = [a.text for a in call.args if not a.text.startswith("-")]
    if not names:
        call.emit("read", ("environment",), detail="all environment variables")
        return Val(HOLE, frozenset(("environment",)), "the environment")
    from guardhook.analysis.expand import parameter

    values = [v for n in names if n.isidentifier() for v in parameter(call.walker, n, "", None, call.state)]
    if any("env-secret" in v.taint for v in values):
        call.emit("read", ("environment", "secret-variable"), detail="$" + names[0])
    return joined(values) if values else UNKNOWN


def _getopts(call: Call) -> Val:
    if len(call.args) > 1:
        call.state.vars[call.args[1].text] = UNKNOWN
        call.state.vars["OPTARG"] = UNKNOWN
    return EMPTY


def _ztcp(call: Call) -> Val:
    """zsh's own connections."""
    hosts = [a for a in call.args if not a.text.startswith("-")]
    if hosts and not any(a.text.startswith("-c") for a in call.args):
        flags = ("raw", "listen") if any(a.text.startswith("-l") for a in call.args) else ("raw", "upload")
        call.emit("connect", flags, program="/dev/tcp", host=hosts[0].text.replace(HOLE, "…"))
    return EMPTY


HANDLERS: dict[str, Handler] = {
    ":": _nothing, "true": _nothing, "false": _nothing, "exit": _nothing, "return": _nothing, "logout": _nothing, "wait": _nothing, "ulimit": _nothing,
    "umask": _nothing, "dirs": _nothing, "shopt": _nothing, "setopt": _nothing, "test": _test, "[": _test,
    "cd": change_directory, "chdir": change_directory, "pushd": _pushd, "popd": _popd, "pwd": _pwd,
    "export": _declare, "declare": _declare, "local": _declare, "readonly": _declare, "typeset": _declare,
    "alias": _alias, "unalias": _unalias, "unset": _unset, "set": _set, "shift": _shift,
    "read": _read, "mapfile": _mapfile, "readarray": _mapfile, "echo": _echo, "printf": _printf,
    "eval": _eval, "source": _source, ".": _source, "trap": _trap, "exec": _exec, "command": _command, "builtin": _command,
    "which": _which, "where": _which, "whence": _which, "type": _which, "hash": _hash, "whereis": _which,
    "let": _let, "ztcp": _ztcp, "getopts": _getopts, "printenv": _printenv,
}  # fmt: skip
