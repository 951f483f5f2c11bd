"""The names that harnesses give to tools, and what a name says."""

from __future__ import annotations

# Lower-case tool name -> kind. Names are looked up as they are, then without a harness's own prefix.
KINDS = {
    "bash": "shell", "shell": "shell", "sh": "shell", "zsh": "shell", "powershell": "shell", "pwsh": "shell",
    "cmd": "shell", "execute_bash": "shell", "execute_pwsh": "shell", "execute_command": "shell", "execute": "shell",
    "exec": "shell", "exec_command": "shell", "run_shell_command": "shell", "run_terminal_command": "shell",
    "run_terminal_cmd": "shell", "run_in_terminal": "shell", "runterminalcommand": "shell", "runinterminal": "shell",
    "run_command": "shell", "run_commands": "shell", "terminal": "shell", "launch-process": "shell",
    "developer__shell": "shell", "process.start": "shell", "process_start": "shell", "shell_command": "shell",
    "local_shell": "shell", "execute_code": "shell", "write_stdin": "shell", "write_bash": "shell",
    "write_powershell": "shell", "write-process": "shell", "process.write": "shell", "process_write": "shell",
    "write": "file_write", "write_file": "file_write", "write_to_file": "file_write", "create": "file_write",
    "create_file": "file_write", "createfile": "file_write", "save-file": "file_write", "fs_write": "file_write",
    "edit": "file_edit", "edit_file": "file_edit", "editfiles": "file_edit", "multiedit": "file_edit",
    "multi_edit": "file_edit", "strreplace": "file_edit", "str_replace": "file_edit",
    "str_replace_editor": "file_edit", "str-replace-editor": "file_edit", "str_replace_based_edit_tool": "file_edit",
    "replace_string_in_file": "file_edit", "multi_replace_string_in_file": "file_edit",
    "insert_edit_into_file": "file_edit", "replace_in_file": "file_edit", "replace_file_content": "file_edit",
    "multi_replace_file_content": "file_edit", "replace": "file_edit", "search_replace": "file_edit",
    "editor": "file_edit", "file_editor": "file_edit", "developer__text_editor": "file_edit", "fs_append": "file_edit",
    "patch": "file_edit", "apply_patch": "file_edit", "applypatch": "file_edit", "delete": "file_edit",
    "delete_file": "file_edit", "remove-files": "file_edit", "write_code": "file_edit", "notebookedit": "file_edit",
    "notebook_edit": "file_edit",
    "read": "file_read", "read_file": "file_read", "read_files": "file_read", "read_many_files": "file_read",
    "view": "file_read", "view_file": "file_read", "view_image": "file_read", "fs_read": "file_read",
    "read_code": "file_read", "readfile": "file_read", "notebookread": "file_read",
    "grep": "search", "glob": "search", "ls": "search", "list": "search", "grep_search": "search",
    "file_search": "search", "semantic_search": "search", "search_files": "search", "search_codebase": "search",
    "codebase-retrieval": "search", "codebase_search": "search", "list_directory": "search", "list_dir": "search",
    "search_file_content": "search", "find_by_name": "search",
    "webfetch": "web_fetch", "web_fetch": "web_fetch", "web-fetch": "web_fetch", "fetch": "web_fetch",
    "fetchurl": "web_fetch", "fetch_webpage": "web_fetch", "fetch_web_content": "web_fetch",
    "web_extract": "web_fetch", "download": "web_fetch", "websearch": "web_fetch", "web_search": "web_fetch",
    "web-search": "web_fetch", "google_web_search": "web_fetch", "read_url_content": "web_fetch",
    "use_mcp_tool": "mcp", "use_tool": "mcp", "mcp_tool_use": "mcp",
    "task": "subagent", "agent": "subagent", "agents.spawn": "subagent", "delegate": "subagent",
    "delegate_task": "subagent", "run_subagent": "subagent", "runsubagent": "subagent", "agentic_fetch": "subagent",
    "spawn_agent": "subagent", "collaborationspawn_agent": "subagent", "invoke_agent": "subagent",
}  # fmt: skip
PREFIXES = ("file_system.",)

# Tools that type into a process which is already running: what is typed is the command.
TYPED = frozenset(("write_stdin", "write_bash", "write_powershell", "write-process", "process.write", "process_write"))

# Tools whose `command` is an operation (view, create, str_replace …) and never a shell line.
OPERATIONS = frozenset((
    "str_replace_editor", "str_replace_based_edit_tool", "file_editor", "developer__text_editor", "fs_write", "fs_read",
    "editor", "str-replace-editor",
))  # fmt: skip
# Those of them that read as well.
VIEWERS = frozenset((
    "str_replace_editor", "str_replace_based_edit_tool", "file_editor", "developer__text_editor", "fs_read",
))  # fmt: skip
PATCHES = frozenset(("apply_patch", "applypatch"))
DELETES = frozenset(("delete", "delete_file", "remove-files"))

MOVES = frozenset(("move", "rename", "mv"))
VERBS = {
    "write": "write", "save": "write", "create": "write", "put": "write", "append": "write", "upload": "write",
    "touch": "write", "mkdir": "write", "download": "write", "copy": "write", "cp": "write", "edit": "edit",
    "patch": "edit", "replace": "edit", "update": "edit", "modify": "edit", "insert": "edit", "chmod": "edit",
    "chown": "edit", "truncate": "edit", "delete": "delete", "remove": "delete", "unlink": "delete", "rm": "delete",
    "rmdir": "delete", "trash": "delete", "erase": "delete", "wipe": "delete",
}  # fmt: skip


def kind_of(name: str) -> str:
    """The kind of a built-in tool by its name, `other` for one that no harness in the table has."""
    lower = name.strip().lower()
    for prefix in PREFIXES:
        if lower.startswith(prefix):
            lower = lower[len(prefix) :]
    return KINDS.get(lower) or ("subagent" if lower.endswith("spawn_agent") else "other")


def mcp_name(name: str) -> tuple[str, str] | None:
    """(server, tool) of a name in one of the forms that harnesses give to MCP tools, else None.

    Forms: mcp__server__tool, MCP:tool, @server/tool, server___tool, mcp_server.tool, mcp_server_tool (where the first
    part is taken as the server: single underscores can't be told apart).
    """
    lower = name.lower()
    if lower.startswith("mcp__"):
        server, _, tool = name[5:].partition("__")
        return server, tool
    if lower.startswith("mcp:"):
        return "", name[4:]
    if name.startswith("@") and "/" in name:
        server, _, tool = name[1:].partition("/")
        return server, tool
    if "___" in name:
        server, _, tool = name.partition("___")
        return server, tool
    if lower.startswith("mcp_") and lower not in KINDS:
        server, _, tool = name[4:].partition("." if "." in name else "_")
        return server, tool
    return None


def words(name: str) -> frozenset[str]:
    """The words of a tool name, split at signs and at capitals."""
    out: list[str] = []
    word = ""
    for char in name:
        if not char.isalnum() or (char.isupper() and word and not word[-1].isupper()):
            if word:
                out.append(word.lower())
            word = ""
        if char.isalnum():
            word += char
    if word:
        out.append(word.lower())
    return frozenset(out)
