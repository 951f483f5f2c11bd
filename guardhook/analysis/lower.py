"""Tool calls of every kind, lowered to effects."""

from __future__ import annotations

from guardhook.analysis import links
from guardhook.analysis.hosts import reads_as
from guardhook.analysis.nodes import HOLE, Unparsable
from guardhook.analysis.paths import locate
from guardhook.analysis.targets import note_write
from guardhook.analysis.values import MARKS, State, Val
from guardhook.analysis.walk import Walker
from guardhook.core import limits
from guardhook.core.effect import Effect
from guardhook.core.event import Event
from guardhook.core.text import fold, invisible, skeleton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.facts import Facts

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_OPS = {
    "read": "read",
    "write": "write",
    "edit": "write",
    "delete": "delete",
    "move_from": "move",
    "move_to": "write",
    "move": "move",
}
# Argument keys of MCP tools, folded: what their values are.
_PATH_KEYS = frozenset((
    "path", "file_path", "filepath", "file", "filename", "file_name", "target", "target_path", "targetpath", "destination", "dest", "dst", "source", "src", "source_path", "destination_path",
    "directory", "dir", "folder", "uri", "relative_path", "relativepath", "absolute_path", "absolutepath", "notebook_path", "paths", "files", "old_path", "new_path", "from", "to", "output", "output_path", "outputpath", "input_path", "root", "repo_path", "workdir",
))  # fmt: skip
_COMMAND_KEYS = frozenset(
    ("command", "cmd", "script", "shell_command", "command_line", "commandline", "bash", "shell", "exec", "commands")
)
_URL_KEYS = frozenset(("url", "uri", "urls", "endpoint", "href", "link", "webhook", "webhook_url", "base_url"))
_SQL_KEYS = frozenset(("sql", "query", "statement", "queries"))
_CODE_KEYS = {"python_code": "python", "python": "python", "javascript": "node", "js": "node"}
_SPACES = " \t\r\n"
_BROUGHT = 64  # files of one call that are remembered as fetched or decoded


def analyse(event: Event, facts: Facts) -> list[Effect]:
    """Everything that the call would do. Never raises: what can't be analysed is an `unverified` effect."""
    walker = Walker(facts)
    for path, kind in facts.marked.items():
        walker.files[path] = Val(HOLE, frozenset((kind,)), "an earlier call of this session")
    try:
        _event(walker, event)
    except Unparsable as error:
        walker.effects.append(
            Effect("unverified", detail=error.why, flags=frozenset(("cap",) if error.cap else ("syntax",)))
        )
    except RecursionError:
        walker.effects.append(Effect("unverified", detail="nested too deep", flags=frozenset(("cap",))))
    except Exception as error:  # the gate must get an answer whatever happens in here
        walker.effects.append(
            Effect("unverified", detail=f"the analyser failed: {type(error).__name__}", flags=frozenset(("internal",)))
        )
    try:
        links.follow(walker)
    except Exception as error:
        walker.emit("unverified", flags=frozenset(("internal",)), detail=f"links: {type(error).__name__}")
    facts.brought = _brought(walker)
    return distinct(walker.effects)


def _brought(walker: Walker) -> dict[str, str]:
    """Files that the call leaves on disk with content from the network or out of a decoder, bounded."""
    found: dict[str, str] = {}
    for path, value in walker.files.items():
        for kind in ("network", "decoded"):
            if (
                kind in value.taint
                and path[:1] == "/"
                and not path.startswith(("/dev/", "/proc/"))
                and MARKS.isdisjoint(path)
            ):
                found[path] = kind
                break
        if len(found) >= _BROUGHT:
            break
    return found


def distinct(effects: list[Effect]) -> list[Effect]:
    """The effects without repetitions, in order: loops and alternatives are walked several times."""
    if len(effects) < 2:
        return effects
    seen: set[tuple[object, ...]] = set()
    out: list[Effect] = []
    for e in effects:
        key = (e.kind, e.program, e.argv if e.kind == "run" else (), e.path, e.host, e.git, e.flags, e.detail, e.via)
        if key not in seen:
            seen.add(key)
            out.append(e)
    return out


def _event(walker: Walker, event: Event) -> None:
    cwd = event.cwd
    if cwd is not None and not cwd.startswith("/"):
        cwd = None
    if walker.facts.project_root is None and cwd is not None:
        walker.facts.project_root = cwd.rstrip("/") or "/"
    state = State(cwd.rstrip("/") or "/" if cwd else None)
    if event.kind == "shell" or event.commands:
        for command in event.commands:
            _command(walker, command, state if len(event.commands) == 1 else state.fork(), event.shell)
    for target in event.files:
        note_text(walker, target.path, "path")
        file_effect(walker, target.op, target.path, target.content, state)
    for url in event.urls:
        note_text(walker, url, "url")
        _url(walker, url)
    if event.kind == "mcp" and isinstance(event.input, dict):
        _mcp(walker, event, state)


def _command(walker: Walker, text: str, state: State, shell: str) -> None:
    if len(text) > limits.COMMAND_BYTES or len(text.encode("utf-8", "surrogatepass")) > limits.COMMAND_BYTES:
        raise Unparsable(f"the command is longer than {limits.COMMAND_BYTES // 1024} KiB", cap=True)
    note_text(walker, text, "command")
    walker.base = None
    if shell == "powershell":
        from guardhook.analysis.powershell import walk

        _note_printed(walker, walk(walker, clean(text), state))
        return
    shell_command(walker, clean(text), state)


def shell_command(walker: Walker, text: str, state: State) -> None:
    """Parses and walks a command; when that fails, what can be read of it is still walked, line by line."""
    from guardhook.analysis.parser import parse

    walker.text = text
    try:
        tree = parse(text, 0, walker.budget)
    except Unparsable as error:
        walker.emit(
            "unverified",
            detail=error.why,
            span=(error.at, len(text)),
            flags=frozenset(("cap",) if error.cap else ("syntax",)),
        )
        return
    out = walker.seq(tree, state, None)
    for value, then, span, via in walker.traps:
        walker.via = via
        walker.run_value(value, then.fork(), None, span, "trap")
    walker.traps.clear()
    walker.via = ()
    _note_printed(walker, out)


def _note_printed(walker: Walker, out: Val) -> None:
    """What the whole command prints goes to whoever gave it: credentials of the environment shouldn't."""
    if {"echoed", "env-secret"} <= out.taint:
        walker.emit("read", flags=frozenset(("environment", "secret-variable")), detail=f"prints {out.origin}")


def clean(text: str) -> str:
    """Without the characters that mark things inside the walker: a shell drops NUL, the others mean nothing to it."""
    if "\0" in text:
        text = text.replace("\0", "")
    for mark in "\x01\x02\x03":
        if mark in text:
            text = text.replace(mark, "\ufffd")
    return text


def note_text(walker: Walker, text: str, where: str) -> None:
    """Characters that a reader doesn't see, or that change the order in which he sees the others."""
    hidden = invisible(text)
    if not hidden:
        return
    flags = {where}
    names = []
    for char in hidden:
        code = ord(char)
        if char in _BIDI:
            flags.add("bidi")
        elif 0xE0000 <= code <= 0xE0FFF:
            flags.add("tag")
        elif code == 0:
            flags.add("nul")
        elif code < 0x20 or 0x7F <= code < 0xA0:
            if char == "\x1b":
                flags.add("escape")
            flags.add("control")
        elif 0xFE00 <= code <= 0xFE0F or code == 0x200D:
            flags.add("variation" if code != 0x200D else "joiner")
        else:
            flags.add("zero-width")
        names.append(f"U+{code:04X}")
    at = min(text.find(c) for c in hidden)
    walker.emit("invisible", flags=frozenset(flags), detail=", ".join(names[:8]), span=(at, at + 1))


def file_effect(walker: Walker, op: str, path: str, content: str | None, state: State) -> None:
    """A path that a tool call names outright."""
    kind = _OPS.get(op, "write")
    place = locate(clean(path), state.cwd if isinstance(state.cwd, str) else None, walker.facts)
    flags = place.flags | {"tool", op}
    if kind == "read":
        walker.emit("read", path=place.path, path_classes=place.classes, flags=flags)
        return
    note_write(walker, kind, place, flags, None)
    _lookalike_path(walker, place.path)
    if content and kind == "write":
        _content(walker, place.path, content)


def _lookalike_path(walker: Walker, path: str) -> None:
    """A path that reads as a guarded one although it is spelt otherwise."""
    if path.isascii():
        return
    folded = skeleton(fold(path))
    if folded == path:
        return
    other = locate(folded, "/", walker.facts)
    if other.classes & {"guard", "secret", "system"}:
        walker.emit(
            "lookalike",
            path=path,
            path_classes=other.classes,
            detail=f"{path!r} reads as {other.path!r}",
            flags=frozenset(("path",)),
        )


def _content(walker: Walker, path: str, content: str) -> None:
    """What a written text says about itself: hidden characters, settings that switch hooks off."""
    hidden = invisible(content)
    if any(c in _BIDI or 0xE0000 <= ord(c) <= 0xE0FFF for c in hidden):
        bad = [c for c in hidden if c in _BIDI or 0xE0000 <= ord(c) <= 0xE0FFF]
        flags = {"content"} | ({"bidi"} if any(c in _BIDI for c in bad) else {"tag"})
        walker.emit(
            "invisible", flags=frozenset(flags), path=path, detail=", ".join(f"U+{ord(c):04X}" for c in bad[:8])
        )


def _url(walker: Walker, url: str) -> None:
    from guardhook.analysis.programs.network import host_flags, host_of

    host = host_of(url)
    if not host or " " in host:
        return
    if url.startswith("file:"):
        file_effect(walker, "read", url.removeprefix("file://").removeprefix("file:"), None, State("/"))
        return
    walker.emit("connect", host=host, flags=frozenset(host_flags(host, url) | {"tool"}), detail=url[:160])
    plain = reads_as(host)
    if plain:
        walker.emit("lookalike", host=host, detail=f"{host!r} reads as {plain!r}", flags=frozenset(("host",)))


# --- MCP


def _mcp(walker: Walker, event: Event, state: State) -> None:
    name = fold(event.mcp_tool or event.tool or "")
    op = _mcp_operation(name)
    arguments = event.input
    seen = {f.path for f in event.files}
    commands = set(event.commands)
    if "git" in name and isinstance(arguments, dict):
        _git_tool(walker, name, arguments, state)
    _mcp_arguments(walker, arguments, name, op, state, seen, commands, set(event.urls), 0)


def _git_tool(walker: Walker, name: str, arguments: dict[object, object], state: State) -> None:
    """`git_push {"force": true}`: tools named after git's commands, whose arguments are its options."""
    _, found, verb = name.replace("-", "_").rpartition("git_")
    if not found or verb not in _GIT_TOOLS:
        return
    from guardhook.analysis.command import run

    words = ["git", verb.replace("_", "-")]
    named: list[str] = []
    for key, item in arguments.items():
        option = str(key).lower().replace("_", "-")
        if item is True and option.isascii() and option.replace("-", "").isalpha():
            words.append("--" + option.replace("forcewithlease", "force-with-lease"))
        elif option in ("mode", "action", "operation") and isinstance(item, str) and item.isalpha():
            words.append(item if verb == "stash" else "--" + item)
        elif option in ("remote", "branch", "ref", "target", "commit", "files", "paths", "branch-name", "name"):
            items = item if isinstance(item, list) else [item]
            named.extend(i for i in items[:64] if isinstance(i, str) and not i.startswith("-"))
    run(walker, [Val(w) for w in (*words, *named)], state.fork(), None, {}, (0, 0))


_GIT_TOOLS = frozenset(
    ("reset", "push", "clean", "checkout", "restore", "branch", "stash", "rebase", "commit", "worktree", "rm")
)


def _mcp_operation(name: str) -> str:
    words = name.replace("-", "_").replace(".", "_").replace("/", "_").split("_")
    words = [w for piece in words for w in _camel(piece)]
    if any(w in ("delete", "remove", "rm", "unlink", "trash", "rmdir", "destroy", "purge") for w in words):
        return "delete"
    if any(w in ("move", "rename", "mv") for w in words):
        return "move"
    if any(
        w
        in (
            "write",
            "edit",
            "create",
            "update",
            "append",
            "save",
            "put",
            "patch",
            "insert",
            "replace",
            "modify",
            "copy",
            "mkdir",
            "set",
            "upload",
            "store",
            "touch",
            "apply",
            "add",
            "overwrite",
            "download",
        )
        for w in words
    ):
        return "write"
    return "read"


def _camel(word: str) -> list[str]:
    for verb in ("delete", "remove", "write", "move", "rename", "edit", "create", "update", "append", "read", "save"):
        if word.startswith(verb) and word != verb:
            return [verb, word[len(verb) :]]
    return [word]


def _mcp_arguments(
    walker: Walker,
    value: object,
    tool: str,
    op: str,
    state: State,
    seen: set[str],
    commands: set[str],
    urls: set[str],
    depth: int,
) -> None:
    if depth > 6 or not isinstance(value, dict):
        if isinstance(value, list) and depth <= 6:
            for item in value[:64]:
                _mcp_arguments(walker, item, tool, op, state, seen, commands, urls, depth + 1)
        return
    for raw, item in value.items():
        key = str(raw).lower().replace("-", "_")
        texts = (
            [item]
            if isinstance(item, str)
            else [i for i in item if isinstance(i, str)][:64]
            if isinstance(item, list)
            else []
        )
        if key in _COMMAND_KEYS and texts:
            joined = [" ".join(texts)] if isinstance(item, list) and key not in ("commands",) else texts
            arguments = value.get("args") or value.get("arguments")
            if isinstance(arguments, list) and isinstance(item, str):
                from guardhook.analysis.command import quote

                joined = [item + " " + " ".join(quote(a) for a in arguments if isinstance(a, str))]
            if not _operation_word(texts[0], value):
                for text in joined:
                    if text not in commands:
                        _command(walker, text, state.fork(), "sh")
                continue
        if key in _URL_KEYS and texts:
            for text in texts:
                if "://" in text and text not in urls and not text.startswith("file:"):
                    _url(walker, text)
        if key in _PATH_KEYS and texts:
            for text in texts:
                if text in seen or ("://" in text and not text.startswith("file:")) or "\n" in text or not text:
                    continue
                if key in ("from", "to", "source", "target", "root", "output") and "/" not in text and "." not in text:
                    continue
                kind = op
                if op == "move":
                    kind = (
                        "move_from"
                        if key in ("source", "src", "source_path", "from", "old_path", "path")
                        else "move_to"
                    )
                elif op == "write" and key in ("source", "src", "source_path", "input_path", "from"):
                    kind = "read"
                note_text(walker, text, "path")
                file_effect(
                    walker, kind, text, value.get("content") if isinstance(value.get("content"), str) else None, state
                )
        if key in _SQL_KEYS and texts and (_database_tool(tool) or _sql_like(texts[0])):
            from guardhook.analysis.programs.databases import statements

            for text in texts:
                statements(walker, text, "mcp", None)
        code = _CODE_KEYS.get(key) or (_language_of(value) if key == "code" else "")
        if code and texts:
            from guardhook.analysis.inline import scan_text

            for text in texts:
                scan_text(walker, clean(text), code, state)
        if isinstance(item, (dict, list)):
            _mcp_arguments(walker, item, tool, op, state, seen, commands, urls, depth + 1)


def _operation_word(text: str, arguments: dict[str, object]) -> bool:
    """`command` is an operation of an editor tool, not a shell line."""
    return text in (
        "view",
        "create",
        "str_replace",
        "insert",
        "undo_edit",
        "delete",
        "read",
        "write",
        "list",
        "append",
    ) and bool(set(arguments) & {"path", "file_path"})


def _database_tool(tool: str) -> bool:
    return any(
        w in tool
        for w in ("sql", "query", "database", "db", "postgres", "mysql", "sqlite", "execute", "bigquery", "snowflake")
    )


def _sql_like(text: str) -> bool:
    first = text.split(None, 1)[0].lower() if text.split() else ""
    return first in ("select", "insert", "update", "delete", "drop", "truncate", "alter", "create", "grant", "with")


def _language_of(arguments: dict[str, object]) -> str:
    named = arguments.get("language") or arguments.get("lang")
    if isinstance(named, str):
        from guardhook.analysis.programs.index import language

        return language(named.lower()) or {"javascript": "node", "js": "node", "typescript": "node", "shell": "sh"}.get(
            named.lower(), "python"
        )
    return "python"


# --- patches


def patch_targets(text: str) -> list[tuple[str, str]]:
    """(effect kind, path) of every file that an apply_patch text names, in order."""
    out: list[tuple[str, str]] = []
    for line in text.split("\n"):
        line = line.strip(_SPACES)
        if not line.startswith("*** "):
            continue
        for head, kind in (
            ("*** Add File:", "write"),
            ("*** Update File:", "write"),
            ("*** Delete File:", "delete"),
            ("*** Move to:", "write"),
        ):
            if line.startswith(head):
                path = line[len(head) :].strip(_SPACES)
                if head == "*** Move to:" and out:
                    out[-1] = ("move", out[-1][1])
                out.append((kind, path))
                break
    return out
