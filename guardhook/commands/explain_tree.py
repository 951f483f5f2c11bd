"""The parse tree of a shell command as plain data and as indented lines, for `guardhook explain`."""

from __future__ import annotations

from typing import Any

from guardhook.analysis import nodes
from guardhook.core.jsontext import printable

MOST = 2000  # nodes; what comes after them is left out, and said to be
_SHOWN = 64


class Tree:
    """Builds `{"type", "span", "text", …, "children"}` from the analyser's nodes. span is a character range of the command."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left = MOST
        self.cut = False

    def of(self, node: object) -> dict[str, Any]:
        self.left -= 1
        if self.left < 0:
            self.cut = True
            return {"type": "cut", "span": [0, 0], "text": "", "children": []}
        name = type(node).__name__.lower()
        made = getattr(self, f"_{name}")(node)
        start, end = getattr(node, "start", 0), getattr(node, "end", 0)
        text = self.text[start:end].rstrip()  # a node may reach up to the operator behind it
        out = {"type": made[0], "span": [start, start + len(text)], "text": text, **made[1]}
        redirects = [self._redirect(r) for r in getattr(node, "redirects", ())]
        if redirects:
            out["redirects"] = redirects
        out["children"] = made[2]
        return out

    def _kids(self, *found: object) -> list[dict[str, Any]]:
        return [self.of(node) for node in found if node is not None and self.left > 0]

    def _simple(self, node: nodes.Simple) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        inner: list[dict[str, Any]] = []
        words = [self._word(word, inner) for word in node.words]
        more: dict[str, Any] = {"words": words}
        if node.assignments:
            more["assignments"] = [
                {"name": entry[0], "value": self._word(entry[2], inner)} for entry in node.assignments
            ]
        return "command", more, inner

    def _word(self, word: nodes.Word | None, inner: list[dict[str, Any]]) -> dict[str, Any]:
        if word is None:
            return {"span": [0, 0], "text": "", "literal": None}
        self._inside(word.parts, inner)
        return {"span": [word.start, word.end], "text": self.text[word.start : word.end], "literal": word.literal}

    def _inside(self, parts: list[Any], inner: list[dict[str, Any]]) -> None:
        """Commands inside a word: substitutions, also those inside `${…}` and `$((…))`."""
        for part in parts:
            kind = part[0]
            if kind in (nodes.CMD, nodes.PROC):
                body = part[1] if kind == nodes.CMD else part[2]
                if self.left > 0:
                    inner.append(
                        {
                            "type": "substitution" if kind == nodes.CMD else "process_substitution",
                            "span": [body.start, body.end],
                            "text": self.text[body.start : body.end],
                            "children": self._kids(body),
                        }
                    )
            elif kind == nodes.VAR and part[3] is not None:
                self._inside(part[3].parts, inner)
            elif kind == nodes.ARITH:
                self._inside(part[1].parts, inner)
            elif kind == nodes.ARRAY:
                for word in part[1]:
                    self._inside(word.parts, inner)

    def _redirect(self, redirect: nodes.Redirect) -> dict[str, Any]:
        inner: list[dict[str, Any]] = []
        target = self._word(redirect.target, inner)
        out = {"operator": redirect.operator, "fd": redirect.fd, "target": target["text"]}
        if redirect.operator.startswith("<<"):
            out["target"] = self.text[redirect.start : redirect.end]
        if inner:
            out["children"] = inner
        return out

    def _seq(self, node: nodes.Seq) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        children = []
        for operator, item, background in node.items:
            if self.left <= 0:
                break
            child = self.of(item)
            if operator:
                child["after"] = operator
            if background:
                child["background"] = True
            children.append(child)
        return "list", {}, children

    def _pipe(self, node: nodes.Pipe) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        return "pipeline", {}, self._kids(*node.commands)

    def _group(self, node: nodes.Group) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        return "subshell" if node.subshell else "group", {}, self._kids(node.body)

    def _if(self, node: nodes.If) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        found: list[object] = [part for branch in node.branches for part in branch]
        return "if", {}, self._kids(*found, node.otherwise)

    def _loop(self, node: nodes.Loop) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        return "while", {}, self._kids(node.condition, node.body)

    def _for(self, node: nodes.For) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        inner: list[dict[str, Any]] = []
        words = [self._word(word, inner) for word in node.words or ()]
        return "for", {"name": node.name, "words": words}, [*inner, *self._kids(node.body)]

    def _case(self, node: nodes.Case) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        inner: list[dict[str, Any]] = []
        word = self._word(node.word, inner)
        return "case", {"word": word}, [*inner, *self._kids(*(body for _, body in node.items))]

    def _function(self, node: nodes.Function) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        return "function", {"name": node.name}, self._kids(node.body)

    def _test(self, node: nodes.Test) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        inner: list[dict[str, Any]] = []
        words = [self._word(word, inner) for word in node.words]
        return "test", {"words": words}, inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__"):
            return lambda node: (name[1:], {}, [])  # a kind of node that the parser got later
        raise AttributeError(name)


def parse(text: str) -> dict[str, Any]:
    """`{"ok": true, "tree": …}`, or `{"ok": false, "error", "at"}` where the text is no shell that the analyser understands."""
    from guardhook.analysis.parser import parse as parse_shell

    try:
        made = Tree(text)
        tree = made.of(parse_shell(text))
    except nodes.Unparsable as error:
        return {"ok": False, "error": error.why, "at": error.at}
    except RecursionError:
        return {"ok": False, "error": "nested too deep", "at": 0}
    return {"ok": True, "tree": tree, "cut": made.cut}


def lines(tree: dict[str, Any], depth: int = 0) -> list[tuple[int, str, str]]:
    """(depth, label, text) of each node worth a line: a list or pipeline of one is left out. Text is fit for a terminal."""
    label = str(tree["type"])
    children = tree["children"]
    if label == "list" and len(children) == 1 and depth:
        return lines(children[0], depth)
    out: list[tuple[int, str, str]] = []
    joint = f"{tree['after']} " if tree.get("after") not in (None, ";", "\n", "") else ""
    if label == "list" and not depth:
        depth -= 1  # the command itself needs no line
    else:
        out.append((depth, joint + label + (" &" if tree.get("background") else ""), _summary(tree)))
    for redirect in tree.get("redirects", ()):
        shown = f"{redirect['fd']}{redirect['operator']} {redirect['target']}"
        if redirect["operator"].startswith("<<"):
            shown = redirect["target"]
        out.append((depth + 1, "redirect", printable(shown, _SHOWN)))
        for inner in redirect.get("children", ()):
            out.extend(lines(inner, depth + 2))
    for child in children:
        out.extend(lines(child, depth + 1))
    return out


def _summary(tree: dict[str, Any]) -> str:
    kind = tree["type"]
    if kind == "command":
        parts = [f"{a['name']}={a['value']['text']}" for a in tree.get("assignments", ())]
        parts += [word["text"] for word in tree["words"]]
        return printable(" ".join(parts), _SHOWN * 2)
    if kind in ("for", "function"):
        return printable(str(tree["name"]), _SHOWN)
    if kind in ("case", "test"):
        return printable(tree["text"].split("\n")[0], _SHOWN)
    return ""
