"""One turn with everything that is judged about it: its calls, its end, what is missing, and the four checks."""

from __future__ import annotations

from typing import NamedTuple

from guardhook.archive.account import calls, results
from guardhook.archive.account.calls import Call
from guardhook.archive.account.declarations import Check, Declarations
from guardhook.archive.account.record import IDLE, Happened, Record, Turn, is_stop, kept_out, prompt_of, stopped_early
from guardhook.archive.facts import TERMINAL

POSTS = frozenset(("post_tool", "PostToolUse", "AfterTool", "post_tool_use", "postToolUse", "afterTool"))
REACHABLE, UNREACHABLE, NOT_APPLICABLE = "reachable", "unreachable", "not-applicable"
LABELS = {
    "decided-enforced": "stopped calls stayed stopped", "verification": "changes were checked", "empty-results": "results were not empty",
    "retry-loop": "no call was repeated in vain",
}  # fmt: skip


class Signal(NamedTuple):
    """Something that speaks against the answer. kind and tone are words of a closed list; calls are its witnesses."""

    kind: str
    check: str
    tone: str
    calls: tuple[Call, ...]


class Checked(NamedTuple):
    """One check: its state, why it could not run, what it raised."""

    id: str
    state: str
    because: str | None = None
    signals: tuple[Signal, ...] = ()
    needs: str | None = None  # a word for the reason: gap, posts, undeclared, hidden, shape, mode, pairing


class View:
    """A turn of a record. turn None: the record holds none."""

    def __init__(self, record: Record, turn: Turn | None, declared: Declarations, every: list[Call]) -> None:
        self.record = record
        self.turn = turn
        self.declared = declared
        self.events: list[Happened] = record.events[turn.first : turn.last] if turn is not None else []
        self.calls = [c for c in every if turn is not None and turn.first <= c.place < turn.last]
        self.lost = record.lost(turn) if turn is not None else 0
        self.registered = _registered(record) is not None
        self.posts = _posts(record, every)
        self.prompts = [e for e in self.events if prompt_of(e) is not None]
        self.stop = self._stop()
        self.answer = self._answer()
        self.early = next((e for e in self.events if stopped_early(e)), None)
        self.asked = self._asked()
        self.ran = [c for c in self.calls if c.outcome in (calls.RAN, calls.FAILED)]
        self.refused = [c for c in self.calls if c.outcome == calls.REFUSED]
        self.declined = [c for c in self.calls if c.outcome == calls.DECLINED]
        self.open = [c for c in self.calls if c.outcome == calls.OPEN]
        self.changes = [c for c in self.calls if c.changes]
        self._last: dict[tuple[str, str], dict[str, int]] = {}
        for call in self.calls:
            self._last.setdefault(call.target(), {})[call.outcome] = call.place
        self.checks = [self._enforced(), self._verification(), self._empty(), self._retries()]
        self.kept_out = sorted({name for c in self.calls for name in c.kept_out} | ({"answer"} if self.answer_kept_out else set()))  # fmt: skip

    # --- how the turn ended ----------------------------------------------------------------------------------------

    def _stop(self) -> Happened | None:
        """The last stop of the turn, if the main agent did nothing after it."""
        last = None
        for event in self.events:
            if is_stop(event):
                last = event
            elif event.main and event.type == "tool.call.started":
                last = None
        return last

    def _answer(self) -> Happened | None:
        """The event with the words of the answer: the last one before the last stop."""
        if self.stop is None:
            return None
        found = None
        for event in self.events:
            if event.main and event.type == "tool.call.started":
                found = None
            elif (
                is_stop(event)
                and event.text("content") is not None
                and (event.type == "assistant.message" or found is None)
            ):
                found = event
        return found

    @property
    def answer_text(self) -> str | None:
        return None if self.answer is None or self.answer_kept_out else self.answer.text("content")

    @property
    def answer_kept_out(self) -> bool:
        return self.answer is not None and kept_out(self.answer.data.get("content"))

    def _asked(self) -> Happened | None:
        """A question that is still open: to a permission, or a notification that the harness waits."""
        waiting: Happened | None = None
        for event in self.events:
            if event.type == "run.waiting_for_user" and event.text("kind") not in (None, *IDLE):
                waiting = event
            elif (
                (event.type in ("tool.call.completed", "assistant.message") and event.main)
                or event.type in TERMINAL
                or prompt_of(event) is not None
                or is_stop(event)
                or stopped_early(event)
            ):
                waiting = None
        if self.stop is not None:
            return waiting
        # What was interrupted waits for nobody any more.
        early = max((e.number for e in self.events if stopped_early(e)), default=-1)
        pending = [c.asked for c in self.calls if c.asked is not None and c.outcome == calls.OPEN and c.asked.number > early]  # fmt: skip
        if self.turn is not None and self.turn.last < len(self.record.events):
            pending = []  # another turn began since
        if self.record.ended():
            pending = []
        return pending[-1] if pending else waiting

    def last_of(self, call: Call) -> dict[str, int]:
        """Where the last call on the same target stands, by outcome."""
        return self._last.get(call.target(), {})

    # --- the checks ------------------------------------------------------------------------------------------------

    def check(self, id: str) -> Checked:
        return next(c for c in self.checks if c.id == id)

    @property
    def signals(self) -> list[Signal]:
        """What was raised, bad before warn."""
        found = [signal for check in self.checks for signal in check.signals]
        return [s for s in found if s.tone == "bad"] + [s for s in found if s.tone != "bad"]

    def _no_posts(self, id: str) -> Checked:
        """Whether hooks were missing is known from their registration only; that no result came is known always."""
        why = (
            "hooks that tell of results were not installed"
            if self.registered
            else "the record holds no result of any tool"
        )
        return Checked(id, UNREACHABLE, why, needs="posts")

    def _enforced(self) -> Checked:
        id = "decided-enforced"
        observed = any(c.decision is not None and c.decision.text("decision") == "deny" and c.decision.text("mode") for c in self.calls)  # fmt: skip
        denied = [c for c in self.refused if c.by == "guardhook"]
        if not denied:
            if observed:
                return Checked(id, UNREACHABLE, "guardhook only observed and stopped nothing", needs="mode")
            return Checked(id, NOT_APPLICABLE)
        if not self.posts:
            return self._no_posts(id)
        stray = {c.tool for c in self.calls if c.end is not None and c.end.data.get("unpaired") is True}
        if any(c.ambiguous or c.tool in stray for c in denied):
            return Checked(id, UNREACHABLE, "a result may belong to a call that was stopped", needs="pairing")
        if self.lost:
            return _gap(id)
        ran = tuple(c for c in denied if c.ran_all_the_same is not None)
        return Checked(id, REACHABLE, None, (Signal("decided-not-enforced", id, "bad", ran),) if ran else ())

    def last_change(self) -> int:
        """Where the last reported change ended, -1 when there was none."""
        return max((c.done if c.done is not None else c.place for c in self.changes), default=-1)

    def attempts(self) -> list[Call]:
        """Runs of declared checks after the last change, in order of their results."""
        after = self.last_change()
        return sorted((c for c in self.calls if c.check is not None and c.place > after), key=lambda c: c.done if c.done is not None else c.place)  # fmt: skip

    def _verification(self) -> Checked:
        id = "verification"
        if not self.changes:
            return Checked(id, NOT_APPLICABLE)
        if not self.declared.checks:
            return Checked(id, UNREACHABLE, "no checks are declared", needs="undeclared")
        if not self.posts:
            return self._no_posts(id)
        told = [c for c in self.attempts() if c.verdict in ("pass", "fail")]
        if self._lost_after_change():
            return _gap(id)
        if told and told[-1].verdict == "fail":
            return Checked(id, REACHABLE, None, (Signal("verification-failed-last", id, "bad", (told[-1],)),))
        if told:
            return Checked(id, REACHABLE)
        if any(c.verdict == "unclear" or c.outcome == calls.OPEN for c in self.attempts()):
            return Checked(id, UNREACHABLE, "a check ran, but its own result is not in the record", needs="hidden")
        after = self.unverified()
        return Checked(id, REACHABLE, None, (Signal("changed-unverified", id, "warn", tuple(after)),))

    def unverified(self) -> list[Call]:
        """Changes after the last check that passed."""
        passed = max((c.place for c in self.calls if c.verdict == "pass"), default=-1)
        return [c for c in self.changes if (c.done if c.done is not None else c.place) > passed]

    def _lost_after_change(self) -> bool:
        if not self.lost or self.turn is None:
            return False
        last = self.last_change()
        return self.record.lost(Turn(max(last, self.turn.first), self.turn.last)) > 0

    def _empty(self) -> Checked:
        id = "empty-results"
        if not self.ran:
            return Checked(id, NOT_APPLICABLE)
        if not self.posts:
            return self._no_posts(id)
        if self.lost:
            return _gap(id)
        empty = tuple(c for c in self.ran if c.shape.shape == results.EMPTY)
        known = [c for c in self.ran if c.shape.shape != results.UNKNOWN]
        if not known:
            return Checked(id, UNREACHABLE, "no result has a shape that is known", needs="shape")
        if not empty:
            return Checked(id, REACHABLE)
        kind, tone = ("undeclared-empty-used", "bad") if len(empty) == len(self.ran) else ("undeclared-empty-in-view", "warn")  # fmt: skip
        return Checked(id, REACHABLE, None, (Signal(kind, id, tone, empty),))

    def _retries(self) -> Checked:
        id = "retry-loop"
        if len(self.calls) < 3:
            return Checked(id, NOT_APPLICABLE)
        if self.lost:
            return _gap(id)
        found = tuple(call for call, _ in calls.retries(self.calls))
        return Checked(id, REACHABLE, None, tuple(Signal("repeated-failure", id, "warn", (call,)) for call in found))

    def last_results(self) -> dict[str, Call]:
        """The last attributable result of each declared check: after the last change, or anywhere when nothing changed."""
        return {c.check.id: c for c in self.attempts() if c.check is not None and c.verdict in ("pass", "fail")}

    @property
    def untested(self) -> list[Check]:
        return [check for check in self.declared.checks if check.id not in self.last_results()]


def _gap(id: str) -> Checked:
    return Checked(id, UNREACHABLE, "events are missing from the record", needs="gap")


def _registered(record: Record) -> list[object] | None:
    """The hooks that were registered, None when that is not known."""
    hooks = record.structure.get("hooks") if record.structure is not None else None
    return hooks if isinstance(hooks, list) else None


def _posts(record: Record, every: list[Call]) -> bool:
    """Whether results are told of at all: by the registration where it is known, else by any result."""
    hooks = _registered(record)
    if hooks is not None:
        return any(isinstance(h, dict) and h.get("event") in POSTS for h in hooks)
    return any(c.end is not None and c.end.data.get("executed") is not False for c in every)
