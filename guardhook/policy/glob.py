"""Globs over folded text, without regular expressions: what `tool`, `program`, `path` and the like are written in.

Two dialects. In plain globs (`tool`, `host`, `argument`, `program`, `agent`) `*` stands for anything. In path globs `*` and `?`
stop at a slash, `**` does not, `~` is a home folder, `x/**` covers `x` itself too, and a glob with no leading `/`, `~` or `**`
matches at any depth, as in .gitignore. Compiled forms are plain tuples, so that they can be kept with marshal.
"""

from __future__ import annotations

# A compiled glob is (mode, literal, tokens). Modes: `=` equal, `^` starts with, `$` ends with, `~` contains, `.` anything,
# `t` tokens. `literal` stands in every text that matches. Tokens: a literal text, or one of the marks below, or a
# tuple (negated, characters) for a bracket.
Glob = tuple[str, str, tuple[object, ...]]
_MOST = 100  # wildcards: each one that is tried takes a call within a call
_ANY = 0  # any run of characters, slashes too
_SEGMENT = 1  # any run of characters but `/`
_ONE = 2  # one character (not `/` in a path)
_FOLDERS = 3  # `**/`: nothing, or any folders with their final slash
_BELOW = 4  # a final `/**`: the end, or a slash and anything


def compile_glob(text: str) -> Glob:
    """Compiles a folded plain glob. Raises ValueError for an empty one or an open bracket."""
    return _pack(_tokens(text, path=False))


def compile_path(text: str, homes: tuple[str, ...] = ()) -> list[Glob]:
    """Compiles a folded path glob: one form, or one for each home folder where it starts with `~`. Raises ValueError."""
    if text == "~" or text.startswith("~/"):
        return [
            _pack(_tokens(home.rstrip("/"), path=True, literal=True) + _tokens(text[1:], path=True)) for home in homes
        ]
    if not text.startswith(("/", "**")):
        text = "**/" + text
    return [_pack(_tokens(text, path=True))]


def _tokens(text: str, path: bool, literal: bool = False) -> list[object]:
    if literal:
        return [text] if text else []
    tokens: list[object] = []
    run = ""
    i = 0
    while i < len(text):
        char = text[i]
        step = 1
        mark: object = None
        if path and text.startswith("/**", i) and i + 3 == len(text):
            mark, step = _BELOW, 3
        elif path and text.startswith("**/", i) and (i == 0 or text[i - 1] == "/"):
            mark, step = _FOLDERS, 3
        elif text.startswith("**", i):
            mark, step = _ANY, 2
        elif char == "*":
            mark = _SEGMENT if path else _ANY
        elif char == "?":
            mark = _ONE
        elif char == "[":
            end = text.find("]", i + 2)
            if end < 0:
                raise ValueError("a `[` in a glob needs its `]`")
            body = text[i + 1 : end]
            negated = body[0] in "!^"
            mark, step = (negated, _bracket(body[1:] if negated else body)), end + 1 - i
        if mark is None:
            run += char
        else:
            if run:
                tokens.append(run)
                run = ""
            if not (mark == _ANY and tokens and tokens[-1] == _ANY):
                tokens.append(mark)
        i += step
    if run:
        tokens.append(run)
    return tokens


def _bracket(body: str) -> str:
    out = ""
    i = 0
    while i < len(body):
        if i + 2 < len(body) and body[i + 1] == "-":
            low, high = ord(body[i]), ord(body[i + 2])
            if high < low or high - low > 256:
                raise ValueError(f"the range {body[i : i + 3]} in a glob is the wrong way round or too wide")
            out += "".join(map(chr, range(low, high + 1)))
            i += 3
        else:
            out += body[i]
            i += 1
    return out


def _pack(tokens: list[object]) -> Glob:
    joined: list[object] = []
    for token in tokens:
        if isinstance(token, str) and joined and isinstance(joined[-1], str):
            joined[-1] += token
        else:
            joined.append(token)
    if not joined:
        raise ValueError("a glob must not be empty")
    literals = [t for t in joined if isinstance(t, str)]
    longest = max(literals, key=len, default="")
    if len(joined) - len(literals) > _MOST:
        raise ValueError(f"a glob has at most {_MOST} wildcards")
    if len(joined) == 1 and literals:
        return ("=", longest, ())
    if joined == [_ANY]:
        return (".", "", ())
    if len(joined) == 2 and literals and joined[1] == _ANY:
        return ("^", longest, ())
    if len(joined) == 2 and literals and joined[0] == _ANY:
        return ("$", longest, ())
    if len(joined) == 3 and len(literals) == 1 and joined[0] == joined[2] == _ANY:
        return ("~", longest, ())
    return ("t", longest, tuple(joined))


def matches(glob: Glob, text: str, path: bool = False) -> bool:
    """Whether the whole folded text matches. Work is bounded by the tokens times the length of the text."""
    mode, literal, tokens = glob
    if mode == "=":
        return text == literal
    if mode == "t":
        return literal in text and _walk(tokens, 0, text, 0, path, set())
    if mode == "^":
        return text.startswith(literal)
    if mode == "$":
        return text.endswith(literal)
    return mode == "." or literal in text


def any_matches(globs: tuple[Glob, ...], text: str, path: bool = False) -> bool:
    """Whether one of the globs matches the text."""
    for glob in globs:  # noqa: SIM110 - a generator costs more than the loop
        if matches(glob, text, path):
            return True
    return False


def _walk(tokens: tuple[object, ...], i: int, text: str, at: int, path: bool, dead: set[tuple[int, int]]) -> bool:
    """Matches tokens[i:] against text[at:]. dead remembers what was tried in vain, which keeps the work polynomial."""
    size = len(text)
    while i < len(tokens):
        token = tokens[i]
        if isinstance(token, str):
            if not text.startswith(token, at):
                return False
            at += len(token)
        elif token == _ONE or isinstance(token, tuple):
            if at >= size or (path and text[at] == "/"):
                return False
            if isinstance(token, tuple) and (text[at] in token[1]) == token[0]:
                return False
            at += 1
        elif token == _BELOW:
            return at == size or text[at] == "/"
        else:
            return _jump(tokens, i, text, at, path, dead)
        i += 1
    return at == size


def _jump(tokens: tuple[object, ...], i: int, text: str, at: int, path: bool, dead: set[tuple[int, int]]) -> bool:
    if (i, at) in dead:
        return False
    dead.add((i, at))
    token = tokens[i]
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    end = len(text)
    if token == _SEGMENT:
        slash = text.find("/", at)
        end = end if slash < 0 else slash
    if following is None and token != _FOLDERS:
        return end == len(text)
    while True:
        if _walk(tokens, i + 1, text, at, path, dead):
            return True
        if token == _FOLDERS:
            at = text.find("/", at) + 1
            if not at:
                return False
        else:
            at += 1
            if isinstance(following, str):
                at = text.find(following, at)
                if at < 0:
                    return False
            if at > end:
                return False
