"""Package managers, build tools and publishing."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.verbs import Row, first, is_dry, note, operands
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

_PUBLISH: dict[str, tuple[Row, ...]] = {
    "npm": (("publish", "publish", ("npm",)), ("unpublish", "publish", ("npm", "unpublish", "removes")), ("deprecate", "publish", ("npm", "deprecate")), ("dist-tag add|rm", "publish", ("npm", "tag")), ("owner add|rm", "publish", ("npm", "owner")), ("access *", "publish", ("npm", "access")), ("token create|revoke", "publish", ("npm", "token"))),
    "pnpm": (("publish", "publish", ("npm",)),), "yarn": (("publish", "publish", ("npm",)), ("npm publish", "publish", ("npm",))), "bun": (("publish", "publish", ("npm",)),), "lerna": (("publish", "publish", ("npm",)),),
    "changeset": (("publish", "publish", ("npm",)),), "twine": (("upload", "publish", ("pypi",)),), "flit": (("publish", "publish", ("pypi",)),), "poetry": (("publish", "publish", ("pypi",)),), "uv": (("publish", "publish", ("pypi",)),), "hatch": (("publish", "publish", ("pypi",)),), "pdm": (("publish", "publish", ("pypi",)),), "rye": (("publish", "publish", ("pypi",)),),
    "cargo": (("publish", "publish", ("crates",)), ("yank", "publish", ("crates", "removes")), ("owner", "publish", ("crates", "owner"))), "gem": (("push", "publish", ("rubygems",)), ("yank", "publish", ("rubygems", "removes")), ("owner", "publish", ("rubygems", "owner"))), "nuget": (("push", "publish", ("nuget",)), ("delete", "publish", ("nuget", "removes"))),
    "dotnet": (("nuget push", "publish", ("nuget",)), ("nuget delete", "publish", ("nuget", "removes"))), "mvn": (("deploy", "publish", ("maven",)), ("release:perform", "publish", ("maven",))), "mvnw": (("deploy", "publish", ("maven",)),), "gradle": (("publish", "publish", ("maven",)), ("uploadArchives", "publish", ("maven",)), ("publishPlugins", "publish", ("maven",))), "gradlew": (("publish", "publish", ("maven",)),),
    "vsce": (("publish", "publish", ("vscode",)), ("unpublish", "publish", ("vscode", "removes"))), "ovsx": (("publish", "publish", ("vscode",)),), "jsr": (("publish", "publish", ("jsr",)),), "pod": (("trunk push", "publish", ("cocoapods",)), ("trunk delete|deprecate", "publish", ("cocoapods", "removes"))), "mix": (("hex.publish", "publish", ("hex",)), ("ecto.drop|ecto.reset", "database", ("drop", "migration-tool"))), "snap": (("remove", "run", ("removes-package",)),), "np": (("", "publish", ("npm",)),),
    "semantic-release": (("", "publish", ("npm",)),), "release-it": (("", "publish", ("npm",)),), "goreleaser": (("release", "publish", ("github",)),), "luarocks": (("upload", "publish", ("luarocks",)),), "conan": (("upload", "publish", ("conan",)),), "fastlane": (("deliver|release|pilot|supply|upload_to_app_store|upload_to_testflight", "publish", ("appstore",)),), "composer": (), "go": (), "brew": (), "choco": (("push", "publish", ("choco",)),), "stack": (("upload", "publish", ("hackage",)),), "cabal": (("upload", "publish", ("hackage",)),),
}  # fmt: skip
# Removal of packages by the system's package manager.
_REMOVE: dict[str, tuple[str, ...]] = {
    "apt": ("remove", "purge", "autoremove", "autopurge"), "apt-get": ("remove", "purge", "autoremove"), "aptitude": ("remove", "purge"), "dpkg": ("-r", "-P", "--remove", "--purge"), "rpm": ("-e", "--erase"), "dnf": ("remove", "erase", "autoremove"), "yum": ("remove", "erase", "autoremove"),
    "zypper": ("remove", "rm"), "pacman": ("-R", "-Rs", "-Rns", "-Rsc", "-Rdd", "-Rn"), "apk": ("del",), "emerge": ("--unmerge", "-C", "--depclean"), "pkg": ("delete", "remove"), "snap": ("remove",), "flatpak": ("uninstall", "remove"), "brew": ("uninstall", "remove", "rm", "zap", "cleanup"), "port": ("uninstall",), "nix-env": ("-e", "--uninstall"), "nix-collect-garbage": ("-d", "--delete-old"), "winget": ("uninstall", "remove"), "choco": ("uninstall",), "scoop": ("uninstall",),
}  # fmt: skip
_CRITICAL = frozenset(("linux-image", "libc6", "glibc", "systemd", "bash", "coreutils", "sudo", "kernel", "grub", "openssh-server", "init", "dpkg", "apt", "python3", "util-linux", "login", "libc-bin"))  # fmt: skip
_INSTALL = frozenset(
    (
        "install",
        "i",
        "add",
        "ci",
        "get",
        "require",
        "upgrade",
        "update",
        "dist-upgrade",
        "full-upgrade",
        "-S",
        "-Sy",
        "-Syu",
        "-U",
        "-i",
        "localinstall",
        "require-dev",
        "create",
        "tool",
        "sync",
    )
)
_REGISTRY_OPTIONS = (
    "--registry",
    "--index-url",
    "-i",
    "--extra-index-url",
    "--find-links",
    "-f",
    "--trusted-host",
    "--source",
    "--index",
    "--default-index",
    "--repository",
    "--repo",
)
_SYSTEM = frozenset(
    (
        "apt",
        "apt-get",
        "dnf",
        "yum",
        "zypper",
        "pacman",
        "apk",
        "brew",
        "snap",
        "flatpak",
        "dpkg",
        "rpm",
        "port",
        "emerge",
        "winget",
        "choco",
        "scoop",
        "yay",
        "paru",
        "aptitude",
        "pkg",
    )
)


def _package(call: Call) -> Val:
    name = call.name
    if name == "brew" and call.args[:1] and call.args[0].text == "tap" and len(call.args) > 1:
        call.emit("run", ("installs", "other-registry"), detail=" ".join(call.argv)[:120])
    opts = options(
        call.args,
        short="cfitCwrpFe" if name in ("npm", "pip", "pip3") else "",
        long=(
            *_REGISTRY_OPTIONS,
            "--prefix",
            "--cwd",
            "--workspace",
            "--tag",
            "--otp",
            "--manifest-path",
            "--target-dir",
            "--package",
            "-r",
            "--requirement",
            "--filter",
            "--dir",
        ),
    )
    words = [v.text for v in opts.rest]
    row = first(_PUBLISH.get(name, ()), words)
    if row is not None and (row[0] or not words):
        note(call, row, words, {"dry-run"} if opts.has("-n") and name == "cargo" else frozenset())
    removing = _REMOVE.get(name)
    if removing and (set(words[:2]) | set(call.texts())) & set(removing):
        critical = any(w.split("=")[0].rstrip("0123456789.-") in _CRITICAL or w in _CRITICAL for w in words)
        call.emit(
            "run",
            {"removes-package"}
            | ({"critical-package"} if critical else set())
            | ({"dry-run"} if is_dry(call) or (name.startswith("apt") and opts.has("-s", "--simulate")) else set()),
            detail=" ".join(call.argv)[:120],
        )
    _installed(call, opts.values, words)
    _configured(call, words)
    if name in ("npm", "pnpm", "yarn", "bun"):
        return _scripts(call, words)
    if name == "cargo":
        return _cargo(call, words)
    if name == "uv":
        return _uv(call, words)
    return call.result()


def _installed(call: Call, values: dict[str, list[Val]], words: list[str]) -> None:
    """Installing from a place that isn't the registry, or from another registry."""
    if not words and not call.args:
        return
    verb = words[0] if words else ""
    if (
        verb not in _INSTALL
        and not any(a.text in _INSTALL for a in call.args[:2])
        and call.name not in ("easy_install", "dpkg", "rpm", "gem")
    ):
        return
    flags: set[str] = set()
    source = ""
    for word in words[1:]:
        if word.startswith(("http://", "https://", "git+", "git://", "ssh://", "git@", "github:")) or (
            word.endswith((".whl", ".tar.gz", ".tgz", ".deb", ".rpm", ".gem", ".zip")) and "://" in word
        ):
            source = word
            flags.add("from-url")
    for name in _REGISTRY_OPTIONS:
        for value in values.get(name, ()):
            if "://" in value.text and not any(
                k in value.text
                for k in (
                    "registry.npmjs.org",
                    "pypi.org",
                    "registry.yarnpkg.com",
                    "download.pytorch.org",
                    "npm.pkg.github.com",
                    "crates.io",
                    "rubygems.org",
                )
            ):
                source = value.text
                flags.add("other-registry")
            if name == "--trusted-host":
                flags.add("insecure")
    if flags:
        call.emit("run", {"installs", *flags}, detail=source.replace(HOLE, "…")[:160], host=_host(source))
        if (
            "from-url" in flags
            and source.startswith(("http://", "https://"))
            and call.name not in ("go", "brew", "cargo")
        ):
            call.emit("run_fetched", ("install",), detail=source.replace(HOLE, "…")[:160])
    elif call.name in _SYSTEM:
        call.emit("run", ("installs", "system-package"), detail=" ".join(call.argv)[:120])
    for word in words[1:]:
        place = (
            call.place(Val(word)) if "/" in word or word.endswith((".whl", ".tgz", ".deb", ".rpm", ".gem")) else None
        )
        known = call.walker.files.get(place.text) if place is not None else None
        if known is not None:
            call.walker.note_origin(known, call.span, "install")


def _host(url: str) -> str:
    from guardhook.analysis.programs.network import host_of

    return host_of(url.removeprefix("git+")) if "://" in url else ""


def _configured(call: Call, words: list[str]) -> None:
    """Registry settings, tokens printed, script hooks switched."""
    if words[:2] in (["config", "set"], ["set", "config"]) or (
        call.name in ("npm", "pnpm", "yarn") and words[:1] == ["set"]
    ):
        rest = " ".join(words[2:]) if words[0] == "config" else " ".join(words[1:])
        rest = rest.replace("npmRegistryServer", "registry")
        if (
            ("registry" in rest and "npmjs.org" not in rest and "yarnpkg.com" not in rest)
            or "index-url" in rest
            or ("strict-ssl" in rest and "false" in rest)
            or "script-shell" in rest
            or "node-options" in rest
            or "_authtoken" in rest.lower()
            or "trusted-host" in rest
        ):
            call.emit("persist", ("registry-config",), detail=rest[:120])
    elif words[:2] == ["pkg", "set"]:
        # Scripts that run later, with the next install or by name.
        for word in words[2:]:
            key, equals, text = word.partition("=")
            if equals and key.startswith("scripts."):
                call.code(Val(text.strip("\"'")), "script", "npm pkg set", state=call.state.fork())
    elif words[:2] == ["config", "get"] and any("auth" in w.lower() or "token" in w.lower() for w in words[2:]):
        call.emit("read", ("credential",), path_classes=frozenset(("secret",)), detail="a registry token")


def _scripts(call: Call, words: list[str]) -> Val:
    verb = words[0] if words else ""
    args = call.args
    if verb in ("exec", "x", "dlx") or (call.name == "yarn" and verb in ("dlx", "exec")):
        at = call.texts().index(verb)
        return _npx_words(call, args[at + 1 :])
    for mark in ("-c", "--call"):
        if mark in call.texts() and verb in ("exec", "x", ""):
            return call.code(args[call.texts().index(mark) + 1], "inline")
    script = (
        words[1]
        if verb in ("run", "run-script", "rum") and len(words) > 1
        else verb
        if call.name in ("yarn", "pnpm", "bun")
        else verb
        if verb in ("test", "start", "stop", "restart", "t")
        else ""
    )
    if script and HOLE not in script:
        text = _package_script(call, {"t": "test"}.get(script, script))
        if text:
            keep = call.walker.via
            if len(keep) < 12:
                rest = _after_dashes(args)
                return call.code(Val(text + rest), "script", f"{call.name} run", state=call.state.fork())
    bare = not operands(call, long=("--prefix", "--cwd", "--filter", "-C"))[1:]
    nested = any(v.endswith(" install") for v in call.walker.via)  # of another folder, or again
    elsewhere = any(t.partition("=")[0] in ("--prefix", "--cwd", "-C", "--dir") for t in call.texts())
    if nested or elsewhere:
        return call.result()
    if (verb in ("install", "i", "ci") and bare) or (not call.args and call.name == "yarn"):
        # Without a name the project itself is installed, with its own scripts.
        for name in () if "--ignore-scripts" in call.texts() else ("preinstall", "install", "postinstall", "prepare"):
            text = _package_script(call, name)
            if text:
                state = call.state.fork()
                state.vars["npm_execpath"] = Val(call.name)
                call.code(Val(text), "script", f"{call.name} install", state=state)
    return call.result()


def _after_dashes(args: list[Val]) -> str:
    from guardhook.analysis.command import quote

    texts = [a.text for a in args]
    return "".join(" " + quote(a.text) for a in args[texts.index("--") + 1 :]) if "--" in texts else ""


def _package_script(call: Call, script: str) -> str:
    """The text of a script of package.json as it is on disk."""
    place = call.place(Val("package.json"))
    known = call.walker.files.get(place.text)
    text = known.text if known is not None else call.script_text(place.text, call.name)
    from guardhook.analysis.programs.manifest import table

    scripts = table(text or "", "scripts")
    if not isinstance(scripts.get(script), str):
        return ""
    around = (scripts.get("pre" + script), scripts[script], scripts.get("post" + script))
    return " && ".join(text for text in around if isinstance(text, str))


def _npx(call: Call) -> Val:
    return _npx_words(call, call.args)


def _pipx(call: Call) -> Val:
    texts = call.texts()
    return _npx_words(call, call.args[texts.index("run") + 1 :]) if texts[:1] == ["run"] else _package(call)


def _npx_words(call: Call, args: list[Val]) -> Val:
    opts = options(
        args,
        short="pc",
        long=(
            "--package",
            "--call",
            "--node-arg",
            "--registry",
            "--from",
            "--with",
            "--python",
            "--spec",
            "--index-url",
            "--pip-args",
        ),
        permute=False,
    )
    for value in opts.every("--from", "--with", "-p", "--package", "--spec"):
        if "://" in value.text or value.text.startswith(("git+", "github:")):
            call.emit("run", ("installs", "from-url"), detail=value.shown)
    command = opts.value("-c", "--call")
    if command is not None:
        return call.code(command, "inline")
    if not opts.rest:
        return UNKNOWN
    first_word = opts.rest[0]
    text = first_word.text
    if "://" in text or text.startswith(("git+", "github:")):
        call.emit("run_fetched", ("install",), detail=first_word.shown)
        return UNKNOWN
    name = text
    if "@" in name[1:]:
        name = name[: name.index("@", 1)]
    name = _PACKAGE_PROGRAMS.get(name, name.rpartition("/")[2] if not name.startswith(".") else name)
    return call.run([Val(name, first_word.taint, first_word.origin), *opts.rest[1:]], "npx")


_PACKAGE_PROGRAMS = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen",
    "rimraf": "rimraf",
    "wrangler": "wrangler",
}


def _cargo(call: Call, words: list[str]) -> Val:
    if words[:1] == ["clean"]:
        call.change("delete", "target", ("recursive", "force", "clean"))
    elif words[:1] == ["install"] and "--git" in call.texts():
        call.emit("run", ("installs", "from-url"), detail=" ".join(call.argv)[:120])
    return call.result()


def _uv(call: Call, words: list[str]) -> Val:
    texts = call.texts()
    if "run" in texts:
        rest = call.args[texts.index("run") + 1 :]
        opts = options(
            rest,
            short="p",
            long=(
                "--with",
                "--python",
                "--project",
                "--directory",
                "--env-file",
                "--extra",
                "--group",
                "--package",
                "--index",
                "--with-requirements",
                "--index-url",
            ),
            permute=False,
        )
        if opts.rest:
            if opts.rest[0].text.endswith(".py") or opts.rest[0].text == "-":
                return call.run([Val("python"), *opts.rest], "uv run")
            return call.run(opts.rest, "uv run")
    if words[:2] == ["tool", "run"]:
        rest = call.args[texts.index("run") + 1 :]
        return call.run(options(rest, permute=False).rest, "uv tool run")
    return call.result()


def _make(call: Call) -> Val:
    opts = options(call.args, short="CfIjlo", long=("--directory", "--file", "--makefile", "--eval", "--jobs"))
    for value in opts.every("--eval"):
        for line in value.text.split("\n"):
            if "$(shell " in line:
                call.code(Val(line.partition("$(shell ")[2].rpartition(")")[0]), "inline")
            elif ":" in line and ";" in line:
                call.code(Val(line.partition(";")[2]), "inline")
    if call.name == "make":
        shell = next((a for a in call.args if a.text.startswith("SHELL=")), None)
        if shell is not None and shell.text[6:].rpartition("/")[2] not in ("sh", "bash", "zsh", "dash"):
            call.code(Val(shell.text[6:]), "inline")
        _makefile(
            call,
            opts.value("-f", "--file", "--makefile"),
            opts.value("-C", "--directory"),
            [v.text for v in opts.rest if "=" not in v.text],
        )
    return call.result()


def _makefile(call: Call, file: Val | None, folder: Val | None, targets: list[str]) -> None:
    """The recipes that the named targets would run, as the file is on disk."""
    state = call.state
    if folder is not None:
        state = state.fork()
        place = call.place(folder)
        state.cwd = place.text if place.text.startswith("/") else None
    names = [file] if file is not None else [Val("Makefile"), Val("makefile"), Val("GNUmakefile")]
    text = None
    known: Val | None = None
    for name in names:
        if name.text in ("-", "/dev/stdin", "/dev/fd/0"):
            text = call.input.text
            break
        place = call.walker.place(name, state)
        known = call.walker.files.get(place.text)
        text = known.text if known is not None else call.script_text(place.text, "make")
        if text:
            break
    if not text or len(call.walker.via) > 6:
        return
    if text.strip() == HOLE:
        call.walker.note_origin(call.input if known is None else known, call.span, "stdin")
    recipes, order, needs = _recipes(text)
    wanted = targets or order[:1]
    seen: set[str] = set()
    while wanted and len(seen) < 24:
        target = wanted.pop(0)
        if target in seen:
            continue
        seen.add(target)
        wanted.extend(needs.get(target, ()))
        for line in recipes.get(target, ())[:64]:
            call.code(Val(_make_text(line)), "script", "make", state=state.fork())


def _recipes(text: str) -> tuple[dict[str, list[str]], list[str], dict[str, list[str]]]:
    recipes: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    order: list[str] = []
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith("\t"):
            for target in current:
                recipes.setdefault(target, []).append(line.strip().lstrip("@-+"))
            continue
        head, colon, rest = line.partition(":")
        if not colon or line.startswith(("#", " ")) or rest.startswith("=") or "=" in head:
            if line.strip():
                current = []
            continue
        current = head.split()
        body, semicolon, recipe = rest.partition(";")
        for target in current:
            needs.setdefault(target, []).extend(w for w in body.split() if "$" not in w and w != "|")
            if not target.startswith("."):
                order.append(target)
            if semicolon:
                recipes.setdefault(target, []).append(recipe.strip())
    return recipes, order, needs


def _make_text(line: str) -> str:
    """A recipe line as the shell gets it: `$$` is `$`, make's own variables are unknown."""
    out: list[str] = []
    i = 0
    while i < len(line):
        if line.startswith("$$", i):
            out.append("$")
            i += 2
        elif line[i] == "$" and i + 1 < len(line):
            if line[i + 1] in "({":
                end = line.find(")" if line[i + 1] == "(" else "}", i)
                name = line[i + 2 : end] if end > 0 else ""
                i = end + 1 if end > 0 else len(line)
                out.append(
                    {"RM": "rm -f", "MAKE": "make", "CURDIR": ".", "SHELL": "sh", "HOME": "${HOME}"}.get(name, HOLE)
                )
            else:
                out.append(HOLE)
                i += 2
        else:
            out.append(line[i])
            i += 1
    return "".join(out)


def _go(call: Call) -> Val:
    words = operands(call)
    if words[:1] == ["clean"] and any(t in ("-modcache", "-cache") for t in call.texts()):
        call.emit("run", ("clears-cache",))
    elif words[:1] == ["run"] and len(words) > 1 and "." in words[1].split("/")[0] and "@" in words[1]:
        call.emit("run", ("installs", "from-url"), detail=words[1])
    elif words[:1] == ["generate"]:
        pass
    return call.result()


def _just(call: Call) -> Val:
    from guardhook.analysis.programs import recipes

    recipes.just(call)
    return call.result()


def _task(call: Call) -> Val:
    from guardhook.analysis.programs import recipes

    recipes.task(call)
    return call.result()


def _cmake(call: Call) -> Val:
    texts = call.texts()
    if texts[:1] == ["-E"] and len(call.args) > 2:
        verb = texts[1]
        if verb in ("rm", "remove", "remove_directory"):
            for value in options(call.args[2:]).rest:
                call.change(
                    "delete",
                    value,
                    {"recursive", "force"} if verb == "remove_directory" or "-r" in texts or "-rf" in texts else set(),
                )
        elif verb in ("env", "chdir", "time"):
            return call.run(call.args[3 if verb == "chdir" else 2 :], "cmake -E")
    return call.result()


def _composer(call: Call) -> Val:
    words = operands(call)
    from guardhook.analysis.programs.recipes import scripts

    if words[:1] == ["exec"] and len(words) > 1:
        return call.run([Val(w) for w in words[1:]], "composer")
    named = words[1:2] if words[:1] in (["run-script"], ["run"]) else words[:1]
    text = scripts(call, "composer.json", "scripts", named[0]) if named else ""
    if text:
        return call.code(Val(text), "script", "composer run", state=call.state.fork())
    return _package(call)


def _repository(call: Call) -> Val:
    if call.args and call.args[0].text not in ("list", "--list", "finger", "-h"):
        call.emit("run", ("installs", "other-registry"), detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _rake(call: Call) -> Val:
    """Tasks of Rails are its commands too."""
    from guardhook.analysis.programs import index

    if any(word.startswith("db:") for word in operands(call)):
        return index.handler("databases", "rails")(Call(call.walker, "rails", call.args, call.state, call.stdin, call.env, call.span, call.network))  # fmt: skip
    return call.result()


def _rule_file(call: Call) -> Val:
    return call.result()


HANDLERS: dict[str, Handler] = {
    "": _package, "npx": _npx, "uvx": _npx, "pipx": _pipx, "apt-key": _repository, "add-apt-repository": _repository, "bunx": _npx, "pnpx": _npx, "dlx": _npx, "make": _make, "ninja": _rule_file, "go": _go, "just": _just, "task": _task, "go-task": _task, "rake": _rake, "cmake": _cmake, "composer": _composer,
    "bazel": _rule_file, "ant": _rule_file, "invoke": _rule_file, "xcodebuild": _rule_file, "swift": _rule_file,
}  # fmt: skip
