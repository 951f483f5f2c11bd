"""A list of JSON values that lies in a file without a name instead of in memory: for recordings of any length. It is gone when nobody uses it any more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from guardhook.archive import plain
from guardhook.store.lines import raw_lines

_ANY = 1 << 62  # bytes of one value: all that was written is read again


class Spooled:
    """Values are added at the end, and given in order as often as they are asked for; each time anew. Raises OSError."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="guardhook-", buffering=1 << 20)  # noqa: SIM115  it lives as long as this
        self._count = 0
        self._size = 0

    def append(self, value: object) -> None:
        """Raises TypeError for what is no plain JSON."""
        line = plain.encode(value) + b"\n"
        self._file.write(line)
        self._count += 1
        self._size += len(line)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[object]:
        self._file.flush()
        for _, _, raw in raw_lines(self._file.fileno(), 0, self._size, most=_ANY):
            assert raw is not None
            yield plain.loads(raw)
