"""Whatever a harness calls its tools and wherever it puts the command, path, text or address: it is found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core.event import Event, FileTarget
from guardhook.dialects import names, patches, table, tools


def filled(tool: object, given: object, dialect: str = "claude-code", cwd: str = "/w", **payload: object) -> Event:
    event = Event(dialect, "PreToolUse", "pre_tool", {"tool_name": tool, "tool_input": given, **payload})
    event.cwd = cwd
    event.tool = tool if isinstance(tool, str) else None
    event.input = given
    tools.fill(event)
    return event


# --- kinds -----------------------------------------------------------------------------------------------------


NAMES = {
    "shell": """
        Bash Shell bash powershell PowerShell execute_bash execute_pwsh execute_command
        Execute exec run_shell_command run_terminal_command run_in_terminal run_command
        run_commands terminal launch-process developer__shell file_system.bash process.start
        BASH bAsH write_stdin
    """,
    "file_write": """
        Write write write_file write_to_file create create_file Create save-file fs_write
        file_system.write_file WRITE
    """,
    "file_edit": """
        Edit edit MultiEdit multiedit StrReplace str_replace str_replace_editor replace
        str-replace-editor replace_string_in_file multi_replace_string_in_file editor
        insert_edit_into_file replace_in_file search_replace file_editor NotebookEdit
        developer__text_editor fs_append patch apply_patch ApplyPatch Delete remove-files
        write_code
    """,
    "file_read": """
        Read read_file read_files view view_file fs_read read_code view_image
    """,
    "search": """
        Grep Glob grep glob LS ls List grep_search file_search search_files list_directory
        search_codebase codebase-retrieval
    """,
    "web_fetch": """
        WebFetch web_fetch web-fetch fetch FetchUrl FetchURL fetch_webpage web_extract
        fetch_web_content download WebSearch web_search google_web_search
    """,
    "subagent": """
        Task task Agent agent agents.spawn delegate delegate_task run_subagent runSubagent
        agentic_fetch spawn_agent collaborationspawn_agent invoke_agent
    """,
    "other": """
        TodoWrite update_topic Skill constructor __proto__
    """,
}


@pytest.mark.parametrize(("name", "kind"), [(n, kind) for kind, listed in NAMES.items() for n in listed.split()])
def test_kind_by_name(name: str, kind: str) -> None:
    assert names.kind_of(name) == kind


def test_an_invisible_character_in_a_name_does_not_hide_the_tool() -> None:
    event = filled("Ba\u200bsh", {"command": "ls"})
    assert event.kind == "shell" and event.tool == "Ba\u200bsh"


@pytest.mark.parametrize(
    ("name", "server", "tool"),
    [
        ("mcp__lab__echo", "lab", "echo"),
        ("mcp__my_server__do__it", "my_server", "do__it"),
        ("mcp_fs.write_file", "fs", "write_file"),
        ("mcp_mini_delete_thing", "mini", "delete_thing"),
        ("MCP:search", None, "search"),
        ("@git/commit", "git", "commit"),
        ("linear___create_issue", "linear", "create_issue"),
    ],
)
def test_mcp_by_name(name: str, server: str | None, tool: str) -> None:
    event = filled(name, {})
    assert (event.kind, event.mcp_server, event.mcp_tool) == ("mcp", server, tool)


def test_mcp_by_what_the_harness_says() -> None:
    event = filled("mcp_a_b_c", {"id": 1}, "gemini", mcp_context={"server_name": "a_b", "tool_name": "c"})
    assert (event.kind, event.mcp_server, event.mcp_tool) == ("mcp", "a_b", "c")
    event = filled("mcp__plugin_x__run", {}, mcp_server={"name": "x", "source": "dynamic"})
    assert (event.mcp_server, event.mcp_tool) == ("x", "run")
    assert filled("search", {}, "auggie", is_mcp_tool=True).kind == "mcp"
    assert filled("search", {}, "auggie", is_mcp_tool=False).kind == "other"
    event = filled("github-create_issue", {}, "copilot")
    assert (event.kind, event.mcp_server, event.mcp_tool) == ("mcp", "github", "create_issue")
    assert filled("web-fetch", {"url": "http://x"}, "copilot").kind == "web_fetch"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("use_mcp_tool", {"server_name": "fs", "tool_name": "write_file", "arguments": {"path": "/etc/x", "content": "y"}}),
        ("use_mcp_tool", {"server_name": "fs", "tool_name": "write_file", "arguments": '{"path":"/etc/x","content":"y"}'}),
        ("mcp_tool_use", {"mcp_server_name": "fs", "mcp_tool_name": "write_file", "mcp_tool_arguments": {"path": "/etc/x", "content": "y"}}),
    ],
)  # fmt: skip
def test_a_tool_that_passes_a_call_on_is_that_call(tool: str, given: dict[str, object]) -> None:
    event = filled(tool, given)
    assert (event.kind, event.mcp_server, event.mcp_tool) == ("mcp", "fs", "write_file")
    assert event.files == [FileTarget("write", "/etc/x", "y")]


# --- shell -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given", "commands"),
    [
        ("Bash", {"command": "ls -la", "description": "d"}, ["ls -la"]),
        ("bash", '{"command": "ls"}', ["ls"]),
        ("run_command", {"command_line": "ls", "cwd": "/w"}, ["ls"]),
        ("run_command", {"CommandLine": "ls"}, ["ls"]),
        ("run_commands", {"commands": ["ls", "rm -rf x"]}, ["ls", "rm -rf x"]),
        ("run_commands", {"commands": [{"command": "rm", "args": ["-rf", "a b"]}, "ls"]}, ["rm -rf 'a b'", "ls"]),
        ("shell", {"command": ["bash", "-lc", "rm -rf 'x'"]}, ["bash -lc 'rm -rf '\\''x'\\'''"]),
        ("shell", {"command": ["rm -rf /"]}, ["'rm -rf /'", "rm -rf /"]),
        ("shell", {"command": ["cd /x", "rm y"]}, ["'cd /x' 'rm y'", "cd /x", "rm y"]),
        ("shell", {"command": ["git", "commit", "-m", "no rm -rf /"]}, ["git commit -m 'no rm -rf /'"]),
        ("Bash", {"command": "ls", "cmd": "rm x"}, ["ls", "rm x"]),
        ("process.start", {"command": "rm", "args": ["-rf", "/"]}, ["rm -rf /", "rm"]),
        ("execute_code", {"code": "print('x')"}, ["python3 -c 'print('\\''x'\\'')'"]),
        ("write_stdin", {"session_id": 1, "chars": "rm -rf /\n"}, ["rm -rf /\n"]),
        ("write_bash", {"shellId": "1", "input": "rm x"}, ["rm x"]),
        ("write-process", {"terminal_id": 1, "input_text": "rm x"}, ["rm x"]),
        ("process.write", {"id": "1", "data": "rm x"}, ["rm x"]),
        ("terminal", {"command": "rm x", "is_input": True}, ["rm x"]),
        ("Bash", {"command": "a\x00b"}, ["a\x00b"]),
    ],
)
def test_commands_are_found(tool: str, given: object, commands: list[str]) -> None:
    event = filled(tool, given)
    assert event.kind == "shell" and event.commands == commands and event.undecidable is None


@pytest.mark.parametrize(
    "given",
    [
        None, {}, [], 3, "", "not json", "[1]", {"command": None}, {"command": ""}, {"command": "  "}, {"command": 3},
        {"command": True}, {"command": {"x": 1}}, {"command": ["a", 1]}, {"command": []}, {"command": [[]]},
        {"command": "ls", "cmd": 3}, {"commands": [{"args": ["x"]}]}, {"commands": [{"command": "ls", "args": "x y"}]},
        {"description": "d"}, {"command": "ls", "args": {"a": 1}}, {"command": "ls", "cwd": 3},
    ],
)  # fmt: skip
def test_a_shell_call_without_a_usable_command_is_undecidable(given: object) -> None:
    assert filled("Bash", given).undecidable


def test_polling_a_process_is_not_a_command() -> None:
    event = filled("write_stdin", {"session_id": 1, "chars": ""})
    assert event.commands == [] and event.undecidable is None
    assert filled("write_stdin", {"session_id": 1}).undecidable


@pytest.mark.parametrize("tool", ["powershell", "PowerShell", "execute_pwsh"])
def test_powershell_is_another_language(tool: str) -> None:
    assert filled(tool, {"command": "ls"}).shell == "powershell"
    assert filled("Bash", {"command": "ls"}).shell == "sh"


@pytest.mark.parametrize("key", ["dir_path", "directory", "cwd", "workdir"])
def test_a_directory_of_its_own_goes_before_the_command(key: str) -> None:
    assert filled("run_shell_command", {"command": "rm -rf *", key: "/home/o'x"}, "other").commands == [
        "cd '/home/o'\\''x'\nrm -rf *"
    ]
    assert filled("run_shell_command", {"command": "ls", key: "/w"}, "other").commands == ["ls"]
    assert filled("run_shell_command", {"command": "ls", key: "."}, "other").commands == ["ls"]
    assert filled("execute_pwsh", {"command": "ls", key: "/x"}, "other").commands == [
        "Set-Location -LiteralPath '/x'\nls"
    ]


# Keys that a client ignores are an agent's to fill in: they must not steer what is judged.


@pytest.mark.parametrize(
    ("dialect", "given", "commands"),
    [
        ("claude-code", {"command": "rm -rf *", "cwd": "/tmp/x"}, ["rm -rf *", "cd /tmp/x\nrm -rf *"]),
        ("codex", {"command": "rm -rf *", "workdir": "/tmp/x"}, ["rm -rf *", "cd /tmp/x\nrm -rf *"]),
        ("gemini", {"command": "rm -rf *", "cwd": "/tmp/x"}, ["rm -rf *", "cd /tmp/x\nrm -rf *"]),
        ("gemini", {"command": "rm -rf *", "dir_path": "/"}, ["cd /\nrm -rf *"]),
        ("gemini", {"command": "rm -rf *", "dir_path": "/", "is_input": True}, ["cd /\nrm -rf *"]),
        (
            "gemini",
            {"command": "rm -rf *", "cwd": "/tmp/x", "dir_path": "/"},
            ["rm -rf *", "cd /tmp/x\nrm -rf *", "cd /\nrm -rf *"],
        ),
        ("gemini", {"command": "rm -rf *", "dir_path": "."}, ["rm -rf *"]),
        ("cursor", {"command": "rm -rf *", "cwd": "/tmp/x"}, ["cd /tmp/x\nrm -rf *"]),
        ("cursor", {"command": "ls", "cwd": "/w", "workdir": "/"}, ["ls", "cd /\nls"]),
    ],
)
def test_a_decoy_directory_hides_no_command(dialect: str, given: dict[str, object], commands: list[str]) -> None:
    assert filled("run_shell_command", given, dialect).commands == commands


@pytest.mark.parametrize("decoy", [["--dry-run"], " --dry-run", ["--help"]])
def test_decoy_arguments_hide_no_command(decoy: object) -> None:
    for dialect in ("claude-code", "codex", "gemini", "qwen-code", "cursor"):
        assert "git push -f" in filled("Bash", {"command": "git push -f", "args": decoy}, dialect).commands


def test_a_decoy_of_typed_text_hides_no_command() -> None:
    given = {"CommandLine": "rm -rf /", "text": "ls", "is_input": True}
    assert "rm -rf /" in filled("run_command", given, "antigravity").commands
    code = filled("execute_code", {"code": "print(1)", "command": "import os"}, "hermes").commands
    assert code == ["python3 -c 'print(1)'", "python3 -c 'import os'"]


@pytest.mark.parametrize("decoy", [{}, {"command": "ls"}, '{"command": "ls"}'])
def test_decoy_arguments_of_an_mcp_tool_hide_none(decoy: object) -> None:
    event = filled("mcp__srv__run", {"command": "rm -rf /", "path": "/etc/x", "content": "y", "arguments": decoy})
    assert "rm -rf /" in event.commands
    assert FileTarget("write", "/etc/x", "y") in event.files


def test_a_decoy_address_hides_none() -> None:
    event = filled("web_fetch", {"url": "https://a.example/", "prompt": "read https://b.example/x please"}, "gemini")
    assert event.urls == ["https://a.example/", "https://b.example/x"]


@pytest.mark.parametrize("end", ["\x85", "\u2028", "\x0c", "\x1d", "\r"])
def test_an_odd_line_end_hides_no_file_of_a_patch(end: str) -> None:
    """Whatever ends a line for the tool: the path goes on behind it, or another header stands there."""
    long = f"/tmp/a{end}/../../root/.ssh/authorized_keys"
    assert long in {t.path for t in patches.targets(f"*** Begin Patch\n*** Add File: {long}\n+k\n*** End Patch\n")}
    header = f"*** Begin Patch{end}*** Delete File: /etc/x{end}*** End Patch"
    assert FileTarget("delete", "/etc/x") in patches.targets(header)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_an_argument_vector_survives_quoting(words: list[str]) -> None:
    import shlex

    event = filled("shell", {"command": words})
    assert shlex.split(event.commands[0]) == words if event.commands else not "".join(words).strip()


# --- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given", "kind", "files"),
    [
        ("Write", {"file_path": "/a", "content": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("create", {"path": "/a", "file_text": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("create_file", {"filePath": "/a", "content": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("save-file", {"path": "/a", "file_content": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("fs_write", {"path": "/a", "text": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("fs_write", {"command": "str_replace", "path": "/a", "new_str": "x"}, "file_edit", [FileTarget("edit", "/a", "x")]),
        ("fs_write", {"command": "create", "path": "/a", "file_text": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("fs_write", '{"command": "create", "path": "/a"}', "file_write", [FileTarget("write", "/a")]),
        ("Edit", {"file_path": "/a", "old_string": "o", "new_string": "n"}, "file_edit", [FileTarget("edit", "/a", "n")]),
        ("MultiEdit", {"file_path": "/a", "edits": [{"old_string": "1", "new_string": "n1"}, {"new_string": "n2"}]}, "file_edit", [FileTarget("edit", "/a", "n1\nn2")]),
        ("multi_replace_string_in_file", {"replacements": [{"filePath": "/a", "newString": "1"}, {"filePath": "/b", "newString": "2"}]}, "file_edit", [FileTarget("edit", "/a", "1"), FileTarget("edit", "/b", "2")]),
        ("str-replace-editor", {"path": "/a", "old_str_1": "o", "new_str_1": "n", "new_str_2": "m"}, "file_edit", [FileTarget("edit", "/a", "n\nm")]),
        ("str_replace_editor", {"command": "view", "path": "/a"}, "file_read", [FileTarget("read", "/a")]),
        ("file_editor", {"command": "view", "path": "/a"}, "file_read", [FileTarget("read", "/a")]),
        ("developer__text_editor", {"command": "write", "path": "/a", "file_text": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("editor", {"path": "/a", "old_text": "o", "new_text": "n"}, "file_edit", [FileTarget("edit", "/a", "n")]),
        ("insert_edit_into_file", {"filePath": "/a", "code": "c"}, "file_edit", [FileTarget("edit", "/a", "c")]),
        ("replace_in_file", {"path": "/a", "diff": "d"}, "file_edit", [FileTarget("edit", "/a", "d")]),
        ("NotebookEdit", {"notebook_path": "/a", "new_source": "s"}, "file_edit", [FileTarget("edit", "/a", "s")]),
        ("Delete", {"file_path": "/a"}, "file_edit", [FileTarget("delete", "/a")]),
        ("remove-files", {"file_paths": ["/a", "/b"]}, "file_edit", [FileTarget("delete", "/a"), FileTarget("delete", "/b")]),
        ("Read", {"file_path": "/a"}, "file_read", [FileTarget("read", "/a")]),
        ("read_files", {"files": [{"path": "/a"}, {"path": "/b"}]}, "file_read", [FileTarget("read", "/a"), FileTarget("read", "/b")]),
        ("fs_read", {"operations": [{"mode": "Line", "path": "/a"}, {"mode": "Directory", "path": "/b"}]}, "file_read", [FileTarget("read", "/a"), FileTarget("read", "/b")]),
        ("read_many_files", {"include": ["a/**", "b"]}, "file_read", [FileTarget("read", "a/**"), FileTarget("read", "b")]),
        ("view_file", {"AbsolutePath": "/a"}, "file_read", [FileTarget("read", "/a")]),
        ("Write", {"file_path": "/a", "path": "/b", "content": "x"}, "file_write", [FileTarget("write", "/a", "x"), FileTarget("write", "/b", "x")]),
        ("Write", {"someNewPathKey": "/a", "content": "x"}, "file_write", [FileTarget("write", "/a", "x")]),
        ("Read", {"file_path": "file:///etc/passwd"}, "file_read", [FileTarget("read", "/etc/passwd")]),
        ("Grep", {"pattern": "x", "path": "/a"}, "search", [FileTarget("read", "/a")]),
        ("Glob", {"pattern": "/etc/**"}, "search", [FileTarget("read", "/etc/**")]),
        ("Grep", {"pattern": "/etc/passwd"}, "search", []),
        ("download", {"url": "http://x/y", "file_path": "/a"}, "web_fetch", [FileTarget("write", "/a")]),
    ],
)  # fmt: skip
def test_files_are_found(tool: str, given: object, kind: str, files: list[FileTarget]) -> None:
    event = filled(tool, given)
    assert event.undecidable is None
    assert (event.kind, event.files) == (kind, files)
    assert event.commands == []  # an operation of an editor is no shell line


@pytest.mark.parametrize("tool", ["Write", "Edit", "apply_patch", "Delete", "Read"])
@pytest.mark.parametrize(
    "given", [None, {}, [], "x", {"content": "x"}, {"file_path": 3}, {"file_path": ""}, {"command": 3}]
)
def test_a_file_call_without_a_path_is_undecidable(tool: str, given: object) -> None:
    assert filled(tool, given).undecidable


PATCH = """*** Begin Patch
*** Add File: a/new.txt
+hello
+world
*** Update File: b.txt
@@ def f
 context
-old
+new
*** Update File: c.txt
*** Move to: d.txt
@@
-1
+2
*** Delete File: e.txt
*** End Patch"""


def test_a_patch_names_its_files() -> None:
    expected = [
        FileTarget("write", "a/new.txt", "hello\nworld\n"),
        FileTarget("edit", "b.txt", "new\n"),
        FileTarget("edit", "c.txt"),
        FileTarget("move_from", "c.txt"),
        FileTarget("move_to", "d.txt", "2\n"),
        FileTarget("delete", "e.txt"),
    ]
    assert patches.targets(PATCH) == expected
    for form in ({"command": PATCH}, {"input": PATCH}, PATCH, {"patch": PATCH}):
        event = filled("apply_patch", form, "codex")
        assert (event.kind, event.files, event.commands, event.undecidable) == ("file_edit", expected, [], None)
    assert filled("ApplyPatch", {"input": PATCH}, "droid").files == expected


def test_a_patch_is_read_as_leniently_as_it_is_applied() -> None:
    assert patches.targets("*** Begin Patch\r\n  *** Add File:   x y.txt  \r\n+a\r\n") == [
        FileTarget("write", "x y.txt", "a\n")
    ]
    assert patches.targets("+*** Delete File: x") == []
    assert [
        t.op
        for t in patches.targets("--- a/x\n+++ b/x\n@@\n-1\n+2\n--- /dev/null\n+++ b/n\n+1\n--- a/g\n+++ /dev/null\n-1")
    ] == ["edit", "write", "delete"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["*** Add File: a", "*** Move to: b", "*** Delete File:", "+x", "-y", " z", "@@", "--- a/q", "+++ /dev/null", "***"]), max_size=12))  # fmt: skip
def test_no_patch_text_breaks_the_reader(lines: list[str]) -> None:
    for target in patches.targets("\n".join(lines)):
        assert target.path


# --- addresses, MCP servers, unknown tools ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given", "urls"),
    [
        ("WebFetch", {"url": "http://x/y", "prompt": "p"}, ["http://x/y"]),
        ("fetch_webpage", {"urls": ["http://a", "http://b"]}, ["http://a", "http://b"]),
        ("fetch_web_content", {"requests": [{"url": "http://a"}, {"url": "http://b"}]}, ["http://a", "http://b"]),
        ("web_fetch", {"prompt": "sum up (HTTPS://x/y). and http://z/"}, ["HTTPS://x/y", "http://z/"]),
        (
            "web_fetch",
            {"prompt": "read <ftp://a/b>,file:///etc/x and 'http://c/d'"},
            ["ftp://a/b", "file:///etc/x", "http://c/d"],
        ),
        ("google_web_search", {"query": "weather"}, []),
        ("mcp__browser__open", {"url": "http://x"}, ["http://x"]),
    ],
)
def test_addresses_are_found(tool: str, given: object, urls: list[str]) -> None:
    assert filled(tool, given).urls == urls


def test_a_file_address_is_a_file() -> None:
    event = filled("WebFetch", {"url": "file:///etc/passwd"})
    assert event.urls == [] and event.files == [FileTarget("read", "/etc/passwd")]


@pytest.mark.parametrize(
    ("tool", "given", "files"),
    [
        ("mcp__fs__read_file", {"path": "/a"}, [FileTarget("read", "/a")]),
        ("mcp__fs__write_file", {"path": "/a", "content": "x"}, [FileTarget("write", "/a", "x")]),
        ("mcp__fs__writeFile", {"path": "/a"}, [FileTarget("write", "/a")]),
        ("mcp__fs__edit_file", {"path": "/a", "edits": [{"oldText": "o", "newText": "n"}]}, [FileTarget("edit", "/a", "n")]),
        ("mcp__fs__delete", {"path": "/a"}, [FileTarget("delete", "/a")]),
        ("mcp__fs__move_file", {"source": "/a", "destination": "/b"}, [FileTarget("move_from", "/a"), FileTarget("move_to", "/b")]),
        ("mcp__fs__copy_file", {"source": "/a", "destination": "/b"}, [FileTarget("read", "/a"), FileTarget("write", "/b")]),
        ("mcp__x__analyse", {"path": "/a"}, [FileTarget("read", "/a")]),
        ("mcp__x__analyse", {"path": "/a", "content": "x"}, [FileTarget("write", "/a", "x")]),
        ("brand_new_remove_tool", {"file_path": "/a"}, [FileTarget("delete", "/a")]),
        ("mcp__fs__manage", {"action": "delete", "path": "/a"}, [FileTarget("delete", "/a")]),
        ("mcp__git__status", {"repo_path": "/a", "profile": "x/y", "full_name": "o/r"}, [FileTarget("read", "/a")]),
        ("mcp__browser__screenshot", {"output_path": "/a/b.png", "savePath": "~/c"}, [FileTarget("write", "/a/b.png"), FileTarget("write", "~/c")]),
        ("mcp__x__put", {"local_file": "/a", "content": "t"}, [FileTarget("write", "/a", "t")]),
        ("mcp__fs__manage", {"operation": "writeFile", "path": "/a"}, [FileTarget("write", "/a")]),
        ("mcp__fs__manage", {"op": "rename", "source": "/a", "destination": "/b"}, [FileTarget("move_from", "/a"), FileTarget("move_to", "/b")]),
        ("mcp__fs__batch", {"operations": [{"op": "remove", "path": "/a"}, {"op": "stat", "path": "/b"}]}, [FileTarget("delete", "/a"), FileTarget("read", "/b")]),
        ("mcp__fs__read_file", {"action": "delete", "path": "/a"}, [FileTarget("delete", "/a")]),
        ("mcp__fs__write_file", {"action": "delete", "path": "/a"}, [FileTarget("write", "/a")]),
    ],
)  # fmt: skip
def test_files_of_mcp_and_unknown_tools_are_guessed_from_the_name(
    tool: str, given: object, files: list[FileTarget]
) -> None:
    event = filled(tool, given)
    assert event.kind in ("mcp", "other") and event.files == files and event.undecidable is None


@pytest.mark.parametrize(
    ("tool", "given", "commands"),
    [
        ("mcp__x__run", {"command": "rm -rf /"}, ["rm -rf /"]),
        ("mcp__x__run", {"command": ["rm", "-rf", "/"]}, ["rm -rf /"]),
        ("mcp__py__run_python", {"code": "1"}, ["python3 -c 1"]),
        ("mcp__x__note", {"code": "1"}, []),
        ("mcp__x__run", {"command": 3}, []),
        ("BrandNewTool", {"command": "rm x"}, ["rm x"]),
    ],
)
def test_shell_lines_of_mcp_and_unknown_tools_are_given_but_do_not_make_them_shells(
    tool: str, given: object, commands: list[str]
) -> None:
    event = filled(tool, given)
    assert event.kind in ("mcp", "other") and event.commands == commands and event.undecidable is None


def test_nested_json_that_does_not_parse_is_undecidable() -> None:
    for tool in ("mcp__x__y", "Bash", "Write", "TodoWrite"):
        assert filled(tool, '{"command": "ls"').undecidable
        assert filled(tool, '{"a":1,"a":2}').undecidable


@pytest.mark.parametrize("tool", [None, "", " ", 3, ["Bash"]])
def test_a_call_without_a_tool_name_is_undecidable(tool: object) -> None:
    event = filled(tool, {"command": "ls"})
    assert event.undecidable == "the payload names no tool"


# --- harnesses with places of their own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "payload", "kind", "commands"),
    [
        ("cline", {"clineVersion": "3", "hookName": "PreToolUse", "taskId": "t", "preToolUse": {"toolName": "run_commands", "parameters": {"commands": '["ls", "rm x"]'}}}, "shell", ["ls", "rm x"]),
        ("cline", {"clineVersion": "3", "hookName": "tool_call", "taskId": "t", "tool_call": {"id": "1", "name": "run_commands", "input": {"commands": ["rm x"]}}, "preToolUse": {"toolName": "run_commands", "parameters": {"commands": "[]"}}}, "shell", ["rm x"]),
        ("cline", {"clineVersion": "3", "hookName": "PreToolUse", "taskId": "t", "preToolUse": {"toolName": "execute_command", "parameters": {"command": '["rm", "x y"]'}}}, "shell", ['["rm", "x y"]', "rm 'x y'"]),
        ("cline", {"clineVersion": "3", "hookName": "PreToolUse", "taskId": "t", "preToolUse": {"toolName": "execute_command", "parameters": {"command": "[ -f x ] && rm x"}}}, "shell", ["[ -f x ] && rm x"]),
        ("windsurf", {"agent_action_name": "pre_run_command", "tool_info": {"command_line": "rm x", "cwd": "/w"}}, "shell", ["rm x"]),
        ("antigravity", {"toolCall": {"name": "run_command", "args": {"CommandLine": "rm x"}}}, "shell", ["rm x"]),
        ("cursor", {"hook_event_name": "beforeShellExecution", "cursor_version": "1", "command": "rm x", "cwd": ""}, "shell", ["rm x"]),
        ("cursor", {"hook_event_name": "beforeMCPExecution", "cursor_version": "1", "tool_name": "run", "tool_input": '{"command":"rm x"}', "command": "node server.js"}, "mcp", ["rm x"]),
        ("copilot", {"sessionId": "s", "timestamp": 1, "toolName": "bash", "toolArgs": '{"command":"rm x"}'}, "shell", ["rm x"]),
        ("grok", {"hookEventName": "pre_tool_use", "hook_event_name": "PreToolUse", "sessionId": "s", "toolName": "run_terminal_command", "toolInput": {"command": "rm x"}}, "shell", ["rm x"]),
        ("kiro-env", {"toolName": "execute_bash", "toolArgs": {"command": "rm x"}}, "shell", ["rm x"]),
        ("vibe", {"hook_event_name": "pre_tool", "tool_name": "file_system.bash", "tool_input": {"command": "rm x"}}, "shell", ["rm x"]),
    ],
)  # fmt: skip
def test_places_of_other_harnesses(dialect: str, payload: dict[str, object], kind: str, commands: list[str]) -> None:
    assert table.candidates(payload, {})[0] == dialect
    event = table.load(dialect).read(payload, {}, None)
    assert (event.event, event.kind, event.commands, event.undecidable) == ("pre_tool", kind, commands, None)


@pytest.mark.parametrize(
    ("dialect", "payload"),
    [
        ("grok", {"hookEventName": "pre_tool_use", "hook_event_name": "PreToolUse", "sessionId": "s", "toolName": "write", "toolInput": {"path": "/a"}, "toolInputTruncated": True}),
        ("cursor", {"hook_event_name": "beforeMCPExecution", "cursor_version": "1", "tool_name": "x", "tool_input": "{"}),
        ("copilot", {"sessionId": "s", "timestamp": 1, "toolName": "bash", "toolArgs": "{"}),
        ("windsurf", {"agent_action_name": "pre_run_command", "tool_info": "x"}),
        ("antigravity", {"toolCall": {"name": "run_command", "args": "x"}}),
        ("cline", {"clineVersion": "3", "hookName": "PreToolUse", "taskId": "t", "preToolUse": {"toolName": "run_commands", "parameters": {"commands": 3}}}),
    ],
)  # fmt: skip
def test_cut_or_broken_inputs_of_other_harnesses_are_undecidable(dialect: str, payload: dict[str, object]) -> None:
    event = table.load(dialect).read(payload, {}, None)
    assert event.event == "pre_tool" and event.undecidable


@pytest.mark.parametrize("tool", ["Read", "Write", "Bash", "WebFetch", "mcp__x__y"])
def test_many_and_deep_entries_cost_no_more_than_their_size(tool: str) -> None:
    """Work grows with the input, not with its square: this would not end if it did."""
    many = [f"/p/{n}" for n in range(60_000)]
    nested: dict[str, object] = {"path": "/x", "content": "y" * 100_000}
    for _ in range(50):
        nested = {"edits": [nested], "path": "/z"}
    given = {"paths": many, "urls": many, "commands": many, "files": many, "edits": [nested], "prompt": "a://" * 60_000}
    event = filled(tool, given)
    assert event.undecidable is None
    assert len(event.files) + len(event.commands) + len(event.urls) >= 60_000


def test_a_sentence_full_of_addresses_is_no_gigabyte_of_them() -> None:
    """Each address of one long word went on to the word's end: 4 MB of `a://` were 4 GB, and minutes of judging."""
    for word in ("a://", "http://x/", "a" * 5000 + "://"):
        event = filled("web_fetch", {"prompt": word * (2_000_000 // len(word))}, "gemini")
        assert 0 < len(event.urls) <= 1000 and max(map(len, event.urls)) < 5000
    long = "https://example.com/" + "p/" * 1000
    assert filled("web_fetch", {"prompt": f"read <{long}>, please"}, "gemini").urls == [long]


def test_a_name_of_a_million_characters_is_undecidable() -> None:
    for name in ("A" * 1_000_000, "mcp__" + "aB_" * 300_000, "é" * 5000):
        event = filled(name, {"command": "ls"})
        assert event.undecidable and (event.kind, event.commands) == ("other", [])
    assert filled("mcp__" + "s" * 200 + "__" + "t" * 200, {"command": "ls"}).commands == ["ls"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///a/b", "/a/b"), ("FILE:///a/b", "/a/b"), ("file:/a/b", "/a/b"), ("file://localhost/a/b", "/a/b"), ("file:a", "a"),
        ("file:///a%20b/%2Essh", "/a b/.ssh"), ("file:///%C3%A4%zz%2", "/ä%zz%2"), ("file://~/x", "~/x"), ("/a%20b", "/a%20b"), ("a", "a"),
        ("files/x", "files/x"), ("file://host/x", "host/x"),
    ],
)  # fmt: skip
def test_every_spelling_of_a_file_address_is_its_path(text: str, path: str) -> None:
    assert tools.local(text) == path
    assert filled("Write", {"file_path": text, "content": "c"}).files == [FileTarget("write", path, "c")]
    assert filled("WebFetch", {"url": text}).files == (
        [FileTarget("read", path)] if text[:5].lower() == "file:" else []
    )


def test_a_path_with_blanks_around_it_is_both() -> None:
    files = filled("Write", {"file_path": " /a\n", "content": "c"}).files
    assert files == [FileTarget("write", " /a\n", "c"), FileTarget("write", "/a", "c")]


@pytest.mark.parametrize("tool", ["create", "Write", "editor", "fs_write", "developer__text_editor"])
def test_the_text_of_a_file_is_no_path(tool: str) -> None:
    """`file_text` has `file` in its name, so it stood in for a path that could not be read."""
    event = filled(tool, {"path": {"path": "/a"}, "file_text": "hello"})
    assert event.files == [] and event.undecidable


@pytest.mark.parametrize("tool", ["editor", "fs_write", "str-replace-editor"])
def test_a_tool_that_only_writes_is_not_talked_into_reading(tool: str) -> None:
    for decoy in ({"command": "view"}, {"mode": "read"}, {"command": "READ "}):
        event = filled(tool, {"path": "/a", "new_text": "n", **decoy})
        assert event.kind in ("file_edit", "file_write") and [f.op for f in event.files] in (["edit"], ["write"])
    assert filled("file_editor", {"path": "/a", "command": "view"}).kind == "file_read"


@pytest.mark.parametrize("given", [[{"path": "/a"}], '"{}"', "[]", 7, True, '"x"'])
def test_arguments_of_an_mcp_tool_that_are_no_object_are_undecidable(given: object) -> None:
    assert filled("mcp__fs__write", given).undecidable
    for fine in (None, {}, "{}", ""):
        assert filled("mcp__fs__write", fine).undecidable is None
