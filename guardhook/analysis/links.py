"""Links on the way: a path that leads through a symbolic link is also a path to where the link points.

A link that an earlier call made (or a repository brought) must not turn a secret, a system folder or guardhook's own
files into a harmless name. Only what exists on disk is asked, within the budget of the facts; a place inside the
project that is reached by another name stays what it is.
"""

from __future__ import annotations

from guardhook.analysis.ground import Ground
from guardhook.analysis.paths import Place, classify
from guardhook.analysis.targets import note_write
from guardhook.analysis.values import MARKS

# A name in these classes is worth telling apart from the name that was used.
_WORTH = frozenset(("secret", "guard", "system", "device", "root", "home", "project_critical"))
# These act on the name itself, not on what it points to: only the folders above it are followed.
_ON_NAME = frozenset(("delete", "move"))
_CHANGES = frozenset(("write", "delete", "chmod", "chown", "move"))
_MOST = 32  # paths of one call that are looked at


def follow(walker: Ground) -> None:
    """Adds, for each path effect behind a link, the effect on the place that it really reaches (flag `link`)."""
    facts = walker.facts
    seen: dict[tuple[str, str], None] = {}
    root: str | None = None
    for effect in list(walker.effects):
        kind, path = effect.kind, effect.path
        if (kind != "read" and kind not in _CHANGES) or path[:1] != "/" or not MARKS.isdisjoint(path):
            continue
        if effect.flags & {"remote", "container"} or (kind, path) in seen:
            continue
        if len(seen) >= _MOST:
            return
        seen[(kind, path)] = None
        if kind in _ON_NAME:
            folder, _, name = path.rpartition("/")
            real = (facts.realpath_prefix(folder).rstrip("/") if folder else "") + "/" + name
        else:
            real = facts.realpath_prefix(path)
        if real == path:
            continue
        if root is None:
            root = facts.realpath_prefix(facts.project_root) if facts.project_root else ""
        classes, more = classify(real, facts)
        new = classes - effect.path_classes
        if root and (real == root or real.startswith(root + "/")):
            new &= frozenset(("secret", "guard"))
        if not new & _WORTH:
            continue
        flags = effect.flags - {"regenerable", "top-level", "home-top"} | more | {"link"}
        if kind == "read":
            walker.emit("read", path=real, path_classes=classes, flags=flags, span=effect.span)
        else:
            note_write(walker, kind, Place(real, classes, flags), flags, effect.span)
