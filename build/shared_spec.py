"""What both PyInstaller specs share: what stays out of an executable, and how its files are made small and reproducible."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# `inspect` is the one that matters: a start-up hook of PyInstaller's would import it, and 50 other modules, each time.
EXCLUDED_HOOK = ["inspect", "pkgutil", "multiprocessing", "ctypes", "zipfile", "threading"]
EXCLUDED_CLI = [
    "ctypes", "_ctypes", "lzma", "_lzma", "bz2", "_bz2", "readline", "curses", "tkinter",
    "unittest", "pydoc", "doctest", "lib2to3", "distutils", "setuptools", "pip", "_hashlib", "test",
    "pygments", "numpy", "IPython", "mypy", "pytest", "hypothesis", "tomli", "attr", "colorama",
    # Extras, which the executable does without, and what only tests use.
    "grpc", "pyarrow", "fsspec", "playwright", "pandas", "tree_sitter", "httptools", "uvloop", "watchfiles", "websockets", "trio", "h2", "socksio", "brotli", "zstandard",
]  # fmt: skip
# Libraries that come along with extensions we leave out, or that every system has.
_DROPPED = (
    "liblzma",
    "libbz2",
    "libreadline",
    "libncurses",
    "libtinfo",
    "libffi",
    "libuuid",
    "libexpat",
    "libz.",
)
_CODECS = {"__init__", "aliases", "utf_8", "latin_1", "ascii", "cp437", "idna", "raw_unicode_escape"}

# (name in the bundle, path, kind)
Entry = tuple[str, str, str]


def slim(entries: list[Entry], work: Path) -> list[Entry]:
    """Native files without symbols and search paths, and without what nobody loads.

    Done here rather than by PyInstaller so that both programs carry the same bytes of the regex engine: cached patterns
    are only good for the very engine that made them.
    """
    kept: list[Entry] = []
    for name, path, kind in entries:
        base = os.path.basename(name)
        if base.startswith(_DROPPED) or base.startswith(("_codecs_", "_multibytecodec")):
            continue
        if kind in ("BINARY", "EXTENSION") and os.path.isfile(path):
            path = str(stripped(Path(path), work))
        kept.append((name, path, kind))
    return kept


def stripped(path: Path, work: Path) -> Path:
    """A stripped copy of a native file in the work folder; the file itself where there are no tools for it."""
    work.mkdir(parents=True, exist_ok=True)
    copy = work / f"{hashlib.sha256(str(path).encode()).hexdigest()[:12]}-{path.name}"
    shutil.copyfile(path, copy)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True, capture_output=True)
    if ".so" in path.name and shutil.which("patchelf"):
        subprocess.run(["patchelf", "--remove-rpath", str(copy)], check=True, capture_output=True)
    copy.chmod(0o755)
    return copy


def slim_library(entries: list[Entry], work: Path) -> list[Entry]:
    """The base library without the codecs that nothing asks for: its folder is read at every start."""
    kept: list[Entry] = []
    for name, path, kind in entries:
        if os.path.basename(name) == "base_library.zip":
            slimmed = work / "base_library.zip"
            with zipfile.ZipFile(path) as old, zipfile.ZipFile(slimmed, "w", zipfile.ZIP_STORED) as new:
                for info in old.infolist():
                    folder, _, file = info.filename.rpartition("/")
                    if folder == "encodings" and file.partition(".")[0] not in _CODECS:
                        continue
                    new.writestr(zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0)), old.read(info))
            path = str(slimmed)
        kept.append((name, path, kind))
    return kept


def left_out_codecs(entries: list[Entry]) -> dict[str, bytes]:
    """The codecs that slim_library leaves out: module name -> marshalled code."""
    found: dict[str, bytes] = {}
    for name, path, _ in entries:
        if os.path.basename(name) == "base_library.zip":
            with zipfile.ZipFile(path) as library:
                for info in library.infolist():
                    folder, _, file = info.filename.rpartition("/")
                    module = file.partition(".")[0]
                    if folder == "encodings" and module not in _CODECS:
                        found[f"encodings.{module}"] = library.read(info)[16:]  # behind the header of a .pyc file
    return found


def shipped_policies() -> list[tuple[str, bytes]]:
    """The shipped policy files and DIGEST, which identifies them all: (name, bytes)."""
    files = [(path.name, path.read_bytes()) for path in sorted((ROOT / "policies").glob("*.toml"))]
    total = hashlib.sha256()
    for name, data in files:
        total.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
    return [*files, ("DIGEST", total.hexdigest().encode() + b"\n")]
