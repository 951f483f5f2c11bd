"""Simple commands and redirections as shfmt and tree-sitter-bash read them, on the corpus and on generated commands."""

from __future__ import annotations

import bisect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import analysing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_analysis_parser import COMMANDS

from guardhook.analysis.nodes import Simple, Unparsable
from guardhook.analysis.parser import parse
from guardhook.analysis.tree import nodes

# The tests' extra brings shfmt into the interpreter's own folder of programs.
SHFMT = shutil.which("shfmt", path=str(Path(sys.executable).parent)) or shutil.which("shfmt")
needs_shfmt = pytest.mark.skipif(SHFMT is None, reason="no shfmt")

Shape = tuple[list[str], list[str]]  # first words of all simple commands and operators of all redirections, each sorted


def shape(command: str) -> Shape | None:
    try:
        tree = parse(command)
    except Unparsable:
        return None
    found = nodes(tree)
    names = [command[n.words[0].start : n.words[0].end] for n in found if isinstance(n, Simple) and n.words]
    return sorted(names), sorted(r.operator for n in found for r in n.redirects)


def shfmt_shapes(commands: list[str]) -> list[Shape | None]:
    """What shfmt reads; None for what it refuses. Many commands in one process, halved where one of them is refused."""
    if not commands:
        return []
    if len(commands) > 1 and any("<<" in c for c in commands):
        # A here-document that is still open at a command's end would swallow the next command.
        apart = {i: shfmt_shapes([c])[0] for i, c in enumerate(commands) if "<<" in c}
        rest = iter(shfmt_shapes([c for c in commands if "<<" not in c]))
        return [apart[i] if i in apart else next(rest) for i in range(len(commands))]
    starts, text = [], ""
    for command in commands:
        starts.append(len(text))
        text += command + "\n"
    done = subprocess.run([SHFMT or "shfmt", "-ln", "bash", "--to-json"], input=text.encode(), capture_output=True)
    if done.returncode:
        if len(commands) == 1:
            return [None]
        middle = len(commands) // 2
        return [*shfmt_shapes(commands[:middle]), *shfmt_shapes(commands[middle:])]
    found: list[tuple[list[str], list[str]]] = [([], []) for _ in commands]
    stack: list[object] = [json.loads(done.stdout)]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        if not isinstance(node, dict):
            continue
        stack.extend(node.values())
        if node.get("Type") == "CallExpr" and node.get("Args"):
            first = node["Args"][0]
            begin, end = first["Pos"]["Offset"], first["End"]["Offset"]
            found[_at(starts, begin)][0].append(text[begin:end])
        for redirect in node.get("Redirs") or ():
            found[_at(starts, redirect["OpPos"]["Offset"])][1].append(redirect["Op"])
    return [(sorted(names), sorted(operators)) for names, operators in found]


def _at(starts: list[int], offset: int) -> int:
    return bisect.bisect_right(starts, offset) - 1


# Builtins that shfmt reads as clauses of their own, and arithmetic, which has no commands for it.
_CLAUSES = ("declare", "export", "local", "readonly", "typeset", "nameref", "let", "coproc", "time", "select")


def comparable(command: str) -> bool:
    # A final backslash would join the next command; the text of a here-document may look like commands.
    return (
        command.isascii()
        and "\0" not in command
        and "\r" not in command
        and not command.rstrip("\n").endswith("\\")
        and not any(word in command for word in _CLAUSES)
    )


def differences(commands: list[str]) -> tuple[int, list[tuple[str, Shape, Shape | None]]]:
    commands = [c for c in commands if comparable(c)]
    theirs = shfmt_shapes(commands)
    compared = [(c, t, shape(c)) for c, t in zip(commands, theirs, strict=True) if t is not None]
    return len(compared), [(c, t, mine) for c, t, mine in compared if mine is None or not agree(c, t, mine)]


def agree(command: str, theirs: Shape, mine: Shape) -> bool:
    """Inside escaped backticks and stripped here-documents there are no places of single words: they are counted."""
    if "\\`" in command or "<<-" in command:
        return len(theirs[0]) == len(mine[0]) and theirs[1] == mine[1]
    return theirs == mine


@needs_shfmt
def test_commands_and_redirections_agree_with_shfmt() -> None:
    compared, differing = differences(analysing.commands())
    assert compared > 900
    assert not differing


@needs_shfmt
@settings(max_examples=15, deadline=None)
@given(st.lists(COMMANDS, min_size=10, max_size=10))
def test_generated_commands_agree_with_shfmt(commands: list[str]) -> None:
    _, differing = differences([c for c in commands if c.count("<<") < 2])
    assert not differing


def tree_sitter_shape(root: object) -> Shape:
    names, operators, stack = [], [], [root]
    while stack:
        node = stack.pop()
        if node.type == "command_name":
            names.append(node.text.decode())
        elif node.type in ("file_redirect", "herestring_redirect"):
            operators += [child.type for child in node.children if not child.is_named]
        stack.extend(node.children)
    return sorted(names), sorted(operators)


# What that grammar reads as something other than commands, or can't read everywhere.
_ELSEWHERE = ("`", "<<", "unset", "printf -v", "[[", "((", "[ ", "!", "function ")


def test_commands_and_redirections_agree_with_tree_sitter() -> None:
    tree_sitter = pytest.importorskip("tree_sitter")
    grammar = pytest.importorskip("tree_sitter_bash")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
    compared, differing = 0, []
    for command in analysing.commands():
        if not comparable(command) or any(word in command for word in _ELSEWHERE):
            continue
        root = parser.parse(command.encode()).root_node
        mine = shape(command)
        if root.has_error or mine is None:
            continue
        compared += 1
        theirs = tree_sitter_shape(root)
        if theirs != mine:
            differing.append((command, theirs, mine))
    assert compared > 900
    assert len(differing) <= compared * 0.01, differing[:10]
