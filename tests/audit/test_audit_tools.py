"""Which tools the audit trail keeps, by their names."""

from __future__ import annotations

import pytest

from guardhook.journal.modifying import NO, UNKNOWN, YES, changes, words

EXACT = [
    "bash",
    "file_write",
    "file_delete",
    "git_commit",
    "git_push",
    "git_reset",
    "git_revert",
    "git_merge",
    "git_rebase",
    "kubectl_apply",
    "kubectl_delete",
    "kubectl_patch",
    "rm",
    "mv",
    "cp",
    "chmod",
    "chown",
    "mkdir",
    "mkfile",
    "touch",
]
WORDS = [
    "write",
    "delete",
    "create",
    "modify",
    "update",
    "patch",
    "put",
    "remove",
    "insert",
    "append",
    "exec",
    "execute",
    "commit",
    "apply",
    "deploy",
    "install",
    "uninstall",
    "destroy",
    "overwrite",
    "rename",
    "move",
    "wipe",
    "flush",
    "publish",
    "push",
    "post",
    "submit",
    "persist",
    "store",
    "save",
    "upload",
    "send",
    "format",
    "init",
    "rollback",
]


@pytest.mark.parametrize("name", EXACT)
def test_exact_names(name: str) -> None:
    assert changes(name) == YES


@pytest.mark.parametrize("word", WORDS)
def test_each_word_as_a_whole_word_only(word: str) -> None:
    assert changes(word) == changes(f"x_{word}") == changes(f"{word}-thing") == changes(f"do{word.title()}Now") == YES
    assert changes(f"{word}x") == changes(f"x{word}") == NO


@pytest.mark.parametrize(
    "name",
    [
        "Bash", "BASH", "Edit", "MultiEdit", "NotebookEdit", "shell", "local_shell", "run_shell_command", "replace", "fs.write", "HTTPPost", "Write", "write_file",
        "apply_patch", "exec_command", "mcp__github__create_issue", "save_memory", "store_list", "format_date", "str_replace_based_edit_tool", "powershell",
        "apply_diff", "terminal", "multi_edit", "str_replace", "ｂａｓｈ", "Ｗｒｉｔｅ", "deploy2", "v2create", "kubectl:patch",
    ],
)  # fmt: skip
def test_what_changes_something(name: str) -> None:
    assert changes(name) == YES


@pytest.mark.parametrize(
    "name",
    ["", None, "Read", "grep", "list_directory", "ask_user_question", "writer", "readwriter", "TodoWrite", "todo_write", "update_plan", "ExitPlanMode", "Glob", "WebFetch", "-", "__"],
)  # fmt: skip
def test_what_changes_nothing(name: str | None) -> None:
    assert changes(name) == NO


def test_a_server_s_tool_whose_name_says_nothing_is_unknown() -> None:
    assert changes("mcp__weather__forecast") == UNKNOWN
    assert changes("mcp__weather__send") == YES


def test_the_owner_adds_to_either_side() -> None:
    assert changes("Frobnicate", ("frobnicate",)) == YES
    assert changes("Write", (), ("write",)) == NO
    assert changes("mcp__weather__forecast", (), ("mcp__weather__forecast",)) == NO


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("HTTPPost", ["http", "post"]),
        ("mcp__a__b-c", ["mcp", "a", "b", "c"]),
        ("writeFile2Disk", ["write", "file", "2", "disk"]),
        ("a.b c", ["a", "b", "c"]),
        ("ABC", ["abc"]),
        ("aB", ["a", "b"]),
    ],
)
def test_words(name: str, parts: list[str]) -> None:
    assert words(name) == parts
