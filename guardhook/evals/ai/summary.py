"""A run as a short text for a model: what matters most within a budget, secrets taken out before anything is cut.

Steps are seen once and in order. What is kept: the last step that failed, then errors, outputs and decisions, then the others from the beginning.
Only about as many lines are remembered as the budget has room for, however long the run is.
"""

from __future__ import annotations

from guardhook.evals.ai.cleaning import Cleaner, Rows
from guardhook.evals.texts import failed
from guardhook.store import Step, Trace

BUDGET_TOKENS = 3000
BUDGET_CHARS = BUDGET_TOKENS * 4
HEAD_CHARS = 300
PART_CHARS = 200


class Summary:
    """Takes the steps of a run, then gives its text."""

    def __init__(self, trace: Trace, rows: Rows) -> None:
        self._trace = trace
        self._clean = Cleaner(rows)
        self._last_failed: tuple[int, str] | None = None
        self._important = _Shelf()
        self._others = _Shelf()
        self._steps = 0
        self._text: str | None = None
        self.failed = bool(trace.error) or trace.status in ("failed", "timeout")  # whether anything went wrong

    @property
    def secrets(self) -> int:
        """From how many texts something was taken out."""
        return self._clean.secrets

    def step(self, step: Step) -> None:
        self._steps += 1
        bad = failed(step)
        shelf = self._important if bad or step.step_type in ("output", "decision") or step.chosen is not None else self._others  # fmt: skip
        if not bad and shelf.full:
            return
        line = self._line(step)
        shelf.put(step.step_number, line)
        if bad:
            self.failed = True
            self._last_failed = step.step_number, line

    def text(self) -> str:
        """The whole text, at most about BUDGET_TOKENS tokens."""
        if self._text is None:
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        trace = self._trace
        agent = " ".join(filter(None, (trace.agent_name, trace.agent_version)))
        head = [
            f"TRACE {self._clean.plain(trace.id, 80)}: agent {self._clean.plain(agent, 80)}, {trace.status}, {trace.step_count} steps"
            + (f", {trace.effective_duration_ms} ms" if trace.effective_duration_ms is not None else "")
            + (f", {trace.effective_tokens} tokens" if trace.effective_tokens is not None else ""),
            f"INPUT: {self._clean.value(trace.input_json, HEAD_CHARS)}",
            f"OUTPUT: {self._clean.value(trace.output_json, HEAD_CHARS) or '(none)'}",
        ]
        tail = []
        if trace.error:
            tail.append(f"ERROR: {self._clean.plain(trace.error, HEAD_CHARS)}")
        if trace.tags:
            tail.append(f"TAGS: {self._clean.plain(', '.join(map(str, trace.tags)), HEAD_CHARS)}")
        room = BUDGET_CHARS - sum(len(line) + 1 for line in head + tail) - 80
        kept: dict[int, str] = {}
        first = [] if self._last_failed is None else [self._last_failed]
        for number, line in [*first, *self._important.lines, *self._others.lines]:
            if number not in kept and len(line) < room:
                kept[number] = line
                room -= len(line) + 1
        dropped = self._steps - len(kept)
        steps = [line for _, line in sorted(kept.items())]
        if dropped:
            steps.append(f"({dropped} of {self._steps} steps are left out here)")
        return "\n".join([*head, "STEPS:", *steps, *tail])

    def _line(self, step: Step) -> str:
        facts = []
        if step.duration_ms is not None:
            facts.append(f"{step.duration_ms} ms")
        if step.tokens_used is not None:
            facts.append(f"{step.tokens_used} tokens")
        if step.model is not None:
            facts.append(f"model {self._clean.plain(step.model, 60)}")
        line = f"#{step.step_number} {step.step_type} {self._clean.plain(step.name, 80)}"
        if facts:
            line += f" ({', '.join(facts)})"
        given = self._clean.value(step.input_json, PART_CHARS) if step.step_type == "tool_call" else ""
        for name, told in (
            ("input", given),
            ("output", self._clean.value(step.output_json, PART_CHARS)),
            ("decided", self._clean.plain(": ".join(filter(None, (step.chosen, step.rationale))), PART_CHARS)),
            ("error", self._clean.plain(step.error or "", HEAD_CHARS)),
        ):
            if told:
                line += f"\n   {name}: {told}"
        return line


class _Shelf:
    """Lines in order, as many as the budget could hold at all."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self._chars = 0

    @property
    def full(self) -> bool:
        return self._chars > BUDGET_CHARS

    def put(self, number: int, line: str) -> None:
        if not self.full:
            self.lines.append((number, line))
            self._chars += len(line) + 1
