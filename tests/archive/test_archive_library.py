"""The names that programs use, and that importing them starts nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from archive_rig import RUN, asked, said_, turn

import guardhook.archive as archive


def test_names() -> None:
    for name in archive.__all__:
        assert getattr(archive, name) is not None
    with pytest.raises(AttributeError):
        _ = archive.nosuch  # type: ignore[attr-defined]


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, guardhook.archive as a; print([m for m in sys.modules if m.startswith('guardhook.archive.')]); a.pack_recording; print('sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert done.stdout.split() == ["[]", "False"]


def test_a_program_of_its_own(tmp_path: Path) -> None:
    class Shelf:
        """A destination in a few lines."""

        def __init__(self) -> None:
            self.kept: list[dict[str, object]] = []

        def write(self, envelope: dict[str, object]) -> dict[str, str]:
            self.kept.append(envelope)
            return {"id": str(len(self.kept))}

    recording = turn(asked(), said_("ok"))
    shelf = Shelf()
    run = {"complete": True, "dropped_events": 0}
    assert archive.persist_recording(archive.pack_recording(recording), sink=shelf, run=run) == {"id": "1"}  # type: ignore[operator]
    assert (
        archive.persist_recording(recording, sink=archive.FileRecordingSink(tmp_path), run=run)["id"] == f"{RUN}.json"
    )  # type: ignore[operator]
    inner = shelf.kept[0]["recording"]
    assert archive.is_packed_recording(inner) and archive.unpack_recording(inner) == recording  # type: ignore[operator]
    assert archive.account_for_answer(recording)["answer"]["value"] == "ok"  # type: ignore[operator]
    assert archive.assess_turn(recording)["standing"] == "not-assessed"  # type: ignore[operator]
    assert archive.pointer_key("event", 1, "data", "prompt") == "event:1:data/prompt"  # type: ignore[operator]
