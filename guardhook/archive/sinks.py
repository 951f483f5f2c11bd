"""Where envelopes go. A sink is anything with `write(envelope) -> {"id", "uri"?}`; these three write to a folder, a zip file, or a store in the cloud.

The name is settled before anything is written; a file appears under its name whole or not at all, so a refusal leaves no trace. The same run replaces its archive: a crash dump gives way to the finished run.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from guardhook.archive import plain, reader, stream
from guardhook.archive.errors import ArchiveError, UnreadableError, UnsafeRecordingIdError
from guardhook.archive.names import SUFFIX, recording_file_name
from guardhook.archive.packing import is_packed_recording

_TMP = re.compile(r"[a-z0-9][a-z0-9._-]*\.[0-9]+\.[0-9]+\.tmp", re.ASCII)
_CREDENTIALS = re.compile(r"//[^/@\s]*@")
# Drivers of stores that take an object whole or not at all.
_OBJECTS = frozenset(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory"))
_STALE_SECONDS = 86_400.0
_numbers = itertools.count(1)


class SinkError(ArchiveError):
    """A destination that can't be used, or that did not take the archive."""

    code = "ERR_SINK"


class MissingExtraError(ArchiveError):
    """A library that is not part of every installation."""

    code = "ERR_MISSING_EXTRA"


def name_of(envelope: dict[str, object]) -> str:
    """The file name of an envelope. Raises UnsafeRecordingIdError."""
    run = envelope.get("run")
    return recording_file_name(run.get("runId") if isinstance(run, dict) else None)


def pieces(envelope: dict[str, object]) -> Iterator[bytes]:
    """The bytes of an archive: indented, but compact when the recording is packed. Raises TypeError."""
    if is_packed_recording(envelope.get("recording")):
        yield plain.encode(envelope)
    else:
        yield from stream.pretty(envelope)
    yield b"\n"


def serialise(envelope: dict[str, object]) -> bytes:
    """The same in one piece. Raises TypeError."""
    return b"".join(pieces(envelope))


class FileRecordingSink:
    """A folder with one file a run. The folder is made, with its parents, mode 0700; files have mode 0600."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        text = os.fspath(directory) if isinstance(directory, (str, os.PathLike)) else ""
        if not isinstance(text, str) or not text.strip():
            raise TypeError("the folder's name is blank")
        self.directory = os.path.abspath(text)
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self._sweep()

    def write(self, envelope: dict[str, object]) -> dict[str, str]:
        """Writes `<run id>.json`. Raises UnsafeRecordingIdError, TypeError, OSError."""
        name = name_of(envelope)
        with _folder(self.directory) as folder:
            place(folder, name, pieces(envelope))
        return {"id": name, "uri": Path(self.directory, name).as_uri()}

    def stored(self, run_id: str) -> bytes | None:
        """What lies under a run's name now, None when nothing does. Raises OSError."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(os.path.join(self.directory, recording_file_name(run_id)), flags)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise SinkError(f"{recording_file_name(run_id)} is there already, and is no file")
        with os.fdopen(fd, "rb") as file:
            return file.read()

    def names(self) -> list[str]:
        """The archives, by name. What is still being written is not among them."""
        return sorted(n for n in os.listdir(self.directory) if n.endswith(SUFFIX))

    def _sweep(self) -> None:
        """Takes away what writers that died left behind."""
        for name in os.listdir(self.directory):
            path = os.path.join(self.directory, name)
            with contextlib.suppress(OSError):
                if _TMP.fullmatch(name) and time.time() - os.lstat(path).st_mtime > _STALE_SECONDS:
                    os.unlink(path)


@contextlib.contextmanager
def _folder(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def place(folder: int, name: str, data: Iterable[bytes]) -> None:
    """Puts a file of these pieces under its name, whole or not at all, and on the disk before this returns. What went wrong is raised as it was."""
    temporary = f"{name}.{os.getpid()}.{next(_numbers)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb", buffering=1 << 20) as file:
            file.writelines(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


class ZipRecordingSink:
    """One zip file with an entry a run. Adding one writes the file anew beside the old one; the same archives give the same bytes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        if not text.strip():
            raise TypeError("the zip file's name is blank")
        self.path = os.path.abspath(text)
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)

    def write(self, envelope: dict[str, object]) -> dict[str, str]:
        """Adds or replaces the entry `<run id>.json`. Raises UnsafeRecordingIdError, TypeError, OSError, SinkError."""
        import fcntl

        name = name_of(envelope)
        data = serialise(envelope)
        with _folder(os.path.dirname(self.path)) as folder:
            fcntl.flock(folder, fcntl.LOCK_EX)  # two writers would each take the other's entry away
            place(folder, os.path.basename(self.path), (zipped({**self._entries(), name: data}),))
        return {"id": name, "uri": f"{Path(self.path).as_uri()}#{name}"}

    def stored(self, run_id: str) -> bytes | None:
        """The run's entry as it is now, None when there is none. Raises OSError, SinkError."""
        return self._entries().get(recording_file_name(run_id))

    def _entries(self) -> dict[str, bytes]:
        import zipfile
        import zlib

        try:
            with reader.open_regular(self.path) as source, zipfile.ZipFile(source) as file:
                infos = file.infolist()
                for info in infos:
                    recording_file_name(info.filename.removesuffix(SUFFIX))
                if sum(i.file_size for i in infos) > 2 << 30:
                    raise SinkError(f"{self.path} holds more than 2 GiB; name another zip file")
                return {i.filename: file.read(i) for i in infos}
        except FileNotFoundError:
            return {}
        except (zipfile.BadZipFile, zlib.error, UnsafeRecordingIdError, UnreadableError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:  # fmt: skip
            raise SinkError(f"{self.path} is no zip file of archives ({error}); name another one") from None


def zipped(entries: dict[str, bytes]) -> bytes:
    """A zip file of these entries, in the order of their names, with no times: equal entries give equal bytes."""
    import io
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            info.create_system = 3
            file.writestr(info, entries[name])
    return out.getvalue()


class FsspecRecordingSink:
    """A folder of any store that fsspec has a driver for: `s3://bucket/folder`, `gs://…`, `sftp://…`. One object a run.

    Stores of objects take one in one go. Elsewhere half of it could stand there under its name: it is written beside it, and renamed.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError:
            raise MissingExtraError(
                "writing to stores in the cloud needs fsspec: pip install 'guardhook[cloud]' (the single-file program does not carry it)"
            ) from None
        self._shown = _CREDENTIALS.sub("//", url)
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise MissingExtraError(f"{self._shown}: {error}") from None
        except Exception as error:
            raise SinkError(f"{self._shown} can't be used: {_said(error)}") from None

    def write(self, envelope: dict[str, object]) -> dict[str, str]:
        """Puts the object `<run id>.json`. Raises UnsafeRecordingIdError, TypeError, SinkError."""
        name = name_of(envelope)
        data = serialise(envelope)
        path = self._path(name)
        try:
            if _OBJECTS.isdisjoint(self._protocols()):
                self._beside(path, data)
            else:
                self._fs.pipe_file(path, data)
        except Exception as error:  # drivers raise whatever their libraries do
            raise SinkError(f"{self._shown} did not take {name}: {_said(error)}") from None
        return {"id": name, "uri": f"{self._shown.rstrip('/')}/{name}"}

    def stored(self, run_id: str) -> bytes | None:
        """The run's object as it is now, None when there is none. Raises SinkError."""
        try:
            found = self._fs.cat_file(self._path(recording_file_name(run_id)))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise SinkError(f"{self._shown} can't be read: {_said(error)}") from None
        return found if isinstance(found, bytes) else None

    def _protocols(self) -> tuple[str, ...]:
        found = self._fs.protocol
        return (found,) if isinstance(found, str) else tuple(found)

    def _beside(self, path: str, data: bytes) -> None:
        temporary = f"{path}.{os.getpid()}.{next(_numbers)}.tmp"
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            self._fs.pipe_file(temporary, data)
            self._fs.mv(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):
                self._fs.rm_file(temporary)
            raise

    def _path(self, name: str) -> str:
        return f"{str(self._root).rstrip('/')}/{name}"


def _said(error: Exception) -> str:
    words = _CREDENTIALS.sub("//", str(error)).strip().splitlines()
    return f"{type(error).__name__}: {words[0][:200]}" if words else type(error).__name__


def sink_for(target: str) -> FileRecordingSink | ZipRecordingSink | FsspecRecordingSink:
    """The sink that a destination means: a URL, a name that ends in `.zip`, else a folder. Raises TypeError, OSError, ArchiveError."""
    scheme, separator, rest = target.partition("://")
    if separator and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        if scheme.lower() not in ("file", "local"):
            return FsspecRecordingSink(target)
        from urllib.parse import unquote

        target = unquote(rest)
    return ZipRecordingSink(target) if target.lower().endswith(".zip") else FileRecordingSink(target)
