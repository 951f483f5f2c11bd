"""A journal made of plain events, and the store that comes of it."""

from __future__ import annotations

from pathlib import Path

from guardhook.core.folders import Folders, explicit
from guardhook.journal import line
from guardhook.store import Step, Store, Trace, open_store

SESSION = "00000000-0000-4000-8000-000000000001"
START = 1_790_000_000_000_000_000
NATIVE = {
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
    "user_prompt": "UserPromptSubmit",
    "pre_tool": "PreToolUse",
    "permission_request": "PermissionRequest",
    "permission_denied": "PermissionDenied",
    "post_tool": "PostToolUse",
    "post_tool_failure": "PostToolUseFailure",
    "stop": "Stop",
    "subagent_start": "SubagentStart",
    "subagent_stop": "SubagentStop",
    "notification": "Notification",
    "compact": "PreCompact",
    "model_request": "PreModelRequest",
    "model_response": "PostModelRequest",
    "other": "Other",
}
Event = dict[str, object]


def event(
    name: str,
    *,
    tool: str | None = None,
    given: object = None,
    call: str | None = None,
    agent: str | None = None,
    verdict: object = None,
    dialect: str = "claude-code",
    session: str = SESSION,
    kind: str | None = "shell",
    native: str | None = None,
    line_data: dict[str, object] | None = None,
    **payload: object,
) -> Event:
    """The data of a `hook.received` line."""
    body: dict[str, object] = {"hook_event_name": native or NATIVE[name], "session_id": session, **payload}
    if tool is not None:
        body["tool_name"] = tool
        body["tool_input"] = given if given is not None else {}
    if agent is not None:
        body["agent_id"] = agent
    return {
        "session": session, "dialect": dialect, "client": "2.1.332", "native_event": native or NATIVE[name], "event": name,
        "call": call, "agent": agent, "cwd": "/home/user/project", "tool": tool, "kind": kind if tool else None,
        "payload": body, "redacted": [], "cut": [], "effects": [], "verdict": verdict, **(line_data or {}),
    }  # fmt: skip


def said(
    action: str, policy: str | None = "no-rm", reason: str = "deletes", mode: str = "enforce", exit: int = 2
) -> Event:
    """A verdict as recorded."""
    return {
        "action": action, "policy": policy, "layer": "user", "reason": reason, "span": None, "set": "s", "mode": mode,
        "cause": "policy", "degraded": None, "us": 100, "answer": {"exit": exit, "stdout": "", "stderr": ""},
    }  # fmt: skip


class Journal:
    """Writes lines as the hook's writer does: tickets, runs, one file per session and day."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folders: Folders = explicit(str(base))
        self.seq: dict[str, int] = {}
        self.clock = START

    def path(self, dialect: str = "claude-code", session: str = SESSION, day: str | None = None) -> Path:
        return self.base / "journal" / (day or line.day(START)) / f"{line.key(dialect, session)}.jsonl"

    def bytes_of(
        self, data: Event, *, type: str = line.RECEIVED, step: float = 1.0, seq: int | None = None, **own: object
    ) -> bytes:
        self.clock += int(step * 1_000_000_000)
        dialect, session = str(data.get("dialect") or "claude-code"), str(data.get("session") or SESSION)
        key = line.key(dialect, session)
        ticket = self.seq.get(key, 0) + 1 if seq is None else seq
        self.seq[key] = max(ticket, self.seq.get(key, 0))
        first = {"v": 1, "run": line.run_id(dialect, session, 1), "segment": 1, **own, "root": "/home/user/project"}
        return line.build(self.clock, ticket, type, first, line.body(data))

    def add(self, *events: Event, step: float = 1.0, **more: object) -> None:
        for data in events:
            path = self.path(str(data.get("dialect") or "claude-code"), str(data.get("session") or SESSION))
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(self.bytes_of(data, step=step, **more))  # type: ignore[arg-type]

    def open(self, *, later: float = 0.0, **more: object) -> Store:
        return open_store(self.folders, now=self.clock / 1e9 + later, **more)  # type: ignore[arg-type]

    def trace(self, *, later: float = 0.0) -> Trace:
        with self.open(later=later) as store:
            page = store.traces()
            assert page.total == 1
            return page.items[0]

    def steps(self) -> list[Step]:
        with self.open() as store:
            return list(store.steps(store.traces().items[0]))


def everything(store: Store) -> object:
    """All that a store says, without keys that a rebuild may change."""
    out = []
    for trace in store.iterate(sort="started_at"):
        out.append((
            trace.as_item(), trace.project, trace.live, trace.effective_duration_ms,
            [s.as_dict(trace.id) for s in store.steps(trace)], [h._asdict() for h in store.happenings(trace)],
            [r._asdict() for r in store.runs(trace)], [e.as_dict() for e in store.evaluations(trace)],
            [s.as_dict() for s in store.snapshots(trace)],
        ))  # fmt: skip
    return out, [p._asdict() for p in store.problems()]


def bash_call(command: str, call: str) -> tuple[Event, Event]:
    """A call and its result."""
    given = {"command": command}
    return (
        event("pre_tool", tool="Bash", given=given, call=call),
        event("post_tool", tool="Bash", given=given, call=call, tool_response={"stdout": f"{command}: fine\n" * 5}),
    )
