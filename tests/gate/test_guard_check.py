"""`guardhook guard check`: the gate for scripts."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.conftest import Outcome, claude, lines


def check(value: object, folder: Path, *words: str) -> Outcome:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    command = [sys.executable, "-m", "guardhook", "guard", "check", "--dir", str(folder), *words]
    # A session of its own: no controlling terminal, so nobody can be asked.
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60, start_new_session=True)
    return Outcome(done.returncode, done.stdout, done.stderr)


def step(command: str, **more: object) -> dict[str, object]:
    return {"name": "Bash", "step_type": "tool_call", "input": {"command": command}, **more}


def test_allowed(place: Path) -> None:
    out = check(step("ls -la"), place)
    assert (out.status, out.json["action"], out.json["policy"]) == (0, "allow", None)
    assert list(out.json)[:3] == ["action", "policy", "reason"]
    assert out.stderr == b""


def test_denied(place: Path) -> None:
    out = check(step("echo GH-DENY"), place)
    assert (out.status, out.json["action"], out.json["policy"]) == (2, "deny", "no-marker")
    assert b"The marker must not be used." in out.stderr


def test_warned(place: Path) -> None:
    out = check(step("echo GH-WARN"), place)
    assert (out.status, out.json["action"]) == (0, "warn")
    assert b"This is noted." in out.stderr


def test_a_review_without_a_terminal_is_refused_and_says_so_on_both_streams(place: Path) -> None:
    out = check(step("echo GH-ASK"), place)
    assert (out.status, out.json["action"], out.json["matched_action"]) == (2, "deny", "require_review")
    assert "review required" in str(out.json["reason"])
    assert b"review required" in out.stderr


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("\n", 2), ("yeah\n", 2)])
def test_a_review_is_asked_on_the_terminal(place: Path, tmp_path: Path, typed: str, status: int) -> None:
    given = tmp_path / "step.json"
    given.write_text(json.dumps(step("echo GH-ASK")))
    pid, terminal = pty.fork()
    if pid == 0:
        fd = os.open(given, os.O_RDONLY)
        os.dup2(fd, 0)
        os.execv(sys.executable, [sys.executable, "-m", "guardhook", "guard", "check", "--dir", str(place)])
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(terminal, 4096)
    os.write(terminal, typed.encode())
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status, seen


@pytest.mark.parametrize("payload", [claude("echo GH-DENY"), {"hook_event_name": "PreToolUse", "tool_name": "Bash", "session_id": "s", "transcript_path": "/x/.claude/projects/p/s.jsonl", "cwd": "/", "tool_input": {"command": "GH-DENY"}}])  # fmt: skip
def test_raw_hook_payloads_are_understood(place: Path, payload: dict[str, object]) -> None:
    assert check(payload, place).status == 2


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b"7",
        b"\xff",
        b'{"name":"x","name":"y","step_type":"tool_call"}',
        {},
        {"name": "x"},
        {"step_type": "tool_call"},
        {"name": "", "step_type": "tool_call"},
        {"name": 7, "step_type": "tool_call"},
        {"name": "x", "step_type": "toolcall"},
        {"name": "x", "step_type": ["tool_call"]},
        {"name": "x", "step_type": "tool_call", "cwd": 7},
        {"name": "Bash", "step_type": "tool_call", "input": {}},
    ],
)
def test_what_cannot_be_judged_is_denied_with_a_json_verdict(place: Path, value: object) -> None:
    out = check(value, place)
    assert (out.status, out.json["action"], out.json["policy"]) == (2, "deny", None)
    assert out.stderr.strip() and b"Traceback" not in out.stderr


def test_a_folder_that_is_not_there_is_denied_and_not_made(tmp_path: Path) -> None:
    out = check(step("ls"), tmp_path / "nowhere")
    assert (out.status, out.json["action"]) == (2, "deny")
    assert not (tmp_path / "nowhere").exists()


def test_any_step_type_is_judged(place: Path) -> None:
    for kind in ("thought", "llm_call", "output", "decision"):
        assert check({"name": "x", "step_type": kind, "input": {"text": "GH-DENY"}}, place).status == 2
        assert check({"name": "x", "step_type": kind, "input": {"text": "fine"}}, place).status == 0


def test_verdicts_are_recorded(place: Path) -> None:
    check(step("echo GH-DENY", session_id="s-1"), place)
    (line,) = lines(place)
    data = line["data"]
    assert isinstance(data, dict)
    assert (data["dialect"], data["session"], data["verdict"]["action"]) == ("script", "s-1", "deny")


def test_a_flag_typo_is_refused(place: Path) -> None:
    assert check(step("ls"), place, "--enforec").status == 2


def test_a_closed_stdout_is_refused(place: Path) -> None:
    command = f"exec {sys.executable} -m guardhook guard check --dir {place} >&-"
    done = subprocess.run(command, shell=True, input=json.dumps(step("ls")).encode(), capture_output=True, check=False)
    assert done.returncode == 2


def test_observing_is_not_told_as_a_denial(place: Path) -> None:
    (place / "config.toml").write_text('[gate]\npreset = "observe"\n')
    out = check(step("rm -rf /"), place)
    assert (out.status, out.json["action"], out.json["mode"]) == (0, "deny", "observe")
    assert b"not enforced: would be denied by policy" in out.stderr


def test_what_cannot_be_recorded_is_refused_unless_that_is_accepted(place: Path) -> None:
    for name in ("journal", "spool"):
        (place / name).write_text("a file where the folder should be")
    out = check(step("ls"), place)
    assert (out.status, out.json["action"]) == (2, "deny")
    assert "recorded" in str(out.json["reason"])
    passed = check(step("ls"), place, "--allow-empty")
    assert passed.status == 0
    assert b"was not recorded" in passed.stderr
