"""Streams fed to a recording, in this process or through `guardhook record` in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from guardhook.core.folders import explicit
from guardhook.intake import record, recording
from guardhook.intake.streams import translator
from guardhook.store import Step, Store, Trace, open_store

REPOSITORY = Path(__file__).resolve().parents[2]
STREAMS = REPOSITORY / "tests" / "fixtures" / "streams"
Line = dict[str, object] | str | bytes


class Fed(NamedTuple):
    """What a stream came to."""

    outcome: record.Outcome
    recording: recording.Recording
    warnings: list[str]
    told: record.Told


def raw(lines: Iterable[Line]) -> bytes:
    out = [x if isinstance(x, bytes) else (x if isinstance(x, str) else json.dumps(x)).encode() for x in lines]
    return b"".join(line + b"\n" for line in out)


def feed(
    data: Path,
    lines: Iterable[Line] | bytes,
    form: str | None = None,
    *,
    live: bool = True,
    tags: tuple[str, ...] = (),
    wrapped: str | None = None,
    leave_open: bool = False,
    redaction: str = "redacted",
) -> Fed:
    """Records the lines, in the native protocol or in that of a format."""
    body = lines if isinstance(lines, bytes) else raw(lines)
    warnings: list[str] = []
    told = record.Told(warnings.append)
    into = recording.Recording(explicit(str(data)), tags=tags, warn=told, redaction=redaction)
    reader = record.Reader(into, None if form is None else translator(form, live=live), told)
    read, write = os.pipe()

    def pour() -> None:
        with os.fdopen(write, "wb") as file:
            file.write(body)

    pouring = threading.Thread(target=pour)
    pouring.start()
    try:
        outcome = reader.read(read)
    finally:
        pouring.join()
        os.close(read)
    record.finalize(into, outcome, wrapped=wrapped, leave_open=leave_open, signal=None)
    into.close()
    return Fed(outcome, into, warnings, told)


def opened(data: Path) -> Store:
    return open_store(explicit(str(data)))


def only(data: Path) -> tuple[Trace, list[Step]]:
    """The only trace of a store, with its steps."""
    with opened(data) as store:
        page = store.traces()
        assert page.total == 1, [t.id for t in page.items]
        return page.items[0], list(store.steps(page.items[0]))


def environment(home: Path, **more: str) -> dict[str, str]:
    clean = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(home), "LANG": "C.UTF-8"}
    return {**clean, "PYTHONPATH": str(REPOSITORY), **more}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "guardhook", *words]


def guardhook(
    home: Path, *words: str, stdin: bytes = b"", cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Runs the program in a process of its own."""
    return subprocess.run(
        command(*words),
        input=stdin,
        capture_output=True,
        env=environment(home, **more),
        cwd=cwd,
        timeout=60,
        check=False,
    )


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that another process does."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)
