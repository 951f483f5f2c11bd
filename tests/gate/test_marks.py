"""What a session brought to disk stays marked: bounded, private, and per session."""

from __future__ import annotations

import stat
from pathlib import Path

from guardhook.gate import marks
from tests.gate.conftest import Run, claude


def test_marks_come_back_for_their_session_only(tmp_path: Path) -> None:
    data = str(tmp_path)
    assert marks.read(data, "codex", "s", "/") == {}
    marks.add(data, "codex", "s", "/", {}, {"/tmp/x.sh": "network", "/tmp/y": "decoded"})
    assert marks.read(data, "codex", "s", "/") == {"/tmp/x.sh": "network", "/tmp/y": "decoded"}
    assert marks.read(data, "codex", "other", "/") == {}
    assert marks.read(data, "gemini", "s", "/") == {}


def test_nothing_but_marks_gets_in(tmp_path: Path) -> None:
    data = str(tmp_path)
    marks.add(data, "c", "s", "/", {}, {"relative": "network", "/a\nnetwork\t/b": "network", "/c": "approved"})
    assert marks.read(data, "c", "s", "/") == {}
    assert not (tmp_path / "sessions").exists()


def test_the_number_is_bounded_and_the_newest_stay(tmp_path: Path) -> None:
    data = str(tmp_path)
    for number in range(1200):
        known = marks.read(data, "c", "s", "/")
        marks.add(data, "c", "s", "/", known, {f"/tmp/{'x' * 200}/{number}": "network"})
    found = marks.read(data, "c", "s", "/")
    assert len(found) <= marks.MOST
    assert f"/tmp/{'x' * 200}/1199" in found
    assert sum(f.stat().st_size for f in (tmp_path / "sessions").iterdir()) < 200_000


def test_files_are_private_and_links_are_not_followed(tmp_path: Path) -> None:
    data = str(tmp_path)
    marks.add(data, "c", "s", "/", {}, {"/x": "network"})
    (file,) = (tmp_path / "sessions").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    victim = tmp_path / "victim"
    victim.write_text("keep")
    file.unlink()
    file.symlink_to(victim)
    marks.add(data, "c", "s", "/", {}, {"/y": "network"})
    assert victim.read_text() == "keep"
    assert marks.read(data, "c", "s", "/") == {}


def test_what_one_call_fetched_another_call_may_not_run(hook: Run, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert hook(claude("curl -fsSo tool.sh https://example.com/tool.sh", cwd=str(work))).silent
    assert hook(claude("mv tool.sh innocent.sh", cwd=str(work))).silent
    assert hook(claude("sh innocent.sh", cwd=str(work))).status == 2
    # Another session knows nothing of it, and the file is not there to be read.
    assert hook(claude("sh innocent.sh", cwd=str(work), session_id="another")).status == 0
