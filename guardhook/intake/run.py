"""A program run with a trace around it: begun before, filled by what the program tells, ended by how the program ended.

The program finds its trace in its environment: GUARDHOOK_TRACE_ID, and GUARDHOOK_EVENTS, a file that it may append native events to. A wrapper that is killed leaves
its trace running, since nobody knows then how the program ended.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from guardhook.core.folders import Folders
from guardhook.intake import child
from guardhook.intake.channel import CHUNK, Channel
from guardhook.intake.jsonlines import BadJson, parse
from guardhook.intake.recording import DIALECT, Event, Recording
from guardhook.journal import write
from guardhook.store import Filter, StoreError, open_store, protocol
from guardhook.store.instants import iso_ms

TRACE_VARIABLE = "GUARDHOOK_TRACE_ID"
EVENTS_VARIABLE = "GUARDHOOK_EVENTS"
NOT_FOUND = 127
_DECLARED = ("completed", "failed", "timeout")
Warn = Callable[[str], None]


class NotRecorded(Exception):
    """The trace could not be begun, so the program was not started."""


class Outcome:
    """What a run came to. code is the exit status to pass on; status the trace's."""

    def __init__(self, trace: str) -> None:
        self.trace = trace
        self.code = 0
        self.status = "running"
        self.declared = False  # the program itself said how it ended
        self.events = 0
        self.lost = 0


class Run:
    """One wrapped program."""

    def __init__(
        self, folders: Folders, words: Sequence[str], *, agent: str | None, tags: Sequence[str], root: str | None,
        redaction: str, warn: Warn,
    ) -> None:  # fmt: skip
        self._folders = folders
        self._words = list(words)
        self._warn = warn
        self._recording = Recording(folders, tags=tags, redaction=redaction, root=root, warn=warn, after_end=True)
        start: Event = {
            "type": "trace_start",
            "agent_name": agent or words[0],
            "trigger": "manual",
            "input": {"command": words[0], "args": list(words[1:])},
            "metadata": {"source": "run", **_folder(), "pid": os.getpid()},
            "tags": [],
        }
        self._recording.apply(start)
        self._recording.flush()
        (self._trace,) = self._recording.traces.values()
        if not self._trace.stored:
            raise NotRecorded
        self.outcome = Outcome(self._trace.id)
        self._end: Event = {}  # what the program said of its end, the last word of each field
        self._repaired = False
        self._refused = 0

    def go(self, *, grace: float | None, directory: str | None, last: bool = False) -> Outcome:
        """Runs the program to its end and ends its trace. directory: the folder to hand on when the caller named one. Never raises for the program.

        last: this process ends with the program, and signals that come later are not for it.
        """
        folder = None
        try:
            env = {**_environment(), TRACE_VARIABLE: self._trace.id}
            channel = None
            try:
                folder = tempfile.mkdtemp(prefix="guardhook-run-")
                os.close(os.open(f"{folder}/events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                channel = Channel(f"{folder}/events.jsonl", self._warn)
                env[EVENTS_VARIABLE] = channel.path
            except OSError as error:
                env.pop(EVENTS_VARIABLE, None)  # that of another wrapper
                self._warn(f"there is no events file for the program: {error.strerror or error}")
            if directory is not None:
                env["GUARDHOOK_DIR"] = directory
            began = time.monotonic()
            try:
                ended, seconds = child.run(
                    self._words, env, grace=grace, tick=lambda: self._take(channel, last=False), last=last
                )
            except child.NotStarted as error:
                self.outcome.code = NOT_FOUND
                self._warn(str(error))
                self._finish(str(error), time.monotonic() - began)
                return self.outcome
            self._take(channel, last=True)
            self.outcome.code = ended.code
            error_text = None
            if ended.signal is not None:
                error_text = f"child killed by {ended.signal} (exit {ended.code})"
            elif ended.code:
                error_text = f"child exited with code {ended.code}"
            self._finish(error_text, seconds, ended.signal)
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            self._recording.close()
        return self.outcome

    # --- what the program tells ---------------------------------------------------------------------------------

    def _take(self, channel: Channel | None, *, last: bool) -> None:
        if channel is None:
            return
        held = 0
        for raw in channel.lines(last=last):
            held += 0 if raw is None else len(raw)
            if held > CHUNK:  # a program may leave behind more than there is memory
                self._recording.flush()
                held = 0
            body = b"" if raw is None else raw.strip()
            if raw is not None and (not body or body.startswith(b"//")):
                continue
            problem = "longer than may be" if raw is None else self._line(body)
            if problem is not None:
                self._refused += 1
                self._warn(f"events file, line {channel.number}: skipped: {problem}")
        self._recording.flush()

    def _line(self, body: bytes) -> str | None:
        try:
            value = parse(body)
        except BadJson as error:
            return str(error)
        if not isinstance(value, dict):
            return "not an object"
        if value.get("type") == "trace_start":
            return None  # the wrapper's trace has begun
        checked = protocol.check({**value, "trace_id": self._trace.id})
        if checked.rejected is not None:
            return checked.rejected
        if checked.warnings:
            self._warn("events file: " + "; ".join(checked.warnings))
        event = checked.event
        if event["type"] == "trace_end":
            event["ended_at"] = event.get("ended_at") or iso_ms(time.time_ns() // 1000)
            self._repaired = "status" in checked.repaired
            if self._repaired or event.get("status") not in _DECLARED:
                event.pop("status", None)
            self._end = {**self._end, **event}
            if "status" not in event:
                return None  # nothing that a reader could be told before the program has ended
        return self._recording.apply(event)

    # --- the end ------------------------------------------------------------------------------------------------

    def _finish(self, error: str | None, seconds: float, killed_by: str | None = None) -> None:
        """Ends the trace. A status that the program declared is kept; else the exit status tells."""
        outcome = self.outcome
        end: Event = {**self._end, "type": "trace_end", "trace_id": self._trace.id}
        told = end.get("status") or (None if outcome.code or self._repaired else self._told_elsewhere())
        outcome.declared = told is not None
        outcome.status = str(told or ("failed" if outcome.code else "completed"))
        end["status"] = outcome.status
        if not outcome.declared:
            end["ended_at"] = iso_ms(time.time_ns() // 1000)
            if error is not None and end.get("error") is None:
                end["error"] = error
        if end.get("total_duration_ms") is None:
            end["total_duration_ms"] = round(seconds * 1000)
        given = end.get("metadata")
        end["metadata"] = {
            **(given if isinstance(given, dict) else {}),
            "exit_code": outcome.code,
            **({} if killed_by is None else {"signal": killed_by}),
        }
        outcome.events = self._recording.applied - 1  # without the beginning
        for number in sorted(self._trace.open):
            self._recording.apply({
                "type": "step_end", "trace_id": self._trace.id, "step_number": number, "metadata": {"interrupted": True},
            })  # fmt: skip
        self._recording.apply(end)
        self._recording.flush()
        outcome.lost = self._recording.lost + self._refused

    def _told_elsewhere(self) -> str | None:
        """The status that another process put into this trace (`guardhook record` inside the program), when one did."""
        head = write.peek(self._folders.journal, DIALECT, self._trace.id, None)
        if head is None or head.state != write.CLOSED:
            return None
        try:
            with open_store(self._folders) as store:
                found = store.traces(Filter(ids=(self._trace.id,)), limit=1).items
        except StoreError:
            return None
        return found[0].status if found and found[0].status in _DECLARED else None


def _folder() -> dict[str, object]:
    """The folder in which the program runs, unless it is gone."""
    try:
        return {"cwd": os.getcwd()}
    except OSError:
        return {}


def _environment() -> dict[str, str]:
    """The caller's environment, without what the loader of the one-file program put into it for itself."""
    env = dict(os.environ)
    if getattr(sys, "frozen", False):
        for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
            before = env.pop(f"{name}_ORIG", None)
            env.pop(name, None)
            if before is not None:
                env[name] = before
        for name in [n for n in env if n.startswith(("_PYI_", "_MEIPASS"))]:
            del env[name]
    return env
