"""Which tools change something, judged by their names alone: what the audit trail keeps."""

from __future__ import annotations

YES, NO, UNKNOWN = "yes", "no", "unknown"

_EXACT = frozenset((
    "bash", "file_write", "file_delete", "git_commit", "git_push", "git_reset", "git_revert", "git_merge", "git_rebase", "kubectl_apply",
    "kubectl_delete", "kubectl_patch", "rm", "mv", "cp", "chmod", "chown", "mkdir", "mkfile", "touch", "shell", "local_shell", "run_shell_command",
    "powershell", "edit", "multiedit", "multi_edit", "notebookedit", "str_replace", "str_replace_based_edit_tool", "replace", "apply_diff", "terminal",
))  # fmt: skip
# They keep lists for the agent itself.
_HARMLESS = frozenset(("todowrite", "todo_write", "update_plan", "exitplanmode"))
_WORDS = frozenset((
    "write", "delete", "create", "modify", "update", "patch", "put", "remove", "insert", "append", "exec", "execute", "commit", "apply", "deploy",
    "install", "uninstall", "destroy", "overwrite", "rename", "move", "wipe", "flush", "publish", "push", "post", "submit", "persist", "store", "save",
    "upload", "send", "format", "init", "rollback",
))  # fmt: skip


def changes(name: str | None, more: tuple[str, ...] = (), less: tuple[str, ...] = ()) -> str:
    """YES, NO, or UNKNOWN for a tool of an MCP server whose name says nothing. more and less: names (folded) that the owner added to either side."""
    if not name:
        return NO
    if not name.isascii():
        from unicodedata import normalize

        name = normalize("NFKC", name)
    folded = name.casefold()
    if folded in _HARMLESS or folded in less:
        return NO
    if folded in _EXACT or folded in more or not _WORDS.isdisjoint(words(name)):
        return YES
    return UNKNOWN if folded.startswith("mcp__") else NO


def words(name: str) -> list[str]:
    """The words of a name in lower case: parted at whatever is no letter or digit, between letters and digits, and at capitals (`HTTPPost`: http, post)."""
    found: list[str] = []
    start = 0
    for at in range(1, len(name) + 1):
        if at < len(name) and not _parted(name, at):
            continue
        word = name[start:at]
        if word[0].isalnum():
            found.append(word.casefold())
        start = at
    return found


def _parted(name: str, at: int) -> bool:
    """Whether a word ends before this character."""
    before, here = name[at - 1], name[at]
    if not (before.isalnum() and here.isalnum()):
        return True
    if before.isdigit() != here.isdigit():
        return True
    if not here.isupper():
        return False
    return not before.isupper() or (at + 1 < len(name) and name[at + 1].islower())
