"""The words that policies may use about effects: every kind with its flags. `guardhook policy` and its validator read this.

A policy writes `effect = "kind"` or `"kind:flag[:flag]"`; all flags must be on one effect. Kinds listed in OPEN carry
further flags that come from the tool at hand (a service of a cloud provider, a subcommand): any word is allowed there.
Cold module: nothing in the hook imports it.
"""

from __future__ import annotations

from guardhook.analysis import guardpaths, paths, targets
from guardhook.analysis.programs import index
from guardhook.core.effect import EFFECTS

# Flags that say where a path leads; on read, write, delete, chmod, chown, move (and on guard_change and persist with a path).
PATH_FLAGS = {
    "unknown": "a part of the path isn't known",
    "unset-root": "with the unknown part empty this is `/` or everything in it",
    "glob": "the path has active wildcards",
    "whole-project": "the project root itself, all it holds, or a folder above it",
    "above-project": "a folder above the project root",
    "whole-cwd": "the current folder, all it holds, or a folder above it",
    "above-cwd": "a folder above the current one",
    "whole-tmp": "a folder for temporary files itself",
    "top-level": "a folder right below `/` that isn't a system one",
    "home-top": "right below the home folder",
    "regenerable": "a cache, build output or the like on the way: tools make it again",
    "git-dir": "a repository's .git folder or something in it",
    "git-hooks": "hooks of a repository",
    "ci": "configuration of continuous integration",
    "guard-own": "guardhook's own files",
    "guard-hooks": "hook settings of a harness",
    "guard-folder": "a folder that holds hook settings or guardhook's files",
    "history": "the history of a shell or program",
    "remote": "on another machine",
    "container": "inside a container",
    "link": "reached through a symbolic link",
}
_CHANGE = {
    "recursive": "with everything below",
    "force": "without asking, whatever the permissions",
    "find": "through find",
    "filtered": "only what matches a name, an age or a size",
    "inline": "by code in a scripting language",
    "tool": "by a file tool of the harness, not by a command",
    "read": "operation of a file tool",
    "write": "operation of a file tool",
    "edit": "operation of a file tool",
    "delete": "operation of a file tool",
    "move": "operation of a file tool",
    "move_from": "operation of a file tool",
    "move_to": "operation of a file tool",
    "stdin-args": "paths come from standard input and aren't known",
    "patch": "by a patch",
    "git": "through git",
    "tracked": "git knows the file",
}

FLAGS: dict[str, dict[str, str]] = {
    "run": {
        "interactive": "starts something that takes input no hook sees", "shell": "a shell", "repl": "an interpreter without a script", "database": "a database client without a statement", "editor": "an editor",
        "as-root": "as root", "as-other": "as another user", "remote": "on another machine", "container": "inside a container", "network-stream": "one of its streams is a network connection",
        "installs": "installs a package", "system-package": "through the system's package manager", "from-url": "from a URL or a repository", "other-registry": "from another registry than the usual one", "insecure": "without checking certificates",
        "removes-package": "removes packages", "critical-package": "the system needs one of them", "removes-environment": "removes a whole environment", "clears-cache": "clears a cache", "unattended-agent": "a coding agent that asks nobody", "preload": "with code loaded in front", "dry-run": "only says what it would do",
    },
    "read": {**PATH_FLAGS, **_CHANGE, "alias": "a copy of a secret, or a link to it", "copy": "to copy it", "archive": "to pack it", "upload": "to send it", "environment": "environment variables", "to-environment": "to set variables with it", "secret-variable": "a variable that usually holds a credential", "credential": "a stored credential printed by its tool", "keychain": "the system's keychain", "key-export": "secret keys exported", "dialog": "asks a person for a password"},
    "write": {
        **PATH_FLAGS, **_CHANGE, "append": "adds to the end, or creates without overwriting", "truncate": "replaces the content", "empty": "and nothing comes in its place", "redirect": "by a redirection", "in-place": "edits it", "mkdir": "makes a folder", "touch": "makes an empty file", "link": "makes a link there", "link-to": "makes a link to it", "download": "with what was fetched",
        "extract": "unpacks into it", "compress": "replaces it by a packed form", "copy": "copies to it", "cp": "by cp", "mv": "by mv", "install": "by install", "dd": "by dd", "disk": "by a tool for whole disks", "loses-data": "what was on it is lost", "format": "makes a file system", "no-clobber": "never over something that exists", "key": "a key file", "dump": "a database dump", "mount": "mounted over", "clean": "by a build tool",
    },
    "delete": {**PATH_FLAGS, **_CHANGE, "no-preserve-root": "--no-preserve-root", "interactive": "asks a person for each file", "empty-only": "only empty folders", "overwrite": "overwrites before deleting", "trash": "into the trash", "sync": "what the source of a copy doesn't have", "clean": "by a build tool", "keys": "keys", "preferences": "application preferences", "registry": "the Windows registry", "backups": "backups or snapshots"},
    "chmod": {**PATH_FLAGS, **_CHANGE, "777": "everybody may do anything", "world-writable": "everybody may write", "no-access": "nobody may do anything", "setuid": "runs with its owner's rights", "not-executable": "can't be run any more", "not-writable": "can't be written any more", "attributes": "file attributes", "immutable": "the immutable attribute"},
    "chown": {**PATH_FLAGS, **_CHANGE, "to-root": "to root"},
    "move": {**PATH_FLAGS, **_CHANGE},
    "connect": {
        "upload": "sends data", "local": "this machine", "private": "a private address", "ip": "an address instead of a name", "metadata": "the cloud's metadata service", "drop": "a place made for dropping data", "onion": "a hidden service", "unknown-host": "which host isn't known", "raw": "a raw connection", "listen": "waits for connections", "server": "serves files", "scan": "scans",
        "tunnel": "opens a tunnel", "ssh": "ssh", "command": "runs a command there", "scp": "scp", "sftp": "sftp", "rsync": "rsync", "ftp": "ftp", "git": "git", "mail": "mail", "lookup": "a name lookup or ping", "storage": "object storage", "gist": "a gist", "insecure": "without checking certificates", "post": "POST", "put": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET", "inline": "by code in a scripting language", "tool": "by a tool of the harness", "attack-tool": "a tool for attacks",
    },
    "run_fetched": {"stdin": "piped into an interpreter", "inline": "as an argument of an interpreter", "eval": "by eval", "script": "as a script", "source": "by source", "program": "as the program's name", "network-shell": "a shell or interpreter on a connection", "install": "a package from a URL", "preload": "loaded in front of a program", "trap": "by trap", "scheduled": "by a schedule", "remote": "on another machine", "typed": "typed into a terminal"},
    "run_decoded": {"stdin": "piped into an interpreter", "inline": "as an argument of an interpreter", "eval": "by eval", "script": "as a script", "source": "by source", "program": "as the program's name", "load": "loaded as code", "remote": "on another machine", "trap": "by trap", "scheduled": "by a schedule", "typed": "typed into a terminal"},
    "run_dynamic": {
        "variable": "the program is the value of a variable", "substitution": "the program is what another command prints", "partial": "a part of the program's name isn't known", "glob": "the program's name is a pattern", "known-variable": "a variable that by custom names a tool (EDITOR, CC, PYTHON …)", "tool-output": "what a known tool printed", "destructive-arguments": "with arguments as a recursive deletion has them",
        "eval": "a text that eval runs isn't known", "stdin": "what an interpreter reads isn't known", "inline": "code given to an interpreter isn't known", "script": "which script isn't known", "source": "what is sourced isn't known", "attribute": "which function is called isn't known", "load": "what is loaded isn't known", "git-subcommand": "which git command isn't known", "trap": "by trap", "remote": "on another machine", "scheduled": "by a schedule", "typed": "typed into a terminal", "environment": "through a variable", "git-config": "through git's configuration", "git-alias": "through an alias of git", "program": "the program",
    },
    "git": {
        "loses-uncommitted": "changes that aren't committed are lost", "loses-untracked": "files git doesn't know are lost", "loses-commits": "commits can be lost", "loses-remote": "something on the remote is lost", "loses-stash": "stashed work is lost", "loses-reflog": "the way back is lost", "loses-branches": "a branch that isn't merged can be lost", "loses-tags": "a tag is lost",
        "force-push": "push --force, +ref or --mirror", "force-with-lease": "push --force-with-lease", "deletes-remote": "deletes a branch or tag on the remote", "mirror": "push --mirror", "prune": "prunes", "main-branch": "the main branch is named", "hooks-bypass": "the repository's hooks are skipped or switched off", "config-program": "a setting names a program to run", "alias-program": "an alias that runs a program",
        "paths": "named files only", "everything": "all files", "hard": "reset --hard", "merge": "reset --merge", "staged": "the index only", "cached": "the index only", "force": "forced", "interactive": "asks a person", "dry-run": "only says what it would do", "rewrites": "rewrites commits", "amend": "commit --amend", "moves-branch": "a branch points elsewhere", "delete": "deletes a branch or tag", "to-url": "to a URL", "all": "all branches", "global": "for all repositories", "set": "sets", "unset": "unsets",
        "directories": "folders too", "ignored": "ignored files too", "only-ignored": "ignored files only", "git-dir": "another repository by --git-dir", "unknown-arguments": "arguments that aren't known", "insecure": "without checking certificates", "redirects-remote": "another remote behind a URL", "plain-credentials": "credentials stored in clear", "secret-in-url": "a credential in a URL", "weakens-remote": "the remote accepts lost commits", "remote-delete": "deletes something at the forge", "remote-change": "changes something at the forge", "no-sign": "unsigned", "ext-protocol": "a protocol that runs programs",
    },
    "publish": {"npm": "npm", "pypi": "PyPI", "crates": "crates.io", "rubygems": "RubyGems", "container-image": "a container image", "unpublish": "takes back", "removes": "takes back or marks", "repository": "a repository made public", "release": "a release", "dry-run": "only says what it would do"},
    "database": {
        "sql": "an SQL statement", "drop": "drops or empties something", "truncate": "TRUNCATE", "delete": "deletes rows", "update": "updates rows", "no-where": "without a condition", "cascade": "CASCADE", "table": "a table", "database": "a database", "schema": "a schema", "user": "a user or role", "column": "a column", "alter": "ALTER", "grant": "GRANT, REVOKE", "create": "CREATE", "insert": "INSERT", "read": "reads", "execute": "runs code", "program": "runs a program", "admin": "administration", "everything": "everything",
        "migration-tool": "a migration tool", "migrate": "migrates", "down": "migrates back", "restore": "restores a dump", "dump": "dumps", "unknown": "statements that aren't known", "file": "statements of a file", "redis": "Redis", "mongodb": "MongoDB", "dry-run": "only says what it would do",
    },
    "cloud": {
        "delete": "deletes", "destroy": "destroys a whole resource", "write": "changes", "read": "reads", "apply": "applies infrastructure", "iac": "infrastructure as code", "state": "its state", "k8s": "a cluster", "container": "containers", "volume": "volumes", "image": "images", "prune": "prunes", "compose": "docker compose", "all": "all of them", "force": "without asking", "recursive": "recursively", "storage": "object storage", "drain": "drains a node", "scale": "scales", "to-zero": "to nothing",
        "cluster-wide": "beyond one namespace", "from-url": "from a URL", "helm": "helm", "secrets": "secrets", "vm": "virtual machines", "backup": "backups", "targeted": "named resources only", "local": "a cluster on this machine", "dry-run": "only says what it would do", "unknown": "a part isn't known", "stop": "stops", "rm": "removes containers", "opens-network": "opens the network",
    },
    "privilege": {
        "sudo": "sudo", "su": "su", "doas": "doas", "pkexec": "pkexec", "as-root": "as root", "as-other": "as another user", "shell": "a whole shell", "edit": "edits as root", "sudoers": "who may become root", "accounts": "accounts", "admin-group": "a group with the administrator's rights", "setuid": "runs with its owner's rights", "capability": "capabilities", "kernel": "kernel settings or modules", "mount": "mounts", "chroot": "chroot", "namespace": "namespaces", "preload": "code loaded in front of programs",
        "container": "a container with rights on the machine", "privileged": "--privileged", "host-mount": "mounts of the machine's folders", "docker-socket": "the container daemon's socket", "host-pid": "the machine's processes", "unconfined": "without confinement", "firewall": "the firewall", "off": "switched off", "network-config": "network settings", "security-off": "a protection of the system switched off", "cloud-iam": "rights in the cloud", "keychain": "the keychain", "packet-capture": "listens to the network", "boot": "how the machine starts", "polkit": "polkit", "pam": "PAM", "registry": "the Windows registry", "administrator": "administrator privileges", "runas": "as administrator", "become": "as root, by Ansible", "cgroup": "control groups", "cluster-role": "rights in a cluster",
    },
    "persist": {
        "cron": "cron", "at": "at", "systemd": "systemd", "timer": "a timer", "launchd": "launchd", "init": "init scripts", "shell-rc": "start-up files of shells and editors", "autostart": "desktop autostart", "authorized-keys": "keys that may log in", "ssh-config": "ssh settings", "git-hook": "hooks of git", "git-config": "git settings", "registry-config": "which package registry is asked", "preload": "preloaded libraries", "scheduled-task": "scheduled tasks", "kernel-module": "kernel modules", "udev": "udev", "pam": "PAM", "sshd": "the ssh server", "hosts": "host names", "append": "adds to a file", "removes": "removes all of them", "edit": "edits", "registry": "the Windows registry", "linger": "services that outlive the login",
    },
    "process": {"kill": "ends processes", "force": "at once", "everything": "all of them", "init": "the first process", "by-name": "by name", "by-search": "by what a command found", "by-port": "by port", "unknown-process": "which one isn't known", "parent": "the parent", "vital": "one the machine or the session needs", "harness": "the harness", "shutdown": "stops or restarts the machine", "service": "services", "stop": "stops", "security": "a service that protects", "fork-bomb": "starts itself without end", "history": "the shell's history", "logs": "logs", "keys": "keys of an agent", "umount-all": "unmounts everything", "inline": "by code in a scripting language"},
    "guard_change": {**PATH_FLAGS, "file": "by changing a file", "write": "writes it", "delete": "deletes it", "move": "moves it", "chmod": "changes its mode", "chown": "changes its owner", "command": "by a command of guardhook or a harness", "switch": "by a switch of a harness", "option": "by an option", "environment": "by an environment variable", "uninstall": "by removing a package", "kill": "by ending its processes", "service": "by stopping its service", "hook-by-hand": "the hook run by hand", "unknown": "a guardhook command that isn't known"},
    "secret_flow": {"network": "to another machine", "file": "from a file", "variable": "from a variable", "environment": "the whole environment", "local": "to this machine", "private": "to a private address", "drop": "to a place made for dropping data", "raw": "over a raw connection", "dns": "in a name lookup", "mail": "by mail", "ssh": "over ssh", "copy": "by a copy", "storage": "to object storage", "inline": "by code in a scripting language"},
    "lookalike": {"mixed-script": "a word mixes scripts", "argument": "in an argument", "path": "in a path", "host": "in a host name"},
    "invisible": {"bidi": "changes the order of reading", "tag": "tag characters", "zero-width": "no width", "joiner": "the joiner of emoji", "variation": "variation selectors", "control": "control characters", "escape": "escape sequences", "nul": "NUL", "command": "in a command", "path": "in a path", "url": "in a URL", "content": "in a file's text"},
    "unverified": {"cap": "over a cap", "syntax": "can't be parsed", "nested": "a text inside the command can't be parsed", "script": "a script on disk", "bundle": "a script for node, which bundlers make long", "inline": "code inside the command", "internal": "the analyser failed"},
}  # fmt: skip

# Kinds that carry words of the tool at hand as further flags.
OPEN = frozenset(("cloud", "publish", "database", "persist", "process", "guard_change", "git", "write"))


def problem(spelling: str) -> str:
    """What is wrong with an `effect` value of a policy; "" when nothing is."""
    kind, *flags = spelling.split(":")
    if kind not in EFFECTS:
        return f"there is no effect {kind!r}"
    if kind in OPEN:
        return ""
    wrong = [flag for flag in flags if flag not in FLAGS[kind]]
    return f"an effect {kind!r} has no flag {wrong[0]!r}" if wrong else ""


# Programs that only print, compute or build, whose arguments no table looks into beyond reading files.
_PLAIN = frozenset(["ps", "ls", "ll", "la", "dir", "vdir", "exa", "eza", "lsd", "tree", "du", "df", "echo", "printf", "pwd", "cat", "head", "tail", "less", "more", "bat", "nl", "wc", "sort", "uniq", "cut", "tr", "rev", "tac", "comm", "diff", "colordiff", "cmp", "column", "fold", "fmt", "expand", "unexpand", "paste", "join", "grep", "egrep", "fgrep", "rg", "ripgrep", "ag", "jq", "basename", "dirname", "realpath", "readlink", "seq", "yes", "date", "uname", "hostname", "whoami", "id", "logname", "groups", "md5sum", "sha1sum", "sha256sum", "sha512sum", "shasum", "cksum", "sum", "b2sum", "md5", "file", "stat", "true", "false", ":", "test", "[", "which", "type", "whereis", "sleep", "factor", "shuf", "numfmt", "wait", "exit", "return"])  # fmt: skip
# Subcommands and options of git that have effects beyond reading; `git` itself is no trigger.
_GIT_WORDS = frozenset(["reset", "clean", "push", "checkout", "switch", "restore", "branch", "stash", "rebase", "commit", "reflog", "gc", "prune", "update-ref", "filter-branch", "filter-repo", "worktree", "tag", "rm", "mv", "remote", "config", "clone", "fetch", "pull", "merge", "ls-remote", "bisect", "submodule", "archive", "read-tree", "checkout-index", "symbolic-ref", "replace", "lfs", "difftool", "mergetool", "am", "apply", "--open-files-in-pager", "daemon", "svn", "p4", "credential", "hook", "maintenance", "sparse-checkout", "rerere", "notes", "revert", "cherry-pick", "init", "add", "-c", "-C", "--git-dir", "--work-tree", "--exec-path", "--config-env", "--output", "--ext-diff", "--no-verify", "--namespace", "-p", "alias"])  # fmt: skip


def _place_words() -> set[str]:
    """Pieces of paths that stand for secrets, hook settings, system folders and what is started later."""
    words: set[str] = set(paths.SECRET_NAMES)
    words.update(e for e in paths.SECRET_ENDINGS if e.startswith("."))
    for folder, below in paths.SECRET_PLACES:
        words.update(
            p
            for p in (folder + "/" + below).lower().split("/")
            if p and p not in ("config", ".config", ".local", "share", "run", "var")
        )
    words.update(guardpaths.words())
    words.update(targets.words())
    words.update(
        (
            "shadow",
            "environ",
            "guardhook",
            "..",
            "~",
            "dev",
            "proc",
            "etc",
            "169.254.169.254",
            "tcp",
            "udp",
            ".ssh",
            ".aws",
            ".env",
            ".git",
            "hooks",
        )
    )
    return {w.lower() for w in words}


_triggers: frozenset[str] | None = None


def triggers() -> frozenset[str]:
    """Every word (lower case) of which one must stand in a plain command for an effect other than a plain run or a harmless read.

    For guardhook.analysis.quick, together with the words that policies about runs and reads name themselves.
    """
    global _triggers
    if _triggers is None:
        programs = {name for name in index.AREAS if name not in _PLAIN}
        programs.discard("git")
        _triggers = frozenset(
            {p.lower() for p in programs} | _place_words() | {w.lower() for w in _GIT_WORDS} | _KEYWORDS
        )
    return _triggers


# Words of the shell's grammar, and what commands hide in.
_KEYWORDS = frozenset((
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select", "time", "coproc", "in", "{", "}", "!", "--pre", "-delete", "-exec", "--output", "-o",
))  # fmt: skip
