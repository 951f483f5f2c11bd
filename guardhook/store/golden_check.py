"""Comparing runs with golden entries: has an agent that did it right before begun to do it differently?

`load` reads a golden file, `Check` takes candidates one at a time and gives a Report. A gate that can't tell anything is `Blind`, never green.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guardhook.core.jsontext import PayloadError, loads
from guardhook.store.errors import StoreError
from guardhook.store.golden import canonical, match_key, summary
from guardhook.store.model import Trace
from guardhook.store.query import Store

DEFAULT_FIELDS = ("step_count", "step_types", "step_names", "tool_inputs", "step_errors", "status")
FIELDS = (*DEFAULT_FIELDS, "model")
_STEP_KEYS = {"step_count": None, "step_types": "step_type", "step_names": "name"}
Entry = dict[str, object]
Steps = list[dict[str, object]]


class Blind(StoreError):
    """The gate can't run, or could not have failed."""


class Divergence(NamedTuple):
    """Where a run is not as its baseline. step_number counts from 1; None for what is about the whole trace."""

    field: str
    step_number: int | None
    golden: object
    candidate: object

    def as_dict(self) -> dict[str, object]:
        out: dict[str, object] = {"field": self.field}
        if self.step_number is not None:
            out["step_number"] = self.step_number
        return {**out, "golden": self.golden, "candidate": self.candidate}


class Result(NamedTuple):
    """One candidate. matched: there is a baseline with its agent and input."""

    trace_id: str
    agent_name: str
    matched: bool
    divergences: list[Divergence]

    @property
    def passed(self) -> bool:
        return self.matched and not self.divergences

    def as_dict(self) -> dict[str, object]:
        return {
            "trace_id": self.trace_id,
            "agent_name": self.agent_name,
            "matched": self.matched,
            "passed": self.passed,
            "divergences": [d.as_dict() for d in self.divergences],
        }


class Report(NamedTuple):
    """What the check found. uncovered: baselines that no run was held against; uncompared: runs whose baselines can't exercise a field asked for."""

    results: list[Result]
    uncovered: list[Entry]
    uncompared: int
    strict: bool

    def count(self, what: str) -> int:
        test = {
            "passed": lambda r: r.passed,
            "failed": lambda r: r.matched and not r.passed,
            "unmatched": lambda r: not r.matched,
        }[what]
        return sum(map(test, self.results))

    @property
    def ok(self) -> bool:
        loose = self.strict and (self.count("unmatched") or self.uncovered)
        return not (self.count("failed") or self.uncompared or loose)

    def as_dict(self) -> dict[str, object]:
        return {
            "results": [r.as_dict() for r in self.results],
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "unmatched": self.count("unmatched"),
            "uncovered": len(self.uncovered),
            "uncompared": self.uncompared,
            "ok": self.ok,
        }


def load(data: bytes) -> list[Entry]:
    """The entries of a golden file. Raises Blind with what is wrong with it."""
    try:
        found = loads(data, bounded=False)
    except (PayloadError, RecursionError) as error:
        raise Blind(f"not a golden file: {error}") from None
    if not isinstance(found, list):
        raise Blind("not a golden file: a list of entries is needed")
    for number, entry in enumerate(found, 1):
        steps = entry.get("steps_summary") if isinstance(entry, dict) else None
        if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
            hint = (
                " (this is an export of format json; export with --format golden)"
                if isinstance(entry, dict) and "steps" in entry
                else ""
            )
            raise Blind(f"entry {number} has no list steps_summary of objects{hint}")
    for number, entry in enumerate(found, 1):
        metadata = entry.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("status"), str):
            raise Blind(f"entry {number} has no metadata.status, so its status can't be compared")
    if not found:
        raise Blind("the golden file is empty: nothing would be compared")
    return found


class Check:
    """Baselines, and candidates held against them. fields: which of FIELDS; named: those asked for by name, which have to be exercised."""

    def __init__(
        self, entries: list[Entry], *, fields: Iterable[str] = DEFAULT_FIELDS, named: bool = False, strict: bool = False
    ) -> None:
        self.fields = tuple(fields)
        self.named = named
        self.strict = strict
        self.results: list[Result] = []
        self._entries = entries
        self._buckets: dict[str, list[int]] = {}
        for number, entry in enumerate(entries):
            key = match_key(entry.get("agent_name"), entry.get("input"))
            if key is not None:
                self._buckets.setdefault(key, []).append(number)
        self._used: set[int] = set()
        self._unexercised: dict[str, int] = {}

    def add(self, store: Store, trace: Trace) -> Result:
        """Holds one run against every baseline with its agent and input; the closest one counts."""
        key = match_key(trace.agent_name, trace.input)
        bucket = self._buckets.get(key, []) if key is not None else []
        best: list[Divergence] | None = None
        if bucket:
            steps = [summary(step) for step in store.steps(trace)]
            for number in bucket:
                found = compare(self._entries[number], steps, trace.status, self.fields)
                if best is None or len(found) < len(best):
                    best = found
            self._used.update(bucket)
            for field in self.fields if self.named else ():
                if not any(_exercises(self._entries[n], field) for n in bucket):
                    self._unexercised[field] = self._unexercised.get(field, 0) + 1
        result = Result(trace.id, trace.agent_name, best is not None, best or [])
        self.results.append(result)
        return result

    def report(self, *, may_be_empty: bool = False) -> Report:
        """The outcome. Raises Blind where no run had a baseline (unless may_be_empty or strict), or a named field could not be exercised
        and nothing regressed.
        """
        found = Report(
            self.results,
            [e for n, e in enumerate(self._entries) if n not in self._used],
            sum(self._unexercised.values()),
            self.strict,
        )
        if not any(r.matched for r in self.results) and not self.strict and not may_be_empty:
            raise Blind("no run has a baseline with its agent and input: nothing was compared")
        if self._unexercised and not found.count("failed"):
            names = ", ".join(f"{f} ({n} run(s))" for f, n in self._unexercised.items())
            raise Blind(f"the baselines say nothing about a field asked for: {names}")
        return found


def compare(entry: Entry, steps: Steps, status: str, fields: Iterable[str]) -> list[Divergence]:
    """The first divergence of each field. Steps are compared by position, as far as both go."""
    golden = _steps(entry)
    out: list[Divergence] = []
    for field in fields:
        if field == "step_count":
            if len(golden) != len(steps):
                out.append(Divergence(field, None, len(golden), len(steps)))
        elif field == "status":
            metadata = entry["metadata"]
            wanted = metadata.get("status") if isinstance(metadata, dict) else None
            if wanted != status:
                out.append(Divergence(field, None, wanted, status))
        else:
            for number, (old, new) in enumerate(zip(golden, steps, strict=False), 1):
                pair = _pair(field, old, new)
                if pair is not None:
                    out.append(Divergence(field, number, *pair))
                    break
    return out


def _pair(field: str, old: dict[str, object], new: dict[str, object]) -> tuple[object, object] | None:
    """What the two steps say where they differ in a field; None where they don't, or the baseline says nothing."""
    key = _STEP_KEYS.get(field)
    if key is not None:
        return None if old.get(key) == new.get(key) else (old.get(key), new.get(key))
    if field == "tool_inputs":
        if old.get("step_type") != "tool_call" or "input" not in old:
            return None
        if new["step_type"] != "tool_call":
            return old["input"], {"replaced_by_step_type": new["step_type"]}
        same = canonical(old["input"]) == canonical(new.get("input"))
        return None if same else (old["input"], new.get("input"))
    if field == "step_errors":  # a failure that is gone is no regression
        return (False, True) if old.get("failed") is False and new["failed"] else None
    wanted = old.get("model")
    return None if wanted is None or wanted == new.get("model") else (wanted, new.get("model"))


def _exercises(entry: Entry, field: str) -> bool:
    """Whether a baseline could show a divergence in this field."""
    steps = _steps(entry)
    if field in ("step_count", "status"):
        return True
    if field in ("step_types", "step_names"):
        return bool(steps)
    if field == "tool_inputs":
        return any(s.get("step_type") == "tool_call" and "input" in s for s in steps)
    if field == "step_errors":
        return any(s.get("failed") is False for s in steps)
    return any(s.get("model") is not None for s in steps)


def _steps(entry: Entry) -> Steps:
    steps = entry["steps_summary"]
    assert isinstance(steps, list)
    return steps
