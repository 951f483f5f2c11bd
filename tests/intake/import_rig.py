"""Running `guardhook import` and looking at what came of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Step, Trace, open_store

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "transcripts"


class Ran:
    """What the command did. files: the answers of --json."""

    def __init__(self, status: int, stdout: str, stderr: str) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def files(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json["files"]
        return found

    @property
    def file(self) -> dict[str, Any]:
        (only,) = self.files
        return only

    def __repr__(self) -> str:
        return f"status={self.status}\n{self.stdout}\n{self.stderr}"


class Rig:
    """A data folder, and a folder for transcripts."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "gh"
        self.files = folder / "files"
        self.files.mkdir()

    def run(self, *words: object) -> Ran:
        done = CliRunner().invoke(main, [*map(str, words), "--dir", str(self.data)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.stdout + done.stderr
        return Ran(done.exit_code, done.stdout, done.stderr)

    def import_(self, *words: object) -> Ran:
        return self.run("import", *words, "--json")

    def write(self, name: str, *records: object) -> Path:
        """A file of records, one a line; texts are lines as they are."""
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
        return path

    def fixture(self, name: str, to: str | None = None) -> Path:
        """A copy of a captured file (with its sub-agents' folder)."""
        source = FIXTURES / name
        path = self.files / (to or source.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
        beside = source.with_suffix("")
        if beside.is_dir():
            shutil.copytree(beside, path.with_suffix(""))
        return path

    def traces(self) -> list[Trace]:
        with open_store(explicit(str(self.data))) as store:
            found = list(store.iterate())
            problems = store.problems()
            assert not problems, problems
            return found

    def trace(self) -> Trace:
        (only,) = self.traces()
        return only

    def steps(self, trace: Trace | None = None) -> list[Step]:
        with open_store(explicit(str(self.data))) as store:
            return list(store.steps(trace or next(iter(store.iterate()))))

    def journal(self) -> list[Path]:
        return sorted((self.data / "journal" / "imports").glob("*.jsonl"))
