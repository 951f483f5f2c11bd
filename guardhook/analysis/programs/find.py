"""Programs that search files and do something with what they find."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import STAR
from guardhook.analysis.values import EMPTY, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

_FIND_VALUED = frozenset((
    "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type", "-xtype", "-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer",
    "-anewer", "-cnewer", "-user", "-group", "-uid", "-gid", "-perm", "-maxdepth", "-mindepth", "-fstype", "-links", "-inum", "-samefile", "-lname", "-ilname", "-newermt",
    "-printf", "-regextype", "-context", "-used", "-D",
))  # fmt: skip


_NARROWING = frozenset((
    "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-mtime", "-atime", "-ctime", "-mmin", "-newer", "-newermt", "-size", "-empty", "-user", "-samefile",
    "-inum", "-perm", "-lname", "-amin", "-cmin", "-group",
))  # fmt: skip


def _find(call: Call) -> Val:
    args = call.args
    index = 0
    while (index < len(args) and args[index].text in ("-H", "-L", "-P")) or (
        index < len(args) and args[index].text.startswith(("-O", "-D"))
    ):
        index += 1
    roots: list[Val] = []
    while index < len(args) and not args[index].text.startswith(("-", "(", "!", ")")):
        roots.append(args[index])
        index += 1
    roots = roots or [Val(".")]
    expression = args[index:]
    names = [
        expression[i + 1].text
        for i, a in enumerate(expression[:-1])
        if a.text in ("-name", "-iname", "-path", "-ipath", "-wholename")
    ]
    negated = any(a.text in ("!", "-not") for a in expression)
    narrowed = any(a.text in _NARROWING for a in expression) and (not names or any(n.strip("*./") for n in names))
    # Links, pipes and sockets are no content.
    kinds = [expression[i + 1].text for i, a in enumerate(expression[:-1]) if a.text in ("-type", "-xtype")]
    narrowed = narrowed or bool(kinds and set(",".join(kinds).split(",")) <= {"l", "p", "s"})
    found = _found_values(roots, names, narrowed and not negated)
    output: Val = Val("\n".join(v.text for v in found) + "\n", frozenset(("listing",)))
    _find_actions(call, expression, found, narrowed, roots)
    return output


def _found_values(roots: list[Val], names: list[str], narrowed: bool) -> list[Val]:
    """What `find` hands on, as paths with globs: `root/*` for anything, `root/*/name` for one name."""
    out: list[Val] = []
    for root in roots[:8]:
        base = root.text.rstrip("/")
        if narrowed and len(names) >= 1:
            for name in names[:8]:
                last = name.rpartition("/")[2] or name
                pattern = last.replace("*", STAR)
                out.append(Val(f"{base}/{pattern}", root.taint, root.origin, root.raw))
                out.append(Val(f"{base}/{STAR}/{pattern}", root.taint, root.origin, root.raw))
        elif narrowed:
            out.append(Val(f"{base}/{STAR}x", root.taint, root.origin, root.raw))
        else:
            out.append(Val(f"{base}/{STAR}" if base or root.text == "/" else STAR, root.taint, root.origin, root.raw))
    return out


def _find_actions(call: Call, expression: list[Val], found: list[Val], narrowed: bool, roots: list[Val]) -> None:
    index = 0
    while index < len(expression):
        text = expression[index].text
        index += 1
        if text == "-delete":
            for value in found:
                call.change("delete", value, {"recursive", "find"} | ({"filtered"} if narrowed else set()))
        elif text in ("-exec", "-execdir", "-ok", "-okdir"):
            words: list[Val] = []
            while index < len(expression) and expression[index].text not in (";", "+"):
                words.append(expression[index])
                index += 1
            index += 1
            if words:
                for value in found:
                    _find_exec(call, text, words, value, narrowed, roots)
        elif text in ("-fprint", "-fprint0", "-fls") and index < len(expression):
            call.change("write", expression[index], ("truncate",))
            index += 1
        elif text == "-fprintf" and index + 1 < len(expression):
            call.change("write", expression[index], ("truncate",))
            index += 2
        elif text in _FIND_VALUED:
            index += 1


def _find_exec(call: Call, how: str, words: list[Val], found: Val, narrowed: bool, roots: list[Val]) -> None:
    filled = [Val(w.text.replace("{}", found.text), w.taint, w.origin, w.raw) if "{}" in w.text else w for w in words]
    before = len(call.walker.effects)
    call.run(filled, "find")
    if narrowed:
        for effect in call.walker.effects[before:]:
            if effect.kind in ("delete", "chmod", "chown", "write", "move"):
                effect.flags |= {"filtered"}
    else:
        for effect in call.walker.effects[before:]:
            if effect.kind == "delete":
                effect.flags |= {"recursive"}  # file by file, and all of them in the end
    for effect in call.walker.effects[before:]:
        effect.flags |= {"find"} if effect.kind != "run" else frozenset()


def _fd(call: Call) -> Val:
    texts = call.texts()
    for mark in ("-x", "--exec", "-X", "--exec-batch"):
        if mark in texts:
            at = texts.index(mark)
            words = call.args[at + 1 :]
            if words:
                operands = options(
                    call.args[:at],
                    short="eEtdSoc",
                    long=("--extension", "--exclude", "--type", "--max-depth", "--size", "--base-directory"),
                ).rest
                root = operands[1].text if len(operands) > 1 else "."
                base = Val(
                    f"{root.rstrip('/')}/{STAR}"
                    if not operands or operands[0].text in ("", ".", ".*")
                    else f"{root.rstrip('/')}/{STAR}/x" + STAR
                )
                filled = [Val(w.text.replace("{}", base.text), w.taint) if "{" in w.text else w for w in words]
                if not any("{" in w.text for w in words):
                    filled.append(base)
                call.run(filled, "fd", stdin=EMPTY)
    return Val(f".{'/'}{STAR}/x", frozenset(("listing",)))


HANDLERS: dict[str, Handler] = {"": _find, "find": _find, "fd": _fd, "fdfind": _fd}
