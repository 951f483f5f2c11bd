"""Commands that take something in take all of it in when nobody reads what they print (`| head`, a terminal that is gone)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from import_rig import FIXTURES
from record_rig import environment, opened

START = {"type": "trace_start", "trace_id": "t1", "agent_name": "x"}
END = {"type": "trace_end", "trace_id": "t1"}


def lines(*values: object) -> str:
    return "".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values)


def transcripts(folder: Path) -> list[str]:
    whole = (FIXTURES / "claude" / "older.jsonl").read_text()
    (folder / "logs").mkdir()
    for name in ("a", "b", "c"):
        (folder / "logs" / f"{name}.jsonl").write_text(f"damage\n{whole}")
    return ["import", str(folder / "logs")]


def faulty(folder: Path) -> list[str]:
    (folder / "in.jsonl").write_text(lines(*[{"agent_name": 3}] * 20, {"agent_name": "x"}))
    return ["ingest", str(folder / "in.jsonl")]


def noisy(folder: Path) -> list[str]:
    (folder / "stdin").write_text(lines(START, *["bad"] * 25, END))
    return ["record"]


def program(folder: Path) -> list[str]:
    return ["run", "--", "sh", "-c", "echo bad >> $GUARDHOOK_EVENTS; exit 5"]


@pytest.mark.parametrize("how", ["stdout", "stderr", "both", "closed"])
@pytest.mark.parametrize(
    ("prepare", "status", "traces"), [(transcripts, 0, 3), (faulty, 1, 1), (noisy, 0, 1), (program, 5, 1)]
)
def test_all_of_it_is_taken_in(tmp_path: Path, prepare: object, status: int, traces: int, how: str) -> None:
    assert callable(prepare)
    command = [sys.executable, "-m", "guardhook", *prepare(tmp_path), "--dir", str(tmp_path / "gh")]
    if "--" in command:
        command = [*command[:4], *command[-2:], *command[4:-2]]
    given = tmp_path / "stdin"
    given.touch()
    if how == "closed":
        command = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command]
    read, write = os.pipe()
    os.close(read)
    try:
        with given.open("rb") as stdin:
            ended = subprocess.run(
                command, env=environment(tmp_path), stdin=stdin, timeout=60,
                stdout=write if how in ("stdout", "both") else subprocess.DEVNULL, stderr=write if how in ("stderr", "both") else subprocess.DEVNULL,
            )  # fmt: skip
    finally:
        os.close(write)
    assert ended.returncode == status
    with opened(tmp_path / "gh") as store:
        assert len(list(store.iterate())) == traces
