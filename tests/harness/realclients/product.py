"""guardhook as its users get it: installed into a scratch home by its own `install`, then broken on purpose."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from realclients import process
from realclients.driver import Home, Hook

ROOT = Path(__file__).resolve().parents[3]
INSTALLABLE = ("claude-code", "codex", "gemini")

POLICIES = """
[[policy]]
name = "test-deny"
description = "For tests with real clients"
action = "deny"
reason = "GH-DENY files are off limits in this test"
match = { step_type = "tool_call", input_contains = "GH-DENY" }

[[policy]]
name = "test-ask"
description = "For tests with real clients"
action = "require_review"
reason = "GH-ASK files need a person in this test"
match = { step_type = "tool_call", input_contains = "GH-ASK" }
"""

# What the hook program does instead of answering. None: there is no such file at all.
BREAKAGES: dict[str, str | None] = {
    "killed": "kill -KILL $$\n",
    "crashed": "kill -SEGV $$\n",
    "hangs": "exec sleep 600\n",
    "hangs-with-child": "trap '' TERM HUP INT\nsleep 600 &\nsleep 600\n",
    "missing": None,
    "not-executable": "exit 0\n",
    "garbage": "cat > /dev/null\necho 'Traceback (most recent call last): {\"decision\":'\nexit 0\n",
    "empty": "cat > /dev/null\nexit 0\n",
}
# Ways that need only one kind of tool call: descriptor 3 is where the hook program says that its answer is meant.
RARER_BREAKAGES: dict[str, str | None] = {
    "says-so-then-crashes": "cat > /dev/null\nprintf V >&3\nkill -SEGV $$\n",
    "says-so-with-a-strange-status": "cat > /dev/null\nprintf V >&3\nexit 77\n",
    "does-not-read": "exit 0\n",
    "floods-stdout": "exec yes '{\"continue\": true}'\n",
    "floods-stderr": "exec yes >&2\n",
    "leaves-a-child": "cat > /dev/null\nsleep 600 &\nexit 0\n",
    "half-an-answer": 'cat > /dev/null\nprintf \'{"hookSpecificOutput":{"permissionDecision":"allow"\'\nkill -KILL $$\n',
    "approves": 'cat > /dev/null\nprintf \'{"decision":"allow"}\'\nexit 0\n',
}


@dataclass
class Product:
    """How guardhook is started, and what was installed where by this test process."""

    argv: tuple[str, ...]
    env: dict[str, str]
    form: str
    _installed: dict[Path, str] = field(default_factory=dict)

    def run(
        self, home: Home, *words: str, check: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a guardhook command in a home, as its user would."""
        before = process.isolated(binds=home.binds) if home.binds else []
        done = subprocess.run(
            [*before, *self.argv, *words], env={**home.environment(), **self.env}, cwd=home.base, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=seconds,
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(
                f"guardhook {' '.join(words)} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def ensure_installed(self, home: Home, *options: str, policies: str | None = POLICIES) -> None:
        """`guardhook install` into a home, once; the same home with other options is an error of the test."""
        wanted = " ".join(options)
        if home.base in self._installed:
            assert self._installed[home.base] == wanted
            return
        if policies is not None:
            file = home.path / ".config/guardhook/policies/test.toml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(policies)
        if home.driver.dialect in INSTALLABLE:
            self.run(home, "install", home.driver.dialect, *options)
        else:
            self._install_by_hand(home)
        self._installed[home.base] = wanted

    def _install_by_hand(self, home: Home) -> None:
        """For a dialect that `install` does not register yet: the launcher under that dialect's name, in the user's settings."""
        borrowed = "gemini"
        self.run(home, "install", borrowed)
        folder = self.data(home) / "bin"
        program = folder / f"{home.driver.dialect}.enforce"
        if not program.exists():
            os.link(folder / f"{borrowed}.enforce", program)
        home.driver.register(home, [Hook([str(program), home.driver.gate_event])])

    def data(self, home: Home) -> Path:
        return home.path / ".local/share/guardhook"

    @contextlib.contextmanager
    def broken(self, home: Home, how: str) -> Iterator[None]:
        """Lets the launcher find a hook program that misbehaves, then puts the real one back."""
        current = self.data(home) / "current"
        real = os.readlink(current)
        folder = home.base / "broken" / how
        folder.mkdir(parents=True, exist_ok=True)
        script = {**BREAKAGES, **RARER_BREAKAGES}[how]
        if script is not None:
            program = folder / "guardhook-hook"
            program.write_text("#!/bin/sh\n" + script)
            program.chmod(0o644 if how == "not-executable" else 0o755)
        _point(current, str(folder))
        try:
            yield
        finally:
            _point(current, real)

    def journal(self, home: Home) -> list[dict[str, Any]]:
        """All journal lines of a home, in file order."""
        lines: list[dict[str, Any]] = []
        for path in sorted((self.data(home) / "journal").glob("*/*.jsonl")):
            lines += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return lines


def find_product() -> Product:
    """GUARDHOOK_BINARY, else dist/guardhook, else the source tree under this interpreter; GUARDHOOK_BINARY=source insists on the last."""
    source = Product((sys.executable, "-m", "guardhook"), {"PYTHONPATH": str(ROOT)}, "source")
    binary = os.environ.get("GUARDHOOK_BINARY")
    if binary == "source":
        return source
    for candidate in [Path(binary)] if binary else [ROOT / "dist/guardhook"]:
        if candidate.exists():
            return Product((str(candidate.resolve()),), {}, "executable")
    if binary:
        raise pytest.UsageError(f"GUARDHOOK_BINARY names no file: {binary}")
    return source


def gate_lines(lines: Sequence[dict[str, Any]], word: str) -> list[dict[str, Any]]:
    """The journal's lines of tool calls whose recorded payload has the word in it."""
    return [
        line
        for line in lines
        if line.get("type") == "hook.received"
        and line["data"].get("event") in ("pre_tool", "permission_request")
        and word in json.dumps(line["data"].get("payload"))
    ]


def _point(link: Path, target: str) -> None:
    fresh = link.with_name(link.name + ".test")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
