"""Shells: `-c`, scripts, standard input, and sessions that take input no hook sees."""

from __future__ import annotations

from guardhook.analysis.call import Call, joined
from guardhook.analysis.command import script
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

_VALUED = frozenset(("-o", "+o", "-O", "+O", "--rcfile", "--init-file", "--command", "-C"))


def _shell(call: Call) -> Val:
    args = call.args
    index = 0
    command = False
    from_stdin = False
    interactive = False
    while index < len(args):
        text = args[index].text
        if text in ("--", "-"):
            index += 1
            break
        if text == "--command" or text.startswith("--command="):
            command = True
            index += 1
            if "=" in text:
                return _run_code(call, Val(text.partition("=")[2]), args[index:])
            break
        if not text.startswith(("-", "+")) or text == "+":
            break
        if text.startswith("--"):
            if text in ("--rcfile", "--init-file") and index + 1 < len(args):
                shell_file(call, args[index + 1])
                index += 1
            interactive = interactive or text == "--interactive"
            if text in ("--version", "--help"):
                return UNKNOWN
            index += 1
            continue
        command = command or ("c" in text[1:] and text[0] == "-")
        from_stdin = from_stdin or "s" in text[1:]
        interactive = interactive or "i" in text[1:]
        index += 1
        if text in _VALUED or (text[-1:] in "oO" and len(text) > 1):
            index += 1
    rest = args[index:]
    if call.network:
        call.emit("run_fetched", ("network-shell",), detail=f"a shell on a connection to {call.network}")
    if command and rest:
        return _run_code(call, rest[0], rest[1:])
    if rest and not from_stdin:
        path = rest[0]
        if path.text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
            return _run_stdin(call, rest[1:], interactive)
        return run_file(call, path, rest[1:])
    return _run_stdin(call, rest, interactive)


def _run_code(call: Call, code: Val, rest: list[Val]) -> Val:
    inner = call.state.fork()
    inner.name = rest[0].text if rest else call.name
    inner.arguments = rest[1:]
    inner.aliases = {}
    return call.code(code, "inline", state=inner)


def _run_stdin(call: Call, rest: list[Val], interactive: bool) -> Val:
    if call.stdin is None:
        if not call.network:
            call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
        return UNKNOWN
    inner = call.state.fork()
    inner.arguments = rest
    text = on_disk(call, call.stdin)
    if text is not None:
        keep = call.walker.via
        call.walker.via = (*keep, call.name)
        try:
            return call.walker.run_text(text, inner, None, call.span)
        finally:
            call.walker.via = keep
    return call.code(call.stdin, "stdin", state=inner, stdin=None)


def run_file(call: Call, path: Val, args: list[Val]) -> Val:
    """`sh FILE`: by its content where that is known; where it came from in any case."""
    out = script(call, path, args, "sh")
    if out is not None:
        return out
    if HOLE in path.text and not path.text.replace(HOLE, ""):
        call.emit("run_dynamic", ("script",), detail=path.raw or "a script whose name isn't known")
    return call.result()


def on_disk(call: Call, value: Val) -> str | None:
    """The text of a file that is read unchanged from disk into an interpreter; None when the value is anything else."""
    path = value.origin.removeprefix("content of ")
    if value.text != HOLE or value.taint or path == value.origin or call.walker.inside == "container":
        return None
    text = call.walker.facts.read_script(path)
    return text.replace("\0", "") if text is not None else None


def shell_file(call: Call, path: Val) -> Val | None:
    """`source FILE` in the state of the calling shell. None when the content isn't known."""
    walker = call.walker
    place = call.place(path)
    known = walker.files.get(place.text)
    if known is None and place.text in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        known = call.input
    if known is not None:
        return call.code(known, "source")
    mark = walker.facts.marked.get(place.text)
    if mark:
        call.emit("run_fetched" if mark == "network" else "run_decoded", ("source",), detail=place.path)
    if HOLE in place.text or walker.inside == "container" or "secret" in place.classes:
        return None
    text = call.script_text(place.text)
    if text is None or len(walker.via) > 8:
        return None
    keep = walker.via
    walker.via = (*keep, "source")
    try:
        return walker.run_text(text.replace("\0", ""), call.state, call.stdin, call.span)
    finally:
        walker.via = keep


def _powershell(call: Call) -> Val:
    from guardhook.analysis.powershell import program

    return program(call)


def _cmd(call: Call) -> Val:
    """`cmd /c command`: its words are split at blanks, and a backslash is part of a path."""
    at = next((i for i, a in enumerate(call.args) if a.text.lower() in ("/c", "/k", "//c", "//k")), None)
    if at is None:
        if not call.args:
            call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
        return call.result()
    for command in joined(call.args[at + 1 :]).text.replace("&&", "&").replace("||", "&").replace("|", "&").split("&"):
        words = [Val(w.strip('"')) for w in command.split()]
        if words:
            call.run([Val(words[0].text.lower()), *words[1:]], "cmd")
    return call.result()


HANDLERS: dict[str, Handler] = {"": _shell, "pwsh": _powershell, "powershell": _powershell, "cmd": _cmd}
