"""What hooks told of a session, for coverage: read from the journal itself, so that no store is needed and nothing is made."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from guardhook.core.folders import Folders
from guardhook.intake import records
from guardhook.journal import line, read, redact
from guardhook.journal.read import SessionFile
from guardhook.store import behind
from guardhook.store.facts import Facts, text
from guardhook.store.instants import micros

# Harnesses whose hooks don't tell the call's id.
WITHOUT_IDS = frozenset(("gemini",))
# Harnesses whose hooks tell an id of their own beside the one that the log has; it stands in the payload, which may not have been kept.
TWO_IDS = frozenset(("qwen-code",))
# By tool and input an event of another call may be like this one's; so long before a call began it is surely of another.
EARLY_US = 60_000_000
_ASKED = ("pre_tool", "permission_request")
_OVER = ("post_tool", "post_tool_failure")
_UNTOLD = "\0untold"
_CALLERS_MOST = 16


class _Line(msgspec.Struct):
    ts: str = ""
    type: str = ""
    data: dict[str, Any] = {}


class Told:
    """A call as hooks told it."""

    __slots__ = ("blocked", "call", "judged", "policy", "ran", "taken", "us")

    def __init__(self, us: int, call: str | None) -> None:
        self.us = us  # when the first event of it came
        self.call = call
        self.judged = False
        self.blocked = False
        self.policy: str | None = None
        self.ran = False  # a result was told
        self.taken = False


class Heard:
    """The hook events of one session."""

    def __init__(self, dialect: str, folders: Folders | None = None) -> None:
        """folders: whose redaction rules inputs may have gone through, where calls are known by them."""
        self.events = 0
        self.callers: dict[str, int] = {}  # program that told events -> how many
        self._folders = folders
        self._by_input = dialect in WITHOUT_IDS
        self._two_ids = dialect in TWO_IDS
        self._calls: dict[str, list[Told]] = {}
        self._inputs: dict[tuple[str, str], list[Told]] = {}

    def add(self, found: _Line) -> None:
        data = found.data
        if found.type != line.RECEIVED or data.get("canary") is True:
            return
        self.events += 1
        caller = data.get("caller")
        exe = text(caller.get("exe")) if isinstance(caller, dict) else None
        if exe is not None and (exe in self.callers or len(self.callers) < _CALLERS_MOST):
            self.callers[exe] = self.callers.get(exe, 0) + 1
        us = micros(found.ts)
        event = data.get("event")
        if us is None or event not in (*_ASKED, *_OVER):
            return
        facts = Facts(data, 0, found.ts, us)
        told = self._told(facts, us, event in _OVER)
        if told is None:
            return
        if event in _OVER:
            told.ran = True
            return
        verdict = facts.verdict
        if verdict is not None:
            told.judged = told.judged or verdict.get("mode") != "observe"
            if facts.blocked():
                told.blocked = True
                policy = verdict.get("policy")
                told.policy = policy if isinstance(policy, str) else None

    def _told(self, facts: Facts, us: int, over: bool) -> Told | None:
        """The call that an event belongs to. A result alone is no proof that the gate was asked."""
        untold = facts.data.get("redaction") == "none"
        alike = self._by_input or (self._two_ids and untold)
        if alike:
            untold = untold or bool(facts.cut)
            waiting = self._inputs.setdefault(_likeness(facts.tool, _UNTOLD if untold else facts.input), [])
        else:
            call = (text(facts.payload.get("tool_call_id")) if self._two_ids else None) or facts.call
            if call is None:
                return None
            waiting = self._calls.setdefault(call, [])
        going_on = next((t for t in waiting if not t.ran and t.call == facts.call), None)
        if over or (going_on is not None and (not alike or facts.call is not None)):
            return going_on
        told = Told(us, facts.call)
        waiting.append(told)
        return told

    def take(self, call: str | None, tool: str, input: object, began: int | None, until: int | None) -> Told | None:
        """What was told of a call that began at an instant, until another; each telling counts for one call. Microseconds, None when unknown.

        By input where there are no ids: as it is, without secrets, hashed, or not told at all.
        """
        if not self._by_input:
            found = None if call is None else _first(self._named(call), None, until)
            if found is not None or not self._two_ids:
                return found
        since = None if began is None else began - EARLY_US
        for form in (_forms(input, self._folders) if self._by_input else (_UNTOLD,)) if self._inputs else ():
            found = _first(self._inputs.get(_likeness(tool, form), ()), since, until)
            if found is not None:
                return found
        return None

    def _named(self, call: str) -> Sequence[Told]:
        found = self._calls.get(call)
        if found is None and self._two_ids:
            hashed = redact.redact(call, (), "hashed")[0]
            found = self._calls.get(hashed) if isinstance(hashed, str) else None
        return found or ()

    def knows(self, call: str | None) -> bool:
        """Whether a call was told at all, be it too late or for another call of the log."""
        return call is not None and bool(self._named(call))


def _first(waiting: Sequence[Told], since: int | None, until: int | None) -> Told | None:
    """The first that is not taken yet and was told between two instants; it is taken now."""
    for told in waiting:
        if not told.taken and (since is None or told.us >= since) and (until is None or told.us <= until):
            told.taken = True
            return told
    return None


def _forms(value: object, folders: Folders | None) -> Iterator[object]:
    """What an input may look like in the journal. The user's own patterns may be younger than the line."""
    yield value
    for rows in _rows(folders):
        yield redact.redact(value, rows, "redacted")[0]
    yield redact.redact(value, (), "hashed")[0]
    yield _UNTOLD


@functools.cache
def _rows(folders: Folders | None) -> tuple[tuple[redact.Row, ...], ...]:
    from guardhook.journal.rules import configured, freeze_rules

    return (freeze_rules(),) if folders is None else (configured(folders), freeze_rules())


def _likeness(tool: str | None, input: object) -> tuple[str, str]:
    try:
        text = msgspec.json.encode(input, order="sorted").decode()
    except (UnicodeEncodeError, OverflowError, RecursionError):
        text = repr(input)
    return tool or "", text


class Journal:
    """Finds the files of sessions. One look at the folders for all sessions."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._journal = journal = folders.journal
        self._days: dict[str, list[str]] = {}
        try:
            for folder, key, _ in behind.data_files(journal, packed=True):
                if folder != behind.IMPORTS:
                    self._days.setdefault(key, []).append(folder)
        except OSError:
            pass  # nothing was ever recorded, so nothing reached the gate
        self._decoder = records.Decoder(_Line)

    def session(self, dialect: str, session: str | None) -> Heard:
        """Everything that hooks told of a session; files that can't be read tell nothing."""
        heard = Heard(dialect, self._folders)
        if session is None:
            return heard
        key = line.key(dialect, session)
        for day in sorted(self._days.get(key, ())):
            try:
                fd = read.open_session(self._journal, SessionFile(day, key))
            except OSError:
                continue
            try:
                for _, raw, _ in records.lines(fd):
                    found = None if raw is None else self._decoder.decode(raw)[0]
                    if found is not None:
                        heard.add(found)
            finally:
                os.close(fd)
        return heard
