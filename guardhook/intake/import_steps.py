"""What session logs of all harnesses have in common: prompts and envelopes, steps with calls that end later, usage per message."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from guardhook.core.jsontext import dumps
from guardhook.intake.imports import Counts, Event
from guardhook.store.instants import micros

# Text in a user's turn that no person typed.
_ENVELOPES = (
    "<", "# AGENTS.md instructions", "A session-scoped Stop hook is now active", "[SYSTEM NOTIFICATION",
    "This session is being continued from a previous conversation that ran out of context",
)  # fmt: skip
_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
OPEN_MOST = 10_000  # calls without a result that are remembered
PROMPTS_MOST = 2_000  # prompts that are kept beside the first, and their characters
PROMPT_CHARS = 1 << 20
MESSAGES_MOST = 8_192
TOKENS_MOST = 1 << 53
_FAR = 1 << 62


def is_envelope(text: str) -> bool:
    """Whether a user's turn is something that the harness put there: reminders, command wrappers, notifications."""
    return text.lstrip().startswith(_ENVELOPES)


def typed(parts: list[str]) -> list[str]:
    """The turn of a user whose message has these texts: one, without the files that Gemini CLI and its kin put behind what was typed; none when all is blank."""
    whole = "\n".join(part for part in parts if part.strip())
    text = whole
    while (start := text.find(_FILES)) >= 0:
        end = text.find(_FILES_END, start)
        text = text[:start].rstrip() + ("" if end < 0 else text[end + len(_FILES_END) :])
    return [text if text.strip() else whole] if whole else []


def number(value: object) -> int:
    """A count of tokens: a number, or text of one; everything else and what is below 0 is 0."""
    if type(value) is int:
        return value if 0 <= value <= TOKENS_MOST else 0 if value < 0 else TOKENS_MOST
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return 0
    return int(max(0, min(value, TOKENS_MOST)))


def flatten(value: object) -> str:
    """What a tool said, as text: parts of a list line by line, pictures named instead of shown, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        said = [_part(item) for item in value]
        if any(text is not None for text in said):
            return "\n".join(text for text in said if text is not None)
    return dumps(value)


def _part(item: object) -> str | None:
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        return None
    text = item.get("text")
    if isinstance(text, str):
        return text
    kind = item.get("type")
    if isinstance(kind, str) and ("image" in kind or kind == "document"):
        return f"[{kind[:40]}]"
    return None


class Recent:
    """What was seen lately: at least the last `most` things, at most twice as many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: set[str | int] = set()
        self._old: set[str | int] = set()

    def __contains__(self, what: str | int) -> bool:
        return what in self._new or what in self._old

    def again(self, what: str | int) -> bool:
        """Whether this was seen before; now it was."""
        if what in self:
            return True
        self._new.add(what)
        if len(self._new) >= self._most:
            self._old, self._new = self._new, set()
        return False


class Turns:
    """The user's turns. The first that is no envelope is the prompt; which one that is was found out beforehand (`Prompt`)."""

    def __init__(self, prompt: Prompt) -> None:
        self._before = prompt.before
        self._at = -1
        self._preamble: list[str] = []
        self._later: list[str] = []
        self._room = PROMPT_CHARS
        self._omitted = 0

    def add(self, text: str) -> None:
        """The next turn; it is not blank."""
        self._at += 1
        if self._at == self._before:
            return
        kept = self._preamble if self._at < self._before else self._later
        if len(self._preamble) + len(self._later) >= PROMPTS_MOST or len(text) > self._room:
            self._omitted += 1
            return
        self._room -= len(text)
        kept.append(text)

    def metadata(self) -> dict[str, object]:
        out: dict[str, object] = {}
        if self._preamble:
            out["preamble_prompts"] = self._preamble
        if self._later:
            out["follow_up_prompts"] = self._later
        if self._omitted:
            out["prompts_omitted"] = self._omitted
        return out


class Prompt:
    """Which turn is the prompt: fed with the turns from the start until `found`."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.before = 0  # turns before it
        self.found = False
        self._seen = 0

    def add(self, text: str) -> None:
        if not is_envelope(text):
            self.text, self.before, self.found = text, self._seen, True
        elif self.text is None:
            self.text = text
        self._seen += 1

    def input(self) -> dict[str, object]:
        return {} if self.text is None else {"prompt": self.text}


class Usage:
    """Tokens of messages, each counted once however often it is told: the largest that was told counts."""

    def __init__(self) -> None:
        self.total = 0
        self.kinds: dict[str, int] = {}
        self._known: OrderedDict[str, dict[str, int]] = OrderedDict()  # a plain one is slow to give up its first

    def add(self, message: str | None, told: dict[str, int]) -> int | None:
        """Gives what the message's tokens are more than was known; None when nothing is told."""
        if not told:
            return None
        before = self._known.get(message, {}) if message else {}
        more = 0
        for kind, value in told.items():
            extra = value - before.get(kind, 0)
            if extra > 0:
                self.kinds[kind] = self.kinds.get(kind, 0) + extra
                more += extra
        self.total += more
        if message:
            if more or not before:
                self._known[message] = {k: max(v, before.get(k, 0)) for k, v in told.items()}
                if len(self._known) > MESSAGES_MOST:
                    self._known.popitem(last=False)
            if not more and before:
                return None
        return more


class Steps:
    """Makes the events of a run's steps, and remembers calls until their results come."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.next = 1
        self.first: str | None = None  # time stamps, as they were told
        self.last: str | None = None
        self.last_text: str | None = None
        self.models: dict[str, int] = {}
        self._open: OrderedDict[str, tuple[int, int | None]] = OrderedDict()
        self._us_of: tuple[str | None, int | None] = (None, None)
        self._from, self._until = _FAR, -_FAR

    def us(self, stamp: str | None) -> int | None:
        """Microseconds of a time stamp; neighbouring records often have the same one."""
        if stamp is None:
            return None
        if self._us_of[0] != stamp:
            self._us_of = (stamp, micros(stamp))
        return self._us_of[1]

    def seen(self, stamp: str | None) -> str | None:
        """A record's time stamp, of whatever kind the record is; given back unless it is none."""
        if stamp is None or len(stamp) > 40:
            return None
        us = self.us(stamp)
        if us is None:
            return None
        if us > self._until:
            self._until, self.last = us, stamp
        if us < self._from:
            self._from, self.first = us, stamp
        return stamp

    def step(
        self,
        kind: str,
        name: str,
        stamp: str | None,
        *,
        input: object = None,
        output: object = None,
        parent: int | None = None,
        cause: int | None = None,
        model: str | None = None,
        tokens: int | None = None,
        error: str | None = None,
        duration_ms: int | None = None,
        started: str | None = None,
        metadata: dict[str, object] | None = None,
    ) -> Event:
        """A step that is over when it is told."""
        fields = self._fields(kind, name, started or stamp, input, parent, cause, model, tokens, metadata)
        fields["ended_at"] = stamp
        if output is not None:
            fields["output"] = output
        if error is not None:
            fields["error"] = error
        if duration_ms is not None:
            fields["duration_ms"] = duration_ms
        return Event("trace.step", fields, self.us(stamp))

    def call(
        self,
        call: str | None,
        name: str,
        stamp: str | None,
        *,
        kind: str = "tool_call",
        input: object = None,
        parent: int | None = None,
        model: str | None = None,
        tokens: int | None = None,
        metadata: dict[str, object] | None = None,
    ) -> Event:
        """A call whose result comes later (`result`), if it comes."""
        own: dict[str, object] = {} if call is None else {"call": call}
        fields = self._fields(kind, name, stamp, input, parent, None, model, tokens, {**own, **(metadata or {})})
        us = self.us(stamp)
        if call is not None:
            self._open[call] = (self.next - 1, us)
            if len(self._open) > OPEN_MOST:
                self._open.popitem(last=False)
        return Event("trace.step_start", fields, us)

    def is_open(self, call: str) -> bool:
        return call in self._open

    def number_of(self, call: str | None) -> int | None:
        """The step of a call that has no result yet."""
        found = None if call is None else self._open.get(call)
        return None if found is None else found[0]

    def result(
        self,
        call: str,
        stamp: str | None,
        output: object,
        error: str | None = None,
        metadata: dict[str, object] | None = None,
        duration_ms: int | None = None,
    ) -> Event:
        """The end of an open call."""
        step, started = self._open.pop(call)
        fields: dict[str, object] = {"step_number": step, "output": output}
        if stamp is not None:
            fields["ended_at"] = stamp
        if error is not None:
            fields["error"] = error
        if metadata:
            fields["metadata"] = metadata
        us = self.us(stamp)
        if duration_ms is None and us is not None and started is not None and us >= started:
            duration_ms = (us - started) // 1000
        if duration_ms is not None:
            fields["duration_ms"] = duration_ms
        return Event("trace.step_end", fields, us)

    def _fields(
        self,
        kind: str,
        name: str,
        stamp: str | None,
        input: object,
        parent: int | None,
        cause: int | None,
        model: str | None,
        tokens: int | None,
        metadata: dict[str, object] | None,
    ) -> dict[str, object]:
        fields: dict[str, object] = {"step_number": self.next, "step_type": kind, "name": name}
        self.next += 1
        self.counts.steps += 1
        if input is not None:
            fields["input"] = input
        if stamp is not None:
            fields["started_at"] = stamp
        if parent is not None:
            fields["parent_step"] = parent
        if cause is not None:
            fields["caused_by_step"] = cause
        if model is not None:
            fields["model"] = model
            self.models[model] = self.models.get(model, 0) + 1
            if len(self.models) > 64:
                del self.models[next(iter(self.models))]
        if tokens is not None:
            fields["tokens_used"] = tokens
        if metadata:
            fields["metadata"] = metadata
        return fields

    def end(
        self,
        *,
        tokens: int | None,
        status: str = "completed",
        error: str | None = None,
        cost: float | None = None,
        metadata: dict[str, object],
    ) -> Iterator[Event]:
        """The end of the run, with what is known only then."""
        fields: dict[str, object] = {"status": status}
        if self.last is not None:
            fields["ended_at"] = self.last
        first, last = self.us(self.first), self.us(self.last)
        if first is not None and last is not None and last >= first:
            fields["total_duration_ms"] = (last - first) // 1000
        if self.last_text is not None:
            fields["output"] = {"text": self.last_text}
        if tokens is not None:
            fields["total_tokens"] = tokens
            self.counts.tokens += tokens
        if cost is not None:
            fields["total_cost_usd"] = cost
        if error is not None:
            fields["error"] = error
        if self.models:
            metadata["models"] = self.models
        if self._open:
            metadata["unanswered"] = len(self._open)
        metadata["records"] = self.counts.as_dict()
        fields["metadata"] = metadata
        yield Event("trace.end", fields, last)
