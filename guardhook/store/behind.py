"""Whether the store lacks anything of the journal: a look at file sizes, no file is read. Kept light, every reading command does it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator

from guardhook.journal.generation import current as generation
from guardhook.journal.recover import is_day
from guardhook.journal.write import PACKED, SUFFIX

IMPORTS = "imports"


def data_files(journal_dir: str, *, packed: bool = False) -> Iterator[tuple[str, str, os.stat_result]]:
    """(folder, key, status) of every journal file: day folders and `imports`. Links and other things are left out. Raises OSError.

    packed: of compressed files too, unless a plain one lies beside (see guardhook.journal.pack).
    """
    with os.scandir(journal_dir) as folders:
        names = sorted(f.name for f in folders if is_day(f.name) or f.name == IMPORTS)
    for name in names:
        aside: dict[str, os.stat_result] = {}
        try:
            with os.scandir(f"{journal_dir}/{name}") as found:
                for file in found:
                    if not file.name.isprintable():  # none of ours, and perhaps no text: `journal verify` tells of it
                        continue
                    if file.name.endswith(SUFFIX):
                        if file.is_file(follow_symlinks=False):
                            yield name, file.name[: -len(SUFFIX)], file.stat(follow_symlinks=False)
                    elif packed and file.name.endswith(PACKED) and file.is_file(follow_symlinks=False):
                        aside[file.name[: -len(PACKED)]] = file.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            continue
        for key, status in aside.items():
            if not os.path.lexists(f"{journal_dir}/{name}/{key}{SUFFIX}"):
                yield name, key, status


def known(connection: sqlite3.Connection) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """(folder, key) -> (device, inode, generation, offset) of every file that was read."""
    rows = connection.execute(
        "SELECT c.folder, s.key, c.device, c.inode, c.generation, c.offset FROM cursors c JOIN sources s ON s.id = c.source"
    )
    return {(row[0], row[1]): (row[2], row[3], row[4], row[5]) for row in rows}


def behind(connection: sqlite3.Connection, journal_dir: str) -> bool:
    """Whether a file is new, longer, shorter, another one, or gone. Raises OSError, sqlite3.Error."""
    cursors = known(connection)
    now = generation(journal_dir)
    seen = 0
    for folder, key, status in data_files(journal_dir, packed=True):
        cursor = cursors.get((folder, key))
        if cursor != (status.st_dev, status.st_ino, now, status.st_size):
            return True
        seen += 1
    return seen != len(cursors)
