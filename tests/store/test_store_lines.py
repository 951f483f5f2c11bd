"""Lines of a file, whatever lies where between the pieces that are read."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardhook.store import lines


def told(data: bytes, start: int = 0, **more: object) -> list[tuple[int, int, bytes | None]]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return list(lines.raw_lines(file.fileno(), start, len(data), **more))  # type: ignore[arg-type]


@given(
    st.lists(st.binary(max_size=12), max_size=12).map(b"\n".join), st.integers(1, 9), st.integers(0, 14), st.booleans()
)
def test_every_line_with_its_place(data: bytes, chunk: int, most: int, unfinished: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_CHUNK", chunk)
        found = told(data, unfinished=unfinished, most=most)
    *whole, rest = data.split(b"\n")
    expected = whole + [rest] * (unfinished and rest != b"")
    position = 0
    assert len(found) == len(expected)
    for (offset, end, raw), line in zip(found, expected, strict=True):
        assert (offset, end) == (position, min(position + len(line) + 1, len(data)))
        assert raw == line or (raw is None and len(line) > most)  # what came in one piece is given all the same
        assert raw is not None or len(line) > most
        position = end


def test_from_a_place_on_and_up_to_a_size() -> None:
    assert told(b"ab\ncd\nef", 3) == [(3, 6, b"cd")]
    assert told(b"ab\ncd\nef", 3, unfinished=True) == [(3, 6, b"cd"), (6, 8, b"ef")]
    with tempfile.TemporaryFile() as file:
        os.write(file.fileno(), b"ab\ncd\n")
        assert list(lines.raw_lines(file.fileno(), 0, 4)) == [(0, 3, b"ab")]  # what a writer added later


def test_a_line_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_CHUNK", 4)
    assert told(b"a\n" + b"x" * 40 + b"\nb\n" + b"y" * 40, unfinished=True, most=8) == [
        (0, 2, b"a"), (2, 43, None), (43, 45, b"b"), (45, 85, None),
    ]  # fmt: skip
