"""git and its relatives: what of the work, the history or the remote would be lost."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs import gitrare
from guardhook.analysis.programs.gittables import ENDINGS, GLOBAL_VALUED, KNOWN, PROGRAM_KEYS, VALUED
from guardhook.analysis.quick import LOOKING
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.call import Options
    from guardhook.analysis.programs.index import Handler


def git(call: Call) -> Val:
    args = list(call.args)
    state = call.state
    flags: set[str] = set()
    aliases: dict[str, Val] = {}
    if "GIT_CONFIG_COUNT" in call.env or "GIT_CONFIG_COUNT" in state.vars:
        from guardhook.analysis.programs import gitalias

        for given in gitalias.environment(call):
            _config_value(call, given, flags, aliases)
    if call.name.startswith("git-"):
        args = [Val(call.name[4:]), *args]
    while args and args[0].text.startswith("-"):
        text = args[0].text
        name, equals, value = text.partition("=")
        if text in GLOBAL_VALUED and len(args) > 1 and name not in ("--exec-path",):
            given = args[1]
            args = args[2:]
        elif equals:
            given = Val(value, args[0].taint, args[0].origin)
            args = args[1:]
        else:
            if text in ("--version", "--help", "-h", "-v", "--html-path"):
                return UNKNOWN
            args = args[1:]
            continue
        if name == "-C":
            state = state.fork()
            place = call.walker.place(given, state)
            state.cwd = place.text if place.text.startswith("/") else None
        elif name in ("-c", "--config-env"):
            _config_value(call, given, flags, aliases)
        elif name == "--git-dir":
            flags.add("git-dir")
        elif name == "--work-tree":
            state = state.fork()
            place = call.walker.place(given, state)
            state.cwd = place.text if place.text.startswith("/") else None
    if not args:
        return UNKNOWN
    keep, call.state = call.state, state
    try:
        return _subcommand(call, args, flags, aliases, 0)
    finally:
        call.state = keep


def _config_value(call: Call, given: Val, flags: set[str], aliases: dict[str, Val]) -> None:
    """`-c key=value`: aliases and the keys that name a program to run."""
    key, _, value = given.text.partition("=")
    lowered = key.lower()
    if lowered.startswith("alias."):
        aliases[key[6:]] = Val(value, given.taint, given.origin)
    elif (
        lowered in PROGRAM_KEYS
        or (
            lowered.startswith(("filter.", "diff.", "merge.", "difftool.", "mergetool.", "pager.", "credential."))
            and lowered.endswith(
                (".clean", ".smudge", ".process", ".command", ".cmd", ".textconv", ".driver", ".helper")
            )
        )
        or lowered.startswith("pager.")
    ):
        if value.strip() not in (
            "",
            "cat",
            "less",
            "true",
            "false",
            "vim",
            "vi",
            "nano",
            ":",
            "less -R",
            "delta",
            "store",
            "cache",
            "osxkeychain",
            "manager",
            "no",
            "never",
            "ssh",
            "0",
            "1",
            "code --wait",
            "!gh auth git-credential",
            "more",
        ):
            text = value.removeprefix("!")
            call.code(Val(text, given.taint, given.origin), "git-config")
            call.emit("git", ("config-program",), git="-c", detail=f"{key} names a program")
    elif lowered == "core.hookspath":
        flags.add("hooks-bypass")
    elif lowered in ("protocol.ext.allow",):
        flags.add("ext-protocol")
    elif lowered in ("commit.gpgsign",) and value == "false":
        flags.add("no-sign")
    elif lowered == "http.sslverify" and value.lower() in ("false", "0"):
        flags.add("insecure")


def _alias(call: Call, verb: str) -> Val | None:
    """The text behind a word that is no command of git's own."""
    if verb in _SUBCOMMANDS or verb in LOOKING:
        return None
    from guardhook.analysis.programs import gitalias

    return gitalias.find(call, verb)


def _subcommand(call: Call, args: list[Val], flags: set[str], aliases: dict[str, Val], depth: int) -> Val:
    verb = args[0].text
    rest = args[1:]
    text = (aliases.get(verb) or _alias(call, verb)) if depth < 4 else None
    if text is not None:
        if text.text.startswith("!"):
            from guardhook.analysis.command import quote

            tail = " ".join(quote(a.text) for a in rest)
            return call.code(Val(text.text[1:] + " " + tail, text.taint, text.origin), "git-alias")
        from guardhook.analysis.programs.wrappers import split_string

        return _subcommand(call, [*split_string(text), *rest], flags, aliases, depth + 1)
    if HOLE in verb:
        call.emit("run_dynamic", ("git-subcommand",), detail=args[0].raw or "which git command isn't known")
        return UNKNOWN
    if rest and rest[-1].text in ("--help", "-h") and "--" not in [a.text for a in rest]:
        return UNKNOWN
    short, long = VALUED.get(verb, ("", ()))
    opts = options(rest, short=short, long=long, known=KNOWN.get(verb, ()))
    if any(HOLE in a.text and a.text.startswith(HOLE) and not a.raw.startswith('"') for a in rest) and verb in (
        "push",
        "reset",
        "clean",
        "branch",
    ):
        flags.add("unknown-arguments")
    handler = _SUBCOMMANDS.get(verb)
    detail = ""
    loses: set[str] = set(flags)
    if handler is not None:
        detail = handler(call, opts, rest, loses) or ""
    if opts.has("--no-verify") or (verb in ("commit", "merge") and opts.has("-n") and verb == "commit"):
        loses.add("hooks-bypass")
    call.emit(
        "git",
        loses,
        git=verb,
        detail=detail or " ".join(a.shown for a in args)[:160],
        argv=tuple(a.shown for a in rest),
    )
    if verb in ("show", "diff", "blame", "cat-file", "grep", "log", "stash", "annotate"):
        named = opts.rest[1:] if verb == "grep" and not opts.has("-e", "-f") else opts.rest
        for value in named:
            place = call.place(Val(value.text.partition(":")[2] or value.text))
            if "secret" in place.classes:
                call.emit("read", place.flags, path=place.path, path_classes=place.classes)
                return Val(HOLE, frozenset(("secret",)), place.path)
    return _output(call, verb, opts)


def _output(call: Call, verb: str, opts: Options) -> Val:
    if verb == "rev-parse" and opts.has("--show-toplevel"):
        return Val((call.walker.facts.project_root or HOLE) + "\n")
    if verb in ("ls-files", "diff", "status", "ls-tree", "grep", "log", "branch", "for-each-ref", "tag", "stash"):
        return Val(HOLE, frozenset(("listing",)), f"output of git {verb}")
    if verb in ("show", "cat-file", "config", "fetch", "clone", "ls-remote", "archive"):
        return Val(HOLE, origin=f"output of git {verb}")
    return UNKNOWN


def _pathspecs(opts: Options, rest: list[Val]) -> list[str]:
    texts = [a.text for a in rest]
    return texts[texts.index("--") + 1 :] if "--" in texts else []


# --- subcommands: each adds flags to `out`, and may give a detail


def _reset(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("--hard", "--merge", "--keep"):
        out.add("hard" if opts.has("--hard") else "merge")
        if opts.has("--hard", "--merge"):
            out.add("loses-uncommitted")
    target = next((v.text for v in opts.rest), "HEAD")
    if opts.has("--hard", "--merge", "--keep") and target not in ("HEAD", "@", ""):
        out.add("moves-branch")
        if "~" in target or "^" in target or target.startswith(("origin/", "upstream/")) or "@{" in target:
            out.add("loses-commits")
    return ""


def _clean(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-n", "--dry-run"):
        out.add("dry-run")
        return ""
    if opts.has("-i", "--interactive"):
        out.add("interactive")
    if opts.has("-f", "--force") or any("clean.requireforce" in a.text.lower() for a in call.args):
        out.add("loses-untracked")
        out.add("loses-uncommitted")
        out.add("force")
        if opts.has("-d"):
            out.add("directories")
        if opts.has("-x", "-X"):
            out.add("ignored")
            if opts.has("-X"):
                out.add("only-ignored")
    return ""


def _push(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-n", "--dry-run"):
        out.add("dry-run")
        return ""
    lease = opts.has("--force-with-lease") or any(a.text.startswith("--force-w") for a in rest)
    refs = [v.text for v in opts.rest[1:]]
    forced = opts.has("-f", "--force") or any(r.startswith("+") for r in refs)
    if lease and not forced:
        out.add("force-with-lease")
    if forced:
        out.add("force-push")
        out.add("loses-remote")
    if opts.has("--mirror"):
        out.update(("mirror", "force-push", "loses-remote"))
    if opts.has("-d", "--delete") or any(r.startswith(":") and len(r) > 1 for r in refs):
        out.update(("deletes-remote", "loses-remote"))
    if opts.has("--prune"):
        out.update(("prune", "loses-remote"))
    if opts.has("--all"):
        out.add("all")
    names = [r.lstrip("+").rpartition(":")[2].removeprefix("refs/heads/") for r in refs]
    if any(n in ("main", "master", "trunk", "production", "prod", "release", "develop") for n in names):
        out.add("main-branch")
    for value in opts.every("--receive-pack", "--exec"):
        call.code(value, "inline")
    target = opts.rest[0] if opts.rest else None
    if target is not None and ("://" in target.text or "@" in target.text):
        from guardhook.analysis.programs.network import host_flags, host_of

        host = host_of(target.text if "://" in target.text else target.text.partition(":")[0])
        out.add("to-url")
        call.emit("connect", host_flags(host) | {"upload", "git"}, host=host)
    return ""


def _checkout(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    specs = _pathspecs(opts, rest)
    operands = [v.text for v in opts.rest]
    if opts.has("-b", "--orphan", "-t", "--track") and not specs:
        if opts.has("-f", "--force"):
            out.update(("force", "loses-uncommitted"))
        return ""
    if opts.has("-B"):
        out.update(("moves-branch",))
    if opts.has("-p", "--patch"):
        out.add("interactive")
        return ""
    if opts.has("-f", "--force"):
        out.update(("force", "loses-uncommitted"))
    elif opts.has("--ours", "--theirs"):
        out.update(("paths", "conflict"))
    elif specs or opts.has("--pathspec-from-file") or (operands and _pathlike(operands[0]) and len(operands) == 1):
        out.update(("paths", "loses-uncommitted"))
    elif len(operands) >= 2:
        # `checkout REF PATH…`
        out.update(("paths", "loses-uncommitted"))
    if "paths" in out:
        gitrare.guarded(call, specs or operands)
    if "loses-uncommitted" in out and ((not specs and operands in (["."], [":/"])) or specs in (["."], [":/"], ["*"])):
        out.add("everything")
    return ""


def _pathlike(text: str) -> bool:
    if text in (".", ":/", "*", "./", "..", ":"):
        return True
    if text.startswith(("./", "../", ":/", ":(", "*.")):
        return True
    last = text.rpartition("/")[2]
    stem, dot, ending = last.rpartition(".")
    return bool(dot and stem) and ending.isalpha() and ending.lower() in ENDINGS


def _switch(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-f", "--force", "--discard-changes"):
        out.update(("force", "loses-uncommitted"))
    if opts.has("-C", "--force-create"):
        out.add("moves-branch")
    return ""


def _restore(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-p", "--patch"):
        out.add("interactive")
        return ""
    if opts.has("-S", "--staged") and not opts.has("-W", "--worktree"):
        out.add("staged")
        return ""
    out.update(("paths", "loses-uncommitted"))
    gitrare.guarded(call, [v.text for v in opts.rest])
    if any(v.text in (".", ":/", "*") for v in opts.rest):
        out.add("everything")
    return ""


def _branch(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-D") or (opts.has("-d", "--delete") and opts.has("-f", "--force")):
        out.update(("delete", "force", "loses-branches"))
    elif opts.has("-d", "--delete"):
        out.update(("delete",))
    if opts.has("-M") or (opts.has("-m", "--move") and opts.has("-f", "--force")):
        out.add("force-move")
    elif opts.has("-f", "--force", "-C") and "delete" not in out:
        out.update(("force", "moves-branch", "loses-commits"))
    return ""


def _stash(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    verb = opts.rest[0].text if opts.rest else "push"
    out.add(verb if verb.isalpha() else "push")
    if verb in ("push", "save"):
        gitrare.guarded(call, [v.text for v in opts.rest[1:]])
    if verb in ("drop", "clear"):
        out.add("loses-stash")
    return ""


def _rebase(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    for value in opts.every("-x", "--exec"):
        call.code(value, "inline")
    if opts.has("--abort", "--continue", "--skip", "--quit", "--show-current-patch", "--edit-todo"):
        out.add("sequence")
    else:
        out.add("rewrites")
    if opts.has("--root"):
        out.add("root")
    if opts.has("-i", "--interactive"):
        out.add("interactive")
    return ""


def _commit(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("--amend"):
        out.update(("amend", "rewrites"))
    return ""


def _reflog(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    verb = opts.rest[0].text if opts.rest else "show"
    if verb in ("expire", "delete"):
        out.update((verb, "loses-reflog"))
    return ""


def _gc(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    pruned = opts.value("--prune")
    if (pruned is not None and pruned.text not in ("2.weeks.ago",)) or opts.has("--prune"):
        out.add("prune")
        if pruned is None or pruned.text in ("now", "all") or pruned.text.startswith(("now", "all", "0")):
            out.add("loses-reflog")
    return ""


def _prune(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if not opts.has("-n", "--dry-run"):
        out.update(("prune", "loses-reflog"))
    return ""


def _update_ref(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-d") or (call.stdin is not None and "delete" in call.stdin.text) or opts.has("--stdin"):
        out.update(("delete", "loses-branches", "loses-commits"))
    elif len(opts.rest) >= 2:
        out.update(("moves-branch", "loses-commits"))
    return ""


def _filter(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    out.update(("rewrites", "loses-commits"))
    if opts.has("-f", "--force"):
        out.add("force")
    for value in opts.every(
        "--env-filter",
        "--tree-filter",
        "--index-filter",
        "--msg-filter",
        "--commit-filter",
        "--setup",
        "--tag-name-filter",
        "--parent-filter",
    ):
        before = len(call.walker.effects)
        call.code(value, "inline")
        # They work on copies of the history's trees.
        for effect in call.walker.effects[before:]:
            if effect.kind in ("delete", "write"):
                effect.path_classes = frozenset()
    return ""


def _worktree(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    verb = opts.rest[0].text if opts.rest else ""
    out.add(verb if verb.isalpha() else "list")
    if verb == "remove" and opts.has("-f", "--force"):
        out.update(("force", "loses-uncommitted"))
    return ""


def _tag(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-d", "--delete"):
        out.update(("delete", "loses-tags"))
    if opts.has("-f", "--force"):
        out.add("force")
    return ""


def _rm(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("--cached", "-n", "--dry-run"):
        out.add("cached")
        return ""
    flags = {"git"} | ({"recursive"} if opts.has("-r") else set()) | ({"force"} if opts.has("-f", "--force") else set())
    if "force" in flags:
        out.add("loses-uncommitted")
    for value in opts.rest:
        call.change("delete", value, flags | {"tracked"})
    return ""


def _mv(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    for value in opts.rest[:-1]:
        call.change("move", value, ("git",))
    if opts.rest:
        call.change("write", opts.rest[-1], ("git",))
    return ""


def _remote(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    verb = opts.rest[0].text if opts.rest else "list"
    out.add(verb if verb.replace("-", "").isalpha() else "list")
    if verb in ("add", "set-url") and opts.rest:
        url = opts.rest[-1]
        if url.taint & {"env-secret", "secret"}:
            out.add("secret-in-url")
    return ""


def _config(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    operands = [v.text for v in opts.rest]
    if operands and operands[0] in ("set", "unset", "get", "list", "edit"):
        verb = operands.pop(0)
    else:
        verb = "set" if len(operands) >= 2 else "get"
    if opts.has("--get", "--get-all", "--list", "-l", "--get-regexp"):
        return ""
    unset = opts.has("--unset", "--unset-all", "--remove-section") or verb == "unset"
    if verb != "set" and not unset:
        return ""
    out.add("unset" if unset else "set")
    if opts.has("--global", "--system"):
        out.add("global")
    key = operands[0].lower() if operands else ""
    value = operands[1] if len(operands) > 1 else ""
    if key.startswith("alias.") and not unset:
        call.state.vars["git:alias." + operands[0][6:]] = Val(value)
    if key == "core.hookspath":
        out.add("hooks-bypass")
        call.emit("persist", ("git-hook",), detail="core.hooksPath")
    elif key == "init.templatedir":
        call.emit("persist", ("git-hook",), detail="init.templateDir: hooks for every repository made from now on")
    elif key.startswith("alias.") and value.startswith("!"):
        out.add("alias-program")
        call.code(Val(value[1:]), "git-config", state=call.state.fork())
    elif key in PROGRAM_KEYS and value.split(" ")[0] not in (
        "vim",
        "vi",
        "nano",
        "code",
        "less",
        "cat",
        "ssh",
        "delta",
        "store",
        "cache",
        "osxkeychain",
        "manager",
        "true",
        "emacs",
        "manager-core",
        "nvim",
        "",
    ):
        out.add("config-program")
        if key not in ("credential.helper", "gpg.program"):
            call.code(Val(value), "git-config", state=call.state.fork())
    elif key == "http.sslverify" and value.lower() in ("false", "0"):
        out.add("insecure")
    elif key.startswith(("url.", "remote.")) and key.endswith((".insteadof", ".pushurl", ".pushinsteadof")):
        out.add("redirects-remote")
    elif key == "credential.helper" and value == "store":
        out.add("plain-credentials")
    elif key in ("receive.denynonfastforwards", "receive.denydeletes") and value == "false":
        out.add("weakens-remote")
    return ""


def _clone(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    from guardhook.analysis.programs.network import host_flags, host_of

    for value in opts.every("-c", "--config"):
        _config_value(call, value, out, {})
    for value in opts.every("-u", "--upload-pack", "--exec"):
        call.code(value, "inline")
    for value in opts.rest[:1]:
        if value.text.startswith("ext::"):
            call.code(Val(value.text[5:]), "inline")
        elif "://" in value.text or "@" in value.text:
            host = host_of(value.text if "://" in value.text else value.text.partition(":")[0])
            call.emit("connect", host_flags(host) | {"git"}, host=host)
            if value.taint & {"secret"}:
                call.emit("secret_flow", ("network",), host=host, detail=f"{value.origin} to {host}")
    return ""


def _submodule(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    verb = opts.rest[0].text if opts.rest else ""
    if verb == "foreach":
        words = rest[next((i for i, v in enumerate(rest) if v.text == "foreach"), 0) + 1 :]
        while words and words[0].text in ("--recursive", "--quiet", "-q"):
            words = words[1:]
        from guardhook.analysis.call import joined

        if words:
            call.code(joined(words), "inline")
    elif verb == "deinit" and opts.has("-f", "--force"):
        out.update(("force", "loses-uncommitted"))
    return ""


def _grep(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    for value in opts.every("-O", "--open-files-in-pager"):
        call.code(value, "inline")
    return ""


def _diff(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    target = opts.value("--output")
    if target is not None:
        call.change("write", target, ("truncate",))
    return ""


def _credential(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if any(v.text in ("fill", "get") for v in opts.rest):
        call.emit("read", ("credential",), path_classes=frozenset(("secret",)), detail="git credential")
    return ""


def _pull(call: Call, opts: Options, rest: list[Val], out: set[str]) -> str:
    if opts.has("-f", "--force"):
        out.add("force")
    return ""


_SUBCOMMANDS = {
    "add": gitrare.add, "apply": gitrare.apply, "am": gitrare.apply, "reset": _reset, "clean": _clean, "push": _push, "checkout": _checkout, "switch": _switch, "restore": _restore, "branch": _branch, "stash": _stash, "rebase": _rebase, "commit": _commit, "reflog": _reflog,
    "gc": _gc, "prune": _prune, "update-ref": _update_ref, "filter-branch": _filter, "filter-repo": _filter, "worktree": _worktree, "tag": _tag, "rm": _rm, "mv": _mv, "remote": _remote, "config": _config,
    "clone": _clone, "fetch": _clone, "ls-remote": _clone, "bisect": gitrare.bisect, "submodule": _submodule, "archive": gitrare.archive, "grep": _grep, "diff": _diff, "read-tree": gitrare.read_tree,
    "credential": _credential, "credential-store": _credential, "credential-cache": _credential, "credential-osxkeychain": _credential, "credential-manager": _credential,
    "checkout-index": gitrare.checkout_index, "symbolic-ref": gitrare.symbolic, "replace": gitrare.replace, "pull": _pull, "lfs": gitrare.lfs, "difftool": gitrare.difftool, "log": _diff, "show": _diff,
}  # fmt: skip


HANDLERS: dict[str, Handler] = {"": git}
