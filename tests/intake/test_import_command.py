"""`guardhook import` itself: what was imported before, folders, replacing, what is refused, what is written."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import Rig

from guardhook.core.folders import explicit
from guardhook.intake import claude_transcript, coverage, import_write
from guardhook.intake.import_write import Origin, Part, Writer
from guardhook.intake.imports import Counts, Event, Run
from guardhook.journal import line, read, redact
from guardhook.journal.rules import RULES, freeze_rules
from guardhook.store import open_store
from guardhook.store.fold import trace_id


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def talk(*words: str, session: str = "s-1") -> list[object]:
    """A session in which the agent says these words."""
    return [
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": session, "message": {"role": "user", "content": "go"}},
        *({
            "type": "assistant", "uuid": f"a{n}", "parentUuid": "u", "sessionId": session, "timestamp": f"2026-11-30T10:00:{n:02d}.000Z",
            "message": {"role": "assistant", "id": f"m{n}", "content": [{"type": "text", "text": text}]},
        } for n, text in enumerate(words)),
    ]  # fmt: skip


def test_an_unchanged_file_is_known_without_reading_it(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    first = rig.import_(path)
    again = rig.import_(path)
    assert (first.file["status"], again.file["status"], again.status) == ("imported", "unchanged", 0)
    assert again.file["traces"][0]["trace_id"] == first.file["traces"][0]["trace_id"]
    assert again.file["records"] is None
    assert "unchanged, imported before as" in rig.run("import", path).stdout


def test_that_it_was_imported_is_known_without_the_store(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    rig.import_(path)
    rig.traces()
    for file in rig.data.glob("traces.db*"):
        file.unlink()
    assert rig.import_(path).file["status"] == "unchanged"
    assert len(rig.traces()) == 1


def test_a_changed_file_is_imported_again_only_with_replace(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    before = rig.import_(path).file["traces"][0]["trace_id"]
    assert len(rig.steps()) == 1
    rig.write("a.jsonl", *talk("one", "two"))
    kept = rig.run("import", path)
    assert kept.status == 0 and before in kept.stderr and "--replace" in kept.stderr
    assert len(rig.steps()) == 1
    assert rig.import_(path, "--replace").file["status"] == "replaced"
    assert rig.trace().id == before and [s.output for s in rig.steps()] == [{"text": "one"}, {"text": "two"}]
    assert rig.import_(path).file["status"] == "unchanged"


def test_replacing_twice_never_shows_what_was_before(rig: Rig) -> None:
    """The file's inode may be given out again; the journal's generation tells the store."""
    path = rig.write("a.jsonl", *talk("one"))
    rig.import_(path)
    for text in ("two!", "three", "four!"):
        rig.write("a.jsonl", *talk(text))
        rig.import_(path, "--replace")
        assert [s.output for s in rig.steps()] == [{"text": text}]
    assert read.generation(str(rig.data / "journal")) == 3


def test_a_named_file_is_replaced_even_unchanged(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    rig.import_(path)
    assert rig.import_(path, "--replace", "--tags", "x, y").file["status"] == "replaced"
    assert rig.trace().tags == ["x", "y"]
    assert rig.import_(rig.files, "--replace").file["status"] == "unchanged"


def test_a_trace_with_forks_is_not_replaced(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    trace = rig.import_(path).file["traces"][0]["trace_id"]
    fork = rig.run("fork", trace, "--from-step", 1, "--json").json["trace_id"]
    rig.write("a.jsonl", *talk("two"))
    ran = rig.import_(path, "--replace")
    assert ran.status == 1 and fork in ran.file["error"]
    assert {t.id for t in rig.traces()} == {trace, fork}


def test_the_same_file_elsewhere_is_the_same_run(rig: Rig) -> None:
    path = rig.write("a/x.jsonl", *talk("one"))
    rig.import_(path)
    (rig.files / "b").mkdir()
    moved = shutil.copy(path, rig.files / "b" / "x.jsonl")
    assert rig.import_(moved).file["status"] == "unchanged"
    other = shutil.copy(path, rig.files / "b" / "y.jsonl")
    assert rig.import_(other).file["status"] == "imported"
    assert len(rig.traces()) == 2


def test_files_without_a_session_are_told_by_their_place(rig: Rig) -> None:
    for name in ("a/x.jsonl", "b/x.jsonl"):
        rig.write(name, {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": name}})
    ran = rig.import_(rig.files / "a" / "x.jsonl", rig.files / "b" / "x.jsonl", "--format", "claude-transcript")
    assert [f["status"] for f in ran.files] == ["imported", "imported"]
    assert {str(t.input) for t in rig.traces()} == {"{'prompt': 'a/x.jsonl'}", "{'prompt': 'b/x.jsonl'}"}


def test_a_folder_and_one_bad_file_in_it(rig: Rig) -> None:
    rig.write("p/good.jsonl", *talk("one", session="s-1"))
    rig.write("p/q/good.jsonl", *talk("one", session="s-2"))
    rig.write("p/notes.jsonl", {"a": 1})
    rig.write("p/empty.jsonl", {"type": "summary", "leafUuid": "x"})
    unreadable = rig.write("p/deep/session.jsonl", *talk("one", session="s-3"))
    locked = rig.data / "journal" / "imports"
    locked.mkdir(parents=True)
    unreadable.write_bytes(b"")
    (rig.files / "p" / "link.jsonl").symlink_to(rig.files / "p" / "good.jsonl")
    (rig.files / "p" / "loop").symlink_to(rig.files / "p")
    os.mkfifo(rig.files / "p" / "pipe.jsonl")
    ran = rig.import_(rig.files)
    assert ran.status == 0, ran
    assert ran.json["counts"] == {"imported": 2, "empty": 1}
    assert len(rig.traces()) == 2
    ran = rig.import_(rig.files, rig.files / "none.jsonl")
    assert ran.status == 1 and ran.json["counts"] == {"failed": 1, "unchanged": 2, "empty": 1}


def test_a_file_that_fails_while_it_is_read_does_not_stop_the_others(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        rig.write(f"{name}.jsonl", *talk("one", session=name))
    reading = claude_transcript.read

    def read_(path: str, fd: int, counts: Counts) -> Iterator[Run]:
        for run in reading(path, fd, counts):
            yield run._replace(events=_broken(run.events)) if path.endswith("b.jsonl") else run

    monkeypatch.setattr(claude_transcript, "read", read_)
    ran = rig.import_(rig.files)
    assert ran.status == 1 and ran.json["counts"] == {"imported": 2, "failed": 1}
    assert [f["error"] for f in ran.files if f["status"] == "failed"] == ["the disk is gone"]
    assert len(rig.traces()) == 2
    assert [p.name for p in (rig.data / "journal" / "imports").iterdir() if p.name.endswith(".part")] == []


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "an empty file"), (b"\x28\xb5\x2f\xfd\x00", "zstd -dc"), (b"\x1f\x8b\x08", "gzip -dc"), ("{}".encode("utf-16"), "UTF-16"), (b"x", "not a format"),
     (b'{"type": "trace_start", "agent_name": "x"}', "--format native"), (b'{"type":"thread.started","thread_id":"x"}', "--format codex-exec"),
     (b'{"type":"system","subtype":"init","session_id":"s"}', "--format claude-stream"), (b'{"type":"init","session_id":"s"}', "--format gemini-stream"),
     (b'[{"agent_name": "x"}]', "guardhook ingest")],
)  # fmt: skip
def test_why_a_file_is_of_no_use_is_told(rig: Rig, data: bytes, why: str) -> None:
    path = rig.files / "x.jsonl"
    path.write_bytes(data)
    ran = rig.import_(path)
    assert ran.status == 1 and ran.file["status"] == "unknown" and why in ran.file["error"]


@pytest.mark.parametrize(
    ("format", "record"),
    [
        ("claude-transcript", {"type": "user", "message": {"role": "user", "content": "go"}}),
        ("claude-transcript", {"message": {"content": [{"type": "text", "text": "hi"}]}, "type": "assistant", "sessionId": "s"}),
        ("claude-transcript", {"type": "user", "uuid": "u", "message": {"content": [{"type": "text", "text": '{"parts": [1]}'}]}}),
        ("codex-rollout", {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": "{}"}),
        ("codex-rollout", {"record_type": "response_item", "item": {"type": "message", "role": "user", "content": "go"}}),
        ("gemini-chat", {"id": "1", "type": "gemini", "content": "hi"}),
        ("qwen-chat", {"uuid": "u", "sessionId": "s", "type": "user", "message": {"role": "user", "parts": [{"text": "go"}]}}),
        (None, {"type": "user", "session_id": "s", "message": {"role": "user", "content": "go"}}),  # a stream's
        (None, {"type": "assistant", "message": "text"}),
        (None, {"role": "user", "content": "go"}),
        (None, {"text": '{"type": "function_call", "id": "1", "type": "gemini"}'}),
    ],
)  # fmt: skip
def test_a_format_is_known_by_a_single_record_of_it(rig: Rig, format: str | None, record: object) -> None:
    ran = rig.import_(rig.write("x.jsonl", record))
    assert ran.file["format"] == format and ran.file["status"] == ("imported" if format else "unknown"), ran


@pytest.mark.parametrize(("words", "told"), [(["a"], "imported: 1 step  "), (["a", "b"], "imported: 2 steps  ")])
def test_a_person_is_told_what_was_made_of_a_file(rig: Rig, words: list[str], told: str) -> None:
    ran = rig.run("import", rig.write("a.jsonl", *talk(*words)))
    assert told in ran.stdout and f"  {len(words) + 1} records: {len(words) + 1} used" in ran.stdout


def test_logs_that_codex_has_compressed_are_told_of(rig: Rig) -> None:
    rig.write("s.jsonl", *talk("hi"))
    (rig.files / "rollout-x.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (rig.files / "other.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    ran = rig.import_(rig.files)
    assert (
        ran.status == 1 and ran.json["counts"] == {"failed": 1, "imported": 1} and "compressed" in ran.files[0]["error"]
    )
    told: list[tuple[str, str]] = []
    coverage.measure(explicit(str(rig.data)), paths=[str(rig.files)], problem=lambda *problem: told.append(problem))
    assert [Path(path).name for path, _ in told] == ["rollout-x.jsonl.zst"]


def test_a_full_disk_is_told_with_the_folder_that_has_no_room(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = rig.write("a.jsonl", *talk("hi"))
    with monkeypatch.context() as patched:
        patched.setattr("guardhook.intake.import_write.os.fsync", full)
        ran = rig.import_(path)
    assert ran.status == 1 and ran.file["error"] == f"{rig.data}/journal: {os.strerror(errno.ENOSPC)}"
    assert not rig.journal() and not list((rig.data / "journal" / "imports").glob("*.part*"))
    assert rig.import_(path).file["status"] == "imported"


def test_a_folder_that_cannot_be_read_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.write("a/x.jsonl", *talk("one"))
    rig.write("closed/y.jsonl", *talk("two", session="s-2"))
    look = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("/closed"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr("guardhook.intake.import_run.os.scandir", scandir)
    ran = rig.import_(rig.files)
    assert ran.status == 1 and [f["status"] for f in ran.files] == ["failed", "imported"]
    assert ran.files[0]["path"].endswith("/closed") and ran.files[0]["error"] == "Permission denied"
    assert rig.run("coverage", rig.files, "--since", "2020-01-01", "--json").json["problems"] == [
        {"path": str(rig.files / "closed"), "reason": "Permission denied"}
    ]


def _broken(events: Iterator[Event]) -> Iterator[Event]:
    yield next(events)
    raise OSError(5, "the disk is gone")


@pytest.mark.parametrize("what", ["link", "socket", "unknown", "missing"])
def test_what_is_refused_when_it_is_named(rig: Rig, what: str) -> None:
    path = rig.files / "x.jsonl"
    if what == "link":
        path.symlink_to(rig.write("a.jsonl", *talk("one")))
    elif what == "socket":
        os.mknod(path, 0o600 | stat.S_IFSOCK)
    elif what == "unknown":
        path.write_text('{"a": 1}\n')
    good = rig.write("good.jsonl", *talk("one", session="s-9"))
    ran = rig.run("import", path, good)
    assert ran.status == 1 and "x.jsonl" in ran.stderr
    assert len(rig.traces()) == 1  # the other one


def test_standard_input(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    for name, expected in (("-", ["imported"]), ("/dev/stdin", ["unchanged"])):
        done = subprocess.run(
            [sys.executable, "-m", "guardhook", "import", name, "--json", "--dir", str(rig.data)], input=path.read_bytes(), capture_output=True, check=True,
        )  # fmt: skip
        assert [f["status"] for f in json.loads(done.stdout)["files"]] == expected
    assert rig.trace().metadata["source_file"] == "stdin.jsonl"


def test_pipes_that_are_named(rig: Rig) -> None:
    """A FIFO, and what a shell makes of `<(command)`."""
    path = rig.write("a.jsonl", *talk("one"))
    os.mkfifo(rig.files / "fifo.jsonl")
    script = 'cat "$1" > "$2" & exec "$3" -m guardhook import "$2" <(sed s/s-1/s-2/ "$1") --json --dir "$4"'
    done = subprocess.run(
        ["bash", "-c", script, "-", path, rig.files / "fifo.jsonl", sys.executable, rig.data], capture_output=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert [f["status"] for f in json.loads(done.stdout)["files"]] == ["imported", "imported"]
    assert len({t.session_id for t in rig.traces()}) == 2 and "fifo.jsonl" in {t.metadata["source_file"] for t in rig.traces()}  # fmt: skip
    assert [f["path"] for f in rig.import_(rig.files).files] == [str(path)]  # in folders they are passed over


def test_two_files_of_one_run_never_take_turns(rig: Rig) -> None:
    first, second = rig.write("a/x.jsonl", *talk("one")), rig.write("b/x.jsonl", *talk("two", "three"))
    assert [f["status"] for f in rig.import_(rig.files).files] == ["imported", "exists"]
    for _ in range(2):
        ran = rig.import_(rig.files, "--replace")
        assert [f["status"] for f in ran.files] == ["unchanged", "exists"] and str(first) in ran.files[1]["notes"][0]
    assert read.generation(str(rig.data / "journal")) == 0
    rig.write("a/x.jsonl", *talk("one!"))
    rig.write("b/x.jsonl", *talk("two!"))
    assert [f["status"] for f in rig.import_(first, second, "--replace").files] == ["replaced", "exists"]
    assert [s.output for s in rig.steps()] == [{"text": "one!"}]
    assert rig.import_(second, "--replace").file["status"] == "replaced"
    second.rename(rig.files / "x.jsonl")  # a session's file moves when its agent changes to another worktree
    rig.write("x.jsonl", *talk("moved"))
    first.unlink()
    assert rig.import_(rig.files, "--replace").file["status"] == "replaced"
    assert [s.output for s in rig.steps()] == [{"text": "moved"}]


def test_names_that_are_no_text(rig: Rig) -> None:
    path = os.fsencode(rig.files) + b"/x-\xff.jsonl"
    shutil.copy(rig.write("a.jsonl", *talk("one")), path)
    for expected in ("imported", "unchanged"):
        assert rig.import_(os.fsdecode(path)).file["status"] == expected
    assert len(rig.traces()) == 1


def test_nothing_to_import(rig: Rig) -> None:
    path = rig.write("a.jsonl", {"type": "last-prompt", "sessionId": "s"}, {"type": "user", "sessionId": "s", "message": {"content": "  "}})  # fmt: skip
    ran = rig.run("import", path)
    assert ran.status == 1 and "neither a step nor a prompt" in ran.stderr
    assert not rig.journal()
    empty = rig.files / "sub"
    empty.mkdir()
    assert rig.run("import", empty).status == 1


def test_a_dry_run_writes_nothing(rig: Rig) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    ran = rig.import_(path, "--dry-run")
    assert ran.file["traces"][0]["steps"] == 1 and ran.json["dry_run"] is True
    assert not rig.data.exists()
    assert "would be imported" in rig.run("import", path, "--dry-run").stdout


def test_since_looks_at_the_files_in_folders(rig: Rig) -> None:
    old = rig.write("old.jsonl", *talk("one", session="s-1"))
    rig.write("new.jsonl", *talk("one", session="s-2"))
    os.utime(old, (1_600_000_000, 1_600_000_000))
    assert [Path(f["path"]).name for f in rig.import_(rig.files, "--since", "30d").files] == ["new.jsonl"]
    assert rig.import_(old, "--since", "30d").file["status"] == "imported"


@pytest.mark.parametrize(
    "words",
    [["--format", "x"], ["--tags", " , "], ["--since", "soon"], [""], ["--nonsense"]],
    ids=lambda w: " ".join(w),
)
def test_usage(rig: Rig, words: list[str]) -> None:
    path = rig.write("a.jsonl", *talk("one"))
    ran = rig.import_(path, *words)
    assert ran.status == 2 and ran.json["ok"] is False
    assert rig.run("import").status == 2


def test_a_session_that_hooks_recorded_too(rig: Rig) -> None:
    payload = {"session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": "go", "cwd": "/", "transcript_path": "/x/s-1.jsonl"}  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "guardhook", "hook", "--dialect", "claude-code", "--dir", str(rig.data)],
        input=json.dumps(payload).encode(), check=True,
    )  # fmt: skip
    path = rig.write("a.jsonl", *talk("one"))
    hooks = trace_id(line.key("claude-code", "s-1"))
    ran = rig.run("import", path)
    assert ran.status == 0 and hooks in ran.stdout
    both = rig.traces()
    assert {t.session_id for t in both} == {"s-1"} and len(both) == 2
    assert [t.metadata.get("hook_trace") for t in both if not t.live] == [hooks]


def test_one_import_at_a_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardhook.intake.import_write.LOCK_SECONDS", 0.0)
    path = rig.write("a.jsonl", *talk("one"))
    writer = Writer(explicit(str(rig.data)))
    ran = rig.import_(path)
    assert ran.status == 1 and "another import" in str(ran.json)
    writer.close()
    assert rig.import_(path).status == 0


def test_a_lock_that_is_held_stops_the_import_and_not_file_after_file(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("guardhook.intake.import_write.LOCK_SECONDS", 0.05)
    monkeypatch.setattr("guardhook.intake.import_write.time.sleep", waits.append)
    for n in range(5):
        rig.write(f"{n}.jsonl", *talk("one", session=f"s-{n}"))
    writer = Writer(explicit(str(rig.data)))
    ran = rig.run("import", rig.files)
    writer.close()
    assert ran.status == 1 and ran.stderr.count("another import") == 1 and ran.stdout == ""


def test_what_another_import_did_while_this_one_waited_is_known(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        rig.write(f"{n}.jsonl", *talk("one", session=f"s-{n}"))
    take = import_write.Writer.__init__

    def late(self: Writer, *words: object, **named: object) -> None:
        monkeypatch.setattr(import_write.Writer, "__init__", take)
        assert rig.import_(rig.files).status == 0
        take(self, *words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(import_write.Writer, "__init__", late)
    assert [f["status"] for f in rig.import_(rig.files).files] == ["unchanged"] * 3


def test_files_are_private_and_the_journal_stays_sound(rig: Rig) -> None:
    rig.import_(rig.write("a.jsonl", *talk("one")))
    (file,) = rig.journal()
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in file.parent.iterdir() if p.name.endswith(".part")] == []
    assert rig.run("journal", "verify").status == 0
    lines = [line.parse(raw) for raw in file.read_bytes().splitlines()]
    assert [found.type for found in lines] == ["note", "trace.start", "trace.step", "trace.end"]
    assert [found.seq for found in lines] == [1, 2, 3, 4]
    assert lines[1].data["opens"] is True and lines[-1].data["closes"] is True
    assert file.read_bytes().isascii()


def test_nothing_is_written_through_a_link(rig: Rig, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (rig.data / "journal").mkdir(parents=True, mode=0o700)
    (rig.data / "journal" / "imports").symlink_to(elsewhere)
    ran = rig.import_(rig.write("a.jsonl", *talk("one")))
    assert ran.status == 1 and not list(elsewhere.iterdir())


def test_other_things_in_the_imports_folder(rig: Rig) -> None:
    folder = rig.data / "journal" / "imports"
    folder.mkdir(parents=True, mode=0o700)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "link.jsonl").symlink_to("/etc/passwd")
    (folder / "empty.jsonl").touch()
    assert rig.import_(rig.write("a.jsonl", *talk("one"))).file["status"] == "imported"


def test_a_session_of_very_many_files_is_known_again(rig: Rig) -> None:
    part = Part("/a/" + "b" * 200, 1, 1, 1, "0" * 32)
    origin = Origin("claude-transcript", 1, 0, "trc_1", "s-1", [part] * 20_000)
    folder = rig.data / "journal" / "imports"
    folder.mkdir(parents=True)
    note = line.body({"origin": msgspec.to_builtins(origin)})
    (folder / "x.jsonl").write_bytes(
        line.build(0, 1, line.NOTE, {"v": 1, "run": "r", "segment": 1, "root": None}, note)
    )
    assert import_write.known(str(folder.parent)) == {part.path: origin}


def test_what_killed_imports_left_is_swept(rig: Rig) -> None:
    folder = rig.data / "journal" / "imports"
    folder.mkdir(parents=True, mode=0o700)
    left = folder / ".x.part"
    left.write_text("")
    rig.import_(rig.write("a.jsonl", *talk("one")))
    assert not left.exists()


@pytest.mark.parametrize("mode", ["none", "hashed", "full"])
def test_how_much_is_kept_is_the_persons_choice(rig: Rig, mode: str) -> None:
    rig.data.mkdir()
    (rig.data / "config.toml").write_text(f'[capture]\nmode = "{mode}"\n')
    talked = talk("remember the milk ghp_" + "a1B2" * 9)
    talked.append(
        {"type": "user", "uuid": "v", "sessionId": "s-1", "message": {"role": "user", "content": "the second prompt"}}
    )
    rig.import_(rig.write("a.jsonl", *talked))
    (file,) = rig.journal()
    text = file.read_text()
    assert ("remember the milk" in text) is ("second prompt" in text) is ("a1B2" in text) is (mode == "full")
    assert rig.trace().metadata["source_format"] == "claude-transcript" and len(rig.steps()) == 1


def test_words_of_a_file_reach_no_terminal_as_they_are(rig: Rig) -> None:
    path = rig.write("a\x1b[31m.jsonl", *talk("one"), '{"type": "\x1b[2J')
    ran = rig.run("import", path)
    assert "\x1b" not in ran.stdout + ran.stderr and ran.status == 0


def _secrets() -> list[tuple[str, str]]:
    return [(rule.name, hit) for rule in RULES for hit in rule.hits]


@pytest.mark.parametrize(("name", "hit"), _secrets(), ids=lambda v: v[:30].replace("\n", " "))
def test_secrets_are_found_among_other_texts(rig: Rig, name: str, hit: str) -> None:
    """Texts are looked at together; whatever stands before and behind, each secret is found that is found alone."""
    rows = freeze_rules()
    assert redact.redact_text(hit, rows) != hit
    for before, after in (
        ("x", "y"),
        ("[REDACTED:", "]"),
        ('"', '"'),
        ("'", "\\"),
        ("login me", "@host"),
        ("=", ":"),
        ("a" * 40, "b" * 40),
        ("key", "("),
    ):
        name_ = f"{len(before)}{len(after)}{ord(before[0])}.jsonl"
        rig.import_(rig.write(name_, *talk(before, hit, after, session=f"{name_}{hit}")))
        newest = max(rig.journal(), key=lambda f: f.stat().st_mtime_ns)
        outputs = [line.parse(raw).data for raw in newest.read_bytes().splitlines() if b"trace.step" in raw]
        texts = [data["event"]["output"]["text"] for data in outputs]  # type: ignore[index]
        assert texts[1] == redact.redact({"text": hit}, rows)[0]["text"], (before, after)  # type: ignore[index]


def test_the_store_can_be_asked_for_imports(rig: Rig) -> None:
    rig.import_(rig.write("a.jsonl", *talk("one")), "--tags", "old")
    shown = rig.run("list", "--tag", "old", "--json").json
    assert shown["total"] == 1
    with open_store(explicit(str(rig.data))) as store:
        assert store.get(shown["items"][0]["id"]).created_at > "2026"
