"""What one invocation leaves in the journal: the event, the verdict, and the answer that was given."""

from __future__ import annotations

import posix

from guardhook.core.event import Event
from guardhook.journal import redact, strip, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.verdict import Answer, Verdict
    from guardhook.policy.compiled import Compiled

OPENING = frozenset(("session_start", "user_prompt", "pre_tool"))


def data_of(
    event: Event,
    verdict: Verdict | None,
    answer: Answer | None,
    compiled: Compiled | None,
    effects: list[object],
    *,
    no_input: bool,
    harness: dict[str, object],
) -> dict[str, object]:
    """The `data` of a `hook.received` line (version 1), redacted. The writer adds the run."""
    rows = compiled.redact if compiled is not None else None
    modes = compiled.config.get("redaction", {}) if compiled is not None else {}
    # Without the redaction rules nothing of the payload may be kept.
    mode = "none" if rows is None else str(modes.get(event.event, modes.get("default", "redacted")))
    payload, pointers = redact.redact(event.payload, rows or (), mode)
    data: dict[str, object] = {
        "v": 1,
        "session": event.session,
        "dialect": event.dialect,
        "client": event.client,
        "native_event": event.native_event,
        "event": event.event,
        "call": event.call,
        "agent": event.agent,
        "cwd": event.cwd,
        "tool": event.tool,
        "kind": event.kind,
        "payload": payload,
        "redacted": pointers,
        "effects": [repr(effect) for effect in effects[:200]],
        "verdict": None,
    }
    if verdict is not None:
        judged = {
            "action": verdict.action,
            "policy": verdict.policy,
            "layer": verdict.layer,
            "cause": verdict.cause,
            "reason": verdict.reason,
            "span": verdict.span,
            "set": verdict.set,
            "mode": verdict.mode,
            "degraded": verdict.degraded,
            "us": verdict.us,
            "answer": None
            if answer is None
            else {
                "exit": answer.exit,
                "stdout": answer.stdout.decode("utf-8", "replace"),
                "stderr": answer.stderr.decode("utf-8", "replace"),
            },
        }
        data["verdict"], _ = redact.redact(judged, rows or (), "redacted" if rows is not None else "full")
    if harness:
        data["harness"] = harness
    if event.payload.get("canary") is True:
        data["canary"] = True
    return strip.strip(data) if no_input else data


def append(
    journal: str, event: Event, root: str | None, data: dict[str, object], budget: float, now: int
) -> write.Outcome:
    """One line in the session's journal file. Never raises: what fails is in the outcome."""
    record = write.Record(
        type="hook.received",
        ts=now,
        dialect=event.dialect,
        session=event.session,
        cwd=event.cwd,
        root=root,
        opens=event.event in OPENING,
        closes=event.event == "session_end",
        data=data,
    )
    return write.append(journal, record, budget=budget)


def harness_process(behind_launcher: bool) -> dict[str, object]:
    """Process id and executable of whoever called, where the system tells (Linux: /proc)."""
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
