"""Reading policy files of all layers, with every error told as file, line and field. Cold.

Shipped, system and user files that can't be read or hold an unusable policy are errors: they block everything until they are
mended. Files of a project are reported and ignored, or a broken repository would lock out who works in it; they may only tighten.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from guardhook.core import limits
from guardhook.core.folders import Folders
from guardhook.core.verdict import BLOCKING
from guardhook.policy import check, compiled, config, layers, settings_check
from guardhook.policy.layers import Found, Loaded
from guardhook.policy.model import (
    ExceptionFile,
    OverrideFile,
    PolicyFile,
)
from guardhook.policy.sources import SourceError, Sources
from guardhook.policy.tomlfile import PolicyError, line_of, parse


def _checked(text: bytes, path: str, layer: str) -> list[Found]:
    """The policies of one file. Raises PolicyError for the first thing wrong."""
    decoded = parse(text, path, PolicyFile)
    body = text.decode("utf-8")
    lines = [row for row, line in enumerate(body.split("\n"), 1) if re.match(r"\s*\[\[\s*policy\s*\]\]", line)]
    # Counting headers can go wrong where a long text holds one; then the slow way finds the line.
    plain = len(lines) == len(decoded.policy)
    found: list[Found] = []
    for number, policy in enumerate(decoded.policy):
        at = f"policy[{number}]"
        try:
            check.check(policy)
        except check.Problem as problem:
            where = f"{at}.{problem.field}"
            raise PolicyError(path, line_of(body, where), f"{where} ({policy.name})", str(problem)) from None
        found.append(Found(policy, layer, path, lines[number] if plain else line_of(body, at)))
    return found


def read_layer(loaded: Loaded, folder: str, layer: str, note: Callable[[PolicyError], None]) -> None:
    """Adds the policies of a folder; note is told what is wrong with each file."""
    try:
        names = loaded.sources.folder(folder)
    except SourceError as error:
        note(PolicyError(error.path, None, "", str(error)))
        return
    names = names or []
    if layer == "project" and len(names) > limits.PROJECT_FILES:
        note(PolicyError(folder, None, "", f"more than {limits.PROJECT_FILES} files; the rest is ignored"))
        names = names[: limits.PROJECT_FILES]
    for name in names:
        read_file(loaded, f"{folder}/{name}", layer, note)
    if layer in ("system", "user"):
        loaded.problems += _misnamed(folder)


def _misnamed(folder: str) -> list[str]:
    """What lies among policy files and is none by its name: a rule in there would be dead without a word."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [
        f"{folder}/{name}: not read, the name of a policy file ends in .toml; rename it or take it out of the folder"
        for name in names
        if not name.startswith(".") and not name.endswith((".toml", "~", *_NOTES))
    ]


# Endings of what people leave beside their policies to read it themselves.
_NOTES = (".md", ".txt", ".rst")


def read_file(loaded: Loaded, path: str, layer: str, note: Callable[[PolicyError], None]) -> None:
    """Adds the policies of one file to a layer; note is told what is wrong with it."""
    try:
        data = loaded.sources.file(path)
        found = _checked(data, path, layer) if data is not None else []
    except SourceError as error:
        note(PolicyError(error.path, None, "", str(error)))
        return
    except PolicyError as error:
        note(error)
        return
    seen = {f.policy.name: f for f in loaded.policies if f.layer == layer}
    for entry in found:
        before = seen.get(entry.policy.name)
        if before is not None:
            where = f"{before.path}:{before.line}"
            message = f"{entry.policy.name!r} is already defined in {where}; rename one"
            note(PolicyError(path, entry.line, "name", message))
        elif layer == "project" and entry.policy.action == "allow":
            note(PolicyError(path, entry.line, "action", "a project may only tighten; `allow` is ignored"))
        else:
            seen[entry.policy.name] = entry
            loaded.policies.append(entry)


def shipped_of(loaded: Loaded) -> None:
    """Reads the shipped layer."""
    folder = compiled.shipped_folder()
    stamp = compiled.shipped_digest_file(folder)
    if stamp is not None:
        # The folder of a one-file program moves with every start: its stamp stands for it, and its files are not sources.
        aside = Loaded()
        data = aside.sources.file(stamp)
        if data is None:
            loaded.errors.append(PolicyError(stamp, None, "", "missing; the program is damaged, install it again"))
            return
        loaded.sources.text(stamp.rpartition("/")[2], data)
        read_layer(aside, folder, "shipped", loaded.errors.append)
        loaded.policies.extend(aside.policies)
        return
    read_layer(loaded, folder, "shipped", loaded.errors.append)


def load(folders: Folders, now: float) -> Loaded:
    """Shipped, system and user policies with overrides, presets and exceptions applied. now: epoch seconds."""
    loaded = Loaded()
    shipped_of(loaded)
    read_layer(loaded, folders.system_policies, "system", loaded.errors.append)
    read_layer(loaded, folders.user_policies, "user", loaded.errors.append)
    loaded.config = config.read(folders, loaded)
    _switch(loaded, folders)
    own = [f for f in loaded.policies if f.on and f.layer == "system" and f.policy.action in BLOCKING]
    if own and loaded.config["preset"] == "observe" and loaded.system_preset != "observe":
        # The user's own word takes the user's own gate off, not what the machine's administrator asks for.
        loaded.config["system_enforced"] = True
        loaded.problems.append(
            f"{folders.config}/config.toml: preset `observe` does not reach system policies, which stay enforced"
        )
    _except(loaded, folders, now)
    told = {(error.path, error.field) for error in loaded.errors}
    loaded.problems += [str(p) for p in settings_check.problems(folders) if (p.path, p.name) not in told]
    for found in loaded.policies:
        given = found.policy.match.given()
        if not given:
            loaded.problems.append(
                f"{found.path}:{found.line}: policy {found.policy.name!r} has an empty match and does nothing"
            )
    return loaded


def load_project(root: str) -> Loaded:
    """The policies that a project brings along. What is wrong with them ends up in problems, never in errors."""
    loaded = Loaded(sources=Sources(project=True))
    below = f"{root}/{compiled.PROJECT_POLICIES}"
    parent = below.rpartition("/")[0]
    if os.path.islink(parent):
        loaded.sources.found.append((parent, "linkless", compiled.identity(os.lstat(parent)), None))
        loaded.problems.append(f"{parent}: a link; policies of a project are plain files, so they are ignored")
        return loaded
    read_layer(loaded, below, "project", lambda error: loaded.problems.append(f"{error} (ignored)"))
    for found in loaded.policies:
        found.on = found.policy.enabled
        found.why_off = "" if found.on else "disabled"
    return loaded


def project_files(root: str) -> Loaded:
    """The sources of a project's policies and nothing of what they say."""
    loaded = Loaded(sources=Sources(project=True))
    below = f"{root}/{compiled.PROJECT_POLICIES}"
    with contextlib.suppress(SourceError):
        for name in (loaded.sources.folder(below) or [])[: limits.PROJECT_FILES]:
            with contextlib.suppress(SourceError):
                loaded.sources.file(f"{below}/{name}")
    return loaded


def _switch(loaded: Loaded, folders: Folders) -> None:
    """Decides which policies are on: `enabled`, the preset, and for shipped ones the user's overrides."""
    path = f"{folders.config}/overrides.toml"
    given: dict[str, bool] = {}
    read = layers.read(loaded, path, OverrideFile)
    shipped = {f.policy.name for f in loaded.policies if f.layer == "shipped"}
    for number, override in enumerate(read[0].override if read else ()):
        given[override.policy] = override.enabled
        if read and override.policy not in shipped:
            line = line_of(read[1], f"override[{number}].policy")
            loaded.problems.append(
                f"{path}:{line}: there is no shipped policy {override.policy!r}; remove the override"
            )
    preset = loaded.config.get("preset")
    chosen = "balanced" if preset == "observe" else preset
    own = "balanced" if loaded.system_preset in (None, "observe") else loaded.system_preset  # of the system layer
    for found in loaded.policies:
        policy = found.policy
        if not policy.enabled:
            found.on, found.why_off = False, "disabled"
        elif policy.presets is not None and not {chosen, found.layer == "system" and own}.intersection(policy.presets):
            found.on, found.why_off = False, f"off in preset {preset}"
        if found.layer == "shipped" and policy.name in given:
            found.on = given[policy.name]
            found.why_off = "" if found.on else "disabled by an override"


def expiry(value: object) -> float:
    """The end of an exception in epoch seconds; a day counts to its end, without a zone in local time. Raises ValueError."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value) if "T" in value or " " in value else date.fromisoformat(value)
    if isinstance(value, datetime):
        return value.timestamp()
    if not isinstance(value, date):
        raise ValueError("not a date")
    return (datetime(value.year, value.month, value.day) + timedelta(days=1)).astimezone().timestamp()


def _except(loaded: Loaded, folders: Folders, now: float) -> None:
    """Attaches the user's exceptions to the policies they narrow."""
    path = f"{folders.config}/exceptions.toml"
    read = layers.read(loaded, path, ExceptionFile)
    if read is None:
        return
    for number, entry in enumerate(read[0].exception):
        at = f"exception[{number}]"
        try:
            check.pattern(entry.match, "match")
            if not entry.match.given():
                raise check.Problem("match", "it is empty; name what is excepted, or disable the policy instead")
            if not entry.reason.strip():
                raise check.Problem("reason", "it is empty; say why this is excepted")
            try:
                end = expiry(entry.expires)
            except (ValueError, OverflowError):
                raise check.Problem("expires", f"{entry.expires!r} is not a date; write it as 2030-01-31") from None
        except check.Problem as problem:
            where = f"{at}.{problem.field}"
            loaded.errors.append(PolicyError(path, line_of(read[1], where), where, str(problem)))
            continue
        line = line_of(read[1], f"{at}.policy")
        if end <= now:
            day = datetime.fromtimestamp(end - 1, UTC).date()  # the last one on which it held
            loaded.expired.append(entry)
            loaded.problems.append(
                f"{path}:{line}: the exception from {entry.policy!r} expired on {day}; remove or renew it"
            )
            continue
        named = [f for f in loaded.policies if f.policy.name == entry.policy]
        for found in named:
            if found.layer != "system":
                found.exceptions.append((entry, end))
        if not named:
            loaded.problems.append(f"{path}:{line}: there is no policy {entry.policy!r}; remove the exception")
        elif all(f.layer == "system" for f in named):
            loaded.problems.append(
                f"{path}:{line}: {entry.policy!r} is a system policy, which a user can't except; it is ignored"
            )
