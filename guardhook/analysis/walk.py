"""The state walk: runs a parse tree on values instead of processes, and notes what it would do as effects.

Control flow is followed on every path that can be taken; where a branch isn't known, the state afterwards holds the
alternatives. What a program does with its arguments is the business of guardhook.analysis.programs.
"""

from __future__ import annotations

from guardhook.analysis import expand
from guardhook.analysis.ground import Ground, Reader
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
    Seq,
    Simple,
    Test,
    Unparsable,
    Word,
)
from guardhook.analysis.parser import parse
from guardhook.analysis.values import ALTERNATIVES, EMPTY, UNKNOWN, Alt, State, Val, concat, source, unknown
from guardhook.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

ROUNDS = 16  # how often a loop's body is walked with its known values
STEPS = 16_000  # nodes walked; functions and loops can multiply a small text


class Walker(Ground):
    """One analysis. Effects are collected in `effects`; `emit` and its relatives are what program handlers call."""

    __slots__ = ()

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
            if name[-1:] == "]" and ("$(" in name or "`" in name):
                subscript = name.partition("[")[2][:-1]
                self.run_text(f': "{subscript}"', state.fork(), None, self.span(node))
            value = self._assigned(name, append, word, target)
            assigned.append((name, value))
            if node.words:
                target.vars[name] = value
            else:
                self._assign(state, name, value)
                if name in PROMPTS and isinstance(value, Val):
                    self.prompt(name, value, state, self.span(node))
        words: list[Val] = []
        before = len(self.effects)
        for word in node.words:
            words.extend(expand.fields(self, word, state))
        if len(self.effects) > before and (
            node.words[0].literal == "export" or (node.words[0].literal == "env" and node.words[-1].literal is not None)
        ):
            # `export $(grep … .env | xargs)`, `env $(cat .env.test) npm test`: what is read goes into the environment, not to whoever reads the output.
            for effect in self.effects[before:]:
                # A key file would be quoted in the shell's complaint about its lines.
                if effect.kind == "read" and ".env" in effect.path.rpartition("/")[2]:
                    effect.flags |= frozenset(("to-environment",))
        self.spend_words(len(words))
        sinks: list[tuple[str, bool]] = []
        network = ""
        before = len(self.effects)
        if node.redirects:
            stdin, sinks, _ = self.redirect(node.redirects, state, stdin)
        after = len(self.effects)
        if not words:
            # `$(cmd)` that printed nothing, or assignments alone.
            out = EMPTY if not node.redirects or stdin is None else stdin
            if sinks and not node.words and stdin is None:
                self._emptied(before, after)
            return self.deliver(out, sinks)
        from guardhook.analysis.command import run

        out = run(self, words, state, stdin, dict(assigned), self.span(node), network)
        if node.words[0].literal in _DECLARING:
            self._declared(node, state)
        if sinks and not out.text.strip() and words[0].text in _PRINTING:
            self._emptied(before, after)
        return self.deliver(out, sinks)

    def prompt(self, name: str, value: Val, state: State, span: tuple[int, int]) -> None:
        """What the shell itself runs later: before its prompt, or inside one."""
        if name == "PROMPT_COMMAND":
            self.run_value(value, state.fork(), None, span, "environment")
        elif "$(" in value.text or "`" in value.text:
            self.run_value(Val(f': "{value.text}"', value.taint, value.origin), state.fork(), None, span, "environment")

    def _emptied(self, before: int, after: int) -> None:
        """Nothing goes into the files that this command's redirections opened."""
        for effect in self.effects[before:after]:
            if (
                effect.kind == "write"
                and {"redirect", "truncate"} <= effect.flags
                and self.facts.exists(effect.path) is not False
            ):
                effect.flags |= frozenset(("empty",))

    def _declared(self, node: Simple, state: State) -> None:
        """`declare -a name=( … )` and its like."""
        for word in node.words[1:]:
            items = expand.array(self, word, state)
            head = word.parts[0][1] if items is not None and isinstance(word.parts[0][1], str) else ""
            name = head.partition("=")[0].rstrip("+")
            if items is not None and name.isidentifier():
                state.vars[name] = items

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
        if state.refs and name in state.refs:
            if not state.refs[name] and isinstance(value, Val):
                state.refs = {**state.refs, name: value.text}
                return
            name = expand.referred(name, state)
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


_EXECUTED = frozenset(("network", "decoded"))
PROMPTS = frozenset(("PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"))
_DECLARING = frozenset(("declare", "typeset", "local", "readonly", "export"))
# Programs of which it is known when they print nothing.
_PRINTING = frozenset((":", "true", "false", "cat", "printf", "echo"))
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
