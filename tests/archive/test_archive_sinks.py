"""Destinations: names that are keys, files that are whole or not there, and what is refused before anything is written."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import urllib.parse
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_rig import RUN, happened

from guardhook.archive import sinks
from guardhook.archive.envelope import build_recording_envelope, persist_recording
from guardhook.archive.errors import UnsafeRecordingIdError
from guardhook.archive.names import recording_file_name
from guardhook.archive.packing import pack_recording
from guardhook.archive.sinks import (
    FileRecordingSink,
    FsspecRecordingSink,
    MissingExtraError,
    SinkError,
    ZipRecordingSink,
    sink_for,
)

SAFE = ["run-1787093273110-1", RUN, "a-b", "a.b", "ab", "archive", "0", "x" * 200, "confetti", "com", "com10", "a..b"]
UNSAFE: list[Any] = [
    "", ".", "..", ".hidden", "-flag", "_x", "run-A", "a/b", "a\\b", "a b", "a\n", "a\x00", "é", "١", "con", "nul", "com1", "lpt9", "con.x", "x" * 201,
    None, 3, "com¹", "aux.json.json", "prn",
]  # fmt: skip


def envelope(run: str = RUN, *, note: str = "", complete: bool = True) -> dict[str, Any]:
    recording = happened(("run.started", {"note": note}), ("assistant.message", {"content": "hi"}), run=run)
    return build_recording_envelope(recording, run={"complete": complete, "dropped_events": 0})


@pytest.mark.parametrize("name", SAFE)
def test_28_names_that_are_kept(name: str) -> None:
    assert recording_file_name(name) == f"{name}.json"


@pytest.mark.parametrize("name", UNSAFE)
def test_29_names_that_are_refused(name: Any) -> None:
    with pytest.raises(UnsafeRecordingIdError) as told:
        recording_file_name(name)
    assert told.value.run_id == name and told.value.code == "ERR_UNSAFE_RECORDING_ID"


CORPUS = ["run-a", "run-A", "run_a", "run a", "run/a", "run.a", "runa", "r-u-n-a", "RUN-A", "run\\a", "run:a", "run--a", "a", "b", "run-b", "0"]  # fmt: skip


def collisions(mapping: Callable[[str], str]) -> tuple[int, int]:
    """How many ids a mapping takes, and how many of them share a name with another one on a file system that folds case."""
    names: dict[str, int] = {}
    for run in CORPUS:
        try:
            name = mapping(run).casefold()
        except UnsafeRecordingIdError:
            continue
        names[name] = names.get(name, 0) + 1
    return sum(names.values()), sum(n - 1 for n in names.values())


def test_30_no_two_runs_share_a_name() -> None:
    taken, shared = collisions(recording_file_name)
    assert taken >= 8 and shared == 0
    for broken in (str.lower, lambda r: r.replace("/", "-").replace("_", "-"), lambda r: "".join(filter(str.isalnum, r))):  # fmt: skip
        assert collisions(broken)[1] > 0


def test_31_refused_before_anything_is_serialised(tmp_path: Path) -> None:
    made = envelope()
    made["run"]["runId"] = "../evil"
    made["recording"] = {"events": {1, 2}}
    for sink in (FileRecordingSink(tmp_path / "a"), ZipRecordingSink(tmp_path / "b.zip"), FsspecRecordingSink("memory://b")):  # fmt: skip
        with pytest.raises(UnsafeRecordingIdError):
            sink.write(made)
    made["run"]["runId"] = "fine"
    with pytest.raises(TypeError):
        FileRecordingSink(tmp_path / "a").write(made)
    assert os.listdir(tmp_path / "a") == []


def test_32_the_same_run_replaces_its_archive(tmp_path: Path) -> None:
    for sink in (FileRecordingSink(tmp_path), ZipRecordingSink(tmp_path / "z.zip"), FsspecRecordingSink("memory://c")):  # fmt: skip
        for complete in (True, False, True):
            found = sink.write(envelope(complete=complete))
            stored = sink.stored(RUN)
            assert found["id"] == f"{RUN}.json" and stored is not None
            assert json.loads(stored)["run"]["complete"] is complete
        assert sink.stored("other") is None
    assert FileRecordingSink(tmp_path).names() == [f"{RUN}.json"]


def test_33_what_went_wrong_is_told_and_nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FileRecordingSink(tmp_path)

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(5, "rename failed")

    monkeypatch.setattr(os, "rename", broken)
    with pytest.raises(OSError, match="rename failed"):
        sink.write(envelope())
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr(os, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError(1, "unlink failed")))
    with pytest.raises(OSError, match="rename failed"):
        sink.write(envelope())


CRASH = """
import os, sys
sys.path[:0] = sys.argv[2:]
os.rename = lambda *a, **k: os._exit(9)
from test_archive_sinks import envelope
from guardhook.archive.sinks import FileRecordingSink
FileRecordingSink(sys.argv[1]).write(envelope())
"""


def test_34_a_writer_that_dies(tmp_path: Path) -> None:
    here = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path), str(here), str(here.parent / "store")], check=False, timeout=60)  # fmt: skip
    assert done.returncode == 9
    assert [n for n in os.listdir(tmp_path) if not n.endswith(".tmp")] == [] and len(os.listdir(tmp_path)) == 1
    assert FileRecordingSink(tmp_path).names() == []
    left = tmp_path / os.listdir(tmp_path)[0]
    os.utime(left, (0, 0))
    (tmp_path / "other.tmp").write_text("not ours")
    os.utime(tmp_path / "other.tmp", (0, 0))
    FileRecordingSink(tmp_path)
    assert os.listdir(tmp_path) == ["other.tmp"]


def test_35_folders(tmp_path: Path) -> None:
    folder = tmp_path / "a b#c" / "ü%20"
    found = FileRecordingSink(folder).write(envelope())
    path = Path(urllib.parse.unquote(urllib.parse.urlsplit(found["uri"]).path))
    assert path == folder / f"{RUN}.json" and path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    for blank in ("", "  ", None, 3):
        with pytest.raises(TypeError):
            FileRecordingSink(blank)  # type: ignore[arg-type]


def test_35_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "f"
    sink = FileRecordingSink(folder)
    monkeypatch.setattr(sinks, "_numbers", iter((1, 2)))
    (folder / f"{RUN}.json.{os.getpid()}.1.tmp").symlink_to(outside)
    with pytest.raises(FileExistsError):
        sink.write(envelope())
    (folder / f"{RUN}.json").symlink_to(outside)
    with pytest.raises(OSError):
        sink.stored(RUN)
    sink.write(envelope())
    assert outside.read_text() == "mine" and not (folder / f"{RUN}.json").is_symlink()


def test_37_temporary_names_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda a, b, **k: (seen.append(str(a)), rename(a, b, **k))[1])
    for sink in (FileRecordingSink(tmp_path), FileRecordingSink(tmp_path)):
        sink.write(envelope())
    assert len(set(seen)) == 2 and all(f".{os.getpid()}." in name for name in seen)


def test_plain_archives_are_indented_packed_ones_compact(tmp_path: Path) -> None:
    sink = FileRecordingSink(tmp_path)
    sink.write(envelope())
    text = (tmp_path / f"{RUN}.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    packed = envelope()
    persist_recording(pack_recording(packed["recording"]), sink=sink, run={"complete": True, "dropped_events": 0})
    text = (tmp_path / f"{RUN}.json").read_text()
    assert text == json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) + "\n"


def test_zip_files(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "runs.zip"
    sink = ZipRecordingSink(path)
    sink.write(envelope("b"))
    found = sink.write(envelope("a"))
    assert found["uri"].endswith("runs.zip#a.json")
    again = ZipRecordingSink(tmp_path / "again.zip")
    again.write(envelope("a"))
    again.write(envelope("b"))
    assert path.read_bytes() == (tmp_path / "again.zip").read_bytes()
    with zipfile.ZipFile(path) as file:
        assert file.namelist() == ["a.json", "b.json"]
    assert os.listdir(path.parent) == ["runs.zip"] and stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(b"no zip")
    with pytest.raises(SinkError):
        sink.write(envelope("a"))
    assert path.read_bytes() == b"no zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("../x.json", "{}")
    with pytest.raises(SinkError):
        sink.write(envelope("a"))


def test_stores_in_the_cloud() -> None:
    import fsspec

    found = FsspecRecordingSink("memory://bucket/runs/").write(envelope())
    assert found == {"id": f"{RUN}.json", "uri": f"memory://bucket/runs/{RUN}.json"}
    assert json.loads(fsspec.filesystem("memory").cat_file(f"/bucket/runs/{RUN}.json"))["run"]["runId"] == RUN
    with pytest.raises((SinkError, MissingExtraError)):
        FsspecRecordingSink("nosuch://x")


def test_errors_of_drivers_are_told_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FsspecRecordingSink("memory://key:secret@bucket")

    class Broken:
        protocol = "memory"

        def pipe_file(self, *_: object) -> None:
            raise RuntimeError("no route to //key:secret@bucket\nmore")

    sink._fs = Broken()
    with pytest.raises(SinkError) as told:
        sink.write(envelope())
    assert "secret" not in told.value.message and "no route" in told.value.message and "more" not in told.value.message


@pytest.mark.parametrize("fails", ["pipe_file", "mv", None])
def test_drivers_that_write_as_they_go_leave_nothing_half(tmp_path: Path, fails: str | None) -> None:
    """Only stores of objects take one whole or not at all; a file server that goes away has taken half of it."""
    from fsspec.implementations.local import LocalFileSystem

    class Server(LocalFileSystem):
        protocol = "sftp"
        cachable = False

        def pipe_file(self, path: str, value: bytes, **more: object) -> None:
            super().pipe_file(path, value[:100] if fails == "pipe_file" else value, **more)
            if fails == "pipe_file":
                raise ConnectionError("gone")

        def mv(self, *names: str, **more: object) -> None:
            if fails == "mv":
                raise ConnectionError("gone")
            super().mv(*names, **more)

    sink = FsspecRecordingSink("memory://x")
    sink._fs, sink._root = Server(), str(tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{RUN}.json").write_text("before")
    if fails is not None:
        with pytest.raises(SinkError, match="gone"):
            sink.write(envelope())
        assert (tmp_path / "runs" / f"{RUN}.json").read_text() == "before"
    else:
        sink.write(envelope())
        assert json.loads((tmp_path / "runs" / f"{RUN}.json").read_bytes())["run"]["runId"] == RUN
    assert [p.name for p in (tmp_path / "runs").iterdir()] == [f"{RUN}.json"]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"guardhook\[cloud\]"):
        sink_for("s3://bucket")


def test_which_sink_a_destination_means(tmp_path: Path) -> None:
    assert isinstance(sink_for(str(tmp_path / "x")), FileRecordingSink)
    assert isinstance(sink_for(str(tmp_path / "x.ZIP")), ZipRecordingSink)
    assert isinstance(sink_for("memory://x.zip/y"), FsspecRecordingSink)
    assert isinstance(sink_for(f"file://{tmp_path}/y"), FileRecordingSink)
    assert isinstance(sink_for(f"local://{tmp_path}/y"), FileRecordingSink)
    with pytest.raises(TypeError):
        sink_for("  ")
