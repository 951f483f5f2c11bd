"""Object storage, file drops and mail: what leaves the machine that way."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.network import SENSITIVE, host_of
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler


def _mail(call: Call) -> Val:
    opts = options(call.args, short="scbrafASu", long=("--to", "--server", "--body", "--attach", "--from"))
    sent = [*opts.every("-a", "-A", "--attach", "--body"), *opts.every("-s")]
    contents = [call.read(v) if (not v.text.startswith("@") and "/" in v.text) or "." in v.text else v for v in sent]
    if call.stdin is not None:
        contents.append(call.stdin)
    host = next((v.text.rpartition("@")[2] for v in [*opts.rest, *opts.every("--to")] if "@" in v.text), "mail")
    call.emit("connect", ("upload", "mail"), host=host)
    for value in contents:
        if value.taint & SENSITIVE:
            call.emit("secret_flow", ("network", "mail"), host=host, detail=f"{value.origin} to {host}")
            break
    return UNKNOWN


def _sync(call: Call) -> Val:
    """Object storage and file sharing: uploads by `copy`-like verbs, deletions by `delete`-like ones."""
    texts = call.texts()
    operands = [a for a in call.args if not a.text.startswith("-")]
    verb = operands[0].text if operands else ""
    host = next((host_of(t) for t in texts if "://" in t), call.name)
    flags = {"storage"}
    if verb in ("iam", "acl", "defacl") and {"ch", "set"} & {o.text for o in operands[1:2]}:
        call.emit("privilege", ("cloud-iam",), detail=" ".join(call.argv)[:120])
    if (
        verb in ("rm", "rb", "del", "delete", "purge", "deletefile", "rmdirs", "cleanup", "rmdir")
        or ("sync" in verb and any(t.startswith("--delete") for t in texts))
        or (verb == "sync" and call.name == "rclone")
    ):
        call.emit(
            "cloud",
            {"delete", "storage", verb}
            | ({"recursive"} if set(texts) & {"-r", "-R", "--recursive", "-m"} or verb in ("purge", "rb") else set()),
            detail=" ".join(call.argv)[:120],
        )
    if verb in ("cp", "put", "sync", "mv", "copy", "copyto", "move", "send", "mirror", "rcat", "pipe", "upload"):
        call.emit("connect", flags | {"upload"}, host=host)
        contents = [
            call.read(v, ("upload",))
            for v in operands[1:]
            if "://" not in v.text and not (":" in v.text and call.name == "rclone")
        ]
        if call.stdin is not None:
            contents.append(call.stdin)
        for value in contents:
            if value.taint & SENSITIVE:
                call.emit("secret_flow", ("network", "storage"), host=host, detail=f"{value.origin} to {host}")
                break
    elif verb:
        call.emit("connect", flags, host=host)
    return Val(HOLE, frozenset(("network",)), host)


HANDLERS: dict[str, Handler] = {
    "": _sync, **dict.fromkeys(("mail", "mailx", "mutt", "sendmail", "swaks", "msmtp"), _mail),
}  # fmt: skip
