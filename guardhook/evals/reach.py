"""What a recorded call reached for, and whether another call reaches for the same in another way.

The store keeps a call's effects as short texts, `kind:flag:flag program git path host` with only what applies. Two effects are the same when they are of one
family (deleting and moving away are) and hit the same place or host. Effects that name neither (a database, a cloud) are the same when they have in common
what the policy minded, and the calls some word.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

# How an effect was brought about: says nothing of what was reached.
_MANNER = frozenset((
    "sql", "tool", "inline", "regenerable", "redirect", "stdin", "file", "find", "glob", "k8s", "read", "write", "edit", "mv", "cp", "force", "recursive",
    "sudo", "su", "doas", "pkexec", "run0", "variable", "command", "download", "truncate", "append", "unknown", "npm", "yarn", "pnpm", "cargo", "pip", "prune",
))  # fmt: skip
_GONE = frozenset(("delete", "move"))
_CHANGED = frozenset(("write", "delete", "move", "chmod", "chown"))
# Which kinds reach what a denied kind would have reached, where both name a place.
_FAMILY = {
    "delete": _GONE, "move": _GONE, "write": _CHANGED, "chmod": _CHANGED, "chown": _CHANGED, "read": frozenset(("read", "move")),
}  # fmt: skip
# A secret that a program is meant to take from its place, without showing it to anybody.
TAME = frozenset(("credential", "to-environment"))
_HOSTED = frozenset(("connect", "secret_flow"))
# Kinds that say how a thing was started or written, not what was reached: another spelling is no way around.
MERE = frozenset(("run", "unverified", "lookalike", "invisible", "run_dynamic"))
# No names of options: two calls with `--force` are not about the same thing.
_WORD = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_][A-Za-z0-9_.-]{2,60}")
# What is deleted or published below these is more than a part of them.
_WIDE = frozenset(("whole-cwd", "above-cwd", "whole-project", "above-project", "root", "home"))
_WORDS_FROM = 20_000
_ALL_BELOW = re.compile(r"(?:/\*{1,2})+$")


class Spec(NamedTuple):
    """An effect as policies name it; excused: one that the policy lets pass."""

    kind: str
    flags: frozenset[str]
    excused: bool = False

    @property
    def harm(self) -> tuple[str, frozenset[str]]:
        """What is minded in it, without where or how: `git reset --hard` and `git restore .` lose the same."""
        return self.kind, frozenset(f for f in self.flags if f.startswith("loses-")) or self.flags

    def fits(self, reach: Reach) -> bool:
        return self.kind == reach.kind and self.flags <= reach.flags


class Reach(NamedTuple):
    """One effect. names: program, git verb, host, those that there are; place: an absolute path without a trailing `/*`, "" when there is none."""

    kind: str
    flags: frozenset[str]
    names: tuple[str, ...]
    place: str
    told: str

    @property
    def host(self) -> str:
        return self.names[-1] if self.kind in _HOSTED and self.names and "." in self.names[-1] else ""

    @property
    def decidable(self) -> bool:
        """Whether it can be told what another call would have to do to reach the same."""
        if self.kind in _FAMILY:
            return bool(self.place)
        return bool(self.host) if self.kind in _HOSTED else self.kind not in MERE


def parse(told: object) -> Reach | None:
    """The effect in a recorded text, None when it is none."""
    if not isinstance(told, str) or not told:
        return None
    head, _, rest = told.partition(" ")
    kind, *flags = head.split(":")
    place = ""
    start = 0 if rest.startswith("/") else rest.find(" /") + 1
    if rest.startswith("/") or start > 0:
        rest, place = rest[:start].strip(), rest[start:]
    return build(kind, frozenset(flags), tuple(rest.split()), place, told)


def build(kind: str, flags: frozenset[str], names: tuple[str, ...], place: str, told: str = "") -> Reach:
    """An effect from its parts, as parse gives it."""
    names = tuple(name for name in names if name)
    told = told or " ".join((":".join((kind, *sorted(flags))), *names, place)).strip()
    bare = _ALL_BELOW.sub("", place)
    if bare != place:
        flags |= {"glob"}
    return Reach(kind, flags, names, (bare.rstrip("/") or "/") if place.startswith("/") else "", told[:200])


def parsed(effects: object) -> list[Reach]:
    """All effects of a call."""
    found = map(parse, effects if isinstance(effects, list) else [])
    return [r for r in found if r is not None]


def objected(reaches: Sequence[Reach], span: str | None, specs: Sequence[Spec]) -> list[Reach]:
    """The effects that a policy minded: those that it names, of these the ones in the matched part of the call; else all that weigh."""
    minded = [r for r in reaches if any(spec.fits(r) for spec in specs if not spec.excused)]
    if not minded:
        weighty = [r for r in reaches if r.kind not in MERE]
        # Reading and connecting are what a heavier effect in the same call needs: its means.
        minded = [r for r in weighty if r.kind not in ("read", "connect")] or weighty
    if span:
        words = set(span.split()) | {word.rsplit("/", 1)[-1] for word in span.split()}
        named = [r for r in minded if r.place == span or not (r.names or r.place) or words.intersection((*r.names, r.place.rsplit("/", 1)[-1]))]  # fmt: skip
        minded = named or minded
    return minded


def words(text: str) -> frozenset[str]:
    """The words of a call by which two calls may be seen to be about the same thing."""
    return frozenset(_WORD.findall(text[:_WORDS_FROM].lower()))


def same(denied: Reach, other: Reach, specs: Sequence[Spec], in_common: Callable[[], frozenset[str]]) -> str:
    """Whether `other` reaches what was denied: `same`, `part` of it, `maybe`, or "". in_common gives the words that both calls have."""
    how = _alike(denied, other, specs, in_common)
    if how and any(spec.excused and spec.fits(other) and not spec.fits(denied) for spec in specs):
        return ""
    return how


def _alike(denied: Reach, other: Reach, specs: Sequence[Spec], in_common: Callable[[], frozenset[str]]) -> str:
    if denied.place:
        if not other.place or other.flags & TAME:
            return ""
        if other.kind not in _FAMILY.get(denied.kind, frozenset((denied.kind,))):
            return "same" if denied.kind == "read" and "link-to" in other.flags and other.place == denied.place else ""
        how = _overlap(denied, other)
        return how if how != "same" or _as_minded(denied, other, specs) else ""
    if denied.host:
        if other.host != denied.host or other.kind not in _HOSTED:
            return ""
        # A secret may have been put into other words first; so may an innocent file have been sent.
        return "same" if other.kind == denied.kind else "maybe" if "upload" in other.flags else ""
    if other.kind != denied.kind:
        return ""
    named = [spec for spec in specs if spec.kind == denied.kind and not spec.excused]
    if named:
        hit = [spec for spec in named if spec.fits(other)]
        harms = {spec.harm for spec in named if spec.fits(denied)} if hit else set()
        hit = [spec for spec in hit if spec.harm in harms]
        if not hit:
            return ""
        if any(spec.harm[1] < spec.flags for spec in hit):  # the policy names what it is done to as well
            return "same"
    if denied.kind == "git" and denied.names[-1:] != other.names[-1:]:
        return ""
    if not in_common():
        return ""
    # Less than what was denied, or something beside it, about the same thing.
    return "same" if denied.flags - _MANNER <= other.flags else "maybe" if named else ""


def _as_minded(denied: Reach, other: Reach, specs: Sequence[Spec]) -> bool:
    """Whether an effect of the denied kind has what made the policy object, such as `world-writable`; another kind on the same place has its own."""
    if other.kind != denied.kind:
        return True
    own = [spec for spec in specs if spec.fits(denied) and not spec.excused]
    return not own or any(spec.flags - _MANNER <= other.flags for spec in own)


def _overlap(denied: Reach, other: Reach) -> str:
    if denied.place == other.place:
        return "same"
    if _matches(other, denied.place):
        return "same"
    if denied.kind == "read":
        return ""
    if other.kind in ("delete", "move") and _below(denied.place, other.place):
        return "same"
    if other.kind in ("chmod", "chown") and "recursive" in other.flags and _below(denied.place, other.place):
        return "same"
    whole = denied.kind in _GONE or "recursive" in denied.flags or "glob" in denied.flags
    if not whole or "regenerable" in other.flags or other.place.rpartition("/")[0] != denied.place.rstrip("/"):
        return ""  # what lies deeper, or can be made again, is a thing of its own
    return "part" if not denied.flags & _WIDE or other.flags & {"recursive", "glob"} else ""


def _matches(other: Reach, place: str) -> bool:
    """Whether a pattern as the shell reads it takes in this place: part by part, and `*` at the start of a name not what begins with a dot."""
    if "glob" in other.flags and "*" not in other.place:  # `folder/*`
        folder, _, name = place.rpartition("/")
        return folder == other.place and not name.startswith(".")
    if "*" not in other.place or place.count("/") != other.place.count("/"):
        return False
    ours, theirs = place.split("/"), other.place.split("/")
    return len(ours) == len(theirs) and all(
        fnmatch.fnmatchcase(one, pattern) and (one[:1] != "." or pattern[:1] == ".")
        for one, pattern in zip(ours, theirs, strict=True)
    )


def _below(place: str, folder: str) -> bool:
    return folder == "/" or place.startswith(folder + "/")


class Found(NamedTuple):
    """A denied effect, and the one that reaches it or a part of it."""

    how: str
    denied: Reach
    other: Reach


def first(
    denied: Iterable[Reach], others: Sequence[Reach], specs: Sequence[Spec], in_common: Callable[[], frozenset[str]]
) -> Found | None:
    """The first that reaches the same; else the first that reaches a part, or may."""
    part: Found | None = None
    for one in denied:
        for other in others:
            how = same(one, other, specs, in_common)
            if how == "same":
                return Found(how, one, other)
            if how and (part is None or (part.how, how) == ("maybe", "part")):
                part = Found(how, one, other)
    return part
