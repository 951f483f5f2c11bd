"""Verdicts and their lattice: deny > require_review > warn > allow."""

from __future__ import annotations

# Strictness of an action; the strictest match wins.
RANK = {"allow": 0, "warn": 1, "require_review": 2, "deny": 3}
BLOCKING = frozenset(("deny", "require_review"))


class Match:
    """One policy that matched, and why."""

    __slots__ = ("action", "effect", "layer", "lookalike", "policy", "reason", "span", "suggest", "why")

    def __init__(
        self,
        policy: str,
        action: str,
        layer: str,
        reason: str,
        suggest: str,
        why: str,
        span: str | None = None,
        lookalike: bool = False,
        effect: object = None,
    ) -> None:
        self.policy = policy  # policy name
        self.action = action
        self.layer = layer  # shipped, system, user, project
        self.reason = reason  # the policy's own words for a person
        self.suggest = suggest  # what to do instead, or ""
        self.why = why  # which keys matched, for `guard test` and `explain`
        self.span = span  # the matched text, at most limits.SPAN_CHARS
        self.lookalike = lookalike  # only the folded form matched
        self.effect = effect


class Verdict:
    """What the gate decided about one event."""

    __slots__ = ("action", "cause", "degraded", "layer", "matches", "mode", "policy", "reason", "set", "span", "suggest", "us")  # fmt: skip

    def __init__(self, action: str, reason: str = "", policy: str | None = None) -> None:
        self.action = action  # allow (no objection), warn, require_review, deny
        self.policy = policy  # the policy that is cited, None for a fault or no match
        self.reason = reason
        self.suggest = ""
        self.layer: str | None = None
        self.span: str | None = None
        self.set: str | None = None  # hash of the policy set that judged
        self.mode = "enforce"  # enforce, observe, paused
        self.cause = "policy"  # policy, or the kind of fault: payload, unknown, policies, journal, internal, …
        self.degraded: str | None = None  # what was missing while judging, for the record
        self.matches: list[Match] = []
        self.us = 0  # microseconds that judging took

    def cite(self, match: Match) -> None:
        """Makes this the verdict of one match."""
        self.action = match.action
        self.policy = match.policy
        self.reason = match.reason
        self.suggest = match.suggest
        self.layer = match.layer
        self.span = match.span


class Answer:
    """What is handed to the harness: bytes on the two streams and an exit status."""

    __slots__ = ("exit", "stderr", "stdout")

    def __init__(self, exit: int, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.exit = exit
        self.stdout = stdout
        self.stderr = stderr

    def __repr__(self) -> str:
        return f"Answer({self.exit}, {self.stdout!r}, {self.stderr!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and (self.exit, self.stdout, self.stderr) == (
            other.exit,
            other.stdout,
            other.stderr,
        )

    __hash__ = None  # type: ignore[assignment]


SILENT = Answer(0)


def strictest(matches: list[Match]) -> Match | None:
    """The match that decides: the strictest action, and among equals the first one given.

    Callers hand the matches over in order of priority (high to low), then name.
    """
    best: Match | None = None
    for match in matches:
        if best is None or RANK[match.action] > RANK[best.action]:
            best = match
    return best
