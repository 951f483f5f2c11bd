"""What the walk stands on: collected effects, places, streams and files."""

from __future__ import annotations

from guardhook.analysis import expand
from guardhook.analysis.lexer import Budget
from guardhook.analysis.nodes import HOLE, Node, Redirect, Seq, Unparsable, Word
from guardhook.analysis.paths import Place, locate
from guardhook.analysis.values import EMPTY, NONE, Alt, State, Val, concat
from guardhook.core import limits
from guardhook.core.effect import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.facts import Facts

EFFECTS = 12_000
_SINKS = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))
_ENVIRONMENT = {
    "SHELL": "/bin/bash", "BASH": "/bin/bash", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "IFS": " \t\n", "TMPDIR": "/tmp",
    "TMP": "/tmp", "TEMP": "/tmp", "OSTYPE": "linux-gnu", "SHLVL": "1", "XDG_RUNTIME_DIR": "/run/user/1000", "EUID": "1000", "UID": "1000", "LANG": "C.UTF-8",
}  # fmt: skip
_NOWHERE = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/zero", "/dev/full"))
_SENSITIVE = frozenset(("secret", "env-secret", "environment"))


class Reader:
    """Standard input that `read` takes lines from."""

    __slots__ = ("lines", "value")

    def __init__(self, value: Val) -> None:
        self.value = value
        self.lines: list[str] | None = None

    def line(self) -> Val:
        if self.lines is None:
            self.lines = self.value.text.rstrip("\n").split("\n") if self.value.text else []
        if not self.lines:
            return EMPTY
        return Val(self.lines.pop(0), self.value.taint, self.value.origin)

    @property
    def left(self) -> bool:
        return bool(self.value.text) if self.lines is None else bool(self.lines)


class Ground:
    """One analysis: what was found and what is known. `emit` and its relatives are what program handlers call."""

    __slots__ = ("active", "alternatives", "base", "budget", "calls", "choice", "depth", "effects", "facts", "files", "home", "inside", "mounts", "pipes", "places", "readers", "steps", "text", "traps", "user", "via", "work")  # fmt: skip

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.home = facts.home
        self.effects: list[Effect] = []
        self.budget = Budget()
        self.work = limits.COMMAND_WORK
        self.text = ""
        self.base: tuple[int, int] | None = None  # where a text that isn't part of the command's own came from
        self.depth = 0
        self.calls = 0  # nested function calls
        self.active: dict[int, int] = {}  # how often each function's body is being walked right now
        self.steps = 0
        self.via: tuple[str, ...] = ()
        self.user = ""
        self.inside = ""  # "", `remote` (ssh), `container`
        self.mounts: list[tuple[str, str]] = []  # (path on this machine, path in the container)
        self.traps: list[tuple[Val, State, tuple[int, int], tuple[str, ...]]] = []  # what runs when the shell ends
        self.files: dict[str, Val] = {}  # what this command wrote, by path
        self.pipes: dict[str, tuple[Seq, State]] = {}  # `>( … )` waiting for their input
        self.readers: list[Reader] = []
        self.places: dict[tuple[str, str | None], Place] = {}
        self.choice = 0
        self.alternatives = 1

    def emit(self, kind: str, **parts: object) -> Effect | None:
        """Adds an effect; span and via come from where the walk is."""
        if len(self.effects) >= EFFECTS:
            raise Unparsable(f"more than {EFFECTS} effects", cap=True)
        if kind != "run":  # these are as many as there are commands, which have a cap of their own
            self.spend(2)
        effect = Effect(kind, via=self.via, **parts)  # type: ignore[arg-type]
        self.effects.append(effect)
        return effect

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end]

    def span(self, node: Node | Word | Redirect) -> tuple[int, int]:
        return self.base or (node.start, node.end)

    def spend(self, units: int) -> None:
        """Takes from what the walk may cost; a cap on work, not on time, so that the same command always ends the same way."""
        self.work -= units
        if self.work < 0:
            raise Unparsable("more work than one command may make", cap=True)

    def spend_words(self, count: int) -> None:
        if count > limits.COMMAND_WORDS:
            raise Unparsable(f"more than {limits.COMMAND_WORDS} words", cap=True)

    def cwd(self, state: State) -> str | None:
        here = state.cwd
        if isinstance(here, Alt):
            text = self.pick(here).text
            return None if text == HOLE else text
        return here

    def place(self, value: Val | str, state: State) -> Place:
        """Where a path argument leads; inside containers and on other machines only what can be said there."""
        text = value if isinstance(value, str) else value.text
        if self.inside:
            return self._place_inside(text, state)
        here = self.cwd(state)
        key = (text, here)
        found = self.places.get(key)
        if found is None:
            self.spend(4 + (len(text) + len(here or "") >> 5))
            found = locate(text, here, self.facts)
            if len(self.places) < 1024:
                self.places[key] = found
        return found

    def _place_inside(self, text: str, state: State) -> Place:
        self.spend(4 + (len(text) >> 5))
        place = locate(text, self.cwd(state), self.facts)
        if self.inside == "remote":
            return Place(place.text, place.classes - {"project"}, place.flags | {"remote"})
        for outer, inner in self.mounts:
            if place.text == inner or place.text.startswith(inner.rstrip("/") + "/"):
                rest = place.text[len(inner.rstrip("/")) :]
                return locate(outer.rstrip("/") + rest or "/", None, self.facts)
            if inner.startswith(place.text.rstrip("/") + "/") and "/" in outer:
                return Place(place.text, locate(outer, None, self.facts).classes, frozenset(("container",)))
        return Place(place.text, NONE, frozenset(("container",)))

    def pick(self, alternatives: Alt) -> Val:
        count = len(alternatives.items)
        self.alternatives = max(self.alternatives, count)
        return alternatives.items[min(self.choice, count - 1)]

    def home_of(self, state: State) -> str:
        value = state.vars.get("HOME")
        if isinstance(value, Val):
            return value.text
        return "/root" if self.user == "root" and self.inside else self.home

    def environment(self, name: str, state: State) -> Val | None:
        """The variables whose values can be told without looking at the environment."""
        if name == "HOME":
            return Val(self.home)
        if name == "PWD":
            return Val(self.cwd(state) or HOLE)
        if name == "OLDPWD":
            return Val(state.old or HOLE)
        if name in ("USER", "LOGNAME"):
            return Val(self.facts.user)
        if name in _ENVIRONMENT:
            return Val(_ENVIRONMENT[name])
        known = self.facts.environment.get(name)
        return Val(known) if known is not None else None

    def redirect(
        self, redirects: list[Redirect], state: State, stdin: Val | None
    ) -> tuple[Val | None, list[tuple[str, bool]], str]:
        """Standard input, the files that standard output goes to, and the host when a stream goes to the network."""
        sinks: list[tuple[str, bool]] = []
        network = ""
        self.spend(2 * len(redirects))
        for redirect in redirects:
            operator = redirect.operator
            if operator in ("<<", "<<-", "<<<"):
                value = expand.single(self, redirect.target, state, tilde=False)
                text = value.text + ("\n" if operator == "<<<" else "")
                given = Val(text, value.taint, value.origin)
                if redirect.fd in ("", "0"):
                    stdin = given
                else:
                    state.vars["fd:" + redirect.fd] = given
                continue
            value = expand.single(self, redirect.target, state)
            text = value.text
            if operator in ("<&", ">&") and (text == "-" or text.rstrip("-").isdigit()):
                stream = state.vars.get("fd:" + text.rstrip("-"))
                if operator == "<&" and redirect.fd in ("", "0") and isinstance(stream, Val):
                    stdin = stream
                continue
            span = self.span(redirect)
            if text.startswith(("/dev/tcp/", "/dev/udp/")):
                network = self._dev_tcp(text, span)
                if redirect.fd in ("", "0") and operator in ("<", "<>"):
                    stdin = Val(HOLE, frozenset(("network",)), network)
                if operator != "<":
                    sinks.append((text, True))
                continue
            if operator == "<":
                read = self.read_file(value, state, span)
                if redirect.fd in ("", "0"):
                    stdin = read
                else:
                    state.vars["fd:" + redirect.fd] = read
                continue
            if text in self.pipes:
                sinks.append((text, True))
                continue
            append = operator in (">>", "&>>")
            if operator in _SINKS or operator == ">&":
                where = self.write_path(value, state, span, append=append, via="redirect", truncate=not append)
                if redirect.fd in ("", "1") or operator in ("&>", ">&", "&>>"):
                    sinks.append((where.text, append))
        return stdin, sinks, network

    def _dev_tcp(self, text: str, span: tuple[int, int]) -> str:
        host, _, port = text.split("/", 3)[3].partition("/")
        self.emit(
            "connect",
            program="/dev/tcp",
            host=host.replace(HOLE, "…"),
            flags=frozenset(("raw", "upload")),
            detail=f"port {port}".replace(HOLE, "…"),
            span=span,
        )
        return host.replace(HOLE, "…") or "…"

    def deliver(self, out: Val, sinks: list[tuple[str, bool]]) -> Val:
        """Standard output into the files of its redirections."""
        if not sinks:
            return out
        for path, append in sinks:
            self.pour(path, out, append)
        return EMPTY

    def pour(self, path: str, value: Val, append: bool = False) -> None:
        """Notes what a file holds from now on; feeds a waiting `>( … )`."""
        waiting = self.pipes.pop(path, None)
        if waiting is not None:
            body, state = waiting
            self.seq(body, state, value)
            return
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            if value.taint & _SENSITIVE:
                self.emit("secret_flow", flags=frozenset(("network",)), detail=f"{value.origin} to {path}")
            return
        before = self.files.get(path)
        self.files[path] = concat([before, value]) if append and before is not None else value

    def read_file(self, value: Val, state: State, span: tuple[int, int] | None, quiet: bool = False) -> Val:
        """Reading a file: the effect, and its content as far as this command or the disk tells (never a secret's)."""
        place = self.place(value, state)
        known = self.files.get(place.text)
        if not quiet:
            classes, flags = self.seen_as(place, known)
            self.emit("read", path=place.path, path_classes=classes, flags=flags, span=span)
        if known is not None:
            return known
        if place.text == "/dev/null":
            return EMPTY
        if "secret" in place.classes:
            return Val(HOLE, frozenset(("secret",)), place.path)
        mark = self.facts.marked.get(place.text)
        if mark:
            return Val(HOLE, frozenset((mark,)), place.path)
        return Val(HOLE, value.taint, f"content of {place.path}")

    def seen_as(self, place: Place, known: Val | None) -> tuple[frozenset[str], frozenset[str]]:
        """Classes and flags of a file that is read: a copy of a secret, or a link to it, is one."""
        if known is not None and "secret" in known.taint and "secret" not in place.classes:
            return place.classes | {"secret"}, place.flags | {"alias"}
        return place.classes, place.flags

    def write_path(self, value: Val, state: State, span: tuple[int, int] | None, *, append: bool = False, via: str = "", truncate: bool = False, more: tuple[str, ...] = ()) -> Place:  # fmt: skip
        """Writing a file: the effect and what follows from where it lies."""
        from guardhook.analysis.targets import note_write

        place = self.place(value, state)
        if place.text in _NOWHERE or place.text.startswith("/dev/fd/"):
            return place
        flags = set(place.flags)
        flags.update(more)
        if append:
            flags.add("append")
        if via:
            flags.add(via)
        if truncate:
            flags.add("truncate")
        note_write(self, "write", place, frozenset(flags), span)
        return place

    # What needs the tree walk, see guardhook.analysis.walk.

    def seq(self, node: Seq, state: State, stdin: Val | None) -> Val:
        raise NotImplementedError

    def substitute(self, body: Seq, state: State) -> Val:
        raise NotImplementedError

    def process(self, direction: str, body: Seq, state: State) -> Val:
        raise NotImplementedError
