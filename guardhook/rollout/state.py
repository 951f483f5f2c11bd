"""What the renderer remembers from one journal line to the next. It can be saved as JSON and loaded again, so that rendering stops and goes on anywhere."""

from __future__ import annotations

import msgspec

OPEN_MOST = 4096
CLOSED_MOST = 1024
RECENT = 512
ANNOUNCED_MOST = 1024


class Call(msgspec.Struct, array_like=True):
    """A call that has no result yet."""

    id: str  # as the rollout names it
    native: str | None  # as the harness does
    tool: str
    agent: str | None
    canon: str | None  # digest of its input
    arguments: str
    step: int
    us: int
    cut: bool
    pending: bool = False  # somebody was asked
    judged: bool = False
    answer: list[object] = []  # [text, failed] that a batch told of it
    via: str = "pre_tool"


class Closed(msgspec.Struct, array_like=True):
    """A call that had an end. how: done, denied, unfinished."""

    tool: str
    canon: str | None
    how: str
    arguments: str = ""


class Ending(msgspec.Struct):
    """How the run ended: completed, failed or cancelled; what its end says; and when."""

    how: str
    data: dict[str, object]
    ts: str


class Usage(msgspec.Struct):
    """Tokens and money so far, as far as anybody told."""

    prompt: int = 0
    completion: int = 0
    total: int = 0
    last: int = 0
    known: bool = False
    cost: float = 0.0
    last_cost: float = 0.0
    cost_known: bool = False


class Families(msgspec.Struct, omit_defaults=True):
    """State of the opt-in events."""

    equal_calls: dict[str, int] = {}
    decisions: int = 0
    selected: list[str] = []
    costs: float = 0.0
    cost_steps: int = 0
    window_calls: list[dict[str, object]] = []
    window_messages: list[dict[str, object]] = []
    conversation_tokens: int = 0
    result_tokens: int = 0


class State(msgspec.Struct, omit_defaults=True):
    """A run as far as it is rendered."""

    seq: int = 0
    step: int = 0
    basis: str = "inferred"
    declared_agent: str | None = None  # whose declared turn the step is
    started: bool = False
    held: dict[str, object] = {}  # what session_start said
    held_ts: str = ""
    declared: str | None = None  # digest of the checks that were declared when the run began
    ts: str = ""  # of the last line
    stopped: bool = False
    active: bool = False  # tools were called in this step
    messages: int = 0
    ticket: int = 0
    numbered: int = 0  # calls without an id of their own
    open: list[Call] = []
    closed: dict[str, Closed] = {}
    aliases: dict[str, str] = {}  # native id -> ours
    announced: list[list[str | None]] = []  # [id, tool, canon]
    recent: dict[str, str] = {}
    request: list[object] = []  # [id of the model request, microseconds, whether it was answered]
    stream: str = ""
    turn: list[object] = []  # [step, content] of the last declared turn
    turn_calls: int = 0
    agents: dict[str, str] = {}
    usage: Usage = msgspec.field(default_factory=Usage)
    failed: str | None = None
    failed_by: str | None = None  # provider, tool_execution, resource
    aborted: bool = False
    ending: Ending | None = None
    families: Families = msgspec.field(default_factory=Families)
