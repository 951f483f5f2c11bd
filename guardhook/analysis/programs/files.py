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
            else Val(HOLE, frozenset(("secret",)) if "secret" in place.classes else frozenset(), place.path)
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
            else Val(HOLE, frozenset(("secret",)) if "secret" in source.classes else frozenset(), source.path)
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
            place = call.change("write", path, ("dd", "truncate"))
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


# --- find

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
    call.run(filled, "find", stdin=EMPTY)
    if narrowed:
        for effect in call.walker.effects[before:]:
            if effect.kind in ("delete", "chmod", "chown", "write", "move"):
                effect.flags |= {"filtered"}
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


# --- editing in place, patching, archives, synchronising


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
            parts = line[2:].split(line[1])
            if len(parts) >= 3:
                modifiers = parts[2]
                if "w" in modifiers and " " in modifiers:
                    call.change("write", Val(modifiers.partition("w")[2].strip()), ("truncate",))
                if "e" in modifiers.split("w")[0]:
                    call.code(Val(parts[1].replace("\\", "")), "inline")


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
    text = call.input.text
    if not opts.rest and text:
        for line in text.split("\n"):
            if line.startswith("+++ "):
                name = line[4:].split("\t")[0].strip()
                call.change("write", Val(name[2:] if name.startswith(("a/", "b/")) else name), ("in-place",))
    return EMPTY


def apply_patch(call: Call) -> Val:
    """The patch format of coding agents: `*** Update File: path` and its relatives."""
    text = call.args[0].text if call.args else call.input.text
    from guardhook.analysis.lower import patch_targets

    for operation, path in patch_targets(text):
        call.change(operation, Val(path), ("patch",))
    return EMPTY


def _tar(call: Call) -> Val:
    args = list(call.args)
    if args and not args[0].text.startswith("-") and args[0].text.isalpha():
        args[0] = Val("-" + args[0].text)
    opts = options(
        args,
        short="fCTXbIK",
        long=(
            "--file",
            "--directory",
            "--files-from",
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--exclude",
            "--transform",
            "--rsh-command",
        ),
    )
    for value in opts.every("--to-command", "--use-compress-program", "-I", "--rsh-command"):
        call.code(value, "inline")
    for value in opts.every("--checkpoint-action"):
        if value.text.startswith("exec="):
            call.code(Val(value.text[5:], value.taint), "inline")
    archive = opts.value("-f", "--file")
    state = call.state
    where = opts.value("-C", "--directory")
    creating = opts.has("-c", "--create", "-r", "-u", "--append", "--update")
    if creating:
        fork = state.fork()
        if where is not None:
            fork.cwd = call.place(where).text
        keep, call.state = call.state, fork
        taken = [call.read(v, ("recursive", "archive")) for v in opts.rest]
        call.state = keep
        content = unknown(*taken)
        if opts.has("--remove-files"):
            for v in opts.rest:
                call.change("delete", v, ("recursive",))
        if archive is not None and archive.text != "-":
            place = call.change("write", archive, ("truncate",))
            call.walker.files[place.text] = content
            return EMPTY
        return content
    if opts.has("-x", "--extract", "--get"):
        source = call.read(archive) if archive is not None and archive.text != "-" else call.input
        target = where if where is not None else Val(".")
        place = call.change("write", target, ("extract", "append"))
        if source.taint:
            call.walker.files[place.text + "/…"] = source
        return source
    return UNKNOWN


def _zip(call: Call) -> Val:
    opts = options(call.args, short="tbPxi" if call.name == "zip" else "dxP", long=("--exclude",))
    if call.name == "unzip":
        if opts.has("-p", "-l", "-t", "-v", "-Z"):
            return call.result()
        call.change("write", opts.value("-d") or Val("."), ("extract", "append"))
        return EMPTY
    operands = opts.rest[1:] if call.name.startswith("7z") else opts.rest
    if call.name.startswith("7z") and opts.rest and opts.rest[0].text in ("x", "e", "l", "t"):
        return call.result()
    if operands:
        content = unknown(*[call.read(v, ("recursive", "archive")) for v in operands[1:]])
        if operands[0].text == "-":
            return content
        place = call.change("write", operands[0], ("append",))
        call.walker.files[place.text] = content
        if opts.has("-m"):
            for v in operands[1:]:
                call.change("delete", v)
    return EMPTY


def _gzip(call: Call) -> Val:
    opts = options(call.args, short="S")
    if not opts.rest:
        return unknown(call.input)
    if opts.has("-c", "--stdout", "-l", "-t", "--list", "--test"):
        return unknown(*[call.read(v) for v in opts.rest])
    for value in opts.rest:
        call.change("write", value, ("compress",))
    return EMPTY


def _rsync(call: Call) -> Val:
    opts = options(call.args, short="efTBM", long=("--rsh", "--exclude", "--include", "--filter", "--files-from", "--exclude-from", "--include-from", "--rsync-path", "--bwlimit", "--timeout", "--port", "--log-file", "--backup-dir", "--temp-dir", "--partial-dir", "--password-file", "--chmod", "--chown", "--max-size", "--min-size", "--link-dest", "--compare-dest"))  # fmt: skip
    shell = opts.value("-e", "--rsh")
    if shell is not None and not shell.text.lstrip().startswith(("ssh", "rsh")):
        call.code(shell, "inline")
    operands = list(opts.rest)
    deleting = any(name.startswith("--delete") or name == "--del" for name in opts.given)
    if len(operands) < 2:
        return UNKNOWN
    target = operands.pop()
    dry = opts.has("-n", "--dry-run")
    if _remote_name(target.text):
        from guardhook.analysis.programs.network import remote_copy

        remote_copy(call, operands, target, {"rsync"} | ({"delete"} if deleting and not dry else set()))
        return EMPTY
    sources = [UNKNOWN if _remote_name(v.text) else call.read(v, ("copy", "recursive")) for v in operands]
    if any(_remote_name(v.text) for v in operands):
        host = next(v.text for v in operands if _remote_name(v.text)).split(":")[0].rpartition("@")[2]
        call.emit("connect", ("rsync",), host=host)
        sources = [Val(HOLE, frozenset(("network",)), host)]
    if dry:
        return UNKNOWN
    if deleting:
        call.change("delete", target, ("recursive", "force", "sync"))
    if opts.has("--remove-source-files"):
        for v in operands:
            if not _remote_name(v.text):
                call.change("delete", v, ("recursive",))
    place = call.change("write", target, ("copy", "recursive"))
    call.walker.files[place.text] = unknown(*sources)
    return EMPTY


def _remote_name(text: str) -> bool:
    before, colon, _ = text.partition(":")
    return text.startswith(("rsync://", "ssh://")) or (bool(colon) and "/" not in before and len(before) > 1)


def _editor(call: Call) -> Val:
    opts = options(call.args, short="cSuTs", long=("--cmd",))
    for value in opts.every("-c", "--cmd"):
        _ex_command(call, value.text)
    for value in call.args:
        if value.text.startswith("+") and len(value.text) > 1:
            _ex_command(call, value.text[1:])
    if call.stdin is not None and call.name in ("ed", "ex", "vim", "vi", "nvim"):
        for line in call.stdin.text.split("\n"):
            _ex_command(call, line)
        for value in opts.rest:
            call.change("write", value, ("in-place",))
    elif opts.rest and (opts.has("-c", "-s", "-es", "-E") or any(a.text.startswith("+") for a in call.args)):
        for value in opts.rest:
            call.change("write", value, ("in-place",))
    elif call.stdin is None:
        for value in opts.rest:
            place = call.place(value)
            if "guard" in place.classes:
                call.change("write", value, ("in-place",))
        call.emit("run", ("interactive", "editor"), detail="an editor")
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
    "mktemp": _mktemp, "find": _find, "fd": _fd, "fdfind": _fd, "sed": _sed, "patch": _patch, "apply_patch": apply_patch, "tar": _tar, "bsdtar": _tar, "gtar": _tar, "zip": _zip, "unzip": _zip,
    "7z": _zip, "7za": _zip, "gzip": _gzip, "gunzip": _gzip, "bzip2": _gzip, "xz": _gzip, "zstd": _gzip, "rsync": _rsync, "split": _split_prefix, "csplit": _split_prefix,
    "ed": _editor, "ex": _editor, "vi": _editor, "vim": _editor, "nvim": _editor, "emacs": _editor, "nano": _editor, "gio": _gio, "rd": _windows_delete, "del": _windows_delete,
    "erase": _windows_delete, "fallocate": _truncate,
}  # fmt: skip
