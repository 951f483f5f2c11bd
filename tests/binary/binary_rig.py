"""A launcher beside a fake hook program: what the harness would start, without the rest of the product."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from guardhook.harness import launcher

ENFORCING, OBSERVING = 1.2, 0.6  # seconds; shorter than the real ones so that hangs are tested quickly

TABLE = launcher.Table(
    dialects=(
        launcher.Dialect(
            "alpha",
            (
                launcher.Row("PreToolUse", 2, b'{"deny":"a\\\\b \\"q\\" 100%?"}\n', b"blocked: 'no' verdict\n"),
                launcher.Row("PermissionRequest", 0, b'{"behavior":"deny"}\n', b"blocked\n"),
                launcher.Row("Stop", 0, b"", b""),
                launcher.Row("PostToolUse", 0, b"", b""),
                launcher.Row("", 2, b"", b"blocked: no verdict\n"),
            ),
            (0, 2),
        ),
        launcher.Dialect(
            "talker",
            (launcher.Row("pre", 1, b'{"permission":"deny"}\n', b"no\n", b'{"permission":"allow"}\n'),),
            (0, 1, 2),
            True,
        ),
    ),
    environment=("CLAUDE_PROJECT_DIR", "GEMINI_SESSION_ID"),
    enforcing=ENFORCING,
    observing=OBSERVING,
)
DENY = TABLE.dialects[0].rows[0]


class Result(NamedTuple):
    status: int
    stdout: bytes
    stderr: bytes
    seconds: float


class Rig:
    """One installation: `bin/` with launchers, `current/` with a fake hook program."""

    def __init__(self, root: Path, form: str, built: Path) -> None:
        self.root = root
        self.form = form
        self.built = built
        self.program = root / "current" / "guardhook-hook"
        for name in ("bin", "current", "run"):
            (root / name).mkdir()

    def launcher(self, name: str) -> Path:
        path = self.root / "bin" / name
        if not path.exists():
            if self.form == "c":
                os.link(self.built, path)
            else:
                path.write_text(launcher.shell_form(TABLE, str(path)))
                path.chmod(0o500)
        return path

    def hook(self, script: str) -> None:
        """Makes the hook program an sh script. `v` in it gives the verdict byte."""
        self.program.unlink(missing_ok=True)
        self.program.write_text(f"#!/bin/sh\nv() {{ printf V >&3; }}\n{script}\n")
        self.program.chmod(0o700)

    def start(
        self,
        name: str = "alpha.enforce",
        *words: str,
        env: dict[str, str] | None = None,
        stdin: int = subprocess.PIPE,
        **more: object,
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self.launcher(name)), *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"} if env is None else env,
            **more,  # type: ignore[call-overload]
        )

    def run(
        self, name: str = "alpha.enforce", *words: str, payload: bytes = b"{}", env: dict[str, str] | None = None
    ) -> Result:
        started = time.monotonic()
        process = self.start(name, *words, env=env)
        out, err = process.communicate(payload, timeout=20)
        return Result(process.returncode, out, err, time.monotonic() - started)
