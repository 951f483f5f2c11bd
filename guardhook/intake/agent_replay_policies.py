"""Policies of an agent-replay store as a file of the user's own: `policies/agent-replay.toml`.

They are written switched off. Whoever imports a history does not ask for other verdicts, the store may be somebody else's, and what a policy says is told to
the agent: a person looks at them first and switches on what is wanted. Nothing that stands in the file already is changed.
"""

from __future__ import annotations

from typing import Any

import msgspec
import tomlkit

from guardhook.core.folders import Folders
from guardhook.core.jsontext import PayloadError, loads_text
from guardhook.policy import check, edit, layers, load, tomlfile
from guardhook.policy.model import CLASSIC_KEYS, Policy, PolicyFile

FILE = "agent-replay.toml"
COLUMNS = ("name", "description", "action", "priority", "enabled", "match_pattern", "action_params")
_MOST = 2_000
_NAME_MOST = 80  # of a name that is told
_HEADER = (
    "Policies that were imported from an agent-replay store, switched off.",
    "`guardhook guard enable NAME` switches one on; `guardhook policy test` runs examples.",
)


def take(rows: list[dict[str, object]], folders: Folders, dry_run: bool) -> list[str]:
    """Adds the usable policies to the file. Gives what was done, and what was not and why, for a person."""
    usable: list[tuple[Policy, bool]] = []
    notes: list[str] = []
    for row in rows[:_MOST]:
        name = str(row.get("name"))
        name = name if len(name) <= _NAME_MOST else name[: _NAME_MOST - 1] + "…"
        made = policy_of(row)
        if isinstance(made, str):
            notes.append(f"policy {name!r} was not taken: {made}")
        elif any(made.name == other.name for other, _ in usable):
            notes.append(f"policy {name!r} was not taken: the store has two of this name")
        else:
            usable.append((made, bool(row.get("enabled"))))
    if len(rows) > _MOST:
        notes.append(f"only the first {_MOST} of {len(rows)} policies were looked at")
    if not usable:
        return notes
    path = f"{folders.user_policies}/{FILE}"
    try:
        fresh, there = _split(usable, folders)
        if fresh and not dry_run:
            with edit.editing(folders):
                fresh, there = _split(usable, folders)
                if fresh:
                    _write(path, fresh)
    except (edit.EditError, tomlfile.PolicyError) as error:
        return [*notes, f"no policy was taken: {error}"]
    notes += [f"policy {name!r}: there is one of this name already ({where}), which stays as it is" for name, where in there]  # fmt: skip
    if fresh:
        were = sum(on for _, on in fresh)
        done = "would be written" if dry_run else "were written"
        notes.insert(
            0,
            f"{len(fresh)} policies {done} to {path}, all switched off ({were} of them were on): look at them, then `guardhook guard enable NAME`",
        )
    return notes


def policy_of(row: dict[str, object]) -> Policy | str:
    """The policy in a row, or why there is none."""
    text = row.get("match_pattern")
    try:
        pattern = loads_text(str(text))
    except PayloadError:
        return "its pattern is no JSON"
    if not isinstance(pattern, dict):
        return "its pattern is no object"
    unknown = sorted(str(key) for key in pattern if key not in CLASSIC_KEYS)
    if unknown:
        return f"its pattern has the unknown key {unknown[0]!r}"
    match = {key: _needle(value) for key, value in pattern.items() if value is not None}
    if not match:
        return "its pattern is empty and matches nothing"
    given = {
        "name": row.get("name"),
        "action": row.get("action"),
        "match": match,
        "description": row.get("description") if isinstance(row.get("description"), str) else "",
        "priority": row.get("priority") or 0,
        "enabled": False,
    }
    try:
        made = msgspec.convert(given, Policy)
        check.check(made)
    except msgspec.ValidationError as error:
        return tomlfile.plain(str(error))
    except check.Problem as problem:
        return f"{problem.field}: {problem}"
    return made


def _needle(value: object) -> object:
    """A needle as text, as agent-replay reads numbers and truth values."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def _split(
    usable: list[tuple[Policy, bool]], folders: Folders
) -> tuple[list[tuple[Policy, bool]], list[tuple[str, str]]]:
    """Those that are new, and names and places of those that the user has. Raises PolicyError where a file of the user's is broken."""
    loaded = layers.Loaded()
    load.read_layer(loaded, folders.user_policies, "user", loaded.errors.append)
    if loaded.errors:
        raise loaded.errors[0]
    known = {f.policy.name: f"{f.path}:{f.line}" for f in loaded.policies}
    fresh = [(policy, on) for policy, on in usable if policy.name not in known]
    return fresh, [(policy.name, known[policy.name]) for policy, _ in usable if policy.name in known]


def _write(path: str, policies: list[tuple[Policy, bool]]) -> None:
    """Appends to the file. Raises EditError, PolicyError when the result would not load."""
    document = edit.document_of(path)
    if not document.as_string().strip():
        for line in _HEADER:
            document.add(tomlkit.comment(line))
    listed: Any = document.get("policy")
    if listed is None:
        document["policy"] = tomlkit.aot()
        listed = document["policy"]
    for policy, on in policies:
        table = tomlkit.table()
        table.trivia.indent = "\n"
        for key, value in msgspec.to_builtins(policy).items():
            if isinstance(value, dict):
                inline = tomlkit.inline_table()
                inline.update(value)
                value = inline
            item = tomlkit.item(value)
            if key == "enabled" and on:
                item.comment("it was on")
            table[key] = item
        listed.append(table)
    text = tomlkit.dumps(document).encode("utf-8")
    for policy in tomlfile.parse(text, path, PolicyFile).policy:
        check.check(policy)
    edit.replace(path, text)
