"""Subcommands of git that are seldom used: each adds flags to `out`, and may give a detail."""

from __future__ import annotations

from guardhook.analysis.call import Call, Options
from guardhook.analysis.values import Val


def guarded(call: Call, paths: list[str]) -> None:
    """Files that are taken out of the history: those of the guard and of the hooks' settings would be others then."""
    for text in paths:
        value = Val(text)
        if "guard" in call.place(value).classes:
            call.change("write", value, ("git",))


def add(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    """A secret that is ignored, taken into the history all the same."""
    if opts.has("-f", "--force"):
        for value in opts.rest:
            if "secret" in call.place(value).classes:
                call.read(value, ("copy",))
    return ""


def apply(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    """What a patch changes; only what the guard and its settings are made of matters here."""
    if opts.has("--check", "--stat", "--numstat", "--summary", "--cached"):
        return ""
    from guardhook.analysis.programs.editors import patch_text

    texts = [patch_text(call, call.walker.read_file(v, call.state, call.span, quiet=True)) for v in opts.rest]
    if not opts.rest and call.stdin is not None:
        texts = [patch_text(call, call.stdin)]
    names = [line[6:].split("\t")[0].strip() for t in texts for line in t.split("\n") if line.startswith(("+++ b/", "--- a/"))]  # fmt: skip
    guarded(call, names)
    guarded(call, [v.text for v in opts.every("--include")])
    return ""


def bisect(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.rest and opts.rest[0].text == "run":
        call.run(rest[[a.text for a in rest].index("run") + 1 :], "git bisect")
    return ""


def archive(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    target = opts.value("-o", "--output")
    if target is not None:
        call.change("write", target, ("truncate",))
    return ""


def read_tree(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-u") and opts.has("--reset", "-m"):
        out.update(("loses-uncommitted", "force"))
    return ""


def checkout_index(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-f", "--force"):
        out.update(("force", "loses-uncommitted"))
    return ""


def symbolic(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-d", "--delete"):
        out.update(("delete", "loses-branches"))
    return ""


def replace(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    out.add("rewrites")
    return ""


def lfs(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.rest and opts.rest[0].text == "prune":
        out.add("prune")
    elif [v.text for v in opts.rest[:2]] == ["migrate", "import"]:
        out.update(("rewrites", "loses-commits"))
    return ""


def difftool(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    extcmd = opts.value("-x", "--extcmd")
    if extcmd is not None:
        call.code(extcmd, "inline")
    return ""
