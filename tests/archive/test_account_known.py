"""How far an answer stands by what hooks recorded: the checks that were declared when the run began, and the exit code that a harness reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKS = '[[account.verify]]\nid = "tests"\nargv = ["pytest"]\ncovers_answer = true\n'
EDIT = {"file_path": "/tmp/p/a.py", "old_string": "a", "new_string": "b"}


def run(folder: Path, *words: str, given: object = None) -> str:
    data = None if given is None else json.dumps(given)
    command = [sys.executable, "-m", "guardhook", *words, "--dir", str(folder)]
    done = subprocess.run(command, input=data, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done
    return done.stdout


def hook(folder: Path, name: str, **fields: Any) -> None:
    base = {"session_id": "k1", "cwd": "/tmp", "transcript_path": "/tmp/t.jsonl", "hook_event_name": name}
    assert run(folder, "hook", name, "--enforce", "--dialect", "claude-code", given={**base, **fields}) == ""


def call(folder: Path, id: str, tool: str, given: object, answer: object) -> None:
    hook(folder, "PreToolUse", tool_name=tool, tool_use_id=id, tool_input=given)
    hook(folder, "PostToolUse", tool_name=tool, tool_use_id=id, tool_input=given, tool_response=answer)


def session(folder: Path, answer: dict[str, object]) -> None:
    hook(folder, "UserPromptSubmit", prompt="mend it")
    call(folder, "a", "Edit", EDIT, {"filePath": "/tmp/p/a.py"})
    call(folder, "b", "Bash", {"command": "pytest -q"}, {"stdout": "ok", "stderr": "", **answer})
    hook(folder, "Stop", last_assistant_message="Done.")


def standing(folder: Path) -> str:
    found = json.loads(run(folder, "account", "k1", "--standing", "--json"))
    return str(found["standing"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "guardhook"
    path.mkdir()
    return path


def test_a_check_declared_before_that_passed_makes_an_answer_known(folder: Path) -> None:
    (folder / "config.toml").write_text(CHECKS)
    session(folder, {"exit_code": 0})
    assert standing(folder) == "known"
    # What is declared now is not what was declared then.
    (folder / "config.toml").write_text(CHECKS.replace('"tests"', '"other"'))
    assert standing(folder) == "consistent"


def test_a_check_declared_afterwards_does_not(folder: Path) -> None:
    session(folder, {"exit_code": 0})
    (folder / "config.toml").write_text(CHECKS)
    assert standing(folder) == "consistent"


def test_nor_does_one_of_which_no_exit_code_is_told(folder: Path) -> None:
    (folder / "config.toml").write_text(CHECKS)
    session(folder, {})
    assert standing(folder) == "not-sure"
