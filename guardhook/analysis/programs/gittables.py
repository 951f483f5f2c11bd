"""Option tables of git (2.47): what abbreviates to what, what takes a value, which settings name a program."""

from __future__ import annotations

GLOBAL_VALUED = frozenset(
    (
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--super-prefix",
        "--config-env",
        "--exec-path",
        "--attr-source",
        "--list-cmds",
    )
)
# Long options that matter, for abbreviations: git accepts any unambiguous beginning.
KNOWN = {
    "reset": ("--hard", "--soft", "--mixed", "--merge", "--keep", "--patch", "--quiet", "--pathspec-from-file"),
    "clean": ("--force", "--dry-run", "--interactive", "--exclude", "--quiet"),
    "push": ("--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "--prune", "--all", "--tags", "--follow-tags", "--dry-run", "--no-verify", "--set-upstream", "--repo", "--receive-pack", "--exec", "--push-option", "--porcelain", "--atomic", "--quiet", "--verbose", "--signed", "--thin"),
    "checkout": ("--force", "--ours", "--theirs", "--patch", "--orphan", "--detach", "--track", "--merge", "--quiet", "--overlay", "--no-overlay", "--pathspec-from-file"),
    "switch": ("--force", "--discard-changes", "--create", "--force-create", "--detach", "--orphan", "--merge", "--track"),
    "restore": ("--staged", "--worktree", "--source", "--patch", "--ours", "--theirs", "--pathspec-from-file"),
    "branch": ("--delete", "--force", "--move", "--copy", "--list", "--all", "--remotes", "--merged", "--contains", "--set-upstream-to", "--show-current", "--no-merged", "--sort", "--format"),
    "commit": ("--amend", "--no-verify", "--message", "--all", "--file", "--author", "--date", "--fixup", "--squash", "--no-edit", "--allow-empty", "--signoff", "--template", "--reuse-message", "--reedit-message", "--cleanup", "--trailer"),
    "rebase": ("--interactive", "--exec", "--onto", "--abort", "--continue", "--skip", "--quit", "--autostash", "--no-verify", "--strategy", "--strategy-option", "--root"),
    "worktree": ("--force",), "tag": ("--delete", "--force", "--message", "--annotate", "--list"), "gc": ("--prune", "--aggressive", "--auto"), "reflog": ("--expire", "--expire-unreachable", "--all"),
    "stash": ("--include-untracked", "--all", "--keep-index", "--message", "--patch"), "merge": ("--abort", "--no-verify", "--no-ff", "--squash", "--message", "--continue", "--quit", "--strategy"),
    "submodule": ("--force", "--all", "--recursive"), "update-ref": ("--stdin",), "read-tree": ("--reset",), "checkout-index": ("--force", "--all"),
}  # fmt: skip
VALUED: dict[str, tuple[str, tuple[str, ...]]] = {
    "commit": ("mFCctS", ("--message", "--file", "--author", "--date", "--fixup", "--squash", "--template", "--reuse-message", "--reedit-message", "--cleanup", "--trailer")), "push": ("o", ("--repo", "--receive-pack", "--exec", "--push-option")),
    "checkout": ("bB", ("--orphan", "--conflict", "--pathspec-from-file")), "switch": ("cC", ("--create", "--force-create", "--orphan", "--conflict")), "restore": ("s", ("--source", "--conflict", "--pathspec-from-file")), "branch": ("u", ("--set-upstream-to", "--sort", "--format", "--contains", "--merged", "--no-merged", "--points-at")),
    "clean": ("e", ("--exclude",)), "reset": ("U", ("--pathspec-from-file",)), "rebase": ("xsXC", ("--exec", "--onto", "--strategy", "--strategy-option")), "tag": ("mFu", ("--message", "--file", "--sort", "--format", "--contains")), "merge": ("mFsX", ("--message", "--file", "--strategy", "--strategy-option")),
    "stash": ("m", ("--message",)), "config": ("f", ("--file", "--blob", "--type", "--default", "--value")), "log": ("nSGL", ("--format", "--pretty", "--author", "--since", "--until", "--grep")), "clone": ("bojcu", ("--branch", "--depth", "--origin", "--template", "--config", "--upload-pack", "--reference", "--jobs", "--separate-git-dir", "--filter")),
    "fetch": ("oj", ("--upload-pack", "--depth", "--jobs")), "pull": ("sXoj", ("--upload-pack", "--strategy", "--depth", "--rebase-merges")), "bisect": ("", ()), "filter-branch": ("", ("--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter", "--commit-filter", "--tag-name-filter", "--subdirectory-filter", "--original", "-d", "--setup")),
    "difftool": ("xt", ("--extcmd", "--tool")), "submodule": ("b", ("--branch", "--name", "--reference", "--depth")), "worktree": ("bB", ("--reason", "--expire")), "archive": ("o", ("--format", "--output", "--prefix", "--remote", "--exec")), "ls-remote": ("o", ("--upload-pack", "--exec")), "grep": ("efABCmO", ("--open-files-in-pager",)), "diff": ("SGUlO", ("--output", "--ext-diff")), "am": ("", ()), "apply": ("pC", ("--directory", "--exclude", "--include", "--whitespace")),
}  # fmt: skip
PROGRAM_KEYS = frozenset(("core.sshcommand", "core.editor", "core.pager", "core.fsmonitor", "core.askpass", "sequence.editor", "diff.external", "gpg.program", "core.gitproxy", "uploadpack.packobjectshook", "credential.helper", "core.alternaterefscommand", "interactive.difffilter", "web.browser", "sendemail.smtpserver", "gpg.ssh.program", "sendemail.tocmd"))  # fmt: skip
ENDINGS = frozenset(("py", "js", "ts", "tsx", "jsx", "go", "rs", "c", "h", "cpp", "hpp", "java", "rb", "php", "md", "txt", "json", "toml", "yaml", "yml", "sh", "css", "scss", "html", "vue", "svelte", "lock", "cfg", "ini", "sql", "swift", "kt", "cs", "xml", "mod", "sum", "tf", "lua", "ex", "exs", "env"))  # fmt: skip
