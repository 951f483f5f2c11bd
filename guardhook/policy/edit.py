"""Changes to the user's own policy files: comments and layout stay, a lock keeps editors apart, a rename makes it whole or not at all.

`guard add` appends to `<config>/policies/guard.toml`; `remove`, `enable` and `disable` change the file that a user policy stands in.
Switching a shipped policy writes `<config>/overrides.toml`. System and project policies are not the user's to change here.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError

from guardhook.core import atomic
from guardhook.core.folders import Folders
from guardhook.policy import check, load, tomlfile
from guardhook.policy.compile import policy_id
from guardhook.policy.layers import Found, Loaded
from guardhook.policy.model import OverrideFile, Policy, PolicyFile
from guardhook.policy.tomlfile import PolicyError

ADDED = "guard.toml"
LOCK_SECONDS = 5.0


class EditError(Exception):
    """A change that can't be made. code: 1 failed (no such policy, name taken), 2 refused."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def add(folders: Folders, policy: Policy) -> str:
    """Adds a policy to the user layer and returns its id. Raises EditError."""
    try:
        check.check(policy)
    except check.Problem as problem:
        raise EditError(f"{problem.field}: {problem}") from None
    if not policy.match.given():
        raise EditError("match: an empty pattern does nothing; name at least one key")
    with editing(folders):
        for found in _user_layer(folders):
            if found.policy.name == policy.name:
                raise EditError(f"there is already a policy named {policy.name!r} ({found.path}:{found.line})", 1)
        path = f"{folders.user_policies}/{ADDED}"
        document = document_of(path)
        table = tomlkit.table()
        if document.as_string().strip():
            table.trivia.indent = "\n"
        for key, value in msgspec.to_builtins(policy).items():
            table[key] = item(value)
        listed: Any = document.get("policy")
        if listed is None:
            listed = document["policy"] = tomlkit.aot()
            listed = document["policy"]
        listed.append(table)
        write(path, document, PolicyFile)
    return policy_id("user", policy.name)


def remove(folders: Folders, ident: str) -> str:
    """Removes a user policy by id or name and returns its name. Raises EditError."""
    with editing(folders):
        found = find(folders, ident)
        if found.layer != "user":
            raise EditError(
                f"{found.policy.name!r} is a {found.layer} policy, which can't be removed here; {_instead(found)}"
            )
        document = document_of(found.path)
        listed: Any = document["policy"]
        del listed[_place(listed, found)]
        if not listed:
            del document["policy"]
        write(found.path, document, PolicyFile)
        return found.policy.name


def switch(folders: Folders, ident: str, enabled: bool) -> str:
    """Enables or disables a policy by id or name and returns its name. Raises EditError."""
    with editing(folders):
        found = find(folders, ident)
        if found.layer == "shipped":
            _override(folders, found.policy.name, enabled)
        elif found.layer == "user":
            document = document_of(found.path)
            listed = document["policy"]
            table: Any = listed[_place(listed, found)]
            if "enabled" in table:
                table["enabled"] = enabled
            elif not enabled:
                _after_name(table, "enabled", enabled)
            write(found.path, document, PolicyFile)
        else:
            raise EditError(
                f"{found.policy.name!r} is a {found.layer} policy, which a user can't switch; {_instead(found)}"
            )
        return found.policy.name


def _after_name(table: Any, key: str, value: object) -> None:
    """Adds a line below the policy's name. At the table's end it would land behind the comment of what comes next."""
    item = tomlkit.item(value)
    item.trivia.trail = table["name"].trivia.trail
    if item.trivia.trail:
        table.value._insert_after("name", key, item)  # tomlkit offers no other way
    else:  # the name is the file's last line, and has no end
        table[key] = value


def switch_pack(folders: Folders, pack: str, enabled: bool) -> list[str]:
    """Enables or disables every policy of a shipped pack (`cloud` for cloud.toml) and returns their names. Raises EditError.

    Enabling takes back what disabling did, so that policies of the strict preset are off again where they were; where nothing was switched off, all go on.
    """
    with editing(folders):
        loaded = Loaded()
        load.shipped_of(loaded)
        names = [f.policy.name for f in loaded.policies if f.path.rpartition("/")[2] == f"{pack}.toml"]
        if not names:
            raise EditError(f"there is no policy or pack {pack!r}; `guardhook guard list` shows all", 1)
        back = [name for name in names if _switched_off(folders, name)] if enabled else []
        for name in names:
            if not back:
                _override(folders, name, enabled)
            elif name in back:
                _no_override(folders, name)
        return names


def _instead(found: Found) -> str:
    if found.layer == "shipped":
        return "`guardhook guard disable` switches it off"
    return f"ask whoever keeps {found.path}"


def _override(folders: Folders, name: str, enabled: bool) -> None:
    path = _overrides(folders)
    document = document_of(path)
    listed: Any = document.get("override")
    for table in listed or ():
        if table.get("policy") == name:
            table["enabled"] = enabled
            break
    else:
        if listed is None:
            document["override"] = tomlkit.aot()
            listed = document["override"]
        table = tomlkit.table()
        table["policy"] = name
        table["enabled"] = enabled
        listed.append(table)
    write(path, document, OverrideFile)


def _switched_off(folders: Folders, name: str) -> bool:
    listed: Any = document_of(_overrides(folders)).get("override")
    return any(table.get("policy") == name and table.get("enabled") is False for table in listed or ())


def _no_override(folders: Folders, name: str) -> None:
    path = _overrides(folders)
    document = document_of(path)
    listed: Any = document.get("override")
    for number in reversed(range(len(listed))):
        if listed[number].get("policy") == name:
            del listed[number]
    if not listed:
        del document["override"]
    write(path, document, OverrideFile)


def _overrides(folders: Folders) -> str:
    return f"{folders.config}/overrides.toml"


def _user_layer(folders: Folders) -> list[Found]:
    """The user's policies. Raises EditError when a file of theirs is broken: it is never written over."""
    loaded = Loaded()
    load.read_layer(loaded, folders.user_policies, "user", loaded.errors.append)
    if loaded.errors:
        raise EditError(str(loaded.errors[0]))
    return loaded.policies


def find(folders: Folders, ident: str) -> Found:
    """By exact id first, then by name; the user's own before others. Raises EditError(1) when there is none."""
    loaded = Loaded(policies=_user_layer(folders))
    load.shipped_of(loaded)
    load.read_layer(loaded, folders.system_policies, "system", loaded.errors.append)
    for found in loaded.policies:
        if policy_id(found.layer, found.policy.name) == ident:
            return found
    for found in loaded.policies:
        if found.policy.name == ident:
            return found
    raise EditError(f"there is no policy with the id or name {ident!r}; `guardhook guard list` shows all", 1)


def _place(listed: Any, found: Found) -> int:
    for number, table in enumerate(listed):
        if table.get("name") == found.policy.name:
            return number
    raise EditError(f"{found.path} was changed by somebody else; try again", 1)


def document_of(path: str) -> tomlkit.TOMLDocument:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return tomlkit.parse(stream.read())
    except FileNotFoundError:
        return tomlkit.document()
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise EditError(f"{path}: not valid TOML ({error}); mend it first, it is never written over") from None
    except OSError as error:
        raise EditError(f"{path}: can't be read: {error.strerror}") from None


def item(value: Any) -> Any:
    """A value in the form a person would write it: patterns inline, backslashes in literal strings."""
    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        for key, part in value.items():
            inline[key] = item(part)
        return inline
    if isinstance(value, list):
        array = tomlkit.array()
        for part in value:
            array.append(item(part))
        return array
    if isinstance(value, str) and "\\" in value and "'" not in value and value.isprintable():
        return tomlkit.string(value, literal=True)
    return value


def write(path: str, document: tomlkit.TOMLDocument, type_: type[Any]) -> None:
    text = tomlkit.dumps(document).encode("utf-8")
    try:
        tomlfile.parse(text, path, type_)
    except PolicyError as error:
        raise EditError(f"the change would break the file, so nothing was written: {error}") from None
    replace(path, text)


def replace(path: str, text: bytes, mode: int | None = None) -> None:
    """Puts a new text in a file's place, whole or not at all. mode None keeps the file's own. Raises EditError."""
    # A file that is a link (kept with other settings, say) stays one.
    target = os.path.realpath(path)
    try:
        try:
            mode = stat.S_IMODE(os.stat(target).st_mode) if mode is None else mode
        except FileNotFoundError:
            mode = 0o600
        atomic.replace(target, text, mode)
    except OSError as error:
        raise EditError(f"{path}: can't be written: {error.strerror}", 1) from None


@contextlib.contextmanager
def editing(folders: Folders) -> Iterator[None]:
    """Keeps other editors out; makes the user's folder."""
    with contextlib.ExitStack() as held:
        try:
            for folder in (folders.config, folders.user_policies):
                os.makedirs(folder, mode=0o700, exist_ok=True)
            held.enter_context(atomic.locked(f"{folders.config}/.edit.lock", LOCK_SECONDS))
        except TimeoutError:
            raise EditError("another guardhook is editing the policies; try again", 1) from None
        except OSError as error:
            raise EditError(f"{error.filename or folders.config}: can't be written: {error.strerror}", 1) from None
        yield
