"""Old journal files, compressed where they lie: `<day>/<key>.jsonl` becomes `<day>/<key>.jsonl.gz`. Cold; writers know nothing of it.

The head of a compressed session says that its file is empty, so a session that is taken up again begins a plain file beside the compressed one. Readers get both as one stream
(guardhook.journal.read.open_known), so a run is never split. Compressing once more appends the plain file to the compressed one. A process killed at any point leaves the lines
readable: at worst they are there twice until the next time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import zlib
from collections.abc import Iterator

from guardhook.journal import files, recover, write
from guardhook.journal.write import PACKED

LEAST_BYTES = 8192  # smaller files would take as much room on disk
MOST_BYTES = 8 << 30  # of one file, uncompressed
_TEMPORARY = ".gz.tmp"
_CHUNK = 1 << 20
_GZIP = zlib.MAX_WBITS | 16
_LEVEL = 6
_DAMAGED = "the compressed file is damaged"


def is_packed(folder: int, key: str) -> bool:
    """Whether the open folder holds a compressed file of this key."""
    try:
        os.stat(key + PACKED, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def joined(folder: int, key: str, plain: int | None) -> tuple[int, int]:
    """A descriptor of an unnamed file with all lines of a compressed file and of the plain one beside it, and how many bytes come before those of the plain one.

    Raises OSError, files.Unsafe, also for a file that is damaged.
    """
    out = tempfile.TemporaryFile(prefix="guardhook-")  # noqa: SIM115  its descriptor lives on
    with out:
        for piece in _unpacked(folder, key):
            out.write(piece)
        base = out.tell()
        if plain is not None:
            for piece in _chunks(plain):
                out.write(piece)
        out.flush()
        return os.dup(out.fileno()), base


def _unpacked(folder: int, key: str) -> Iterator[bytes]:
    """The lines of a compressed file, in pieces. Raises OSError for one that is damaged or cut."""
    fd = files.open_file(key + PACKED, folder, os.O_RDONLY)
    total = 0
    try:
        unzip = zlib.decompressobj(_GZIP)
        whole = False  # whether what was read so far ends with the end of a compressed part
        for chunk in _chunks(fd):
            while chunk:
                piece = unzip.decompress(chunk, _CHUNK)
                total += len(piece)
                if total > MOST_BYTES:
                    raise OSError(errno.EFBIG, "the compressed file is too large", key + PACKED)
                yield piece
                whole = unzip.eof
                chunk = unzip.unused_data if whole else unzip.unconsumed_tail
                if whole:  # another part may follow
                    unzip = zlib.decompressobj(_GZIP)
        if not whole:
            raise OSError(errno.EIO, _DAMAGED, key + PACKED)
    except zlib.error:
        raise OSError(errno.EIO, _DAMAGED, key + PACKED) from None
    finally:
        os.close(fd)


def _chunks(fd: int) -> Iterator[bytes]:
    position = 0
    while chunk := os.pread(fd, _CHUNK, position):
        position += len(chunk)
        yield chunk


def compress(held: write.Session, day: str) -> bool:
    """Compresses the file of one day of a locked session. Gives whether it did; else the file stays as it is. Raises OSError.

    A file stays that is small, ends in an unfinished line, or is not there.
    """
    root = files.open_folder(held.journal_dir)
    try:
        folder = files.open_folder(day, root)
    finally:
        os.close(root)
    try:
        return _compress(held, day, folder)
    finally:
        os.close(folder)


def weigh(journal_dir: str, day: str, key: str) -> tuple[int, int] | None:
    """The size of a plain file and what it would be compressed, None where `compress` would leave it. Nothing is written. Raises OSError."""
    root = files.open_folder(journal_dir)
    try:
        folder = files.open_folder(day, root)
    finally:
        os.close(root)
    try:
        fd = files.open_file(key + write.SUFFIX, folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)
    try:
        size = os.fstat(fd).st_size
        if size < LEAST_BYTES or os.pread(fd, 1, size - 1) != b"\n":
            return None
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        return size, sum(len(packer.compress(chunk)) for chunk in _chunks(fd)) + len(packer.flush())
    finally:
        os.close(fd)


def _compress(held: write.Session, day: str, folder: int) -> bool:
    key = held.name
    try:
        plain = files.open_file(key + write.SUFFIX, folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        status = os.fstat(plain)
        if status.st_size == 0 or os.pread(plain, 1, status.st_size - 1) != b"\n":
            return False
        before = is_packed(folder, key)
        if before and _starts_with(folder, key, plain, status.st_size):  # expanding it was cut short
            os.unlink(key + PACKED, dir_fd=folder)
            before = False
        if not before and status.st_size < LEAST_BYTES:
            return False
        done = before and _ends_with(folder, key, plain, status.st_size)  # an earlier time was killed in between
        if not done:
            _write(folder, key, plain, before, status)
    finally:
        os.close(plain)
    if held.head.day == day:
        held.head.size = 0  # before the file goes, so that no writer takes it for shortened
        _copy_head(held, folder, status)
    _save_head(held)
    os.unlink(key + write.SUFFIX, dir_fd=folder)
    return True


def _date(folder: int, name: str, status: os.stat_result) -> None:
    """Gives a file the times of the one that it stands for: they say when the session was heard of last."""
    os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=folder, follow_symlinks=False)


def _write(folder: int, key: str, plain: int, before: bool, status: os.stat_result) -> None:
    """Puts the compressed file in place: what was there and the plain file, read once more before it counts."""
    temporary = key + _TEMPORARY
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            if before:
                old = files.open_file(key + PACKED, folder, os.O_RDONLY)
                try:
                    for chunk in _chunks(old):
                        file.write(chunk)
                finally:
                    os.close(old)
            packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
            for chunk in _chunks(plain):
                file.write(packer.compress(chunk))
            file.write(packer.flush())
            file.flush()
            os.fsync(file.fileno())
        _date(folder, temporary, status)  # before it counts: a process killed here would make the session one of today
        os.rename(temporary, key + PACKED, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if not _ends_with(folder, key, plain, os.fstat(plain).st_size):
        raise OSError(errno.EIO, "what was compressed does not read back", key + PACKED)


def _ends_with(folder: int, key: str, plain: int, size: int) -> bool:
    """Whether the compressed file ends with the whole plain one."""
    whole, base = joined(folder, key, None)
    try:
        start = base - size
        return start >= 0 and all(
            os.pread(whole, len(chunk), start + position) == chunk for position, chunk in _placed(plain)
        )
    finally:
        os.close(whole)


def _starts_with(folder: int, key: str, plain: int, size: int) -> bool:
    """Whether the plain file begins with the whole compressed one."""
    whole, base = joined(folder, key, None)
    try:
        return size >= base and all(
            os.pread(plain, len(chunk), position) == chunk for position, chunk in _placed(whole)
        )
    finally:
        os.close(whole)


def _placed(fd: int) -> Iterator[tuple[int, bytes]]:
    position = 0
    for chunk in _chunks(fd):
        yield position, chunk
        position += len(chunk)


def _save_head(held: write.Session) -> None:
    os.pwrite(held._lock, write.render_head(held.head), 0)


def _copy_head(held: write.Session, folder: int, status: os.stat_result) -> None:
    """Leaves the head beside the file: should it be lost, the next writer can't derive it from compressed lines."""
    name, temporary = held.name + recover.COPY, held.name + _TEMPORARY
    with contextlib.suppress(FileNotFoundError):  # of a process that was killed
        os.unlink(temporary, dir_fd=folder)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(write.render_head(held.head))
    _date(folder, temporary, status)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def expand(held: write.Session, day: str) -> bool:
    """Makes one plain file again of what `compress` made of a day of a locked session, for who must rewrite lines. Gives whether there was anything to do. Raises OSError."""
    root = files.open_folder(held.journal_dir)
    try:
        folder = files.open_folder(day, root)
    finally:
        os.close(root)
    try:
        return is_packed(folder, held.name) and _expand(held, day, folder)
    finally:
        os.close(folder)


def _expand(held: write.Session, day: str, folder: int) -> bool:
    key = held.name
    temporary = key + _TEMPORARY
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    plain: int | None = None
    with contextlib.suppress(FileNotFoundError):
        plain = files.open_file(key + write.SUFFIX, folder, os.O_RDONLY)
    fds = [] if plain is None else [plain]
    try:
        size = 0 if plain is None else os.fstat(plain).st_size
        if plain is not None and size and _starts_with(folder, key, plain, size):  # an earlier time was cut short
            os.unlink(key + PACKED, dir_fd=folder)
            return True
        twice = plain is not None and _ends_with(folder, key, plain, size)
        whole, _ = joined(folder, key, None if twice else plain)
        fds.append(whole)
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as file:
            for chunk in _chunks(whole):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        packed = os.stat(key + PACKED, dir_fd=folder, follow_symlinks=False)
        _date(folder, temporary, packed)
        os.rename(temporary, key + write.SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
    os.unlink(key + PACKED, dir_fd=folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(key + recover.COPY, dir_fd=folder)
    if held.head.day == day:
        held.head.size = os.stat(key + write.SUFFIX, dir_fd=folder, follow_symlinks=False).st_size
        _save_head(held)
    return True
