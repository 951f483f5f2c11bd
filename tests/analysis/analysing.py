"""What the tests of the analyser share: a fixed machine, short ways to effects, the corpus."""

from __future__ import annotations

import tomllib
from pathlib import Path

from guardhook.analysis import analyse
from guardhook.analysis.facts import Facts
from guardhook.core.effect import Effect
from guardhook.core.event import Event

HOME = "/home/user"
PROJECT = "/home/user/project"
GUARD = ("/home/user/.local/share/guardhook", "/home/user/.config/guardhook")
CORPUS = Path(__file__).resolve().parent.parent / "corpus"
OWN_FILES = ("execution", "filesystem", "git", "guard", "secrets", "wide", "wrapped")


def facts(**more: object) -> Facts:
    known: dict[str, object] = {"home": HOME, "user": "user", "project_root": PROJECT, "guard_paths": GUARD}
    known.update(more)
    return Facts(**known)  # type: ignore[arg-type]


def event(kind: str, tool: str = "Bash") -> Event:
    one = Event("claude-code", "PreToolUse", "pre_tool", {})
    one.kind = kind
    one.tool = tool
    one.cwd = PROJECT
    one.input = {}
    return one


def shell(command: str, *, cwd: str | None = PROJECT, language: str = "sh", **more: object) -> list[Effect]:
    """Effects of a shell command on the fixed machine."""
    one = event("shell")
    one.commands = [command]
    one.shell = language
    one.cwd = cwd
    return analyse(one, facts(**more))


def having(effects: list[Effect], spelling: str) -> list[Effect]:
    """The effects that a policy's `effect = "kind:flag"` would match."""
    kind, *flags = spelling.split(":")
    return [e for e in effects if e.kind == kind and e.flags.issuperset(flags)]


def groups() -> list[dict[str, object]]:
    """The corpus: each group with its commands under `commands`."""
    out: list[dict[str, object]] = []
    for name in OWN_FILES:
        for group in tomllib.loads((CORPUS / f"{name}.toml").read_text("utf-8"))["group"]:
            lines = [line for line in group.get("lines", "").split("\n") if line]
            out.append({**group, "file": name, "commands": [*lines, *group.get("commands", [])]})
    return out


def commands() -> list[str]:
    """Every command of the corpus."""
    return [c for g in groups() for c in g["commands"]]  # type: ignore[attr-defined]
