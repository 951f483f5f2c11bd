"""What one invocation leaves in the journal: the event, the verdict, and the answer that was given."""

from __future__ import annotations

import posix
import time

from guardhook.core.event import Event
from guardhook.journal import line, redact, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.effect import Effect
    from guardhook.core.verdict import Answer, Verdict
    from guardhook.policy.compiled import Compiled

OPENING = frozenset(("session_start", "user_prompt", "pre_tool"))


def data_of(
    event: Event,
    verdict: Verdict | None,
    answer: Answer | None,
    compiled: Compiled | None,
    effects: list[Effect],
    *,
    no_input: bool,
    behind_launcher: bool,
) -> dict[str, object]:
    """The `data` of a `hook.received` line (version 1), redacted. The writer adds the run."""
    data = line.received(event, effects, verdict, answer)
    if compiled is None or not compiled.redact:
        # Without the redaction rules nothing of the payload may be kept.
        data = redact.protect(data, (), "none")
    else:
        modes = compiled.config.get("redaction")
        mode = compiled.config.get("mode", "redacted")
        if isinstance(modes, dict):
            mode = modes.get(event.event, mode)
        data = redact.protect(data, compiled.redact, str(mode))  # type: ignore[arg-type]
    data["caller"] = caller(behind_launcher)
    if event.payload.get("canary") is True:
        data["canary"] = True
    declared = None if compiled is None else compiled.config.get("declared")
    if declared and event.event in OPENING:
        data["declarations_sha256"] = declared
    if no_input:
        from guardhook.journal import strip

        data = strip.strip(data)
    return data


def append(
    journal: str,
    event: Event,
    root: str | None,
    data: dict[str, object],
    budget: float,
    now: int,
    compiled: Compiled | None = None,
) -> write.Outcome:
    """One line in the session's journal file, and the audit trail's part where compiled says that there is one. Never raises: what fails is in the outcome.

    budget in seconds, for both; now in ns.
    """
    if _paused(journal.rpartition("/")[0]):
        data["paused"] = True
        verdict = data.get("verdict")
        if isinstance(verdict, dict) and verdict.get("mode") == "enforce":
            verdict["mode"] = "paused"  # a fault, which blocks all the same
    audit = None if compiled is None else compiled.config.get("audit")
    started = time.monotonic()
    outcome = write.append(
        journal,
        write.Record(
            type="hook.received",
            ts=now,
            dialect=event.dialect,
            session=event.session,
            cwd=event.cwd,
            root=root,
            opens=event.event in OPENING,
            closes=event.event == "session_end",
            data=data,
        ),
        budget=budget,
    )
    if isinstance(audit, dict) and outcome.state != "nowhere":
        left = budget - (time.monotonic() - started)
        try:
            from guardhook.journal import audit as trail

            trail.take(audit, journal, event, data, now, outcome, left)
        except Exception:
            pass  # an installation that is in pieces changes no decision either: the call is on record
    return outcome


def _paused(data_folder: str) -> bool:
    """Whether a person paused guardhook (guardhook.gate.pause): then every line says so, judged or not."""
    try:
        posix.lstat(data_folder + "/pause")
    except OSError:
        return False
    from guardhook.gate import pause

    return pause.current(data_folder) is not None


def caller(behind_launcher: bool) -> dict[str, object]:
    """Process id and executable of whoever called, where the system tells (Linux: /proc).

    An agent can pipe forged events into the hook; who started it is what tells them apart afterwards.
    """
    pid = posix.getppid()
    if behind_launcher:
        pid = _parent_of(pid) or pid
    try:
        return {"pid": pid, "exe": posix.readlink(f"/proc/{pid}/exe")}
    except OSError:
        return {"pid": pid}


def _parent_of(pid: int) -> int | None:
    try:
        fd = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = posix.read(fd, 1024)
    finally:
        posix.close(fd)
    # `pid (name) state ppid …`; the name may hold anything, so count from its closing bracket.
    fields = text[text.rfind(b")") + 1 :].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None
