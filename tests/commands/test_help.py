"""Help: every command explains itself, and the commands that are listed are there."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import click

from guardhook.commands import TABLE, main


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
    return found


def test_every_command_and_option_says_what_it_does() -> None:
    listed = commands(main)
    assert {path[0] for path, _ in listed} == set(TABLE)
    assert ("guard", "add") in [path for path, _ in listed]
    for path, command in listed:
        assert command.help, path
        for option in command.params:
            assert not isinstance(option, click.Option) or option.hidden or option.help, (path, option.name)


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "guardhook", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=60,
    )


def test_the_hook_explains_itself_to_a_person() -> None:
    for word in ("--help", "-h"):
        done = run("hook", word)
        assert done.returncode == 0
        assert "--enforce" in done.stdout and "stdin" in done.stdout


def test_without_a_command_the_help_is_shown_as_it_is() -> None:
    done = run()
    shown = done.stdout + done.stderr  # which of them, and with which status, depends on the version of click
    assert "\n  coverage " in shown and "\\n" not in shown and "Error" not in shown


def test_an_empty_home_is_not_the_root_folder(tmp_path: Path) -> None:
    for home in ("", "somewhere"):
        done = run("install", "claude-code", "--dry-run", "--dir", str(tmp_path), HOME=home)
        assert f"{pwd.getpwuid(os.getuid()).pw_dir}/.claude/settings.json" in done.stderr


def test_a_dry_run_does_not_claim_to_have_done_it(tmp_path: Path) -> None:
    done = run("install", "claude-code", "--dry-run", HOME=str(tmp_path))
    assert done.returncode == 0
    assert "dry run: not done" in done.stderr
    assert os.listdir(tmp_path) == []
