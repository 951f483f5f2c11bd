"""A home folder into which the built executable has installed itself, and the calls that a client would make."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

# `AI_AGENT` and the like of whoever runs the tests must not reach the programs that are tested.
PATH = "/usr/local/bin:/usr/bin:/bin"

HARMLESS = "git status"
DEADLY = "rm -rf /"


def call(command: object = HARMLESS, **more: object) -> bytes:
    """A PreToolUse payload as Claude Code sends it."""
    event: dict[str, object] = {
        "session_id": "0c5d1d34-1111-4222-8333-944455556666",
        "transcript_path": "/home/dev/.claude/projects/-w/0c5d1d34-1111-4222-8333-944455556666.jsonl",
        "cwd": "/",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "toolu_01",
    }
    return json.dumps({**event, **more}).encode() + b"\n"


class Installed:
    """`guardhook install claude-code` in a home folder of its own."""

    def __init__(self, home: Path, executable: Path) -> None:
        self.home = home
        self.executable = executable
        home.mkdir(parents=True, exist_ok=True)
        self.data = home / ".local" / "share" / "guardhook"
        done = self.command("install", "claude-code")
        assert done.returncode == 0, done.stderr
        self.program = self.data / "current" / "guardhook-hook"
        self.launcher = self.data / "bin" / "claude-code.enforce"
        self.observer = self.data / "bin" / "claude-code.observe"

    def command(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        env = {"PATH": PATH, "HOME": str(self.home)}
        return subprocess.run([self.executable, *words], env=env, capture_output=True, timeout=60)

    def start(
        self, *words: object, env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(word) for word in words] or [str(self.launcher), "PreToolUse"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": PATH} if env is None else env,
            cwd=cwd,
        )

    def ask(
        self, payload: bytes, *words: object, env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> tuple[int, bytes, bytes]:
        """Status, stdout and stderr of one hook call; without words through the enforcing launcher."""
        process = self.start(*words, env=env, cwd=cwd)
        out, err = process.communicate(payload, timeout=30)
        return process.returncode, out, err

    def lines(self) -> list[dict[str, object]]:
        """Every journal line so far."""
        found = []
        for path in sorted((self.data / "journal").glob("*/*.jsonl")):
            found += [json.loads(line) for line in path.read_text().splitlines()]
        return found


def is_deny(result: tuple[int, bytes, bytes]) -> bool:
    """The whole block that Claude Code gets: JSON, a line for people, status 2."""
    status, out, err = result
    if status != 2 or err.count(b"\n") != 1 or not err.startswith(b"guardhook: blocked"):
        return False
    said = json.loads(out)["hookSpecificOutput"]
    return bool(said["permissionDecision"] == "deny" and said["permissionDecisionReason"])


def child_of(pid: int) -> int:
    """The one child of a process that is running."""
    for _ in range(2000):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        os.sched_yield()
    raise AssertionError("no child appeared")
