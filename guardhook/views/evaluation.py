"""Results of evaluations for people and for continuous integration."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from guardhook.evals.batch import Report, Tally
from guardhook.evals.running import Failure
from guardhook.store import Evaluation, Trace
from guardhook.views.junit import Case
from guardhook.views.text import Paint, cells, cost, count, one_line, pad

if TYPE_CHECKING:
    from guardhook.evals.ai_diff import Analysis

# Fields of details that are told otherwise, or are for programs.
_PLUMBING = frozenset((
    "threshold", "criteria", "failed_critical", "llm_model", "llm_provider", "input_tokens", "output_tokens", "cost_usd", "latency_ms",
    "skipped", "findings_by_line", "limits", "raw",
))  # fmt: skip
_MOST_LINES = 60
_MOST_COLUMNS = 1000  # of one line before it is wrapped


def percent(score: float | None) -> str:
    """A score as people read it: one decimal where it is not whole."""
    return "-" if score is None else f"{score * 100:.1f}".removesuffix(".0") + "%"


def is_skipped(entry: Evaluation) -> bool:
    return _details(entry).get("skipped") is True


def _details(entry: Evaluation) -> Mapping[str, object]:
    found = entry.as_dict()["details"]
    return found if isinstance(found, dict) else {}


# --- one run -------------------------------------------------------------------------------------------------------


def lines(
    trace: Trace, entries: Sequence[Evaluation], failures: Sequence[Failure], width: int, paint: Paint
) -> Iterator[str]:
    """One run's results with what they rest on."""
    yield one_line(f"{trace.id}  {trace.agent_name}", width)
    names = max((cells(one_line(e.evaluator_name, 40)) for e in entries), default=0)
    for entry in entries:
        mark = paint.dim("○") if is_skipped(entry) else paint.green("✔") if entry.passed else paint.red("✘")
        score = "skipped" if is_skipped(entry) else percent(entry.score)
        yield f"{mark} {pad(one_line(entry.evaluator_name, 40), names)}  {score}"
        for line in _body(entry):
            yield from _wrapped(line, width)
    for failure in failures:
        yield f"{paint.red('✘')} {one_line(failure.name, 40)}  no result"
        yield from _wrapped(failure.why, width)
    yield counted(entries)


def _wrapped(line: str, width: int) -> list[str]:
    """A line below a result, whole: what a score rests on must not be cut off."""
    inner = line[len(line) - len(line.lstrip()) :]
    start = " " * (4 + len(line) - len(inner))
    return textwrap.wrap(
        one_line(inner, _MOST_COLUMNS), max(width, 40), initial_indent=start, subsequent_indent=start + "  "
    )


def counted(entries: Sequence[Evaluation]) -> str:
    scored = [e for e in entries if not is_skipped(e)]
    out = f"{sum(e.passed for e in scored)} passed  {sum(not e.passed for e in scored)} failed"
    if scored:
        out += f"  avg score {percent(sum(e.score for e in scored) / len(scored))}"
    if len(scored) < len(entries):
        out += f"  ({len(entries) - len(scored)} skipped)"
    return out


def _body(entry: Evaluation) -> Iterator[str]:
    details = _details(entry)
    told = 0
    everything = isinstance(details.get("findings_by_line"), list)
    for criterion in _tables(details.get("criteria")):
        score = criterion.get("score")
        if score == 1 and not everything:
            continue
        worth = (
            f" {percent(score)}" if isinstance(score, (int, float)) and criterion.get("measured") is not False else ""
        )
        if criterion.get("critical") is True and score == 0:
            worth += ", critical"
        yield f"{criterion.get('name')}{worth}: {criterion.get('details')}{_steps(criterion.get('steps'))}"
    for finding in _tables(details.get("findings_by_line")):
        yield f"  - {finding.get('line')}{_steps(finding.get('steps'))}"
    for name, value in details.items():
        if name in _PLUMBING or value is None or value == [] or is_skipped(entry):
            continue
        for line in _field(name, value):
            told += 1
            if told <= _MOST_LINES:
                yield line
    for limit in _rows(details.get("limits")):
        yield f"  (not seen: {limit})"


def _field(name: str, value: object) -> Iterator[str]:
    label = name.replace("_", " ")
    if isinstance(value, list):
        for item in value:
            yield f"{label}: {_said(item)}"
    else:
        yield f"{label}: {_said(value)}"


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_said(v)}" for k, v in value.items() if v is not None)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _steps(value: object) -> str:
    numbers = [str(n) for n in _rows(value)]
    if not numbers:
        return ""
    shown = ", ".join(numbers[:12]) + (" …" if len(numbers) > 12 else "")
    return f" [step{'s' if len(numbers) > 1 else ''} {shown}]"


def _rows(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _tables(value: object) -> list[dict[str, object]]:
    return [v for v in _rows(value) if isinstance(v, dict)]


def analysis(said: Analysis, width: int, paint: Paint) -> Iterator[str]:
    """What a model said of two runs."""
    yield paint.bold(f"In the model's words (better: {said.better_trace})")
    for line in filter(None, (said.explanation, said.reasoning)):
        yield from _wrapped(line, width)
    for line in said.key_differences:
        yield from _wrapped(f"- {line}", width)
    yield paint.dim(f"    {count(said.tokens_used)} tokens, {cost(said.cost_usd)}")


# --- many runs -----------------------------------------------------------------------------------------------------


def table(report: Report, width: int, paint: Paint) -> Iterator[str]:
    """A batch as a table, one row for each evaluator, and what fails it."""
    tallies = list(report.tallies.values())
    names = min(40, max((cells(one_line(t.name, 40)) for t in tallies), default=0))
    names = max(names, len("Evaluator"))
    yield paint.bold(
        f"  {pad('Evaluator', names)}  {'Passed':>7}  {'Failed':>7}  {'Skipped':>7}  {'Errors':>7}  {'Average':>8}  Lowest"
    )
    below = report.below()
    for tally in tallies:
        bad = tally in below or tally.errors
        mark = paint.red("✘") if bad else paint.dim("○") if tally.average is None else paint.green("✔")
        numbers = "  ".join(f"{n:>7}" for n in (tally.passed, tally.failed, tally.skipped, tally.errors))
        worst = "-" if tally.worst is None else f"{percent(tally.lowest)} {one_line(tally.worst, 20)}"
        yield f"{mark} {pad(one_line(tally.name, 40), names)}  {numbers}  {percent(tally.average):>8}  {worst}"
    for error in report.errors[:10]:
        yield one_line(f"  {error['trace_id']}: {error['evaluator_name']}: {error['error']}", max(width, 60))
    if len(report.errors) > 10:
        yield f"  … {len(report.errors) - 10} more errors"
    yield verdict(report)


def verdict(report: Report) -> str:
    """The batch in one line."""
    said = f"{report.traces} run{'' if report.traces == 1 else 's'}"
    if report.left_out:
        said += f" ({report.left_out} left out: forks, or still running)"
    if report.bar is not None:
        below = report.below()
        short = ", ".join(f"{one_line(t.name, 40)} {percent(t.average)}" for t in below)
        said += f"; below {percent(report.bar)}: {short}" if below else f"; every average reaches {percent(report.bar)}"
    if report.stopped is not None:
        said += f"; stopped: {one_line(report.stopped)}"
    return said


class Bar:
    """Progress on stderr, when that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._on = total > 1 and sys.stderr.isatty()
        self._shown = -1

    def at(self, done: int) -> None:
        now = 100 * done // self._total if self._total else 100
        if self._on and now != self._shown:
            full = 30 * done // self._total
            sys.stderr.write(f"\revaluating [{'#' * full}{'.' * (30 - full)}] {done}/{self._total}")
            sys.stderr.flush()
            self._shown = now

    def end(self) -> None:
        if self._on and self._shown >= 0:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


# --- continuous integration ----------------------------------------------------------------------------------------


def cases(
    trace: Trace, entries: Iterable[Evaluation], failures: Iterable[Failure], *, alone: bool = True
) -> Iterator[Case]:
    """A run's results as JUnit tests, grouped by evaluator. alone: each result decides; else a bar does, and one that did not pass is only told."""
    name = f"{trace.agent_name} {trace.id}"
    for entry in entries:
        if is_skipped(entry):
            yield Case(entry.evaluator_name, name, "skipped", str(_details(entry).get("reason") or "nothing to judge"))
        elif entry.passed:
            yield Case(entry.evaluator_name, name)
        else:
            threshold = _details(entry).get("threshold")
            told = f"score {percent(entry.score)}" + (
                f", threshold {percent(threshold)}" if isinstance(threshold, (int, float)) else ""
            )
            yield Case(entry.evaluator_name, name, "failure" if alone else "passed", told, list(_body(entry)))
    for failure in failures:
        yield Case(failure.name, name, "error", failure.why)


def closing_cases(report: Report) -> Iterator[Case]:
    """The bar as one test for each evaluator, and why the batch ended early: the file says no when the status does."""
    if report.stopped is not None:
        yield Case("eval", "run", "error", report.stopped)
    if report.bar is None:
        return
    if not report.scored:
        yield Case("fail-under", "any", "failure", "nothing was scored")
    below: list[Tally] = report.below()
    for tally in report.tallies.values():
        if tally in below:
            yield Case(
                "fail-under", tally.name, "failure", f"average {percent(tally.average)}, below {percent(report.bar)}"
            )
        else:
            yield Case("fail-under", tally.name)
