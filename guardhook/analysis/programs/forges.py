"""Relatives of git: forges' clients, history rewriters, other version control."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.gitcmd import git
from guardhook.analysis.values import EMPTY, UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler


def _gh(call: Call) -> Val:
    operands = [
        a.text
        for a in options(
            call.args,
            short="RbtFXHfqmB",
            long=(
                "--repo",
                "--body",
                "--title",
                "--body-file",
                "--method",
                "--header",
                "--field",
                "--raw-field",
                "--jq",
                "--input",
            ),
        ).rest
    ]
    opts = options(call.args, short="XfFH", long=("--method", "--field", "--raw-field", "--input"))
    pair = tuple(operands[:2])
    if pair in (
        ("repo", "delete"),
        ("repo", "archive"),
        ("release", "delete"),
        ("gist", "delete"),
        ("secret", "delete"),
        ("variable", "delete"),
        ("issue", "delete"),
        ("run", "delete"),
        ("cache", "delete"),
        ("ssh-key", "delete"),
        ("release", "delete-asset"),
        ("label", "delete"),
        ("project", "delete"),
        ("codespace", "delete"),
    ):
        call.emit(
            "git",
            (
                "remote-delete",
                f"{pair[0]}-{pair[1]}",
                "loses-remote" if pair[0] in ("repo", "release") else "remote-change",
            ),
            git=f"gh-{pair[0]}",
            detail=" ".join(operands[:4]),
        )
    elif (
        pair == ("repo", "edit")
        and any("visibility" in a.text for a in call.args)
        and "public" in " ".join(a.text for a in call.args)
    ):
        call.emit("publish", ("repository",), detail="makes a repository public")
    elif pair == ("pr", "merge"):
        call.emit(
            "git",
            ("remote-change", "pr-merge") if not opts.has("--admin") else ("remote-change", "pr-merge", "hooks-bypass"),
            git="gh-pr",
            detail="merges a pull request",
        )
    elif pair == ("repo", "create") and "--public" in call.texts():
        call.emit("publish", ("repository",), detail="makes a public repository")
    elif pair in (("ssh-key", "add"), ("gpg-key", "add"), ("repo", "deploy-key")):
        call.emit("git", ("remote-change", "key"), git=f"gh-{pair[0]}", detail=" ".join(operands[:3]))
    elif pair in (("release", "create"), ("release", "upload")):
        call.emit("publish", ("release",), detail="publishes a release")
    elif pair == ("auth", "token"):
        call.emit("read", ("credential",), path_classes=frozenset(("secret",)), detail="prints the stored token")
        return Val(HOLE, frozenset(("secret",)), "gh token")
    elif pair in (("secret", "set"), ("workflow", "run"), ("workflow", "disable")):
        call.emit("git", ("remote-change", f"{pair[0]}-{pair[1]}"), git=f"gh-{pair[0]}")
    elif pair == ("gist", "create"):
        contents = [call.read(Val(o), ("upload",)) for o in operands[2:]] + (
            [call.stdin] if call.stdin is not None else []
        )
        call.emit("connect", ("upload", "gist"), host="gist.github.com")
        if any(c.taint & {"secret", "env-secret", "environment"} for c in contents):
            call.emit("secret_flow", ("network",), host="gist.github.com", detail="a secret into a gist")
    elif operands[:1] == ["api"]:
        method = opts.value("-X", "--method")
        if method is not None and method.text.upper() == "DELETE":
            call.emit("git", ("remote-delete", "api", "loses-remote"), git="gh-api", detail=" ".join(operands[:3]))
        elif method is not None and any(w in " ".join(operands[1:2]) for w in ("/collaborators", "/hooks", "/keys")):
            call.emit("git", ("remote-change", "api"), git="gh-api", detail=" ".join(operands[:3]))
        return Val(HOLE, frozenset(("network",)), "gh api " + " ".join(operands[1:2]))
    elif pair == ("gist", "view"):
        return Val(HOLE, frozenset(("network",)), "a gist")
    elif operands[:1] == ["alias"]:
        for value in call.args:
            if value.text.startswith("!"):
                call.code(Val(value.text[1:]), "inline")
    elif pair == ("extension", "install"):
        call.emit("run", ("installs",), detail="installs an extension")
    return Val(HOLE, origin="output of gh")


def _hub(call: Call) -> Val:
    if call.args and call.args[0].text == "delete":
        call.emit("git", ("remote-delete", "loses-remote"), git="hub-delete")
        return EMPTY
    return git(call)


def _filter_repo(call: Call) -> Val:
    call.emit("git", ("rewrites", "loses-commits"), git="filter-repo", detail=call.name)
    return UNKNOWN


def _svn(call: Call) -> Val:
    texts = call.texts()
    verb = texts[0] if texts else ""
    if verb in ("revert", "cleanup") and call.name == "svn":
        call.emit("git", ("loses-uncommitted",), git=f"svn-{verb}")
    elif call.name == "hg" and (
        verb in ("strip", "purge", "rollback")
        or (verb in ("update", "up", "revert") and any(t in ("-C", "--clean", "--all", "-a") for t in texts))
    ):
        call.emit(
            "git",
            ("loses-uncommitted", "loses-commits") if verb == "strip" else ("loses-uncommitted",),
            git=f"hg-{verb}",
        )
    elif call.name == "jj" and (verb == "abandon" or texts[:2] == ["op", "restore"]):
        call.emit("git", ("loses-commits",), git=f"jj-{verb}")
    return UNKNOWN


def _nothing(call: Call) -> Val:
    return UNKNOWN


HANDLERS: dict[str, Handler] = {
    "": _nothing, "gh": _gh, "glab": _gh, "hub": _hub, "git-filter-repo": _filter_repo, "bfg": _filter_repo, "svn": _svn, "hg": _svn, "jj": _svn, "sl": _svn,
}  # fmt: skip
