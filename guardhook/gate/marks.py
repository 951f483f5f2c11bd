"""What a session brought to disk before: files that it fetched or decoded, so that running one later is seen for what it is.

One small file per session, a line per mark: `network` or `decoded`, a tab, the absolute path. Marks only ever make a
verdict stricter, so a lost one is no hole in the policies themselves; they are bounded, and never a reason to allow.
"""

from __future__ import annotations

import posix

from guardhook.journal import files, line, write

FOLDER = "sessions"
MOST = 256
KINDS = ("network", "decoded")
_BYTES = 128 * 1024


def read(data_folder: str, dialect: str, session: str | None, cwd: str | None) -> dict[str, str]:
    """The session's marks, path to kind, the newest MOST of them. Never raises OSError: what can't be read marks nothing."""
    name = line.key(*write.names(dialect, session, cwd))
    opened: list[int] = []
    try:
        opened.append(files.open_folder(f"{data_folder}/{FOLDER}"))
        opened.append(files.open_file(name, opened[0], posix.O_RDONLY))
        text = posix.read(opened[1], _BYTES)
    except OSError:
        return {}
    finally:
        for fd in opened:
            posix.close(fd)
    found: dict[str, str] = {}
    for row in text.decode("utf-8", "surrogateescape").split("\n")[-MOST - 1 :]:
        kind, tab, path = row.partition("\t")
        if tab and kind in KINDS and path.startswith("/"):
            found[path] = kind
    return found


def add(
    data_folder: str, dialect: str, session: str | None, cwd: str | None, known: dict[str, str], new: dict[str, str]
) -> None:
    """Keeps marks that are not known yet, in one appended write. A full file starts over with the newest marks."""
    fresh = {
        path: kind
        for path, kind in new.items()
        if known.get(path) != kind and kind in KINDS and path.startswith("/") and "\n" not in path and len(path) < 4096
    }
    if not fresh:
        return
    name = line.key(*write.names(dialect, session, cwd))
    opened: list[int] = []
    try:
        opened.append(files.open_root(f"{data_folder}/{FOLDER}"))
        opened.append(files.open_file(name, opened[0], posix.O_WRONLY | posix.O_APPEND, create=True))
        rows = fresh
        if posix.fstat(opened[1]).st_size > _BYTES // 2:
            posix.ftruncate(opened[1], 0)
            rows = {**known, **fresh}
        text = "".join(f"{kind}\t{path}\n" for path, kind in list(rows.items())[-MOST:])
        posix.write(opened[1], text.encode("utf-8", "surrogateescape"))
    except OSError:
        return
    finally:
        for fd in opened:
            posix.close(fd)
