"""Commands whose status is an answer keep it when nobody reads what they print (`| head`, a closed pipe)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands_rig import environment

POLICY = """
[[policy]]
name = "a"
action = "deny"
match = { input_contains = "x" }
[[policy.example]]
command = "y"
expect = "deny"
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("unheard")
    demo = [sys.executable, "-m", "guardhook", "demo", "--dir", str(base / "gh")]
    subprocess.run(demo, env=environment(base), check=True, capture_output=True, timeout=60)
    (base / "policy.toml").write_text(POLICY)
    (base / "audit.jsonl").write_text("no entry\n")
    return base


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["eval", "trc_demo-admin"], 1),
        (["eval", "--tag", "demo", "--fail-under", "1"], 1),
        (["coverage", "--fail-under", "100", "{base}/policy.toml"], 1),
        (["policy", "test", "{base}/policy.toml"], 1),
        (["audit", "verify", "{base}/audit.jsonl"], 3),
        (["account", "trc_demo-coder", "--fail-on", "not-sure", "--fail-on", "warn", "--fail-on", "bad"], 3),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_status_stays(base: Path, words: list[str], status: int, more: list[str]) -> None:
    words = [word.replace("{base}", str(base)) for word in words]
    if words[:2] != ["policy", "test"]:
        words += ["--dir", str(base / "gh")]
    command = [sys.executable, "-m", "guardhook", *words, *more]
    env = environment(base)
    heard = subprocess.run(command, env=env, capture_output=True, timeout=60)
    assert heard.returncode == status, heard
    read, write = os.pipe()
    os.close(read)
    try:
        unheard = subprocess.run(command, env=env, stdout=write, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(write)
    assert unheard.returncode == status and b"Traceback" not in unheard.stderr
