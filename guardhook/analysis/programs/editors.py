"""Programs that edit files: stream editors, patches, editors given commands."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import EMPTY, Val, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler


def _sed(call: Call) -> Val:
    opts = options(call.args, short="efl", long=("--expression", "--file", "--line-length"))
    scripts = [v.text for v in opts.every("-e", "--expression")]
    operands = list(opts.rest)
    if not scripts and not opts.has("-f", "--file") and operands:
        scripts = [operands.pop(0).text]
    in_place = any(
        a.text.startswith(("-i", "--in-place"))
        or (
            a.text.startswith("-")
            and not a.text.startswith("--")
            and "i" in a.text[1:]
            and set(a.text[1:].split("i")[0]) <= set("nErsuz")
        )
        for a in call.args
    )
    if in_place and operands and operands[0].text == "" and len(operands) > 1:
        operands = operands[1:]  # BSD: sed -i '' script file
        if not opts.every("-e", "--expression"):
            scripts = [operands.pop(0).text] if len(operands) > 1 else scripts
    inputs: list[Val] = []
    for value in operands:
        if in_place:
            call.change("write", value, ("in-place",))
        else:
            inputs.append(call.read(value))
    for value in opts.every("-f", "--file"):
        known = call.input if value.text in ("-", "/dev/stdin") else call.walker.files.get(call.place(value).text)
        text = known.text if known is not None else call.script_text(call.place(value).text, "sed") or ""
        if known is not None:
            call.walker.note_origin(known, call.span, "script")
        _sed_script(call, text)
    for script in scripts:
        _sed_script(call, script)
    if in_place:
        return EMPTY
    source = inputs or ([call.stdin] if call.stdin is not None else [])
    if not operands and call.stdin is not None and call.stdin.known and len(scripts) == 1:
        changed = _sed_substitute(scripts[0], call.stdin.text)
        if changed is not None:
            return Val(changed, call.stdin.taint, call.stdin.origin)
    return unknown(*source)


def _sed_script(call: Call, script: str) -> None:
    """`w file`, `e command`, `s///e` and `s///w file`."""
    for line in script.replace(";", "\n").split("\n"):
        line = line.strip().lstrip("0123456789,$! /")
        if line[:2] in ("w ", "W ") and len(line) > 2:
            call.change("write", Val(line[2:].strip()), ("truncate",))
        elif line[:2] == "e " or line.startswith("1e "):
            call.code(Val(line.partition("e ")[2]), "inline")
        elif line[:1] == "s" and len(line) > 3:
            parts = _sed_parts(line[2:], line[1])
            if len(parts) >= 3:
                modifiers = parts[2]
                if "w" in modifiers and " " in modifiers:
                    call.change("write", Val(modifiers.partition("w")[2].strip()), ("truncate",))
                if "e" in modifiers.split("w")[0]:
                    call.code(Val(parts[1].replace("\\", "")), "inline")
                    if call.stdin is not None:
                        call.code(call.stdin, "inline")  # the rest of the line is run with it


def _sed_parts(text: str, delimiter: str) -> list[str]:
    """What stands between the delimiters that no backslash stands before."""
    parts, i, begin = [], 0, 0
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif text[i] == delimiter:
            parts.append(text[begin:i])
            begin = i + 1
        i += 1
    return [*parts, text[begin:]]


def _sed_substitute(script: str, text: str) -> str | None:
    """`s/a/b/[g]` with plain text in it."""
    if len(script) < 4 or script[0] != "s" or script[1].isalnum():
        return None
    parts = script[2:].split(script[1])
    if len(parts) != 3 or parts[2] not in ("", "g") or any(c in parts[0] for c in ".*[]^$\\+?(){}|"):
        return None
    lines = text.split("\n")
    count = -1 if parts[2] == "g" else 1
    return "\n".join(line.replace(parts[0], parts[1].replace("\\/", "/"), count) for line in lines)


def _patch(call: Call) -> Val:
    opts = options(call.args, short="pdioBbzFrY", long=("--strip", "--directory", "--input", "--output"))
    for value in opts.rest[:1]:
        call.change("write", value, ("in-place",))
    given = opts.value("-i", "--input")
    text = patch_text(call, call.read(given) if given is not None else call.input)
    if not opts.rest and text:
        patched(call, text)
    return EMPTY


def patch_text(call: Call, value: Val) -> str:
    """A patch as it was made in this command, or as it lies on disk."""
    from guardhook.analysis.programs.shells import on_disk

    return on_disk(call, value) or value.text


def patched(call: Call, text: str) -> None:
    """The files that a patch changes."""
    for line in text.split("\n"):
        if line.startswith(("+++ ", "--- ")):
            name = line[4:].split("\t")[0].strip()
            if name not in ("/dev/null", HOLE):
                call.change("write", Val(name[2:] if name.startswith(("a/", "b/")) else name), ("in-place",))


def apply_patch(call: Call) -> Val:
    """The patch format of coding agents: `*** Update File: path` and its relatives."""
    text = call.args[0].text if call.args else call.input.text
    from guardhook.analysis.lower import patch_targets

    for operation, path in patch_targets(text):
        call.change(operation, Val(path), ("patch",))
    return EMPTY


def _editor(call: Call) -> Val:
    # `-es` and `-Es` are no clusters with a value in vi, `-s script` is one in all of them.
    args = [a for a in call.args if a.text not in ("-es", "-Es", "-e", "-E", "-n", "-N")]
    opts = options(args, short="cSuTs", long=("--cmd",))
    if opts.has("-R", "--readonly", "-M") or call.name == "view":
        for value in opts.rest:
            call.read(value)
        return EMPTY
    for value in opts.every("-c", "--cmd"):
        _ex_command(call, value.text)
    for value in opts.every("-S", "-s"):
        for line in (call.script_text(call.place(value).text, "vim") or "").split("\n"):
            _ex_command(call, line)
    for value in call.args:
        if value.text.startswith("+") and len(value.text) > 1:
            _ex_command(call, value.text[1:])
    if call.stdin is not None and call.name in ("ed", "ex", "vim", "vi", "nvim"):
        for line in call.stdin.text.split("\n"):
            _ex_command(call, line)
        for value in opts.rest:
            call.change("write", value, ("in-place",))
    elif opts.rest and (
        opts.has("-c", "-s") or len(args) < len(call.args) or any(a.text.startswith("+") for a in call.args)
    ):
        for value in opts.rest:
            call.change("write", value, ("in-place",))
    elif call.stdin is None:
        for value in opts.rest:
            place = call.place(value)
            if "guard" in place.classes:
                call.change("write", value, ("in-place",))
        call.emit("run", ("interactive", "editor"), detail="an editor")
    return EMPTY


_LISP = {"delete-directory": "delete", "delete-file": "delete", "shell-command": "", "shell-command-to-string": "", "call-process-shell-command": "", "async-shell-command": ""}  # fmt: skip


def _emacs(call: Call) -> Val:
    """`emacs --batch --eval '(shell-command "…")'`."""
    texts = call.texts()
    codes = [texts[i + 1] for i, t in enumerate(texts[:-1]) if t in ("--eval", "-eval", "--execute", "-execute")]
    codes += [t.partition("=")[2] for t in texts if t.startswith(("--eval=", "--execute="))]
    if not codes:
        return _editor(call)
    for code in codes:
        for piece in code.split("(")[1:]:
            name, _, rest = piece.partition(" ")
            string = rest.strip().partition('"')[2].partition('"')[0]
            if name in _LISP and string and rest.strip().startswith('"'):
                if _LISP[name]:
                    call.change("delete", Val(string), ("inline", "recursive", "force"))
                else:
                    call.code(Val(string), "inline")
    return EMPTY


def _ex_command(call: Call, text: str) -> None:
    text = text.strip().lstrip(":")
    if text.startswith("!"):
        call.code(Val(text[1:]), "inline")
    elif text.startswith(("silent !", "sil !", "silent! !")):
        call.code(Val(text.partition("!")[2].lstrip("! ")), "inline")
    elif text.startswith(("w! /", "w /", "w! ~", "w ~", "write ", "saveas ")):
        call.change("write", Val(text.partition(" ")[2].strip()), ("truncate",))
    elif "system(" in text:
        call.code(Val(text.partition("system(")[2].rstrip(")").strip("\"'")), "inline")
    elif "delete(" in text:
        call.change("delete", Val(text.partition("delete(")[2].rstrip(")").split(",")[0].strip("\"'")))


HANDLERS: dict[str, Handler] = {
    "": _editor, "emacs": _emacs, "sed": _sed, "patch": _patch, "apply_patch": apply_patch,
}  # fmt: skip
