"""Puts the hook program and its launchers in place, and tells whether they are still what was put there.

Below the data folder: `versions/<16 hex>/` holds one unpacked program, named by the hash of its MANIFEST; `current` links to
the one in use; `bin/<dialect>.enforce|observe` are the launchers that harnesses register. An upgrade writes a new
version, swaps the link and keeps the version before it for hooks that are still running; registrations never change.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from guardhook.core.folders import BAKED, Folders, render_baked
from guardhook.harness import intact, launcher
from guardhook.harness.contents import Item, contents
from guardhook.harness.intact import (
    BIN,
    CURRENT,
    MANIFEST,
    MODES,
    VERSION_NAME,
    VERSIONS,
    current_version,
    entry_problems,
    folder_mode_of,
    folder_problems,
    launcher_bytes,
    launcher_names,
    verify,
    version_of,
)  # fmt: skip

__all__ = [
    "BIN",
    "MODES",
    "Placed",
    "ProgramError",
    "current_version",
    "launcher_path",
    "place",
    "prepare",
    "remove",
    "verify",
]

RUN, LOCK = "run", "place.lock"
_LAUNCHER = re.compile(r"[a-z][a-z0-9-]*\.(?:enforce|observe)")
_KEPT_BEFORE = 1  # versions kept beside the current one


class ProgramError(Exception):
    """The program can't be put in place or taken away; the message is for a person."""


@dataclass(frozen=True)
class Placed:
    """What `place` did. form is `c` or `sh` for POSIX launchers, `none` where the hook program itself is registered."""

    version: str
    folder: str
    form: str
    note: str  # why the weaker form was taken, "" otherwise
    changed: bool
    removed: tuple[str, ...]  # versions that were cleaned away


def launcher_path(folders: Folders, dialect: str, mode: str) -> str:
    """The stable path that a harness registers. mode is `enforce` or `observe`."""
    if mode not in MODES:
        raise ValueError(f"not a mode: {mode}")
    if intact.WINDOWS:
        return os.path.join(folders.data, CURRENT, "guardhook-hook.exe")
    return f"{folders.data}/{BIN}/{dialect}.{mode}"


# --- putting it in place -----------------------------------------------------------------------------------------


def place(folders: Folders, items: list[Item] | None = None, *, shared: bool = False) -> Placed:
    """Unpacks this program into its version folder and points everything at it. Idempotent; safe to run twice at once.

    shared puts one program below folders.data that every user of the machine may run but not change, with no folders
    baked in: each user's hook then uses the folders below that user's home. Only the C launcher can be shared. items
    replaces the contents of this very program (tests). Raises ProgramError.
    """
    base = Path(folders.data)
    try:
        _own_folder(base, shared)
        with _locked(base):
            return _place(folders, base, contents() if items is None else items, shared)
    except (OSError, launcher.LauncherError, ValueError) as error:
        raise ProgramError(f"the hook program can't be put in place: {error}") from error


def prepare(folders: Folders) -> None:
    """Compiles the policies if that is due, so that the first call needn't wait for it. A fault is the hook's to tell."""
    from guardhook.journal.rules import freeze_rules
    from guardhook.policy import compile as compiler
    from guardhook.policy import compiled

    try:
        compiled.load(folders)
    except compiled.CompiledError:
        with suppress(Exception):
            compiler.write(compiler.compile_main(folders, redact=freeze_rules))


def _place(folders: Folders, base: Path, items: list[Item], shared: bool) -> Placed:
    for name in (VERSIONS, BIN):
        _own_folder(base / name, shared)
    items = _dressed(folders, items, shared)
    form = "none" if intact.WINDOWS else "c" if any(item.name == "launcher" for item in items) else "sh"
    note = next((item.note for item in items if item.note), "")
    manifest = _manifest(items)
    version = version_of(manifest)
    folder = base / VERSIONS / version
    changed = False
    if folder_problems(folder):
        _write_version(base, folder, items, manifest)
        changed = True
    before = current_version(folders)
    if before != version:
        _swap_link(base, version)
        changed = True
    if form == "sh":
        if shared:
            raise ValueError(f"the sh launcher can't be shared between users; {note}")
        _own_folder(base / RUN, False)
    if form != "none":
        changed |= _place_launchers(base, folder, form)
    removed = _clean(base, keep=version, before=before)
    return Placed(version, str(folder), form, note, changed, removed)


def _dressed(folders: Folders, items: list[Item], shared: bool) -> list[Item]:
    """The items as they lie in a version folder: readable for all where that is shared, else with the folders baked in."""
    if shared:
        return [
            Item(item.name, item.mode | (item.mode & 0o500) >> 3 | (item.mode & 0o500) >> 6, item.data)
            for item in items
        ]
    return [*items, Item(BAKED, 0o400, render_baked(folders).encode())]


def outdated(folders: Folders, *, shared: bool = False) -> bool:
    """Whether the hooks run another version than this very program, which `install` would put in place."""
    try:
        return current_version(folders) != version_of(_manifest(_dressed(folders, contents(), shared)))
    except (OSError, launcher.LauncherError, ValueError):
        return False  # what this program is can't be told; `verify` speaks of what is in place


def _manifest(items: list[Item]) -> bytes:
    """One line per file: SHA-256, mode, name."""
    names = [item.name for item in items]
    if len(set(names)) != len(names) or MANIFEST in names:
        raise ValueError("two files of one name in the program")
    rows = [
        f"{hashlib.sha256(i.data).hexdigest()} {i.mode:04o} {i.name}\n" for i in sorted(items, key=lambda i: i.name)
    ]
    return "".join(rows).encode()


def _write_version(base: Path, folder: Path, items: list[Item], manifest: bytes) -> None:
    partial = base / VERSIONS / f".{folder.name}.{secrets.token_hex(4)}.tmp"
    partial.mkdir(mode=0o700)
    for item in [*items, Item(MANIFEST, folder_mode_of(manifest) & 0o444, manifest)]:
        path = partial / item.name
        for parent in reversed(path.relative_to(partial).parents[:-1]):
            (partial / parent).mkdir(mode=0o700, exist_ok=True)
        _write_file(path, item.data, item.mode)
    mode = folder_mode_of(manifest)
    for parent in sorted({p for p in partial.rglob("*") if p.is_dir()}, reverse=True):
        parent.chmod(mode)
    if os.path.lexists(folder):  # damaged: out of the way, under a name that cleaning takes
        os.rename(folder, base / VERSIONS / f".{folder.name}.{secrets.token_hex(4)}.tmp")
    os.rename(partial, folder)
    folder.chmod(mode)
    _sync_folder(base / VERSIONS)


def _write_file(path: Path, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    fd = os.open(path, flags, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        if not intact.WINDOWS:
            os.fchmod(fd, mode)
        os.fsync(fd)


def _swap_link(base: Path, version: str) -> None:
    if (
        sys.platform == "win32"
    ):  # symbolic links need a privilege there, junctions don't; they can't be replaced at one go
        import _winapi

        if os.path.lexists(base / CURRENT):
            os.rmdir(base / CURRENT)
        _winapi.CreateJunction(str(base / VERSIONS / version), str(base / CURRENT))
        return
    partial = base / f".{CURRENT}.{secrets.token_hex(4)}.tmp"
    os.symlink(f"{VERSIONS}/{version}", partial, target_is_directory=True)
    os.replace(partial, base / CURRENT)
    _sync_folder(base)


def _sync_folder(path: Path) -> None:
    """A rename that a power cut must not undo. Not on Windows, where folders can't be opened."""
    if not intact.WINDOWS:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _place_launchers(base: Path, folder: Path, form: str) -> bool:
    changed = False
    mode = stat.S_IMODE(folder.stat().st_mode)  # a launcher is as executable as its version's folder is searchable
    for name in launcher_names():
        path = base / BIN / name
        wanted = launcher_bytes(folder, form, path)
        if _same_file(path, wanted, mode):
            continue
        partial = base / BIN / f".{name}.{secrets.token_hex(4)}.tmp"
        try:
            if form != "c":
                raise OSError("each sh launcher has its own text")
            os.link(folder / "launcher", partial)  # one file under many names: one copy in memory
        except OSError:
            _write_file(partial, wanted, mode)
        os.replace(partial, path)
        changed = True
    if changed:
        _sync_folder(base / BIN)
    return changed


def _same_file(path: Path, data: bytes, mode: int) -> bool:
    try:
        facts = path.lstat()
        return stat.S_ISREG(facts.st_mode) and stat.S_IMODE(facts.st_mode) == mode and path.read_bytes() == data
    except OSError:
        return False


def _clean(base: Path, *, keep: str, before: str | None) -> tuple[str, ...]:
    """Removes unfinished versions and all but the newest other ones. Under the lock nobody else is writing one."""
    others: list[tuple[float, str]] = []
    gone: list[str] = []
    for entry in os.scandir(base / VERSIONS):
        if entry.name.endswith(".tmp"):
            _remove_tree(Path(entry.path))
        elif entry.name != keep and VERSION_NAME.fullmatch(entry.name):
            newest = float("inf") if entry.name == before else entry.stat(follow_symlinks=False).st_mtime
            others.append((newest, entry.name))
    for _, name in sorted(others, reverse=True)[_KEPT_BEFORE:]:
        _remove_tree(base / VERSIONS / name)
        gone.append(name)
    for folder in (base, base / BIN):
        for entry in os.scandir(folder):
            if entry.name.startswith(".") and entry.name.endswith(".tmp") and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
    return tuple(gone)


# --- taking it away ----------------------------------------------------------------------------------------------


def remove(folders: Folders) -> list[str]:
    """Takes launchers and versions away, nothing else of the data folder. Returns what was removed. Raises ProgramError."""
    base = Path(folders.data)
    if not base.is_dir():
        return []
    removed = []
    try:
        with _locked(base):
            if os.path.lexists(base / CURRENT):
                os.unlink(base / CURRENT)
                removed.append(str(base / CURRENT))
            for entry in sorted(os.listdir(base / BIN)) if (base / BIN).is_dir() else []:
                if _LAUNCHER.fullmatch(entry):
                    os.unlink(base / BIN / entry)
                    removed.append(str(base / BIN / entry))
            for name in (VERSIONS, RUN):
                if (base / name).is_dir() and not (base / name).is_symlink():
                    _remove_tree(base / name)
                    removed.append(str(base / name))
            try:
                os.rmdir(base / BIN)
            except OSError:
                pass  # somebody else's file is in it, or it was never there
        os.unlink(base / LOCK)
    except OSError as error:
        raise ProgramError(f"the hook program can't be removed: {error}") from error
    return removed


def _remove_tree(path: Path) -> None:
    """Removes a folder whose parts are write-protected; never follows a link."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    path.chmod(0o700)
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            _remove_tree(Path(entry.path))
        else:
            if intact.WINDOWS:
                os.chmod(entry.path, 0o600)
            os.unlink(entry.path)
    path.rmdir()


def _own_folder(path: Path, shared: bool) -> None:
    """Makes the folder (0700, shared 0755) where it is missing; refuses one that others own or may write to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
        if shared:
            path.chmod(0o755)
    except FileExistsError:
        pass
    problems = entry_problems(path, stat.S_IFDIR, None)
    if problems:
        raise ValueError("; ".join(problems))


@contextmanager
def _locked(base: Path) -> Iterator[None]:
    """One installer at a time. The lock ends with the process, however it ends."""
    fd = os.open(
        base / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600
    )
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
