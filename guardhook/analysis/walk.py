"""The state walk: runs a parse tree on values instead of processes, and notes what it would do as effects.

Control flow is followed on every path that can be taken; where a branch isn't known, the state afterwards holds the
alternatives. What a program does with its arguments is the business of guardhook.analysis.programs.
"""

from __future__ import annotations

from guardhook.analysis import expand
from guardhook.analysis.lexer import Budget
from guardhook.analysis.nodes import (
    HOLE,
    Case,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipe,
    Redirect,
    Seq,
    Simple,
    Test,
    Unparsable,
    Word,
)
from guardhook.analysis.parser import parse
from guardhook.analysis.paths import Place, locate
from guardhook.analysis.values import ALTERNATIVES, EMPTY, NONE, UNKNOWN, Alt, State, Val, concat, source, unknown
from guardhook.core import limits
from guardhook.core.effect import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.facts import Facts

ROUNDS = 16  # how often a loop's body is walked with its known values
EFFECTS = 4000
STEPS = 20_000  # nodes walked; functions and loops can multiply a small text

_SINKS = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))


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


class Walker:
    """One analysis. Effects are collected in `effects`; `emit` and its relatives are what program handlers call."""

    __slots__ = ("active", "alternatives", "base", "budget", "calls", "choice", "depth", "effects", "facts", "files", "home", "inside", "mounts", "pipes", "readers", "steps", "text", "user", "via")  # fmt: skip

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.home = facts.home
        self.effects: list[Effect] = []
        self.budget = Budget()
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
        self.files: dict[str, Val] = {}  # what this command wrote, by path
        self.pipes: dict[str, tuple[Seq, State]] = {}  # `>( … )` waiting for their input
        self.readers: list[Reader] = []
        self.choice = 0
        self.alternatives = 1

    # --- reporting

    def emit(self, kind: str, **parts: object) -> Effect | None:
        """Adds an effect; span and via come from where the walk is."""
        if len(self.effects) >= EFFECTS:
            raise Unparsable(f"more than {EFFECTS} effects", cap=True)
        effect = Effect(kind, via=self.via, **parts)  # type: ignore[arg-type]
        self.effects.append(effect)
        return effect

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end]

    def span(self, node: Node | Word | Redirect) -> tuple[int, int]:
        return self.base or (node.start, node.end)

    def spend_words(self, count: int) -> None:
        if count > limits.COMMAND_WORDS:
            raise Unparsable(f"more than {limits.COMMAND_WORDS} words", cap=True)

    # --- where things are

    def cwd(self, state: State) -> str | None:
        here = state.cwd
        if isinstance(here, Alt):
            text = self.pick(here).text
            return None if text == HOLE else text
        return here

    def place(self, value: Val | str, state: State) -> Place:
        """Where a path argument leads; inside containers and on other machines only what can be said there."""
        text = value if isinstance(value, str) else value.text
        if not self.inside:
            return locate(text, self.cwd(state), self.facts)
        return self._place_inside(text, state)

    def _place_inside(self, text: str, state: State) -> Place:
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

    # --- texts

    def run_text(self, text: str, state: State, stdin: Val | None, span: tuple[int, int] | None) -> Val:
        """Walks a text that some program runs as shell code: eval, -c, scripts, standard input."""
        if self.depth >= limits.COMMAND_NESTING:
            raise Unparsable(f"nested deeper than {limits.COMMAND_NESTING} levels", cap=True)
        keep = self.text, self.base
        self.text = text
        self.base = span if span is not None else self.base
        self.depth += 1
        try:
            tree = parse(text, self.depth, self.budget)
            return self.seq(tree, state, stdin)
        except Unparsable as error:
            if error.cap:
                raise
            self.emit(
                "unverified",
                detail=f"a text that is run can't be read: {error.why}",
                span=self.base,
                flags=frozenset(("nested",)),
            )
            return UNKNOWN
        finally:
            self.depth -= 1
            self.text, self.base = keep

    def run_value(self, value: Val, state: State, stdin: Val | None, span: tuple[int, int] | None, how: str) -> Val:
        """Runs a value as shell code, whatever is known of it. how: `eval`, `stdin`, `script`, `inline` …"""
        self.note_origin(value, span, how)
        text = source(value.text)
        if text.strip(HOLE + " \n\t;"):
            return self.run_text(text, state, stdin, span)
        if HOLE in text and not value.taint & _EXECUTED and value.origin not in _TRUSTED_OUTPUT:
            self.emit(
                "run_dynamic",
                flags=frozenset((how,)),
                detail=value.raw or value.origin or "its text isn't known",
                span=span,
            )
        return unknown(value)

    def note_origin(self, value: Val, span: tuple[int, int] | None, how: str) -> None:
        """The effects of running a value that came from the network or out of a decoder."""
        if "network" in value.taint:
            self.emit("run_fetched", flags=frozenset((how,)), detail=value.origin, span=span)
        if "decoded" in value.taint:
            self.emit("run_decoded", flags=frozenset((how,)), detail=value.origin, span=span)

    # --- the tree

    def seq(self, node: Seq, state: State, stdin: Val | None) -> Val:
        outputs: list[Val] = []
        for operator, child, background in node.items:
            if background:
                outputs.append(self.node(child, state.fork(), stdin))
            elif operator == "||":
                other = state.fork()
                outputs.append(self.node(child, other, stdin))
                if not _leaves(child):
                    state.merge([other])
            else:
                before = state.fork() if operator == "&&" and isinstance(child, Simple) and not child.words else None
                outputs.append(self.node(child, state, stdin))
                if before is not None:
                    before.cwd = state.cwd
                    state.merge([before])  # the assignment may not have been reached
        return concat(outputs)

    def node(self, node: Node, state: State, stdin: Val | None) -> Val:
        self.steps += 1
        if self.steps > STEPS:
            raise Unparsable(f"more than {STEPS} steps", cap=True)
        if isinstance(node, Simple):
            return self.simple(node, state, stdin)
        if isinstance(node, Pipe):
            for index, child in enumerate(node.commands):
                stdin = self.node(child, state.fork(), stdin)
                if index + 1 < len(node.commands):
                    continue
            return stdin or EMPTY
        if isinstance(node, Function):
            self._define(node, state)
            return EMPTY
        if node.redirects:
            return self._redirected(node, state, stdin)
        return self._compound(node, state, stdin)

    def _define(self, node: Function, state: State) -> None:
        state.functions = {**state.functions, node.name: node.body}
        if _bombs(node.body, node.name):
            self.emit(
                "process",
                program=node.name,
                flags=frozenset(("fork-bomb",)),
                detail="a function that starts itself twice",
                span=self.span(node),
            )

    def _compound(self, node: Node, state: State, stdin: Val | None) -> Val:
        if isinstance(node, Group):
            return self.seq(node.body, state.fork() if node.subshell else state, stdin)
        if isinstance(node, If):
            return self._if(node, state, stdin)
        if isinstance(node, Loop):
            return self._loop(node, state, stdin)
        if isinstance(node, For):
            return self._for(node, state, stdin)
        if isinstance(node, Case):
            return self._case(node, state, stdin)
        if isinstance(node, Seq):
            return self.seq(node, state, stdin)
        if isinstance(node, Test):
            for word in node.words:
                expand.single(self, word, state)
        return EMPTY

    def _redirected(self, node: Node, state: State, stdin: Val | None) -> Val:
        inner = state
        stdin, sinks, _ = self.redirect(node.redirects, state, stdin)
        out = self._compound(node, inner, stdin)
        return self.deliver(out, sinks)

    def _if(self, node: If, state: State, stdin: Val | None) -> Val:
        outputs: list[Val] = []
        ends: list[State] = []
        for condition, body in node.branches:
            self.seq(condition, state, stdin)
            branch = state.fork()
            outputs.append(self.seq(body, branch, stdin))
            if not _leaves(body):
                ends.append(branch)
        if node.otherwise is not None:
            branch = state.fork()
            outputs.append(self.seq(node.otherwise, branch, stdin))
            if not _leaves(node.otherwise):
                ends.append(branch)
            if ends:
                first, *rest = ends
                state.vars, state.cwd, state.old, state.functions = first.vars, first.cwd, first.old, first.functions
                state.merge(rest)
        elif ends:
            state.merge(ends)
        return concat(outputs)

    def _loop(self, node: Loop, state: State, stdin: Val | None) -> Val:
        outputs: list[Val] = []
        reader = Reader(stdin) if stdin is not None else None
        if reader is not None:
            self.readers.append(reader)
        before = state.fork()
        for _ in range(ROUNDS):
            outputs.append(self.seq(node.condition, state, stdin))
            outputs.append(self.seq(node.body, state, stdin))
            if reader is None or reader.lines is None or not reader.left:
                break
        if reader is not None:
            self.readers.pop()
        state.merge([before])
        return concat(outputs)

    def _for(self, node: For, state: State, stdin: Val | None) -> Val:
        if not node.name:
            for word in node.words or ():
                expand.single(self, word, state)
            return self.seq(node.body, state, stdin)
        items: list[Val] = []
        if node.words is None:
            items = list(state.arguments)
        else:
            for word in node.words:
                items.extend(expand.fields(self, word, state))
        if len(items) > ROUNDS:
            # The body is walked for every eighth of the list, with a value that may be any of that part.
            step = -(-len(items) // (ROUNDS // 2))
            groups = [items[i : i + step] for i in range(0, len(items), step)]
        else:
            groups = [[item] for item in items] or [[UNKNOWN]]
        outputs: list[Val] = []
        before = state.fork()
        for group in groups:
            state.vars[node.name] = group[0] if len(group) == 1 else Alt(_distinct(group))
            outputs.append(self.seq(node.body, state, stdin))
        state.merge([before])
        return concat(outputs)

    def _case(self, node: Case, state: State, stdin: Val | None) -> Val:
        expand.single(self, node.word, state)
        outputs: list[Val] = []
        ends: list[State] = []
        for patterns, body in node.items:
            for pattern in patterns:
                expand.single(self, pattern, state)
            branch = state.fork()
            outputs.append(self.seq(body, branch, stdin))
            if not _leaves(body):
                ends.append(branch)
        if ends:
            state.merge(ends)
        return concat(outputs)

    # --- simple commands

    def simple(self, node: Simple, state: State, stdin: Val | None) -> Val:
        keep = self.choice, self.alternatives
        outputs: list[Val] = []
        self.choice, self.alternatives = 0, 1
        while True:
            outputs.append(self._simple(node, state, stdin))
            self.choice += 1
            if self.choice >= min(self.alternatives, ALTERNATIVES):
                break
        self.choice, self.alternatives = keep
        return outputs[0] if len(outputs) == 1 else concat(outputs)

    def _simple(self, node: Simple, state: State, stdin: Val | None) -> Val:
        assigned: list[tuple[str, Val | list[Val]]] = []
        target = state if not node.words else state.fork()
        for name, append, word in node.assignments:
            value = self._assigned(name, append, word, target)
            assigned.append((name, value))
            if node.words:
                target.vars[name] = value
            else:
                self._assign(state, name, value)
        words: list[Val] = []
        for word in node.words:
            words.extend(expand.fields(self, word, state))
        self.spend_words(len(words))
        sinks: list[tuple[str, bool]] = []
        network = ""
        if node.redirects:
            stdin, sinks, _ = self.redirect(node.redirects, state, stdin)
        if not words:
            # `$(cmd)` that printed nothing, or assignments alone.
            return self.deliver(EMPTY if not node.redirects or stdin is None else stdin, sinks)
        from guardhook.analysis.command import run

        out = run(self, words, state, stdin, dict(assigned), self.span(node), network)
        return self.deliver(out, sinks)

    def _assigned(self, name: str, append: bool, word: Word, state: State) -> Val | list[Val]:
        items = expand.array(self, word, state)
        if items is not None:
            before = state.vars.get(name)
            return before + items if append and isinstance(before, list) else items
        value = expand.single(self, word, state)
        if append:
            before = expand.lookup(self, name, state)
            if before is not None:
                return concat([before, value])
        return value

    def _assign(self, state: State, name: str, value: Val | list[Val]) -> None:
        if name.endswith("]"):
            base, _, index = name[:-1].partition("[")
            stored = state.vars.get(base)
            if isinstance(value, Val) and index.isdigit() and len(index) < 5:
                items = list(stored) if isinstance(stored, list) else []
                items.extend([EMPTY] * (int(index) + 1 - len(items)))
                items[int(index)] = value
                state.vars[base] = items
            elif isinstance(value, Val):
                state.vars[name] = value
            return
        if self.choice and isinstance(value, Val):
            before = state.vars.get(name)
            items = list(before.items) if isinstance(before, Alt) else [before] if isinstance(before, Val) else []
            state.vars[name] = Alt(_distinct([*items, value]))
            return
        state.vars[name] = value

    # --- redirections

    def redirect(
        self, redirects: list[Redirect], state: State, stdin: Val | None
    ) -> tuple[Val | None, list[tuple[str, bool]], str]:
        """Standard input, the files that standard output goes to, and the host when a stream goes to the network."""
        sinks: list[tuple[str, bool]] = []
        network = ""
        for redirect in redirects:
            operator = redirect.operator
            if operator in ("<<", "<<-", "<<<"):
                value = expand.single(self, redirect.target, state, tilde=False)
                if redirect.fd in ("", "0"):
                    text = value.text + ("\n" if operator == "<<<" else "")
                    stdin = Val(text, value.taint, value.origin)
                continue
            value = expand.single(self, redirect.target, state)
            text = value.text
            if operator in ("<&", ">&") and (text == "-" or text.rstrip("-").isdigit()):
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

    def process(self, direction: str, body: Seq, state: State) -> Val:
        """`<( … )` becomes a path whose content is known; `>( … )` one that waits for input."""
        path = f"/dev/fd/{63 - len(self.files) - len(self.pipes)}"
        if direction == "<":
            self.files[path] = self.seq(body, state.fork(), None)
        else:
            self.pipes[path] = (body, state.fork())
        return Val(path)

    def substitute(self, body: Seq, state: State) -> Val:
        """What `$( … )` gives. `$(< file)` is the file's content."""
        return self.seq(body, state.fork(), None)

    # --- files (used by program handlers too)

    def read_file(self, value: Val, state: State, span: tuple[int, int] | None, quiet: bool = False) -> Val:
        """Reading a file: the effect, and its content as far as this command or the disk tells (never a secret's)."""
        place = self.place(value, state)
        if not quiet:
            self.emit("read", path=place.path, path_classes=place.classes, flags=place.flags, span=span)
        known = self.files.get(place.text)
        if known is not None:
            return known
        if "secret" in place.classes:
            return Val(HOLE, frozenset(("secret",)), place.path)
        mark = self.facts.marked.get(place.text)
        if mark:
            return Val(HOLE, frozenset((mark,)), place.path)
        return Val(HOLE, value.taint, f"content of {place.path}")

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


_ENVIRONMENT = {
    "SHELL": "/bin/bash", "BASH": "/bin/bash", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "IFS": " \t\n", "TMPDIR": "/tmp",
    "TMP": "/tmp", "TEMP": "/tmp", "OSTYPE": "linux-gnu", "SHLVL": "1", "XDG_RUNTIME_DIR": "/run/user/1000", "EUID": "1000", "UID": "1000", "LANG": "C.UTF-8",
}  # fmt: skip
_NOWHERE = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/zero", "/dev/full"))
_EXECUTED = frozenset(("network", "decoded"))
_SENSITIVE = frozenset(("secret", "env-secret", "environment"))
# Tools whose output is made to be evaluated.
_TRUSTED_OUTPUT = frozenset(f"output of {name}" for name in (
    "ssh-agent", "direnv", "brew", "pyenv", "rbenv", "nodenv", "jenv", "fnm", "starship", "zoxide", "conda", "mamba", "micromamba", "mise", "rtx", "asdf",
    "opam", "dircolors", "luarocks", "minikube", "docker-machine", "thefuck", "fasd", "goenv", "hub", "atuin", "register-python-argcomplete", "kubectl",
    "gh", "npm", "pip", "poetry", "uv", "rustup", "volta", "nvm", "lesspipe", "keychain", "navi", "mcfly", "op", "resize", "tset", "gpg-agent", "locale",
    "getopt", "pip3", "helm", "stack", "cs", "scutil", "path_helper", "gnome-keyring-daemon",
))  # fmt: skip


def _distinct(values: list[Val]) -> list[Val]:
    seen: dict[tuple[str, frozenset[str]], Val] = {}
    for value in values:
        seen.setdefault((value.text, value.taint), value)
    return list(seen.values())


def _leaves(node: object) -> bool:
    """Whether the node always ends the script, function or loop round, so that what follows doesn't see its state."""
    if isinstance(node, Simple):
        return bool(node.words) and node.words[0].literal in ("exit", "return", "exec", "continue", "break", "die")
    if isinstance(node, Group):
        return not node.subshell and _leaves(node.body)
    if isinstance(node, Seq):
        return any(op in ("", ";", "&&") and not background and _leaves(child) for op, child, background in node.items)
    return False


def _bombs(node: object, name: str, piped: bool = False) -> bool:
    """Whether a function's body starts the function itself in a pipe or in the background."""
    if isinstance(node, Simple):
        return piped and bool(node.words) and node.words[0].literal == name
    if isinstance(node, Pipe):
        return any(_bombs(child, name, True) for child in node.commands)
    if isinstance(node, Group):
        return _bombs(node.body, name, piped)
    if isinstance(node, Seq):
        return any(_bombs(child, name, piped or background) for _, child, background in node.items)
    if isinstance(node, (Loop, For)):
        return _bombs(node.body, name, piped)
    if isinstance(node, If):
        return any(_bombs(body, name, piped) for _, body in node.branches)
    return False
