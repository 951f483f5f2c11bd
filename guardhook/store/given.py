"""What producers give, as the store keeps it."""

from __future__ import annotations

import msgspec

from guardhook.store import protocol


class Refused(ValueError):
    """A line that can't be applied, and why."""


def decision_of(event: dict[str, object]) -> dict[str, object]:
    """A checked decision as the store keeps it."""
    confidence = event.get("confidence")
    options = event.get("options")
    return {
        "options": options if isinstance(options, list) else [],
        "chosen": event["chosen"],
        "rationale": protocol.plain(event.get("rationale")),
        "confidence": confidence,
        "decided_by": protocol.decided_by(event.get("decided_by")),
    }


def structured(value: object) -> object:
    """A text that is the JSON of an object or list is stored as that; every other value as it is."""
    if isinstance(value, str):
        head = value.strip()[:1]
        if head in ("{", "["):
            try:
                found = msgspec.json.decode(value)
            except (msgspec.DecodeError, ValueError, RecursionError):
                return value
            if isinstance(found, (dict, list)):
                return found
    return value
