"""Why a step happened: the steps that led to it."""

from __future__ import annotations

from guardhook.store.model import Step, Trace
from guardhook.store.query import Store


def chain(store: Store, trace: Trace, number: int) -> list[tuple[Step, str]]:
    """From the step back to where it began, each with its link: origin, caused_by, parent or prior_decision.

    Its cause comes first, else its parent, else the nearest earlier decision. Raises NotFound when the trace has no such step.
    """
    found = [(store.step(trace, number), "origin")]
    seen = {number}
    while True:
        step = found[-1][0]
        before: Step | None = None
        link = ""
        for name, wanted in (("caused_by", step.caused_by_step_number), ("parent", step.parent_step_number)):
            if wanted is not None:
                link, before = name, next(store.steps(trace, wanted, wanted), None)
                break
        if before is None and not link:
            link, before = "prior_decision", store.decided_before(trace, step.step_number)
        if before is None or before.step_number in seen:
            return found
        seen.add(before.step_number)
        found.append((before, link))
