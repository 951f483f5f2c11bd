"""Rollout files: where they lie, who may read them, and how the live folder keeps up with the journal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rollout_rig import run, told, types
from store_rig import SESSION, START, Journal, event, said

from guardhook.journal import generation, line
from guardhook.rollout.export import lines
from guardhook.rollout.lines import encode, fitting, instant
from guardhook.rollout.load import load
from guardhook.rollout.render import render
from guardhook.rollout.runs import find

RUN = line.run_id("claude-code", SESSION, 1)
DAY = line.day(START)


def bash(name: str, call: str, command: str = "ls", **more: object) -> dict[str, object]:
    return event(name, tool="Bash", given={"command": command}, call=call, **more)  # type: ignore[arg-type]


def settings(journal: Journal, folder: Path, *more: str) -> None:
    journal.base.mkdir(exist_ok=True)
    text = "\n".join([f"[forensics]\nrollout_dir = {json.dumps(str(folder))}", *more])
    (journal.base / "config.toml").write_text(text)


def listed(journal: Journal) -> None:
    """Any reading command."""
    from click.testing import CliRunner

    from guardhook.commands import main

    result = CliRunner().invoke(
        main, ["list", "--dir", str(journal.base)], env={"GUARDHOOK_DIR": "", "GUARDHOOK_ROLLOUT_DIR": ""}
    )
    assert result.exit_code == 0, result.output


def exported(journal: Journal, name: str = RUN) -> bytes:
    result = run("export", name, data=journal.base)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def test_the_form_of_a_line() -> None:
    raw = encode({"ts": "t", "seq": 0, "type": "x", "data": {"a": "<&>\u2028\u2029é\x7f", "b": [1.5, None, True]}})
    assert raw == '{"ts":"t","seq":0,"type":"x","data":{"a":"<&>\\u2028\\u2029é\x7f","b":[1.5,null,true]}}\n'.encode()
    assert [instant(f"2026-01-01T00:00:00.{f}Z") for f in ("000000", "120000", "000001")] == [
        "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.12Z", "2026-01-01T00:00:00.000001Z",
    ]  # fmt: skip


def test_values_that_no_loader_would_take(tmp_path: Path) -> None:
    raw = fitting(
        {
            "ts": "2026-01-01T00:00:00Z",
            "seq": 0,
            "type": "run.started",
            "data": {"a": "é" * (1 << 20), "b": ["x" * (2 << 20)]},
        }
    )
    assert raw is not None and len(raw) < 3 << 20
    data = json.loads(raw)["data"]
    assert (
        len(data["a"].encode()) == 1 << 20
        and data["a_truncated"]["bytes"] == 2 << 20
        and len(data["a_truncated"]["sha256"]) == 64
    )
    deep: object = 1
    for _ in range(120):
        deep = [deep]
    events = [{"ts": "2026-01-01T00:00:00Z", "seq": 1, "type": "x", "data": {"step": 2, "a": deep}}]
    (marker,) = map(json.loads, lines(events))  # type: ignore[arg-type]
    assert marker["type"] == "recorder.drop_detected"
    assert marker["data"] == {
        "step": 2,
        "dropped_event_id": "1",
        "dropped_event_type": "x",
        "dropped_seq": 1,
        "reason": "too large",
        "count": 1,
    }


def test_where_files_lie_and_who_may_read_them(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="p"), bash("pre_tool", "1"))
    out = tmp_path / "deep" / "rollouts"
    before = os.umask(0)
    try:
        result = run("export", SESSION, str(out), "--json", data=journal.base)
    finally:
        os.umask(before)
    assert result.exit_code == 0, result.output
    path = out / DAY / f"{RUN}.jsonl"
    assert json.loads(result.stdout)["files"] == [
        {"run_id": RUN, "path": str(path), "events": 3, "bytes": path.stat().st_size, "changed": True}
    ]
    assert path.read_bytes() == exported(journal)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(p.stat().st_mode) for p in (out, out / DAY)} == {0o700}
    assert os.listdir(out / DAY) == [path.name]
    again = json.loads(run("export", "--all", str(out), "--json", data=journal.base).stdout)
    assert [f["changed"] for f in again["files"]] == [False]


def test_the_date_stays_when_the_run_goes_on_after_midnight(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="p"))
    journal.add(bash("pre_tool", "1"), step=86_400)
    assert run("export", "--all", str(tmp_path / "out"), data=journal.base).exit_code == 0
    assert [p.name for p in (tmp_path / "out").iterdir()] == [DAY]


def test_nothing_is_written_through_links(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="p"))
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / DAY).symlink_to(elsewhere)
    assert run("export", SESSION, str(out), data=journal.base).exit_code == 2
    (out / DAY).unlink()
    (out / DAY).mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (out / DAY / f"{RUN}.jsonl").symlink_to(victim)
    run("export", SESSION, str(out), data=journal.base)
    assert victim.read_text() == "mine" and not list(elsewhere.iterdir())


@pytest.mark.parametrize("name", ["/../../../../stolen", "../x", "audit", "", "a/b", "x" * 300, "..", "a\x1b[2J"])
def test_a_run_s_id_in_the_journal_names_no_other_place(journal: Journal, tmp_path: Path, name: str) -> None:
    """The id came into the file's name as it was: a journal from elsewhere could have files written outside of the folder."""
    target = tmp_path / "a" / "b" / "out"
    target.mkdir(parents=True)
    journal.add(event("user_prompt", prompt="p", session="other"), run=name)
    journal.add(event("user_prompt", prompt="p"))
    before = {p for p in tmp_path.rglob("*") if target not in p.parents}
    result = run("export", "--all", str(target), data=journal.base)
    assert result.exit_code == 1 and "\x1b" not in result.output
    settings(journal, target)
    listed(journal)
    assert [p.name for p in target.rglob("*") if p.is_file()] == [f"{RUN}.jsonl"]  # the others are written all the same
    after = {p for p in tmp_path.rglob("*") if target not in p.parents and journal.base not in p.parents}
    assert after <= before


def test_mistakes(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="p"))
    out = str(tmp_path / "out")
    for words, status in (
        ([], 2), (["--all"], 2), (["--follow"], 2), (["--all", "--follow", out], 2), (["nothing"], 1), ([SESSION, out, "x"], 2), (["--all", out, "x"], 2),
        ([SESSION, "--by", "day", out], 2), ([SESSION, "--by", "turn"], 2), ([SESSION, " "], 2), ([SESSION, "--since", "1d"], 2), ([""], 1),
    ):  # fmt: skip
        result = run("export", *words, data=journal.base)
        assert result.exit_code == status, (words, result.output)
    assert run("export", "--all", out, data=tmp_path / "none").exit_code == 1
    (journal.base / "config.toml").write_text("[forensics]\ncausal_graph_enabled = 7\n")
    result = run("export", SESSION, "--json", data=journal.base)
    assert result.exit_code == 2 and "causal_graph_enabled" in json.loads(result.stdout)["error"]


def test_the_live_folder_is_the_export_byte_for_byte(journal: Journal, tmp_path: Path) -> None:
    """Whatever the moments at which somebody looked."""
    live = tmp_path / "live"
    settings(journal, live)
    path = live / DAY / f"{RUN}.jsonl"
    steps = [
        event("session_start", source="startup"), event("user_prompt", prompt="p"), bash("pre_tool", "1"), bash("pre_tool", "2", "rm", verdict=said("deny")),
        bash("post_tool", "1", tool_response="out"), event("stop", last_assistant_message="done"), event("user_prompt", prompt="more"),
        bash("pre_tool", "3"), event("session_end", reason="exit"), bash("post_tool", "3", tool_response="late"), event("notification", message="m"),
    ]  # fmt: skip
    inodes = []
    for one in steps:
        journal.add(one, **({"closes": True} if one["event"] == "session_end" else {}))
        listed(journal)
        assert path.read_bytes() == exported(journal)
        inodes.append(path.stat().st_ino)
    assert len(set(inodes[:9])) == 1, "news are appended, not written anew"
    found = load(str(path))
    assert found.outcome == "completed" and found.events[-1].type == "run.completed"
    late = next(e for e in found.events if e.payload and e.payload.get("output") == "late")
    assert late.payload is not None and late.payload["late"] is True


def test_a_live_file_that_somebody_changed_is_made_again(journal: Journal, tmp_path: Path) -> None:
    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"))
    listed(journal)
    path = live / DAY / f"{RUN}.jsonl"
    with path.open("a") as file:
        file.write("{}\n")
    assert run("verify", str(path), data=journal.base).exit_code == 1
    journal.add(bash("pre_tool", "1"))
    listed(journal)
    assert path.read_bytes() == exported(journal)
    path.unlink()
    journal.add(bash("post_tool", "1"))
    listed(journal)
    assert path.read_bytes() == exported(journal)
    (journal.base / "rollouts.db").unlink()
    path.unlink()
    listed(journal)
    assert path.read_bytes() == exported(journal)


def test_a_rewritten_journal_makes_live_files_anew(journal: Journal, tmp_path: Path) -> None:
    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="secret"), bash("pre_tool", "1"))
    listed(journal)
    data = journal.path()
    data.write_bytes(data.read_bytes().replace(b"secret", b"hidden"))
    (journal.base / "journal" / "generation").write_text("1")
    listed(journal)
    assert b"secret" not in (live / DAY / f"{RUN}.jsonl").read_bytes()


def test_rewriting_one_session_leaves_the_live_files_of_others(journal: Journal, tmp_path: Path) -> None:
    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="one"), event("user_prompt", prompt="secret", session="other"))
    listed(journal)
    names = [live / DAY / f"{line.run_id('claude-code', session, 1)}.jsonl" for session in (SESSION, "other")]
    before = [path.stat().st_ino for path in names]
    data = journal.path(session="other")
    data.write_bytes(data.read_bytes().replace(b"secret", b"hidden"))
    generation.Rewriting(journal.folders.journal).of(data.stem)
    listed(journal)
    assert [path.stat().st_ino == inode for path, inode in zip(names, before, strict=True)] == [True, False]
    assert b"hidden" in names[1].read_bytes()
    journal.add(event("user_prompt", prompt="two"))  # goes on where it was
    listed(journal)
    assert names[0].stat().st_ino == before[0] and names[0].read_bytes() == exported(journal)


def test_a_journal_that_was_compressed_gives_the_same(journal: Journal, tmp_path: Path) -> None:
    from guardhook.journal import write

    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"), *(bash("pre_tool", str(n), "x" * 400) for n in range(30)))
    listed(journal)
    before = exported(journal)
    from guardhook.journal import pack

    name = journal.path().stem
    held = write.Session(str(journal.base / "journal"), name, "claude-code", SESSION)
    try:
        held.lock(time.monotonic() + 5)
        assert pack.compress(held, DAY)
    finally:
        held.close()
    assert not journal.path().exists() and exported(journal) == before
    journal.add(bash("post_tool", "1"))
    listed(journal)
    after = exported(journal)
    assert after.startswith(before) and len(after) > len(before)
    assert (live / DAY / f"{RUN}.jsonl").read_bytes() == after


def test_a_file_of_an_earlier_version_is_not_continued_but_made_again(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from guardhook.rollout import live as module

    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"))
    listed(journal)
    path = live / DAY / f"{RUN}.jsonl"
    inode = path.stat().st_ino
    monkeypatch.setattr(module, "RENDERING", module.RENDERING + 1)
    journal.add(bash("pre_tool", "1"))
    listed(journal)
    assert path.read_bytes() == exported(journal) and path.stat().st_ino != inode


def test_a_run_keeps_the_settings_it_began_with(journal: Journal, tmp_path: Path) -> None:
    live = tmp_path / "live"
    settings(journal, live, "detect_anti_patterns = true")
    journal.add(event("user_prompt", prompt="p"), bash("pre_tool", "1"))
    listed(journal)
    settings(journal, live)
    journal.add(bash("pre_tool", "2"), bash("pre_tool", "3"))
    listed(journal)
    path = live / DAY / f"{RUN}.jsonl"
    events = list(map(json.loads, path.read_text().splitlines()))
    assert len(told(events, "tool.antipattern")) == 1
    assert told(events, "run.started")[0]["forensics"] == {"detect_anti_patterns": True}
    (journal.base / "rollouts.db").unlink()
    listed(journal)
    assert list(map(json.loads, path.read_text().splitlines())) == events
    run("export", SESSION, str(live), data=journal.base)
    assert list(map(json.loads, path.read_text().splitlines())) == events
    assert run("verify", str(path), data=journal.base).exit_code == 0


def test_a_rollout_folder_that_can_t_be_written_stops_no_command(journal: Journal, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("")
    settings(journal, target)
    journal.add(event("user_prompt", prompt="p"))
    listed(journal)
    settings(journal, tmp_path / "x", 'close_on = "never"')
    listed(journal)


def test_a_folder_problem_is_told_once_and_not_tried_for_every_run(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk cost the rendering of every run at every command, and a line for each of three of them."""
    import errno

    from click.testing import CliRunner

    from guardhook.commands import main
    from guardhook.rollout.export import Folder

    def said_by(*words: str) -> list[str]:
        result = CliRunner().invoke(main, [*words, "--dir", str(journal.base)], env={"GUARDHOOK_DIR": "", "GUARDHOOK_ROLLOUT_DIR": ""})  # fmt: skip
        assert result.exit_code == 0, result.output
        return [text for text in result.stderr.splitlines() if "rollout" in text]

    for name in ("one", "two", "three"):
        journal.add(event("user_prompt", prompt="p", session=name), run=line.run_id("claude-code", name, 1))
    (tmp_path / "file").write_text("")
    settings(journal, tmp_path / "file")
    (told,) = said_by("list")
    assert str(tmp_path / "file") in told
    settings(journal, tmp_path / "out")
    tried: list[object] = []

    def full(self: Folder, name: object, raw_lines: object) -> None:
        tried.append(name)
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", full)
        (told,) = said_by("list")
        assert "No space left on device" in told and str(tmp_path / "out") in told and len(tried) == 1
        said_by("list")
        assert len(tried) == 2
    assert said_by("list") == []
    assert len(list((tmp_path / "out").rglob("*.jsonl"))) == 3


def test_a_live_folder_that_was_taken_away_is_made_again(journal: Journal, tmp_path: Path) -> None:
    import shutil

    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"), bash("pre_tool", "1"))
    listed(journal)
    shutil.rmtree(live)
    listed(journal)
    assert (live / DAY / f"{RUN}.jsonl").read_bytes() == exported(journal)


def test_another_version_s_rendering_makes_finished_runs_anew(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They differed from what `rollout verify` renders, until something happened in their session."""
    from guardhook.rollout import live as module

    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"), event("session_end"))
    listed(journal)
    path = live / DAY / f"{RUN}.jsonl"
    right = path.read_bytes()
    path.write_bytes(right.replace(b'"p"', b'"q"'))  # as another version might have told it
    listed(journal)
    assert path.read_bytes() != right
    monkeypatch.setattr(module, "RENDERING", module.RENDERING + 1)
    listed(journal)
    assert path.read_bytes() == right


def test_rollouts_never_go_into_the_journal(journal: Journal, tmp_path: Path) -> None:
    """Both have folders of days: rollout files there were taken for damaged sessions."""
    journal.add(event("user_prompt", prompt="p"))
    before = sorted(Path(journal.folders.journal).rglob("*"))
    (tmp_path / "link").symlink_to(journal.folders.journal)
    for name in (journal.folders.journal, f"{journal.folders.journal}/x", str(tmp_path / "link")):
        for words in (["--all", name], [SESSION, name], ["--follow", name]):
            result = run("export", *words, data=journal.base)
            assert result.exit_code == 2 and "folder of their own" in result.stderr
        settings(journal, Path(name))
        listed(journal)
    assert sorted(Path(journal.folders.journal).rglob("*")) == before


def test_a_folder_that_is_there_keeps_its_mode(journal: Journal, tmp_path: Path) -> None:
    """Exporting into one's home or a project closed it for everybody else."""
    journal.add(event("user_prompt", prompt="p"))
    out = tmp_path / "project"
    out.mkdir(mode=0o755)
    out.chmod(0o755)
    assert run("export", SESSION, str(out), data=journal.base).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o755 and stat.S_IMODE((out / DAY).stat().st_mode) == 0o700


def test_what_a_killed_command_left_stands_in_nobody_s_way(journal: Journal, tmp_path: Path) -> None:
    """Its file was named by the process' number: a command with the same number, as in every container, could never write the run again."""
    journal.add(event("user_prompt", prompt="p"))
    day = tmp_path / "out" / DAY
    day.mkdir(parents=True)
    left, fresh = day / f".{RUN}.{os.getpid()}.part", day / f".{RUN}.abc.part"
    left.write_text("half")
    fresh.write_text("half")
    os.utime(left, (1, 1))
    assert run("export", SESSION, str(tmp_path / "out"), data=journal.base).exit_code == 0
    assert sorted(p.name for p in day.iterdir()) == [
        fresh.name,
        f"{RUN}.jsonl",
    ]  # a fresh one may be somebody's who writes now


def test_a_folder_that_another_command_is_at_is_left_to_it(journal: Journal, tmp_path: Path) -> None:
    import sqlite3

    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"))
    listed(journal)
    other = sqlite3.connect(journal.base / "rollouts.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    journal.add(bash("pre_tool", "1"))
    listed(journal)
    path = live / DAY / f"{RUN}.jsonl"
    assert len(path.read_bytes().splitlines()) == 1
    other.execute("ROLLBACK")
    other.close()
    listed(journal)
    assert path.read_bytes() == exported(journal)


def test_what_is_remembered_may_be_damaged(journal: Journal, tmp_path: Path) -> None:
    live = tmp_path / "live"
    settings(journal, live)
    journal.add(event("user_prompt", prompt="p"))
    (journal.base / "rollouts.db").write_bytes(b"no database" * 1000)
    listed(journal)
    assert (live / DAY / f"{RUN}.jsonl").read_bytes() == exported(journal)


def test_the_environment_names_the_folder_and_blank_is_none(journal: Journal, tmp_path: Path) -> None:
    settings(journal, tmp_path / "config")
    journal.add(event("user_prompt", prompt="p"))
    result = run("export", "--all", data=journal.base, env={"GUARDHOOK_ROLLOUT_DIR": str(tmp_path / "env")})
    assert result.exit_code == 0 and (tmp_path / "env").exists() and not (tmp_path / "config").exists()
    assert run("export", "--all", data=journal.base, env={"GUARDHOOK_ROLLOUT_DIR": "  "}).exit_code == 0
    assert (tmp_path / "config").exists()


def test_forks_are_no_runs_of_the_live_folder(journal: Journal, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from guardhook.commands import main

    journal.add(event("user_prompt", prompt="p"), bash("pre_tool", "1"), bash("post_tool", "1"))
    trace = find(journal.folders, SESSION).trace_id
    made = CliRunner().invoke(main, ["fork", trace, "--from-step", "1", "--json", "--dir", str(journal.base)])
    copy = json.loads(made.stdout)["trace_id"]
    found = json.loads(run("export", "--all", str(tmp_path / "out"), "--json", data=journal.base).stdout)
    assert [f["run_id"] for f in found["files"]] == [RUN]
    events = list(render(journal.folders, find(journal.folders, copy)))
    assert told(events, "run.started")[0]["copy_of"] == trace
    assert ("tool.call.completed", 1) in types(events)


def test_turns(journal: Journal, tmp_path: Path) -> None:
    journal.add(
        event("session_start"), event("user_prompt", prompt="one"), bash("pre_tool", "1"), bash("post_tool", "1")
    )
    journal.add(event("stop", last_assistant_message="a"), event("user_prompt", prompt="two"), bash("pre_tool", "2"))
    journal.add(event("session_end"), closes=True)
    out = tmp_path / "out"
    found = json.loads(run("export", SESSION, str(out), "--by", "turn", "--json", data=journal.base).stdout)
    first, second = (load(f["path"]) for f in found["files"])
    assert [e.seq for e in first.events] == list(range(len(first.events))) and first.outcome == "completed"
    assert (first.start["prompt"], second.start["prompt"]) == ("one", "two")
    assert second.start["previous_run_id"] == first.start["run_id"] and second.start["turn_of"] == RUN
    assert [e.step for e in second.events] == [0, 1, 1, 1, 1] and second.events[-1].type == "run.completed"
    settings(journal, tmp_path / "live", 'close_on = "stop"')
    listed(journal)
    written = {p.name: p.read_bytes() for p in (tmp_path / "live" / DAY).iterdir()}
    assert written == {p.name: p.read_bytes() for p in (out / DAY).iterdir()} and len(written) == 2


def test_a_turn_that_waits_for_a_permission_has_not_ended(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="one"), bash("pre_tool", "1"))
    journal.add(event("notification", notification_type="permission_prompt", message="May I?"))
    found = json.loads(
        run("export", SESSION, str(tmp_path / "out"), "--by", "turn", "--json", data=journal.base).stdout
    )
    assert load(found["files"][0]["path"]).outcome == "unknown"
    journal.add(event("stop"))
    found = json.loads(
        run("export", SESSION, str(tmp_path / "out"), "--by", "turn", "--json", data=journal.base).stdout
    )
    assert load(found["files"][0]["path"]).outcome == "completed"


def test_following(journal: Journal, tmp_path: Path) -> None:
    out = tmp_path / "out"
    path = out / DAY / f"{RUN}.jsonl"
    words = ["rollout", "export", "--follow", str(out), "--interval", "20", "--dir", str(journal.base)]
    process = subprocess.Popen([sys.executable, "-m", "guardhook", *words], env={**os.environ, "GUARDHOOK_DIR": ""})
    try:
        for count, one in enumerate((event("user_prompt", prompt="p"), bash("pre_tool", "1")), 1):
            journal.add(one)
            until = time.monotonic() + 30
            while not (path.exists() and len(path.read_bytes().splitlines()) >= count * 2 - 1):
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert path.read_bytes() == exported(journal)


def test_following_outlives_a_folder_that_comes_and_goes(journal: Journal, tmp_path: Path) -> None:
    out = tmp_path / "out"
    path = out / DAY / f"{RUN}.jsonl"
    journal.add(event("user_prompt", prompt="p"))
    words = ["rollout", "export", "--follow", str(out), "--interval", "20", "--dir", str(journal.base)]
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "guardhook", *words], env={**os.environ, "GUARDHOOK_DIR": ""}, stderr=file)  # fmt: skip

    def until(done: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not done():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)

    try:
        until(path.exists)
        for number in range(100):  # it may be made again in between
            out.rename(tmp_path / f"away{number}")
            with contextlib.suppress(FileExistsError), out.open("x"):
                break
        until(lambda: errors.read_bytes() != b"")
        out.unlink()
        until(path.exists)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert path.read_bytes() == exported(journal) and len(errors.read_text().splitlines()) == 1


def test_verify(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="p"), bash("pre_tool", "1"))
    good = tmp_path / "good.jsonl"
    good.write_bytes(exported(journal))
    result = run("verify", str(good), "--json", data=journal.base)
    (found,) = json.loads(result.stdout)["files"]
    assert result.exit_code == 0
    assert (found["ok"], found["events"], found["steps"], found["ended"], found["journal"]) == (
        True,
        3,
        1,
        False,
        "same",
    )
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(good.read_bytes().replace(b'"p"', b'"q"'))
    result = run("verify", str(good), str(changed), data=journal.base)
    assert result.exit_code == 1 and "NOT what the journal says" in result.stdout
    assert run("verify", str(changed), "--no-journal", data=journal.base).exit_code == 0
    holes = tmp_path / "holes.jsonl"
    holes.write_text(
        '{"ts":"2026-01-01T00:00:00Z","seq":0,"type":"run.started"}\n{"ts":"2026-01-01T00:00:00Z","seq":4,"type":"x","data":{"step":1}}\n'
    )
    result = run("verify", str(holes), data=tmp_path / "none")
    assert result.exit_code == 1 and "MISSING without a marker: 1-3" in result.stdout
    trail = tmp_path / "audit.jsonl"  # lies among the rollouts
    trail.write_text('{"timestamp":"2026-01-01T00:00:00Z","run_id":"r"}\n')
    result = run("verify", str(trail), data=tmp_path / "none")
    assert result.exit_code == 1 and "audit verify" in result.stderr
    hostile = tmp_path / "bad\x1b[31m\n.jsonl"
    hostile.write_text("nonsense")
    result = run("verify", str(hostile), data=tmp_path / "none")
    assert (
        result.exit_code == 1
        and "\x1b" not in result.output
        and "line 1" in result.output
        and result.output.count("\n") == 1
    )


@pytest.mark.parametrize("command", ["verify"])
def test_missing_files(command: str, tmp_path: Path) -> None:
    words = {
        "diff": [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")],
        "fork": [str(tmp_path / "a.jsonl"), "--step", "0"],
    }.get(command, [str(tmp_path / "a.jsonl")])
    result = run(command, *words, data=tmp_path)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)


def test_a_folder_that_can_not_be_is_told_once(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="a"), event("user_prompt", prompt="b", session="other"))
    (tmp_path / "file").write_text("")
    result = run("export", "--all", str(tmp_path / "file" / "rollouts"), data=journal.base)
    assert result.exit_code == 1 and not result.stdout
    assert len(result.stderr.splitlines()) == 1 and "Not a directory" in result.stderr


def test_verify_says_when_the_journal_could_not_be_asked(journal: Journal, tmp_path: Path) -> None:
    """A file that was changed passed, and nobody was told that it had been held against nothing."""
    import sqlite3

    journal.add(event("user_prompt", prompt="a"))
    path = tmp_path / "r.jsonl"
    path.write_bytes(exported(journal).replace(b'"a"', b'"b"'))
    assert run("verify", str(path), data=journal.base).exit_code == 1
    journal.add(event("user_prompt", prompt="c"))
    with contextlib.closing(sqlite3.connect(journal.base / "traces.db")) as other:
        other.execute("UPDATE schema_version SET version = 99")
        other.commit()
    result = run("verify", str(path), data=journal.base)
    assert "not compared with the journal" in result.stderr and "version 99" in result.stderr


def test_verify_compares_where_the_store_can_not_be_written(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from guardhook.store import ReadOnly, schema

    def refuse(path: str, **more: object) -> None:
        raise ReadOnly("no", path)

    journal.add(event("user_prompt", prompt="a"))
    path = tmp_path / "r.jsonl"
    path.write_bytes(exported(journal))
    monkeypatch.setattr(schema, "connect", refuse)
    assert "as the journal has it" in run("verify", str(path), data=journal.base).stdout
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))
    assert run("verify", str(path), data=journal.base).exit_code == 1
