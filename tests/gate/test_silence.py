"""Whoever starts a session after a long silence is told of it: hooks that are asleep say nothing themselves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gate.conftest import Run

DAY = 86_400
CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}
GEMINI = {"timestamp": "2026-11-30T00:00:00Z", "transcript_path": "/home/u/.gemini/tmp/p/chats/session-1.json"}


def start(session: str, **more: Any) -> dict[str, Any]:
    return {"session_id": session, "cwd": "/tmp", "hook_event_name": "SessionStart", "source": "startup", **more}


def age(place: Path, days: float) -> None:
    for file in (place / "journal").rglob("*.jsonl*"):
        os.utime(file, (time.time() - days * DAY,) * 2)


@pytest.fixture
def used(place: Path, hook: Run) -> Path:
    """A call of Claude Code, an hour of Gemini's and no more."""
    assert hook({"session_id": "old", "cwd": "/tmp", **CALL}, "PreToolUse", "--dialect", "claude-code").silent
    return place


def test_a_first_session_and_one_soon_after_are_told_nothing(place: Path, hook: Run) -> None:
    assert hook(start("one"), "SessionStart", "--dialect", "claude-code").silent
    assert hook(start("two"), "SessionStart", "--dialect", "claude-code").silent
    age(place, 13)
    assert hook(start("three"), "SessionStart", "--dialect", "claude-code").silent


def test_after_weeks_of_silence_the_person_is_told_once(used: Path, hook: Run) -> None:
    age(used, 40)
    said = hook(start("new"), "SessionStart", "--dialect", "claude-code")
    assert said.status == 0 and not said.stderr
    assert list(said.json) == ["systemMessage"]
    assert "40 days" in str(said.json["systemMessage"]) and "guardhook doctor" in str(said.json["systemMessage"])
    assert hook(start("next"), "SessionStart", "--dialect", "claude-code").silent


def test_another_harness_says_nothing_of_this_one(used: Path, hook: Run) -> None:
    age(used, 40)
    assert hook(start("g", **GEMINI), "SessionStart", "--dialect", "gemini").silent
    age(used, 40)
    assert "systemMessage" in hook(start("h", **GEMINI), "SessionStart", "--dialect", "gemini").json
    # Whatever Codex finds on stdout goes to the model.
    assert hook(start("c", turn_id="1", model="m"), "SessionStart", "--dialect", "codex").silent
    age(used, 40)
    assert hook(start("d", turn_id="1", model="m"), "SessionStart", "--dialect", "codex").silent


def test_watching_hooks_never_speak(used: Path, hook: Run) -> None:
    age(used, 40)
    assert hook(start("new"), "SessionStart", "--dialect", "claude-code", enforce=False).silent


def test_a_journal_that_cant_be_read_keeps_nobody_from_starting(used: Path, hook: Run) -> None:
    age(used, 40)
    for day in (used / "journal").glob("20*"):
        for file in day.iterdir():
            file.unlink()
            os.mkfifo(file)
    assert hook(start("new"), "SessionStart", "--dialect", "claude-code").silent
