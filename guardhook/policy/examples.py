"""Policies carry their own tests: calls with the verdict that the policy alone must give on them. Cold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from guardhook.core.event import Event
from guardhook.policy.layers import Found
from guardhook.policy.model import Example

PROJECT = "/home/user/project"  # where an example runs that names no folder
ACTIONS = ("deny", "require_review", "warn", "allow")


@dataclasses.dataclass
class Outcome:
    """One example that was run."""

    policy: str
    text: str
    expected: str
    got: str

    @property
    def passed(self) -> bool:
        return self.expected == self.got


def event_of(example: Example) -> Event:
    """The call that an example describes, in no harness's dialect."""
    from guardhook.dialects import tools

    if example.prompt is not None:
        event = Event(example.harness or "other", "user_prompt", "user_prompt", {})
        event.prompt = example.prompt
    else:
        event = Event(example.harness or "other", "pre_tool", "pre_tool", {})
        event.tool = example.tool or "Bash"
        event.input = example.input if example.command is None else {"command": example.command}
        if event.input is None:
            event.input = {}
    event.cwd = example.cwd or PROJECT
    if event.tool:
        tools.fill(event)
    return event


def run(found: Found, example: Example) -> Outcome:
    """Judges an example under its policy alone, switched on. No file is looked at; the home folder is this user's."""
    from guardhook.analysis import analyse
    from guardhook.analysis.facts import Facts
    from guardhook.policy import compile as compiler
    from guardhook.policy import match

    alone = dataclasses.replace(found, on=True, exceptions=[])
    event = event_of(example)
    effects = analyse(event, Facts(home=(*compiler.homes(), "/home/user")[0], project_root=PROJECT))
    verdict = match.judge([compiler.in_memory([alone])], event, effects)
    text = example.command or example.prompt or f"{example.tool} {example.input}"
    return Outcome(found.policy.name, text, example.expect, verdict.action)


def confusion(outcomes: Iterable[Outcome]) -> dict[str, dict[str, int]]:
    """expected -> got -> how many."""
    table = {a: dict.fromkeys(ACTIONS, 0) for a in ACTIONS}
    for outcome in outcomes:
        table[outcome.expected][outcome.got] += 1
    return table


def render(table: dict[str, dict[str, int]]) -> str:
    """The confusion matrix as text: a row for what was expected, a column for what came."""
    lines = [f"{'expected / got':<16}" + "".join(f"{a:>16}" for a in ACTIONS)]
    lines += [f"{a:<16}" + "".join(f"{table[a][b]:>16}" for b in ACTIONS) for a in ACTIONS]
    return "\n".join(lines)
