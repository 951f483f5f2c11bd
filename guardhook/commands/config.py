"""`guardhook config`: the settings in config.toml, looked at and changed. Secrets are never shown whole."""

from __future__ import annotations

import sys

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders
from guardhook.policy import settings, settings_check
from guardhook.policy.settings import FILE, KEYS, Key, Settings, SettingsError

_COMPILED = ("gate", "capture")  # sections that hooks read in their compiled form
_LONGEST = 1 << 16  # of a value on stdin


@click.group(name="config")
def command() -> None:
    """Look at and change the settings in config.toml."""


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    names = [k.name.removesuffix("*") for k in KEYS if k.kind != "table"]
    return [n for n in names if n.startswith(incomplete)]


def _values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    key = settings_check.find(str(ctx.params.get("name") or ""))
    words = () if key is None else ("true", "false") if key.kind == "boolean" else key.choices
    return [w for w in words if w.startswith(incomplete)]


_name = click.argument("name", shell_complete=_names)


@command.command("list")
@reading.as_json
@reading.directory
def list_(as_json: bool, directory: str | None) -> None:
    """List all settings: what holds, where it comes from, what it is for. What is misspelt in the files is told as well."""
    folders = resolve(directory)
    found = _read(folders, as_json)
    rows = [_row(found, key, name) for key in KEYS for name in _expanded(found, key)]
    problems = settings_check.problems(folders)
    if as_json:
        reading.print_json({
            "file": f"{folders.config}/{FILE}",
            "system_file": f"{folders.system}/{FILE}",
            "settings": rows,
            "problems": [p._asdict() for p in problems],
        })  # fmt: skip
        return
    _told(rows)
    for problem in problems:
        say(f"warning: {problem}")


def _expanded(found: Settings, key: Key) -> list[str]:
    """The names that a row stands for: of one that ends in `.*`, those that the files have."""
    if not key.name.endswith(".*"):
        return [key.name]
    above = found.get(key.name[:-2])
    words = sorted(above) if isinstance(above, dict) else []
    names = [f"{key.name[:-2]}.{word}" for word in words]
    return [n for n in names if settings_check.find(n) == key] or [key.name]


def _row(found: Settings, key: Key, name: str) -> dict[str, object]:
    value = found.get(name)
    given = None if value is None else settings_check.shown(name, value)
    origin = found.origin(name)
    return {
        "name": name,
        "value": key.default if given is None else given,
        "origin": "default" if origin is None and key.default is not None else origin,
        "locked": origin == "system" and found.locked(name),
        "default": key.default,
        "kind": key.kind,
        "choices": list(key.choices),
        "help": key.help,
    }


def _told(rows: list[dict[str, object]]) -> None:
    """Two lines a setting: what one would type to set it, and what it is for."""
    from guardhook.views.text import one_line

    paint, width = reading.paint(), reading.width()
    section = ""
    for row in rows:
        name = str(row["name"])
        if name.partition(".")[0] != section:
            section = name.partition(".")[0]
            click.echo(paint.bold(f"[{section}]"))
        origin = "locked by the system" if row["locked"] else str(row["origin"] or "not set")
        value = "" if row["value"] is None else f" = {one_line(_text(row['value']), 60)}"
        click.echo(f"{one_line(name, 60)}{value}  {paint.dim(f'({origin})')}")
        choices = row["choices"]
        said = f": {', '.join(choices)}" if isinstance(choices, list) and choices else ""
        click.echo(paint.dim(one_line(f"    {row['help']}{said}", max(20, width))))


def _text(value: object) -> str:
    """A value as one would type it after `config set`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if isinstance(value, (dict, list)):
        from guardhook.core.jsontext import dumps

        return dumps(_plain(value))
    return str(value)


def _plain(value: object) -> object:
    """TOML knows dates, JSON does not."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


@command.command()
@_name
@reading.as_json
@reading.directory
def get(name: str, as_json: bool, directory: str | None) -> None:
    """Print the value of a setting, or of a whole section. One that is not set prints nothing."""
    from guardhook.views.text import one_line

    folders = resolve(directory)
    key = settings_check.find(name)
    if key is None and name not in settings_check.sections():
        fail(f"{name}: {settings_check.unknown(name)}", as_json=as_json)
    found = _read(folders, as_json)
    value = settings_check.shown(name, found.get(name, None if key is None else key.default))
    if key is not None and found.get(name) is None:
        value = key.default
    if as_json:
        reading.print_json({"name": name, "value": _plain(value), "origin": found.origin(name), "locked": settings_check.refused(found, folders, name) is not None})  # fmt: skip
    elif value is None:
        say(f"{name}: (not set)")
    else:
        click.echo(one_line(_text(value)))


@command.command("set")
@_name
@click.argument("value", required=False, shell_complete=_values)
@reading.as_json
@reading.directory
def set_(name: str, value: str | None, as_json: bool, directory: str | None) -> None:
    """Change a setting in your own config.toml.

    VALUE `-` is read from stdin, so that a secret need not stand in the shell's history; on a terminal a secret without VALUE is asked for.
    """
    from guardhook.policy import edit, settings_edit

    folders = resolve(directory)
    key = _settable(folders, name, as_json)
    try:
        given = settings_edit.convert(key, name, _given(key, name, value, as_json))
        path = settings_edit.put(folders, name, given)
    except settings_edit.BadValue as error:
        fail(f"{name}: {error}", as_json=as_json)
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    _done(folders, directory, name, settings_check.shown(name, given), path, as_json)


@command.command()
@_name
@reading.as_json
@reading.directory
def unset(name: str, as_json: bool, directory: str | None) -> None:
    """Take a setting out of your own config.toml, so that its default holds again."""
    from guardhook.policy import edit, settings_edit

    folders = resolve(directory)
    _settable(folders, name, as_json)
    try:
        path = settings_edit.drop(folders, name)
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    if path is None:
        fail(f"{name} is not set in {folders.config}/{FILE}", code=1, as_json=as_json)
    _done(folders, directory, name, None, path, as_json)


def _settable(folders: Folders, name: str, as_json: bool) -> Key:
    key = settings_check.find(name)
    if key is None or name.endswith(".*"):
        if name in settings_check.sections():
            inside = ", ".join(k.name for k in KEYS if k.name.startswith(f"{name}."))
            fail(f"{name} is a section; its settings are {inside}", as_json=as_json)
        fail(f"{name}: {settings_check.unknown(name)}", as_json=as_json)
    refused = settings_check.refused(_read(folders, as_json), folders, name)
    if refused is not None:
        fail(refused, as_json=as_json)
    return key


def _given(key: Key, name: str, value: str | None, as_json: bool) -> str:
    if value is None:
        if key.kind == "secret" and sys.stdin.isatty():
            return str(click.prompt(name, hide_input=True, err=True))
        fail(f"{name}: a value is needed", as_json=as_json)
    return sys.stdin.read(_LONGEST).strip("\r\n") if value == "-" else value


def _done(folders: Folders, directory: str | None, name: str, value: object, path: str, as_json: bool) -> None:
    from guardhook.commands.guard import recompile

    warnings: list[str] = []
    if name.partition(".")[0] in _COMPILED:
        recompile(directory, warnings)
    warnings += [str(p) for p in settings_check.problems(folders)]
    if as_json:
        emit({"ok": True, "name": name, "value": _plain(value), "file": path, "warnings": warnings})
        return
    for line in warnings:
        say(f"warning: {line}")
    say(f"{name} is no longer set in {path}" if value is None else f"{name} = {_text(value)}  ({path})")


@command.command("test-ai")
@reading.as_json
@reading.directory
def test_ai(as_json: bool, directory: str | None) -> None:
    """Ask the configured model a trivial question, to see that key, model and network work."""
    folders = resolve(directory)
    _read(folders, as_json)
    from guardhook.evals import probe

    if code := probe.run(folders, as_json):
        raise SystemExit(code)


def _read(folders: Folders, as_json: bool) -> Settings:
    try:
        return settings.read(folders)
    except SettingsError as error:
        fail(str(error), hints=["the file is there, but broken; mend it first"], as_json=as_json)
