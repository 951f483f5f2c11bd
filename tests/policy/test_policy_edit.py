"""Edits of the user layer: comments and layout stay, nothing is half written, racing editors don't lose each other's work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guardhook.core.folders import Folders
from guardhook.policy import compiled, edit
from guardhook.policy.compile import policy_id
from guardhook.policy.model import Pattern, Policy

Put = Callable[[str, str], Path]

MINE = """# My rules, with care.

[[policy]]
name = "first"   # the first
action = "deny"
match = { tool = "shell", input_contains = 'rm -rf' }   # careful

# About the second.
[[policy]]
name = "second"
enabled = true # for now
action = "warn"
[policy.match]
input_regex = '''drop\\s+table'''

[[policy.example]]
command = "drop table x"
expect = "warn"

# The end.
"""


def new(name: str, **more: object) -> Policy:
    return Policy(name=name, action="deny", match=Pattern(input_contains="x"), **more)  # type: ignore[arg-type]


def test_switching_changes_one_word(folders: Folders, put: Put) -> None:
    path = put("policies/mine.toml", MINE)
    assert edit.switch(folders, "second", False) == "second"
    assert path.read_text() == MINE.replace("enabled = true # for now", "enabled = false # for now")
    edit.switch(folders, "second", True)
    assert path.read_text() == MINE


def test_disabling_a_policy_without_the_key_adds_it(folders: Folders, put: Put) -> None:
    path = put("policies/mine.toml", MINE)
    edit.switch(folders, "first", False)
    assert path.read_text().replace("enabled = false\n", "").split() == MINE.split()
    assert path.read_text().count("enabled = false") == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_new_line_keeps_comments_where_they_belong(folders: Folders, put: Put, end: str) -> None:
    first = ["[[policy]] # one", 'name = "a" # its name', 'action = "deny"', 'match = { tool = "x" } # which', ""]
    rest = ["# About the second.", "[[policy]]", 'name = "b"', 'action = "warn"', 'match = { tool = "y" }', ""]
    path = put("policies/mine.toml", "")
    path.write_bytes(end.join(first + rest).encode())
    edit.switch(folders, "a", True)  # it is: nothing to write
    assert path.read_bytes() == end.join(first + rest).encode()
    edit.switch(folders, "a", False)
    first.insert(2, "enabled = false")
    assert path.read_bytes() == end.join(first + rest).encode()


def test_the_name_may_be_the_last_line(folders: Folders, put: Put) -> None:
    path = put("policies/mine.toml", '[[policy]]\naction = "deny"\nmatch = { tool = "x" }\nname = "a"')
    edit.switch(folders, "a", False)
    assert "\nenabled = false" in path.read_text()
    assert path.read_text().startswith('[[policy]]\naction = "deny"\n')


def test_removing_leaves_the_rest_alone(folders: Folders, put: Put) -> None:
    path = put("policies/mine.toml", MINE)
    edit.remove(folders, "first")
    text = path.read_text()
    assert "first" not in text
    assert text.startswith("# My rules, with care.")
    for kept in (
        'name = "second"',
        "enabled = true # for now",
        "drop\\s+table",
        'command = "drop table x"',
        "# The end.",
    ):
        assert kept in text


def test_adding_appends_and_keeps_what_is_there(folders: Folders, put: Put) -> None:
    path = put("policies/guard.toml", MINE)
    ident = edit.add(
        folders,
        Policy(name="third", action="deny", match=Pattern(input_regex=r"a\d+", tool=["shell"]), suggest='say "no"'),
    )
    assert ident == policy_id("user", "third")
    text = path.read_text()
    assert text.startswith(MINE.rstrip().removesuffix("# The end.").rstrip())
    assert "# The end." in text
    assert "input_regex = 'a\\d+'" in text
    edit.remove(folders, ident)
    assert path.read_text().split() == MINE.split()


def test_crlf_files_stay_crlf(folders: Folders, put: Put) -> None:
    path = put("policies/mine.toml", "")
    path.write_bytes(MINE.replace("\n", "\r\n").encode())
    edit.switch(folders, "second", False)
    assert path.read_bytes() == MINE.replace("= true #", "= false #").replace("\n", "\r\n").encode()


def test_modes_and_links_are_kept(folders: Folders, put: Put, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(MINE)
    real.chmod(0o640)
    link = Path(folders.user_policies, "mine.toml")
    link.symlink_to(real)
    edit.switch(folders, "second", False)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "enabled = false" in real.read_text()


def test_new_files_are_private(folders: Folders) -> None:
    edit.add(folders, new("a"))
    assert os.stat(f"{folders.user_policies}/guard.toml").st_mode & 0o777 == 0o600


def test_names_are_taken_across_the_users_files(folders: Folders, put: Put) -> None:
    put("policies/mine.toml", MINE)
    with pytest.raises(edit.EditError, match=r"already a policy named 'first' \(.*mine\.toml:3\)") as caught:
        edit.add(folders, new("first"))
    assert caught.value.code == 1


def test_an_id_removes_only_the_policy_that_has_it(folders: Folders) -> None:
    ident = edit.add(folders, new("a"))
    edit.add(folders, new(ident))
    assert edit.remove(folders, ident) == "a"
    assert edit.remove(folders, ident) == ident


def test_unknown_policies_are_a_failure(folders: Folders) -> None:
    for change in (lambda: edit.remove(folders, "x"), lambda: edit.switch(folders, "x", True)):
        with pytest.raises(edit.EditError, match="no policy with the id or name 'x'") as caught:
            change()
        assert caught.value.code == 1


def test_a_broken_file_is_never_written_over(folders: Folders, put: Put) -> None:
    path = put("policies/guard.toml", "[[policy]\n")
    with pytest.raises(edit.EditError, match=r"guard\.toml:1: not valid TOML") as caught:
        edit.add(folders, new("a"))
    assert caught.value.code == 2
    assert path.read_text() == "[[policy]\n"


def test_layers_that_are_not_the_users(folders: Folders) -> None:
    shipped = Path(compiled.shipped_folder(), "s.toml")
    shipped.write_text(MINE)
    system = Path(folders.system_policies, "s.toml")
    system.parent.mkdir(parents=True)
    system.write_text(MINE.replace('"first"', '"theirs"').replace('"second"', '"theirs too"'))
    with pytest.raises(edit.EditError, match="is a shipped policy, which can't be removed"):
        edit.remove(folders, "first")
    for change in (lambda: edit.remove(folders, "theirs"), lambda: edit.switch(folders, "theirs", False)):
        with pytest.raises(edit.EditError, match="is a system policy") as caught:
            change()
        assert caught.value.code == 2
    assert edit.switch(folders, policy_id("shipped", "first"), False) == "first"
    override = Path(folders.config, "overrides.toml")
    assert override.read_text() == '[[override]]\npolicy = "first"\nenabled = false\n'
    edit.switch(folders, "first", True)
    assert override.read_text() == '[[override]]\npolicy = "first"\nenabled = true\n'
    assert shipped.read_text() == MINE


def test_an_unwritable_folder_is_told(folders: Folders) -> None:
    os.rmdir(folders.user_policies)
    Path(folders.user_policies).write_text("in the way")
    with pytest.raises(edit.EditError, match="can't be written"):
        edit.add(folders, new("a"))


def test_racing_adds_all_arrive(folders: Folders) -> None:
    code = (
        "import sys\nfrom guardhook.core.folders import explicit; from guardhook.policy import edit\n"
        "from guardhook.policy.model import Policy, Pattern\n"
        "f = explicit(sys.argv[1], sys.argv[2])\n"
        "for i in range(5): edit.add(f, Policy(name=f'{sys.argv[3]}-{i}', action='deny', match=Pattern(input_contains='x')))\n"
    )
    racing = [subprocess.Popen([sys.executable, "-c", code, folders.config, folders.system, str(n)]) for n in range(4)]
    assert [p.wait() for p in racing] == [0, 0, 0, 0]
    text = Path(folders.user_policies, "guard.toml").read_text()
    assert sorted(line for line in text.splitlines() if line.startswith("name")) == sorted(
        f'name = "{n}-{i}"' for n in range(4) for i in range(5)
    )
    assert sorted(os.listdir(folders.user_policies)) == ["guard.toml"]
