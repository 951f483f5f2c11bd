"""Running programs from `install` and `doctor`: always from an empty folder, without a terminal, and with a time limit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from guardhook.harness.machine import Machine
from guardhook.harness.model import Client, Ran

VERSION_SECONDS = 20.0
_VERSION = re.compile(rb"\b(\d{1,4}\.\d{1,4}\.\d{1,5})\b")
MOST = 1024 * 1024


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin: bytes = b"",
    *,
    folder: str | None = None,
    seconds: float = VERSION_SECONDS,
) -> Ran:
    """Runs a program to its end or to the time limit; then its whole process group is killed. Raises OSError if it can't start."""
    with tempfile.TemporaryDirectory(prefix="guardhook-") as empty:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder or empty,
            env=dict(env),
            start_new_session=os.name == "posix",
        )
        try:
            stdout, stderr = process.communicate(stdin, timeout=seconds)
            return Ran(process.returncode, stdout[:MOST], stderr[:MOST])
        except subprocess.TimeoutExpired:
            kill(process)
            stdout, stderr = process.communicate()
            return Ran(None, stdout[:MOST], stderr[:MOST])


def probe(machine: Machine, path: str | None) -> Client | None:
    """The client at a path, with the version that it prints for `--version`."""
    if path is None:
        return None
    try:
        ran = run([path, "--version"], machine.env)
    except OSError:
        return Client(path, None)
    match = _VERSION.search(ran.stdout) if ran.code == 0 else None
    return Client(path, match.group(1).decode() if match else None)


def older(version: str | None, than: str) -> bool:
    """Whether a known version is lower; an unknown one is not called old."""
    return version is not None and _numbers(version) < _numbers(than)


def known(events: Iterable[str], since: Mapping[str, str], client: Client | None) -> list[str]:
    """The events that a client has. since: the version that brought an event; a client of unknown version has them all."""
    version = client.version if client else None
    return [event for event in events if event not in since or not older(version, since[event])]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and what it started."""
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
