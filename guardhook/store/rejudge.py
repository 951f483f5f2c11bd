"""One recorded trace under today's policies: which of its steps would be denied now. `guardhook guard test TRACE`.

What hooks recorded is judged as the hook does, from the payload in the journal. Steps of recorded, imported and forked traces are judged as `guardhook guard check`
judges a step. A step whose input was redacted, cut or stripped can't be judged: it is counted, never guessed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.core.event import Event
from guardhook.core.folders import Folders
from guardhook.core.jsontext import PayloadError
from guardhook.core.verdict import Verdict
from guardhook.journal import files, read
from guardhook.journal.line import Line
from guardhook.journal.redact import MARK
from guardhook.policy.compiled import Compiled
from guardhook.store import backtest
from guardhook.store.errors import Unusable
from guardhook.store.model import Step, Trace
from guardhook.store.query import Store

_OWN = "guard_check"  # our own steps
_NOWHERE = "/unknown"  # where a step ran whose folder was not recorded; not where we stand, whose project has nothing to do with it
_SPOILT = ("redacted", "cut")


class Judged(NamedTuple):
    """A step with its verdict, or with the reason (one of backtest.REASONS) why it has none."""

    step_number: int | None  # None when the store has no step for the call
    name: str | None
    call: str  # what it does, in its own words
    verdict: Verdict | None
    missing: str | None = None


def judge(store: Store, folders: Folders, trace: Trace, policies: Compiled) -> Iterator[Judged]:
    """Every call of a trace that hooks told of, every step of another one, in order. Nothing is written. Raises Unusable."""
    one = backtest.Judge(folders)
    key = store.key(trace)
    try:
        if trace.live and key is not None:
            yield from _calls(store, folders, trace, key, one, policies)
        else:
            spoilt = {} if key is None else _spoilt(folders, key, trace.id)
            for step in store.steps(trace):
                if step.step_type != _OWN:
                    yield _step(trace, step, spoilt.get(step.step_number), one, policies)
    except (OSError, files.Unsafe) as error:
        raise Unusable(
            f"{folders.journal}: {error.filename or key}: {error.strerror or error}", folders.journal
        ) from None


def _calls(
    store: Store, folders: Folders, trace: Trace, key: str, one: backtest.Judge, policies: Compiled
) -> Iterator[Judged]:
    numbers = dict(store.tickets(trace))
    seen: set[str] = set()
    for line in _lines(folders, key):
        data = line.data
        if line.type != "hook.received" or data.get("event") != "pre_tool" or data.get("canary") is True:
            continue
        call = data.get("call")
        if isinstance(call, str):
            if call in seen:  # two registrations told of it
                continue
            seen.add(call)
        verdict, name, told, missing = None, data.get("tool"), "", backtest.lacking(data)
        if missing is None:
            try:
                event = backtest.event_of(data)
                told = backtest.told(event)
            except Exception:  # whatever a dialect's reader makes of an old line
                missing = "unreadable"
            else:
                verdict, missing = _verdict(one, policies, event, data)
        yield Judged(numbers.get(line.seq), name if isinstance(name, str) else None, told, verdict, missing)


def _step(trace: Trace, step: Step, spoilt: str | None, one: backtest.Judge, policies: Compiled) -> Judged:
    from guardhook.gate.check import event_of

    if spoilt is not None or MARK in step.input_json or MARK in step.name:
        return Judged(step.step_number, step.name, "", None, spoilt or "redacted")
    given: dict[str, object] = {"step_type": step.step_type, "name": step.name, "input": step.input}
    if step.output_json is not None:
        given["output"] = step.output
    cwd = trace.metadata.get("cwd") or trace.project
    given["cwd"] = cwd if isinstance(cwd, str) else _NOWHERE
    try:
        event = event_of(given)
    except PayloadError:
        return Judged(step.step_number, step.name, "", None, "unreadable")
    verdict, missing = _verdict(one, policies, event, {"root": trace.project})
    return Judged(step.step_number, step.name, backtest.told(event), verdict, missing)


def _verdict(
    one: backtest.Judge, policies: Compiled, event: Event, data: dict[str, object]
) -> tuple[Verdict | None, str | None]:
    try:
        verdict = one(policies, event, data)
    except Exception:
        return None, "failed"
    return (None, "out_of_time") if verdict.degraded else (verdict, None)


def _spoilt(folders: Folders, key: str, trace_id: str) -> dict[int, str]:
    """Numbers of the steps whose name or input was not recorded as it was, and why."""
    found: dict[int, str] = {}
    for line in _lines(folders, key):
        event, name = line.data.get("event"), line.data.get("trace")
        if name != trace_id or not isinstance(event, dict) or not isinstance(event.get("step_number"), int):
            continue
        for reason in _SPOILT:
            pointers = line.data.get(reason)
            if isinstance(pointers, list) and any(
                isinstance(p, str) and (p == "" or p.startswith(("/input", "/name"))) for p in pointers
            ):
                found[event["step_number"]] = reason
    return found


def _lines(folders: Folders, key: str) -> Iterator[Line]:
    found = read.session_files(folders.journal, key=key)
    imported = read.SessionFile(read.IMPORTS, key)
    if os.path.lexists(imported.path(folders.journal)):
        found.append(imported)
    for file in found:
        fd = read.open_session(folders.journal, file)
        try:
            yield from (entry.line for entry in read.entries(fd) if entry.line is not None)
        finally:
            os.close(fd)
