"""`POST /v1/runs/replay` without HTTP: what a request means, which file it may read, and what comes of it.

Only files below the rollout folder are read, whatever links say; what lies outside, what belongs to another tenant and what is not there are one and the same answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.journal.recover import is_day
from guardhook.rollout import drift, runs
from guardhook.rollout.fork import Fork, ForkError, fork
from guardhook.rollout.load import Rollout, RolloutError, inside, load
from guardhook.rollout.simulate import simulate
from guardhook.store import Appender, NotFound, StoreError, backtest, instants
from guardhook.store.model import make_id

SUFFIX = ".jsonl"
_STEPS = {
    "user": ("thought", "user_message"),
    "system": ("thought", "system_prompt"),
    "assistant": ("output", "assistant_message"),
    "tool": ("retrieval", "tool_result"),
}


class Refused(Exception):
    """A request that is not done. kind: invalid_request, not_configured, rollout_not_found, rollout_invalid or replay_error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Request(NamedTuple):
    """What is asked for, checked. path may still be a run's bare id."""

    path: str
    mode: str
    fork_step: int | None = None
    detect_drift: bool = False
    detail: bool = False


def path_of(body: object) -> str:
    """The path that a body names. Raises Refused."""
    if not isinstance(body, dict):
        raise Refused("invalid_request", "the body must be a JSON object")
    path = body.get("rollout_path")
    if not isinstance(path, str) or not path.strip():
        raise Refused("invalid_request", "rollout_path is missing: a run's id, or a path below the rollout folder")
    return path


def place(path: str, folder: str | None) -> str:
    """Where the file is looked for: a bare run id is searched in the dated folders, the newest counts. Raises Refused for what lies outside the folder."""
    if folder is None:
        raise Refused("not_configured", "no rollout folder is configured; set `[forensics] rollout_dir` or GUARDHOOK_ROLLOUT_DIR")  # fmt: skip
    named = _dated(path, folder) if bare(path) else None
    path = named or path
    try:
        inside(path, folder)
    except (RolloutError, ValueError, OSError):
        raise missing() from None
    return path


def bare(path: str) -> bool:
    """Whether a path is a run's id alone."""
    return path.startswith("run_") and not any(sign in path for sign in "/\\.\0")


def _dated(name: str, folder: str) -> str | None:
    try:
        days = sorted((day for day in os.listdir(folder) if is_day(day)), reverse=True)
    except OSError:
        return None
    return next((f"{day}/{name}{SUFFIX}" for day in days if os.path.lexists(f"{folder}/{day}/{name}{SUFFIX}")), None)


def missing() -> Refused:
    return Refused("rollout_not_found", "there is no such rollout")


def request_of(body: object, path: str) -> Request:
    """The rest of the request. Raises Refused."""
    assert isinstance(body, dict)
    mode = body.get("mode")
    if mode not in ("simulate", "fork"):
        raise Refused("invalid_request", "mode must be `simulate` or `fork`")
    step = body.get("fork_step")
    if mode == "fork" and type(step) is not int:
        raise Refused("invalid_request", "fork_step must be a whole number: the last step to keep")
    if step is not None and type(step) is not int:
        raise Refused("invalid_request", "fork_step must be a whole number")
    for name in ("detect_drift", "detail"):
        if not isinstance(body.get(name, False), bool):
            raise Refused("invalid_request", f"{name} must be true or false")
    return Request(path, mode, step, body.get("detect_drift", False), body.get("detail", False))


def opened(request: Request, folder: str, sees: Callable[[str | None], bool]) -> Rollout:
    """The rollout, loaded. sees: whether the caller may see what belongs to a tenant. Raises Refused."""
    try:
        found = load(request.path, within=folder)
    except RolloutError as error:
        if error.line == 0:  # not about what is in it: missing, a folder, a FIFO, unreadable
            raise missing() from None
        raise Refused("rollout_invalid", error.message) from None
    tenant = found.start.get("tenant_id")
    if not sees(tenant if isinstance(tenant, str) else None):
        raise missing()
    return found


def simulated(rollout: Rollout, request: Request) -> dict[str, object]:
    """The answer to `simulate`."""
    return simulate(rollout.events, rollout.gaps).as_dict(detail=request.detail)


def drifted(rollout: Rollout, folders: Folders, sees: Callable[[str], bool]) -> dict[str, object]:
    """The answer to `simulate` with detect_drift. sees: whether the caller may see the trace that the rollout is of. Raises Refused, StoreError."""
    run = rollout.start.get("run_id")
    try:
        if isinstance(run, str) and not sees(runs.find(folders, run).trace_id):
            raise drift.DriftError(f"the journal has no run {run}: drift needs the recorded payloads")
        return drift.of_rollout(folders, rollout, backtest.compiled(folders)).as_dict("simulate")
    except NotFound:
        raise Refused("replay_error", f"the journal has no run {run}: drift needs the recorded payloads") from None
    except drift.DriftError as error:
        raise Refused("replay_error", str(error)) from None


def forked(rollout: Rollout, request: Request, folders: Folders, tenant: str | None) -> dict[str, object]:
    """The answer to `fork`: a trace in the store, a copy that never ran. tenant: whose it will be. Raises Refused, StoreError."""
    assert request.fork_step is not None
    try:
        made = fork(rollout.events, request.fork_step)
    except ForkError as error:
        raise Refused("invalid_request", str(error)) from None
    if not made.messages:
        raise Refused("invalid_request", f"up to step {made.from_step} there is no message to go on from")
    name = make_id("trc", rollout.path, str(time.time_ns()), os.urandom(8).hex())
    # What is copied was recorded as its owner wanted it; it is not redacted once more.
    Appender(folders, dialect="fork", redaction="full").put(
        name, _lines(rollout, made, tenant, _parent(folders, rollout.start.get("run_id"))), opens=True
    )
    return {
        "mode": "fork",
        "run_id": name,
        "from_step": made.from_step,
        "original_step_count": made.original_step_count,
        "original_outcome": made.original_outcome,
        "messages_restored": len(made.messages),
    }


def _lines(rollout: Rollout, made: Fork, tenant: str | None, parent: str) -> Iterator[tuple[str, dict[str, object]]]:
    start = rollout.start
    session = start.get("session")
    told = session if isinstance(session, dict) else {}
    source = start.get("run_id")
    metadata: dict[str, object] = {"forked_from": source if isinstance(source, str) else None, "forked_at_step": made.from_step, "copy": "never executed"}  # fmt: skip
    # A copy belongs to whom the original does, also when the owner of all makes it; "" is nobody.
    stated = start.get("tenant_id")
    metadata["tenant_id"] = tenant if tenant is not None else stated if isinstance(stated, str) else ""
    yield (
        "fork.start",
        {
            "agent_name": told.get("harness") if isinstance(told.get("harness"), str) else "rollout",
            "agent_version": told.get("harness_version") if isinstance(told.get("harness_version"), str) else None,
            "trigger": "api",
            "status": "running",
            "input": {"prompt": made.prompt},
            "started_at": instants.iso_ms(time.time_ns() // 1000),
            "tags": [],
            "metadata": metadata,
            "parent_trace_id": parent,
            "forked_from_step": made.from_step,
            "session_id": start.get("conversation_id") if isinstance(start.get("conversation_id"), str) else None,
        },
    )
    for number, message in enumerate(made.messages, 1):
        kind, label = _STEPS[str(message["role"])]
        own = {k: message[k] for k in ("from", "tool_calls", "tool_call_id", "name") if k in message}
        yield "fork.step", {"step_number": number, "step_type": kind, "name": label, "output": {"text": message["content"]}, "metadata": own, "ended_at": None}  # fmt: skip


def _parent(folders: Folders, run: object) -> str:
    """What a fork is a copy of: the trace of the run, where this machine recorded it, else the run. Never nothing, since forks are known by it."""
    if not isinstance(run, str) or not run:
        return "rollout"
    try:
        return runs.find(folders, run).trace_id
    except StoreError:
        return run
