"""`diff --ai`: a model's words on how two runs differ, and which is the better one."""

from __future__ import annotations

from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.evals.ai import cleaning, framing, judging, reply
from guardhook.evals.ai.provider import ProviderError, Question
from guardhook.evals.ai.settings import Choice
from guardhook.evals.ai.summary import Summary
from guardhook.evals.ai.transport import Patience, ask
from guardhook.store import Store, Trace
from guardhook.store.diff import Diff

MOST_DIFFERENCES = 60
_VALUE_CHARS = 120
_SIDES = ("left", "right", "neither")
_TASK = (
    "Two runs were recorded, LEFT and RIGHT; DIFFERENCES lists where they part. Explain how they differ and which did better. Fields: explanation (text), "
    "better_trace (left, right or neither), reasoning (text), key_differences (list of texts)."
)


class Analysis(NamedTuple):
    """What the model said. secrets: from how many texts something was taken out before sending."""

    explanation: str | None
    better_trace: str
    reasoning: str | None
    key_differences: list[str]
    tokens_used: int
    cost_usd: float
    secrets: int

    def as_dict(self) -> dict[str, object]:
        """The documented shape of `ai_analysis`."""
        return {
            "explanation": self.explanation, "better_trace": self.better_trace, "reasoning": self.reasoning,
            "key_differences": self.key_differences, "cost": {"tokens_used": self.tokens_used, "cost_usd": self.cost_usd},
        }  # fmt: skip


def analyse(store: Store, folders: Folders, found: Diff, choice: Choice, patience: Patience | None = None) -> Analysis:
    """Asks about a comparison. Raises ProviderError, also for a reply without JSON in it, and SettingsError."""
    rows = cleaning.rules(folders)
    left, right = (_summary(store, trace, rows) for trace in (found.left, found.right))
    cleaner = cleaning.Cleaner(rows)
    text = "\n\n".join((
        f"LEFT\n{left.text()}", f"RIGHT\n{right.text()}", f"DIFFERENCES\n{_differences(found, cleaner)}",
    ))  # fmt: skip
    frame = framing.Frame()
    question = Question(judging.SYSTEM + frame.standing, f"{_TASK}\n\n{frame.around(text)}", choice.max_tokens)
    answered = ask(choice, question, patience, rows)
    cost, bill = judging.billed(choice, question, answered)
    said = reply.found_object(answered.reply.text)
    if said is None:
        cut = "; it was cut off, raise ai.max_tokens" if answered.reply.cut else ""
        raise ProviderError("reply", f"the reply of {choice.model} holds no JSON object{cut}", 1)
    better = said.get("better_trace")
    side = better.strip().lower() if isinstance(better, str) else ""
    return Analysis(
        cleaning.answer(reply.text(said.get("explanation")), rows, choice.key),
        side if side in _SIDES else "neither",
        cleaning.answer(reply.text(said.get("reasoning")), rows, choice.key),
        cleaning.answer(reply.texts(said.get("key_differences")), rows, choice.key),
        sum(n for n in (bill["input_tokens"], bill["output_tokens"]) if isinstance(n, int)),
        cost + answered.billed * judging.estimated(choice, text),
        left.secrets + right.secrets + cleaner.secrets,
    )


def _summary(store: Store, trace: Trace, rows: cleaning.Rows) -> Summary:
    summary = Summary(trace, rows)
    for step in store.steps(trace):
        summary.step(step)
    return summary


def _differences(found: Diff, cleaner: cleaning.Cleaner) -> str:
    lines = []
    for one in found.differences[:MOST_DIFFERENCES]:
        place = "trace" if one.step_number is None else f"#{one.step_number}"
        old, new = (
            "(nothing)" if v is None else cleaner.anything(v, _VALUE_CHARS) for v in (one.left_value, one.right_value)
        )
        lines.append(f"{place} {one.field}: {old} -> {new}")
    if len(found.differences) > MOST_DIFFERENCES:
        lines.append(f"({len(found.differences) - MOST_DIFFERENCES} more)")
    return "\n".join(lines) or "(none)"
