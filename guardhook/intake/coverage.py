"""Coverage: the tool calls in the harnesses' own session logs, held against the hook events that the journal has.

The harness's log says what was called; an event counts for a call only by the harness's id of it (Gemini CLI's hooks have none: there by tool and input, each
event for one call), and only when it was recorded before the call was over. So events that an agent forges add nothing, and neither do the canary's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.gate import roots
from guardhook.intake import coverage_hooks, detect, import_run, records
from guardhook.intake.coverage_hooks import Heard
from guardhook.intake.imports import Counts, Event, Importer, ImportFailed, Run

# Tools for which the harness asks no hook, and that touch nothing outside the conversation.
_WITHOUT_HOOK = {"codex": frozenset(("update_plan", "request_user_input", "exec", "wait"))}
# What a call's result begins with when the harness refused it before it would have asked a hook.
_REFUSED = {
    "claude-code": ("<tool_use_error>", "Error: No such tool available"),
    "codex": ("unsupported call", "failed to parse function arguments", "unsupported custom tool call"),
    "gemini": ("Tool \"", "Invalid tool parameters", "Error: Invalid parameters", "params must"),
    "qwen-code": ("Tool \"", "Invalid tool parameters", "Error: Invalid parameters", "params must"),
}  # fmt: skip
# An event that was recorded longer after a call's end is none of that call. Clocks are the same machine's; hooks may wait in the spool, but keep their own time.
LATE_US = 60_000_000


class Missed(NamedTuple):
    """A call that never reached the gate, or that ran although it was blocked. agent: the sub-agent's id, None for the main one."""

    tool: str
    call: str | None
    agent: str | None
    at: str | None
    why: str = ""

    def as_dict(self) -> dict[str, object]:
        return {"tool": self.tool, "call": self.call, "agent": self.agent, "at": self.at, "why": self.why}


class SessionCoverage(NamedTuple):
    """One session. calls = reached + never; what the harness itself refused, and what it asks no hook for, is counted apart."""

    dialect: str
    session: str | None
    logs: tuple[str, ...]
    project: str | None
    started_at: str | None
    calls: int
    reached: int
    judged: int  # of those reached: by a hook that enforces
    agent_calls: int  # of all calls: made by sub-agents
    never: tuple[Missed, ...]
    ran_although_blocked: tuple[Missed, ...]
    refused: int  # by the harness itself, or still without a result and without an event: nobody can say that these ran
    without_hook: int
    hook_events: int  # events of any kind in this session; 0: hooks were off
    by_input: bool  # matched by tool and input, for want of call ids
    callers: tuple[
        tuple[str, int], ...
    ] = ()  # executables that told the events, where the system says, and how many each

    @property
    def percent(self) -> float | None:
        """How many calls reached the gate; None without calls."""
        return None if not self.calls else 100 * self.reached / self.calls

    def as_dict(self) -> dict[str, object]:
        percent = self.percent
        return {
            "dialect": self.dialect,
            "session": self.session,
            "logs": list(self.logs),
            "project": self.project,
            "started_at": self.started_at,
            "calls": self.calls,
            "reached": self.reached,
            "judged": self.judged,
            "percent": None if percent is None else round(percent, 2),
            "agent_calls": self.agent_calls,
            "never": [m.as_dict() for m in self.never],
            "ran_although_blocked": [m.as_dict() for m in self.ran_although_blocked],
            "refused": self.refused,
            "without_hook": self.without_hook,
            "hook_events": self.hook_events,
            "by_input": self.by_input,
            "callers": dict(self.callers),
        }


def default_places(environ: Mapping[str, str]) -> list[str]:
    """The folders in which the harnesses keep their session logs, those that exist."""
    home = environ.get("HOME", "")
    claude = environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    codex = environ.get("CODEX_HOME") or f"{home}/.codex"
    places = [f"{claude}/projects", f"{codex}/sessions", f"{codex}/archived_sessions", f"{home}/.gemini/tmp", f"{home}/.qwen/projects"]  # fmt: skip
    return [os.path.realpath(place) for place in places if os.path.isabs(place) and os.path.isdir(place)]


def measure(
    folders: Folders,
    since_us: int | None = None,
    *,
    paths: Sequence[str] | None = None,
    project: str | None = None,
    problem: Callable[[str, str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[SessionCoverage]:
    """Coverage of each session, the latest first. Sessions without a call are left out.

    since_us: only calls since then, microseconds since the epoch. paths: logs, or folders with logs, in place of the harnesses' own places. project: only
    sessions of this project root. problem(path, why) is told of logs that can't be read, progress(bytes done, in all) while reading.
    """
    given = default_places(os.environ) if paths is None else list(paths)
    tell = problem or (lambda path, why: None)
    found = [f for f in import_run.collect(given, None, tell) if since_us is None or _touched(f.path) >= since_us]  # fmt: skip
    heard = coverage_hooks.Journal(folders)
    sessions: dict[tuple[str, str], _Session] = {}
    total, done = sum(f.size for f in found), 0
    for file, importer in _logs(found, tell):
        try:
            _read(file.path, importer, sessions, since_us)
        except (ImportFailed, OSError, RecursionError) as error:
            tell(file.path, str(error) or "nested too deep")
        done += file.size
        if progress is not None:
            progress(min(done, total), total)
    told = {session: heard.session(session.dialect, session.id) for session in sessions.values()}
    _each_once(sorted(told, key=lambda s: s.started_at or ""), told)
    out = [
        s.compare(told[s]) for s in told if any(not c.early for c in s.calls) and (project is None or s.within(project))
    ]
    return sorted(out, key=lambda s: s.started_at or "", reverse=True)


def _touched(path: str) -> int:
    """When a log was changed last, microseconds since the epoch; 0 when unknown. The time that `touch` can set back alone would hide a log."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return max(status.st_mtime_ns, status.st_ctime_ns) // 1000


def _each_once(sessions: list[_Session], told: dict[_Session, Heard]) -> None:
    """A session that goes on from another begins with a copy of its records: each call stays where hooks told it, else where it came first.

    A log may lie in two places as well; of two tellings of a call in one session the one with a result counts.
    """
    owner: dict[tuple[str, str, int], _Session] = {}
    moved: dict[_Session, set[tuple[str, str, int]]] = {}
    for session in sessions:
        kept: list[_Call] = []
        places: dict[tuple[str, str, int], int] = {}
        for call in session.calls:
            if call.id is None or call.began is None:
                kept.append(call)
                continue
            key = (session.dialect, call.id, call.began)
            if key in places:
                if kept[places[key]].said is None:
                    kept[places[key]] = call
                continue
            other = owner.setdefault(key, session)
            if other is not session:
                if not told[session].knows(call.id) or told[other].knows(call.id):
                    continue
                owner[key] = session
                moved.setdefault(other, set()).add(key)
            places[key] = len(kept)
            kept.append(call)
        session.calls = kept
    for session, keys in moved.items():
        session.calls = [c for c in session.calls if (session.dialect, c.id, c.began) not in keys]


def _logs(
    found: list[import_run.Found], tell: Callable[[str, str], None]
) -> Iterator[tuple[import_run.Found, Importer]]:
    """Session logs of harnesses among these files, those of sub-agents only within their session's."""
    work: list[tuple[import_run.Found, Importer]] = []
    owned: set[str] = set()
    for file in found:
        try:
            fd = records.open_file(file.path)
            try:
                importer = detect.find(file.path, fd)
            finally:
                os.close(fd)
        except OSError as error:
            tell(file.path, error.strerror or str(error))
            continue
        if importer is not None and importer.NAME in detect.LOGS:
            work.append((file, importer))
            owned.update(importer.files(file.path))
        elif file.named:
            tell(file.path, "no session log that is known")
    yield from ((file, importer) for file, importer in work if file.path not in owned)


class _Call:
    """One call of a log."""

    __slots__ = ("agent", "began", "blocked", "early", "ended", "failed", "id", "input", "said", "tool")

    def __init__(self, id: str | None, tool: str, agent: str | None, began: int | None, input: object) -> None:
        self.id = id
        self.tool = tool
        self.agent = agent
        self.began = began
        self.input = input  # only where calls are matched by it
        self.early = False  # from before the time that is asked for: it has its events, and does not count
        self.ended: int | None = None
        self.failed = False
        self.blocked = False
        self.said: str | None = None  # the beginning of its result, None when there is none yet


def _read(path: str, importer: Importer, sessions: dict[tuple[str, str], _Session], since_us: int | None) -> None:
    fd = records.open_file(path)
    try:
        for run in importer.read(path, fd, Counts()):
            dialect = str(run.start.get("dialect"))
            # A log without a session id can be matched with nothing; it is a session of its own.
            key = (dialect, run.identity.session or f"\0{path}")
            session = sessions.setdefault(key, _Session(dialect, run.identity.session))
            session.add(run, path, since_us)
    finally:
        os.close(fd)


class _Session:
    """The calls of one session, from all its logs."""

    def __init__(self, dialect: str, session: str | None) -> None:
        self.dialect = dialect
        self.id = session
        self.logs: list[str] = []
        self.cwd: str | None = None
        self.started_at: str | None = None
        self.calls: list[_Call] = []

    def add(self, run: Run, path: str, since_us: int | None) -> None:
        """Reads all events of a run."""
        self.logs.append(path)
        metadata = run.start.get("metadata")
        own = metadata if isinstance(metadata, dict) else {}
        cwd, started = own.get("cwd"), run.start.get("started_at")
        self.cwd = self.cwd or (cwd if isinstance(cwd, str) else None)
        if isinstance(started, str) and (self.started_at is None or started < self.started_at):
            self.started_at = started
        thread = own.get("thread_id")
        agents: dict[int, str] = {}
        waiting: dict[int, _Call] = {}
        for event in run.events:
            if event.type in ("trace.step", "trace.step_start"):
                call = self._call(event, agents, thread if isinstance(thread, str) else None)
                if call is None:
                    continue
                call.early = since_us is not None and call.began is not None and call.began < since_us
                self.calls.append(call)
                if event.type == "trace.step":
                    _over(call, event)
                else:
                    number = event.fields["step_number"]
                    assert isinstance(number, int)
                    waiting[number] = call
            elif event.type == "trace.step_end":
                number = event.fields["step_number"]
                ended = waiting.pop(number, None) if isinstance(number, int) else None
                if ended is not None:
                    _over(ended, event)

    def _call(self, event: Event, agents: dict[int, str], thread: str | None) -> _Call | None:
        fields = event.fields
        own = fields.get("metadata")
        metadata = own if isinstance(own, dict) else {}
        if metadata.get("hook_anchor"):
            number = fields["step_number"]
            assert isinstance(number, int)
            agents[number] = str(metadata.get("agent_id") or "sub-agent")
        if fields.get("step_type") != "tool_call" or metadata.get(
            "server"
        ):  # what the model's provider runs is no call of the harness
            return None
        call, agent = metadata.get("call"), metadata.get("agent_id")
        parent = fields.get("parent_step")
        inside = agents.get(parent) if isinstance(parent, int) else None
        began = event.us
        started = fields.get("started_at")
        if isinstance(started, str):
            from guardhook.store.instants import micros

            began = micros(started)
        by_input = self.dialect in coverage_hooks.WITHOUT_IDS
        return _Call(
            call if isinstance(call, str) else None, str(fields["name"]), agent if isinstance(agent, str) else inside or thread, began,
            fields.get("input") if by_input else None,
        )  # fmt: skip

    def within(self, project: str) -> bool:
        """Whether the session belongs to a project root."""
        return self.cwd is not None and (roots.find_root(self.cwd) or roots.real(self.cwd)) == project

    def compare(self, heard: Heard) -> SessionCoverage:
        """The session's calls against what hooks told."""
        reached = judged = refused = without = agents = 0
        never: list[Missed] = []
        although: list[Missed] = []
        for call in self.calls:
            until = None if call.ended is None else call.ended + LATE_US
            event = heard.take(call.id, call.tool, call.input, call.began, until)
            if call.early:
                continue
            if event is None:
                if call.tool in _WITHOUT_HOOK.get(self.dialect, ()):
                    without += 1
                    continue
                if self._refused(call):
                    refused += 1
                    continue
                never.append(_missed(call, "recorded only after the call was over" if heard.knows(call.id) else ""))
            else:
                reached += 1
                judged += event.judged
                if event.blocked and (event.ran or (call.said is not None and not call.failed and not call.blocked)):
                    although.append(_missed(call, event.policy or ""))
            agents += call.agent is not None
        return SessionCoverage(
            self.dialect, self.id, tuple(self.logs), self.cwd, self.started_at, reached + len(never), reached, judged, agents, tuple(never),
            tuple(although), refused, without, heard.events, self.dialect in coverage_hooks.WITHOUT_IDS,
            tuple(sorted(heard.callers.items(), key=lambda c: -c[1])),
        )  # fmt: skip

    def _refused(self, call: _Call) -> bool:
        if call.said is None or call.blocked:
            return True
        return call.failed and (call.said.startswith(_REFUSED.get(self.dialect, ())) or call.said == "cancelled")


def _over(call: _Call, event: Event) -> None:
    """The end of a call, as its log tells it."""
    fields = event.fields
    own = fields.get("metadata")
    call.ended = event.us
    call.failed = fields.get("error") is not None
    call.blocked = isinstance(own, dict) and (own.get("blocked") is True or own.get("execution") == "not_started")
    output = fields.get("output")
    said = next(iter(output.values()), "") if isinstance(output, dict) else output
    call.said = said[:200] if isinstance(said, str) else ""


def _missed(call: _Call, why: str) -> Missed:
    from guardhook.store.instants import iso_ms

    return Missed(call.tool, call.id, call.agent, None if call.began is None else iso_ms(call.began), why)
