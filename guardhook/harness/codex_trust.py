"""Codex runs a hook only after a person has trusted its exact text. Here that is done through the client's own app server.

`codex app-server` speaks JSON-RPC, one object a line: `hooks/list` tells each hook's key, hash and trust, `config/batchWrite`
stores a trusted hash (0.145 to 0.171). Only where the client isn't there, the hash is computed; that algorithm is private to
the client, so that way is called unverified wherever it is told.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from guardhook import __version__
from guardhook.harness.errors import HarnessError
from guardhook.harness.machine import Machine

SECONDS = 20.0
_LINE = 4 * 1024 * 1024


@dataclass(frozen=True)
class Listed:
    """One hook as the client sees it. status: untrusted, trusted, modified, managed."""

    key: str
    file: str
    event: str
    command: str
    hash: str
    status: str
    enabled: bool


def snake(event: str) -> str:
    """`PreToolUse` and `preToolUse` as the client writes them in keys: `pre_tool_use`."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def key(file: str, event: str, group: int, handler: int) -> str:
    """The name of a hook in `hooks.state`. It is its position: another entry put before it changes the name."""
    return f"{file}:{snake(event)}:{group}:{handler}"


def computed_hash(event: str, handler: Mapping[str, Any]) -> str:
    """What the client most likely computes for a handler without matcher (agreed with 0.171 on every plain shape tried)."""
    timeout = min(int(handler.get("timeout", 600)), 3) if event == "SessionEnd" else int(handler.get("timeout", 600))
    value = {
        "event_name": snake(event),
        "hooks": [{"async": False, "command": handler["command"], "timeout": max(timeout, 1), "type": "command"}],
    }
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def listed(machine: Machine, codex: str, folder: str | None = None) -> list[Listed]:
    """The hooks that the client finds when it starts in a folder (None: an empty one). Raises HarnessError."""
    with _Server(machine, codex) as server:
        return server.hooks(folder)


def trust(machine: Machine, codex: str, mine: Iterable[tuple[str, str]], folder: str | None = None) -> list[Listed]:
    """Trusts the hooks given as (file, command), and returns them as the client sees them afterwards. Raises HarnessError."""
    wanted = {(os.path.realpath(file), command) for file, command in mine}
    with _Server(machine, codex) as server:
        found = [h for h in server.hooks(folder) if (os.path.realpath(h.file), h.command) in wanted]
        state = {h.key: {"trusted_hash": h.hash} for h in found if h.status not in ("trusted", "managed")}
        if state:
            edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": state}
            server.call("config/batchWrite", {"reloadUserConfig": True, "edits": [edit]})
            found = [h for h in server.hooks(folder) if (os.path.realpath(h.file), h.command) in wanted]
        return found


class _Server:
    """One run of `codex app-server`, in an empty folder, with one time limit for everything."""

    def __init__(self, machine: Machine, codex: str) -> None:
        self.empty = tempfile.TemporaryDirectory(prefix="guardhook-")
        self.deadline = time.monotonic() + SECONDS
        self.last = 0
        self.answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        try:
            self.process = subprocess.Popen(
                [codex, "app-server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.empty.name,
                env=dict(machine.env),
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            self.empty.cleanup()
            raise HarnessError(f"{codex} can't be started: {error.strerror}") from None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> _Server:
        try:
            self.call("initialize", {"clientInfo": {"name": "guardhook", "title": None, "version": __version__}})
            self._send({"method": "initialized"})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.close()
            self.process.wait(2)
        except (OSError, subprocess.TimeoutExpired):
            from guardhook.harness.clients import kill

            kill(self.process)
            self.process.wait()
        self.reader.join(2)
        self.empty.cleanup()

    def hooks(self, folder: str | None) -> list[Listed]:
        result = self.call("hooks/list", {"cwds": [folder or self.empty.name]})
        found = []
        for entry in result.get("data") or ():
            for hook in entry.get("hooks") or ():
                if isinstance(hook.get("command"), str):
                    found.append(
                        Listed(
                            str(hook.get("key")),
                            str(hook.get("sourcePath")),
                            str(hook.get("eventName")),
                            hook["command"],
                            str(hook.get("currentHash")),
                            str(hook.get("trustStatus")),
                            hook.get("enabled") is not False,
                        )
                    )
        return found

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request and its answer. Raises HarnessError for an error, a closed server and the time limit."""
        self.last += 1
        self._send({"id": self.last, "method": method, "params": params})
        while True:
            try:
                answer = self.answers.get(timeout=max(0.0, self.deadline - time.monotonic()))
            except queue.Empty:
                raise HarnessError(f"`codex app-server` did not answer {method} within {SECONDS:.0f} seconds") from None
            if answer is None:
                raise HarnessError(f"`codex app-server` ended before it answered {method}")
            if answer.get("id") != self.last or "method" in answer:
                continue  # a notification, or a question to us that nothing here depends on
            if "error" in answer:
                error = answer["error"]
                text = error.get("message") if isinstance(error, dict) else error
                raise HarnessError(f"`codex app-server` refused {method}: {text}")
            result = answer.get("result")
            return result if isinstance(result, dict) else {}

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise HarnessError("`codex app-server` ended too early") from None

    def _read(self) -> None:
        assert self.process.stdout
        while line := self.process.stdout.readline(_LINE):
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self.answers.put(message)
        self.answers.put(None)
