"""Reading TOML files that a person wrote, so that whatever is wrong is told with file, line and field. Cold."""

from __future__ import annotations

import re
import tomllib
from typing import TypeVar

import msgspec

from guardhook.core.verdict import RANK
from guardhook.policy import model, tomltext

T = TypeVar("T")


class PolicyError(Exception):
    """Something wrong in a policy source. str() is `FILE:LINE: FIELD: what and what to do`."""

    def __init__(self, path: str, line: int | None, where: str, message: str) -> None:
        place = f"{path}:{line}" if line else path
        super().__init__(f"{place}: {where}: {message}" if where else f"{place}: {message}")
        self.path = path
        self.line = line
        self.field = where
        self.message = message


def parse(text: bytes, path: str, type_: type[T]) -> T:
    """One TOML file as a model. Raises PolicyError."""
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise PolicyError(path, line, "", "not valid UTF-8; save the file as UTF-8") from None
    try:
        data = tomltext.loads(decoded)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message = str(error) or "nested too deeply"
        at = re.search(r"\(at line (\d+), column (\d+)\)", message)
        line_ = int(at[1]) if at else decoded.count("\n") + 1
        raise PolicyError(path, line_, "", f"not valid TOML: {message}") from None
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        where = where.rstrip("`").lstrip(".")
        unknown = re.search(r"unknown field `([^`]*)`", message)
        if unknown:
            where = f"{where}.{unknown[1]}" if where else unknown[1]
            message = f"unknown key; {_known(where)}"
        missing = re.search(r"missing required field `([^`]*)`", message)
        if missing:
            message = f"`{missing[1]}` is missing; add it"
        raise PolicyError(path, line_of(decoded, where), where, plain(message) + _choices(message, where)) from None


_CHOICES: dict[str, tuple[str, ...]] = {
    "action": tuple(reversed(RANK)),
    "expect": tuple(reversed(RANK)),
    "preset": ("observe", "balanced", "strict"),
    "presets": ("balanced", "strict"),
    "mode": ("redacted", "full", "hashed", "none"),
}


def _choices(message: str, where: str) -> str:
    """What a field with fixed values takes, to follow the complaint about another value."""
    if not message.startswith("Invalid enum value"):
        return ""
    kind = "mode" if where.startswith("capture.redaction") else where.rpartition(".")[2].partition("[")[0]
    return f"; use one of {', '.join(_CHOICES[kind])}" if kind in _CHOICES else ""


def plain(message: str) -> str:
    return message.replace("Expected `str | array`", "Expected text or a list of texts").replace(
        "Expected `str`", "Expected text"
    )


def _known(where: str) -> str:
    parts = where.split(".")
    holder = parts[-2] if len(parts) > 1 else ""
    kinds: dict[str, type[msgspec.Struct]] = {
        "": model.PolicyFile,
        "match": model.Pattern,
        "unless": model.Pattern,
        "example": model.Example,
        "override": model.Override,
        "exception": model.PolicyException,
    }
    kind = kinds.get(holder.partition("[")[0], model.Policy)
    return f"the keys here are {', '.join(kind.__struct_fields__)}"


_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z_][\w.-]*)\s*\]\]?")


def line_of(text: str, where: str) -> int | None:
    """The line of a field such as `policy[2].match.tool`: the key itself, else the nearest table around it."""
    if not where:
        return None
    steps = [(m[1], int(m[2]) if m[2] else None) for m in re.finditer(r"([\w-]+)(?:\[(\d+)\])?", where)]
    top, number = steps[0]
    best: int | None = None
    counts: dict[str, int] = {}
    here: list[str] = []
    quotes = ""
    for row, line in enumerate(text.split("\n"), 1):
        if quotes:
            quotes = "" if line.count(quotes) % 2 else quotes
            continue
        header = _HEADER.match(line)
        if header:
            here = header[2].split(".")
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                if len(here) == 1:
                    counts = {k: v for k, v in counts.items() if "." not in k}
            if here[0] == top and counts.get(top, 0) == (number or 0) and _leads(here, steps, counts):
                best = row
        elif here and here[0] == top and counts.get(top, 0) == (number or 0) and _leads(here, steps, counts):
            rest = [name for name, _ in steps[len(here) :]]
            if rest and re.match(rf"\s*\"?{re.escape(rest[0])}\"?\s*[.=]", line):
                best = row
                if len(rest) == 1:
                    return row
        elif not here and re.match(rf"\s*{re.escape(top)}\s*[.=]", line):
            return row
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                quotes = mark
                break
    return best


def _leads(here: list[str], steps: list[tuple[str, int | None]], counts: dict[str, int]) -> bool:
    """Whether the table we are in lies on the way to the field."""
    if len(here) > len(steps):
        return False
    for depth, name in enumerate(here):
        wanted, number = steps[depth]
        if name != wanted:
            return False
        if depth and number is not None and counts.get(".".join(here[: depth + 1]), 0) != number:
            return False
    return True
