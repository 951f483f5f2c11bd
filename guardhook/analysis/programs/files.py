"""Programs that make, change, move and delete files."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE, STAR
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

_RM_LONG = (
    "--force",
    "--recursive",
    "--no-preserve-root",
    "--preserve-root",
    "--interactive",
    "--one-file-system",
    "--dir",
    "--verbose",
)


def _rm(call: Call) -> Val:
    opts = options(call.args, known=_RM_LONG)
    flags: set[str] = set()
    if opts.has("-r", "-R", "--recursive"):
        flags.add("recursive")
    if opts.has("-f", "--force"):
        flags.add("force")
    if opts.has("--no-preserve-root"):
        flags.add("no-preserve-root")
    if opts.has("-i", "-I", "--interactive"):
        flags.add("interactive")
    for value in opts.rest:
        call.change("delete", value, flags)
    return EMPTY


def _rmdir(call: Call) -> Val:
    opts = options(call.args)
    for value in opts.rest:
        call.change("delete", value, ("empty-only",))
    return EMPTY


def _shred(call: Call) -> Val:
    opts = options(call.args, short="nsl", long=("--iterations", "--size", "--length"))
    for value in opts.rest:
        call.change(
            "delete",
            value,
            {"force", "overwrite"} | ({"recursive"} if opts.has("-r") and call.name != "shred" else set()),
        )
    return EMPTY


def _trash(call: Call) -> Val:
    for value in options(call.args).rest:
        call.change("delete", value, ("trash",))
    return EMPTY


def _rimraf(call: Call) -> Val:
    for value in options(call.args).rest:
        call.change("delete", value, ("recursive", "force"))
    return EMPTY


def _truncate(call: Call) -> Val:
    opts = options(call.args, short="sr", long=("--size", "--reference"))
    size = opts.value("-s", "--size")
    grows = size is not None and size.text[:1] in "+>"
    for value in opts.rest:
        call.change("write", value, () if grows else ("truncate",))
    return EMPTY


def _copy(call: Call) -> Val:
    moving = call.name in ("mv", "gmv", "move")
    opts = options(
        call.args, short="tSmog", long=("--target-directory", "--suffix", "--mode", "--owner", "--group", "--backup")
    )
    operands = list(opts.rest)
    target = opts.value("-t", "--target-directory")
    if call.name in ("install", "ginstall") and opts.has("-d", "--directory"):
        for value in operands:
            call.change("write", value, ("mkdir",))
        return EMPTY
    if target is None:
        if len(operands) < 2:
            if moving and operands:
                call.change("move", operands[0])
            return EMPTY
        target = operands.pop()
    into = len(operands) > 1 or opts.has("-t", "--target-directory") or target.text.endswith("/")
    walker = call.walker
    recursive = opts.has("-r", "-R", "-a", "--recursive", "--archive") or call.name == "ditto"
    if moving and target.text in ("/dev/null", "NUL"):
        for value in operands:
            call.change("move", value, ("force",))
            call.change("delete", value, ("recursive", "force"))
        return EMPTY
    for value in operands:
        content = _taken(call, value, moving, recursive)
        name = value.text.rstrip("/").rpartition("/")[2]
        where = Val(target.text.rstrip("/") + "/" + name, target.taint, raw=target.raw) if into and name else target
        more = {"force"} if opts.has("-f", "--force") else set()
        if opts.has("-n", "--no-clobber"):
            more.add("no-clobber")
        if recursive:
            more.add("recursive")
        place = call.change("write", where, {*more, call.name})
        walker.files[place.text] = content
        if not into:
            inside = walker.facts.is_dir(place.text) if _definite(place.text) else None
            if inside or (
                (inside is None and place.text in (walker.home, "/tmp", "/")) or target.text in (".", "..", "~", "./")
            ):
                place = call.change("write", Val(place.text + "/" + name), {*more, call.name})
                walker.files[place.text] = content
        if value.text.startswith("/dev/null") and not moving:
            call.change("write", where, {"truncate"})
    return EMPTY


def _definite(text: str) -> bool:
    return HOLE not in text and STAR not in text


def _taken(call: Call, value: Val, moving: bool, recursive: bool) -> Val:
    """The source of a copy or move: its effect, and what it holds."""
    walker = call.walker
    if moving:
        place = call.change("move", value)
        known = walker.files.pop(place.text, None)
        return (
            known
            if known is not None
            else Val(
                HOLE, frozenset(("secret",)) if "secret" in place.classes else frozenset(), f"content of {place.path}"
            )
        )
    return call.read(value, ("recursive", "copy") if recursive else ("copy",))


def _ln(call: Call) -> Val:
    opts = options(call.args, short="tS", long=("--target-directory", "--suffix"))
    operands = list(opts.rest)
    target = opts.value("-t", "--target-directory")
    if target is None:
        target = (
            operands.pop()
            if len(operands) > 1
            else Val(operands[0].text.rstrip("/").rpartition("/")[2] if operands else "")
        )
    more = {"link"} | ({"force"} if opts.has("-f", "--force") else set())
    if operands and target.text:
        source = call.place(operands[0])
        place = call.change("write", target, more)
        if source.classes & {"secret", "guard", "system", "root"}:
            call.emit("write", {"link-to", *source.flags}, path=source.path, path_classes=source.classes)
        known = call.walker.files.get(source.text)
        call.walker.files[place.text] = (
            known
            if known is not None
            else Val(
                HOLE, frozenset(("secret",)) if "secret" in source.classes else frozenset(), f"content of {source.path}"
            )
        )
    return EMPTY


def _chmod(call: Call) -> Val:
    args = list(call.args)
    opts = options([a for a in args if not _mode_like(a.text)], long=("--reference",))
    modes = [a.text for a in args if _mode_like(a.text)]
    operands = list(opts.rest)
    if not modes and operands and opts.value("--reference") is None:
        modes = [operands.pop(0).text]
    mode = modes[0] if modes else ""
    flags = mode_flags(mode)
    if opts.has("-R", "--recursive"):
        flags.add("recursive")
    for value in operands:
        place = call.change("chmod", value, flags)
        if "setuid" in flags:
            call.emit(
                "privilege",
                ("setuid",),
                path=place.path,
                path_classes=place.classes,
                detail=f"set-user-id on {place.path}",
            )
    return EMPTY


def _mode_like(text: str) -> bool:
    if text.startswith("-") and len(text) > 1 and set(text[1:]) <= set("rwxXst"):
        return text not in ("-R",)
    return False


def mode_flags(mode: str) -> set[str]:
    """What a mode of chmod grants: world-writable, 777, no-access, setuid, not-executable, not-writable."""
    flags: set[str] = set()
    if mode.isdecimal():
        bits = mode[-4:].rjust(4, "0")
        if bits[3] in "2367":
            flags.add("world-writable")
        if bits[1:] == "777":
            flags.add("777")
        if bits[1:] == "000":
            flags.add("no-access")
        if int(bits[0], 8) & 6 if bits[0] in "01234567" else False:
            flags.add("setuid")
        if not any(b in "1357" for b in bits[1:]):
            flags.add("not-executable")
        return flags
    for clause in mode.split(","):
        for sign in "+=-":
            who, found, what = clause.partition(sign)
            if not found:
                continue
            if sign != "-":
                if "w" in what and ("o" in who or "a" in who or not who):
                    if "o" in who or "a" in who:
                        flags.add("world-writable")
                    if {"r", "w", "x"} <= set(what) and ("a" in who or not who):
                        flags.add("777")
                if "s" in what:
                    flags.add("setuid")
                if sign == "=" and not what and who in ("", "a", "ugo"):
                    flags.add("no-access")
            else:
                if "x" in what:
                    flags.add("not-executable")
                if {"r", "w", "x"} <= set(what):
                    flags.add("no-access")
                if "w" in what:
                    flags.add("not-writable")
            break
    return flags


def _chown(call: Call) -> Val:
    opts = options(call.args, long=("--reference", "--from"))
    operands = list(opts.rest)
    owner = ""
    if opts.value("--reference") is None and operands:
        owner = operands.pop(0).text
    flags = {"recursive"} if opts.has("-R", "--recursive") else set()
    if owner.split(":")[0] in ("root", "0"):
        flags.add("to-root")
    for value in operands:
        call.change("chown" if call.name != "setfacl" else "chmod", value, flags)
    return EMPTY


def _chattr(call: Call) -> Val:
    operands = [a for a in call.args if not a.text.startswith(("+", "-", "="))]
    flags = {a.text for a in call.args if a.text.startswith(("+", "-")) and len(a.text) < 6}
    for value in operands if call.name == "chattr" else operands[1:]:
        call.change("chmod", value, {"attributes"} | ({"immutable"} if any("i" in f for f in flags) else set()))
    return EMPTY


def _tee(call: Call) -> Val:
    opts = options(call.args)
    out = call.input if call.stdin is not None else UNKNOWN
    for value in opts.rest:
        if value.text in call.walker.pipes:
            call.walker.pour(value.text, out)
            continue
        more = ("append",) if opts.has("-a", "--append") else ("truncate",)
        place = call.change("write", value, more)
        call.walker.pour(place.text, out, opts.has("-a", "--append"))
    return out


def _dd(call: Call) -> Val:
    source: Val | None = call.stdin
    for value in call.args:
        key, equals, text = value.text.partition("=")
        if not equals:
            continue
        path = Val(text, value.taint, value.origin, value.raw)
        if key == "if":
            source = call.read(path)
            if text in ("/dev/zero", "/dev/random", "/dev/urandom"):
                source = Val(HOLE)
        elif key == "of":
            nothing = any(a.text == "if=/dev/null" for a in call.args)
            place = call.change("write", path, ("dd", "truncate", "empty") if nothing else ("dd", "truncate"))
            call.walker.files[place.text] = source if source is not None else UNKNOWN
            return EMPTY
    return source if source is not None else UNKNOWN


def _touch(call: Call) -> Val:
    opts = options(call.args, short="drt", long=("--date", "--reference", "--time"))
    for value in opts.rest:
        call.change("write", value, ("touch", "append"))
    return EMPTY


def _mkdir(call: Call) -> Val:
    opts = options(call.args, short="mZ", long=("--mode",))
    for value in opts.rest:
        call.change("write", value, ("mkdir", "append"))
    return EMPTY


def _mktemp(call: Call) -> Val:
    return Val("/tmp/tmp." + HOLE + "x")


def _gio(call: Call) -> Val:
    if call.args and call.args[0].text in ("trash", "remove"):
        for value in options(call.args[1:]).rest:
            call.change("delete", value, ("trash",) if call.args[0].text == "trash" else ("force",))
    return UNKNOWN


def _windows_delete(call: Call) -> Val:
    switches = {a.text.lower() for a in call.args if a.text.startswith("/") and len(a.text) <= 3}
    for value in call.args:
        if value.text.lower() not in switches:
            text = value.text.replace("\\", "/")
            if len(text) > 1 and text[1] == ":":
                text = text[2:] or "/"
            call.change("delete", Val(text), {"recursive"} if "/s" in switches else set())
    return EMPTY


def _none(call: Call) -> Val:
    return call.result()


def _split_prefix(call: Call) -> Val:
    for value in options(call.args, short="bnlCa").rest[:1]:
        return call.read(value)
    return unknown(call.input)


HANDLERS: dict[str, Handler] = {
    "": _none, "rm": _rm, "grm": _rm, "srm": _shred, "safe-rm": _rm, "unlink": _rm, "rmdir": _rmdir, "shred": _shred, "wipe": _shred, "trash": _trash, "trash-put": _trash, "rimraf": _rimraf,
    "del-cli": _rimraf, "truncate": _truncate, "cp": _copy, "gcp": _copy, "mv": _copy, "gmv": _copy, "install": _copy, "ditto": _copy, "copy": _copy, "move": _copy, "ln": _ln, "link": _ln,
    "chmod": _chmod, "chown": _chown, "chgrp": _chown, "setfacl": _chown, "chattr": _chattr, "chflags": _chattr, "tee": _tee, "sponge": _tee, "dd": _dd, "touch": _touch, "mkdir": _mkdir,
    "mktemp": _mktemp, "split": _split_prefix, "csplit": _split_prefix, "gio": _gio, "rd": _windows_delete, "del": _windows_delete,
    "erase": _windows_delete, "fallocate": _truncate,
}  # fmt: skip
