"""Turns policy files into the one file that the gate reads. Cold; runs in `guardhook policy compile`."""

from __future__ import annotations

import marshal
import os
import pwd
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, cast

from guardhook.core import atomic
from guardhook.core.folders import Folders
from guardhook.policy import check, compiled, index, load, trust
from guardhook.policy.layers import Found, Loaded

LOCK_SECONDS = 10.0
Redaction = Callable[[Sequence[str], Sequence[str]], Sequence[object]]
_NOT_TRUSTED = "blocked by a project policy ({})"


class CompileError(Exception):
    """The compiled file can't be written. The message says why and what to do."""


class Result:
    """What compiling gave: the bytes, and what it was made from. blob says so itself when there were errors."""

    def __init__(self, blob: bytes, loaded: Loaded, path: str) -> None:
        self.blob = blob
        self.loaded = loaded
        self.path = path

    @property
    def error(self) -> str | None:
        """The first error of the sources, None when they are fine."""
        return str(self.loaded.errors[0]) if self.loaded.errors else None


def compile_main(folders: Folders, *, redact: Redaction | None = None, now: float | None = None) -> Result:
    """Compiles the shipped, system and user layers in memory.

    redact makes the frozen redaction rows to carry along, of patterns that config.toml adds and names of rules that it leaves out; it is
    guardhook.journal.rules.freeze_rules, which this package does not know.
    """
    loaded = load.load(folders, time.time() if now is None else now)
    custom, off = loaded.secrets
    body = _body(loaded, "", () if redact is None or loaded.errors else tuple(redact(custom, off)))
    return Result(_pack(compiled.origin(folders), loaded, body), loaded, f"{folders.compiled}/{compiled.POLICY_FILE}")


def compile_project(folders: Folders, root: str) -> Result:
    """Compiles the policies of the project at root (absolute path) in memory."""
    root = root.rstrip("/")
    loaded = load.load_project(root)
    body = _body(loaded, "project", (), trusted=trust.holds(folders, root, loaded.sources))
    return Result(_pack(("project", root), loaded, body), loaded, compiled.project_file(folders, root))


def project_without(folders: Folders, root: str, why: str) -> Result:
    """No policies for the project at root, as long as its files stay what they are now. why is told to a person."""
    root = root.rstrip("/")
    loaded = load.project_files(root)
    loaded.problems.append(f"{root}/{compiled.PROJECT_POLICIES}: {why} (ignored)")
    body = _body(loaded, "project", ())
    return Result(_pack(("project", root), loaded, body), loaded, compiled.project_file(folders, root))


def write(result: Result) -> None:
    """Puts the compiled file in place: private folder, lock, temporary file, rename. Raises CompileError."""
    folder = result.path.rpartition("/")[0]
    try:
        _private(folder)
        with atomic.locked(f"{folder}/.lock", LOCK_SECONDS):
            atomic.replace(result.path, result.blob)
            _sync(folder)
    except OSError as error:
        raise CompileError(
            f"the compiled policies can't be written: {error.filename or result.path}: {error.strerror}; "
            "make the folder writable for yourself only"
        ) from None


def _private(folder: str) -> None:
    """Makes the folder and its missing parents, 0700. An existing one must be ours and closed to others' writing."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for path in (folder, folder.rpartition("/")[0]) if folder.endswith(compiled.PROJECT_FOLDER) else (folder,):
        info = os.lstat(path)
        if os.path.islink(path) or not os.path.isdir(path):
            raise NotADirectoryError(20, "not a plain folder", path)
        if info.st_uid != os.geteuid():
            raise PermissionError(1, "belongs to another user", path)
        if info.st_mode & 0o077:
            os.chmod(path, 0o700)


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _pack(made_for: tuple[str, ...], loaded: Loaded, body: tuple[object, ...]) -> bytes:
    error = "" if not loaded.errors else str(loaded.errors[0])
    if len(loaded.errors) > 1:
        error += f" (and {len(loaded.errors) - 1} more)"
    parts: Any = (compiled.program_identity(), made_for, tuple(loaded.sources.found), error, body)
    content = marshal.dumps(parts)
    return compiled.MAGIC + compiled.digest(content) + content


def homes() -> tuple[str, ...]:
    """What `~` stands for in a policy: the home folder of the user database, as named and with links resolved."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ()
    return tuple(dict.fromkeys((home, os.path.realpath(home))))


def policy_id(layer: str, name: str) -> str:
    """A short id that stays the same as long as layer and name do: `pol_` and twelve characters."""
    return "pol_" + blake2b(f"{layer}\0{name}".encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


def row_of(found: Found, patterns: index.Patterns, home: tuple[str, ...], *, trusted: bool = False) -> index.Row:
    """The row that the gate matches (fields: guardhook.policy.match). trusted: a project's own words may be told."""
    policy = found.policy
    on_event, on_effect = index.conditions_of(policy.match.given(), patterns, home)
    unless = index.conditions_of(policy.unless.given(), patterns, home) if policy.unless is not None else None
    exceptions = tuple((end, *index.conditions_of(e.match.given(), patterns, home)) for e, end in found.exceptions)
    ident = policy_id(found.layer, policy.name)
    name, text, suggest = policy.name, policy.reason or policy.description, policy.suggest
    if found.layer == "project" and not trusted:
        # A repository's words, names included, reach the model only once its user has said that he trusts them.
        name, text, suggest = ident, _NOT_TRUSTED.format(ident), ""
    return (
        name,
        ident,
        policy.action,
        found.layer,
        policy.priority,
        text,
        suggest,
        on_event,
        on_effect,
        unless,
        exceptions,
    )


def build(
    policies: Sequence[Found], layer: str = "", *, trusted: bool = False
) -> tuple[str, tuple[bytes, ...], dict[str, object], tuple[bytes, ...]]:
    """(set id, marshalled rows, index, marshalled patterns) of the policies that are on, given in order."""
    patterns = index.Patterns()
    home = homes()
    entries = [(f.policy.match.given(), row_of(f, patterns, home, trusted=trusted)) for f in policies if f.on]
    rows = tuple(marshal.dumps(row) for _, row in entries)
    frozen = tuple(marshal.dumps(cast(Any, p)) for p in patterns.frozen)
    # The id names the rules, not the machine or the day: it is taken from their sources.
    name = blake2b(digest_size=16)
    for found in policies:
        if found.on:
            name.update(
                repr((found.layer, found.policy, [e for e, _ in found.exceptions])).encode("utf-8", "backslashreplace")
            )
    name.update(layer.encode())
    return name.hexdigest(), rows, dict(index.index_of(list(entries))), frozen


def _body(loaded: Loaded, layer: str, redact: tuple[object, ...], *, trusted: bool = False) -> tuple[object, ...]:
    if loaded.errors:
        return ("", layer, (), {}, (), {}, (), {}, [])
    ordered = loaded.ordered()
    set_id, rows, table, patterns = build(ordered, layer, trusted=trusted)
    quick = {"shell": _triggers(ordered, base=not layer)}
    return (set_id, layer, rows, table, patterns, loaded.config, redact, quick, loaded.problems)


def _triggers(policies: Sequence[Found], *, base: bool) -> bytes | None:
    """The trigger words of the quick pass, marshalled. base: with the words that always count, which the main set carries."""
    from guardhook.analysis import vocabulary

    own = index.triggers_of([f.policy.match.given() for f in policies if f.on])
    if own is None:
        return None
    return marshal.dumps(own | vocabulary.triggers() if base else own)


def notes(loaded: Loaded) -> list[str]:
    """What should be known about policies that are on: costly expressions, keys that only audit."""
    return [
        f"{found.path}:{found.line}: policy {found.policy.name!r}: {warning}"
        for found in loaded.ordered()
        if found.on
        for warning in check.warnings(found.policy)
    ]


def in_memory(policies: Sequence[Found], config: dict[str, object] | None = None) -> compiled.Compiled:
    """A usable set straight from policies, for tests of policies and for `guard test`."""
    ordered = Loaded(policies=list(policies)).ordered()
    set_id, rows, table, patterns = build(ordered)
    quick = {"shell": _triggers(ordered, base=True)}
    return compiled.Compiled((set_id, "", rows, table, patterns, config or {"preset": "balanced"}, (), quick, []))
