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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from guardhook.core.folders import BAKED, Folders, render_baked
from guardhook.harness import launcher
from guardhook.harness.contents import Item, contents

VERSIONS, CURRENT, BIN, RUN, LOCK = "versions", "current", "bin", "run", "place.lock"
MANIFEST = "MANIFEST"
MODES = ("enforce", "observe")
_VERSION = re.compile(r"[0-9a-f]{16}")
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
    if os.name == "nt":
        return str(Path(folders.data, CURRENT, "guardhook-hook.exe"))
    return f"{folders.data}/{BIN}/{dialect}.{mode}"


def current_version(folders: Folders) -> str | None:
    """The version in use, None when nothing (or nothing of ours) is in place."""
    try:
        target = os.readlink(Path(folders.data, CURRENT))
    except OSError:
        return None
    head, _, version = target.rpartition("/")
    return version if head == VERSIONS and _VERSION.fullmatch(version) else None


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


def _place(folders: Folders, base: Path, items: list[Item], shared: bool) -> Placed:
    for name in (VERSIONS, BIN):
        _own_folder(base / name, shared)
    if shared:
        items = [
            Item(item.name, item.mode | (item.mode & 0o500) >> 3 | (item.mode & 0o500) >> 6, item.data)
            for item in items
        ]
    else:
        items = [*items, Item(BAKED, 0o400, render_baked(folders).encode())]
    form = "none" if os.name == "nt" else "c" if any(item.name == "launcher" for item in items) else "sh"
    note = next((item.note for item in items if item.note), "")
    manifest = _manifest(items)
    version = _version(manifest)
    folder = base / VERSIONS / version
    changed = False
    if _folder_problems(folder):
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


def _manifest(items: list[Item]) -> bytes:
    """One line per file: SHA-256, mode, name."""
    names = [item.name for item in items]
    if len(set(names)) != len(names) or MANIFEST in names:
        raise ValueError("two files of one name in the program")
    rows = [
        f"{hashlib.sha256(i.data).hexdigest()} {i.mode:04o} {i.name}\n" for i in sorted(items, key=lambda i: i.name)
    ]
    return "".join(rows).encode()


def _version(manifest: bytes) -> str:
    return hashlib.sha256(manifest).hexdigest()[:16]


def _folder_mode(manifest: bytes) -> int:
    """Folders are as readable as the files in them. The manifest's own name is not in it, so its mode goes by this too."""
    return 0o555 if b" 0444 " in manifest or b" 0555 " in manifest else 0o500


def _write_version(base: Path, folder: Path, items: list[Item], manifest: bytes) -> None:
    partial = base / VERSIONS / f".{folder.name}.{secrets.token_hex(4)}.tmp"
    partial.mkdir(mode=0o700)
    for item in [*items, Item(MANIFEST, _folder_mode(manifest) & 0o444, manifest)]:
        path = partial / item.name
        for parent in reversed(path.relative_to(partial).parents[:-1]):
            (partial / parent).mkdir(mode=0o700, exist_ok=True)
        _write_file(path, item.data, item.mode)
    mode = _folder_mode(manifest)
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
        if os.name == "posix":
            os.fchmod(fd, mode)
        os.fsync(fd)


def _swap_link(base: Path, version: str) -> None:
    partial = base / f".{CURRENT}.{secrets.token_hex(4)}.tmp"
    os.symlink(f"{VERSIONS}/{version}", partial, target_is_directory=True)
    os.replace(partial, base / CURRENT)
    _sync_folder(base)


def _sync_folder(path: Path) -> None:
    """A rename that a power cut must not undo. Not on Windows, where folders can't be opened."""
    if os.name == "posix":
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _names() -> list[str]:
    from guardhook.dialects import table

    return [f"{dialect}.{mode}" for dialect in sorted(table.MODULES) for mode in MODES]


def _launcher_bytes(folder: Path, form: str, path: Path) -> bytes:
    if form == "c":
        return (folder / "launcher").read_bytes()
    return launcher.fill_path((folder / "launcher.sh").read_text(encoding="ascii"), str(path)).encode()


def _place_launchers(base: Path, folder: Path, form: str) -> bool:
    changed = False
    mode = stat.S_IMODE(folder.stat().st_mode)  # a launcher is as executable as its version's folder is searchable
    for name in _names():
        path = base / BIN / name
        wanted = _launcher_bytes(folder, form, path)
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
        elif entry.name != keep and _VERSION.fullmatch(entry.name):
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


# --- looking at it -----------------------------------------------------------------------------------------------


def verify(folders: Folders) -> list[str]:
    """Everything that is not as `place` left it: changed, missing and added files, modes, owners, links. [] = intact."""
    base = Path(folders.data)
    problems = []
    for path in (base, base / VERSIONS, base / BIN):
        problems += _entry_problems(path, stat.S_IFDIR, None)
    if problems:
        return problems
    version = current_version(folders)
    if version is None:
        return [f"{base / CURRENT} is missing or is not a link to one of our versions"]
    folder = base / VERSIONS / version
    problems = _folder_problems(folder)
    try:
        shared = _folder_mode((folder / MANIFEST).read_bytes()) == 0o555
        baked = render_baked(folders) if shared else (folder / BAKED).read_text(encoding="utf-8")
        if baked != render_baked(folders):
            problems.append(f"{folder / BAKED} names other folders than this installation has")
    except (OSError, ValueError):
        pass  # reported already, as missing or changed
    return problems + ([] if os.name == "nt" else _launcher_problems(base, folder))


def _folder_problems(folder: Path) -> list[str]:
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        return [f"{folder / MANIFEST} can't be read ({error.strerror})"]
    if _version(manifest) != folder.name:
        return [f"{folder / MANIFEST} was changed"]
    folder_mode = _folder_mode(manifest)
    problems = _entry_problems(folder, stat.S_IFDIR, folder_mode)
    if problems:
        return problems
    expected = {MANIFEST: (hashlib.sha256(manifest).hexdigest(), folder_mode & 0o444)}
    for line in manifest.decode("utf-8").splitlines():
        digest, octal, name = line.split(" ", 2)
        expected[name] = (digest, int(octal, 8))
    present: set[str] = set()
    for root, names, files in os.walk(folder):
        for name in names:
            path = Path(root, name)
            inside = path.relative_to(folder).as_posix() + "/"
            if any(wanted.startswith(inside) for wanted in expected) and not path.is_symlink():
                problems += _entry_problems(path, stat.S_IFDIR, folder_mode)
            else:
                problems.append(f"{path} does not belong there")
        present.update(Path(root, name).relative_to(folder).as_posix() for name in files)
    problems += [f"{folder / name} does not belong there" for name in sorted(present - set(expected))]
    for name in sorted(expected):
        path = folder / name
        found = _entry_problems(path, stat.S_IFREG, expected[name][1])
        if not found and hashlib.sha256(path.read_bytes()).hexdigest() != expected[name][0]:
            found = [f"{path} was changed"]
        problems += found
    return problems


def _launcher_problems(base: Path, folder: Path) -> list[str]:
    form = "c" if (folder / "launcher").exists() else "sh"
    problems = []
    for name in _names():
        path = base / BIN / name
        found = _entry_problems(path, stat.S_IFREG, stat.S_IMODE(folder.stat().st_mode))
        try:
            if not found and path.read_bytes() != _launcher_bytes(folder, form, path):
                found = [f"{path} is not the launcher that was put there"]
        except OSError as error:
            found = [f"{path} can't be checked ({error.strerror})"]
        problems += found
    known = set(_names())
    problems += [f"{base / BIN / e} does not belong there" for e in sorted(os.listdir(base / BIN)) if e not in known]
    return problems


def _entry_problems(path: Path, kind: int, mode: int | None) -> list[str]:
    """Kind, owner and mode of one file or folder. mode None: anything that others can't write to."""
    try:
        facts = path.lstat()
    except OSError as error:
        return [f"{path} is missing" if isinstance(error, FileNotFoundError) else f"{path}: {error.strerror}"]
    if stat.S_IFMT(facts.st_mode) != kind:
        return [f"{path} is not a {'folder' if kind == stat.S_IFDIR else 'regular file'}"]
    if os.name != "posix":
        return []
    problems = []
    if facts.st_uid not in (os.geteuid(), 0):
        problems.append(f"{path} belongs to another user (id {facts.st_uid})")
    bits = stat.S_IMODE(facts.st_mode)
    if bits != mode if mode is not None else bits & 0o022:
        problems.append(f"{path} has mode {bits:04o}" + (f" instead of {mode:04o}" if mode is not None else ""))
    return problems


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
            if os.name == "nt":
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
    problems = _entry_problems(path, stat.S_IFDIR, None)
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
