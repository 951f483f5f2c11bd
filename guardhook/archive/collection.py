"""What a path holds: one archive, a folder or a zip file of them, or a bug-report bundle. Names in zip files are never used as paths."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from guardhook.archive import plain, reader
from guardhook.archive.check import Finding
from guardhook.archive.errors import ArchiveError, TooLargeError, UnreadableError
from guardhook.archive.names import SUFFIX
from guardhook.archive.reader import Opened

MANIFEST = "manifest.json"
BUNDLE = "guardhook.bundle.v1"
_MOST_ENTRIES = 10_000


class Item(NamedTuple):
    """One archive, read when `document` is called; document is None for what is none, with what is wrong with it. among: it is one of several."""

    name: str
    run_id: str
    document: Callable[[], Opened] | None
    among: bool
    problems: tuple[Finding, ...] = ()


def items(path: str, *, max_bytes: float) -> Iterator[Item]:
    """The archives at a path, by name. Raises OSError, ArchiveError."""
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            if name.endswith(SUFFIX):
                document = _among(_of_file(os.path.join(path, name), max_bytes))
                yield Item(name, name.removesuffix(SUFFIX), document, True)
        return
    with reader.open_regular(path) as file:
        zipped = file.read(4) == b"PK\x03\x04"
    if zipped:
        yield from _of_zip(path, max_bytes)
    else:
        yield Item(
            os.path.basename(path), os.path.basename(path).removesuffix(SUFFIX), _of_file(path, max_bytes), False
        )


def _of_file(path: str, max_bytes: float) -> Callable[[], Opened]:
    return lambda: reader.open_document(reader.read_bytes(path, max_bytes=max_bytes), max_bytes=max_bytes)


def _among(document: Callable[[], Opened]) -> Callable[[], Opened]:
    """One of several: that it can't be opened says nothing of the others."""

    def read() -> Opened:
        try:
            return document()
        except OSError as error:
            raise UnreadableError(f"can't be read: {error.strerror or error}") from None

    return read


# What reading a damaged zip file raises.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def _of_zip(path: str, max_bytes: float) -> Iterator[Item]:
    try:
        with reader.open_regular(path) as source, zipfile.ZipFile(source) as file:
            infos = {info.filename: info for info in file.infolist()}
            if len(file.infolist()) != len(infos) or len(infos) > _MOST_ENTRIES:
                raise UnreadableError("the zip file names an entry twice, or has too many")
            if MANIFEST in infos:
                yield from _of_bundle(file, infos, max_bytes)
                return
            for name in sorted(infos):
                if name.endswith(SUFFIX):
                    yield Item(name, name.removesuffix(SUFFIX), _among(_of_entry(path, name, max_bytes)), True)
    except DAMAGED as error:
        raise UnreadableError(f"the zip file can't be read: {error}") from None


def entry(file: zipfile.ZipFile, info: zipfile.ZipInfo, max_bytes: float) -> bytes:
    """An entry's bytes. What its header says of its size is checked while reading, too."""
    most = int(min(max_bytes, 1 << 40))
    if info.file_size > most:
        raise TooLargeError(f"{info.filename!r:.80}: {info.file_size} bytes, where at most {most} are read", max_bytes)
    try:
        with file.open(info) as source:
            data = source.read(most + 1)
    except DAMAGED as error:
        raise UnreadableError(f"{info.filename!r:.80} can't be read: {error}") from None
    if len(data) > most:
        raise TooLargeError(f"{info.filename!r:.80} holds more than {most} bytes", max_bytes)
    return data


def _of_entry(path: str, name: str, max_bytes: float) -> Callable[[], Opened]:
    """An entry, read when it is asked for: many that are small in the zip file may be large."""

    def read() -> Opened:
        try:
            with reader.open_regular(path) as source, zipfile.ZipFile(source) as file:
                data = entry(file, file.getinfo(name), max_bytes)
        except (*DAMAGED, KeyError) as error:
            raise UnreadableError(f"the zip file can't be read: {error}") from None
        return reader.open_document(data, max_bytes=max_bytes)

    return read


def _of_bytes(data: bytes, max_bytes: float) -> Callable[[], Opened]:
    return lambda: reader.open_document(data, max_bytes=max_bytes)


def _of_bundle(file: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo], max_bytes: float) -> Iterator[Item]:
    """A bundle's own archive; then whatever its manifest and its files disagree about."""
    manifest = plain.loads(entry(file, infos[MANIFEST], max_bytes))
    listed = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or manifest.get("format") != BUNDLE or not isinstance(listed, list):
        raise UnreadableError("the zip file has a manifest, but none of a bundle")
    found: list[Finding] = []
    named: dict[str, object] = {}
    for row in listed:
        if isinstance(row, dict) and isinstance(row.get("name"), str):
            named[row["name"]] = row.get("sha256")
    for name in sorted({*named, *infos} - {MANIFEST}):
        if name not in infos:
            found.append(Finding(name, "the manifest names it, and it is not there"))
        elif name not in named:
            found.append(Finding(name, "the manifest does not name it"))
        elif hashlib.sha256(entry(file, infos[name], max_bytes)).hexdigest() != named[name]:
            found.append(Finding(name, "its hash is not the one in the manifest"))
    kept = manifest.get("archive")
    if isinstance(kept, str) and kept in infos:
        data = entry(file, infos[kept], max_bytes)
        base = os.path.basename(kept)
        yield Item(base, base.removesuffix(SUFFIX), _of_bytes(data, max_bytes), False)
    yield Item(MANIFEST, MANIFEST, None, True, tuple(found))


def one(path: str, *, max_bytes: float) -> Opened:
    """The only archive at a path. Raises OSError, ArchiveError."""
    found = [item.document for item in items(path, max_bytes=max_bytes) if item.document is not None]
    if len(found) != 1:
        raise ArchiveError(f"{path} holds {len(found)} archives; name the file of one")
    return found[0]()
