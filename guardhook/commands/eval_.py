"""`guardhook eval`: what recorded runs are worth. Status 1: a run did not pass, or could not be evaluated."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import Refused, fail, say
from guardhook.evals import presets, rubric_file, running, safety
from guardhook.evals.batch import Report
from guardhook.evals.model import Evaluator
from guardhook.evals.running import Keeper
from guardhook.store import Filter, Store, Trace, instants
from guardhook.views.junit import Case

if TYPE_CHECKING:
    from guardhook.evals.ai.judging import Judges
    from guardhook.evals.ai.summary import Summary

SAFETY_RECORD = safety.NAME
AI_PRESETS = ("ai-root-cause", "ai-quality-review", "ai-security-audit", "ai-optimization")
_BUILT_IN = {preset.name: preset for preset in presets.DETERMINISTIC}
NAMES = (*_BUILT_IN, SAFETY_RECORD, *AI_PRESETS)


class _Bar(reading.Number):
    """The bar. Elsewhere an empty number is 0; here that would be a gate which an unset variable leaves open."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | int:
        if isinstance(value, str) and not value.strip():
            self.fail("needs a number between 0 and 1", param, ctx)
        return super().convert(value, param, ctx)


@click.command("eval")
@click.argument("trace_id", metavar="[TRACE]", required=False)
@click.option("--preset", "chosen", multiple=True, metavar="NAME", help=f"One of {', '.join(NAMES)}. Can be repeated.")
@click.option(
    "--all",
    "all_presets",
    is_flag=True,
    help="The three presets that need no model (also without any of these options).",
)
@click.option(
    "--rubric",
    "rubrics",
    multiple=True,
    metavar="FILE",
    help="Criteria of your own (YAML, JSON or TOML). Can be repeated.",
)
@click.option("--ai", is_flag=True, help="Ask a model for all four ai-… presets.")
@click.option(
    "--max-cost", type=reading.Number(least=0, whole=False), metavar="DOLLARS", help="Send nothing that may cost more."
)
@click.option("--fail-under", type=_Bar(least=0, most=1, whole=False), metavar="SCORE", help="Many runs: what each evaluator's average has to reach (0 to 1).")  # fmt: skip
@reading.filters
@click.option("--junit", metavar="FILE", help="Write a JUnit file as well.")
@reading.as_json
@reading.directory
def command(
    trace_id: str | None,
    chosen: tuple[str, ...],
    all_presets: bool,
    rubrics: tuple[str, ...],
    ai: bool,
    max_cost: float | None,
    fail_under: float | None,
    status: str | None,
    agent: str | None,
    tag: str | None,
    session: str | None,
    since: str | None,
    project: str | None,
    junit: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Evaluate a recorded run, or all runs that fit the filters.

    Results are stored beside the run (`guardhook show --evals`). Status 0: everything passed; 1: something did not, or could not be evaluated; 2: wrong
    usage, or no run fits. With --fail-under the averages decide instead of each single result.
    """
    if junit is not None and not junit.strip():
        fail("--junit needs a value", as_json=as_json)
    if junit and not os.access(os.path.dirname(junit) or ".", os.W_OK):  # before models are paid for answers
        fail(f"{junit}: can't be written: no such folder, or it is read-only", as_json=as_json)
    narrow = (status, agent, tag, session, since, project)
    cases: list[Case] | None = [] if junit else None
    try:
        if trace_id is not None and any(value is not None for value in (*narrow, fail_under)):
            fail("name a trace, or give filters and --fail-under for many; not both", as_json=as_json)
        if trace_id is None and all(value is None for value in narrow):
            fail("which run? name a trace, or give filters such as --since 7d", as_json=as_json)
        asked = _Asked(chosen, all_presets, rubrics, ai, as_json)
        if trace_id is not None:
            code = _one(asked, trace_id, max_cost, directory, cases)
        else:
            only = reading.narrowed(
                time.time(), as_json, status=status, agent=agent, tag=tag, session=session, since=since, project=project
            )
            code = _many(asked, only, fail_under, max_cost, directory, cases)
    except BaseException as error:  # whatever ended it, and be it Ctrl-C: an older file must not pass for this run's
        if junit:
            why = error.message if isinstance(error, Refused) else "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)  # fmt: skip
            hints = error.hints if isinstance(error, Refused) else ()
            _write_junit(junit, [*(cases or []), Case("eval", "run", "error", why, list(hints))], as_json)
        raise
    if junit:
        _write_junit(junit, cases or [], as_json)
    if code:
        raise SystemExit(code)


class _Asked:
    """What is to be evaluated with. Ends the command for a preset or rubric that can't be used."""

    def __init__(
        self, chosen: Sequence[str], all_presets: bool, rubrics: Sequence[str], ai: bool, as_json: bool
    ) -> None:
        self.as_json = as_json
        unknown = [name for name in chosen if name not in NAMES]
        if unknown:
            fail(f"no preset {unknown[0]!r}; there are {', '.join(NAMES)}", as_json=as_json)
        if not (chosen or rubrics or ai or all_presets):
            all_presets = True
            if as_json:
                say(f"no evaluator named: using {', '.join(_BUILT_IN)}")
        self.models = tuple(name for name in AI_PRESETS if ai or name in chosen)
        self.record = SAFETY_RECORD in chosen
        self.evaluators: list[Evaluator] = [p for name, p in _BUILT_IN.items() if all_presets or name in chosen]
        for path in rubrics:
            try:
                self.evaluators.append(rubric_file.load(path))
            except rubric_file.BadRubric as error:
                fail(str(error), as_json=as_json)
        names = [e.name for e in self.evaluators] + [SAFETY_RECORD] * self.record + list(self.models)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            fail(f"two evaluators are named {twice!r}; give the rubric another name", as_json=as_json)

    def with_store(self, store: Store, directory: str | None, since_us: int | None) -> list[Evaluator]:
        """All evaluators, now that there is a store. since_us: when the first run began."""
        if not self.record:
            return self.evaluators
        from guardhook.commands.eval_logs import Logs

        folders = resolve(directory)
        return [*self.evaluators, safety.SafetyRecord(store, folders, Logs(folders, since_us))]


def _one(asked: _Asked, trace_id: str, max_cost: float | None, directory: str | None, cases: list[Case] | None) -> int:
    from guardhook.views import evaluation

    as_json = asked.as_json
    judges = _judges(asked, max_cost, directory)
    with reading.opened(directory, as_json) as store:
        trace = store.get(trace_id)
        evaluators = asked.with_store(store, directory, instants.micros(trace.started_at))
        done, summary = _examined(store, trace, evaluators, judges)
        stopped = None
        if judges is not None and summary is not None:
            _announce(judges, judges.estimate(summary), len(judges.applicable(summary)))
            stopped = _judged(judges, trace, summary, done, as_json)
        entries = Keeper(resolve(directory)).keep(trace, done.results)
        if cases is not None:
            cases += evaluation.cases(trace, entries, done.failures)
        for failure in done.failures if as_json or not entries else ():
            say(f"{failure.name}: {failure.why}")
        if not entries:
            fail(
                "no evaluator came to a result",
                hints=[f"{f.name}: {f.why}" for f in done.failures],
                code=1,
                as_json=as_json,
            )
        with reading.heard():
            if as_json:
                reading.print_json([e.as_dict() for e in entries])
            else:
                for line in evaluation.lines(trace, entries, done.failures, reading.width(), reading.paint()):
                    click.echo(line)
        _told(judges)
        if stopped is not None:
            fail(stopped, code=1)
        return int(bool(done.failures) or any(not e.passed for e in entries))


def _many(
    asked: _Asked,
    only: Filter,
    bar: float | None,
    max_cost: float | None,
    directory: str | None,
    cases: list[Case] | None,
) -> int:
    from guardhook.views import evaluation

    as_json = asked.as_json
    judges = _judges(asked, max_cost, directory)
    report = Report(bar)
    with reading.opened(directory, as_json) as store:
        ids, since_us = _matching(store, only, report, as_json)
        progress = evaluation.Bar(len(ids))
        try:
            if judges is not None:
                _estimated(judges, store, ids, as_json)
            keeper, evaluators = Keeper(resolve(directory)), asked.with_store(store, directory, since_us)
            for number, trace in enumerate(_each(store, ids)):
                progress.at(number)
                done, summary = _examined(store, trace, evaluators, judges)
                if judges is not None and summary is not None:
                    report.stopped = _judged(judges, trace, summary, done, as_json)
                entries = keeper.keep(trace, done.results)
                report.add(trace, done.results, done.failures)
                if cases is not None:
                    cases += evaluation.cases(trace, entries, done.failures, alone=bar is None)
                if report.stopped is not None:
                    break
        finally:
            progress.end()
        if cases is not None:
            cases += evaluation.closing_cases(report)
        if not report.produced:
            why = list(dict.fromkeys(f"{e['evaluator_name']}: {e['error']}" for e in report.errors))
            fail("no evaluator came to a result", hints=why[:20], code=1, as_json=as_json)
        with reading.heard():
            if as_json:
                reading.print_json(report.as_dict())
            else:
                for line in evaluation.table(report, reading.width(), reading.paint()):
                    click.echo(line)
        _told(judges)
        return 0 if report.ok else 1


def _matching(store: Store, only: Filter, report: Report, as_json: bool) -> tuple[list[str], int | None]:
    """Ids of the ended runs that match, newest first, and when the first one began. No run is an error: a gate that saw nothing must not be green."""
    ids: list[str] = []
    began: list[int] = []
    for trace in store.iterate(only):
        if trace.parent_trace_id is not None or (trace.status == "running" and only.status != "running"):
            report.left_out += 1
        else:
            ids.append(trace.id)
            us = instants.micros(trace.started_at)
            began += [] if us is None else [us]
            began = [min(began)] if began else []
    if not ids:
        fail(
            "all runs that fit are still running, or forks: there is nothing to evaluate" if report.left_out else "no run fits: there is nothing to evaluate",
            as_json=as_json,
        )  # fmt: skip
    return ids, began[0] if began else None


def _each(store: Store, ids: Sequence[str]) -> Iterator[Trace]:
    for trace_id in ids:
        yield store.get(trace_id)


def _examined(
    store: Store, trace: Trace, evaluators: Sequence[Evaluator], judges: Judges | None
) -> tuple[running.Verdicts, Summary | None]:
    if judges is None:
        return running.examine(store, trace, evaluators), None
    from guardhook.evals.ai.summary import Summary

    summary = Summary(trace, judges.rows)
    return running.examine(store, trace, evaluators, also=summary.step), summary


# --- models --------------------------------------------------------------------------------------------------------


def _judges(asked: _Asked, max_cost: float | None, directory: str | None) -> Judges | None:
    """The models' judgements that were asked for, None when there are none. No provider: the command ends."""
    if not asked.models:
        return None
    from guardhook.evals.ai import cleaning, judging, settings
    from guardhook.evals.ai.presets import BY_NAME
    from guardhook.policy.settings import SettingsError

    try:
        folders = resolve(directory)
        choice, rows = settings.choose(folders), cleaning.rules(folders)
    except settings.NoProvider as error:
        fail(str(error), hints=error.hints, code=1, as_json=asked.as_json)
    except SettingsError as error:
        fail(str(error), as_json=asked.as_json)
    for line in choice.ignored:
        say(f"warning: {line}")
    return judging.Judges(choice, rows, [BY_NAME[name] for name in asked.models], judging.Purse(max_cost))


def _announce(judges: Judges, estimate: float, requests: int) -> None:
    from guardhook.views.text import cost

    if requests:
        say(
            f"asking {judges.choice.model} at {judges.choice.host}: {requests} request(s), up to about {cost(estimate)}"
        )


def _estimated(judges: Judges, store: Store, ids: Sequence[str], as_json: bool) -> None:
    """Looks at all runs before the first request, so that a ceiling is not met half-way."""
    from guardhook.evals.ai import judging

    total, requests = 0.0, 0
    for trace in _each(store, ids):
        _, summary = _examined(store, trace, (), judges)
        if summary is not None:
            total += judges.estimate(summary)
            requests += len(judges.applicable(summary))
    try:
        judges.purse.admit(total)
    except judging.OverBudget as error:
        fail(str(error), code=1, as_json=as_json)
    except judging.NoEstimate as error:
        fail(str(error), as_json=as_json)
    _announce(judges, total, requests)


def _judged(judges: Judges, trace: Trace, summary: Summary, done: running.Verdicts, as_json: bool) -> str | None:
    """Adds the models' results to what there is. Gives why it stopped before its end, when it did."""
    from guardhook.evals.ai import judging

    try:
        results, failures = judges.judge(trace, summary)
    except judging.Overspent as error:
        done.results.extend(error.results)
        done.failures.extend(error.failures)
        return str(error)
    except judging.OverBudget as error:
        if not judges.purse.spent:
            fail(str(error), code=1, as_json=as_json)
        return str(error)
    except judging.NoEstimate as error:
        fail(str(error), as_json=as_json)
    done.results.extend(results)
    done.failures.extend(failures)
    return None


def _told(judges: Judges | None) -> None:
    from guardhook.views.text import cost

    if judges is not None and judges.secrets:
        say(f"secrets were taken out of {judges.secrets} text(s) before they were sent")
    if judges is not None and judges.purse.spent:
        say(f"spent about {cost(judges.purse.spent)}")


def _write_junit(path: str, cases: Sequence[Case], as_json: bool) -> None:
    from guardhook.views import junit

    text = junit.document("guardhook eval", cases)
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path}: can't be written: {error.strerror}", as_json=as_json)
