"""Putting the models' judgements to runs, within a budget that is checked before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from guardhook.evals.ai import cleaning, framing, prices, reply
from guardhook.evals.ai.cleaning import Rows
from guardhook.evals.ai.presets import Preset
from guardhook.evals.ai.provider import ProviderError, Question
from guardhook.evals.ai.settings import Choice
from guardhook.evals.ai.summary import Summary
from guardhook.evals.ai.transport import Answered, Patience, ask
from guardhook.evals.model import Result, rounded
from guardhook.evals.running import Failure
from guardhook.store import Trace

KIND = "llm_judge"
OVERHEAD_TOKENS = 320  # instructions around a summary
SYSTEM = "You review recordings of coding agents. Be exact, and claim nothing that the recording does not show. "


class OverBudget(Exception):
    """The ceiling is, or would be, exceeded. The message is for a person."""


class NoEstimate(Exception):
    """What a request may cost can't be told."""


class Purse:
    """What may be spent and what was. Dollars; ceiling None: no limit."""

    def __init__(self, ceiling: float | None = None) -> None:
        self.ceiling = ceiling
        self.spent = 0.0

    def admit(self, estimate: float) -> None:
        """Raises OverBudget when the estimate does not fit any more, NoEstimate when it is no number."""
        if not math.isfinite(estimate):
            raise NoEstimate("what the requests may cost can't be estimated, so nothing is sent")
        if self.ceiling is not None and self.spent + estimate > self.ceiling:
            so_far = f" (spent so far: ${self.spent:.6f})" if self.spent else ""
            raise OverBudget(
                f"this may cost ${estimate:.6f}, and --max-cost is ${self.ceiling:g}{so_far}; nothing is sent"
            )

    def pay(self, cost: float) -> None:
        self.spent += cost

    def check(self) -> None:
        """Raises OverBudget when more was spent than allowed: an answer may cost more than it was thought to."""
        if self.ceiling is not None and self.spent > self.ceiling:
            raise OverBudget(f"${self.spent:.6f} were spent, and --max-cost is ${self.ceiling:g}; stopped")


class Judges:
    """The judgements asked for, by one provider, out of one purse."""

    def __init__(
        self, choice: Choice, rows: Rows, presets: Sequence[Preset], purse: Purse, patience: Patience | None = None
    ) -> None:
        self.choice = choice
        self.rows = rows
        self.presets = tuple(presets)
        self.purse = purse
        self.secrets = 0  # texts from which secrets were taken before sending
        self._patience = patience or Patience()

    def applicable(self, summary: Summary) -> list[Preset]:
        return [p for p in self.presets if summary.failed or not p.only_failed]

    def estimate(self, summary: Summary) -> float:
        """What judging one run may cost, in dollars."""
        return len(self.applicable(summary)) * estimated(self.choice, summary.text())

    def judge(self, trace: Trace, summary: Summary) -> tuple[list[Result], list[Failure]]:
        """Asks for each judgement in turn. A provider that fails is told as a failure.

        Raises OverBudget and NoEstimate before anything is sent, Overspent with what there is when the ceiling is passed on the way.
        """
        text = summary.text()
        self.secrets += summary.secrets
        applicable = self.applicable(summary)
        self.purse.admit(len(applicable) * estimated(self.choice, text))
        results, failures = [], []
        for preset in self.presets:
            if preset not in applicable:
                results.append(_skipped(preset))
                continue
            try:
                results.append(self._one(preset, text, summary.secrets))
            except ProviderError as error:
                self.purse.pay(error.billed * estimated(self.choice, text))
                failures.append(Failure(preset.name, str(error)))
            try:
                self.purse.check()
            except OverBudget as error:
                raise Overspent(str(error), results, failures) from None
        return results, failures

    def _one(self, preset: Preset, text: str, secrets: int) -> Result:
        frame = framing.Frame()
        asked = Question(SYSTEM + frame.standing, f"{preset.task}\n\n{frame.around(text)}", self.choice.max_tokens)
        answered = ask(self.choice, asked, self._patience, self.rows)
        cost, bill = billed(self.choice, asked, answered)
        self.purse.pay(cost + answered.billed * estimated(self.choice, text))
        details: dict[str, object] = {"threshold": preset.threshold}
        found = reply.found_object(answered.reply.text)
        if found is None:
            score = 0.0
            details["error"] = "the reply holds no JSON object" + (
                "; it was cut off, raise ai.max_tokens" if answered.reply.cut else ""
            )
            details["raw"] = cleaning.answer(answered.reply.text, self.rows, self.choice.key)[: reply.RAW_CHARS]
        else:
            score, more = preset.read(found)
            details.update(cleaning.answer(more, self.rows, self.choice.key))
        if secrets:
            details["secrets_removed"] = secrets
        details.update(bill)
        score = rounded(score)
        return Result(KIND, preset.name, score, found is not None and score >= preset.threshold, details)


class Overspent(OverBudget):
    """The ceiling was passed on the way. results and failures are what there is by then."""

    def __init__(self, message: str, results: list[Result], failures: list[Failure]) -> None:
        super().__init__(message)
        self.results = results
        self.failures = failures


def _skipped(preset: Preset) -> Result:
    details: dict[str, object] = {
        "threshold": preset.threshold,
        "skipped": True,
        "reason": "nothing failed in this run",
    }
    return Result(KIND, preset.name, 1.0, True, details)


def estimated(choice: Choice, text: str) -> float:
    """What one question about this text may cost at most, in dollars."""
    return prices.cost(choice.model, prices.tokens(text) + OVERHEAD_TOKENS, choice.max_tokens)


def billed(choice: Choice, asked: Question, answered: Answered) -> tuple[float, dict[str, object]]:
    """What an answer cost, and the fields that tell so. Where the provider does not say how many tokens it counted, they are estimated."""
    said = answered.reply
    into = said.tokens_in if said.tokens_in is not None else prices.tokens(asked.system + asked.text)
    out = said.tokens_out if said.tokens_out is not None else prices.tokens(said.text)
    cost = prices.cost(choice.model, into, out)
    return cost, {
        "llm_model": choice.model, "llm_provider": choice.provider, "input_tokens": into, "output_tokens": out, "cost_usd": cost,
        "latency_ms": answered.latency_ms,
    }  # fmt: skip
