"""Splitting PowerShell source: statements, pipelines, and the pieces of each command, without running anything."""

from __future__ import annotations

# kind: `word` (as it is written), `block` for `{ }`, `hash` for `@{ }`, `group` for `( )`, `$( )` and `@( )`,
# `call` for the operators `&` and `.`, `redirect` for `>` and `>>` (its target is the piece after it).
Piece = tuple[str, str]

KEYWORDS = frozenset(("if", "else", "elseif", "while", "for", "foreach", "do", "try", "catch", "finally", "function", "switch", "return", "param", "process", "begin", "end", "until", "in", "throw", "filter", "exit"))  # fmt: skip
_HERE = ('@"', "@'")
_DEPTH = 24  # strings inside `$( )` inside strings


def statements(text: str) -> list[list[list[Piece]]]:
    """Statements, each a list of pipeline elements, each a list of pieces."""
    found: list[list[list[Piece]]] = []
    pipeline: list[list[Piece]] = []
    words: list[Piece] = []
    i, n = 0, len(text)
    while i <= n:
        c = text[i] if i < n else "\n"
        if c in "\n;|" or (c == "&" and words):
            if words:
                pipeline.append(words)
                words = []
            if c == "|" and text[i + 1 : i + 2] != "|":
                i += 1
                continue
            if pipeline:
                found.append(pipeline)
                pipeline = []
            i += 2 if text[i : i + 2] in ("&&", "||") else 1
        elif c == "&" or (c == "." and not words and text[i + 1 : i + 2] in (" ", "\t", "$", "(")):
            words.append(("call", c))
            i += 1
        elif c in " \t\r":
            i += 1
        elif c == "#":
            end = text.find("\n", i)
            i = n if end < 0 else end
        elif text.startswith("<#", i):
            end = text.find("#>", i)
            i = n if end < 0 else end + 2
        elif c == "`" and text.startswith("\n", i + 1):
            i += 2
        elif (stream := _redirect(text, i)) > i:
            i = stream
            append = text.startswith(">", i)
            i += 1 if append else 0
            if text.startswith("&", i):  # `2>&1`
                i += 1
                while i < n and text[i].isdigit():
                    i += 1
            else:
                words.append(("redirect", ">>" if append else ">"))
        elif c in "{(" or text.startswith(("$(", "@(", "@{"), i):
            start = i + (1 if c in "$@" else 0)
            end = matching(text, start)
            kind = "hash" if c == "@" and text[start] == "{" else "block" if text[start] == "{" else "group"
            words.append((kind, text[start + 1 : end]))
            i = end + 1
        elif c in "})":
            i += 1
        else:
            end = _word_end(text, i)
            name, equals, _ = text[i:end].partition("=")
            if equals and not words and c == "$" and set(name).isdisjoint("'\"([ "):
                # `$name='text'`
                words.append(("word", name.rstrip("+")))
                words.append(("word", "+=" if name.endswith("+") else "="))
                i += len(name) + 1
                continue
            words.append(("word", text[i:end]))
            i = max(end, i + 1)
    return found


def _redirect(text: str, i: int) -> int:
    """The place after `>`, `2>` or `*>` at i; i when none stands there."""
    if text[i : i + 1] in "123456*" and text[i + 1 : i + 2] == ">":
        return i + 2
    return i + 1 if text[i : i + 1] == ">" else i


def _string_end(text: str, i: int, depth: int = 0) -> int:
    """The place after the string that starts at i, with what it quotes and substitutes."""
    n = len(text)
    quote = text[i]
    i += 1
    while i < n:
        c = text[i]
        if c == quote:
            if text[i + 1 : i + 2] != quote:
                return i + 1
            i += 2
        elif c == "`" and quote == '"':
            i += 2
        elif quote == '"' and depth < _DEPTH and text.startswith("$(", i):
            i = matching(text, i + 1, depth + 1) + 1
        else:
            i += 1
    return n


def _here_end(text: str, i: int) -> int:
    """The place after the here-string that starts at i; i when none does."""
    if not text.startswith(_HERE, i):
        return i
    line = i + 2
    while text[line : line + 1] in (" ", "\t", "\r"):
        line += 1
    if text[line : line + 1] != "\n":
        return i
    end = text.find("\n" + text[i + 1] + "@", line)
    return len(text) if end < 0 else end + 3


def matching(text: str, i: int, level: int = 0) -> int:
    """The place of the bracket that closes the one at i. level: strings with brackets in them around it."""
    opening = text[i]
    closing = {"{": "}", "(": ")"}[opening]
    depth = 0
    n = len(text)
    while i < n:
        c = text[i]
        if c == "@" and (here := _here_end(text, i)) > i:
            i = here
            continue
        if c in "'\"":
            i = _string_end(text, i, level)
            continue
        if c == "`":
            i += 1
        elif c == opening:
            depth += 1
        elif c == closing:
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return n


def _word_end(text: str, i: int) -> int:
    n = len(text)
    here = _here_end(text, i)
    if here > i:
        return here
    start = i
    while i < n:
        c = text[i]
        if c in " \t\r\n;|&)}>":
            return i
        if c == "(" and text[start:i].lower() in KEYWORDS:
            return i
        if c in "({" and i > start and text[i - 1] not in "$:." and not text[i - 1].isalnum() and text[i - 1] != "_":
            return i
        if c in "'\"":
            i = _string_end(text, i)
        elif c == "`":
            i += 2
        elif c in "({":
            i = matching(text, i) + 1
        else:
            i += 1
    return n
