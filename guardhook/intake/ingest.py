"""Whole traces from outside into the journal: each one checked, then written with one write or not at all.

A trace keeps its id where it is free; else it gets a new one, and the forks of it that follow in the same input are forks of the new one. Evaluations
come along. Secrets are taken out as hooks do.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.intake import bare, ingest_check
from guardhook.intake.documents import Item
from guardhook.intake.recording import project_of
from guardhook.store import Filter, Missing, Store, StoreError, open_store, protocol
from guardhook.store.append import Appender
from guardhook.store.given import structured
from guardhook.store.model import EVALUATORS, make_id

FAULTS_MOST = 200
DIALECT = "ingest"
Line = tuple[str, dict[str, object]]
_START = ("agent_name", "agent_version", "trigger", "session_id", "started_at", "input", "forked_from_step")
_END = ("ended_at", "output", "error", "total_duration_ms", "total_tokens", "total_cost_usd")
_STEP = ("step_number", "step_type", "name", "input", "output", "started_at", "duration_ms", "tokens_used", "model", "error", "decision")  # fmt: skip


class Problem(NamedTuple):
    """Something wrong: with a line, or a field of a trace. trace counts from 0."""

    trace: int
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        where = f"Trace[{self.trace}]" + (f".{self.field}" if self.field else "")
        return f"{where}: {self.message}" + ("" if self.line is None else f" (line {self.line})")


class Report:
    """What an ingest came to."""

    def __init__(self) -> None:
        self.read = 0
        self.inserted: list[str] = []  # ids of the first traces
        self.traces = 0
        self.steps = 0
        self.faults = 0  # of validation, unreadable lines included
        self.failures = 0  # traces that could not be written
        self.problems: list[Problem] = []
        self.forks = 0
        self.orphans = 0  # forks whose original is unknown here
        self.evals = 0
        self.evals_lost = 0
        self.renamed = 0  # whose id was taken

    def fault(self, problem: Problem, count: int = 1) -> None:
        self.faults += count
        if len(self.problems) < FAULTS_MOST:
            self.problems.append(problem)


class Ingest:
    """Takes traces, one after the other. Use as a context. With dry_run nothing is written, and no folder made.

    root: the project of traces that do not say where they ran. told: called with each problem as it is found.
    """

    def __init__(
        self,
        folders: Folders,
        *,
        tags: Sequence[str] = (),
        dry_run: bool = False,
        redaction: str = "redacted",
        root: str | None = None,
        told: Callable[[Problem], None] = lambda problem: None,
    ) -> None:
        self.report = Report()
        self._folders = folders
        self._tags = list(tags)
        self._dry = dry_run
        self._root = root
        self._told = told
        self._bare = redaction if redaction in bare.MODES else None
        self._appender = Appender(folders, dialect=DIALECT, redaction="redacted" if self._bare else redaction)
        self._store: Store | None = None
        self._asked = False
        self._ids: dict[str, str] = {}  # id in the input -> id in the store

    def __enter__(self) -> Ingest:
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()

    def take(self, item: Item) -> None:
        """One value of the input, whose steps are let go of as they are written. Never raises for what it is."""
        report = self.report
        report.read += 1
        if item.problem is not None:
            self._fault(Problem(item.place, item.line, "", item.problem))
            return
        faults = ingest_check.check(item.value)
        for field, message in faults.kept:
            self._fault(Problem(item.place, item.line, field, message))
        report.faults += faults.count - len(faults.kept)
        if faults.count or not isinstance(item.value, dict):
            return
        self._insert(item, item.value)

    def _fault(self, problem: Problem) -> None:
        self.report.fault(problem)
        self._told(problem)

    def _insert(self, item: Item, trace: dict[str, object]) -> None:
        report = self.report
        name = self._name(trace)
        parent = self._parent(trace)
        evals = list(_evals(trace, report))
        steps = trace.get("steps")
        number = len(steps) if isinstance(steps, list) else 0
        if not self._dry:
            lines = self._lines(trace, parent, steps if isinstance(steps, list) else [], evals)
            if (mode := self._bare) is not None:
                lines = ((kind, bare.bare(event, mode)[0]) for kind, event in lines)
            try:
                self._appender.put(name, lines, opens=True, whole=True, root=self._root)
            except StoreError as error:
                report.failures += 1
                problem = Problem(item.place, item.line, "", f"could not be written: {error.message}")
                report.problems.append(problem)
                self._told(problem)
                return
        given = trace.get("id")
        if isinstance(given, str):
            report.renamed += given != name and protocol.id_problem(given) is None
            self._ids[given] = name
        self._ids.setdefault(name, name)
        report.traces += 1
        report.steps += number
        report.evals += len(evals)
        if len(report.inserted) < FAULTS_MOST:
            report.inserted.append(name)

    # --- ids ----------------------------------------------------------------------------------------------------

    def _name(self, trace: dict[str, object]) -> str:
        given = trace.get("id")
        if isinstance(given, str) and protocol.id_problem(given) is None and not self._there(given):
            return given
        return make_id("trc", uuid.uuid4().hex)

    def _there(self, name: str) -> bool:
        """Whether this store, or this input until now, has a trace of this id."""
        if name in self._ids:
            return True
        if not self._asked:
            self._asked = True
            try:
                self._store = open_store(self._folders)
            except Missing:
                pass
        return self._store is not None and bool(self._store.traces(Filter(ids=(name,)), limit=1).total)

    def _parent(self, trace: dict[str, object]) -> str | None:
        parent = trace.get("parent_trace_id")
        if not isinstance(parent, str) or protocol.id_problem(parent) is not None:
            return None
        self.report.forks += 1
        self.report.orphans += not self._there(parent)
        return self._ids.get(parent, parent)

    # --- lines --------------------------------------------------------------------------------------------------

    def _lines(
        self, trace: dict[str, object], parent: str | None, steps: list[object], evals: list[dict[str, object]]
    ) -> Iterator[Line]:
        start: dict[str, object] = {name: trace[name] for name in _START if trace.get(name) is not None}
        end: dict[str, object] = {name: trace[name] for name in _END if trace.get(name) is not None}
        tags = trace.get("tags")
        start["tags"] = [*(tags if isinstance(tags, list) else ()), *self._tags]
        start["metadata"] = metadata = _metadata(trace)
        cwd = metadata.get("cwd")
        if isinstance(cwd, str) and cwd.startswith("/"):
            start["project"] = project_of(cwd)
        if parent is not None:
            start["parent_trace_id"] = parent
        status = trace.get("status") or ("completed" if trace.get("ended_at") else "running")
        if status == "running":
            start = {**end, **start, "status": status}
        yield "trace.start", start
        for index, step in enumerate(steps):
            assert isinstance(step, dict)
            yield "trace.step", _step(step)
            steps[index] = None  # written now, and it may be large
        for event in evals:
            yield "eval.result", event
        if status != "running":
            # The last line says how it ended: a trace of which only a part could be written is left running.
            yield "trace.end", {"ended_at": None, **end, "status": status}


def _step(step: dict[str, object]) -> dict[str, object]:
    event: dict[str, object] = {name: step[name] for name in _STEP if step.get(name) is not None}
    event["ended_at"] = step.get("ended_at")
    event["metadata"] = _metadata(step)
    for name in ingest_check.REFERENCES:
        value = ingest_check.reference(step, name)
        if value is not None:
            event[name] = value
    if isinstance(step.get("snapshot"), dict):
        event["snapshot"] = step["snapshot"]
    return event


def _metadata(owner: dict[str, object]) -> dict[str, object]:
    """The metadata; a value that is no object is kept under `value`."""
    found = structured(owner.get("metadata"))
    return found if isinstance(found, dict) else {} if found is None else {"value": found}


def _evals(trace: dict[str, object], report: Report) -> Iterator[dict[str, object]]:
    """Evaluations that can be kept; the others are counted."""
    listed = trace.get("evals")
    for found in listed if isinstance(listed, list) else ():
        if (
            isinstance(found, dict)
            and found.get("evaluator_type") in EVALUATORS
            and isinstance(found.get("evaluator_name"), str)
            and found["evaluator_name"]
            and type(found.get("score")) in (int, float)
        ):
            names = ("evaluator_type", "evaluator_name", "score", "passed", "details", "evaluated_at")
            yield {name: found[name] for name in names if found.get(name) is not None}
        else:
            report.evals_lost += 1
