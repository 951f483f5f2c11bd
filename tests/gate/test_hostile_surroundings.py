"""What a hostile repository or agent puts around the hook: nothing of it is loaded, believed, or turns the gate off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.conftest import claude

SOURCE = str(Path(__file__).resolve().parents[2])
# As the installed hook script starts it: isolated, without the current folder.
INSTALLED = [
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {SOURCE!r}); from guardhook.gate.hook import main; main()",
    "hook",
    "PreToolUse",
    "--enforce",
    "--dialect",
    "claude-code",
]
PLANTED = ("tomllib", "msgspec", "regex", "click", "dataclasses", "sitecustomize", "usercustomize")


@pytest.mark.parametrize("module", PLANTED)
def test_compiling_loads_no_module_from_the_current_folder(tmp_path: Path, module: str) -> None:
    """A repository that brings a module and a policy file had the module run, outside of every sandbox, by the compiler."""
    repo, data, mark = tmp_path / "repo", tmp_path / "data", tmp_path / "loaded"
    (repo / ".guardhook" / "policies").mkdir(parents=True)
    (repo / ".guardhook" / "policies" / "a.toml").write_text(
        '[[policy]]\nname = "x"\naction = "deny"\nmatch = { input_contains = "GH-DENY" }\n'
    )
    data.mkdir()
    (repo / f"{module}.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(0)\n")
    payload = json.dumps(claude("echo GH-DENY", cwd=str(repo))).encode()
    done = subprocess.run(
        [*INSTALLED, "--dir", str(data)], input=payload, cwd=repo, capture_output=True, check=False, timeout=60
    )
    assert not mark.exists()
    assert done.returncode == 2
    assert b"project policy" in done.stderr, os.fsdecode(done.stderr)
