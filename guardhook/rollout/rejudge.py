"""Recorded hook lines through today's guardhook: recognised, read and judged anew, in their order. Nothing is run and no model is asked."""

from __future__ import annotations

from typing import NamedTuple

from guardhook.analysis.facts import Facts
from guardhook.core.effect import Effect
from guardhook.core.event import JUDGED, Event
from guardhook.core.folders import Folders
from guardhook.core.verdict import Answer, Verdict
from guardhook.journal import line
from guardhook.policy.compiled import Compiled
from guardhook.store.backtest import Judge, lacking

_MARKS = 256
_CALLS = frozenset(("pre_tool", "permission_request"))


class Again(NamedTuple):
    """What became of a line. data: as it would be recorded today (as it was recorded where `why` says that this can't be told)."""

    data: dict[str, object]
    why: str | None = None  # redacted, cut, stripped, paused: not looked at again
    verdict: Verdict | None = None  # today's, of a line that was judged then
    event: Event | None = None
    failed: str | None = None  # what went wrong today


class Rejudge:
    """Judges one session's lines as the hook does, with the policies of their projects as they are now and what the session brought to disk on its way."""

    def __init__(self, folders: Folders, main: Compiled) -> None:
        self._judge = _Judge(folders)
        self._main = main
        self._marked: dict[str, str] = {}

    @property
    def policy_set(self) -> str:
        return self._main.set

    def line(self, data: dict[str, object]) -> Again:
        """One `hook.received` line's data."""
        missing = lacking(data) or ("paused" if data.get("paused") else None)
        if missing == "stripped" and not data.get("stripped"):
            missing = "empty"  # a payload that was not kept
        if missing is not None:
            return Again(data, why=missing)
        try:
            event = _read(data)
        except Exception as error:  # whatever a dialect's reader makes of an old line
            return Again(_with(data, event="other"), failed=f"it can't be read any more ({type(error).__name__})")
        if event is None:
            return Again(_with(data, event="other", tool=None, kind=None), failed="it is not recognised any more")
        if not isinstance(data.get("verdict"), dict) or event.event not in JUDGED:
            return Again(self._as_line(data, event, [], None, None), event=event)
        try:
            verdict, effects, facts = self._judge.judge(self._main, event, data, self._marked)
            from guardhook.dialects import table

            answer: Answer = table.load(event.dialect).answer(event, verdict)
        except Exception as error:
            return Again(data, event=event, failed=f"judging it failed ({type(error).__name__})")
        self._remember(verdict, facts)
        return Again(self._as_line(data, event, effects, verdict, answer), verdict=verdict, event=event)

    def without_disk(self, event: Event, data: dict[str, object]) -> Verdict:
        """The verdict of somebody who sees neither disk nor what the session brought there."""
        return self._judge.judge(self._main, event, data, {}, disk=False)[0]

    def _remember(self, verdict: Verdict, facts: Facts) -> None:
        if facts.brought and (verdict.action != "deny" or verdict.mode == "observe"):
            self._marked = dict(list({**self._marked, **facts.brought}.items())[-_MARKS:])

    def _as_line(
        self, data: dict[str, object], event: Event, effects: list[Effect], verdict: Verdict | None, answer: Answer | None
    ) -> dict[str, object]:  # fmt: skip
        if event.client is None and isinstance(data.get("client"), str):
            event.client = str(data["client"])
        if event.cwd is None and isinstance(data.get("cwd"), str):
            event.cwd = str(data["cwd"])
        if event.session is None and isinstance(data.get("session"), str):
            event.session = str(data["session"])
        made = {**data, **line.received(event, effects, verdict, answer)}
        then = data.get("verdict")
        if isinstance(made["verdict"], dict) and isinstance(then, dict):
            # Which policies were in force is compared by itself, and how long judging took is no difference.
            made["verdict"].update(set=then.get("set"), us=then.get("us"))
            if then.get("mode") == "observe":
                made["verdict"]["mode"] = "observe"
        return made


def _read(data: dict[str, object]) -> Event | None:
    """The event as today's code recognises and reads the payload; None when no dialect takes it."""
    from guardhook.dialects import table

    payload, native, then = data["payload"], data.get("native_event"), data.get("dialect")
    if not isinstance(payload, dict) or not isinstance(then, str):
        raise TypeError("no payload")
    chosen, _ = table.choose(table.candidates(payload, {}), then if then in table.MODULES else None)
    if chosen is None:
        return None
    event: Event = table.load(chosen).read(payload, {}, native if isinstance(native, str) else None)
    if event.cwd is None and isinstance(data.get("cwd"), str):
        event.cwd = str(data["cwd"])
    return event


def _with(data: dict[str, object], **changes: object) -> dict[str, object]:
    return {**data, "verdict": None, **changes}


class _Judge(Judge):
    """As backtest judges, with the session's marks, and with effects and facts in the result."""

    def judge(
        self, main: Compiled, event: Event, data: dict[str, object], marked: dict[str, str], *, disk: bool = True
    ) -> tuple[Verdict, list[Effect], Facts]:
        from guardhook.gate import judge as gate
        from guardhook.gate.facts import as_named

        sets, root = self.policies(main, event, data)
        facts = self.facts(root, event.cwd, marked)
        if not disk:
            facts = Facts(
                home=facts.home, user=facts.user, project_root=as_named(root, event.cwd), guard_paths=facts.guard_paths
            )
        verdict, effects = gate.decide(sets, event, facts, allow_empty=True)
        return verdict, effects, facts
