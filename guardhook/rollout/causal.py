"""The causal graph of a run: which turn asked for which call, and which result turns up in a later call's arguments.

Tokens of results are kept only until the graph is made and leave it as digests: they may be secrets.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import NamedTuple

from guardhook.rollout import limits

RESULTS = 100
ARGUMENTS = 1_000
PAIRS = 10_000
SCANNED = 64 << 20
NODES = CONTEXT = 8_000  # of each; with the edges of PAIRS a graph still fits into one line
TOKENS = 500
TOKEN_LEAST, TOKEN_MOST = 6, 100  # bytes

_STOP = frozenset(["should", "return", "string", "result", "before", "because", "between", "through", "during", "without", "within", "against", "around", "another", "already", "always", "include", "system", "output", "number", "called", "create", "change", "update", "delete", "cannot", "status", "failed", "please", "simply", "rather", "really", "enough", "across", "except", "entire", "inside", "itself", "object", "method", "public", "private", "import", "export", "module", "package", "struct", "interface", "function", "variable", "boolean", "integer", "default", "defined"])  # fmt: skip  # words too common to say that one thing came of another
_FIELDS = re.compile(r"\S+")

Node = dict[str, object]
Edge = dict[str, object]


def tokens(text: str) -> list[str]:
    """Telling words of a result, in lower case and in their order, each once."""
    found: dict[str, None] = {}
    for match in _FIELDS.finditer(text):
        word = _trimmed(match[0]).lower()
        size = len(word.encode())
        if TOKEN_LEAST <= size <= TOKEN_MOST and word not in _STOP:
            found.setdefault(word)
            if len(found) >= TOKENS:
                break
    return list(found)


def _trimmed(word: str) -> str:
    """Without punctuation at both ends; symbols stay."""
    start, end = 0, len(word)
    while start < end and unicodedata.category(word[start])[0] == "P":
        start += 1
    while end > start and unicodedata.category(word[end - 1])[0] == "P":
        end -= 1
    return word[start:end]


def sealed(token: str) -> str:
    """What the graph says of a token: enough to see that two are the same, and nothing of its text."""
    raw = token.encode()
    return f"[sha256:{hashlib.sha256(raw).hexdigest()[:16]}][len={len(raw)}]"


class Used(NamedTuple):
    """A call, and what it was given in lower case."""

    id: str
    arguments: str


def data_flow(calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> list[Edge]:
    """Edges from results to later calls whose arguments hold one of their tokens, one for each pair.

    calls: (id, arguments) in call order; results: (call id, output) in any order. Bounded; what was found until a bound is given.
    """
    order = {call_id: index for index, (call_id, _) in reversed(list(enumerate(calls)))}
    used = [Used(call_id, given[: limits.TEXT].lower()) for call_id, given in calls[:ARGUMENTS]]
    edges: list[Edge] = []
    pairs = scanned = 0
    known = sorted(((order[c], c, o) for c, o in results if c in order), key=lambda k: k[0])
    for index, source, output in known[:RESULTS]:
        words = tokens(output[: limits.TEXT])
        for later in used[index + 1 :]:
            if later.id == source:
                continue
            pairs += 1
            if pairs > PAIRS:
                return edges
            for word in words:
                scanned += len(later.arguments)
                if scanned > SCANNED:
                    return edges
                if word in later.arguments:
                    edges.append({"from": source, "to": later.id, "type": "data_flow", "matched_token": sealed(word)})
                    break
    return edges


class Graph:
    """Nodes and edges. A node is there once; edges may name nodes that are not there."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self.cut = False  # there is more than it holds

    def node(self, id: str, type: str, step: int, tool: str | None = None) -> None:
        """A turn or a call; a second one of the same id is ignored."""
        if id in self.nodes:
            return
        if len(self.nodes) >= NODES:
            self.cut = True
        else:
            self.nodes[id] = {"id": id, "type": type, "step": step, **({"tool_name": tool} if tool is not None else {})}

    def context(self, source: str, turn: str) -> None:
        """A message of the turn's prompt."""
        if len(self.edges) >= CONTEXT:
            self.cut = True
        else:
            self.edges.append({"from": source, "to": turn, "type": "context"})

    def as_dict(self) -> dict[str, object]:
        return {"nodes": list(self.nodes.values()), "edges": self.edges}

    def adjacency(self) -> dict[str, list[str]]:
        """Every node with those that its edges lead to; edges with an unknown end are left out."""
        out: dict[str, list[str]] = {name: [] for name in self.nodes}
        for edge in self.edges:
            if edge["from"] in out and edge["to"] in out:
                out[str(edge["from"])].append(str(edge["to"]))
        return out


def blame(graph: dict[str, object], target: str) -> list[dict[str, object]]:
    """What led to a node, nearest first: `{id, type, step, cause?}`, cause being the node that it was reached from. Empty for an unknown node."""
    raw_nodes, raw_edges = graph.get("nodes"), graph.get("edges")
    nodes = (
        {str(n["id"]): n for n in raw_nodes if isinstance(n, dict) and "id" in n} if isinstance(raw_nodes, list) else {}
    )
    if target not in nodes:
        return []
    before: dict[str, list[str]] = {}
    for edge in raw_edges if isinstance(raw_edges, list) else []:
        if isinstance(edge, dict):
            before.setdefault(str(edge.get("to")), []).append(str(edge.get("from")))
    out: list[dict[str, object]] = []
    queue: list[tuple[str, str | None]] = [(target, None)]
    seen = {target}
    for name, cause in queue:
        node = nodes.get(name)
        if node is None:
            continue
        out.append(
            {
                "id": name,
                "type": node.get("type"),
                "step": node.get("step"),
                **({} if cause is None else {"cause": cause}),
            }
        )
        for source in before.get(name, []):
            if source not in seen:
                seen.add(source)
                queue.append((source, name))
    return out
