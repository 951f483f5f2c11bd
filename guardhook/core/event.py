"""One hook invocation in canonical form: what every dialect is translated to before anything is judged."""

from __future__ import annotations

# Canonical events. `other` is any event of a known dialect that has no counterpart here; it is kept raw.
EVENTS = frozenset((
    "session_start", "user_prompt", "pre_tool", "permission_request", "post_tool", "post_tool_failure",
    "subagent_start", "subagent_stop", "stop", "session_end", "compact", "notification", "permission_denied",
    "config_change", "model_request", "model_response", "interrupt", "prompt_expansion", "other",
))  # fmt: skip

# Events whose call has not happened yet: these are judged when the gate enforces.
JUDGED = frozenset(("pre_tool", "permission_request", "user_prompt", "prompt_expansion", "config_change"))

KINDS = frozenset((
    "shell", "file_write", "file_edit", "file_read", "search", "web_fetch", "mcp", "subagent", "other",
))  # fmt: skip


class FileTarget:
    """A path that a tool call names outright, and what the call does to it.

    op is `read`, `write`, `edit`, `delete`, `move_from` or `move_to`. content is the new text where the call carries it.
    """

    __slots__ = ("content", "op", "path")

    def __init__(self, op: str, path: str, content: str | None = None) -> None:
        self.op = op
        self.path = path
        self.content = content

    def __repr__(self) -> str:
        return f"FileTarget({self.op!r}, {self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTarget) and (self.op, self.path, self.content) == (
            other.op,
            other.path,
            other.content,
        )

    def __hash__(self) -> int:
        return hash((self.op, self.path, self.content))


class Event:
    """A hook invocation, whichever harness sent it. Absent facts are None; nothing is guessed."""

    __slots__ = (
        "agent",
        "agent_type",
        "call",
        "client",
        "commands",
        "cwd",
        "dialect",
        "error",
        "event",
        "files",
        "input",
        "kind",
        "mcp_server",
        "mcp_tool",
        "mode",
        "native_event",
        "output",
        "payload",
        "prompt",
        "session",
        "shell",
        "step_type",
        "surface",
        "tool",
        "undecidable",
        "urls",
    )

    def __init__(self, dialect: str, native_event: str, event: str, payload: dict[str, object]) -> None:
        self.dialect = dialect
        self.native_event = native_event  # as received, or as registered when the payload names none
        self.event = event  # one of EVENTS
        self.payload = payload  # the payload as parsed, never changed
        self.session: str | None = None
        self.call: str | None = None  # the harness's id of this tool call
        self.agent: str | None = None  # id of the sub-agent, None in the main thread
        self.agent_type: str | None = None
        self.cwd: str | None = None
        self.client: str | None = None  # client version, where payload or environment tell it
        self.mode: str | None = None  # permission mode, in the harness's own word
        self.surface: str | None = None  # which front end of the harness asks, where the environment tells it
        self.tool: str | None = None  # native tool name
        self.kind: str | None = None  # one of KINDS for tool events, else None
        self.input: object = None  # the tool's raw input (nested JSON strings already parsed)
        self.output: object = None  # the tool's result, post events only
        self.error: str | None = None
        self.prompt: str | None = None
        self.commands: list[str] = []  # shell text that the call would run, in order
        self.shell = "sh"  # `sh` or `powershell`: which language `commands` is written in
        self.files: list[FileTarget] = []
        self.urls: list[str] = []
        # The step type of the trace model, where the caller names it outright (`guard check`); else it follows from event.
        self.step_type: str | None = None
        self.mcp_server: str | None = None
        self.mcp_tool: str | None = None
        # Why the call can't be judged although the payload is well-formed (truncated input, nested JSON that does
        # not parse, a command of a wrong type …). A blocking gate answers it with a block.
        self.undecidable: str | None = None
