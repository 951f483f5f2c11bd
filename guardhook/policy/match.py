"""Matching one event and its effects against compiled policies, and the verdict that follows. Pure, but for the regex clock.

Both sides of a comparison are folded; a match that only folding gives is marked as a look-alike. What can't be decided (an
unusable key, a regular expression that runs out of time) counts as matching for a policy that blocks and as not matching for one
that doesn't. The index rejects most policies by one literal each; rows are looked at only when theirs occurs.

A row is `(name, id, action, layer, priority, text, suggest, conditions, effect conditions, unless, exceptions)`. A condition is
`(what, value, plain, label)`: plain is the unfolded needle, label the words for `guard test`. `unless` is a pair of condition
tuples or None; exceptions are `(expiry in epoch seconds, conditions, effect conditions)`. guardhook.policy.index makes them.
"""

from __future__ import annotations

from _json import encode_basestring, make_encoder

from guardhook.core import limits
from guardhook.core.event import Event
from guardhook.core.text import LONG, fold, fold_name, skeleton
from guardhook.core.verdict import BLOCKING, Match, Verdict, strictest
from guardhook.policy.glob import any_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from guardhook.core.effect import Effect
    from guardhook.core.restore import MatchObject, Pattern
    from guardhook.policy.compiled import Compiled

    Condition = tuple[str, Any, str, str]
    Literals = list[tuple[str, tuple[int, ...]]] | tuple[tuple[str, tuple[int, ...]], ...]
    Conditions = tuple[Condition, ...]

# The classic step types, and the one that a hook event counts as. Other events have none.
STEP_TYPES = frozenset(("thought", "tool_call", "llm_call", "retrieval", "output", "decision", "error", "guard_check"))
STEP_OF_EVENT = {
    "pre_tool": "tool_call",
    "permission_request": "tool_call",
    "post_tool": "tool_call",
    "post_tool_failure": "tool_call",
    "permission_denied": "tool_call",
    "model_request": "llm_call",
    "model_response": "llm_call",
    "stop": "output",
    "subagent_stop": "output",
}
# The index key of events that are a bare step (`guard check`, `guard test`): those with a step_type of their own.
STEP = "step"
MAIN_AGENT = "main"  # what `agent` sees for the main thread

# Characters times literals from which on a long text is boiled down before literals are looked for.
_MUCH = 8_000_000
# Longest text, in characters, that is searched without a thread: 65,536 steps over it take some 20 ms.
_AT_ONCE = 16 * 1024
_GRACE = 0.010
_OUT_OF_TIME = "the time limit for regular expressions ran out"


class Budget:
    """Processor seconds left for regular expressions, kept apart for project policies so that they can't eat the user's."""

    __slots__ = ("left", "ran_out")

    def __init__(self) -> None:
        self.left = {"": limits.REGEX_SECONDS, "project": limits.REGEX_SECONDS_PROJECT}
        self.ran_out = False


class View:
    """The texts of an event that policies look at, each made when it is first asked for."""

    __slots__ = ("_folded", "_made", "_words", "event", "kinds", "name", "name_folded", "name_skeleton", "raw")

    def __init__(self, event: Event) -> None:
        self.event = event
        # A tool that carries a command line is a shell, whatever else it is.
        self.kinds = (event.kind or "other", "shell") if event.commands else (event.kind or "other",)
        self.name = event.tool or ""
        self.name_folded = fold_name(self.name)
        self.name_skeleton = skeleton(self.name_folded)
        strings, rest = _texts(_input(event))
        self.raw = "\n".join(strings)  # what regular expressions see: the strings, without keys and numbers
        self._folded: str | None = None
        # `in`: everything but the JSON text, for needles that don't aim at JSON
        self._made: dict[str, tuple[str, str]] = {"in": _both(strings + rest)}
        self._words: dict[str, str] = {}

    def text(self, what: str) -> tuple[str, str]:
        """(as it came, folded skeleton) of `in`, `json` (input as JSON too), `out`, `outjson`."""
        made = self._made.get(what)
        if made is None:
            value = _input(self.event) if what == "json" else self.event.output
            if value is None:
                value = ""
            strings, rest = _texts(value)
            if what != "out":
                strings.insert(0, json_text(value))
            made = self._made[what] = _both(strings + rest)
        return made

    def words(self, what: str) -> str:
        """The distinct words of a text, one a line: much less to search, for what has no white space in it."""
        words = self._words.get(what)
        if words is None:
            words = self._words[what] = "\n".join(set(self.text(what)[1].split()))
        return words

    def searched(self) -> tuple[str, ...]:
        """The forms of the input that a regular expression is tried on: as it came, folded, and as it looks."""
        if self._folded is None:
            self._folded = fold(self.raw)
        return _forms(self.raw, self._folded, skeleton(self._folded))

    def names(self) -> tuple[str, ...]:
        """The forms of the tool name that a regular expression is tried on."""
        return _forms(self.name, self.name_folded, self.name_skeleton)


def _forms(raw: str, folded: str, seen: str) -> tuple[str, ...]:
    # Patterns ignore case, so plain ASCII needs one search only.
    forms = [raw]
    if folded != raw.lower():
        forms.append(folded)
    if seen is not folded and seen != folded:
        forms.append(seen)
    return tuple(forms)


def _both(parts: list[str]) -> tuple[str, str]:
    """The lines of a text as they came, and as they look."""
    text = "\n".join(parts)
    if len(text) < LONG or text.isascii():
        return text, skeleton(fold(text))
    # Nothing folds across a line end. A long part by itself is one whose characters the analyser asked for already.
    looks: list[str] = []
    short: list[str] = []
    for part in parts:
        if len(part) < LONG:
            short.append(part)
            continue
        if short:
            looks.append(skeleton(fold("\n".join(short))))
            short.clear()
        looks.append(skeleton(fold(part)))
    if short:
        looks.append(skeleton(fold("\n".join(short))))
    return text, "\n".join(looks)


def _input(event: Event) -> object:
    if event.input is not None:
        return event.input
    if event.prompt is not None:
        return event.prompt
    return event.payload if event.event == "config_change" else ""


def _texts(value: object) -> tuple[list[str], list[str]]:
    """Every string value in document order, and apart from them the keys and the text of numbers and constants."""
    found: list[str] = []
    rest: list[str] = []
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            rest.extend(item)
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif item is None:
            rest.append("null")
        elif isinstance(item, bool):
            rest.append("true" if item else "false")
        else:
            rest.append(str(item))
    return found, rest


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)


def json_text(value: object) -> str:
    """Compact JSON with other scripts as they are, which is what a needle aimed at JSON was written for."""
    return "".join(_encode(value, 0))


def judge(sets: list[Compiled], event: Event, effects: list[Effect], now: float | None = None) -> Verdict:
    """The verdict of the policy sets: the strictest action; among equals the highest priority, then the first name.

    No match is `allow` with no policy. now (epoch seconds) decides which exceptions have expired; default is the clock.
    """
    budget = Budget()
    found = matches(sets, event, effects, now=now, budget=budget)
    best = strictest(found)
    if best is None:
        verdict = Verdict("allow")
    else:
        verdict = Verdict(best.action, best.reason, best.policy)
        verdict.suggest = best.suggest
        verdict.layer = best.layer
        verdict.span = best.span
    verdict.matches = found
    verdict.set = "+".join(s.set for s in sets) or None
    if budget.ran_out:
        verdict.degraded = _OUT_OF_TIME
    if sets and sets[0].config.get("preset") == "observe":
        verdict.mode = "observe"
    return verdict


def matches(
    sets: list[Compiled],
    event: Event,
    effects: list[Effect],
    *,
    now: float | None = None,
    budget: Budget | None = None,
) -> list[Match]:
    """Every policy that matches, by priority (high first), then name."""
    budget = budget or Budget()
    view = View(event)
    found: list[tuple[int, str, Match]] = []
    for compiled in sets:
        for number in sorted(_candidates(compiled, view, effects)):
            match = _row(compiled, number, view, effects, now, budget)
            if match is not None:
                found.append((-compiled.row(number)[4], match.policy, match))
    found.sort(key=lambda entry: entry[:2])
    return [entry[2] for entry in found]


def _candidates(compiled: Compiled, view: View, effects: list[Effect]) -> set[int]:
    """Numbers of the rows that could match: those whose literal occurs, whose effect occurs, or that have neither."""
    event = view.event
    out: set[int] = set()
    for group in compiled.index.get(event.event if event.step_type is None else STEP, ()):
        kinds, pairs, always, by_effect, any_effect = group
        if kinds is not None and not any(kind in kinds for kind in view.kinds):
            continue
        out.update(always)
        for what, literals in pairs:
            text = view.name_skeleton if what == "name" else view.text(what)[1]
            if text:
                if len(text) * len(literals) > _MUCH:
                    literals = _possible(literals, text, view.words(what))
                for literal, numbers in literals:
                    if literal in text:
                        out.update(numbers)
        if effects:
            out.update(any_effect)
            if by_effect:
                for effect in effects:
                    out.update(by_effect.get(effect.kind, ()))
    return out


def _possible(literals: Literals, text: str, words: str) -> Literals:
    """Drops literals of which a character or a word is nowhere in the text. Cheaper than looking for each in a long text."""
    present: dict[str, bool] = {}
    kept = []
    for entry in literals:
        for char in entry[0]:
            here = present.get(char)
            if here is None:
                here = present[char] = char in text
            if not here:
                break
        else:
            if all(piece in words for piece in entry[0].split()):
                kept.append(entry)
    return kept


def _row(
    compiled: Compiled, number: int, view: View, effects: list[Effect], now: float | None, budget: Budget
) -> Match | None:
    row = compiled.row(number)
    name, _, action, layer, _, text, suggest, conditions, effect_conditions, unless, exceptions = row
    blocking = action in BLOCKING
    hit = _Hit(compiled, view, budget)
    for condition in conditions:
        if not hit.holds(condition, blocking):
            return None
    outside = _Hit(compiled, view, budget)
    ways_out: list[tuple[Conditions, Conditions]] = [] if unless is None else [unless]
    for expiry, event_part, effect_part in exceptions:
        if _clock(now) < expiry:
            ways_out.append((event_part, effect_part))
    open_ways = []
    for event_part, effect_part in ways_out:
        if all(outside.holds(c, False) for c in event_part):
            if not effect_part:
                return None
            open_ways.append(effect_part)
    effect: Effect | None = None
    if effect_conditions:
        effect = _first_effect(effect_conditions, open_ways, effects)
        if effect is None:
            return None
        hit.effect(effect, effect_conditions)
    return Match(
        name,
        action,
        layer,
        _reason(text, hit),
        suggest,
        ", ".join(hit.why),
        hit.span,
        hit.lookalike,
        effect,
    )


def _clock(now: float | None) -> float:
    if now is not None:
        return now
    from time import time

    return time()


def _reason(text: str, hit: _Hit) -> str:
    reason = text or ", ".join(hit.why)
    if hit.out_of_time:
        reason += f" ({_OUT_OF_TIME}, so the policy counts as matching)"
    if hit.lookalike:
        reason += " (written with look-alike or hidden characters)"
    return reason


class _Hit:
    """Collects why a policy matched while its conditions are tried."""

    __slots__ = ("budget", "compiled", "lookalike", "out_of_time", "span", "view", "why")

    def __init__(self, compiled: Compiled, view: View, budget: Budget) -> None:
        self.compiled = compiled
        self.view = view
        self.budget = budget
        self.why: list[str] = []
        self.span: str | None = None
        self.lookalike = False
        self.out_of_time = False

    def holds(self, condition: Condition, closed: bool) -> bool:
        """Tries one condition. closed: what can't be decided counts as holding."""
        what, value, plain, label = condition
        if what == "bad":
            done = closed
        elif what in ("in", "json", "out", "outjson", "name"):
            done = self._needle(what, value, plain)
        elif what in ("in_re", "name_re"):
            return self._regex(what, value, label, closed)
        else:
            done = self._fact(what, value)
        if done:
            self.why.append(label)
        return done

    def _needle(self, what: str, needle: str, plain: str) -> bool:
        if what == "name":
            came, folded = self.view.name, self.view.name_skeleton
        else:
            came, folded = self.view.text(what)
        if needle not in folded:
            return False
        if plain not in came.lower():
            self.lookalike = True
        if self.span is None or what != "name":
            self.span = needle[: limits.SPAN_CHARS]
        return True

    def _regex(self, what: str, number: int, label: str, closed: bool) -> bool:
        texts = self.view.names() if what == "name_re" else self.view.searched()
        for place, text in enumerate(texts):
            found = search(self.compiled, number, text, self.budget)
            if found is None:
                self.out_of_time = self.out_of_time or closed
                if closed:
                    self.why.append(f"{label} ({_OUT_OF_TIME} — failing closed)")
                return closed
            if found:
                self.lookalike = self.lookalike or place > 0
                if self.span is None or what != "name_re":
                    self.span = text[found[0] : min(found[1], found[0] + limits.SPAN_CHARS)]
                self.why.append(label)
                return True
        return False

    def _fact(self, what: str, value: Any) -> bool:
        event = self.view.event
        if what == "step":
            return bool(value == (event.step_type or STEP_OF_EVENT.get(event.event)))
        if what == "tool":
            globs, kinds = value
            if any(kind in kinds for kind in self.view.kinds):
                return True
            return bool(self.view.name) and any_matches(globs, self.view.name_skeleton)
        if what == "harness":
            return bool(event.dialect in value)
        if what == "agent":
            return any_matches(value, skeleton(fold_name(event.agent_type or MAIN_AGENT)))
        raise ValueError(f"unknown condition {what}")

    def effect(self, effect: Effect, conditions: Conditions) -> None:
        """Notes the effect that a policy matched on."""
        self.why.extend(condition[3] for condition in conditions)
        self.lookalike = self.lookalike or effect.lookalike
        commands = self.view.event.commands
        if effect.span is not None and len(commands) == 1:
            self.span = commands[0][effect.span[0] : effect.span[1]][: limits.SPAN_CHARS]
        elif self.span is None:
            self.span = (effect.path or effect.host or effect.program)[: limits.SPAN_CHARS] or None


def search(compiled: Compiled, number: int, text: str, budget: Budget) -> tuple[int, int] | tuple[()] | None:
    """Where a pattern matches: a range, () for nowhere, None where the time ran out or the engine gave up.

    The whole text is searched at once: windows could be dodged by padding between the two ends of a match. The engine itself
    watches the processor time that is left of the event's budget, but looks at its clock only every 65,536 steps, of which each may
    run through the whole text; so long texts are searched by a thread of their own, which is left behind when it takes too long.
    """
    left = budget.left[compiled.layer]
    if left <= 0:
        budget.ran_out = True
        return None
    from time import process_time

    start = process_time()
    try:
        pattern: Pattern = compiled.pattern(number)
        found = pattern.search(text, timeout=left) if len(text) <= _AT_ONCE else _aside(pattern, text, left)
        return () if found is None else found.span()
    except Exception:  # time, memory, an engine that can't restore the pattern: none of them may let a call through
        budget.ran_out = True
        return None
    finally:
        budget.left[compiled.layer] = left - (process_time() - start)


def _aside(pattern: Pattern, text: str, left: float) -> MatchObject | None:
    """As `pattern.search`, but never longer than about `left` seconds of processor time. Raises TimeoutError."""
    from _thread import allocate_lock, start_new_thread
    from time import process_time

    done = allocate_lock()
    done.acquire()
    found: list[MatchObject | None] = []

    def work() -> None:
        try:
            found.append(pattern.search(text, timeout=left))
        except BaseException:  # nobody hears it in here; that nothing was found out says it
            pass
        finally:
            done.release()

    end = process_time() + left + _GRACE
    start_new_thread(work, ())
    while not done.acquire(timeout=0.005):
        if process_time() > end:
            break
    if not found:
        raise TimeoutError
    return found[0]


def _first_effect(conditions: Conditions, ways_out: list[Conditions], effects: list[Effect]) -> Effect | None:
    for effect in effects:
        if all(_on_effect(c, effect) for c in conditions) and not any(
            all(_on_effect(c, effect) for c in way) for way in ways_out
        ):
            return effect
    return None


def _on_effect(condition: Condition, effect: Effect) -> bool:
    what, value, _, _ = condition
    if what == "effect":
        return any(effect.kind == kind and all(f in effect.flags for f in flags) for kind, flags in value)
    if what == "path":
        return bool(effect.path) and any_matches(value, _word(effect.path), path=True)
    if what == "class":
        return any(c in effect.path_classes for c in value)
    if what == "program":
        return bool(effect.program) and any_matches(value, _word(effect.program))
    if what == "argument":
        return any(any_matches(value, _word(word)) for word in effect.argv)
    if what == "host":
        return bool(effect.host) and any_matches(value, _word(effect.host))
    if what == "git":
        return effect.git in value or (effect.kind == "git" and any(f in value for f in effect.flags))
    return False


def _word(text: str) -> str:
    return skeleton(fold(text))
