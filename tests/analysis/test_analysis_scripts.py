"""Scripts on disk: judged by what they hold now, and never silently passed over when they can't be."""

from __future__ import annotations

import os
from pathlib import Path

import analysing
import pytest

from guardhook.analysis import analyse
from guardhook.analysis.facts import FILES, DiskFacts
from guardhook.core import limits
from guardhook.core.effect import Effect

BAD = "rm -rf /etc\n"
BAD_PYTHON = "import shutil\nshutil.rmtree('/etc')\n"


def on_disk(folder: Path, command: str) -> list[Effect]:
    one = analysing.event("shell")
    one.commands = [command]
    one.cwd = str(folder)
    return analyse(one, DiskFacts(home=analysing.HOME, user="user", project_root=str(folder)))


def unread(effects: list[Effect]) -> list[Effect]:
    return analysing.having(effects, "unverified:cap")


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("a.sh", BAD, "sh a.sh"),
        ("a.sh", "#!/bin/sh\n" + BAD, "./a.sh"),
        ("a.sh", BAD, ". ./a.sh"),
        ("a.py", BAD_PYTHON, "python3 a.py"),
        ("a.py", BAD_PYTHON, "python3 -m a"),
        ("a/__main__.py", BAD_PYTHON, "python3 -m a"),
        ("a/__main__.py", BAD_PYTHON, "python3 a"),
        ("a/b.py", BAD_PYTHON, "python3 -m a.b"),
        ("Makefile", "all:\n\t" + BAD, "make"),
        ("package.json", '{"scripts": {"go": "rm -rf /etc"}}', "npm run go"),
        ("package.json", '{"scripts": {"go": "true", "postgo": "rm -rf /etc"}}', "npm run go"),
        ("package.json", '{"scripts": {"go": "rm -rf /etc"}}', "bun run go"),
        ("package.json", '{"scripts": {"postinstall": "rm -rf /etc"}}', "npm install"),
        ("package.json", '{"scripts": {"prepare": "rm -rf /etc"}}', "npm ci"),
        ("package.json", '{"scripts": {"preinstall": "rm -rf /etc"}}', "yarn"),
        ("composer.json", '{"scripts": {"go": ["@php -v", "rm -rf /etc"]}}', "composer go"),
        ("deno.json", '{"tasks": {"go": "rm -rf /etc"}}', "deno task go"),
        ("justfile", "go:\n    @rm -rf /etc\n", "just go"),
        ("Justfile", "go target='x': pre\n    true\npre:\n    -rm -rf /etc\n", "just"),
        (".justfile", "place := '/etc'\ngo:\n    rm -rf {{place}}\n", "just go"),
        ("justfile", "go place:\n    rm -rf {{place}}\n", "just go /etc"),
        ("justfile", "go:\n    #!/usr/bin/env python3\n    import shutil\n    shutil.rmtree('/etc')\n", "just go"),
        ("justfile", "alias g := go\ngo:\n    rm -rf /etc\n", "just g"),
        ("own.just", "go:\n    rm -rf /etc\n", "just -f own.just go"),
        ("Taskfile.yml", "version: '3'\ntasks:\n  go:\n    cmds:\n      - rm -rf /etc\n", "task go"),
        ("Taskfile.yml", "tasks:\n  default:\n    deps: [go]\n  go: rm -rf /etc\n", "task"),
        (
            "Taskfile.yaml",
            "tasks:\n  go:\n    cmds:\n      - task: pre\n  pre:\n    cmd: 'rm -rf /etc'\n",
            "go-task go",
        ),
        (
            "Taskfile.yml",
            "tasks:\n  go:\n    desc: x\n    cmds:\n      - |\n        cd /\n        rm -rf etc\n",
            "task go",
        ),
        ("Taskfile.yml", "tasks:\n  go:\n    cmds:\n      - cmd: rm -rf {{.PLACE}}\n", "task go PLACE=/etc"),
        (".git/config", '[core]\n\tbare = false\n[alias]\n\tgo = "!rm -rf /etc"\n', "git go"),
        ("a.vim", "!" + BAD, "vim -S a.vim"),
        ("a.sed", "1e " + BAD, "sed -f a.sed b"),
        ("a.sh", BAD, "cp a.sh b.sh && sh b.sh"),
        ("a.sh", BAD, "mv a.sh b.sh && sh b.sh"),
        ("a.sh", BAD, "ln -s a.sh b && ./b"),
        ("a.py", BAD_PYTHON, "cp a.py b; python3 b"),
    ],
)
def test_a_script_is_judged_by_what_it_holds(tmp_path: Path, name: str, text: str, command: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert analysing.having(on_disk(tmp_path, command), "delete:recursive")
    path.write_text("{}" if name.endswith("json") else "")
    assert not analysing.having(on_disk(tmp_path, command), "delete")


def test_a_script_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("#!/bin/sh\n" + "echo hello\n" * (limits.SCRIPT_BYTES // 11) + BAD)
    (tmp_path / "b.js").write_text("f(1);\n" * (limits.SCRIPT_BYTES // 6 + 1))
    for command in ("sh a.sh", "./a.sh", ". ./a.sh", "python3 a.sh", "make -f a.sh"):
        assert unread(on_disk(tmp_path, command)), command
    assert analysing.having(on_disk(tmp_path, "node b.js"), "unverified:bundle")
    (tmp_path / "program").write_bytes(b"\x7fELF\0" + bytes(limits.SCRIPT_BYTES))
    assert not analysing.having(on_disk(tmp_path, "./program"), "unverified")


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert unread(on_disk(tmp_path, "sh pipe"))
    assert not unread(on_disk(tmp_path, "sh /dev/null"))
    assert not unread(on_disk(tmp_path, "sh missing.sh"))


def test_more_scripts_than_are_read(tmp_path: Path) -> None:
    for number in range(FILES + 1):
        (tmp_path / f"{number}.sh").write_text("echo\n")
    few = "; ".join(f"sh {number}.sh" for number in range(FILES))
    assert not unread(on_disk(tmp_path, few))
    assert unread(on_disk(tmp_path, f"{few}; sh {FILES}.sh"))


def test_code_of_which_only_a_part_is_read() -> None:
    """Harmless code in front must not use up what is looked at, and then hide the rest in silence."""
    code = "a(1);" * 12_500 + "\nimport shutil; shutil.rmtree('/etc')"
    assert unread(analysing.shell(f'python3 -c "{code}"'))
    assert not unread(analysing.shell('python3 -c "' + "a(1);" * 500 + '"'))
    assert unread(analysing.shell("python3 /w/a.py", files={"/w/a.py": "a(1)\n" * 40_000}))


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("justfile", "test:\n    pytest\ngo:\n    rm -rf /etc\n", "just test"),
        ("justfile", "go:\n    rm -rf /etc\n", "just --list"),
        ("justfile", "go:\n    rm -rf /etc\n", "just --show go"),
        ("justfile", "# go:\n#    rm -rf /etc\ntest:\n    pytest\n", "just"),
        ("Taskfile.yml", "tasks:\n  go:\n    cmds:\n      - rm -rf /etc\n  test:\n    cmds: [pytest]\n", "task test"),
        ("Taskfile.yml", "tasks:\n  test:\n    desc: never rm -rf /etc\n    cmds:\n      - pytest\n", "task test"),
        ("Taskfile.yml", "tasks:\n  go:\n    cmds:\n      - rm -rf /etc\n", "task --list"),
        ("package.json", '{"scripts": {"postinstall": "rm -rf /etc"}}', "npm install left-pad"),
        ("package.json", '{"scripts": {"postinstall": "rm -rf /etc"}}', "npm ci --ignore-scripts"),
        (".git/config", "[alias]\n\tst = status\n\tgo = !rm -rf /etc\n", "git st"),
        (".git/config", "[alias]\n\tstatus = !rm -rf /etc\n", "git status"),
    ],
)
def test_what_isnt_run_of_a_file_says_nothing(tmp_path: Path, name: str, text: str, command: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert not analysing.having(on_disk(tmp_path, command), "delete")


@pytest.mark.parametrize("place", [".gitconfig", ".config/git/config", "project/.git/config"])
@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("[alias]\n  w = reset --hard\n", "git w"),
        ('[user]\n name = x\n[Alias]\n  W = "reset --hard" ; throws away\n', "git w"),
        ("[alias]\n  w = reset \\\n --hard\n", "git -C . w"),
    ],
)
def test_aliases_of_git_are_read_from_its_configuration(tmp_path: Path, place: str, text: str, command: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    one = analysing.event("shell")
    one.commands = [command]
    one.cwd = str(project)
    found = analyse(one, DiskFacts(home=str(tmp_path), user="user", project_root=str(project)))
    assert analysing.having(found, "git:loses-uncommitted:hard")


@pytest.mark.parametrize(
    "command", ["git apply a.diff", "git am < a.diff", "patch -p1 < a.diff", "patch -p1 -i a.diff"]
)
def test_patches_on_disk_change_what_they_name(tmp_path: Path, command: str) -> None:
    patch = tmp_path / "a.diff"
    patch.write_text("--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-a\n+b\n")
    assert analysing.having(on_disk(tmp_path, command), "guard_change:file")
    patch.write_text("--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-.claude/settings.json\n+b\n")
    assert not analysing.having(on_disk(tmp_path, command), "guard_change")


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("package.json", '{"scripts": {"prepare": "$npm_execpath run build", "build": "tsc"}}', "npm install"),
        ("package.json", '{"scripts": {"postinstall": "yarn --cwd web install && npm rebuild"}}', "npm ci"),
        ("package.json", '{"scripts": {"prepare": "npm i; npm i", "postinstall": "npm i"}}', "npm i"),
        ("Taskfile.yml", "vars:\n  BIN: build/app\ntasks:\n  go:\n    cmds:\n      - ./{{.BIN}} x\n", "task go"),
        ("Taskfile.yml", "tasks:\n  go:\n    cmds: ['echo \"a, b\"', ls]\n", "task go"),
        ("justfile", "python := 'uv run python'\ngo *args:\n    {{python}} -m pytest {{args}}\n", "just go -k a"),
        (
            "justfile",
            "set shell := ['bash', '-c']\nv := `git describe`\ngo tag=v: (pre 'a')\n    echo {{tag}}\npre x:\n    echo {{x}}\n",
            "just",
        ),
    ],
)
def test_task_files_of_everyday_ask_nothing(tmp_path: Path, name: str, text: str, command: str) -> None:
    (tmp_path / name).write_text(text)
    found = on_disk(tmp_path, command)
    assert {e.kind for e in found} <= {"run", "read", "git"}


def test_constants_of_a_task_file_count(tmp_path: Path) -> None:
    (tmp_path / "Taskfile.yml").write_text("vars:\n  PLACE: /etc\ntasks:\n  go: rm -rf {{.PLACE}}\n")
    assert analysing.having(on_disk(tmp_path, "task go"), "delete:recursive")[0].path == "/etc"
