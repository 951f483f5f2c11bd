"""Telling quickly which of many values hold nothing that redaction would change.

Most texts hold no secret, and asking the rules once for many texts costs a fraction of asking for each. Values for which the answer is not clear are redacted
in the ordinary way; the answer `harmless` is never given to one that redaction would change.
"""

from __future__ import annotations

from collections.abc import Sequence

from guardhook.journal import redact

GROUP_CHARS = 48 * 1024  # the rules have an allowance of time for each text that they look at
_NAMES_MOST = 10_000
# Between texts that are looked at together. Values of secrets end at white space, and a bracket closes what looks like a marker of ours: no rule finds
# less in the joined text than in its parts.
_BORDER = "\n]\0\n"


class Sieve:
    """Looks at values with one set of rules."""

    def __init__(self, rows: tuple[redact.Row, ...]) -> None:
        self._rows = rows
        # A user's own pattern may care where a text begins and ends, which joined texts don't tell.
        self._own = any(where == "any" for _, where, *_ in rows)
        self._names: dict[str, bool] = {}  # member names that were looked at, and whether they hold secrets

    def look(self, values: Sequence[object]) -> list[tuple[bool, int]]:
        """For each value: whether it holds nothing that redaction would change, and how many characters its texts have (-1: not counted)."""
        if self._own:
            return [(False, -1)] * len(values)
        found: list[tuple[bool, int]] = []
        group: list[str] = []
        members: list[int] = []
        size = 0
        for index, value in enumerate(values):
            texts: list[str] = []
            plain = self._collect(value, texts)
            chars = sum(map(len, texts))
            found.append((plain, chars))
            if plain:
                group += texts
                members.append(index)
                size += chars
            if size >= GROUP_CHARS:
                self._settle(group, members, found)
                group, members, size = [], [], 0
        self._settle(group, members, found)
        return found

    def _settle(self, group: list[str], members: list[int], found: list[tuple[bool, int]]) -> None:
        joined = _BORDER.join(group)
        if redact.redact_text(joined, self._rows) != joined:
            for index in members:
                found[index] = (False, found[index][1])

    def _collect(self, value: object, texts: list[str]) -> bool:
        """Gathers the texts. Gives False when a member is named like a secret, or the value is nested deeper than redaction follows."""
        names = self._names
        level = [value]
        plain = True
        for _ in range(redact.DEPTH):
            below: list[object] = []
            for item in level:
                if isinstance(item, str):
                    texts.append(item)
                elif isinstance(item, dict):
                    for key, inner in item.items():
                        secret = names.get(key)
                        if secret is None:
                            secret = self._name(key)
                        plain = plain and not secret
                        below.append(inner)
                elif isinstance(item, (list, tuple)):
                    below += item
            if not below:
                return plain
            level = below
        return False

    def _name(self, key: str) -> bool:
        if len(self._names) > _NAMES_MOST:
            self._names.clear()
        self._names[key] = secret = redact.secret_name(key)
        return secret
