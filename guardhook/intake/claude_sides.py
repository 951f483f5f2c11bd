"""Sub-agents of older Claude Code clients.

The oldest write their records into the session's own file, those of several sub-agents in between each other. Nothing names them: a sub-agent is the chain of
records that goes back to a prompt without a parent, and the call that started it is the one with the same prompt. Clients after that write a file for each,
`agent-<id>.jsonl` beside the session's own; which session it belongs to stands in it.
"""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

from guardhook.intake import records
from guardhook.intake.claude_records import Block, Record, turns

TOOLS = ("Task", "Agent")
_RECORDS_MOST = 1 << 16  # record ids that are remembered
_CALLS_MOST = 1_024
_BEGUN_MOST = 256  # sub-agents that said nothing yet, and how long their prompts may be to be remembered
_PROMPT_CHARS = 1 << 18


_OF_SESSION = re.compile(
    rb'\{(?=[^\n]{0,2000}?"isSidechain"\s*:\s*true)[^\n]{0,2000}?"sessionId"\s*:\s*"([^"\\]{1,200})"'
)
_HEAD = 4096


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

    def started(self, prompt: str | None) -> tuple[int | None, str | None]:
        """The step of the call that began a sub-agent with this prompt, and which kind of sub-agent; each call begins one."""
        calls = None if prompt is None else self._calls.get(hash(prompt))
        return calls.pop(0) if calls else (None, None)

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
        """What is known of a sub-agent; told once, when it first says something."""
        return self._known.pop(key, None) or Side()

    def _begins(self, root: str, record: Record) -> None:
        prompt = next(iter(turns(record)), None)
        step, kind = self.started(prompt)
        short = prompt is not None and len(prompt) <= _PROMPT_CHARS
        self._known[root] = Side(kind, step, prompt if short else None)
        if len(self._known) > _BEGUN_MOST:
            del self._known[next(iter(self._known))]


def files_beside(path: str) -> list[str]:
    """The files of a session's sub-agents in the folder of its own file."""
    folder, name = os.path.split(path)
    if name.startswith("agent-"):
        return []
    try:
        status = os.stat(folder)
    except (OSError, ValueError):
        return []
    return _agents_in(folder, status.st_mtime_ns, status.st_ino).get(name.removesuffix(".jsonl"), [])


@functools.lru_cache(maxsize=64)
def _agents_in(folder: str, mtime_ns: int, inode: int) -> dict[str, list[str]]:
    """The files of sub-agents in a folder by their sessions, as long as the folder does not change."""
    found: dict[str, list[str]] = {}
    for name in records.names_in(folder):
        if not (name.startswith("agent-") and name.endswith(".jsonl")):
            continue
        try:
            fd = records.open_file(f"{folder}/{name}")
        except (OSError, ValueError):
            continue
        try:
            told = _OF_SESSION.match(records.beginning(fd, _HEAD))
        except OSError:
            told = None
        finally:
            os.close(fd)
        if told is not None:
            found.setdefault(told[1].decode("utf-8", "replace"), []).append(f"{folder}/{name}")
    return found
