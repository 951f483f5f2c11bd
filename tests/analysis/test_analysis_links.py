"""Paths through symbolic links count as what they lead to; an ordinary link inside a project does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardhook.analysis import analyse
from guardhook.analysis.facts import DiskFacts
from guardhook.core.effect import Effect
from guardhook.core.event import Event
from guardhook.gate.facts import as_named


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("key")
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text("{}")
    (home / "project" / "src").mkdir(parents=True)
    (home / "project" / ".git").mkdir()
    return home


def effects(home: Path, command: str, cwd: str | None = None) -> list[Effect]:
    one = Event("claude-code", "PreToolUse", "pre_tool", {})
    one.kind, one.tool, one.commands, one.input = "shell", "Bash", [command], {"command": command}
    one.cwd = cwd or str(home / "project")
    return analyse(one, DiskFacts(home=str(home), user="u", project_root=str(home / "project"), guard_paths=()))


def test_reading_through_a_link_to_a_key_reads_the_key(home: Path) -> None:
    (home / "project" / "notes").symlink_to(home / ".ssh")
    (home / "project" / "notes.txt").symlink_to("../.ssh/id_rsa")
    (home / ".ssh" / "deploy").write_text("key")
    for command in ("cat notes/deploy", "cat notes.txt", "head -1 ./notes.txt"):
        found = [e for e in effects(home, command) if e.kind == "read" and "link" in e.flags]
        assert found and "secret" in found[0].path_classes, command


def test_writing_through_a_link_to_hook_settings_changes_the_guard(home: Path) -> None:
    (home / "project" / "cfg").symlink_to(home / ".claude")
    for command in ("echo '{}' > cfg/settings.json", "tee cfg/settings.json < x", "rm cfg/settings.json"):
        assert any(e.kind == "guard_change" for e in effects(home, command)), command


def test_removing_a_link_removes_only_the_link(home: Path) -> None:
    (home / "project" / "cfg").symlink_to(home / ".claude")
    assert not any("link" in e.flags for e in effects(home, "rm cfg"))


def test_links_inside_the_project_are_nothing_special(home: Path) -> None:
    (home / "project" / "lib").symlink_to("src")
    assert not any("link" in e.flags for e in effects(home, "rm lib/a.py && cat lib/b.py && echo x > lib/c.py"))


def test_loops_and_missing_paths_are_survived(home: Path) -> None:
    (home / "project" / "loop").symlink_to("loop")
    effects(home, "cat loop/x; rm -rf loop/y; cat missing/z")


def test_a_linked_project_folder_stays_the_project(home: Path, tmp_path: Path) -> None:
    alias = tmp_path / "work"
    alias.symlink_to(home / "project")
    root = as_named(str(home / "project"), f"{alias}/src")
    assert root == str(alias)
    assert as_named(str(home / "project"), "/elsewhere") == str(home / "project")
    assert as_named(None, "/x") is None


def test_a_build_folder_that_is_not_there_does_not_excuse_deleting_everything(home: Path) -> None:
    """`cd build; rm -rf *` passed whether or not there was a `build`; without one it empties the current folder."""

    def whole(command: str) -> bool:
        return any(e.kind == "delete" and "whole-cwd" in e.flags for e in effects(home, command))

    assert whole("cd build; rm -rf *")
    (home / "project" / "build").mkdir()
    assert not whole("cd build; rm -rf *")
