"""What the journal's tests share: records, a journal folder, and reading everything back."""

from __future__ import annotations

import os
import time
from pathlib import Path

from guardhook.journal import line, read, write

DAY = 86_400 * 1_000_000_000


def record(**over: object) -> write.Record:
    given: dict[str, object] = {
        "type": line.RECEIVED,
        "ts": time.time_ns(),
        "dialect": "claude-code",
        "session": "s-1",
        "cwd": "/project",
        "root": "/project",
        "opens": True,
        "closes": False,
        "data": {"event": "pre_tool", "payload": {"tool_name": "Bash"}},
        **over,
    }
    return write.Record(**given)  # type: ignore[arg-type]


def put(journal: str, **over: object) -> write.Outcome:
    return write.append(journal, record(**over), budget=2.0)


def all_lines(journal: str, day: str | None = None) -> list[line.Line]:
    """Every line of every file, file by file; fails on a line that is none."""
    found: list[line.Line] = []
    for file in read.session_files(journal, day=day):
        found.extend(lines_of(journal, file))
    return found


def lines_of(journal: str, file: read.SessionFile) -> list[line.Line]:
    fd = read.open_session(journal, file)
    try:
        out = []
        for entry in read.entries(fd):
            assert entry.line is not None, entry
            out.append(entry.line)
        return out
    finally:
        os.close(fd)


def only_file(journal: str) -> Path:
    (file,) = read.session_files(journal)
    return Path(file.path(journal))


def head_file(journal: str) -> Path:
    (head,) = Path(journal, "heads").iterdir()
    return head


def spooled(journal: str) -> list[Path]:
    return sorted(p for p in Path(journal).parent.glob("spool/*/*") if not p.name.startswith("."))
