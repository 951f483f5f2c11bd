"""What the fold remembers of a trace from one line to the next, and what it hands to a sink.

A state is saved with its trace and loaded again, so it must not grow with the trace: closed calls are forgotten, and duplicates are
looked for among the last RECENT events only.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

RECENT = 512
OPEN_MOST = 4096  # open calls that are remembered; the oldest is given up for a newer one


class Open(msgspec.Struct, array_like=True):
    """A call without a result yet, or one that was closed early (then closed says why)."""

    number: int
    call: str | None
    agent: str | None
    tool: str
    canon: str | None
    us: int
    cut: bool
    kind: str | None
    closed: str = ""  # "" open, "interrupted", "blocked"
    judged: bool = False

    def like(self) -> tuple[str | None, str, str | None]:
        """What two sightings of one call have in common."""
        return self.agent, self.tool, self.canon


class Anchor(msgspec.Struct, array_like=True):
    """The step that a sub-agent's steps hang on."""

    number: int
    us: int
    open: bool


class Lead(msgspec.Struct, array_like=True, order=True):
    """How a part ranks as the one that speaks for its trace: the smallest one does."""

    loose: bool  # no root
    at: int
    inner: bool
    name: str


class Parts(msgspec.Struct, omit_defaults=True):
    """What a trace that is told in parts remembers of them; instants are microseconds since the epoch (see guardhook.store.parts)."""

    lead: Lead | None = None
    root: Lead | None = None
    own: list[str] = []  # keys of the trace's metadata that are the root's
    says_input: bool = False  # whether the root says so itself
    says_output: bool = False
    prompt: tuple[int, str] | None = None  # the first one, and when
    answer: tuple[int, object] | None = None  # the last one
    failed_at: int | None = None


class State(msgspec.Struct, omit_defaults=True):
    """A trace as folded so far. JSON values (input, output, metadata, tags) are kept parsed."""

    id: str
    agent_name: str
    started_at: str
    agent_version: str | None = None
    trigger: str = "manual"
    status: str = "running"
    input: object = None
    output: object = None
    ended_at: str | None = None
    total_duration_ms: int | None = None
    total_tokens: int | None = None
    total_cost_usd: float | None = None
    error: str | None = None
    tags: list[object] = []
    metadata: dict[str, object] = {}
    parent_trace_id: str | None = None
    forked_from_step: int | None = None
    session_id: str | None = None
    created_at: str = ""
    dialect: str | None = None
    project: str | None = None
    live: bool = False
    started_us: int | None = None
    ended_us: int | None = None
    last_us: int | None = None
    step_count: int = 0
    step_tokens: int | None = None
    # Only for folding on.
    next: int = 1
    open: list[Open] = []
    anchors: dict[str, Anchor] = {}
    spawned: dict[str, int] = {}  # sub-agent id -> the call that started it
    recent: dict[str, str] = {}  # events seen lately -> what they said, or when
    request: list[object] = []  # [key, step number, microseconds] of the model request under way
    run: list[object] = []  # [segment, run, first seq, last seq, opened at, closed at]
    parts: Parts | None = None  # of a trace that is told in parts


class Row(msgspec.Struct):
    """A step. input, output and metadata are values, not text."""

    number: int
    type: str
    name: str
    input: object
    output: object
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    tokens_used: int | None
    model: str | None
    error: str | None
    metadata: dict[str, object]
    parent: int | None
    cause: int | None


class Part(msgspec.Struct):
    """A part of a trace: where it belongs. number: its step, None when it is none; row: the step that a root would be."""

    name: str
    role: str
    seq: int
    at: int | None
    number: int | None
    within: str | None
    cause: str | None
    call: str | None
    row: Row | None = None


class Sink(Protocol):
    """Where the fold's results go. Numbers are step numbers of the trace."""

    def add(self, state: State, row: Row) -> None:
        """A new step."""

    def change(self, state: State, number: int, fields: dict[str, object], metadata: dict[str, object]) -> None:
        """Fields of an existing step; keys of metadata are added to what is there."""

    def decide(self, state: State, number: int, decision: dict[str, object]) -> None:
        """The decision of a step, in place of an earlier one."""

    def snapshot(self, state: State, number: int, snapshot: dict[str, object]) -> None:
        """The snapshot of a step, in place of an earlier one."""

    def happen(
        self,
        state: State,
        seq: int,
        ts: str,
        event: str,
        native: str | None,
        text: str | None,
        detail: dict[str, object],
    ) -> None:
        """Something that is no step."""

    def segment(self, state: State, run: list[object]) -> None:
        """A run of the session, as known now."""

    def evaluation(self, trace_id: str, seq: int, event: dict[str, object]) -> None:
        """A result of an evaluator."""

    def steps_known(self, state: State, number: int) -> bool:
        """Whether the trace has a step of this number."""

    def part_known(self, state: State, name: str) -> bool:
        """Whether the trace has this part already."""

    def part(self, state: State, part: Part) -> None:
        """A new part. Its step, if it has one, is added beside."""

    def part_step(self, state: State, name: str, number: int) -> Row | None:
        """The row kept of a root that becomes a step of this number after all."""
