"""From validated policies to rows and to the index that lets the gate skip most of them. Cold.

`rows_of` makes one row per enabled policy (fields: see guardhook.policy.match), `index_of` the table
`event -> groups`; a group is `(tool kinds or None, ((what, ((literal, row numbers), …)), …), always, by effect kind, any effect)`:
rows that need a literal, rows that must always be looked at, rows that need an effect of a kind, rows that need any effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from guardhook.core.event import EVENTS, KINDS
from guardhook.core.restore import freeze
from guardhook.core.text import fold, fold_name, skeleton
from guardhook.policy import glob, regexes
from guardhook.policy.match import STEP, STEP_OF_EVENT, STEP_TYPES
from guardhook.policy.model import EFFECT_KEYS, EVENT_KEYS

DEFAULT_EVENTS = ("pre_tool", "permission_request")
# A needle with one of these may aim at the JSON text of the input rather than at the strings in it.
_JSON_SIGNS = frozenset('"\\{}[]:,')

Row = tuple[Any, ...]
Condition = tuple[str, Any, str, str]


class Patterns:
    """The frozen regular expressions of one compiled file, each source once."""

    def __init__(self) -> None:
        self.frozen: list[tuple[object, ...]] = []
        self._known: dict[str, int] = {}

    def add(self, source: str) -> int:
        """The number of the pattern. Raises RegexError."""
        if source not in self._known:
            self._known[source] = len(self.frozen)
            self.frozen.append(freeze(regexes.compile_regex(source)))
        return self._known[source]


class Unusable(ValueError):
    """A key that can't be matched as it is. The message says why."""


def words(value: object) -> list[str]:
    """A string or a list of strings as a list."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(w, str) and w.strip() for w in found):
        raise Unusable("expected text, or a list of texts")
    return found


def seen(text: str) -> str:
    """Text in the form in which words are compared: folded, look-alikes mapped to what they imitate."""
    return skeleton(fold(text))


def conditions_of(
    pattern: Mapping[str, object], patterns: Patterns, homes: tuple[str, ...] = ()
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """(event conditions, effect conditions) of a pattern.

    A key that is unusable becomes a condition `bad`, which holds for policies that block and not for others.
    """
    on_event: list[Condition] = []
    on_effect: list[Condition] = []
    known = [k for k in pattern if k in EVENT_KEYS or k in EFFECT_KEYS]
    if pattern and not known:
        return (("bad", None, "", "no usable match criteria — failing closed"),), ()
    for key in known:
        try:
            condition = condition_of(key, pattern[key], patterns, homes)
        except (Unusable, regexes.RegexError, ValueError):
            on_event.append(("bad", None, "", f"{key} is unusable — failing closed"))
            continue
        if condition is not None:
            (on_effect if key in EFFECT_KEYS else on_event).append(condition)
    # Regular expressions cost most, so they come last.
    on_event.sort(key=lambda c: c[0].endswith("_re"))
    return tuple(on_event), tuple(on_effect)


def needle_of(value: object) -> str:
    """The text of a `…_contains` value. Numbers and truth values become their JSON text. Raises Unusable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise Unusable("expected text")
    return value


def condition_of(key: str, value: object, patterns: Patterns, homes: tuple[str, ...]) -> Condition | None:
    """The condition of one key, None for `event`, which the index answers. Raises Unusable, RegexError, ValueError."""
    if key in ("name_contains", "input_contains", "output_contains"):
        return _needle(key, needle_of(value))
    if key in ("name_regex", "input_regex"):
        if not isinstance(value, str):
            raise Unusable("expected text")
        return (
            key.replace("regex", "re").replace("input", "in"),
            patterns.add(value),
            "",
            f"{key[:-6]} matches /{value if len(value) <= 60 else value[:59] + '…'}/",
        )
    if key == "step_type":
        if value not in STEP_TYPES:
            raise Unusable("not a step type")
        return ("step", value, "", f"step_type={value}")
    if key == "event":
        for word in words(value):
            if word not in EVENTS:
                raise Unusable("not an event")
        return None  # the index does it
    listed = words(value)
    label = f"{key}={'|'.join(listed)}"
    if key == "tool":
        kinds = tuple(w for w in listed if w in KINDS)
        globs = tuple(glob.compile_glob(_glob_text(w, name=True)) for w in listed if w not in KINDS)
        return ("tool", (globs, kinds), "", label)
    if key == "harness":
        return ("harness", tuple(listed), "", label)
    if key == "effect":
        return ("effect", tuple((w.split(":")[0], tuple(w.split(":")[1:])) for w in listed), "", label)
    if key == "path":
        return (
            "path",
            tuple(g for w in listed for g in glob.compile_path(_glob_text(w), _seen_homes(homes))),
            "",
            label,
        )
    if key == "path_class":
        return ("class", tuple(listed), "", label)
    if key == "git":
        return ("git", tuple(listed), "", label)
    return (key, tuple(glob.compile_glob(_glob_text(w, name=key == "agent")) for w in listed), "", label)


def _seen_homes(homes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(seen(home) for home in homes)


def _glob_text(text: str, name: bool = False) -> str:
    folded = skeleton(fold_name(text)) if name else seen(text)
    if not folded:
        raise Unusable("nothing is left of it once invisible characters are removed")
    return folded


def _needle(key: str, text: str) -> Condition:
    folded = skeleton(fold_name(text)) if key == "name_contains" else seen(text)
    if not folded:
        raise Unusable("nothing is left of it once invisible characters are removed")
    what = {"name_contains": "name", "input_contains": "in", "output_contains": "out"}[key]
    if what != "name" and not _JSON_SIGNS.isdisjoint(folded):
        what = {"in": "json", "out": "outjson"}[what]
    return (what, folded, text.lower(), f"{key.partition('_')[0]} contains '{text}'")


def events_of(pattern: Mapping[str, object]) -> tuple[str, ...]:
    """The index keys under which a policy is looked for."""
    listed = pattern.get("event")
    if listed is not None:
        try:
            events = tuple(w for w in words(listed) if w in EVENTS)
        except Unusable:
            events = DEFAULT_EVENTS
        # A step is a tool call unless it says otherwise.
        steps = (STEP,) if not events or set(events) & {"pre_tool", "permission_request"} else ()
        return tuple(sorted(set(events or DEFAULT_EVENTS))) + steps
    step = pattern.get("step_type")
    if isinstance(step, str) and step in STEP_TYPES and step != "tool_call":
        return (*(e for e in ("model_request",) if STEP_OF_EVENT[e] == step), STEP)
    return (*DEFAULT_EVENTS, STEP)


def kinds_of(pattern: Mapping[str, object]) -> tuple[str, ...] | None:
    """The tool kinds that a policy is limited to, None when any kind may match."""
    listed = pattern.get("tool")
    if listed is None:
        return None
    try:
        found = words(listed)
    except Unusable:
        return None
    return tuple(sorted(found)) if all(w in KINDS for w in found) else None


def literals_of(pattern: Mapping[str, object], conditions: Iterable[Condition]) -> tuple[str, tuple[str, ...]] | None:
    """(which text, literals of which one must occur in it) that every match of the policy needs; None where none is known."""
    best: tuple[str, tuple[str, ...]] | None = None
    for what, value, _, _ in conditions:
        found: tuple[str, tuple[str, ...]] | None = None
        if what in ("in", "json", "name", "out", "outjson"):
            found = (what, (value,))
        elif what in ("in_re", "name_re"):
            literals = regexes.required_literals(str(pattern["input_regex" if what == "in_re" else "name_regex"]))
            found = (what[:-3], literals) if literals else None
        if found is not None and (best is None or min(map(len, found[1])) > min(map(len, best[1]))):
            best = found
    return best


def index_of(entries: list[tuple[Mapping[str, object], Row]]) -> dict[str, tuple[tuple[object, ...], ...]]:
    """The index over rows, which are given with their patterns in row order."""
    table: dict[str, dict[tuple[str, ...] | None, _Group]] = {}
    for number, (pattern, row) in enumerate(entries):
        if not pattern:
            continue  # an empty pattern is inert
        for event in events_of(pattern):
            group = table.setdefault(event, {}).setdefault(kinds_of(pattern), _Group())
            group.add(number, pattern, row)
    shared: dict[object, tuple[object, ...]] = {}
    out: dict[str, tuple[tuple[object, ...], ...]] = {}
    for event, groups in table.items():
        packed = [group.pack(kinds) for kinds, group in groups.items()]
        out[event] = tuple(shared.setdefault(repr(p), p) for p in packed)
    return out


# Classes of places that can't be reached by a plain command without one of the words that always count.
_NAMED_CLASSES = frozenset(("secret", "device", "guard"))


def triggers_of(patterns: Iterable[Mapping[str, object]]) -> frozenset[str] | None:
    """The words by which policies could match a plain command that holds none of guardhook.analysis.vocabulary.triggers().

    Such a command only runs programs that no table knows, reads harmless files and looks at a repository. None where the words
    can't be listed: the quick pass is then off. Needles and expressions need no words: they are tried whether or not a
    command was analysed.
    """
    found: set[str] = set()
    for pattern in patterns:
        kinds = kinds_of(pattern)
        if not any(key in pattern for key in EFFECT_KEYS) or (kinds is not None and "shell" not in kinds):
            continue
        listed = _triggers(pattern)
        if listed is None:
            return None
        found.update(listed)
    return frozenset(found)


def _triggers(pattern: Mapping[str, object]) -> set[str] | None:
    """The words of one policy that asks about effects."""
    effects = _lower(pattern["effect"]) if "effect" in pattern else {"run", "read", "git", "connect"}
    if effects is None:
        return None
    # A flag other than a git subcommand, and any other kind of effect, needs a program or place that always counts.
    plain = {word for word in effects if word in ("run", "read", "git")}
    if "effect" not in pattern:
        plain = {"run", "read", "git"}
    if not plain:
        return set()
    named: set[str] | None
    if "host" in pattern:
        return set()  # only programs that always count connect anywhere
    if "git" in pattern:
        return {"git"}
    if plain == {"git"}:
        return {"git"}
    if "program" in pattern:
        named = _plain_words(pattern["program"])
        if named is not None:
            return named
    if "argument" in pattern:
        named = _plain_words(pattern["argument"])
        if named is not None:
            return named
    if "path_class" in pattern:
        classes = _lower(pattern["path_class"])
        if classes is not None and classes <= _NAMED_CLASSES:
            return set()
    return None


def _lower(value: object) -> set[str] | None:
    try:
        return set(words(value))
    except Unusable:
        return None


def _plain_words(value: object) -> set[str] | None:
    """The words of a key, None where one of them is a pattern."""
    try:
        listed = {seen(word) for word in words(value)}
    except Unusable:
        return None
    return None if any(sign in word for word in listed for sign in "*?[") else listed


class _Group:
    def __init__(self) -> None:
        self.literals: dict[str, dict[str, list[int]]] = {}
        self.always: list[int] = []
        self.by_effect: dict[str, list[int]] = {}
        self.any_effect: list[int] = []

    def add(self, number: int, pattern: Mapping[str, object], row: Row) -> None:
        on_event, on_effect = row[7], row[8]
        for what, value, _, _ in on_effect:
            if what == "effect":
                for kind in {kind for kind, _ in value}:
                    self.by_effect.setdefault(kind, []).append(number)
                return
        if on_effect:
            self.any_effect.append(number)
            return
        literals = literals_of(pattern, on_event)
        if literals is None:
            self.always.append(number)
            return
        for literal in literals[1]:
            self.literals.setdefault(literals[0], {}).setdefault(literal, []).append(number)

    def pack(self, kinds: tuple[str, ...] | None) -> tuple[object, ...]:
        pairs = tuple(
            (what, tuple((literal, tuple(numbers)) for literal, numbers in sorted(found.items())))
            for what, found in sorted(self.literals.items())
        )
        by_effect = {kind: tuple(numbers) for kind, numbers in sorted(self.by_effect.items())}
        return (kinds, pairs, tuple(self.always), by_effect, tuple(self.any_effect))
