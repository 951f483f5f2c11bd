"""Manifests in JSON: what package.json, composer.json and deno.json say that a script's name runs."""

from __future__ import annotations

from guardhook.core.jsontext import PayloadError, loads_text

_MOST = 256 * 1024


def table(text: str, section: str) -> dict[str, object]:
    """A table of a manifest; empty when there is none that can be read."""
    if not text or len(text) > _MOST:
        return {}
    try:
        data = loads_text(text)
    except PayloadError:
        return {}
    found = data.get(section) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}
