"""A small stand-in for the shipped policies, so that the corpus can be judged by effects alone.

Each rule is `(name, predicate on one effect)`. It shows policy authors which flags and classes tell the cases apart.
"""

from __future__ import annotations

from collections.abc import Callable

from guardhook.core.effect import Effect

Rule = tuple[str, Callable[[Effect], bool]]


def _deletes(e: Effect) -> bool:
    if e.kind != "delete" or "empty-only" in e.flags:
        return False
    classes, flags = e.path_classes, e.flags
    if classes & {"root", "system", "home", "device"}:
        return not ("regenerable" in flags and "filtered" in flags)
    if "whole-project" in flags and "filtered" not in flags:
        return True
    if {"whole-cwd", "recursive"} <= flags and not flags & {"filtered", "regenerable"} and "tmp" not in classes:
        return True
    if "project_critical" in classes and "git-dir" in flags:
        return True
    if "secret" in classes and "home_child" in classes:
        return True
    return "recursive" in flags and bool(classes & {"home_child", "outside"}) and "regenerable" not in flags


def _writes(e: Effect) -> bool:
    if e.kind not in ("write", "move", "chmod", "chown"):
        return False
    classes, flags = e.path_classes, e.flags
    if "device" in classes:
        return True
    if e.kind in ("chmod", "chown"):
        return bool(classes & {"root", "system", "home"}) and bool(
            flags & {"recursive", "world-writable", "777", "no-access", "attributes"}
        )
    if e.kind == "move":
        return bool(classes & {"root", "system", "home"})
    return bool(classes & {"root", "system"}) and not flags & {"mkdir", "append"}


_GIT = frozenset((
    "loses-uncommitted", "loses-commits", "loses-remote", "loses-stash", "loses-reflog", "loses-branches",
    "loses-untracked", "force-push", "hooks-bypass", "mirror", "config-program",
))  # fmt: skip
_PLAIN_PRIVILEGE = frozenset(("sudo", "doas", "as-root", "as-other", "su", "pkexec", "namespace", "chroot"))

RULES: tuple[Rule, ...] = (
    ("delete", _deletes),
    ("write", _writes),
    ("git", lambda e: e.kind == "git" and bool(e.flags & _GIT) and "dry-run" not in e.flags),
    ("fetched", lambda e: e.kind == "run_fetched"),
    ("decoded", lambda e: e.kind == "run_decoded"),
    ("dynamic", lambda e: e.kind == "run_dynamic" and ("known-variable" not in e.flags or "destructive-arguments" in e.flags)),
    ("secret-read", lambda e: e.kind == "read" and "secret" in e.path_classes),
    ("secret-flow", lambda e: e.kind == "secret_flow" and "local" not in e.flags),
    ("metadata", lambda e: e.kind == "connect" and "metadata" in e.flags),
    ("guard", lambda e: e.kind == "guard_change"),
    ("fork-bomb", lambda e: e.kind == "process" and "fork-bomb" in e.flags),
    ("stop", lambda e: e.kind == "process" and bool(e.flags & {"shutdown", "everything", "init", "vital", "security"})),
    ("privilege", lambda e: e.kind == "privilege" and bool(e.flags - _PLAIN_PRIVILEGE)),
    ("persist", lambda e: e.kind == "persist"),
    ("cloud", lambda e: e.kind == "cloud" and bool(e.flags & {"delete", "destroy", "apply", "drain", "to-zero", "all"}) and "dry-run" not in e.flags),
    ("database", lambda e: e.kind == "database" and bool(e.flags & {"drop", "truncate", "no-where", "everything", "down"})),
    ("publish", lambda e: e.kind == "publish" and "dry-run" not in e.flags),
    ("registry", lambda e: e.kind == "run" and bool(e.flags & {"other-registry", "from-url"})),
    ("interactive", lambda e: e.kind == "run" and "interactive" in e.flags),
    ("lookalike", lambda e: e.kind == "lookalike"),
    ("invisible", lambda e: e.kind == "invisible" and bool(e.flags & {"bidi", "tag", "zero-width", "nul", "control"})),
    ("unverified", lambda e: e.kind == "unverified"),
)  # fmt: skip


def flagged(effects: list[Effect]) -> list[str]:
    """The names of the rules that fire."""
    return [name for name, rule in RULES if any(rule(e) for e in effects)]
