"""Sub-agents of older Claude Code clients, whose records stand in the session's own file, those of several at once in between each other.

Nothing names them: a sub-agent is the chain of records that goes back to a prompt without a parent, and the call that started it is the one with the same prompt.
"""

from __future__ import annotations

from typing import NamedTuple

from guardhook.intake.claude_records import Block, Record, turns

TOOLS = ("Task", "Agent")
_RECORDS_MOST = 1 << 16  # record ids that are remembered
_CALLS_MOST = 1_024


class Side(NamedTuple):
    """What is known of a sub-agent before it says anything. cause: the step of the call that started it."""

    kind: str | None = None
    cause: int | None = None
    prompt: str | None = None


class Sides:
    """Which sub-agent a record belongs to."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}  # record -> the first record of its chain
        self._last = ""
        self._calls: dict[
            int, list[tuple[int, str | None]]
        ] = {}  # hash of a prompt -> calls with it that have not begun
        self._known: dict[str, Side] = {}

    def called(self, block: Block, step: int) -> None:
        """A call that may start a sub-agent."""
        given = block.input
        prompt = given.get("prompt") if isinstance(given, dict) else None
        if isinstance(prompt, str):
            kind = given.get("subagent_type")
            self._calls.setdefault(hash(prompt), []).append((step, kind if isinstance(kind, str) else None))
            if len(self._calls) > _CALLS_MOST:
                del self._calls[next(iter(self._calls))]

    def of(self, record: Record) -> str:
        """The key of the sub-agent that a record of a side chain belongs to."""
        own = record.uuid or ""
        if record.parentUuid is None:
            root = record.agentId or own
            if record.type == "user":
                self._begins(root, record)
        else:
            root = record.agentId or self._roots.get(record.parentUuid, self._last)
        self._last = root
        if own:
            self._roots[own] = root
            if len(self._roots) > _RECORDS_MOST:
                del self._roots[next(iter(self._roots))]
        return root

    def side(self, key: str) -> Side:
        return self._known.get(key) or Side()

    def _begins(self, root: str, record: Record) -> None:
        prompt = next(iter(turns(record)), None)
        started = None if prompt is None else self._calls.get(hash(prompt))
        step, kind = started.pop(0) if started else (None, None)
        self._known[root] = Side(kind, step, prompt)
        if len(self._known) > _CALLS_MOST:
            del self._known[next(iter(self._known))]
