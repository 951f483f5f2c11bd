"""Aliases of git: set earlier in the same command, given in the environment, or as the configuration on disk has them."""

from __future__ import annotations

from guardhook.analysis.call import Call
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import Val

# Commands that git and its usual companions bring along: an alias can't replace them.
BUILTIN = frozenset((
    "add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore", "check-mailmap", "check-ref-format", "checkout", "checkout-index",
    "cherry", "cherry-pick", "citool", "clean", "clone", "column", "commit", "commit-graph", "commit-tree", "config", "count-objects", "credential", "daemon", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "difftool", "fast-export", "fast-import", "fetch", "fetch-pack", "filter-branch", "filter-repo", "for-each-ref", "for-each-repo", "format-patch", "fsck", "gc",
    "get-tar-commit-id", "grep", "gui", "hash-object", "help", "hook", "http-backend", "index-pack", "init", "init-db", "instaweb", "interpret-trailers", "lfs", "log", "ls-files", "ls-remote",
    "ls-tree", "mailinfo", "mailsplit", "maintenance", "merge", "merge-base", "merge-file", "merge-index", "merge-tree", "mergetool", "mktag", "mktree", "multi-pack-index", "mv", "name-rev", "notes",
    "pack-objects", "pack-redundant", "pack-refs", "patch-id", "prune", "prune-packed", "pull", "push", "range-diff", "read-tree", "rebase", "receive-pack", "reflog", "remote", "repack", "replace",
    "replay", "request-pull", "rerere", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "scalar", "send-email", "send-pack", "shortlog", "show", "show-branch", "show-index", "show-ref",
    "sparse-checkout", "stage", "stash", "status", "stripspace", "submodule", "subtree", "svn", "switch", "symbolic-ref", "tag", "unpack-file", "unpack-objects", "update-index", "update-ref",
    "update-server-info", "var", "verify-commit", "verify-pack", "verify-tag", "version", "web--browse", "whatchanged", "worktree", "write-tree",
))  # fmt: skip
_PAIRS = 16  # GIT_CONFIG_KEY_<n>
_FOLDERS = 12  # folders above that are looked at for a repository


def find(call: Call, verb: str) -> Val | None:
    """The text behind a word that is no command of git's own; None when it is no alias, or nobody knows."""
    if verb in BUILTIN or not verb:
        return None
    known = call.state.vars.get("git:alias." + verb)
    if isinstance(known, Val):
        return known
    walker = call.walker
    if walker.inside:
        return None
    for path in _files(call):
        written = walker.files.get(path)
        text = written.text if written is not None else walker.facts.read_script(path)
        found = aliases(text).get(verb.lower()) if text and HOLE not in text else None
        if found is not None:
            return Val(found)
    return None


def environment(call: Call) -> list[Val]:
    """`key=value` of GIT_CONFIG_KEY_<n> and GIT_CONFIG_VALUE_<n>, as `-c` takes them."""
    given = {**{k: v for k, v in call.state.vars.items() if k.startswith("GIT_CONFIG_")}, **call.env}
    out: list[Val] = []
    if not given:
        return out
    for number in range(_PAIRS):
        key, value = given.get(f"GIT_CONFIG_KEY_{number}"), given.get(f"GIT_CONFIG_VALUE_{number}")
        if not isinstance(key, Val):
            break
        text = value.text if isinstance(value, Val) else HOLE
        out.append(Val(f"{key.text}={text}", value.taint if isinstance(value, Val) else key.taint))
    return out


def _files(call: Call) -> list[str]:
    """Configuration files in the order in which they win."""
    walker = call.walker
    out: list[str] = []
    here = walker.cwd(call.state)
    for _ in range(_FOLDERS):
        if not here or not here.startswith("/") or HOLE in here:
            break
        path = here.rstrip("/") + "/.git/config"
        if path in walker.files or walker.facts.exists(path):
            out.append(path)
            break
        if here in ("/", walker.facts.project_root):
            break
        here = here.rpartition("/")[0] or "/"
    home = walker.home_of(call.state)
    return [*out, home + "/.gitconfig", home + "/.config/git/config"]


def aliases(text: str) -> dict[str, str]:
    """The aliases of a configuration file, by lower-case name."""
    out: dict[str, str] = {}
    inside = False
    for line in text.replace("\\\n", "").split("\n"):
        line = line.strip()
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            inside = head.strip().lower() == "alias"
            line = line.strip()
        name, equals, value = line.partition("=")
        if inside and equals and not name.startswith(("#", ";")):
            out[name.strip().lower()] = _value(value.strip())
    return out


def _value(text: str) -> str:
    """A value without its quotes and escapes, and without a comment behind it."""
    out: list[str] = []
    quoted = False
    i = 0
    while i < len(text):
        c = text[i]
        if c == "\\" and i + 1 < len(text):
            out.append({"n": "\n", "t": "\t"}.get(text[i + 1], text[i + 1]))
            i += 1
        elif c == '"':
            quoted = not quoted
        elif c in "#;" and not quoted:
            break
        else:
            out.append(c)
        i += 1
    return "".join(out).strip()
