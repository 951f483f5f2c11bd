"""Many runs added up: per evaluator, how many passed and what they score on average, and whether that reaches a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from guardhook.evals.model import Result, rounded
from guardhook.evals.running import Failure
from guardhook.store import Trace


@dataclass
class Tally:
    """One evaluator over many runs. Skipped results and failures count for no average."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0
    total: float = 0.0
    lowest: float | None = None
    worst: str | None = None  # id of the run with the lowest score

    def add(self, trace: Trace, result: Result) -> None:
        if result.skipped:
            self.skipped += 1
            return
        self.passed += result.passed
        self.failed += not result.passed
        self.total += result.score
        if self.lowest is None or result.score < self.lowest:
            self.lowest, self.worst = result.score, trace.id

    @property
    def average(self) -> float | None:
        """Rounded as scores are; None when nothing was scored."""
        scored = self.passed + self.failed
        return rounded(self.total / scored) if scored else None

    def as_dict(self) -> dict[str, object]:
        return {
            "evaluator_name": self.name, "passed": self.passed, "failed": self.failed, "skipped": self.skipped, "errors": self.errors,
            "average": self.average, "lowest": self.lowest, "worst_trace_id": self.worst,
        }  # fmt: skip


@dataclass
class Report:
    """A batch. bar: each evaluator's average has to reach it; None: every single result has to pass."""

    bar: float | None = None
    traces: int = 0
    left_out: int = 0  # forks and runs that have not ended
    tallies: dict[str, Tally] = field(default_factory=dict)
    results: list[dict[str, object]] = field(default_factory=list)
    errors: list[dict[str, object]] = field(default_factory=list)
    stopped: str | None = None  # why it ended before all runs were evaluated

    def add(self, trace: Trace, results: Sequence[Result], failures: Sequence[Failure]) -> None:
        self.traces += 1
        for result in results:
            self._tally(result.name).add(trace, result)
            row: dict[str, object] = {
                "trace_id": trace.id, "agent_name": trace.agent_name, "evaluator_name": result.name, "score": result.score,
                "passed": result.passed, "skipped": result.skipped,
            }  # fmt: skip
            if not result.passed:  # why, where somebody will ask; the rest is in `show --evals`
                row["details"] = result.details
            self.results.append(row)
        for failure in failures:
            self._tally(failure.name).errors += 1
            self.errors.append({"trace_id": trace.id, "agent_name": trace.agent_name, "evaluator_name": failure.name, "error": failure.why})  # fmt: skip

    def _tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally(name))

    @property
    def produced(self) -> bool:
        """Whether any evaluator came to a result."""
        return bool(self.results)

    @property
    def scored(self) -> bool:
        """Whether any result says something of a run."""
        return any(t.average is not None for t in self.tallies.values())

    def below(self) -> list[Tally]:
        """The evaluators that do not reach the bar."""
        if self.bar is None:
            return [t for t in self.tallies.values() if t.failed]
        return [t for t in self.tallies.values() if t.average is not None and t.average < self.bar]

    @property
    def ok(self) -> bool:
        enough = self.scored if self.bar is not None else self.produced
        return enough and not self.errors and self.stopped is None and not self.below()

    def as_dict(self) -> dict[str, object]:
        """The documented shape of a batch's `--json`."""
        return {
            "traces": self.traces,
            "left_out": self.left_out,
            "fail_under": self.bar,
            "evaluators": [t.as_dict() for t in self.tallies.values()],
            "results": self.results,
            "errors": self.errors,
            "stopped": self.stopped,
            "ok": self.ok,
        }
