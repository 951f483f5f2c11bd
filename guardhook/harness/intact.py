"""Whether the hook program and its launchers are still what was put in place.

A version's folder is named by the hash of its MANIFEST, which has the hash and mode of every file in it; the launchers
must be byte for byte the ones of the current version. That finds accidents and casual tampering. Whoever may write as this user can
also write a whole new version: only a program that root owns resists the agent it guards.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from guardhook.core.folders import BAKED, Folders, render_baked
from guardhook.harness import launcher

VERSIONS, CURRENT, BIN = "versions", "current", "bin"
MANIFEST = "MANIFEST"
MODES = ("enforce", "observe")
WINDOWS = os.name == "nt"
VERSION_NAME = re.compile(r"[0-9a-f]{16}")


def current_version(folders: Folders) -> str | None:
    """The version in use, None when nothing (or nothing of ours) is in place."""
    try:
        target = os.readlink(Path(folders.data, CURRENT)).replace("\\", "/")
    except OSError:
        return None
    head, _, version = target.rpartition("/")  # a Windows junction has an absolute target
    return (
        version
        if (head.endswith("/" + VERSIONS) if WINDOWS else head == VERSIONS) and VERSION_NAME.fullmatch(version)
        else None
    )


def version_of(manifest: bytes) -> str:
    return hashlib.sha256(manifest).hexdigest()[:16]


def folder_mode_of(manifest: bytes) -> int:
    """Folders are as readable as the files in them. The manifest's own name is not in it, so its mode goes by this too."""
    return 0o555 if b" 0444 " in manifest or b" 0555 " in manifest else 0o500


def launcher_names() -> list[str]:
    from guardhook.dialects import table

    return [f"{dialect}.{mode}" for dialect in sorted(table.MODULES) for mode in MODES]


def launcher_bytes(folder: Path, form: str, path: Path) -> bytes:
    if form == "c":
        return (folder / "launcher").read_bytes()
    return launcher.fill_path((folder / "launcher.sh").read_text(encoding="ascii"), str(path)).encode()


def verify(folders: Folders) -> list[str]:
    """Everything that is not as `place` left it: changed, missing and added files, modes, owners, links. [] = intact."""
    base = Path(folders.data)
    problems = []
    for path in (base, base / VERSIONS, base / BIN):
        problems += entry_problems(path, stat.S_IFDIR, None)
    if problems:
        return problems
    version = current_version(folders)
    if version is None:
        return [f"{base / CURRENT} is missing or is not a link to one of our versions"]
    folder = base / VERSIONS / version
    problems = folder_problems(folder)
    try:
        shared = folder_mode_of((folder / MANIFEST).read_bytes()) == 0o555
        baked = render_baked(folders) if shared else (folder / BAKED).read_text(encoding="utf-8")
        if baked != render_baked(folders):
            problems.append(f"{folder / BAKED} names other folders than this installation has")
    except (OSError, ValueError):
        pass  # reported already, as missing or changed
    return problems + ([] if WINDOWS else _launcher_problems(base, folder))


def folder_problems(folder: Path) -> list[str]:
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        return [f"{folder / MANIFEST} can't be read ({error.strerror})"]
    if version_of(manifest) != folder.name:
        return [f"{folder / MANIFEST} was changed"]
    folder_mode = folder_mode_of(manifest)
    problems = entry_problems(folder, stat.S_IFDIR, folder_mode)
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
                problems += entry_problems(path, stat.S_IFDIR, folder_mode)
            else:
                problems.append(f"{path} does not belong there")
        present.update(Path(root, name).relative_to(folder).as_posix() for name in files)
    problems += [f"{folder / name} does not belong there" for name in sorted(present - set(expected))]
    for name in sorted(expected):
        path = folder / name
        found = entry_problems(path, stat.S_IFREG, expected[name][1])
        if not found and hashlib.sha256(path.read_bytes()).hexdigest() != expected[name][0]:
            found = [f"{path} was changed"]
        problems += found
    return problems


def _launcher_problems(base: Path, folder: Path) -> list[str]:
    form = "c" if (folder / "launcher").exists() else "sh"
    problems = []
    for name in launcher_names():
        path = base / BIN / name
        found = entry_problems(path, stat.S_IFREG, stat.S_IMODE(folder.stat().st_mode))
        try:
            if not found and path.read_bytes() != launcher_bytes(folder, form, path):
                found = [f"{path} is not the launcher that was put there"]
        except OSError as error:
            found = [f"{path} can't be checked ({error.strerror})"]
        problems += found
    known = set(launcher_names())
    problems += [f"{base / BIN / e} does not belong there" for e in sorted(os.listdir(base / BIN)) if e not in known]
    return problems


def entry_problems(path: Path, kind: int, mode: int | None) -> list[str]:
    """Kind, owner and mode of one file or folder. mode None: anything that others can't write to."""
    try:
        facts = path.lstat()
    except OSError as error:
        return [f"{path} is missing" if isinstance(error, FileNotFoundError) else f"{path}: {error.strerror}"]
    if stat.S_IFMT(facts.st_mode) != kind:
        return [f"{path} is not a {'folder' if kind == stat.S_IFDIR else 'regular file'}"]
    if WINDOWS:  # access lists, not modes
        return []
    problems = []
    if facts.st_uid not in (os.geteuid(), 0):
        problems.append(f"{path} belongs to another user (id {facts.st_uid})")
    bits = stat.S_IMODE(facts.st_mode)
    if bits != mode if mode is not None else bits & 0o022:
        problems.append(f"{path} has mode {bits:04o}" + (f" instead of {mode:04o}" if mode is not None else ""))
    return problems
