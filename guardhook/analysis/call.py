"""One call of a program: what handlers are given, and the option parser that they share."""

from __future__ import annotations

from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import EMPTY, NONE, UNKNOWN, State, Val, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.paths import Place
    from guardhook.analysis.walk import Walker


_STDIN = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
ECHOED = frozenset(("echoed",))
WRAPPERS = 32  # programs that run programs that run programs …


class Options:
    """Parsed arguments: options that were given, values of those that take one, and the operands."""

    __slots__ = ("given", "rest", "values")

    def __init__(self) -> None:
        self.given: set[str] = set()
        self.values: dict[str, list[Val]] = {}
        self.rest: list[Val] = []

    def has(self, *names: str) -> bool:
        return any(name in self.given for name in names)

    def value(self, *names: str) -> Val | None:
        for name in names:
            found = self.values.get(name)
            if found:
                return found[-1]
        return None

    def every(self, *names: str) -> list[Val]:
        out: list[Val] = []
        for name in names:
            out.extend(self.values.get(name, ()))
        return out


def options(args: list[Val], short: str = "", long: frozenset[str] | tuple[str, ...] = (), *, permute: bool = True, known: tuple[str, ...] = (), single_dash: bool = False) -> Options:  # fmt: skip
    """Reads options as getopt_long does.

    short: letters that take a value. long: names (with dashes) that take a value, `--x=v` always does. known: full
    long names that abbreviations are resolved against. permute=False stops at the first operand. single_dash: long
    names may have one dash (find, java, terraform), so no clusters.
    """
    out = Options()
    index = 0
    count = len(args)
    while index < count:
        value = args[index]
        text = value.text
        index += 1
        if text == "--":
            out.rest.extend(args[index:])
            break
        if len(text) < 2 or text[0] != "-":
            out.rest.append(value)
            if not permute:
                out.rest.extend(args[index:])
                break
            continue
        if text.startswith("--") or single_dash:
            name, equals, given = text.partition("=")
            if known and name not in known:
                fitting = [k for k in known if k.startswith(name)]
                if fitting:
                    name = min(
                        fitting, key=len
                    )  # an ambiguous one is an error to the program; the shortest is the strongest
            out.given.add(name)
            if equals:
                out.values.setdefault(name, []).append(Val(given, value.taint, value.origin, value.raw))
            elif name in long and index < count:
                out.values.setdefault(name, []).append(args[index])
                index += 1
            continue
        for place in range(1, len(text)):
            letter = text[place]
            name = "-" + letter
            out.given.add(name)
            if letter in short:
                if place + 1 < len(text):
                    out.values.setdefault(name, []).append(Val(text[place + 1 :], value.taint, value.origin, value.raw))
                elif index < count:
                    out.values.setdefault(name, []).append(args[index])
                    index += 1
                break
    return out


class Call:
    """A program with its arguments. Handlers return what it writes to standard output."""

    __slots__ = ("_argv", "_seen", "args", "env", "name", "network", "span", "state", "stdin", "walker")

    def __init__(self, walker: Walker, name: str, args: list[Val], state: State, stdin: Val | None, env: dict[str, Val | list[Val]], span: tuple[int, int], network: str) -> None:  # fmt: skip
        self.walker = walker
        self.name = name
        self.args = args
        self._seen: set[tuple[str, str, frozenset[str]]] = set()  # changes noted already
        self._argv: tuple[str, ...] | None = None
        self.state = state
        self.stdin = stdin  # None: whatever the terminal or the harness gives
        self.env = env
        self.span = span
        self.network = network  # host, when a stream of the command is a network connection

    @property
    def argv(self) -> tuple[str, ...]:
        if self._argv is None:
            self.walker.spend(len(self.args) >> 4)
            self._argv = tuple([a.shown for a in self.args])
        return self._argv

    @property
    def input(self) -> Val:
        return self.stdin if self.stdin is not None else EMPTY

    def texts(self) -> list[str]:
        return [a.text for a in self.args]

    def emit(self, kind: str, flags: set[str] | frozenset[str] | tuple[str, ...] = (), **parts: object) -> None:
        parts.setdefault("program", self.name)
        parts.setdefault("argv", self.argv)
        self.walker.emit(kind, flags=frozenset(flags), span=self.span, **parts)

    def place(self, value: Val | str) -> Place:
        return self.walker.place(value, self.state)

    def read(self, value: Val, more: tuple[str, ...] = ()) -> Val:
        place = self.place(value)
        classes, flags = self.walker.seen_as(place, self.walker.files.get(place.text))
        self.emit("read", flags=flags | frozenset(more), path=place.path, path_classes=classes)
        if self.stdin is not None and place.text in _STDIN:
            return self.stdin
        return self.walker.read_file(value, self.state, self.span, quiet=True)

    def script_text(self, path: str, language: str = "sh") -> str | None:
        """A text on disk that the call would run. One that lies there and can't be judged is an effect.

        language is "" when the system decides: what can't be read as a text is then most likely a program.
        """
        facts = self.walker.facts
        text = facts.read_script(path)
        if text is None and facts.unread and (language or facts.unread.startswith(("it is a script", "more"))):
            more = ("bundle",) if language == "node" else ()
            self.emit("unverified", ("cap", "script", *more), path=path, detail=f"{path} isn't judged: {facts.unread}")
        return text

    def change(self, kind: str, value: Val | str, more: set[str] | frozenset[str] | tuple[str, ...] = ()) -> Place:
        """delete, chmod, chown, write … of one path, with what follows from where it lies."""
        from guardhook.analysis.targets import note_write

        place = self.place(value)
        text = value if isinstance(value, str) else value.text
        flags = place.flags | frozenset(more)
        key = (kind, place.text, flags)
        if key in self._seen and text == place.text:
            return place
        self._seen.add(key)
        if kind == "write" and (place.text.startswith("/dev/") and not place.classes):
            return place
        if isinstance(value, Val) and "stdin-args" in value.taint and HOLE in text:
            flags |= frozenset(("stdin-args",))
        if isinstance(value, Val) and "found" in value.taint:
            flags |= frozenset(("find",))
        before = len(self.walker.effects)
        note_write(self.walker, kind, place, flags, self.span)
        for effect in self.walker.effects[before:]:
            if not effect.program:
                effect.program = self.name
                effect.argv = self.argv
        return place

    def output(self) -> Val:
        """Unknown output of a program that passes its input and nothing else on."""
        value = unknown(*self.args, self.input)
        return Val(value.text, value.taint - ECHOED, value.origin) if value.taint else value

    def result(self) -> Val:
        """Output that isn't known, named after the program."""
        value = self.output()
        return Val(HOLE, value.taint, value.origin or f"output of {self.name}")

    def run(self, words: list[Val], via: str, *, stdin: Val | None = None, state: State | None = None, env: dict[str, Val | list[Val]] | None = None) -> Val:  # fmt: skip
        """Runs the words as a command in turn: what wrappers do."""
        from guardhook.analysis.command import run

        if not words:
            return UNKNOWN
        walker = self.walker
        keep = walker.via
        if len(keep) >= WRAPPERS:
            from guardhook.analysis.nodes import Unparsable

            raise Unparsable(f"more than {WRAPPERS} wrappers in one another", cap=True)
        walker.via = (*keep, via)
        try:
            return run(
                walker,
                words,
                state or self.state,
                stdin if stdin is not None else self.stdin,
                env or {},
                self.span,
                self.network,
                functions=False,
            )
        finally:
            walker.via = keep

    def code(self, value: Val, how: str, via: str = "", *, stdin: Val | None = None, state: State | None = None) -> Val:
        """Runs a value as shell code."""
        walker = self.walker
        keep = walker.via
        walker.via = (*keep, via or self.name)
        try:
            return walker.run_value(
                value, state or self.state, stdin if stdin is not None else self.stdin, self.span, how
            )
        finally:
            walker.via = keep


def joined(values: list[Val], separator: str = " ") -> Val:
    """Arguments as one text, as `eval`, `ssh` and `watch` read them."""
    taint = NONE
    origin = ""
    raw = ""
    for value in values:
        taint |= value.taint
        origin = origin or value.origin
        raw = raw or value.raw
    return Val(separator.join([v.text for v in values]), taint, origin, raw)
