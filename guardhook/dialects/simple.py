"""The frame for harnesses whose answers fit in a few lines: each file fills in names, words and places.

Judged events are blocked with the harness's own words, a review becomes its own question where it has one, and all other
events get the answer that means nothing (for most harnesses, nothing at all).
"""

from __future__ import annotations

from guardhook.core.event import JUDGED, Event
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.dialects import shared, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from guardhook.dialects.shared import Env, Limits, Payload

    Words = Callable[[str, str], Answer]  # (native event, sentence) -> answer
    Reader = Callable[[Payload, str | None], Event]


def exit_words(native: str, sentence: str) -> Answer:
    """Status 2 with the reason on stderr and nothing else."""
    return shared.exit_block(sentence)


def claude_words(native: str, sentence: str) -> Answer:
    """Status 2 and stderr; on PermissionRequest, where Claude Code takes status 2 for no answer, its JSON as well."""
    if native != "PermissionRequest":
        return shared.exit_block(sentence)
    decision = {"behavior": "deny", "message": sentence}
    return shared.exit_block(
        sentence, shared.json_line({"hookSpecificOutput": {"hookEventName": native, "decision": decision}})
    )


def permission_words(native: str, sentence: str) -> Answer:
    """Claude's JSON with status 0 before a tool, the reason on stderr too; status 2 where no JSON is known to block."""
    if native == "PreToolUse":
        return Answer(0, shared.json_line(shared.permission(native, "deny", sentence)), shared.error_line(sentence))
    return claude_words(native, sentence)


def permission_ask(native: str, sentence: str) -> Answer:
    """Claude's JSON for a question to the user."""
    return Answer(0, shared.json_line(shared.permission(native, "ask", sentence)))


def decision_words(key: str, word: str, reason_key: str, status: int) -> Words:
    """A flat reply such as {"decision":"deny","reason":…} with a status, the reason on stderr too."""

    def words(native: str, sentence: str) -> Answer:
        reply = shared.json_line({key: word, reason_key: sentence})
        return Answer(status, reply, shared.error_line(sentence))

    return words


class Dialect:
    """One harness. The bound methods of an instance are the functions of its module."""

    def __init__(
        self,
        name: str,
        routes: Mapping[str, str],
        *,
        reader: Reader | None = None,
        block: Words = exit_words,
        ask: Words | None = None,
        ask_events: tuple[str, ...] | None = None,
        passing: Callable[[str, str], Answer] | None = None,
        also: tuple[str, ...] = (),
        also_named: tuple[str, ...] = (),
    ) -> None:
        self.names = (name, *also_named)
        self.routes = routes
        self.reader = reader
        self.block = block
        self.ask = ask
        self.ask_events = (
            ask_events  # native events where the question is honoured, None for every known one before a tool
        )
        self.passing = passing  # (native event, canonical event) -> no objection
        self.also = also  # native events that can be blocked although they are not judged by default

    def recognise(self, payload: Payload, env: Env) -> bool:
        return any(table.matches(name, payload, env) for name in self.names)

    def read(self, payload: Payload, env: Env, event_arg: str | None) -> Event:
        if self.reader is not None:
            return self.reader(payload, event_arg)
        return shared.read_claude_shape(self.names[0], payload, event_arg, self.routes)

    def answer(self, event: Event, verdict: Verdict) -> Answer:
        native = event.native_event
        if not shared.stops(verdict) or not (event.event in JUDGED or native in self.also):
            return self._pass(native, event.event)
        if verdict.action == "require_review":
            if event.event == "permission_request":
                return self._pass(native, event.event)
            asks = native in (self.routes if self.ask_events is None else self.ask_events)
            if self.ask is not None and event.event == "pre_tool" and asks:
                return self.ask(native, shared.ask_reason(verdict))
        return self.block(native, shared.block_reason(verdict))

    def fallback(self, native_event: str | None, reason: str = shared.NO_VERDICT) -> Answer:
        """The answer when there is no verdict."""
        if native_event is not None and native_event in self.routes:
            canonical = self.routes[native_event]
            if canonical not in JUDGED:
                return self._pass(native_event, canonical)
        return self.block(native_event or "", shared.deny_reason(shared.fault(reason)))

    def _pass(self, native: str, canonical: str) -> Answer:
        return self.passing(native, canonical) if self.passing is not None else SILENT


def limits_of(
    *,
    unit: str = "s",
    timeout: float = 10,
    events: tuple[str, ...] = ("PreToolUse",),
    observed: tuple[str, ...] = (),
    blocking: tuple[str, ...] | None = None,
    source: str,
    deny: str,
    ask: str,
    passes: str = "nothing",
    open: tuple[str, ...],
    observe_answers: bool = False,
) -> Limits:
    """Limits of a harness that was not run: what its sources, its package or its documents say."""
    first = events[0]
    return shared.Limits(
        unit=unit,
        timeout=timeout,
        events=events,
        observed=observed,
        blocking=blocking if blocking is not None else events,
        versions=(),
        matrix=(
            (first, "deny", deny, "call not run", source),
            (first, "ask", ask, "see the answer", source),
            (first, "allow", passes, "the harness's own rules decide", source),
        ),
        open=open,
        observe_answers=observe_answers,
    )
