"""The texts that criteria search: the JSON form of recorded values, and what stands in it when the escapes are taken away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guardhook.core.jsontext import strings
from guardhook.store import Step
from guardhook.store.model import parsed

_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)")
_NOT_WORD = re.compile(r"\W+", re.ASCII)
WORD_CHARS = 5  # shorter words say nothing of where a text comes from


def failed(step: Step) -> bool:
    """Whether a step counts as failed."""
    return step.step_type == "error" or step.error is not None


def forms(json_text: str | None) -> Iterator[str]:
    """The value's JSON text and, where that holds escapes, its strings as they were said: a line break before a word is no letter `n`."""
    if json_text is None:
        return
    yield json_text
    if "\\" in json_text:
        yield "\n".join(strings(parsed(json_text, "")))


def words(json_text: str) -> set[str]:
    """The words of a value that say something, in lower case."""
    bare = _ESCAPE.sub(" ", json_text) if "\\" in json_text else json_text
    return {word for word in _NOT_WORD.split(bare.lower()) if len(word) >= WORD_CHARS}


def answers(json_text: str | None) -> bool:
    """Whether an output is an answer: text that is not blank, a list or object that is not empty, a number or truth value."""
    if json_text is None:
        return False
    if json_text[:1] == '"':
        value = parsed(json_text, "")
        return isinstance(value, str) and bool(value.strip())
    return json_text.strip() not in ("", "null", "[]", "{}")
