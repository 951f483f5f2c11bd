"""`guardhook guard list`: every policy of every layer, whether it is on, and what is wrong with the set."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders
from guardhook.core.jsontext import dumps, printable

if TYPE_CHECKING:
    from guardhook.policy.layers import Found, Loaded

_QUIET_DAYS = 7
_FIXED = (("ID", 16), ("Action", 6), ("Pri", 3), ("On", 8), ("Layer", 7))


@click.command("list")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--project", metavar="DIR", help="Show the policies of this project too.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(directory: str | None, project: str | None, as_json: bool) -> None:
    """List all policies, highest priority first.

    That is what the hook would judge by now. The column On says yes, no, or the name of the preset in which a policy is on.
    """
    from guardhook.policy import load, trust

    if project is not None and not os.path.isdir(project):
        fail(f"--project {project}: there is no such folder", as_json=as_json)
    folders = resolve(directory)
    loaded = load.load(folders, time.time())
    problems = [str(error) for error in loaded.errors] + loaded.problems
    if project is not None:
        brought = load.load_project(os.path.abspath(project))
        loaded.policies.extend(brought.policies)
        problems.extend(brought.problems)
        trust_note = trust.note(folders, os.path.abspath(project))
        problems.extend([trust_note] if trust_note else [])
    rows = [_row(found) for found in loaded.ordered()]
    live = liveness(folders, loaded)
    if as_json:
        emit(
            {
                "ok": not loaded.errors,
                "preset": loaded.config.get("preset"),
                "policies": rows,
                "problems": problems,
                "expired": [entry.policy for entry in loaded.expired],
                "liveness": live,
            }
        )
    else:
        _table(rows)
        for row in rows:
            for note in row["notes"]:  # type: ignore[attr-defined]
                say(f"{row['name']}: {note}")
        for line in [*problems, *live]:
            say(f"warning: {line}")
    if loaded.errors:
        raise SystemExit(2)


def _row(found: Found) -> dict[str, object]:
    from guardhook.policy import check
    from guardhook.policy.compile import policy_id

    policy = found.policy
    return {
        "id": policy_id(found.layer, policy.name),
        "name": policy.name,
        "action": policy.action,
        "priority": policy.priority,
        "enabled": found.on,
        "why_off": found.why_off or None,
        "presets": policy.presets or ["balanced", "strict"],
        "layer": found.layer,
        "description": policy.description,
        "pattern": policy.match.given(),
        "unless": policy.unless.given() if policy.unless is not None else None,
        "costly": check.costly(policy.match),
        "exceptions": len(found.exceptions),
        "file": found.path,
        "line": found.line,
        "notes": check.warnings(policy) if found.on else [],
    }


def _table(rows: list[dict[str, object]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    names = max((len(str(row["name"])) for row in rows), default=4)
    room = console.width - sum(width + 1 for _, width in _FIXED)
    name_width = max(8, min(names, room - 10))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for title, width in (*_FIXED, ("Name", name_width), ("Pattern", max(8, min(40, room - name_width - 1)))):
        table.add_column(
            title, no_wrap=title != "Name", overflow="fold" if title == "Name" else "ellipsis", width=width
        )
    for row in rows:
        table.add_row(
            str(row["id"]),
            str(row["action"]).replace("require_", ""),
            str(row["priority"]),
            _on(row),
            str(row["layer"]),
            Text(printable(str(row["name"]), 100)),
            Text(printable(dumps(row["pattern"]), 60)),
        )
    console.print(table if rows else Text("no policies"))


def _on(row: dict[str, object]) -> str:
    """yes, no, or the preset in which a policy that is off would be on."""
    if row["enabled"]:
        return "yes"
    presets = row["presets"]
    if str(row["why_off"]).startswith("off in preset") and isinstance(presets, list):
        return str(presets[0])
    return "no"


def liveness(folders: Folders, loaded: Loaded) -> list[str]:
    """Signs that the gate is not at work: what is compiled is not what stands here, nothing is on, no hook was heard of."""
    from guardhook.policy import compiled

    found = []
    if not loaded.errors and not any(entry.on for entry in loaded.policies):
        found.append("no policy is enabled, so an enforcing hook blocks every call (--allow-empty says otherwise)")
    try:
        compiled.load(folders)
    except compiled.Broken:
        pass  # already told, with its place
    except compiled.Stale as error:
        found.append(f"the next hook recompiles the policies first ({error}); `guardhook policy compile` does it now")
    except compiled.CompiledError as error:
        found.append(f"{error}; `guardhook policy compile` makes it anew")
    installed = [n for n in _names(f"{folders.data}/bin") if n.endswith((".enforce", ".observe"))]
    days = sorted(n for n in _names(folders.journal) if n[:4].isdigit())
    if installed:
        last = days[-1] if days else None
        if last is None:
            found.append("hooks are installed, but no event was ever recorded; `guardhook doctor` tells why")
        elif _days_since(last) > _QUIET_DAYS:
            found.append(f"hooks are installed, but nothing was recorded since {last}; `guardhook doctor` tells why")
    return found


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _days_since(day: str) -> float:
    try:
        return (time.time() - time.mktime(time.strptime(day, "%Y-%m-%d"))) / 86400
    except ValueError:
        return 0.0
