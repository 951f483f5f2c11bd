"""Words that a command does not understand, told to a program that asked for JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "guardhook", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "words",
    [
        ("guard", "list", "--json", "--nope"),
        ("guard", "nosuch", "--json"),
        ("guard", "add", "--json"),
        ("install", "nosuch", "--json"),
        ("journal", "show", "--json", "--limit", "many"),
        ("nosuch", "--json"),
    ],
)
def test_a_usage_error_is_json_when_json_was_asked_for(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert (done.returncode, done.stderr) == (2, "")
    said = json.loads(done.stdout)
    assert said["ok"] is False and said["error"] and said["hints"] == []
    plain = run(*(word for word in words if word != "--json"))
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr
