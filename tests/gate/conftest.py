"""Running the hook as a process, from source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guardhook.core.folders import explicit
from guardhook.journal.rules import freeze_rules
from guardhook.policy import compile as compiler

DENY_RULE = """
[[policy]]
name = "no-marker"
action = "deny"
reason = "The marker must not be used."
match = { input_contains = "GH-DENY" }

[[policy]]
name = "ask-marker"
action = "require_review"
reason = "A person looks at this first."
match = { input_contains = "GH-ASK" }

[[policy]]
name = "warn-marker"
action = "warn"
reason = "This is noted."
match = { input_contains = "GH-WARN" }
"""


class Outcome:
    """What a hook process did."""

    def __init__(self, status: int, stdout: bytes, stderr: bytes) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def silent(self) -> bool:
        return self.status == 0 and not self.stdout and not self.stderr

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.stdout)
        assert isinstance(value, dict)
        return value

    def __repr__(self) -> str:
        return f"status={self.status} stdout={self.stdout!r} stderr={self.stderr!r}"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder for `--dir` with three marker policies in its user layer."""
    folder = tmp_path / "guardhook"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "markers.toml").write_text(DENY_RULE)
    folders = explicit(str(folder))
    compiler.write(compiler.compile_main(folders, redact=freeze_rules))
    return folder


Run = Callable[..., Outcome]


@pytest.fixture
def hook(place: Path) -> Run:
    """hook(payload, *arguments): enforcing on `place` unless told otherwise. A dict is sent as JSON, bytes as they are."""

    def run(
        payload: object, *arguments: str, enforce: bool = True, directory: Path | None = None, **popen: object
    ) -> Outcome:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        command = [sys.executable, "-m", "guardhook", "hook", *arguments, "--dir", str(directory or place)]
        if enforce:
            command.append("--enforce")
        # Being too slow to compile is a block that is right on a crowded machine, and not what these tests are about.
        for _ in range(4):
            done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False, **popen)  # type: ignore[call-overload]
            if b"compiling the policies took longer" not in done.stderr:
                break
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


def claude(command: str = "ls", event: str = "PreToolUse", **more: object) -> dict[str, object]:
    """A Claude Code payload as 2.1.332 sends it."""
    payload: dict[str, object] = {
        "session_id": "00000000-0000-4000-8000-000000000001",
        "transcript_path": "/home/user/.claude/projects/-p/00000000-0000-4000-8000-000000000001.jsonl",
        "cwd": os.getcwd(),
        "prompt_id": "00000000-0000-4000-8000-000000000002",
        "permission_mode": "default",
        "effort": {"level": "medium"},
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "d"},
        "tool_use_id": "toolu_1",
    }
    payload.update(more)
    return payload


def codex(command: str = "ls", event: str = "PreToolUse") -> dict[str, object]:
    """A Codex payload as 0.171.0 sends it."""
    return {
        "session_id": "00000000-0000-7000-8000-000000000001",
        "turn_id": "00000000-0000-7000-8000-000000000002",
        "transcript_path": None,
        "cwd": os.getcwd(),
        "hook_event_name": event,
        "model": "gpt-5.5",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "call_1",
    }


def gemini(command: str = "ls", event: str = "BeforeTool") -> dict[str, object]:
    """A Gemini CLI payload as 0.61.0 sends it."""
    return {
        "session_id": "5e550001-0000-4000-8000-000000000001",
        "transcript_path": "/home/dev/.gemini/tmp/proj/chats/session-1.jsonl",
        "cwd": os.getcwd(),
        "hook_event_name": event,
        "timestamp": "2026-11-30T00:33:03.976Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": command},
    }


def lines(folder: Path) -> list[dict[str, object]]:
    """All complete journal lines below a `--dir` folder."""
    found = []
    for path in sorted((folder / "journal").rglob("*.jsonl")):
        found += [json.loads(line) for line in path.read_text().splitlines()]
    return found
