"""JSON for the columns of the store. Apart from what prints it: reading commands do without the encoder."""

from __future__ import annotations

import msgspec

from guardhook.core.jsontext import dumps

_encoder = msgspec.json.Encoder()


def json_text(value: object) -> str:
    """Compact JSON, non-ASCII as it is."""
    try:
        return _encoder.encode(value).decode()
    except (UnicodeEncodeError, OverflowError):  # an integer beyond 64 bits
        return dumps(msgspec.to_builtins(value))
