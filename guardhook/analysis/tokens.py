"""Tokens of scripting languages, as far as the scan of inline code needs them: names, strings, signs. Comments vanish."""

from __future__ import annotations

from guardhook.analysis.lexer import NAME, NAME_START, ansi_escape

ID, STR, OP, NUM, COMMAND, LINE = range(6)
# A token is (kind, text, extra): extra is for STR whether `x` interpolates, else 0; the id of a COMMAND's quoting.
Token = tuple[int, str, int]

TOKENS = 60_000  # tokens; more is cut
_HASH = frozenset(("python", "perl", "ruby", "php", "awk", "sh", "r", "julia", "elixir", "tcl", "make"))
_SLASHES = frozenset(("node", "php", "groovy"))
_BACKTICK_RUNS = frozenset(("perl", "ruby", "php", "julia"))
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_DIGITS = frozenset("0123456789")


def tokens(code: str, language: str) -> list[Token]:
    """The tokens of a program. Never raises; what can't be read is skipped a character at a time."""
    out: list[Token] = []
    i, n = 0, len(code)
    while i < n and len(out) < TOKENS:
        c = code[i]
        if c == "\n":
            out.append((LINE, "\n", 0))
            i += 1
        elif c in " \t\r":
            i += 1
        elif c == "\\" and code.startswith("\n", i + 1):
            i += 2
        elif c in NAME_START or (c in "$@" and i + 1 < n and code[i + 1] in NAME_START and language != "python"):
            i = _name(code, i, language, out)
        elif c in "'\"`":
            i = _string(code, i, language, "", out)
        elif (c == "#" and language in _HASH) or (c == "-" and code.startswith("--", i) and language == "lua"):
            j = code.find("\n", i)
            i = n if j < 0 else j
        elif c == "/" and language in _SLASHES and code.startswith(("//", "/*"), i):
            if code[i + 1] == "/":
                j = code.find("\n", i)
                i = n if j < 0 else j
            else:
                j = code.find("*/", i + 2)
                i = n if j < 0 else j + 2
        elif (
            c == "%"
            and language == "ruby"
            and i + 2 < n
            and code[i + 1] in "xqQwWi"
            and not code[i + 2].isalnum()
            and code[i + 2] not in " ="
        ):
            i = _ruby_percent(code, i, out)
        elif c in _DIGITS:
            j = i + 1
            while j < n and (code[j] in NAME or code[j] == "."):
                j += 1
            out.append((NUM, code[i:j], 0))
            i = j
        else:
            two = code[i : i + 2]
            if two in ("==", "!=", "=>", "->", "::", "+=", ".=", "<=", ">=", "&&", "||", "//", "**", "<<", ">>", "=~"):
                out.append((OP, two, 0))
                i += 2
            else:
                out.append((OP, c, 0))
                i += 1
    return out


def _name(code: str, i: int, language: str, out: list[Token]) -> int:
    n = len(code)
    j = i + 1
    while j < n and code[j] in NAME:
        j += 1
    name = code[i:j]
    if j < n and code[j] in "'\"" and language == "python" and len(name) <= 2 and not name.lower().strip("rbfu"):
        return _string(code, j, language, name.lower(), out)
    if language in ("perl",) and name in ("q", "qq", "qx", "qw", "m", "s", "tr", "y") and j < n:
        k = j
        while k < n and code[k] == " ":
            k += 1
        if (
            k < n
            and not code[k].isalnum()
            and code[k] not in "=,;)_ \n"
            and not (code[k] == "-" and code.startswith("->", k))
        ):
            return _perl_quote(code, k, name, out)
    if language == "ruby" and j < n and code[j] in "?!" and not code.startswith("=", j + 1):
        j += 1
        name = code[i:j]
    out.append((ID, name.lstrip("$@"), 1 if name[0] in "$@" else 0))
    return j


def _perl_quote(code: str, k: int, name: str, out: list[Token]) -> int:
    text, end = _delimited(code, k)
    if name == "qx":
        out.append((COMMAND, text, 1))
    elif name == "qw":
        out.append((OP, "(", 0))
        for word in text.split():
            out.append((STR, word, 0))
            out.append((OP, ",", 0))
        out.append((OP, ")", 0))
    elif name in ("q", "qq"):
        out.append((STR, text, 1 if name == "qq" else 0))
    else:
        # m//, s///, tr///: patterns; only the end matters. `s///e` runs code, its text is looked at by nobody.
        if name in ("s", "tr", "y"):
            if code[k] in _PAIRS:
                while end < len(code) and code[end] in " \n":
                    end += 1
                _, end = _delimited(code, end) if end < len(code) else ("", end)
            else:
                _, end = _delimited(code, end - 1)
        out.append((OP, "~", 0))
    return end


def _delimited(code: str, k: int) -> tuple[str, int]:
    """The text between the delimiter at k and its partner, and the place after that."""
    opening = code[k]
    closing = _PAIRS.get(opening, opening)
    depth = 0
    j = k + 1
    n = len(code)
    while j < n:
        c = code[j]
        if c == "\\":
            j += 2
            continue
        if c == closing and depth == 0:
            return code[k + 1 : j], j + 1
        if closing != opening:
            if c == opening:
                depth += 1
            elif c == closing:
                depth -= 1
        j += 1
    return code[k + 1 :], n


def _ruby_percent(code: str, i: int, out: list[Token]) -> int:
    kind = code[i + 1]
    text, end = _delimited(code, i + 2)
    if kind == "x":
        out.append((COMMAND, text, 1))
    elif kind in "wWi":
        out.append((OP, "[", 0))
        for word in text.split():
            out.append((STR, word, 0))
            out.append((OP, ",", 0))
        out.append((OP, "]", 0))
    else:
        out.append((STR, text, 1 if kind == "Q" else 0))
    return end


def _string(code: str, i: int, language: str, prefix: str, out: list[Token]) -> int:
    quote = code[i]
    n = len(code)
    if language == "python" and code.startswith(quote * 3, i):
        end = code.find(quote * 3, i + 3)
        text = code[i + 3 : n if end < 0 else end]
        out.append((STR, text if "r" in prefix else _unescape(text), 1 if "f" in prefix else 0))
        return n if end < 0 else end + 3
    j = i + 1
    while j < n and code[j] != quote:
        if code[j] == "\n" and language in ("python", "node") and quote != "`":
            break
        j += 2 if code[j] == "\\" else 1
    text = code[i + 1 : min(j, n)]
    if quote == "`" and language in _BACKTICK_RUNS:
        out.append((COMMAND, text, 1))
    elif quote == "`":
        out.append((STR, _unescape(text), 1))
    elif language == "python":
        out.append((STR, text if "r" in prefix else _unescape(text), 1 if "f" in prefix else 0))
    elif quote == "'" and language in ("perl", "ruby", "php", "sh"):
        out.append((STR, text.replace("\\'", "'").replace("\\\\", "\\"), 0))
    else:
        out.append((STR, _unescape(text), 1 if language in ("perl", "ruby", "php", "tcl") else 0))
    return j + 1


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    i = 0
    while i < len(text):
        j = text.find("\\", i)
        if j < 0:
            out.append(text[i:])
            break
        out.append(text[i:j])
        if text.startswith("\\\n", j):
            i = j + 2
            continue
        piece, i = ansi_escape(text, j)
        out.append(piece.replace("\0", ""))
    return "".join(out)
