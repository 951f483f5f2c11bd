"""Recordings that lie in files while they are written: the same bytes as from memory, and memory does not grow with them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from archive_rig import RUN, happened
from hypothesis import given
from hypothesis import strategies as st
from store_rig import SESSION, Journal, bash_call, event

from guardhook.archive import plain, sinks, source, stream
from guardhook.archive.envelope import build_recording_envelope
from guardhook.archive.spooled import Spooled
from guardhook.rollout.runs import find_in

_TEXT = st.text(max_size=8) | st.sampled_from(["\n", "[", "]", '"', "\\", "\ud83d", "é\u2028", "{}", ": "])
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_ELEMENTS = st.lists(_VALUE, max_size=4)


def spooled(values: list[Any]) -> Spooled:
    made = Spooled()
    for value in values:
        made.append(value)
    return made


def same(written: bytes, document: object) -> None:
    """The formatter knows no half characters: what holds one is compact, in pieces only that."""
    assert plain.encode(plain.loads(written)) == plain.encode(document)
    if b"\\ud83d" not in written:
        assert written == plain.pretty(document)


@given(_VALUE, _ELEMENTS, _ELEMENTS, _VALUE)
def test_pieces_are_the_text_of_the_whole(about: Any, events: list[Any], steps: list[Any], other: Any) -> None:
    for recording in (
        {"snapshot": {"trace": about, "steps": steps}, "events": events, "structure": other},
        {"events": events, "snapshot": about},
        {"events": other, "snapshot": {"steps": other}},
        {},
    ):
        for document in ({"format": "x", "run": about, "recording": recording}, recording):
            same(b"".join(stream.pretty(document)) + b"\n", document)
    aside: dict[str, object] = {
        "recording": {"snapshot": {"trace": about, "steps": spooled(steps)}, "events": spooled(events)}
    }
    inside = {"recording": {"snapshot": {"trace": about, "steps": steps}, "events": events}}
    same(sinks.serialise(aside), inside)


@given(_ELEMENTS)
def test_values_come_back_as_they_were_and_more_than_once(values: list[Any]) -> None:
    made = spooled(values)
    for _ in range(2):
        assert [plain.encode(v) for v in made] == [plain.encode(v) for v in values]
    assert len(made) == len(values)


def test_the_envelope_is_the_same(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="p"), *bash_call("ls", "1"), *bash_call("id", "2"))
    journal.add(event("session_end", reason="exit"), closes=True)
    data = []
    for aside in (False, True):
        with journal.open() as store:
            found = source.gather(journal.folders, store, find_in(store, SESSION), spooled=aside)
        made = build_recording_envelope(found.recording, run={"complete": True}, capture=found.capture)
        data.append(sinks.serialise(made))
        sinks.FileRecordingSink(tmp_path / str(aside)).write(made)
        (written,) = (tmp_path / str(aside)).iterdir()
        assert written.read_bytes() == data[-1]
    assert data[0] == data[1] and b"echo" not in data[0] and len(data[0]) > 1000


def test_memory_does_not_grow_with_the_run(journal: Journal, tmp_path: Path) -> None:
    text = "word " * 4000
    for number in range(150):
        journal.add(*bash_call(f"echo {number} {text}", str(number)))
    journal.open().close()
    peaks = []
    for aside in (True, False):
        with journal.open() as store:
            ref = find_in(store, SESSION)
            tracemalloc.start()
            try:
                found = source.gather(journal.folders, store, ref, spooled=aside)
                made = build_recording_envelope(found.recording, run={"complete": True}, capture=found.capture)
                sinks.FileRecordingSink(tmp_path / str(aside)).write(made)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    size = next((tmp_path / "True").iterdir()).stat().st_size
    assert size > 10 << 20 and peaks[0] < size / 2 < peaks[1]


def test_what_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    recording: dict[str, Any] = happened(("run.started", {}), ("assistant.message", {"content": "hi"}), run=RUN)
    made = build_recording_envelope(recording, run={"complete": True, "dropped_events": 0})
    recording["events"].append({"data": object()})
    for sink in (sinks.FileRecordingSink(tmp_path / "folder"), sinks.ZipRecordingSink(tmp_path / "folder" / "all.zip")):
        with pytest.raises(TypeError):
            sink.write(made)
        assert not list((tmp_path / "folder").iterdir())
    with pytest.raises(TypeError):
        Spooled().append({"x": float("nan")})
