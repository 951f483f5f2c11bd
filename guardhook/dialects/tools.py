"""What a tool call is about, whatever the harness calls its tools: kind, commands, files, addresses.

The kind comes from the tool's name alone. `commands` holds text for a shell; a call of another kind has some when its
input carries a shell line under a well-known key (an MCP server that runs commands): its kind stays what it is, but
what it would run can be judged like any other command. The same holds for files and addresses of MCP and unknown tools: they are
collected from well-known keys, and what happens to the file is guessed from the tool's name, reading being the guess
where neither the name nor a new text says otherwise.
"""

from __future__ import annotations

from guardhook.core.event import Event, FileTarget
from guardhook.core.jsontext import PayloadError, loads_text
from guardhook.dialects import names

_TYPED_KEYS = ("chars", "input", "input_text", "text", "data", "stdin", "command")
_COMMAND_KEYS = (
    "command", "commands", "cmd", "command_line", "commandLine", "CommandLine", "shell_command", "shellCommand",
)  # fmt: skip
_DIRECTORY_KEYS = ("cwd", "dir_path", "directory", "workdir", "working_directory", "working_dir", "Cwd")
# Keys of the shell tool's input besides the command that the client is known to obey. What else stands in the input was put there by an
# agent: it changes nothing about what runs, so it must not be what is judged. Dialects that are not listed may obey any of the keys.
_OBEYED = {"claude-code": (), "codex": (), "gemini": ("dir_path",), "qwen-code": ("directory",)}
_NOT_IN_NAMES = frozenset(" \t\n;|&<>$`")
_PATCH_KEYS = ("command", "input", "patch", "patch_text", "patchText", "diff")
_PATH_KEYS = (
    "file_path", "path", "filePath", "filepath", "file", "filename", "paths", "file_paths", "filePaths",
    "notebook_path", "target_file", "TargetFile", "AbsolutePath", "absolute_path", "SearchPath", "SearchDirectory",
    "DirectoryPath", "dir_path", "directory", "dir", "folder",
)  # fmt: skip
_CONTENT_KEYS = (
    "content", "file_text", "file_content", "contents", "new_string", "new_str", "newString", "new_text", "newText",
    "new_source", "code", "insert_text", "CodeContent", "ReplacementContent", "text", "diff",
)  # fmt: skip
_ACTION_KEYS = ("action", "operation", "op", "verb")
_NESTED_KEYS = ("edits", "replacements", "operations", "files", "ReplacementChunks", "requests")
_URL_KEYS = ("url", "uri", "Url", "urls", "requests", "URL")
# No address is longer, nor is its scheme; no tool's name is.
_ADDRESS_CHARS = 4096
_SCHEME_CHARS = 32
_NAME_CHARS = 4096
_SOURCE_KEYS = ("source", "src", "from", "old_path", "oldPath", "source_path", "sourcePath")
_WRITTEN_TO = frozenset(("output", "out", "dest", "destination", "save", "target", "to"))
_TARGET_KEYS = ("destination", "dest", "dst", "to", "new_path", "newPath", "destination_path", "target", "targetPath")
_KNOWN_KEYS = frozenset((*_PATH_KEYS, *_CONTENT_KEYS, *_SOURCE_KEYS, *_TARGET_KEYS))


def fill(event: Event) -> None:
    """Sets kind, input, commands, shell, files, urls, mcp_server, mcp_tool and undecidable from event.tool and event.input."""
    name = event.tool
    if name is None or not name.strip():
        event.kind = "other"
        event.undecidable = "the payload names no tool"
        return
    if len(name) > _NAME_CHARS:
        event.kind = "other"
        event.undecidable = f"the tool's name is longer than {_NAME_CHARS} characters"
        return
    lower = name.strip().lower()
    if not name.isascii():
        from guardhook.core.text import fold_name

        lower = fold_name(name).strip()
    event.input = _unnest(event, event.input, lower)
    server_tool = _mcp(event, name, lower)
    if server_tool is not None:
        event.kind = "mcp"
        event.mcp_server, event.mcp_tool = server_tool[0] or None, server_tool[1] or None
    else:
        event.kind = names.kind_of(lower)
    for prefix in names.PREFIXES:
        lower = lower.removeprefix(prefix)
    if event.undecidable:
        return
    if event.kind == "shell":
        _shell(event, lower)
    elif event.kind in ("file_write", "file_edit", "file_read"):
        _file(event, lower)
    elif event.kind == "search":
        _search(event, lower)
    elif event.kind == "web_fetch":
        _web(event)
    else:
        _open(event)


# --- the input itself ----------------------------------------------------------------------------------------


def _unnest(event: Event, value: object, lower: str) -> object:
    """The input with JSON inside a string parsed. A patch may be plain text."""
    if not isinstance(value, str) or (lower in names.PATCHES and not value.lstrip().startswith("{")):
        return value
    if not value.strip():
        return {}
    try:
        return loads_text(value)
    except PayloadError:
        event.undecidable = "the tool's input is a text that is not JSON"
        return value


def _mcp(event: Event, name: str, lower: str) -> tuple[str, str] | None:
    """Server and tool when this is a call to an MCP server: what the harness says about it, else the form of the name."""
    context = event.payload.get("mcp_context")
    if isinstance(context, dict):
        return _str(context.get("server_name")), _str(context.get("tool_name"))
    found = names.mcp_name(name)
    source = event.payload.get("mcp_server")
    if isinstance(source, dict) and _str(source.get("name")):
        server = _str(source.get("name"))
        return server, found[1] if found is not None else name
    if found is None and lower in ("use_mcp_tool", "use_tool", "mcp_tool_use"):
        return _wrapped(event)
    if found is None and event.payload.get("is_mcp_tool") is True:
        return "", name
    if (
        found is None
        and event.dialect in ("copilot", "copilot-pascal")
        and "-" in name
        and names.kind_of(name) == "other"
    ):
        server, _, tool = name.partition("-")
        return server, tool
    return found


def _wrapped(event: Event) -> tuple[str, str]:
    """A tool that passes its call on to an MCP server: its arguments are the input to look at."""
    given = event.input
    if not isinstance(given, dict):
        event.undecidable = "the input does not say which MCP tool is called"
        return "", ""
    server = _first(given, ("server_name", "mcp_server_name", "server"))
    tool = _first(given, ("tool_name", "mcp_tool_name", "tool", "name"))
    return server, tool


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _first(given: dict[str, object], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


# --- shell -----------------------------------------------------------------------------------------------------


def quote(word: str) -> str:
    """One word for a POSIX shell."""
    plain = word.replace("-", "").replace("_", "").replace("/", "").replace(".", "")
    if word and plain.isascii() and (plain.isalnum() or not plain):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _shell(event: Event, lower: str) -> None:
    given = event.input
    if not isinstance(given, dict):
        event.undecidable = "a shell tool was called without a command"
        return
    if lower in ("powershell", "pwsh", "execute_pwsh", "write_powershell"):
        event.shell = "powershell"
    named = lower in names.TYPED
    typed = named or given.get("is_input") is True
    if lower == "execute_code":
        # The language is Python; the analyser knows an interpreter with a program on its command line.
        codes = [code for key in ("code", "command") if isinstance(code := given.get(key), str) and code.strip()]
        if codes:
            event.commands = ["python3 -c " + quote(code) for code in codes]
            return
    seen = False
    for key in dict.fromkeys((*_TYPED_KEYS, *_COMMAND_KEYS)) if typed else _COMMAND_KEYS:
        if key in given and given[key] is not None:
            commands = _commands(key, given[key])
            if commands is None:
                event.undecidable = f"the shell tool's {key!r} is not a text"
                return
            seen = True
            event.commands.extend(commands)
    if not typed and not event.commands:
        # `{"script": …}` and `{"code": …}` are seen in forks.
        for key in ("script", "code"):
            value = given.get(key)
            if isinstance(value, str) and value.strip():
                event.commands.append(value)
    _arguments(event, given)
    if not event.commands and not (typed and seen):
        event.undecidable = "a shell tool was called without a command"
    if not named and event.undecidable is None:
        _directory(event, given)


def _commands(key: str, value: object) -> list[str] | None:
    """Shell text from a command in any of the forms that harnesses use, None when there is no sense in it.

    A list under `commands` holds commands, each a text or {command, args}; under any other key it is one argument
    vector and joined with quotes, and commands as well where its first word can't be a program's name.
    """
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, dict):
        return _one(value)
    if not isinstance(value, list):
        return None
    if key != "commands" and all(isinstance(v, str) for v in value):
        words = [v for v in value if isinstance(v, str)]
        vector = [" ".join(quote(word) for word in words)] if words else []
        # No program has a name like this: it is a line for a shell, and so may be what follows.
        lines = [word for word in words if word.strip()] if words and set(words[0]) & _NOT_IN_NAMES else []
        return vector + lines
    found: list[str] = []
    for item in value:
        one = _one(item) if isinstance(item, dict) else [item] if isinstance(item, str) else None
        if one is None:
            return None
        found.extend(c for c in one if c.strip())
    return found


def _one(item: dict[str, object]) -> list[str] | None:
    """Cline's {command, args}: a program and its arguments."""
    command = item.get("command", item.get("cmd"))
    if not isinstance(command, str) or not command.strip():
        return None
    args = item.get("args")
    if args is None:
        return [command]
    if not isinstance(args, list) or not all(isinstance(a, str) for a in args):
        return None
    return [" ".join((command, *(quote(a) for a in args if isinstance(a, str))))]


def _arguments(event: Event, given: dict[str, object]) -> None:
    """`args` beside a single command belongs to it, as far as the client knows: what it may ignore is judged without as well."""
    args = given.get("args")
    if args is None or len(event.commands) != 1 or not isinstance(given.get("command"), str):
        return
    alone = event.commands[0]
    if isinstance(args, list) and all(isinstance(a, str) for a in args):
        event.commands[0] = " ".join((alone, *(quote(a) for a in args if isinstance(a, str))))
    elif isinstance(args, str):
        event.commands[0] += " " + args
    else:
        event.undecidable = "the shell tool's 'args' is not a list of texts"
        return
    # A bare program name is a program with its arguments apart; a line with blanks in it may be all that runs.
    if event.dialect in _OBEYED or len(alone.split()) > 1:
        event.commands.append(alone)


def _directory(event: Event, given: dict[str, object]) -> None:
    """A directory of the command's own is spelled out as a change of directory, so that relative paths mean what they will.

    Where the client may obey another key, or none, the command is judged in each of the directories.
    """
    obeyed = _OBEYED.get(event.dialect)
    changes: dict[str, None] = {}
    believed: set[str] = set()
    for key in _DIRECTORY_KEYS:
        value = given.get(key)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            event.undecidable = f"the shell tool's {key!r} is not a text"
            return
        if obeyed is None or key in obeyed:
            believed.add(value)
        path = local(value)
        if path in (event.cwd, "."):
            path = ""
        changes[path] = None
    if not changes:
        return
    if len(changes) > 1 or len(believed) != 1:
        changes = {"": None, **changes}
    commands = event.commands
    event.commands = [_change(path, event.shell) + command for path in changes for command in commands]


def _change(path: str, shell: str) -> str:
    if not path:
        return ""
    if shell == "powershell":
        return "Set-Location -LiteralPath '" + path.replace("'", "''") + "'\n"
    return "cd " + quote(path) + "\n"


# --- files -----------------------------------------------------------------------------------------------------


def _file(event: Event, lower: str) -> None:
    if lower in names.PATCHES or lower == "patch":
        _patch(event)
        if event.undecidable is None or lower in names.PATCHES:
            return
        event.undecidable = None
    given = event.input
    if not isinstance(given, dict):
        event.undecidable = "a file tool was called without a path"
        return
    if lower in names.OPERATIONS:
        _operation(event, given, lower)
    op = {"file_write": "write", "file_edit": "edit", "file_read": "read"}[event.kind or "file_read"]
    if lower in names.DELETES:
        op = "delete"
    _collect(event, given, op)
    if not event.files:
        for key, value in given.items():
            # A path under a name that this table does not know yet.
            if isinstance(value, str) and value and key not in _CONTENT_KEYS and _names_path(key):
                event.files.append(FileTarget(op, local(value), _content(given)))
    if not event.files:
        event.undecidable = "a file tool was called without a path"


def _operation(event: Event, given: dict[str, object], lower: str) -> None:
    """The kind by the operation that the input names."""
    command = given.get("command", given.get("mode"))
    if not isinstance(command, str):
        return
    operation = command.strip().lower()
    if operation in ("view", "read", "line", "directory", "search"):
        if lower not in names.VIEWERS:
            return  # a tool that only writes is told this by nobody but the agent
        event.kind = "file_read"
    elif operation in ("create", "write"):
        event.kind = "file_write"
    elif lower != "fs_read":
        event.kind = "file_edit"


def _patch(event: Event) -> None:
    given = event.input
    texts = [given.get(key) for key in _PATCH_KEYS] if isinstance(given, dict) else [given]
    for text in texts:
        if isinstance(text, str):
            from guardhook.dialects import patches

            event.files.extend(patches.targets(text))
    if not event.files:
        event.undecidable = "the patch names no file"


def _content(given: dict[str, object], depth: int = 2) -> str | None:
    """The new text of a file, all parts of it: what an edit would put in, never what it replaces."""
    parts = [v for k in _CONTENT_KEYS if isinstance(v := given.get(k), str)]
    parts += [v for k, v in given.items() if k.startswith(("new_str_", "new_string_")) and isinstance(v, str)]
    for key in _NESTED_KEYS if depth else ():
        nested = given.get(key)
        if isinstance(nested, list):
            parts += [t for item in nested if isinstance(item, dict) and (t := _content(item, depth - 1)) is not None]
    return "\n".join(parts) if parts else None


def _collect(event: Event, given: dict[str, object], op: str) -> None:
    """Every path that the input names under a known key, with the new text where there is one."""
    found: dict[tuple[str, str | None], FileTarget] = {}
    _gather(given, op, found, 4)
    include = given.get("include")
    if event.kind == "file_read" and isinstance(include, list):
        found.update({(p, None): FileTarget(op, p) for p in include if isinstance(p, str)})
    event.files.extend(found.values())


def _gather(given: dict[str, object], op: str, found: dict[tuple[str, str | None], FileTarget], depth: int) -> None:
    paths = _paths(given)
    content = _content(given) if op != "read" and paths else None
    for path in paths:
        found.setdefault((path, content), FileTarget(op, path, content))
    for key in _NESTED_KEYS if depth else ():
        nested = given.get(key)
        for item in nested if isinstance(nested, list) else ():
            if isinstance(item, dict):
                said = next((names.VERBS[w] for w in sorted(_action(item)) if w in names.VERBS), op)
                _gather(item, said, found, depth - 1)
            elif isinstance(item, str) and key == "files":
                found.setdefault((item, None), FileTarget(op, item))


def local(text: str) -> str:
    """The path that a `file:` address names (RFC 8089, any spelling of it), and every other text as it is."""
    if text[:5].lower() != "file:":
        return text
    path = text[5:]
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        # `file://~/x` and `file://x` are no addresses of this machine, and meant as paths all the same.
        path = slash + rest if host.lower() in ("", "localhost") else path[2:]
    if "%" not in path:
        return path
    first, *rest_of_it = path.encode("utf-8", "surrogatepass").split(b"%")
    pieces = [first]
    for piece in rest_of_it:
        code = piece[:2].lower()
        known = len(code) == 2 and not code.strip(b"0123456789abcdef")
        pieces.append(bytes((int(code, 16),)) + piece[2:] if known else b"%" + piece)
    return b"".join(pieces).decode("utf-8", "replace")


def _names_path(key: str) -> bool:
    """Whether the name of a key that is in no table says that a path is in it."""
    lower = key.lower().replace("profile", "")
    return "path" in lower or "file" in lower


def _paths(given: dict[str, object]) -> list[str]:
    found: dict[str, None] = {}
    for key in _PATH_KEYS:
        value = given.get(key)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, str) and one:
                found[local(one)] = None
                if one[0].isspace() or one[-1].isspace():  # some clients trim, others don't
                    found[local(one.strip())] = None
    return [path for path in found if path]


# --- the rest --------------------------------------------------------------------------------------------------


def _search(event: Event, lower: str) -> None:
    given = event.input
    if not isinstance(given, dict):
        return
    _collect(event, given, "read")
    if lower in ("glob", "file_search", "find_by_name", "search_files"):
        for key in ("pattern", "query", "glob"):
            value = given.get(key)
            if isinstance(value, str) and value.startswith(("/", "~", "..")):
                event.files.append(FileTarget("read", value))


def _web(event: Event) -> None:
    given = event.input
    if not isinstance(given, dict):
        return
    _urls(event, given)
    prompt = given.get("prompt")
    if isinstance(prompt, str) and (not event.urls or event.dialect == "gemini"):
        # Gemini passes addresses inside a sentence, and an address beside it is ignored there.
        event.urls.extend(url for url in _addresses(prompt) if url not in event.urls)
    for path in _paths(given):
        event.files.append(FileTarget("write", path))


def _addresses(sentence: str) -> list[str]:
    """Every address in running text, at most 1,000, each cut where no address is that long."""
    found: dict[str, None] = {}
    for word in sentence.split():
        at = word.find("://")
        while at >= 0 and len(found) < 1000:
            start = at
            while start > 0 and at - start < _SCHEME_CHARS and word[start - 1].isascii() and word[start - 1].isalnum():
                start -= 1
            end = min(len(word), at + _ADDRESS_CHARS)
            for sign in "\"'<>`":
                stop = word.find(sign, at, end)
                end = stop if stop >= 0 else end
            found[word[start:end].rstrip(".,;:!?)]}")] = None
            at = word.find("://", at + 3)
    return list(found)


def _urls(event: Event, given: dict[str, object]) -> None:
    found: dict[str, None] = {}
    for key in _URL_KEYS:
        value = given.get(key)
        for one in value if isinstance(value, list) else (value,):
            address = one.get("url") if isinstance(one, dict) else one
            if not isinstance(address, str) or not address:
                continue
            if address[:5].lower() == "file:":
                event.files.append(FileTarget("read", local(address)))
            else:
                found[address] = None
    event.urls.extend(found)


def _open(event: Event) -> None:
    """MCP tools, sub-agents and tools that nobody knows: what their input names under the usual keys."""
    given = event.input
    if event.kind == "mcp" and given is not None and not isinstance(given, dict):
        event.undecidable = "the arguments of an MCP tool are not an object"
        return
    if event.kind == "mcp" and isinstance(given, dict):
        inner = given.get("arguments", given.get("mcp_tool_arguments", given.get("tool_input")))
        if isinstance(inner, str):
            inner = _unnest(event, inner, "")
        if isinstance(inner, dict):
            # A tool that passes a call on has its arguments in there; any other reads the outer ones.
            if event.tool is not None and names.mcp_name(event.tool) is not None:
                _named(event, given)
            given = inner
    _named(event, given)


def _action(given: dict[str, object]) -> frozenset[str]:
    """The words of what an input says is to be done: {"action": "delete", …}."""
    return names.words(" ".join(v[:64] for key in _ACTION_KEYS if isinstance(v := given.get(key), str)))


def _named(event: Event, given: object) -> None:
    if not isinstance(given, dict) or event.kind == "subagent":
        return
    words = names.words(event.mcp_tool or event.tool or "")
    for key in _COMMAND_KEYS:
        commands = _commands(key, given.get(key)) if given.get(key) is not None else None
        event.commands.extend(commands or ())
    code = given.get("code")
    if isinstance(code, str) and code.strip():
        if words & {"python", "ipython", "jupyter"}:
            event.commands.append("python3 -c " + quote(code))
        elif words & {"bash", "shell", "sh", "terminal"}:
            event.commands.append(code)
        elif words & {"javascript", "node", "js"}:
            event.commands.append("node -e " + quote(code))
    _urls(event, given)
    if not words & names.MOVES and not any(w in names.VERBS for w in words):
        words = words | _action(given)  # one tool for everything, which is told what to do
    op = next((names.VERBS[w] for w in sorted(words) if w in names.VERBS), None)
    if words & names.MOVES:
        event.files.extend(FileTarget("move_from", p) for k in _SOURCE_KEYS if (p := _str(given.get(k))))
        event.files.extend(FileTarget("move_to", p) for k in _TARGET_KEYS if (p := _str(given.get(k))))
    if op is None:
        op = "write" if _content(given) is not None else "read"
    elif words & {"copy", "cp"}:
        event.files.extend(FileTarget("read", p) for k in _SOURCE_KEYS if (p := _str(given.get(k))))
        event.files.extend(FileTarget("write", p) for k in _TARGET_KEYS if (p := _str(given.get(k))))
    _collect(event, given, op)
    for key, value in given.items():
        if (
            isinstance(value, str)
            and key not in _KNOWN_KEYS
            and _names_path(key)
            and ("/" in value or value[:1] == "~")
        ):
            written = op == "read" and names.words(key) & _WRITTEN_TO
            event.files.append(FileTarget("write" if written else op, local(value), _content(given)))
