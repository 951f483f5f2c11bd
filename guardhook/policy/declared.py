"""What the owner declares in config.toml about commands that are checks, as far as recording a run needs to know it."""

from __future__ import annotations

from hashlib import sha256

import msgspec


def digest(verify: object) -> str | None:
    """SHA-256, in hexadecimal digits, of the declared checks (`account.verify`), None when none is declared.

    A run keeps it from when it begins: checks that were declared only afterwards prove less.
    """
    if not isinstance(verify, list) or not verify:
        return None
    return sha256(msgspec.json.encode(verify, order="sorted")).hexdigest()
