"""What a hostile repository or agent puts around the hook: nothing of it is loaded, believed, or turns the gate off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guardhook.core import limits
from guardhook.core.folders import explicit
from guardhook.policy import compile as compiler
from guardhook.policy import compiled
from guardhook.policy import recompile as recompiling
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
    for _ in range(4):  # on a crowded machine compiling takes too long at times, and the block is right
        done = subprocess.run(
            [*INSTALLED, "--dir", str(data)], input=payload, cwd=repo, capture_output=True, check=False, timeout=60
        )
        if b"compiling the policies took longer" not in done.stderr:
            break
    assert not mark.exists()
    assert done.returncode == 2
    assert b"project policy" in done.stderr, os.fsdecode(done.stderr)


def test_policies_that_take_for_ever_to_compile_are_ignored_once_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository with policies for half a minute of compiling cost its user 1.5 s at every call."""
    repo, data = tmp_path / "repo", tmp_path / "data"
    (repo / ".guardhook" / "policies").mkdir(parents=True)
    data.mkdir()
    rule = (
        '[[policy]]\nname = "p%d"\naction = "deny"\nmatch = { input_regex = "zq%dx[a-z]{1,20}(foo|bar)?[0-9]{1,30}" }\n'
    )
    for file in range(4):
        text = "".join(rule % (number, number) for number in range(file * 500, file * 500 + 500))
        (repo / ".guardhook" / "policies" / f"{file}.toml").write_text(text)
    folders = explicit(str(data))

    monkeypatch.setattr(limits, "COMPILE_SECONDS_PROJECT", 0.1)

    def recompile() -> None:
        compiler.write(recompiling.project(folders, str(repo)))

    recompile()
    one = compiled.load_project(folders, str(repo))
    assert one is not None and not one.policies
    assert "to compile" in one.problems[0]
    # Fewer of them count again.
    for file in range(1, 4):
        (repo / ".guardhook" / "policies" / f"{file}.toml").unlink()
    (repo / ".guardhook" / "policies" / "0.toml").write_text(rule % (0, 0))
    with pytest.raises(compiled.Stale):
        compiled.load_project(folders, str(repo))
    monkeypatch.setattr(limits, "COMPILE_SECONDS_PROJECT", 30)
    recompile()
    one = compiled.load_project(folders, str(repo))
    assert one is not None and len(one.policies) == 1
