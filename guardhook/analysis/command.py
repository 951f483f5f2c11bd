"""From the words of a simple command to the handler of its program."""

from __future__ import annotations

from guardhook.analysis import guard
from guardhook.analysis.call import Call
from guardhook.analysis.glob import matches
from guardhook.analysis.nodes import HOLE, STAR
from guardhook.analysis.programs import index
from guardhook.analysis.values import MARKS, UNKNOWN, State, Val, activate, plain, unknown
from guardhook.core.text import fold, skeleton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler
    from guardhook.analysis.walk import Walker

FUNCTION_DEPTH = 12


def run(
    walker: Walker,
    words: list[Val],
    state: State,
    stdin: Val | None,
    env: dict[str, Val | list[Val]],
    span: tuple[int, int],
    network: str = "",
    *,
    functions: bool = True,
) -> Val:
    """Runs one command line of expanded words. env: assignments in front of it. functions: whether aliases and functions count."""
    first = words[0]
    text = first.text
    walker.spend(1 + (len(words) >> 4))
    if not MARKS.isdisjoint(text):
        return _dynamic(walker, words, state, stdin, env, span, network)
    alias = state.aliases.get(text) if functions else None
    if alias is not None and walker.depth < 32:
        rest = " ".join(quote(v.text) for v in words[1:])
        fork = state.fork()
        fork.aliases = {k: v for k, v in state.aliases.items() if k != text}
        return walker.run_text(alias + " " + rest, fork, stdin, span)
    body = state.functions.get(text) if functions else None
    if body is not None and walker.calls < FUNCTION_DEPTH:
        return _function(walker, body, words, state, stdin)
    name, look = program_name(text)
    call = Call(walker, name, words[1:], state, stdin, env, span, network)
    state.vars["_"] = words[-1]
    if first.taint & _FETCHED or walker.facts.marked:
        _marked(call, text)
    if look:
        call.emit("lookalike", detail=f"{plain(text)!r} reads as {name!r}", path=plain(text))
    flags = _run_flags(walker, call, text)
    call.emit("run", flags=flags, path=plain(text) if "/" in text else "")
    if env:
        guard.environment(call)
    guard.command(call, text)
    if "listing" in first.taint:
        call.emit("run_dynamic", ("substitution",), detail=first.raw or "a program that another command found")
    if walker.files and "/" not in text:
        _brought(call, text)
    if len(call.args) == 1 and call.args[0].text in _ASKING:
        return UNKNOWN
    for value in call.args:
        if not value.text.isascii() and mixed_script(value.text):
            call.emit(
                "lookalike",
                ("mixed-script",),
                detail=f"{value.shown!r} mixes scripts and reads as {skeleton(fold(value.text))!r}",
            )
    handler = index.find(name)
    if handler is not None and ("/" not in text or _is_binary(text) or name in _SCRIPTS):
        out = handler(call)
        if not all(a.text.isascii() for a in call.args):
            _lookalikes(call, handler)
        if out.text == HOLE and not out.origin:
            return Val(HOLE, out.taint, f"output of {name}")
        return out
    return _unknown_program(call, text)


def _lookalikes(call: Call, handler: Handler) -> None:
    """Runs the program again with its arguments folded: what only then shows up is there by look-alike characters."""
    walker = call.walker
    before = {(e.kind, e.flags, e.path_classes) for e in walker.effects}
    count = len(walker.effects)
    folded = [a if a.text.isascii() else Val(skeleton(fold(a.text)), a.taint, a.origin) for a in call.args]
    again = Call(walker, call.name, folded, call.state.fork(), call.stdin, {}, call.span, call.network)
    handler(again)
    fresh = [e for e in walker.effects[count:] if (e.kind, e.flags, e.path_classes) not in before and e.kind != "run"]
    del walker.effects[count:]
    for effect in fresh:
        effect.lookalike = True
        walker.effects.append(effect)
    if fresh:
        call.emit("lookalike", ("argument",), detail="an argument reads as another one: " + " ".join(again.argv)[:120])


# Asked for these alone, a program only prints.
_ASKING = frozenset(("--version", "--help", "-version", "--usage"))


def mixed_script(text: str) -> bool:
    """Whether a word of Latin letters has letters of another script that read as Latin ones."""
    if any(c.isspace() for c in text) or not any("a" <= c <= "z" for c in text.lower()):
        return False
    foreign = any(
        "\u0400" <= c <= "\u058f" or "\u13a0" <= c <= "\u13ff" or "\uab70" <= c <= "\uabbf" or "\ua4d0" <= c <= "\ua4ff"
        for c in text
    )
    return foreign and skeleton(fold(text)).isascii()


_FETCHED = frozenset(("network", "decoded"))
# Known by this name wherever they lie.
_SCRIPTS = frozenset(("manage.py", "artisan", "gradlew", "mvnw"))
_BINARIES = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/opt/", "/snap/bin/", "/nix/", "/home/linuxbrew/", "/run/current-system/")  # fmt: skip


def _is_binary(text: str) -> bool:
    return text.startswith(_BINARIES) or "/bin/" in text or "/.bin/" in text or not text.startswith((".", "/tmp/"))


def _run_flags(walker: Walker, call: Call, text: str) -> set[str]:
    flags = set()
    if walker.user:
        flags.add("as-root" if walker.user == "root" else "as-other")
    if walker.inside:
        flags.add(walker.inside)
    if call.network:
        flags.add("network-stream")
    return flags


def quote(text: str) -> str:
    """The text as one shell word again; marks stay what they are."""
    from guardhook.analysis.values import source

    if text and not any(c in _QUOTED for c in text):
        return text
    return "'" + source(text).replace("'", "'\\''") + "'" if HOLE not in text else '"' + source(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'  # fmt: skip


_QUOTED = frozenset(" \t\n;&|<>()'\"\\$`*?[]{}~#!\x01\x02\x03")


def program_name(text: str) -> tuple[str, bool]:
    """The base name that decides what is run, folded; and whether only folding look-alikes gave it."""
    base = text.rpartition("/")[2] or text
    if base.isascii():
        if base.isprintable() and (base in index.AREAS or base.islower()):
            name = base
        else:
            name = fold(base)
            if name != base and not base.isprintable():
                return _plain_name(name), True
            if name not in index.AREAS:
                name = base
        return _plain_name(name), False
    name = skeleton(fold(base))
    return _plain_name(name), True


def _plain_name(name: str) -> str:
    if name.endswith((".exe", ".cmd", ".bat")):
        name = name[:-4]
    return name


def _function(walker: Walker, body: object, words: list[Val], state: State, stdin: Val | None) -> Val:
    from guardhook.analysis.nodes import Node

    assert isinstance(body, Node)
    active = walker.active
    key = id(body)
    if active.get(key, 0) >= 2:
        return UNKNOWN  # recursion: a third round shows nothing that the second didn't
    keep = state.arguments
    state.arguments = words[1:]
    walker.calls += 1
    active[key] = active.get(key, 0) + 1
    try:
        return walker.node(body, state, stdin)
    finally:
        walker.calls -= 1
        active[key] -= 1
        state.arguments = keep


# Folders in which a shell looks for programs, as far as downloads are put there.
_PATH = ("/usr/local/bin/", "/usr/bin/", "/usr/local/sbin/", "/bin/", "/opt/homebrew/bin/")


def _brought(call: Call, text: str) -> None:
    """A bare name that this command has put where programs are looked for."""
    walker = call.walker
    for folder in (*_PATH, walker.home + "/.local/bin/", walker.home + "/bin/", "/root/.local/bin/"):
        known = walker.files.get(folder + text)
        if known is not None:
            walker.note_origin(known, call.span, "script")
            return


def _marked(call: Call, text: str) -> None:
    value = Val(text)
    place = call.place(value)
    mark = call.walker.facts.marked.get(place.text)
    if mark == "network":
        call.emit("run_fetched", ("script",), detail=place.path)
    elif mark == "decoded":
        call.emit("run_decoded", ("script",), detail=place.path)


def _unknown_program(call: Call, text: str) -> Val:
    """A program that no table knows: a script in this command or on disk is judged by its content."""
    if "/" in text and call.walker.files:
        known = call.walker.files.get(call.place(text).text)
        copied = known.origin.removeprefix("content of ") if known is not None and known.text == HOLE else ""
        if copied.startswith(_BINARIES) and copied.rpartition("/")[2] in index.AREAS:
            return call.run([Val(copied), *call.args], "copy")
    if "/" in text or call.walker.files:
        script(call, Val(text), call.args)
    return call.result()


_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")


def script(call: Call, path: Val, args: list[Val], interpreter: str = "") -> Val | None:
    """Runs the script at the path as its content says. None when the content isn't known."""
    walker = call.walker
    place = call.place(path)
    known = walker.files.get(place.text)
    if known is None and place.text in ("/dev/stdin", "/proc/self/fd/0"):
        known = call.input
    if known is None and place.text.startswith(_DESCRIPTORS):
        stream = call.state.vars.get("fd:" + place.text.rpartition("/")[2])
        known = stream if isinstance(stream, Val) else None
    if known is None and walker.files:
        walker.note_origin(_unpacked(walker, place.text), call.span, "script")
    if known is not None:
        walker.note_origin(known, call.span, "script")
        text: str | None = known.text if known.text.strip(HOLE + "\n ") else None
        if text is None and HOLE in known.text and interpreter == "sh" and not known.taint and not _copied(known):
            # Written in this command, with nobody knows what: the file on disk is another one by then.
            call.emit("run_dynamic", ("script",), detail=f"{path.shown} holds what another command printed")
            return UNKNOWN
    else:
        mark = walker.facts.marked.get(place.text)
        if mark:
            call.emit("run_fetched" if mark == "network" else "run_decoded", ("script",), detail=place.path)
        text = None
    if text is None and HOLE not in place.text and STAR not in place.text and walker.inside != "container":
        where = _copied(known) or place.text
        text = call.script_text(where, interpreter)
    if text is None:
        return None
    language = interpreter or language_of(text)
    if language == "binary":
        return None
    keep = walker.via
    walker.via = (*keep, "script")
    try:
        if language == "sh":
            inner = call.state.fork()
            inner.arguments = args
            inner.name = path.text
            return walker.run_text(text.replace("\0", ""), inner, call.stdin, call.span)
        from guardhook.analysis import inline

        return inline.scan_file(call, text, language)
    finally:
        walker.via = keep


def _copied(known: Val | None) -> str:
    """The file whose unchanged content was copied, moved or linked to another place in this command."""
    if known is None or known.text != HOLE or not known.origin.startswith("content of /"):
        return ""
    return known.origin.removeprefix("content of ")


def _unpacked(walker: Walker, path: str) -> Val:
    """What flowed into the folder that the path lies in, when an archive was unpacked there."""
    folder = path
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        found = walker.files.get(folder + "/…")
        if found is not None:
            return found
    return UNKNOWN


def language_of(text: str) -> str:
    """Which language a script is in, by its first line; `binary` for what is no text."""
    if "\0" in text[:1024] or text.startswith(("\x7fELF", "MZ", "\ufffd\ufffd\ufffd\ufffd")):
        return "binary"
    if not text.startswith("#!"):
        return "sh"
    line = text[2:].split("\n", 1)[0].strip()
    words = line.split()
    if not words:
        return "sh"
    name = words[0].rpartition("/")[2]
    if name == "env":
        rest = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
        name = rest[0].rpartition("/")[2] if rest else "sh"
    return index.language(name) or "binary"


def _dynamic(walker: Walker, words: list[Val], state: State, stdin: Val | None, env: dict[str, Val | list[Val]], span: tuple[int, int], network: str) -> Val:  # fmt: skip
    """A program whose name has a hole or a glob: an effect of its own, and every reading that can be told is walked."""
    first, rest = words[0], words[1:]
    text = first.text
    holes = text.replace(HOLE, "")
    call = Call(walker, plain(holes.rpartition("/")[2]) or "…", rest, state, stdin, env, span, network)
    walker.note_origin(first, span, "program")
    tail = text.rpartition("/")[2]
    if tail and MARKS.isdisjoint(tail) and "/" in text and (HOLE in text):
        # `"$VENV/bin/python"`: where it lies is unknown, what it is isn't.
        return run(
            walker,
            [Val(_relative(text), first.taint, first.origin, first.raw), *rest],
            state,
            stdin,
            env,
            span,
            network,
        )
    flags: set[str] = set()
    candidates: list[str] = []
    if STAR in text or MARKS & set(text) - {HOLE}:
        flags.add("glob")
        candidates = [n for n in index.DANGEROUS if matches(activate(tail), n)][:8]
    if HOLE in text:
        flags.add(
            "partial" if tail.strip(HOLE) else ("substitution" if "$(" in first.raw or "`" in first.raw else "variable")
        )
        if tail.strip(HOLE):
            candidates += [n for n in index.DANGEROUS if n not in candidates and matches(tail, n)][
                : 8 - len(candidates)
            ]
    if first.raw.strip('"${}') in _TOOL_VARIABLES:
        flags.add("known-variable")
    if first.origin.startswith("output of "):
        flags.add("tool-output")
    if _looks_destructive(call):
        flags.add("destructive-arguments")
    call.emit("run_dynamic", flags, detail=first.raw or plain(text), program="")
    for name in candidates:
        _try(walker, [Val(name), *rest], state, stdin, env, span, network)
    # Unset, an unquoted variable leaves no word at all: then the next one is the program.
    unset = "variable" in flags and rest and not first.raw.startswith('"')
    if unset and MARKS.isdisjoint(rest[0].text) and not rest[0].text.startswith("-"):
        return run(walker, rest, state, stdin, env, span, network)
    return unknown(first, *rest, *([stdin] if stdin is not None else ()))


# Variables that by custom name a tool.
_TOOL_VARIABLES = frozenset((
    "EDITOR", "VISUAL", "PAGER", "BROWSER", "CC", "CXX", "CPP", "LD", "AR", "MAKE", "PYTHON", "PYTHON3", "PYTHON_BIN", "PIP", "NODE", "NPM", "YARN", "PNPM", "RUBY", "GO", "CARGO", "JAVA",
    "JAVACMD", "DOCKER", "DOCKER_COMPOSE", "COMPOSE", "KUBECTL", "TERRAFORM", "PERL", "PHP", "CMAKE", "PYTEST", "GIT", "MVN", "GRADLE", "SUDO", "RUNNER", "UV", "BUN", "DENO",
))  # fmt: skip


def _relative(text: str) -> str:
    return "/bin/" + text.rpartition("/")[2]


def _try(walker: Walker, words: list[Val], state: State, stdin: Val | None, env: dict[str, Val | list[Val]], span: tuple[int, int], network: str) -> None:  # fmt: skip
    keep = walker.via
    walker.via = (*keep, "guessed")
    try:
        run(walker, words, state.fork(), stdin, env, span, network)
    finally:
        walker.via = keep


def _looks_destructive(call: Call) -> bool:
    """Arguments as `rm -rf /` has them, whatever the program."""
    forced = any(
        a.text.startswith("-")
        and not a.text.startswith("--")
        and set(a.text[1:]) <= set("rRfvid")
        and ("r" in a.text.lower())
        for a in call.args
    )
    if not forced and "--recursive" not in call.texts():
        return False
    return any(
        call.place(a).classes & {"root", "system", "home", "home_child"} or "whole-cwd" in call.place(a).flags
        for a in call.args
        if not a.text.startswith("-")
    )
