"""`guardhook trust`: whose words reach the agent, and how little it takes to lose that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands_rig import REPOSITORY, at_terminal, environment, plain

from guardhook.core.folders import explicit
from guardhook.policy import compile as compiler
from guardhook.policy import compiled, trust

POLICY = """
[[policy]]
name = "team-rule"
action = "deny"
reason = "The team decided \\u001b[2J so."
suggest = "Ask the team."
match = { input_contains = "TEAM" }
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "gh"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".guardhook" / "policies").mkdir(parents=True)
    (folder / ".guardhook" / "policies" / "a.toml").write_text(POLICY)
    return folder


@pytest.fixture
def env(scratch_home: Path, place: Path) -> dict[str, str]:
    return environment(scratch_home, GUARDHOOK_DIR=str(place))


def said(place: Path, repo: Path) -> str:
    """What an agent is told when it runs into the project's policy."""
    payload = {
        "session_id": "s1",
        "transcript_path": "/home/u/.claude/projects/-p/s1.jsonl",
        "cwd": str(repo),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo TEAM"},
        "tool_use_id": "t1",
    }
    # Being too slow to compile is a block that is right on a crowded machine, and not what these tests are about.
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-m", "guardhook", "hook", "--enforce", "--dir", str(place)],
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=60,
            check=False,
            cwd=repo,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        if b"compiling the policies took longer" not in done.stderr:
            break
    assert done.returncode == 2, done
    return done.stderr.decode()


def state(place: Path, repo: Path) -> str:
    return trust.state(explicit(str(place)), str(repo))


def test_words_reach_the_agent_after_trust_and_not_after_a_change(place: Path, repo: Path, env: dict[str, str]) -> None:
    before = said(place, repo)
    assert "team" not in before.lower()
    assert "blocked by a project policy" in before
    ran = at_terminal(["trust", str(repo), "--json"], env)
    assert ran.status == 0, ran
    assert json.loads(ran.stdout)["state"] == "trusted"
    assert "The team decided" in ran.screen
    assert "\x1b" not in ran.screen
    after = said(place, repo)
    assert "The team decided" in after
    assert "Ask the team" in after
    assert "\x1b" not in after
    (repo / ".guardhook" / "policies" / "a.toml").write_text(POLICY.replace("Ask the team", "Obey"))
    changed = said(place, repo)
    assert "Obey" not in changed
    assert "team" not in changed.lower()
    assert state(place, repo) == "changed"


def test_escapes_in_the_file_are_shown_not_obeyed(repo: Path, env: dict[str, str]) -> None:
    (repo / ".guardhook" / "policies" / "a.toml").write_text(POLICY + "# \x1b[31m \u202e hidden \u200b\r\x07\n")
    ran = at_terminal(["trust", str(repo)], env)
    assert "\\x1b[31m" in ran.screen
    for bad in ("\x1b", "\u202e", "\u200b", "\x07"):
        assert bad not in ran.screen


@pytest.mark.parametrize("answer", ["", "trust\n", "y\n"])
def test_nothing_without_the_phrase(place: Path, repo: Path, env: dict[str, str], answer: str) -> None:
    ran = at_terminal(["trust", str(repo)], env, lambda phrase: answer or "\n")
    assert ran.status == 2
    assert not (place / "trusted").exists()


def test_not_for_agents_and_not_without_a_terminal(place: Path, repo: Path, env: dict[str, str]) -> None:
    assert at_terminal(["trust", str(repo)], {**env, "CLAUDECODE": "1"}).status == 2
    ran = plain(["trust", str(repo), "--json"], env)
    assert ran.status == 2
    assert json.loads(ran.stdout)["ok"] is False
    assert not (place / "trusted").exists()


def test_the_project_of_the_current_folder_list_and_remove(place: Path, repo: Path, env: dict[str, str]) -> None:
    below = repo / "src" / "deep"
    below.mkdir(parents=True)
    assert at_terminal(["trust"], env, cwd=below).status == 0
    assert os.stat(place / "trusted").st_mode & 0o077 == 0
    (row,) = json.loads(plain(["trust", "--list", "--json"], env).stdout)["projects"]
    assert (row["root"], row["state"], row["files"]) == (os.path.realpath(repo), "trusted", ["a.toml"])
    assert "trusted" in plain(["trust", "--list"], env).stdout
    assert plain(["trust", "--remove", str(repo)], env).status == 0
    assert state(place, repo) == "untrusted"
    assert plain(["trust", "--remove", str(repo)], env).status == 1


def test_guard_list_tells(place: Path, repo: Path, env: dict[str, str]) -> None:
    problems = json.loads(plain(["guard", "list", "--project", str(repo), "--json"], env).stdout)["problems"]
    assert any("not trusted" in line for line in problems)
    trust.add(explicit(str(place)), trust.read_project(str(repo)))
    problems = json.loads(plain(["guard", "list", "--project", str(repo), "--json"], env).stdout)["problems"]
    assert not any("trusted" in line for line in problems)
    (repo / ".guardhook" / "policies" / "a.toml").write_text(POLICY + "\n")
    problems = json.loads(plain(["guard", "list", "--project", str(repo), "--json"], env).stdout)["problems"]
    assert any("changed since they were trusted" in line for line in problems)


def test_a_project_without_policies_or_with_links_is_refused(repo: Path, env: dict[str, str], tmp_path: Path) -> None:
    assert at_terminal(["trust", str(tmp_path)], env).status == 2
    (repo / ".guardhook" / "policies" / "b.toml").symlink_to(repo / ".guardhook" / "policies" / "a.toml")
    ran = at_terminal(["trust", str(repo)], env)
    assert ran.status == 2
    assert "link" in ran.stderr


# --- withdrawing and damage, on the compiled form --------------------------------------------------------------------


def words(place: Path, repo: Path) -> str:
    found = compiler.compile_project(explicit(str(place)), os.path.realpath(repo))
    return " ".join(str(row[5]) for row in map(compiled.load_bytes(found.blob).row, range(1)))


def trusted(place: Path, repo: Path) -> None:
    trust.add(explicit(str(place)), trust.read_project(str(repo)))
    assert "The team decided" in words(place, repo)


def change_edit(place: Path, repo: Path) -> None:
    path = repo / ".guardhook" / "policies" / "a.toml"
    path.write_text(path.read_text() + "\n")


def change_add(place: Path, repo: Path) -> None:
    (repo / ".guardhook" / "policies" / "b.toml").write_text("")


def change_rename(place: Path, repo: Path) -> None:
    folder = repo / ".guardhook" / "policies"
    (folder / "a.toml").rename(folder / "c.toml")


def change_add_link(place: Path, repo: Path) -> None:
    (repo / ".guardhook" / "policies" / "b.toml").symlink_to("a.toml")


def change_readable(place: Path, repo: Path) -> None:
    (place / "trusted").chmod(0o644)


def change_damaged(place: Path, repo: Path) -> None:
    (place / "trusted").write_text("{")


def change_other_shape(place: Path, repo: Path) -> None:
    (place / "trusted").write_text('{"v": 1, "projects": ["' + os.path.realpath(repo) + '"]}')


def change_linked(place: Path, repo: Path) -> None:
    (place / "trusted").rename(place / "elsewhere")
    (place / "trusted").symlink_to(place / "elsewhere")


def change_hard_linked(place: Path, repo: Path) -> None:
    os.link(place / "trusted", place / "second")


def change_gone(place: Path, repo: Path) -> None:
    (place / "trusted").unlink()


CHANGES = [v for k, v in sorted(globals().items()) if k.startswith("change_")]


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
def test_any_change_withdraws_the_trust(place: Path, repo: Path, change: Callable[[Path, Path], None]) -> None:
    trusted(place, repo)
    change(place, repo)
    assert "team" not in words(place, repo).lower()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_another_users_list_counts_for_nothing(place: Path, repo: Path) -> None:
    trusted(place, repo)
    os.chown(place / "trusted", 12345, -1)
    assert "team" not in words(place, repo).lower()


def test_trust_makes_the_compiled_file_stale(place: Path, repo: Path) -> None:
    folders = explicit(str(place))
    root = os.path.realpath(repo)
    compiler.write(compiler.compile_project(folders, root))
    assert compiled.load_project(folders, root) is not None
    trust.add(folders, trust.read_project(root))
    with pytest.raises(compiled.Stale):
        compiled.load_project(folders, root)


def test_another_project_with_the_same_files_is_not_trusted(place: Path, repo: Path, tmp_path: Path) -> None:
    trusted(place, repo)
    other = tmp_path / "other"
    (other / ".guardhook" / "policies").mkdir(parents=True)
    (other / ".guardhook" / "policies" / "a.toml").write_text(POLICY)
    assert "team" not in words(place, other).lower()
