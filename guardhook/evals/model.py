"""What an evaluator is, and what it says of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from guardhook.store import Step, Trace


class EvaluatorFailed(Exception):
    """An evaluator could not come to a result. The message is for a person."""


@dataclass(frozen=True)
class Criterion:
    """One criterion's outcome. score lies between 0 and 1; details says in words what it rests on; steps are the numbers of the steps that it
    rests on. A critical criterion with a score of 0 fails the whole evaluation, whatever the sum."""

    name: str
    score: float
    weight: float
    details: str
    critical: bool = False
    steps: Sequence[int] = ()
    measured: bool = True  # False: nothing was known, the criterion does not count

    def as_dict(self) -> dict[str, object]:
        out: dict[str, object] = {
            "name": self.name, "score": self.score, "weight": self.weight, "details": self.details,
        }  # fmt: skip
        if self.critical:
            out["critical"] = True
        if self.steps:
            out["steps"] = list(self.steps)
        if not self.measured:
            out["measured"] = False
        return out


@dataclass(frozen=True)
class Result:
    """What an evaluator said of one run. kind is one of guardhook.store.model.EVALUATORS."""

    kind: str
    name: str
    score: float
    passed: bool
    details: dict[str, object] = field(default_factory=dict)

    @property
    def skipped(self) -> bool:
        """Whether the evaluator had nothing to say of this run; such a result counts neither as passed nor as failed."""
        return self.details.get("skipped") is True


class Examination(Protocol):
    """An evaluator at work on one run. Steps come in order, each once."""

    def step(self, step: Step) -> None: ...

    def result(self) -> Result: ...


class Evaluator(Protocol):
    """Something that judges runs. Both methods of its examinations may raise EvaluatorFailed."""

    @property
    def name(self) -> str: ...

    def begin(self, trace: Trace) -> Examination: ...


def rounded(score: float) -> float:
    """A score between 0 and 1 with three decimals, halves rounded up. What is shown is what is compared with a threshold."""
    return math.floor(min(1.0, max(0.0, score)) * 1000 + 0.5 + 1e-9) / 1000


def weighed(kind: str, name: str, threshold: float, criteria: Sequence[Criterion], **more: object) -> Result:
    """The result of criteria by their weights. Passed: the rounded score reaches the threshold and no critical criterion scored 0."""
    counted = [c for c in criteria if c.measured]
    total = sum(c.weight for c in counted)
    score = rounded(sum(c.score * c.weight for c in counted) / total) if total > 0 else 0.0
    fatal = [c.name for c in counted if c.critical and c.score == 0]
    details: dict[str, object] = {"threshold": threshold, "criteria": [c.as_dict() for c in criteria]}
    if fatal:
        details["failed_critical"] = fatal
    return Result(kind, name, score, score >= threshold and not fatal, {**details, **more})
