"""Walks of parse trees that need no state: for tests and `explain`."""

from __future__ import annotations

from guardhook.analysis.nodes import Case, For, Function, Group, If, Loop, Node, Pipe, Seq, Simple, Test, Word


def simple_commands(node: object) -> list[Simple]:
    """Every simple command of a tree in source order, those inside substitutions included (for tests and `explain`)."""
    return [found for found in nodes(node) if isinstance(found, Simple)]


def nodes(node: object) -> list[Node]:
    """Every node of a tree, those inside substitutions included: each carries its redirections."""
    out: list[Node] = []
    _collect(node, out)
    return out


def _collect(node: object, out: list[Node]) -> None:
    if isinstance(node, Node):
        out.append(node)
    if isinstance(node, Simple):
        for _, _, word in node.assignments:
            _collect(word, out)
        for word in node.words:
            _collect(word, out)
    elif isinstance(node, Seq):
        for _, child, _ in node.items:
            _collect(child, out)
    elif isinstance(node, Pipe):
        for child in node.commands:
            _collect(child, out)
    elif isinstance(node, If):
        for condition, body in node.branches:
            _collect(condition, out)
            _collect(body, out)
        _collect(node.otherwise, out)
    elif isinstance(node, Loop):
        _collect(node.condition, out)
        _collect(node.body, out)
    elif isinstance(node, For):
        for word in node.words or ():
            _collect(word, out)
        _collect(node.body, out)
    elif isinstance(node, Case):
        _collect(node.word, out)
        for patterns, body in node.items:
            for word in patterns:
                _collect(word, out)
            _collect(body, out)
    elif isinstance(node, (Group, Function)):
        _collect(node.body, out)
    elif isinstance(node, Test):
        for word in node.words:
            _collect(word, out)
    elif isinstance(node, Word):
        for part in node.parts:
            for item in part[1:]:
                if isinstance(item, tuple):
                    for word in item:
                        _collect(word, out)
                elif not isinstance(item, (str, bool)):
                    _collect(item, out)
    if isinstance(node, Node):
        for redirect in node.redirects:
            _collect(redirect.target, out)
