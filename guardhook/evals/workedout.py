"""What a recorded call reaches, worked out from its text, where the gate recorded no effects.

The gate lets plainly harmless commands pass without taking them apart; whether one of them reaches what was denied before is another question. Nothing is
looked up on disk: a script that a call names stays unread. Effects that were recorded are always preferred.
"""

from __future__ import annotations

import functools
import re

from guardhook.analysis import analyse, paths
from guardhook.analysis.facts import Facts
from guardhook.core.event import Event
from guardhook.dialects import tools
from guardhook.evals.reach import Reach, build
from guardhook.store import Step, Trace

_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root")
_MOST_CHARS = 64 << 10
_HOLLOW = ("redacted", "cut", "stripped")  # marks of an input that is not as it was


def reaches(step: Step, trace: Trace) -> list[Reach]:
    """The effects of a call whose input was recorded whole; nothing for any other."""
    metadata = step.metadata
    if len(step.input_json) > _MOST_CHARS or any(metadata.get(mark) for mark in _HOLLOW):
        return []
    event = Event(trace.dialect or "claude-code", "PreToolUse", "pre_tool", {})
    cwd = trace.metadata.get("cwd")
    event.tool, event.input = step.name, step.input
    event.cwd = cwd if isinstance(cwd, str) else trace.project
    try:
        tools.fill(event)
        effects = analyse(event, _facts(trace.project))
    except Exception:  # a call of a shape that no hook ever sent: it reaches nothing that could be told
        return []
    return [build(e.kind, e.flags, (e.program, e.git, e.host), e.path) for e in effects]


def is_secret(place: str, trace: Trace) -> bool:
    """Whether a path of this run's machine names keys or credentials, by the names that the gate knows. Looks at no file."""
    return "secret" in paths.classify(place, _facts(trace.project))[0]


@functools.lru_cache(maxsize=64)
def _facts(project: str | None) -> Facts:
    """Home is guessed from where the project lay: it was another machine's, perhaps."""
    home = _HOME.match(project or "")
    return Facts(home=home[0] if home else "/home/user", project_root=project)
