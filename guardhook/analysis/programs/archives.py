"""Archives, compression, synchronisation."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler


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
        place = call.change("write", opts.value("-d") or Val("."), ("extract", "append"))
        if opts.rest:
            _unpack(call, opts.rest[0], place.text)
        return EMPTY
    texts = call.texts()
    for at in [i for i, t in enumerate(texts[:-1]) if t in ("-TT", "--unzip-command")] if call.name == "zip" else ():
        call.code(call.args[at + 1], "inline")
    operands = opts.rest[1:] if call.name.startswith("7z") else opts.rest
    if call.name.startswith("7z") and opts.rest and opts.rest[0].text in ("x", "e", "l", "t"):
        if opts.rest[0].text in ("x", "e") and len(opts.rest) > 1:
            folder = next((t[2:] for t in texts if t.startswith("-o") and len(t) > 2), ".")
            _unpack(call, opts.rest[1], call.place(folder).text)
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
        place = call.change("write", value, ("compress",))
        known = call.walker.files.get(place.text)
        if known is not None and known.taint:
            call.walker.files[place.text.rpartition(".")[0]] = Val(HOLE, known.taint, known.origin)
    return EMPTY


def _unpack(call: Call, archive: Val, folder: str) -> None:
    """What is known of an archive holds for what is unpacked from it."""
    source = call.walker.read_file(archive, call.state, call.span, quiet=True)
    if source.taint:
        call.walker.files[folder + "/…"] = source


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


HANDLERS: dict[str, Handler] = {
    "": _gzip, "tar": _tar, "bsdtar": _tar, "gtar": _tar, "zip": _zip, "unzip": _zip, "7z": _zip, "7za": _zip, "gzip": _gzip, "gunzip": _gzip, "bzip2": _gzip, "xz": _gzip, "zstd": _gzip, "rsync": _rsync,
}  # fmt: skip
