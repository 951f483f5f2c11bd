"""Rubrics of the user's own at work: each criterion is a pattern that must, or must not, occur.

`expected = true` searches what came out: the run's output and the outputs of its steps. `expected = false` searches that and what went in: the run's
input and error, and every step's name, input and error. Each text is searched on its own, ignoring case, in its JSON form and without escapes.
The pattern is the rubric's, the text the agent's: time is bounded, and running out of it is an error, never a pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from guardhook.evals.model import Criterion, EvaluatorFailed, Result, weighed
from guardhook.evals.texts import forms
from guardhook.store import Step, Trace

KIND = "rubric"
SEARCH_SECONDS = 2.0  # processor time of one search
ALL_SECONDS = 10.0  # of all searches in one run …
CHAR_SECONDS = (
    1e-7  # … and for each character and criterion: a harmless pattern takes a tenth of that, however long the run
)


@dataclass(frozen=True)
class Check:
    """One criterion: a compiled pattern (see guardhook.policy.regexes) and whether it is to be found."""

    name: str
    pattern: Any
    source: str
    expected: bool
    weight: float


@dataclass(frozen=True)
class Rubric:
    """A rubric as loaded by guardhook.evals.rubric_file."""

    name: str
    threshold: float
    checks: Sequence[Check]

    def begin(self, trace: Trace) -> _Examination:
        return _Examination(self, trace)


class _Examination:
    def __init__(self, rubric: Rubric, trace: Trace) -> None:
        self._rubric = rubric
        self._open = list(rubric.checks)  # not found so far
        self._found: dict[str, tuple[str, int | None]] = {}
        self._left = ALL_SECONDS
        self._search("the run's output", None, forms(trace.output_json), out=True)
        self._search("the run's input", None, forms(trace.input_json))
        self._search("the run's error", None, (trace.error or "",))

    def step(self, step: Step) -> None:
        if not self._open:
            return
        number = step.step_number
        self._search(f"the output of step {number}", number, forms(step.output_json), out=True)
        self._search(f"the name of step {number}", number, (step.name,))
        self._search(f"the input of step {number}", number, forms(step.input_json))
        if step.error:
            self._search(f"the error of step {number}", number, (step.error,))

    def _search(self, where: str, number: int | None, texts: Iterable[str], *, out: bool = False) -> None:
        started = time.process_time()
        for text in texts:
            if not text:
                continue
            wanted = [c for c in self._open if out or not c.expected]
            hit = [c for c in wanted if self._matches(c, text, where)]
            self._left += len(wanted) * len(text) * CHAR_SECONDS
            for check in hit:
                self._found[check.name] = (where, number)
                self._open.remove(check)
        self._left -= time.process_time() - started
        if self._left < 0:
            raise EvaluatorFailed(f"the patterns take too long on this run (up to {where}); make them simpler")

    def _matches(self, check: Check, text: str, where: str) -> bool:
        try:
            return check.pattern.search(text, timeout=SEARCH_SECONDS) is not None
        except (TimeoutError, MemoryError):
            raise EvaluatorFailed(
                f"criterion {check.name!r}: the pattern takes too long on {where}; write it without nested or neighbouring repeats"
            ) from None

    def result(self) -> Result:
        criteria = []
        for check in self._rubric.checks:
            hit = self._found.get(check.name)
            score = float((hit is not None) == check.expected)
            told = f"found in {hit[0]}" if hit is not None else "not found"
            if not score:
                told += ", but it must occur" if check.expected else ", but it must not occur"
            steps = [hit[1]] if hit is not None and hit[1] is not None else []
            criteria.append(Criterion(check.name, score, check.weight, told, steps=steps))
        return weighed(KIND, self._rubric.name, self._rubric.threshold, criteria)
