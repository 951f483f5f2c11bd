"""Task runners: the commands that a named task would run, as its file is on disk."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.command import language_of
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import Val

_TASKS = 24  # tasks followed from one
_LINES = 64  # commands of one task
_FOLDERS = 12  # folders above that are looked at


class Recipe:
    """What a task runs, which tasks come first, and the names of its parameters with their defaults."""

    __slots__ = ("lines", "needs", "parameters")

    def __init__(self, parameters: list[tuple[str, str]] | None = None, needs: list[str] | None = None) -> None:
        self.parameters = parameters or []
        self.needs = needs or []
        self.lines: list[str] = []


def text_of(call: Call, names: tuple[str, ...], chosen: Val | None, folder: Val | None = None) -> str:
    """The text of the file that the program would take: the chosen one, or the nearest of the usual names."""
    walker = call.walker
    if walker.inside == "container" or len(walker.via) > 6:
        return ""
    if chosen is not None:
        return _text(call, call.place(chosen).text)
    here = call.place(folder).text if folder is not None else walker.cwd(call.state)
    for _ in range(_FOLDERS):
        if not here or not here.startswith("/") or HOLE in here:
            return ""
        for name in names:
            path = here.rstrip("/") + "/" + name
            if path in walker.files or walker.facts.exists(path):
                return _text(call, path)
        if here in ("/", walker.facts.project_root):
            return ""
        here = here.rpartition("/")[0] or "/"
    return ""


def _text(call: Call, path: str) -> str:
    known = call.walker.files.get(path)
    return (known.text if known is not None else call.script_text(path, call.name)) or ""


def follow(call: Call, recipes: dict[str, Recipe], wanted: list[str], given: list[str], variables: dict[str, str]) -> None:  # fmt: skip
    """Walks the commands of the wanted tasks and of those that they need."""
    seen: set[str] = set()
    first = wanted[:1]
    while wanted and len(seen) < _TASKS:
        name = wanted.pop(0)
        recipe = recipes.get(name)
        if recipe is None or name in seen:
            continue
        seen.add(name)
        wanted.extend(recipe.needs)
        values = dict(variables)
        for index, (parameter, default) in enumerate(recipe.parameters):
            value = given[index] if first == [name] and index < len(given) else default
            values[parameter] = " ".join(given[index:]) if index + 1 == len(recipe.parameters) and value else value
        lines = [filled(line, values) for line in recipe.lines[:_LINES]]
        if lines and lines[0].startswith("#!"):
            _script(call, "\n".join(lines))
            continue
        for line in lines:
            call.code(Val(line.lstrip("@-")), "script", call.name, state=call.state.fork())


def _script(call: Call, text: str) -> None:
    language = language_of(text)
    if language == "sh":
        call.code(Val(text), "script", call.name, state=call.state.fork())
    elif language != "binary":
        from guardhook.analysis import inline

        inline.scan_file(call, text, language)


def filled(line: str, values: dict[str, str]) -> str:
    """`{{ name }}` replaced where the value is known."""
    if "{{" not in line:
        return line
    first, *rest = line.split("{{")
    out = [first]
    for piece in rest:
        inside, _, after = piece.partition("}}")
        out.append(values.get(inside.strip().lstrip("."), HOLE))
        out.append(after)
    return "".join(out)


# --- just


def just(call: Call) -> None:
    opts = options(
        call.args,
        short="cfd",
        long=("--command", "--justfile", "--working-directory", "--set", "--shell", "--dotenv-path"),
        permute=False,
    )
    for value in opts.every("-c", "--command"):
        call.code(value, "inline")
    if opts.has("-c", "--command", "-l", "--list", "--summary", "--show", "-s", "--dry-run", "-n", "--fmt", "--dump", "--evaluate", "--choose", "-e", "--edit", "--variables"):  # fmt: skip
        return
    chosen = opts.value("-f", "--justfile")
    text = text_of(call, ("justfile", "Justfile", ".justfile"), chosen, opts.value("-d", "--working-directory"))
    if not text:
        return
    recipes, variables = justfile(text)
    words = [v.text for v in opts.rest]
    while words and "=" in words[0]:
        name, _, text = words.pop(0).partition("=")
        variables[name] = text
    named = words[0] if words else next(iter(recipes), "")
    wanted = [named, *(w for w in words[1:] if w in recipes)]
    follow(call, recipes, wanted, words[1:], variables)


def justfile(text: str) -> tuple[dict[str, Recipe], dict[str, str]]:
    """Recipes by name, in the order of the file, and the variables that are constants."""
    recipes: dict[str, Recipe] = {}
    variables: dict[str, str] = {}
    current: Recipe | None = None
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith((" ", "\t")):
            if current is not None and line.strip():
                current.lines.append(line.strip())
            continue
        if not line.strip() or line.startswith("#"):
            continue
        current = None
        name, assigned, value = line.partition(":=")
        if assigned:
            words = name.split()
            value = value.strip()
            if words and words[0] == "alias" and len(words) > 1:
                recipes[words[1]] = Recipe(needs=[value])
            elif words and words[0] != "set" and value[:1] in ("'", '"') and value[:1] == value[-1:]:
                variables[words[-1]] = value.strip("'\"")
            continue
        head, colon, after = _head(line)
        words = head.lstrip("@").split()
        if not colon or not words or words[0].startswith("["):
            continue
        needs = [w.strip("()&") for w in after.partition("#")[0].split()]
        current = recipes[words[0]] = Recipe([_parameter(w) for w in words[1:]], [w for w in needs if w])
    return recipes, variables


def _head(line: str) -> tuple[str, str, str]:
    """A recipe's line at its colon, which may also stand inside the default of a parameter."""
    quote = ""
    for i, c in enumerate(line):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == ":":
            return line[:i], c, line[i + 1 :]
    return line, "", ""


def _parameter(word: str) -> tuple[str, str]:
    name, equals, default = word.lstrip("*+$").partition("=")
    return name, default.strip("'\"") if equals else HOLE


# --- task (Taskfile.yml)


def task(call: Call) -> None:
    opts = options(call.args, short="dtoC", long=("--dir", "--taskfile", "--output", "--concurrency"), permute=True)
    if opts.has("-l", "--list", "-a", "--list-all", "--summary", "-n", "--dry", "-i", "--init", "--status"):
        return
    names = ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml", "Taskfile.dist.yaml")  # fmt: skip
    text = text_of(call, names, opts.value("-t", "--taskfile"), opts.value("-d", "--dir"))
    if text:
        words = [v.text for v in opts.rest]
        given = {w.partition("=")[0]: w.partition("=")[2] for w in words if "=" in w}
        recipes, variables = taskfile(text)
        variables.update(given)
        follow(call, recipes, [w for w in words if "=" not in w] or ["default"], [], variables)


def taskfile(text: str) -> tuple[dict[str, Recipe], dict[str, str]]:
    """The tasks of a Taskfile, as far as its commands are plain, and its constants: a subset of YAML, by indentation."""
    recipes: dict[str, Recipe] = {}
    variables: dict[str, str] = {}
    constants = False
    current: Recipe | None = None
    inside, level, key = False, -1, ""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            inside, level, current = body.startswith("tasks:"), -1, None
            constants = body.startswith("vars:")
            continue
        if constants and indent <= 4 and not body.startswith("- "):
            name, _, value = body.partition(":")
            if value.strip() and name.strip() != "sh":
                variables[name.strip()] = _scalar(value.strip())
        if not inside:
            continue
        level = indent if level < 0 else level
        item = body.startswith("- ")
        name, colon, value = (body[2:].strip() if item else body).partition(":")
        value = value.strip()
        if indent == level and not item:
            current = recipes[name.strip("'\"")] = Recipe()
            key = "cmds"
            if value.startswith("["):
                current.lines.extend(_flow(value))
            elif value:
                current.lines.append(_scalar(value))
            continue
        if current is None:
            continue
        if item and (name not in ("cmd", "task", "defer") or not colon):
            value = body[2:].strip()
        elif not item:
            key = name if name in ("cmds", "cmd", "deps", "defer") else "" if indent <= level + 4 else key
        if value in ("|", "|-", "|+", ">", ">-", ">+"):
            block: list[str] = []
            while i < len(lines) and (not lines[i].strip() or len(lines[i]) - len(lines[i].lstrip()) > indent):
                block.append(lines[i].strip())
                i += 1
            value = "\n".join(block)
        if not value or not key:
            continue
        if (item and name == "task" and colon) or key == "deps":
            current.needs.extend(_flow(value) if value.startswith("[") else [_scalar(value)])
        elif key in ("cmds", "cmd", "defer") and (item or name in ("cmds", "cmd", "defer")):
            current.lines.extend(_flow(value) if value.startswith("[") else [_scalar(value)])
    return recipes, variables


def _scalar(text: str) -> str:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        inner = text[1:-1]
        return inner.replace("''", "'") if text[0] == "'" else inner.replace('\\"', '"').replace("\\\\", "\\")
    return text if text[:1] in ("'", '"') else text.partition(" #")[0].rstrip()


def _flow(text: str) -> list[str]:
    pieces, begin, quote = [], 0, ""
    inner = text.strip("[]")
    for i, c in enumerate(inner):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == ",":
            pieces.append(inner[begin:i])
            begin = i + 1
    return [_scalar(piece.strip()) for piece in (*pieces, inner[begin:]) if piece.strip()]


# --- scripts in JSON: composer.json, deno.json


def scripts(call: Call, file: str, section: str, name: str) -> str:
    """The text of a script that a JSON file names, `@other` included as a command of the same program."""
    text = text_of(call, (file, file + "c") if file == "deno.json" else (file,), None)
    from guardhook.analysis.programs.manifest import table

    found = table(text, section).get(name)
    if isinstance(found, dict):
        found = found.get("command")
    items = found if isinstance(found, list) else [found]
    return "\n".join(item for item in items if isinstance(item, str) and not item.startswith("@"))
