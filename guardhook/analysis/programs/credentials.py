"""Password managers and keyrings: what they print is a secret."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# program -> subcommands that print a secret
_PRINTING = {
    "op": ("read", "item", "document", "inject"), "pass": ("show", "otp"), "gopass": ("show", "cat", "otp"), "bw": ("get", "export", "list"), "lpass": ("show", "export"), "secret-tool": ("lookup", "search"), "keyring": ("get",), "bitwarden": ("get",),
    "doppler": ("secrets",), "infisical": ("secrets", "export"), "chamber": ("read", "export", "env"),
}  # fmt: skip


_RUNNERS = frozenset(("doppler", "infisical", "chamber"))


def _manager(call: Call) -> Val:
    words = options(call.args, short="ac", long=("--vault", "--account", "--env-file", "--fields", "--format")).rest
    verb = words[0].text if words else ""
    if call.name == "op" and verb == "run":
        texts = call.texts()
        return call.run(call.args[texts.index("--") + 1 :], "op") if "--" in texts else UNKNOWN
    if call.name in _RUNNERS and verb in ("run", "exec"):
        from guardhook.analysis.programs import index

        return index.handler("wrappers", call.name)(call)
    if call.name in _RUNNERS and len(words) > 1 and words[1].text in ("set", "upload", "delete", "notes"):
        return UNKNOWN
    if verb in _PRINTING.get(call.name, ()) or (
        call.name == "pass"
        and verb
        and verb not in ("ls", "insert", "generate", "git", "init", "rm", "edit", "find", "grep", "mv", "cp")
    ):
        call.emit(
            "read", ("credential",), path_classes=frozenset(("secret",)), detail=" ".join([call.name, *call.argv])[:120]
        )
        return Val(HOLE, frozenset(("secret",)), f"{call.name} {verb}")
    if verb in ("rm", "delete", "erase", "remove"):
        call.emit(
            "delete", ("keys",), path_classes=frozenset(("secret",)), detail=" ".join([call.name, *call.argv])[:120]
        )
    return UNKNOWN


HANDLERS: dict[str, Handler] = {"": _manager}
