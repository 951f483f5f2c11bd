"""Keeping a fork: as a trace of its own in the journal, marked as a copy that never ran, and as a private file."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from guardhook.core.folders import Folders
from guardhook.journal import files
from guardhook.rollout.fork import Fork
from guardhook.rollout.runs import RunRef
from guardhook.store import Appender, Store, instants
from guardhook.store.model import make_id

Line = tuple[str, dict[str, object]]
_TYPES = {"user": ("thought", "user_message"), "system": ("thought", "system_prompt"), "assistant": ("output", "assistant_message"), "tool": ("retrieval", "tool_result")}  # fmt: skip


def keep(store: Store, folders: Folders, ref: RunRef, made: Fork) -> str:
    """Writes the fork's messages as a trace. Gives its id. Raises StoreError."""
    name = make_id("trc", ref.run_id, str(time.time_ns()), os.urandom(8).hex())
    # What is copied was recorded as its owner wanted it; it is not redacted once more.
    Appender(folders, dialect="fork", redaction="full").put(name, _lines(store, ref, made), opens=True)
    return name


def _lines(store: Store, ref: RunRef, made: Fork) -> Iterator[Line]:
    trace = store.get(ref.trace_id)
    yield (
        "fork.start",
        {
            "agent_name": trace.agent_name,
            "agent_version": trace.agent_version,
            "trigger": "manual",
            "status": "running",
            "input": {"prompt": made.prompt},
            "started_at": instants.iso_ms(time.time_ns() // 1000),
            "tags": list(map(str, trace.tags)),
            "metadata": {"forked_from": ref.run_id, "forked_at_step": made.from_step, "copy": "never executed"},
            "parent_trace_id": ref.trace_id,
            "forked_from_step": made.from_step,
            "session_id": ref.session,
            "dialect": ref.dialect,
            "project": trace.project,
        },
    )
    for number, message in enumerate(made.messages, 1):
        kind, label = _TYPES[str(message["role"])]
        metadata = {k: message[k] for k in ("from", "tool_calls", "tool_call_id", "name") if k in message}
        step = {"step_number": number, "step_type": kind, "name": label, "output": {"text": message["content"]}, "metadata": metadata, "ended_at": None}  # fmt: skip
        yield "fork.step", step


def write_private(path: str, data: bytes) -> None:
    """Puts a file of mode 0600 in place with one rename; nothing is written through a link. Raises OSError."""
    folder, _, name = path.rpartition("/")
    parent = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    aside = f".{name[:200]}.{os.urandom(6).hex()}.part"
    try:
        with contextlib.suppress(FileNotFoundError):
            files.check(os.stat(name, dir_fd=parent, follow_symlinks=False), name)
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(aside, name, src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=parent)
    finally:
        os.close(parent)
