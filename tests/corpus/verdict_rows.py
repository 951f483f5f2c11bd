"""The rows of verdicts-*.toml, and how they are judged: parser to verdict in this process, no file looked at."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from guardhook.analysis import analyse
from guardhook.analysis.facts import Facts
from guardhook.core.event import Event
from guardhook.core.verdict import BLOCKING, Verdict
from guardhook.dialects import tools
from guardhook.policy import compile as compiler
from guardhook.policy import layers, load, match
from guardhook.policy.compiled import Compiled

HERE = Path(__file__).parent
HOME = "/home/user"
PROJECT = "/home/user/project"
CWD = {"project": PROJECT, "home": HOME, "root": "/", "tmp": "/tmp/work", "none": None}
GUARD_PATHS = ("/home/user/.local/share/guardhook", "/home/user/.config/guardhook", "/etc/guardhook")


@dataclasses.dataclass(frozen=True)
class Row:
    """One call and what must come of it."""

    cls: str
    expect: str  # flag, pass
    preset: str
    cwd: str
    why: str
    tool: str
    input: str  # repr of the input
    place: str

    @property
    def text(self) -> str:
        given = self.given
        return str(given["command"]) if self.tool == "Bash" else f"{self.tool} {given}"

    @property
    def given(self) -> dict[str, Any]:
        return dict(_INPUTS[self.input])


_INPUTS: dict[str, dict[str, Any]] = {}


@functools.cache
def rows() -> tuple[Row, ...]:
    """All rows, in the order of the files."""
    out = []
    for path in sorted(HERE.glob("verdicts-*.toml")):
        for group in tomllib.loads(path.read_text())["group"]:
            calls = [("Bash", {"command": c}) for c in group.get("commands", ())]
            calls += [(c["tool"], c["input"]) for c in group.get("calls", ())]
            for tool, given in calls:
                key = repr(given)
                _INPUTS[key] = given
                out.append(
                    Row(
                        group["class"],
                        group["expect"],
                        group.get("preset", "balanced"),
                        group.get("cwd", "project"),
                        group["why"],
                        tool,
                        key,
                        path.name,
                    )
                )
    return tuple(out)


@functools.cache
def packs(preset: str) -> Compiled:
    """The shipped policies as a preset has them."""
    loaded = layers.Loaded()
    load.shipped_of(loaded)
    assert loaded.errors == []
    for found in loaded.policies:
        found.on = found.policy.enabled and (found.policy.presets is None or preset in found.policy.presets)
    return compiler.in_memory(loaded.policies, {"preset": preset})


def event_of(row: Row) -> Event:
    event = Event("claude-code", "PreToolUse", "pre_tool", {})
    event.tool = row.tool
    event.input = row.given
    event.cwd = CWD[row.cwd]
    tools.fill(event)
    return event


def facts() -> Facts:
    return Facts(home=HOME, user="user", project_root=PROJECT, guard_paths=GUARD_PATHS)


def judge(row: Row) -> Verdict:
    event = event_of(row)
    return match.judge([packs(row.preset)], event, analyse(event, facts()))


def flagged(verdict: Verdict) -> bool:
    return verdict.action in BLOCKING


@dataclasses.dataclass
class Tally:
    """What came of the rows of one class."""

    caught: int = 0
    missed: int = 0
    alarms: int = 0
    passed: int = 0

    @property
    def recall(self) -> float:
        return self.caught / max(self.caught + self.missed, 1)

    @property
    def false_alarms(self) -> float:
        return self.alarms / max(self.alarms + self.passed, 1)


def tally(judged: Iterable[tuple[Row, bool]]) -> dict[str, Tally]:
    out: dict[str, Tally] = {}
    for row, flag in judged:
        one = out.setdefault(row.cls, Tally())
        if row.expect == "flag":
            one.caught, one.missed = one.caught + flag, one.missed + (not flag)
        else:
            one.alarms, one.passed = one.alarms + flag, one.passed + (not flag)
    return out


def render(table: dict[str, Tally]) -> str:
    """The confusion matrix, a line for each class."""
    lines = [f"{'class':<16}{'caught':>8}{'missed':>8}{'recall':>8}{'alarms':>8}{'passed':>8}{'rate':>8}"]
    for name, t in sorted(table.items()):
        recall = f"{t.recall:.3f}" if t.caught + t.missed else "-"
        rate = f"{t.false_alarms:.3f}" if t.alarms + t.passed else "-"
        lines.append(f"{name:<16}{t.caught:>8}{t.missed:>8}{recall:>8}{t.alarms:>8}{t.passed:>8}{rate:>8}")
    return "\n".join(lines)
