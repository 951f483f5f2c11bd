"""Runs one client to its end or to a time limit, without network, and leaves nothing running behind."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from realclients.modelserver import ModelServer

ISOLATE = Path(__file__).with_name("isolate.py")
INSIDE_PORT = 8700  # free for sure: the namespace is new
TOKEN = "GUARDHOOK_TEST_RUN"
Binds = Sequence[tuple[str, str]]  # (folder, the place where only the started program sees it)


@dataclass
class Ended:
    """How a client ended. rc is None when it had to be killed at the limit; seconds is wall time."""

    rc: int | None
    stdout: str
    stderr: str
    seconds: float
    leftovers: list[str]


@functools.cache
def namespaces() -> bool:
    """True where a loopback-only namespace can be made."""
    probe = subprocess.Popen([sys.executable, "-I", "-S", "-c", _PROBE, str(ISOLATE)], stderr=subprocess.DEVNULL)
    return probe.wait(30) == 0


_PROBE = "import runpy, sys; runpy.run_path(sys.argv[1])['leave_network']()"


@contextlib.contextmanager
def reserved() -> Iterator[tuple[int, socket.socket | None]]:
    """Gives the port that the model server will have, and outside of a namespace also its socket (see run)."""
    if namespaces():
        yield INSIDE_PORT, None
        return
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1], listener


def run(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, limit: float, server: ModelServer | None = None,
    port: int = INSIDE_PORT, listener: socket.socket | None = None, scratch: Path, binds: Binds = (),
) -> Ended:  # fmt: skip
    """Starts argv in its own process group, answers its model requests, and kills what is left of it after limit seconds.

    scratch is the folder that everything started from here works below: a process still there afterwards is a leftover, is named in
    the result and ended.
    """
    token = uuid.uuid4().hex
    out, err = scratch / f"out-{token[:8]}", scratch / f"err-{token[:8]}"
    started = time.monotonic()
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process, inner = start(
            argv, {**env, TOKEN: token}, cwd, port, listener, stdout=out_file, stderr=err_file, binds=binds
        )
        if server is not None and inner is not None:
            server.start(inner)
        elif inner is not None:
            inner.close()
        try:
            rc: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            rc = None
    seconds = time.monotonic() - started
    leftovers = sweep(process.pid, token, scratch)
    process.wait(30)
    if server is not None:
        server.stop()
    texts = [path.read_text("utf-8", "replace") for path in (out, err)]
    out.unlink()
    err.unlink()
    return Ended(rc, texts[0], texts[1], seconds, leftovers)


def isolated(control: str = "-", port: int = 0, binds: Binds = ()) -> list[str]:
    """The words before a command line that keep it from the network, and show it other folders in some places."""
    return [sys.executable, "-I", "-S", str(ISOLATE), control, str(port), json.dumps(list(binds))]


def start(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, port: int, listener: socket.socket | None, stdout: IO[bytes],
    stderr: IO[bytes], binds: Binds = (),
) -> tuple[subprocess.Popen[bytes], socket.socket | None]:  # fmt: skip
    """Starts argv without network, in its own process group; gives the process and the socket that a model server can answer on."""
    if not namespaces():
        process = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), start_new_session=True, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        return process, listener
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = [*isolated(str(theirs.fileno()), port, binds), *argv]
        process = subprocess.Popen(
            words, cwd=cwd, env=dict(env), start_new_session=True, pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        )  # fmt: skip
        theirs.close()
        _, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    return process, socket.socket(fileno=descriptors[0]) if descriptors else None


def sweep(group: int, token: str, scratch: Path) -> list[str]:
    """Ends the client's process group and every descendant that left it; says what was found alive."""
    found = []
    grace = time.monotonic() + 1.0
    while pids := _descendants(group, token, scratch):
        if time.monotonic() < grace:
            time.sleep(0.05)
            continue
        for pid, words in pids.items():
            found.append(words)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        grace = time.monotonic() + 1.0
    return found


def running_below(scratch: Path) -> list[str]:
    """Processes that work below a folder."""
    return list(_descendants(-1, "no such token", scratch).values())


def _descendants(group: int, token: str, scratch: Path) -> dict[int, str]:
    """Processes of this run: by group, by the token in their environment, or by working below the scratch folder."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            state, pgrp = stat[0], int(stat[2])
            if state in "ZX":
                continue
            ours = pgrp == group or token.encode() in (entry / "environ").read_bytes()
            ours = ours or os.readlink(entry / "cwd").startswith(str(scratch))
        except (OSError, IndexError, ValueError):
            continue
        if ours:
            found[int(entry.name)] = words[:200]
    return found
