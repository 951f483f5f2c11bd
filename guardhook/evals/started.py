"""Whether a command line runs a file by its name, as far as words tell: reading it, listing it or handing it to a program is something else."""

from __future__ import annotations

import re
from collections.abc import Iterable

_INTERPRETER = re.compile(
    r"(?:ba|z|da|k|fi|a)?sh|python[\d.]*|perl|ruby|node|deno|bun|tsx|php|lua|pwsh|powershell|source|\.|Rscript|java"
)
_AHEAD = frozenset(("sudo", "doas", "exec", "nohup", "time", "env", "then", "do", "else", "command", "nice", "xargs", "run"))  # fmt: skip
_BREAK = re.compile(r"(\|\|?|&&?|;|\n|\$\(|\(|\)|`|<)")
_MOST = 20_000


def runs(texts: Iterable[str], name: str) -> bool:
    """Whether one of these texts runs a file of this name."""
    return any(name in text and _runs(text[:_MOST], name) for text in texts)


def _runs(text: str, name: str) -> bool:
    decides = ""  # what the word before says of this one: "" at the start of a command, then program or other
    mentioned = False
    mark = ""
    for piece in _BREAK.split(text):
        if _BREAK.fullmatch(piece):
            # `sh < file` runs it as `sh file` does.
            decides, mark = decides if piece == "<" else "", piece
            continue
        words = [raw.strip("'\"") for raw in piece.split()]
        words = [word for word in words if word and word[0] != "-" and "=" not in word and word not in _AHEAD]
        if mark == "|" and mentioned and len(words) == 1 and _interprets(words[0]):
            return True  # `cat file | sh`
        for word in words:
            if word.rsplit("/", 1)[-1] == name:
                mentioned = True
                if decides != "other":
                    return True
            decides = "program" if decides == "" and _interprets(word) else "other"
    return False


def _interprets(word: str) -> bool:
    return _INTERPRETER.fullmatch(word if word == "." else word.rsplit("/", 1)[-1]) is not None
