"""Cmdlets of PowerShell that do something beyond printing, and how their parameters are read."""

from __future__ import annotations

from guardhook.analysis.call import Call
from guardhook.analysis.nodes import HOLE, STAR
from guardhook.analysis.values import EMPTY, UNKNOWN, Val

_VALUED = frozenset(("-path", "-literalpath", "-destination", "-filepath", "-value", "-itemtype", "-name", "-uri", "-source", "-outfile", "-method", "-body", "-infile", "-headers", "-command", "-argumentlist", "-scriptblock", "-id", "-processname", "-filter", "-include", "-exclude", "-encoding", "-newname", "-executionpolicy", "-scope", "-computername", "-verb", "-workingdirectory", "-target", "-credential", "-stream", "-erroraction", "-number", "-driveletter", "-type", "-propertytype", "-inputobject", "-proxy", "-timeoutsec", "-session"))  # fmt: skip


_PATHS = ("-path", "-literalpath", "-filepath", "-lp", "-pspath")


class Item:
    """A word of a pipeline element: its value, the source of a block or sub-expression, or a parameter."""

    __slots__ = ("block", "kind", "value")

    def __init__(self, kind: str, value: Val, block: str = "") -> None:
        self.kind = kind  # word, parameter, block, group
        self.value = value
        self.block = block


def path_of(text: str) -> str:
    """A Windows path as the walker's classes know it: drives fall away, backslashes turn."""
    text = text.replace("\\", "/")
    if len(text) > 1 and text[1] == ":" and text[0].isalpha():
        text = text[2:] or "/"
    return text


class Arguments:
    """Parameters by (abbreviated) name, and the positional values."""

    __slots__ = ("blocks", "given", "rest", "values")

    def __init__(self, items: list[Item]) -> None:
        self.given: set[str] = set()
        self.values: dict[str, Val] = {}
        self.rest: list[Val] = []
        self.blocks = [i.block for i in items if i.kind == "block"]
        index = 0
        while index < len(items):
            item = items[index]
            index += 1
            if item.kind != "parameter":
                if item.kind != "block":
                    self.rest.extend(_commas(item.value))
                continue
            text, colon, value = item.value.text.partition(":")
            text = text.lower()
            full = (
                next(
                    (
                        v
                        for v in (*_VALUED, "-recurse", "-force", "-whatif", "-confirm")
                        if v.startswith(text) and len(text) > 1
                    ),
                    text,
                )
                if text not in _VALUED
                else text
            )
            self.given.add(full)
            if colon:
                self.values[full] = Val(value)
            elif full in _VALUED and index < len(items) and items[index].kind != "parameter":
                self.values[full] = items[index].value
                index += 1

    def paths(self) -> list[Val]:
        named = [v for k in _PATHS if k in self.values for v in _commas(self.values[k])]
        return [Val(path_of(v.text), v.taint, v.origin, v.raw) for v in named or self.rest]


def _commas(value: Val) -> list[Val]:
    if "," not in value.text:
        return [value]
    return [Val(p.strip(), value.taint, value.origin) for p in value.text.split(",") if p.strip()]


def _remove(call: Call, a: Arguments) -> Val:
    if "-whatif" in a.given:
        return EMPTY
    flags = ({"recursive"} if "-recurse" in a.given or "-r" in a.given else set()) | (
        {"force"} if "-force" in a.given or "-fo" in a.given else set()
    )
    flags |= {"recursive", "force"} if any(v.text in ("-rf", "-fr") for v in call.args) else set()
    paths = [p for p in a.paths() if not p.text.startswith(("/s", "/q")) or len(p.text) > 2]
    for value in paths or ([Val(call.stdin.text, call.stdin.taint)] if call.stdin is not None else []):
        for line in value.text.split("\n"):
            if line:
                call.change("delete", Val(path_of(line), value.taint), flags)
    return EMPTY


def _write(call: Call, a: Arguments) -> Val:
    paths = a.paths()
    if not paths and "-name" in a.values:
        paths = [a.values["-name"]]
    append = call.name == "add-content" or "-append" in a.given
    for value in paths[:1]:
        place = call.change(
            "write",
            value,
            ("append",)
            if append
            else ("mkdir", "append")
            if "directory" in a.values.get("-itemtype", EMPTY).text.lower()
            else ("truncate",),
        )
        content = a.values.get("-value") or (a.rest[1] if len(a.rest) > 1 else call.stdin)
        if content is not None:
            call.walker.pour(place.text, content, append)
    return EMPTY


def _copy(call: Call, a: Arguments) -> Val:
    paths = a.paths()
    target = a.values.get("-destination") or a.values.get("-newname") or (a.rest[1] if len(a.rest) > 1 else None)
    if not paths:
        return EMPTY
    content: Val | None = None
    if call.name == "copy-item":
        content = call.read(paths[0], ("copy",))
    else:
        call.change("move", paths[0])
    if target is not None:
        place = call.change("write", path_of(target.text))
        if content is not None:
            call.walker.files[place.text] = content
    return EMPTY


def _read(call: Call, a: Arguments) -> Val:
    from guardhook.analysis.values import concat

    return concat([call.read(p) for p in a.paths()[:16]])


def _web(call: Call, a: Arguments) -> Val:
    from guardhook.analysis.programs.network import connect

    url = a.values.get("-uri") or a.values.get("-source") or (a.rest[0] if a.rest else None)
    if url is None:
        return UNKNOWN
    sent = [a.values[k] for k in ("-body",) if k in a.values]
    if "-infile" in a.values:
        sent.append(call.read(Val(path_of(a.values["-infile"].text)), ("upload",)))
    connect(call, url, sent)
    fetched = Val(HOLE, frozenset(("network",)), url.shown)
    out = a.values.get("-outfile")
    if call.name == "start-bitstransfer":
        out = a.values.get("-destination") or (a.rest[1] if len(a.rest) > 1 else None)
    if out is not None:
        place = call.change("write", path_of(out.text), ("download", "truncate"))
        call.walker.files[place.text] = fetched
        return EMPTY
    return fetched


def _invoke(call: Call, a: Arguments) -> Val:
    from guardhook.analysis.powershell import walk

    for block in a.blocks:
        walk(call.walker, block, call.state)
    code = a.values.get("-command") or a.values.get("-scriptblock") or (a.rest[0] if a.rest else call.stdin)
    if code is None:
        return UNKNOWN
    from guardhook.analysis.powershell import run_code

    return run_code(call, code)


def _start(call: Call, a: Arguments) -> Val:
    words = [*(v for v in (a.values.get("-filepath"),) if v is not None), *a.rest]
    if a.values.get("-verb", EMPTY).text.lower() == "runas":
        call.emit("privilege", ("as-root", "runas"), detail="starts a program as administrator")
    more = a.values.get("-argumentlist")
    if more is not None:
        words.extend(Val(w) for w in more.text.replace(",", " ").split())
    return (
        call.run([Val(path_of(words[0].text).rpartition("/")[2], words[0].taint), *words[1:]], "start-process")
        if words
        else UNKNOWN
    )


def _location(call: Call, a: Arguments) -> Val:
    if call.name == "pop-location":
        call.state.cwd = call.state.stack.pop() if call.state.stack else call.state.cwd
        return EMPTY
    here = call.walker.cwd(call.state)
    if call.name == "push-location":
        call.state.stack.append(here)
    paths = a.paths()
    if paths:
        place = call.place(paths[0])
        call.state.cwd = place.text if place.text.startswith("/") else None
    return EMPTY


def _list(call: Call, a: Arguments) -> Val:
    root = (a.paths() or [Val(".")])[0]
    if root.text.lower().rstrip(":/") == "env":
        call.emit("read", ("environment",), detail="all environment variables")
        return Val(HOLE, frozenset(("environment",)), "the environment")
    names = a.values.get("-filter") or a.values.get("-include") or (a.rest[1] if len(a.paths()) > 1 else None)
    folder = root.text.rstrip("/") + "/" + (STAR + "/" if "-recurse" in a.given and names is not None else "")
    found = [v.text.strip() for v in _commas(names)] if names is not None else [STAR]
    if names is None and STAR in root.text:
        return Val("\n".join(v.text for v in a.paths()), frozenset(("listing",)))
    return Val("\n".join(folder + name for name in found), frozenset(("listing",)))


def printed(value: Val) -> Val:
    """A value that a command prints: a credential in it is noted when the text reaches nobody else."""
    return Val(value.text, value.taint | {"echoed"}, value.origin) if "env-secret" in value.taint else value


def _output(call: Call, a: Arguments) -> Val:
    from guardhook.analysis.call import joined

    return printed(joined(a.rest))


def _through(call: Call, a: Arguments) -> Val:
    return call.stdin if call.stdin is not None else UNKNOWN


def _disk(call: Call, a: Arguments) -> Val:
    call.emit("write", ("disk", "loses-data"), path_classes=frozenset(("device",)), detail=call.name)
    return EMPTY


def _process(call: Call, a: Arguments) -> Val:
    names = [v.text for v in [*a.rest, *(v for k, v in a.values.items() if k in ("-name", "-processname", "-id"))]]
    call.emit(
        "process",
        {"kill"}
        | ({"by-name"} if names and not names[0].isdecimal() else set())
        | ({"force"} if "-force" in a.given else set()),
        detail=" ".join(names)[:80],
    )
    if any("guardhook" in n for n in names):
        call.emit("guard_change", ("kill",), detail="ends guardhook")
    return EMPTY


def _computer(call: Call, a: Arguments) -> Val:
    call.emit("process", ("shutdown",), detail=call.name)
    return EMPTY


def _policy(call: Call, a: Arguments) -> Val:
    call.emit("privilege", ("security-off",), detail=" ".join([call.name, *call.argv])[:120])
    return EMPTY


def _service(call: Call, a: Arguments) -> Val:
    kind = "persist" if call.name.startswith(("new-", "register-")) else "process"
    call.emit(
        kind,
        ("service", "scheduled-task") if "task" in call.name else ("service",),
        detail=" ".join([call.name, *call.argv])[:120],
    )
    return EMPTY


def _property(call: Call, a: Arguments) -> Val:
    text = (a.paths() or [EMPTY])[0].text
    if text.lower().startswith(("hklm", "hkcu", "registry")):
        kind = "persist" if "/run" in text.lower() else "privilege"
        call.emit(kind, ("registry",), detail=text[:120])
    return EMPTY


def _alias(call: Call, a: Arguments) -> Val:
    words = a.rest if len(a.rest) > 1 else [*(v for k, v in a.values.items() if k in ("-name", "-value"))]
    if len(words) > 1:
        call.state.aliases = {**call.state.aliases, words[0].text: words[1].text}
    return EMPTY


CMDLETS = {
    "remove-item": _remove, "clear-content": _write, "set-content": _write, "add-content": _write, "out-file": _write, "new-item": _write, "tee-object": _write, "copy-item": _copy, "move-item": _copy, "rename-item": _copy,
    "get-content": _read, "import-csv": _read, "select-string": _through, "invoke-webrequest": _web, "invoke-restmethod": _web, "start-bitstransfer": _web, "invoke-expression": _invoke, "invoke-command": _invoke, "start-job": _invoke, "start-process": _start,
    "set-location": _location, "push-location": _location, "pop-location": _location, "get-childitem": _list, "write-output": _output, "write-host": _output, "foreach-object": _through, "where-object": _through, "out-string": _through, "select-object": _through,
    "sort-object": _through, "out-null": _through, "convertto-json": _through, "convertfrom-json": _through, "format-volume": _disk, "clear-disk": _disk, "initialize-disk": _disk, "remove-partition": _disk, "stop-process": _process,
    "stop-computer": _computer, "restart-computer": _computer, "set-executionpolicy": _policy, "set-mppreference": _policy, "add-mppreference": _policy, "disable-windowsoptionalfeature": _policy, "set-netfirewallprofile": _policy,
    "register-scheduledtask": _service, "new-service": _service, "stop-service": _service, "remove-service": _service, "set-service": _service, "unregister-scheduledtask": _service, "set-itemproperty": _property, "new-itemproperty": _property,
    "remove-itemproperty": _property, "set-alias": _alias, "new-alias": _alias, "clear-recyclebin": _disk,
}  # fmt: skip
