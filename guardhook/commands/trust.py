"""`guardhook trust`: a person reads a project's policies and lets their names, reasons and suggestions reach the agent.

JSON: `{"ok": true, "root": str, "state": "trusted"|"changed"|"untrusted"|"none", "digest": hex|null, "files": [str]}`; for --list
`{"ok": true, "projects": [{"root", "state", "since", "files"}]}` with since in epoch seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import click

from guardhook.commands import person
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders
from guardhook.core.jsontext import printable

_LINE = 2000


@click.command("trust")
@click.argument("project", required=False, metavar="[DIR]")
@click.option("--list", "listing", is_flag=True, help="List the trusted projects.")
@click.option("--remove", is_flag=True, help="Withdraw the trust in a project.")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(project: str | None, listing: bool, remove: bool, directory: str | None, as_json: bool) -> None:
    """Show the policies that a project brings along, and trust their words.

    Policies of a project always count, for they can only tighten. But their names and reasons come from the repository, so an
    agent only gets to read them once you have. Any change of the files withdraws the trust.
    """
    if listing and (remove or project is not None):
        fail("--list takes neither DIR nor --remove", as_json=as_json)
    folders = resolve(directory)
    if listing:
        _list(folders, as_json)
    elif remove:
        _remove(folders, _root(project), as_json)
    else:
        _trust(folders, _root(project), as_json)


def _root(project: str | None) -> str:
    """DIR itself, else the project that the current folder belongs to."""
    from guardhook.gate.roots import find_root

    if project is not None:
        return os.path.realpath(project)
    return find_root(os.getcwd()) or os.path.realpath(os.getcwd())


def _trust(folders: Folders, root: str, as_json: bool) -> None:
    from guardhook.policy import trust

    seen = trust.read_project(root)
    if seen.problems:
        fail(f"not trusted: {seen.problems[0]}", hints=seen.problems[1:], as_json=as_json)
    if not seen.files:
        fail(f"{root} brings no policies along (no *.toml below .guardhook/policies)", as_json=as_json)
    if trust.state(folders, root) == "trusted":
        _tell(seen, "trusted", as_json)
        return
    try:
        person.ensure()
        agreed = person.confirm(_shown(seen), person.phrase_for("trust"))
    except person.NotAPerson as error:
        hints = ["this is for a person: type it in a terminal of your own, outside any agent or editor"]
        fail(f"not trusted: {error}", hints=hints, as_json=as_json)
    if not agreed:
        fail("not trusted: the phrase was not typed", as_json=as_json)
    try:
        # What was shown is what is remembered, whatever the files are by now.
        trust.add(folders, seen)
    except trust.TrustError as error:
        fail(f"not trusted: {error}", code=1, as_json=as_json)
    state = trust.state(folders, root)
    if state != "trusted":
        fail("not trusted: the files changed while you were reading; run this again", code=1, as_json=as_json)
    _tell(seen, state, as_json)


def _shown(seen: object) -> Iterator[str]:
    """The files' texts for a terminal: nothing in them can move the cursor, hide or reorder anything."""
    from guardhook.policy.trust import Project

    assert isinstance(seen, Project)
    for name, data in seen.files.items():
        yield f"--- {printable(name, 200)}"
        for number, line in enumerate(data.decode("utf-8", "backslashreplace").split("\n"), 1):
            for start in range(0, max(1, len(line)), _LINE):
                yield f"{number:>5}  {printable(line[start : start + _LINE], 20 * _LINE)}"
    yield f"--- {len(seen.files)} {'file' if len(seen.files) == 1 else 'files'} of {printable(seen.root, 500)}"
    yield "If you trust them, agents in this project will be told these names, reasons and suggestions."


def _remove(folders: Folders, root: str, as_json: bool) -> None:
    """Anybody may do this: it only takes words away."""
    from guardhook.policy import trust

    try:
        known = trust.remove(folders, root)
    except trust.TrustError as error:
        fail(str(error), code=1, as_json=as_json)
    if not known:
        fail(f"{root} was not trusted", code=1, as_json=as_json)
    _tell(trust.read_project(root), "untrusted", as_json)


def _list(folders: Folders, as_json: bool) -> None:
    from guardhook.policy import trust

    rows = []
    for root, entry in sorted(trust.load(folders).items()):
        files = entry.get("files")
        rows.append(
            {
                "root": root,
                "state": trust.state(folders, root),
                "since": entry.get("since"),
                "files": sorted(files) if isinstance(files, dict) else [],
            }
        )
    if as_json:
        emit({"ok": True, "projects": rows})
        return
    for row in rows:
        since = row["since"]
        day = time.strftime("%Y-%m-%d", time.localtime(since)) if isinstance(since, int) else "?"
        click.echo(f"{row['state']:<8}  {day}  {printable(str(row['root']), 500)}")
    if not rows:
        say("no project is trusted")


def _tell(seen: object, state: str, as_json: bool) -> None:
    from guardhook.policy.trust import Project

    assert isinstance(seen, Project)
    if as_json:
        emit(
            {
                "ok": True,
                "root": seen.root,
                "state": state,
                "digest": seen.digest if seen.files else None,
                "files": list(seen.files),
            }
        )
        return
    click.echo(f"{state}: {printable(seen.root, 500)}")
