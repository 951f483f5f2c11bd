"""`guardhook init`: a place for a project's own policies, or a folder to use with --dir. Nothing has to be initialised for guardhook to work.

JSON: `{"ok": true, "folder", "created": [path], "kept": [path]}`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from guardhook.commands import reading
from guardhook.commands.output import emit, fail
from guardhook.commands.reading import project_root
from guardhook.core import atomic
from guardhook.policy.settings import FILE, KEYS, Key

FOLDER = ".guardhook"
POLICIES = "policies"
_FIRST = """\
# Settings of guardhook, for commands and hooks that are given this folder with --dir. Everything here is a comment: these are the defaults.
# `guardhook config set NAME VALUE --dir FOLDER` changes a line, `guardhook config list --dir FOLDER` explains them.
"""
_PROJECT = """\
# In a project's {folder} folder this file means nothing to hooks: they take policies from a project (which can only tighten), never settings.
"""


@click.command("init")
@click.option("--project", is_flag=False, flag_value=".", default=None, metavar="[DIR]", help=f"Make DIR/{FOLDER} (without DIR: in the current project, as without any option).")  # fmt: skip
@click.option("--dir", "directory", metavar="DIR", help="Make DIR itself, a folder for settings, policies and journal.")
@click.option("--force", is_flag=True, help="Write a config.toml that is there anew.")
@reading.as_json
def command(project: str | None, directory: str | None, force: bool, as_json: bool) -> None:
    """Make a project's .guardhook folder: policies/ for rules of its own, and a config.toml.

    What is there stays as it is. Your own settings and policies need no initialising.
    """
    if project is not None and directory is not None:
        fail("--project and --dir contradict each other", as_json=as_json)
    for name, value in (("--project", project), ("--dir", directory)):
        if value is not None and not value.strip():
            fail(f"{name} needs a value", as_json=as_json)
    if directory is not None:
        folder = os.path.abspath(os.path.expanduser(directory))
    else:
        root = project_root(".") if project in (None, ".") else os.path.realpath(os.path.expanduser(str(project)))
        if not os.path.isdir(root):
            fail(f"{root}: there is no such folder", as_json=as_json)
        folder = f"{root}/{FOLDER}"
    created: list[str] = []
    kept: list[str] = []
    try:
        for path in (folder, f"{folder}/{POLICIES}"):
            (created if _folder(path) else kept).append(path)
        path = f"{folder}/{FILE}"
        (created if _file(path, template(in_project=directory is None), force) else kept).append(path)
    except OSError as error:
        fail(f"{error.filename or folder}: {error.strerror}", code=1, as_json=as_json)
    if as_json:
        emit({"ok": True, "folder": folder, "created": created, "kept": kept})
        return
    _tell(folder, created, kept, in_project=directory is None)


def _folder(path: str) -> bool:
    """Makes a folder, for its owner only. Gives whether it was not there. Raises OSError, for links too."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)
        return True
    except FileExistsError:
        if os.path.islink(path) or not os.path.isdir(path):
            raise OSError(0, "is there already, and no plain folder", path) from None
        return False


def _file(path: str, text: str, force: bool) -> bool:
    """Writes a file that is not there; with force in place of one. Gives whether it did. Raises OSError, for links too."""
    if os.path.lexists(path):
        if os.path.islink(path) or not os.path.isfile(path):
            raise OSError(0, "is there already, and no plain file", path)
        if not force:
            return False
    atomic.replace(path, text.encode("utf-8"))
    return True


def template(*, in_project: bool) -> str:
    """A config.toml with every setting as a comment, made from the table of settings."""
    tables: dict[str, list[str]] = {}
    for key in KEYS:
        above, _, last = key.name.rpartition(".")
        if key.kind == "table":
            tables.setdefault(f"[{key.name}]", [f"# {key.help}\n"])
        else:
            tables.setdefault(above, []).append("".join(_setting(key, last)))
    first = _FIRST + (_PROJECT.format(folder=FOLDER) if in_project else "")
    return first + "".join(f"\n# [{name}]\n{''.join(lines)}" for name, lines in tables.items())


def _setting(key: Key, last: str) -> Iterator[str]:
    value = {bool: str(key.default).lower(), str: f'"{key.default}"', int: str(key.default), float: f"{key.default}"}.get(type(key.default), "…")  # fmt: skip
    yield f"# {'KEY' if last == '*' else last} = {value}  # {key.help}"
    yield f" ({', '.join(key.choices)})\n" if key.choices else "\n"


def _tell(folder: str, created: list[str], kept: list[str], *, in_project: bool) -> None:
    from guardhook.views.text import one_line

    if not created:
        click.echo(f"{one_line(folder)} is there already; nothing was changed (--force writes {FILE} anew)")
        return
    for path in created:
        click.echo(f"made {one_line(path)}{'' if path.endswith(FILE) else '/'}")
    for path in kept:
        click.echo(f"kept {one_line(path)}{'' if path.endswith(FILE) else '/'}")
    click.echo("")
    if in_project:
        click.echo(f"Put policies into {FOLDER}/{POLICIES}/*.toml and commit them: they tighten what agents may do in this project.")  # fmt: skip
        click.echo("`guardhook guard list --project .` shows them, `guardhook trust` lets their words reach the agent.")
    else:
        click.echo("Give this folder to commands with --dir. `guardhook policy new NAME --dir …` starts a policy.")
    click.echo("`guardhook install HARNESS` registers guardhook, `guardhook demo` shows what recorded runs look like.")
