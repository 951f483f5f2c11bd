"""Loading a rubric: YAML, JSON or TOML, with every mistake named.

A rubric is `{name, threshold?, criteria: [{name, pattern, expected, weight?}]}`. Other keys are left alone unless they look like a known one misspelt.
"""

from __future__ import annotations

import difflib
import os
from typing import Any, NoReturn

from guardhook.core.jsontext import PayloadError, loads
from guardhook.evals.rubric import Check, Rubric
from guardhook.policy.regexes import RegexError, compile_regex

MOST_BYTES = 256 << 10
MOST_CRITERIA = 500
MOST_PATTERN = 10_000
NAME_CHARS = 200
MOST_KEYS = 100
DEFAULT_THRESHOLD = 0.7
_KEYS = ("name", "description", "threshold", "criteria")
_CRITERION_KEYS = ("name", "description", "pattern", "expected", "weight")


class BadRubric(Exception):
    """A rubric that can't be used: the message names file, place and what to do."""


def load(path: str) -> Rubric:
    """Reads a rubric file; the suffix says the format (.yaml, .yml, .toml, else JSON). Raises BadRubric."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadRubric(f"{path}: can't be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise BadRubric(f"{path}: larger than {MOST_BYTES >> 10} KiB")
    return _Reader(path).rubric(parse(path, data))


def parse(path: str, data: bytes) -> object:
    """The value in these bytes. Raises BadRubric, with the line where the parser knows it."""
    suffix = os.path.splitext(path)[1].lower()
    try:
        if suffix in (".yaml", ".yml"):
            from guardhook.evals import yamltext

            return yamltext.load(data)
        if suffix == ".toml":
            from guardhook.policy import tomltext

            return tomltext.loads(data.decode("utf-8"))
        return loads(data)
    except PayloadError as error:
        raise BadRubric(f"{path}: {str(error).replace('the payload', 'the file')}") from None
    except UnicodeDecodeError:
        raise BadRubric(f"{path}: not UTF-8") from None
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise BadRubric(f"{path}: {error or 'nested too deep'}") from None


class _Reader:
    """Checks the parsed value. Only the documented keys are looked at, each once: nothing walks into what a file makes refer to itself."""

    def __init__(self, path: str) -> None:
        self._path = path

    def _wrong(self, where: str, what: str) -> NoReturn:
        raise BadRubric(f"{self._path}: {where}: {what}" if where else f"{self._path}: {what}")

    def rubric(self, value: object) -> Rubric:
        if not isinstance(value, dict):
            self._wrong("", "a rubric is an object with `name` and `criteria`")
        self._known(value, _KEYS, "")
        name = self._name(value.get("name"), "name")
        threshold = self._threshold(value.get("threshold"))
        criteria = value.get("criteria")
        if not isinstance(criteria, list) or not criteria:
            self._wrong("criteria", "must be a list with at least one criterion")
        if len(criteria) > MOST_CRITERIA:
            self._wrong("criteria", f"more than {MOST_CRITERIA}")
        checks: list[Check] = []
        for number, item in enumerate(criteria, 1):
            check = self._check(item, f"criterion {number}")
            if any(check.name == other.name for other in checks):
                self._wrong(f"criterion {number}", f"there is a criterion {check.name!r} already; names must differ")
            checks.append(check)
        if not any(check.weight > 0 for check in checks):
            self._wrong("criteria", "all weights are 0, so there would be no score; give one criterion a weight")
        return Rubric(name, threshold, checks)

    def _check(self, item: object, where: str) -> Check:
        if not isinstance(item, dict):
            self._wrong(where, "must be an object with `name`, `pattern` and `expected`")
        name = self._name(item.get("name"), f"{where}, name")
        where = f"{where} ({name!r})"
        self._known(item, _CRITERION_KEYS, where)
        source, expected = item.get("pattern"), item.get("expected")
        if not isinstance(source, str):
            self._wrong(f"{where}, pattern", "must be text, a regular expression")
        if not isinstance(expected, bool):
            self._wrong(f"{where}, expected", "must be true (the pattern has to occur) or false (it must not)")
        weight = item.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 1e9:
            self._wrong(f"{where}, weight", "must be a number of at least 0")
        return Check(name, self._pattern(source, where), source, expected, float(weight))

    def _pattern(self, source: str, where: str) -> Any:
        if len(source) > MOST_PATTERN:
            self._wrong(f"{where}, pattern", f"longer than {MOST_PATTERN} characters")
        try:
            return compile_regex(source)
        except RegexError as error:
            self._wrong(f"{where}, pattern", str(error))

    def _known(self, value: dict[Any, Any], known: tuple[str, ...], where: str) -> None:
        if len(value) > MOST_KEYS:
            self._wrong(where, f"more than {MOST_KEYS} keys")
        for key in value:
            if key in known or not isinstance(key, str):
                continue
            meant = difflib.get_close_matches(key[:40], [k for k in known if k not in value], 1, 0.75)
            if meant:  # a misspelt `weigth` must not pass for a weight of 1
                self._wrong(where, f"unknown key {key[:80]!r}; did you mean {meant[0]!r}?")

    def _name(self, value: object, where: str) -> str:
        if not isinstance(value, str) or not value.strip():
            self._wrong(where, "must be text that is not blank")
        if len(value) > NAME_CHARS or not value.isprintable():
            self._wrong(where, f"must be printable, on one line, at most {NAME_CHARS} characters")
        return value

    def _threshold(self, value: object) -> float:
        if value is None:
            return DEFAULT_THRESHOLD
        number: float = -1.0
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = value
        elif isinstance(value, str):
            try:
                number = float(value) if "_" not in value else -1.0
            except ValueError:
                number = -1.0
        if not 0 <= number <= 1:
            # Lists are not shown: made of aliases, a small one can have no end.
            shown = f", not {value[:40]!r}" if isinstance(value, str) else ""
            self._wrong("threshold", f"must be a number between 0 and 1{shown}")
        return float(number)
