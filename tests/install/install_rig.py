"""What the tests of installing share: a described machine, launcher paths, and the real files of one scope."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardhook.core.folders import Folders
from guardhook.harness import apply, model, table
from guardhook.harness.machine import Machine
from guardhook.harness.model import Launchers, Request


@dataclass
class Person:
    """A person's machine below one temporary folder. Nothing of guardhook is placed; its paths are only names."""

    base: Path
    env: dict[str, str] = field(default_factory=dict)
    platform: str = "linux"

    def __post_init__(self) -> None:
        for folder in (self.home, self.project, self.root):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def root(self) -> Path:
        return self.base / "root"

    @property
    def data(self) -> Path:
        return self.home / ".local/share/guardhook"

    @property
    def folders(self) -> Folders:
        return Folders(str(self.home / ".config/guardhook"), str(self.data), str(self.root / "etc/guardhook"))

    @property
    def machine(self) -> Machine:
        return Machine(
            self.platform,
            str(self.home),
            str(self.project),
            str(self.project),
            {"PATH": "/nowhere", **self.env},
            str(self.root),
        )

    def launcher(self, dialect: str, mode: str = "enforce") -> str:
        return f"{self.data}/bin/{dialect}.{mode}"

    def request(self, dialect: str, scope: str = "user", *, capture: bool = False, prompts: bool = False) -> Request:
        launchers = Launchers(self.launcher(dialect), self.launcher(dialect, "observe"))
        return Request(scope, model.CAPTURE if capture else model.ENFORCE, launchers, prompts)

    def install(self, dialect: str, scope: str = "user", *, dry_run: bool = False, **options: Any) -> apply.Outcome:
        request = self.request(dialect, scope, **options)
        return apply.install(table.load(dialect), self.machine, self.folders, request, dry_run=dry_run)

    def uninstall(self, dialect: str, scope: str = "user", *, dry_run: bool = False) -> apply.Outcome:
        return apply.uninstall(table.load(dialect), self.machine, self.folders, scope, dry_run=dry_run)

    def registrations(self, dialect: str, scope: str = "user") -> list[model.Registration]:
        files = apply.files_of(self.machine, scope)
        return table.load(dialect).registrations(self.machine, scope, files.read)

    def findings(self, dialect: str) -> dict[str, list[model.Finding]]:
        """The harness's own findings by check, for all that is registered."""
        found = [r for scope in model.SCOPES for r in self.registrations(dialect, scope)]
        out: dict[str, list[model.Finding]] = {}
        read = apply.files_of(self.machine, "user").read
        for finding in table.load(dialect).findings(self.machine, found, None, read):
            out.setdefault(finding.check, []).append(finding)
        return out


def put(path: Path, content: str | bytes | dict[str, Any]) -> Path:
    """Writes a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        content = json.dumps(content, indent=2) + "\n"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def tree(base: Path) -> dict[str, bytes | str]:
    """Every file below a folder with its bytes, every link with its target, every folder."""
    out: dict[str, bytes | str] = {}
    for path in sorted(base.rglob("*")):
        name = str(path.relative_to(base))
        out[name] = f"-> {os.readlink(path)}" if path.is_symlink() else "folder" if path.is_dir() else path.read_bytes()
    return out
