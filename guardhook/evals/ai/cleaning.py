"""Recorded values as short texts that may leave the machine: secrets are taken out first, and only then is anything cut."""

from __future__ import annotations

import json
from typing import TypeVar, cast

from guardhook.core.folders import Folders
from guardhook.core.jsontext import printable
from guardhook.evals.ai.settings import without_keys
from guardhook.journal import redact
from guardhook.journal.rules import RuleError, freeze_rules
from guardhook.policy import settings
from guardhook.store.model import parsed

_WHOLE = 256 << 10  # longer JSON is not parsed for the sake of its first words
_CUSTOM = ("capture.redaction.custom", "forensics.redaction.custom")

Rows = tuple[redact.Row, ...]
T = TypeVar("T")


def rules(folders: Folders) -> Rows:
    """The journal's rules, all of them, and the user's own patterns. Raises SettingsError for patterns that can't be used: nothing may leave then."""
    found = settings.read(folders)
    custom: dict[str, None] = {}
    for name in _CUSTOM:
        value = found.get(name)
        custom.update((one, None) for one in (value if isinstance(value, list) else []) if isinstance(one, str))
    try:
        return freeze_rules(tuple(custom))
    except RuleError as error:
        raise settings.SettingsError(f"{folders.config}/{settings.FILE}", str(error)) from None


def answer(value: T, rows: Rows, key: str | None) -> T:
    """What a model's reply became, without the key and whatever else is a secret: a server can put into its reply what it was sent."""
    clean, _ = redact.redact(_keyless(value, key), rows)
    return cast(T, clean)


def _keyless(value: object, key: str | None) -> object:
    if isinstance(value, str):
        return without_keys(value, key)
    if isinstance(value, list):
        return [_keyless(one, key) for one in value]
    return {name: _keyless(one, key) for name, one in value.items()} if isinstance(value, dict) else value


class Cleaner:
    """Cleans texts one by one and counts those that held something secret."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.secrets = 0

    def value(self, json_text: str | None, most: int) -> str:
        """A JSON column on one line of at most this many characters; "" when there is nothing in it."""
        if json_text is None or json_text in ("null", "{}", "[]"):
            return ""
        if len(json_text) > _WHOLE:
            return self.plain(json_text, most)
        return self.anything(parsed(json_text, json_text), most)

    def anything(self, value: object, most: int) -> str:
        """Any JSON value, likewise."""
        clean, places = redact.redact(value, self._rows)
        self.secrets += len(places)
        said = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))
        return printable(said, most)

    def plain(self, text: str, most: int) -> str:
        """A plain text, likewise."""
        # The rules see far more than the part that is kept, so no secret can begin in it and end behind it.
        seen = text[: max(_WHOLE, most)]
        clean = redact.redact_text(seen, self._rows)
        self.secrets += clean != seen
        return printable(clean, most)
