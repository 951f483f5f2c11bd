"""Putting evaluators to a run, and storing what they say."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.evals.model import Evaluator, EvaluatorFailed, Examination, Result
from guardhook.store import Appender, Evaluation, Step, Store, StoreError, Trace, instants
from guardhook.store.columns import json_text
from guardhook.store.model import make_id


class Failure(NamedTuple):
    """An evaluator that came to no result, and why."""

    name: str
    why: str


class Verdicts(NamedTuple):
    """What evaluators said of one run."""

    results: list[Result]
    failures: list[Failure]


class _Watching:
    """Examinations that are still at work; one that fails is dropped, the others go on."""

    def __init__(self, evaluators: Sequence[Evaluator], trace: Trace) -> None:
        self.failures: list[Failure] = []
        self._active: list[tuple[str, Examination]] = []
        for evaluator in evaluators:
            try:
                self._active.append((evaluator.name, evaluator.begin(trace)))
            except StoreError:
                raise
            except Exception as error:
                self.failures.append(Failure(evaluator.name, _why(error)))

    def step(self, step: Step) -> None:
        failed = False
        for name, examination in self._active:
            try:
                examination.step(step)
            except Exception as error:
                self.failures.append(Failure(name, _why(error)))
                failed = True
        if failed:
            gone = {f.name for f in self.failures}
            self._active = [pair for pair in self._active if pair[0] not in gone]

    def results(self) -> list[Result]:
        found = []
        for name, examination in self._active:
            try:
                found.append(examination.result())
            except Exception as error:
                self.failures.append(Failure(name, _why(error)))
        return found


def _why(error: Exception) -> str:
    """An evaluator's own fault must not keep the others from their result, nor end in a traceback."""
    return (
        str(error)
        if isinstance(error, EvaluatorFailed)
        else f"a fault of guardhook's own: {type(error).__name__}: {str(error)[:200]}"
    )


def examine(
    store: Store, trace: Trace, evaluators: Sequence[Evaluator], *, also: Callable[[Step], object] | None = None
) -> Verdicts:
    """What the evaluators say of a run, in their order. Its steps are read once, one at a time; also is shown each of them, too."""
    watching = _Watching(evaluators, trace)
    for step in store.steps(trace):
        watching.step(step)
        if also is not None:
            also(step)
    return Verdicts(watching.results(), watching.failures)


class Keeper:
    """Stores results as `eval.result` lines of the journal, and gives them as the store will."""

    def __init__(self, folders: Folders) -> None:
        self._appender = Appender(folders, dialect="eval")

    def keep(self, trace: Trace, results: Sequence[Result]) -> list[Evaluation]:
        """Raises Locked and Unusable."""
        kept, lines = [], []
        for result in results:
            us = time.time_ns() // 1000
            made = make_id("evl", trace.id, result.name, str(us), os.urandom(8).hex())
            event: dict[str, object] = {
                "id": made,
                "evaluator_type": result.kind,
                "evaluator_name": result.name,
                "score": result.score,
                "passed": result.passed,
                "details": result.details,
                "evaluated_at": instants.iso_ms(us),
            }
            lines.append(("eval.result", event))
            kept.append(Evaluation(
                made, trace.id, result.kind, result.name, result.score, result.passed, json_text(result.details), str(event["evaluated_at"])
            ))  # fmt: skip
        if lines:
            self._appender.put(trace.id, lines)
        return kept
