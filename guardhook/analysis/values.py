"""Values of the state walk: text that may have holes, with what flowed into it; and the state of one shell."""

from __future__ import annotations

from guardhook.analysis.nodes import CLASS, HOLE, QUERY, STAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.nodes import Node

NONE: frozenset[str] = frozenset()
MARKS = frozenset((HOLE, STAR, QUERY, CLASS))
VALUE_CHARS = 64 * 1024  # longer values become unknown: assignments can double a text at every step
ALTERNATIVES = 8


class Val:
    """A value. taint names what flowed into it: `network`, `decoded`, `secret`, `env-secret`, `stdin`; origin tells from where."""

    __slots__ = ("origin", "raw", "taint", "text")

    def __init__(self, text: str, taint: frozenset[str] = NONE, origin: str = "", raw: str = "") -> None:
        if len(text) > VALUE_CHARS:
            text = HOLE
        self.text = text
        self.taint = taint
        self.origin = origin
        self.raw = raw

    @property
    def known(self) -> bool:
        return HOLE not in self.text

    @property
    def shown(self) -> str:
        """As the program would receive it; where that isn't known, as it is written."""
        text = self.text
        if MARKS.isdisjoint(text):
            return text
        if HOLE in text and self.raw:
            return self.raw
        return plain(text)

    def __repr__(self) -> str:
        return f"Val({self.text!r}, {sorted(self.taint)})"


EMPTY = Val("")
UNKNOWN = Val(HOLE)


def plain(text: str) -> str:
    """Marks as ordinary characters again."""
    if MARKS.isdisjoint(text):
        return text
    return text.replace(STAR, "*").replace(QUERY, "?").replace(CLASS, "[").replace(HOLE, "…")


def source(text: str) -> str:
    """A value as shell source: globs are characters, holes stay holes."""
    if MARKS.isdisjoint(text):
        return text
    return text.replace(STAR, "*").replace(QUERY, "?").replace(CLASS, "[")


def activate(text: str) -> str:
    """Glob characters of an unquoted text as marks."""
    text = text.replace("*", STAR).replace("?", QUERY)
    return text.replace("[", CLASS) if "]" in text else text


def concat(values: list[Val]) -> Val:
    """What several commands wrote one after the other."""
    if not values:
        return EMPTY
    if len(values) == 1:
        return values[0]
    taint = NONE
    origin = ""
    for value in values:
        taint |= value.taint
        origin = origin or value.origin
    return Val("".join([v.text for v in values]), taint, origin)


def unknown(*inputs: Val) -> Val:
    """Something that isn't known, made of the inputs."""
    taint = NONE
    origin = ""
    for value in inputs:
        if value.taint:
            taint |= value.taint
            origin = origin or value.origin
    return Val(HOLE, taint, origin) if taint else UNKNOWN


class Alt:
    """One of several values, since the branch that ran isn't known."""

    __slots__ = ("items",)

    def __init__(self, items: list[Val]) -> None:
        self.items = items[:ALTERNATIVES]


class State:
    """What a shell knows: variables, functions, where it is."""

    __slots__ = ("aliases", "arguments", "cwd", "functions", "name", "old", "refs", "stack", "vars")

    def __init__(self, cwd: str | None) -> None:
        self.vars: dict[str, Val | Alt | list[Val]] = {}
        self.functions: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.refs: dict[str, str] = {}  # `declare -n`: names that stand for other names
        self.cwd: str | Alt | None = cwd  # None: not known
        self.old: str | None = None
        self.stack: list[str | None] = []
        self.arguments: list[Val] = []
        self.name = "sh"

    def fork(self) -> State:
        copy = State(None)
        copy.vars = self.vars.copy()
        copy.functions = self.functions
        copy.aliases = self.aliases
        copy.refs = self.refs
        copy.cwd = self.cwd
        copy.old = self.old
        copy.stack = list(self.stack)
        copy.arguments = self.arguments
        copy.name = self.name
        return copy

    def merge(self, others: list[State]) -> None:
        """After branches of which one ran: self becomes what holds after any of them."""
        names: set[str] = set()
        for other in others:
            if other.vars is not self.vars:
                for name, value in other.vars.items():
                    if self.vars.get(name) is not value:
                        names.add(name)
                if len(self.vars) + len(names) != len(other.vars):
                    names.update(self.vars.keys() - other.vars.keys())
        for name in names:
            items: list[Val] = []
            array: list[Val] | None = None
            for state in (self, *others):
                stored = state.vars.get(name)
                if isinstance(stored, Alt):
                    items.extend(stored.items)
                elif isinstance(stored, list):
                    array = stored
                else:
                    items.append(stored if stored is not None else UNKNOWN)
            if array is not None:
                self.vars[name] = array
                continue
            distinct: dict[tuple[str, frozenset[str]], Val] = {}
            for item in items:
                distinct.setdefault((item.text, item.taint), item)
            # What is known comes first: of too many alternatives the unknown one is the least telling.
            ordered = sorted(distinct.values(), key=lambda v: not v.known)
            self.vars[name] = ordered[0] if len(ordered) == 1 else Alt(ordered)
        places: list[str | None] = []
        for state in (self, *others):
            here = state.cwd
            for place in here.items if isinstance(here, Alt) else [here]:
                text = place.text if isinstance(place, Val) else place
                text = None if text == HOLE else text
                if text not in places:
                    places.append(text)
        self.cwd = places[0] if len(places) == 1 else Alt([Val(p if p is not None else HOLE) for p in places])
        for other in others:
            if len(other.functions) > len(self.functions):
                self.functions = other.functions
