"""Which declared check a shell command runs, and whether the command's exit code is the check's own."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import NamedTuple

from guardhook.analysis import nodes
from guardhook.analysis.nodes import Node, Seq, Simple, Unparsable
from guardhook.analysis.parser import parse
from guardhook.archive.account.declarations import Check

_MOST_CHARS = 64 * 1024
_QUIET = frozenset(("cd", "pushd", "export"))
SHELLS = frozenset((
    "bash", "shell", "local_shell", "run_shell_command", "exec_command", "terminal", "powershell", "unified_exec", "run_terminal_cmd", "execute",
    "run_command", "shell_command",
))  # fmt: skip


class Attempt(NamedTuple):
    """A command that runs a check. clear: nothing stands between the check's exit code and the command's."""

    check: Check
    clear: bool


def command_of(arguments: object) -> str | None:
    """The shell text in a call's arguments."""
    if not isinstance(arguments, dict):
        return None
    for name in ("command", "cmd", "script", "commandLine"):
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            if len(value) == 3 and value[0].rpartition("/")[2] in ("bash", "sh", "zsh") and value[1] in ("-c", "-lc"):
                return str(value[2])
            import shlex

            return shlex.join(value)
    return None


def in_background(arguments: object) -> bool:
    """Whether the call does not wait for its command."""
    return isinstance(arguments, dict) and any(
        arguments.get(n) is True for n in ("run_in_background", "background", "is_background")
    )


def attempt(command: str, checks: tuple[Check, ...], *, background: bool = False) -> Attempt | None:
    """The check that a command runs, None when it runs none. With several the last one counts, and is not clear."""
    if not checks or len(command) > _MOST_CHARS:
        return None
    try:
        tree = parse(command)
    except Unparsable:
        return None
    found = [check for simple in _simples(tree, 0) if (check := _matching(simple, checks)) is not None]
    if not found:
        return None
    return Attempt(found[-1], not background and len(found) == 1 and _clear(command, tree, found[0], checks))


def _clear(command: str, tree: Seq, check: Check, checks: tuple[Check, ...]) -> bool:
    """A single simple command, with nothing before it but `cd …&&`, and no substitution, pipe, background or negation anywhere."""
    at = 0
    for place, (_, node, background) in enumerate(tree.items):
        if not isinstance(node, Simple) or background or _substitutes(node):
            return False
        if command[at : node.start].strip() != ("&&" if place else ""):
            return False
        at = max([node.end, *(r.end for r in node.redirects)])
        last = place == len(tree.items) - 1
        if last:
            if _matching(node, checks) is not check:
                return False
        elif node.words and node.words[0].literal not in _QUIET:
            return False
    return command[at:].strip() in ("", ";")


def _substitutes(node: Simple) -> bool:
    words = [*node.words, *(value for _, _, value in node.assignments), *(r.target for r in node.redirects)]
    return any(part[0] in (nodes.CMD, nodes.PROC) for word in words for part in word.parts)


def _simples(node: Node, depth: int) -> Iterator[Simple]:
    """All simple commands, those inside substitutions included."""
    if depth > 40:
        return
    if isinstance(node, Simple):
        yield node
        for word in [*node.words, *(value for _, _, value in node.assignments)]:
            for part in word.parts:
                if part[0] == nodes.CMD:
                    yield from _simples(part[1], depth + 1)
                elif part[0] == nodes.PROC:
                    yield from _simples(part[2], depth + 1)
        return
    below: list[Node] = []
    if isinstance(node, Seq):
        below = [item for _, item, _ in node.items]
    elif isinstance(node, nodes.Pipe):
        below = list(node.commands)
    elif isinstance(node, nodes.Group):
        below = [node.body]
    elif isinstance(node, nodes.If):
        below = [part for branch in node.branches for part in branch]
        below += [node.otherwise] if node.otherwise is not None else []
    elif isinstance(node, nodes.Loop):
        below = [node.condition, node.body]
    elif isinstance(node, (nodes.For, nodes.Function)):
        below = [node.body]
    elif isinstance(node, nodes.Case):
        below = [body for _, body in node.items]
    for item in below:
        yield from _simples(item, depth + 1)


def _matching(node: Simple, checks: tuple[Check, ...]) -> Check | None:
    """The check whose words the command begins with, or whose glob fits it. `env A=1` in front does not count."""
    literals = [word.literal for word in node.words]
    if literals[:1] == ["env"]:
        literals = literals[1:]
        while literals and literals[0] is not None and "=" in literals[0] and not literals[0].startswith("-"):
            literals = literals[1:]
    for check in checks:
        if check.argv and literals[: len(check.argv)] == list(check.argv):
            return check
        if check.glob is not None and literals and None not in literals and fnmatch.fnmatchcase(" ".join(map(str, literals)), check.glob):  # fmt: skip
            return check
    return None
