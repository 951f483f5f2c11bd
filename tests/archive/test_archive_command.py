"""`guardhook archive`: what is written, what is refused with which status, and that what is opened is what was saved."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from archive_rig import RUN, Journal, event, guardhook, happened, said, session, told

from guardhook.archive import plain, stream
from guardhook.archive.envelope import build_recording_envelope
from guardhook.archive.packing import pack_recording
from guardhook.journal import line
from guardhook.rollout import render, runs
from guardhook.store import Appender


def trace_of(journal: Journal) -> str:
    found = told(guardhook(journal, "list", "--json"))["items"]
    return str(found[0]["id"])


def saved(journal: Journal, target: Path, *words: str) -> Path:
    found = told(guardhook(journal, "archive", "save", trace_of(journal), "--to", str(target), "--json", *words))
    return target / str(found["id"])


def write(path: Path, value: object) -> Path:
    path.write_bytes(plain.encode(value))
    return path


def test_save_then_open_gives_the_same_events(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    for words in ((), ("--packed",)):
        path = saved(journal, tmp_path / f"out{len(words)}", *words)
        with journal.open() as store:
            ref = runs.find_in(store, trace_of(journal))
        events = list(render.render(journal.folders, ref))
        shown = guardhook(journal, "archive", "open", str(path), "--events").stdout
        assert [json.loads(row) for row in shown.splitlines()] == events
        assert path.name == f"{ref.run_id}.json"
        assert guardhook(journal, "archive", "check", str(path)).exit_code == 0


def test_save_open_import_export_gives_the_same_trace(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    journal.add(event("user_prompt", prompt="more"), event("stop", last_assistant_message="ok"), step=60)
    path = saved(journal, tmp_path / "out", "--complete", "yes", "--packed")
    other = Journal(tmp_path / "other")
    assert told(guardhook(other, "archive", "open", str(path), "--import", "--json"))["replaced"] is False
    trace = trace_of(journal)
    for words in (("export", trace), ("export", trace, "--format", "jsonl"), ("show", trace, "--json")):  # fmt: skip
        first, second = guardhook(journal, *words), guardhook(other, *words)
        assert first.exit_code == 0 and first.stdout == second.stdout, words
    assert "put into this store before" in guardhook(other, "archive", "open", str(path), "--import").stderr
    again = told(guardhook(other, "archive", "open", str(path), "--import", "--replace", "--json"))
    assert again["replaced"] is True
    result = guardhook(journal, "archive", "open", str(path), "--import", "--replace")
    assert result.exit_code == 1 and "left as it is" in result.stderr
    assert guardhook(other, "export", trace).stdout == guardhook(journal, "export", trace).stdout


def test_recorded_runs_come_back_too(tmp_path: Path) -> None:
    journal, other = Journal(tmp_path / "a"), Journal(tmp_path / "b")
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": "bot", "input": {"q": 1}, "tags": ["x"], "session_id": None}),
        ("trace.step", {"step_number": 1, "step_type": "thought", "name": "think", "output": "hm", "model": "m"}),
        ("trace.step", {"step_number": 3, "step_type": "tool_call", "name": "add", "input": [1], "output": '"[1]"', "parent_step": 1,
                        "decision": {"chosen": "go", "options": [{"option": "go"}]}, "snapshot": {"context_window": [1], "token_count": 3}}),
        ("trace.end", {"status": "failed", "error": "no", "total_cost_usd": 0.5}),
    ]  # fmt: skip
    Appender(journal.folders, redaction="full").put("mine", lines, opens=True, closes=True)
    path = saved(journal, tmp_path / "out", "--dropped", "0")
    assert guardhook(other, "archive", "open", str(path), "--import").exit_code == 0
    words = ("export", "mine", "--include-snapshots")
    words = words if guardhook(journal, *words).exit_code == 0 else ("export", "mine")
    assert guardhook(journal, *words).stdout == guardhook(other, *words).stdout
    # What was imported was counted by nobody.
    result = guardhook(other, "archive", "save", "mine", "--complete", "yes", "--to", str(tmp_path / "again"))
    assert result.exit_code == 2 and "--dropped N" in result.stderr


def test_a_run_without_end_must_be_stated(journal: Journal, tmp_path: Path) -> None:
    session(journal, end=False)
    out = str(tmp_path / "out")
    result = guardhook(journal, "archive", "save", trace_of(journal), "--to", out, "--json")
    found = told(result, 2)
    assert found["code"] == "ERR_INDETERMINATE_RUN_FACT" and found["field"] == "complete"
    assert found["hints"] == ["state it with --complete yes|no"]
    assert not Path(out).exists()
    assert "--complete yes|no" in guardhook(journal, "archive", "save", trace_of(journal), "--to", out).stderr
    assert guardhook(journal, "archive", "save", trace_of(journal), "--to", out, "--complete", "no").exit_code == 0


def test_several_runs_are_listed(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    second = line.run_id("claude-code", "00000000-0000-4000-8000-000000000001", 2)
    journal.add(event("user_prompt", prompt="again"), opens=True, run=second, segment=2)
    journal.add(event("stop", last_assistant_message="done"), event("session_end"), run=second, segment=2)
    result = guardhook(journal, "archive", "save", trace_of(journal), "--to", str(tmp_path / "o"))
    assert result.exit_code == 2 and second in result.stderr and not (tmp_path / "o").exists()
    assert (
        guardhook(journal, "archive", "save", second, "--to", str(tmp_path / "o"), "--complete", "yes").exit_code == 0
    )
    (path,) = (tmp_path / "o").iterdir()
    steps = json.loads(path.read_text())["recording"]["snapshot"]["steps"]
    assert [s["output"] for s in steps] == [{"text": "done"}]


def test_32_complete_is_not_replaced_by_incomplete(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    for target in (str(tmp_path / "o"), str(tmp_path / "z.zip"), "memory://command"):
        words = ("archive", "save", trace_of(journal), "--to", target)
        assert guardhook(journal, *words).exit_code == 0
        result = guardhook(journal, *words, "--complete", "no")
        assert result.exit_code == 2 and "--force" in result.stderr
        assert guardhook(journal, *words).exit_code == 0
        assert guardhook(journal, *words, "--complete", "no", "--force").exit_code == 0
        assert guardhook(journal, *words, "--complete", "no").exit_code == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--privacy", "redacted"), 1, "only 'full'"), (("--privacy", ""), 1, "only 'full'"), (("--run-id", "Run"), 1, "capital"),
        (("--run-id", "../x"), 1, "may stand"), (("--run-id", ""), 2, "--run-id"), (("--started-at", "soon"), 2, "--started-at"),
        (("--ended-at", "2000-01-01"), 2, "--ended-at"), (("--dropped", "-1"), 2, "--dropped"), (("--dropped", "x"), 2, "--dropped"),
        (("--complete", "maybe"), 2, "maybe"), (("--to", ""), 2, "--to"), (("--max-events", "0"), 2, "0"), (("--tenant", ""), 2, "--tenant"),
        (("--policy-id", ""), 1, "policy"), (("--nope",), 2, "nope"),
    ],
)  # fmt: skip
def test_mistakes_leave_nothing_behind(journal: Journal, tmp_path: Path, words: tuple[str, ...], status: int, said: str) -> None:  # fmt: skip
    session(journal)
    target = () if words[0] == "--to" else ("--to", str(tmp_path / "o"))
    for more in ((), ("--json",)):
        result = guardhook(journal, "archive", "save", trace_of(journal), *target, *words, *more)
        assert result.exit_code == status and said in result.output
    assert not (tmp_path / "o").exists() and not (journal.base / "archives").exists()


def test_stated_facts_and_settings(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    (journal.base / "config.toml").write_text(
        f'[archive]\nto = "{tmp_path / "from-config"}"\npacked = true\n[identity]\nprincipal = "ann"\ntenant = "acme"\n'
    )
    words = ("archive", "save", trace_of(journal), "--json")
    run = told(guardhook(journal, *words, GUARDHOOK_TENANT="beta", USER="root"))["run"]
    assert (run["principal"], run["tenant"]) == ("ann", "beta")
    run = told(guardhook(journal, *words, "--principal", "bob", "--run-id", "mine", "--started-at", "2020-01-01", "--session-id", "s", "--dropped", "7"))["run"]  # fmt: skip
    assert (run["principal"], run["runId"], run["startedAt"][:10], run["sessionId"], run["droppedEvents"]) == ("bob", "mine", "2020-01-01", "s", 7)  # fmt: skip
    names = sorted(os.listdir(tmp_path / "from-config"))
    assert len(names) == 2 and names[0] == "mine.json"
    assert json.loads((tmp_path / "from-config" / "mine.json").read_text())["recording"]["format"] == "guardhook.recording.packed.v1"  # fmt: skip
    (journal.base / "config.toml").write_text("[archive\n")
    assert guardhook(journal, *words).exit_code == 2


def test_newest_events(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    for words in ((), ("--packed",)):
        path = saved(journal, tmp_path / f"o{len(words)}", "--max-events", "3", *words)
        found = told(guardhook(journal, "archive", "open", str(path), "--json"))
        assert found["events"] == 3 and found["run"]["firstRetainedEventIndex"] == found["run"]["droppedEvents"] > 3
        assert guardhook(journal, "archive", "check", str(path)).exit_code == 0


def test_unknown_runs_and_empty_stores(journal: Journal, tmp_path: Path) -> None:
    assert guardhook(journal, "archive", "save", "x", "--to", str(tmp_path / "o")).exit_code == 1
    session(journal)
    assert guardhook(journal, "archive", "save", "nosuch", "--to", str(tmp_path / "o")).exit_code == 1
    assert not (tmp_path / "o").exists()


# --- pack, unpack ---------------------------------------------------------------------------------------------------


def test_pack_and_unpack_are_inverse(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    path = saved(journal, tmp_path / "out")
    packed, back = tmp_path / "packed.json", tmp_path / "back.json"
    assert guardhook(journal, "archive", "pack", str(path), "-o", str(packed)).exit_code == 0
    assert guardhook(journal, "archive", "unpack", str(packed), "-o", str(back)).exit_code == 0
    value = plain.loads(path.read_bytes())
    assert back.read_bytes() == plain.encode(value) + b"\n"
    assert isinstance(value, dict)
    assert packed.read_bytes() == plain.encode({**value, "recording": pack_recording(value["recording"])}) + b"\n"
    assert guardhook(journal, "archive", "unpack", str(packed)).stdout_bytes == back.read_bytes()
    result = guardhook(journal, "archive", "pack", str(packed))
    assert result.exit_code == 1 and "packed already" in result.stderr
    result = guardhook(journal, "archive", "pack", str(path), "-o", str(back))
    assert result.exit_code == 2 and "--force" in result.stderr
    assert told(guardhook(journal, "archive", "pack", str(path), "-o", str(back), "--force", "--json"))["bytes"] == len(packed.read_bytes())  # fmt: skip


def test_bare_recordings_are_packed_too(journal: Journal, tmp_path: Path) -> None:
    recording = happened(("a", {"t": "x" * 99}), ("b", {"t": "x" * 99, "n": [1, 1.0, True, -0.0, "é", "\ud800"]}))
    path = write(tmp_path / "bare.json", recording)
    packed = guardhook(journal, "archive", "pack", str(path)).stdout_bytes
    assert packed == plain.encode(pack_recording(recording)) + b"\n"
    (tmp_path / "p.json").write_bytes(packed)
    assert guardhook(journal, "archive", "unpack", str(tmp_path / "p.json")).stdout_bytes == path.read_bytes() + b"\n"
    assert guardhook(journal, "archive", "unpack", str(path)).stdout_bytes == path.read_bytes() + b"\n"


def test_bombs_are_refused(journal: Journal, tmp_path: Path) -> None:
    values: list[Any] = ["x" * 100]
    values += [[{"$gh:ref": k}] * 10 for k in range(40)]
    bomb = {"format": "guardhook.recording.packed.v1", "values": values, "recording": {"events": [{"$gh:ref": 40}]}}
    path = write(tmp_path / "bomb.json", bomb)
    for words in (("unpack",), ("open",), ("check",)):
        result = guardhook(journal, "archive", *words, str(path), *(["-o", str(tmp_path / "o")] if words[0] == "unpack" else []))  # fmt: skip
        assert result.exit_code == 1 and "stands for more" in result.stderr
    assert not (tmp_path / "o").exists() and sorted(os.listdir(tmp_path)) == ["bomb.json"]
    found = told(guardhook(journal, "archive", "unpack", str(path), "--json"), 1)
    assert found["code"] == "ERR_PACKED_RECORDING_TOO_LARGE" and found["max_bytes"] == 536_870_912
    assert guardhook(journal, "archive", "unpack", str(path), "--max-bytes", "10").exit_code == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"nonsense", b'{"format":"guardhook.recording.v9"}', b'{"events":[1,]}', b'{"events":[1] "a":2}', b'{"events":[1]}x', b"\xff\xfe",
     b'{"events":[', b'{"events":["a', b"[" * 100_000, b'{"events":[{"a":1,"a":2}]}', b'{"events":[NaN]}', b'{"events":[1e999]}', b'{"a":1,"a":2}', b'{"x":1}',
     b'{"events":[12', b'{"events":[tru]}'],
)  # fmt: skip
def test_documents_that_are_none(journal: Journal, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    for word in ("pack", "open", "check"):
        for more in ((), ("--json",)):
            result = guardhook(journal, "archive", word, str(path), *more)
            assert result.exit_code == 1, (word, result.output)
            assert "Traceback" not in result.output and result.output.strip()


def test_files_that_cannot_be_read(journal: Journal, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("nosuch.json", "fifo"):
        for word in ("unpack", "pack"):
            if name == "fifo" and word == "pack":
                continue
            assert guardhook(journal, "archive", word, str(tmp_path / name)).exit_code == 1
    assert guardhook(journal, "archive", "open", str(tmp_path / "nosuch")).exit_code == 1
    (tmp_path / "empty").mkdir()
    assert guardhook(journal, "archive", "open", str(tmp_path / "empty")).exit_code == 1


def test_large_documents_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = happened(*[("t", {"n": n, "text": "ä" * 50, "q": '\\"' * n}) for n in range(40)])
    whole = build_recording_envelope(recording, run={"complete": True, "dropped_events": 0})
    for chunk in (1, 7, 100):
        monkeypatch.setattr(stream, "_CHUNK", chunk)
        for value, inner in ((whole, recording), (recording, recording)):
            path = write(tmp_path / "x.json", value)
            with path.open("rb") as file:
                found = stream.pack_file(file)
            assert (found["recording"] if value is whole else found) == pack_recording(inner)


# --- open, check ------------------------------------------------------------------------------------------------------


def test_open_shows_and_lists(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    path = saved(journal, tmp_path / "o")
    shown = guardhook(journal, "archive", "open", str(path)).stdout
    assert "session-end-event" in shown and "startedAt" in shown
    saved(journal, tmp_path / "o", "--run-id", "twin")
    (tmp_path / "o" / "broken.json").write_text("{")
    (tmp_path / "o" / "x.json.1.1.tmp").write_text("{")
    rows = told(guardhook(journal, "archive", "open", str(tmp_path / "o"), "--json"))["items"]
    assert [r["file"] for r in rows] == ["broken.json", path.name, "twin.json"] and rows[0]["error"] and rows[1]["complete"]  # fmt: skip
    assert guardhook(journal, "archive", "open", str(tmp_path / "o"), "--events").exit_code == 2
    one = guardhook(journal, "archive", "open", str(tmp_path / "o"), "--run", "twin", "--events")
    assert one.exit_code == 0 and len(one.stdout.splitlines()) > 5
    assert guardhook(journal, "archive", "open", str(tmp_path / "o"), "--run", "nosuch").exit_code == 1
    assert guardhook(journal, "archive", "open", str(path), "--events", "--import").exit_code == 2


def test_events_with_half_a_character(journal: Journal, tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", happened(("t", {"text": "a\ud800"})))
    shown = guardhook(journal, "archive", "open", str(path), "--events")
    assert shown.exit_code == 0 and json.loads(shown.stdout)["data"]["text"] == "a\ud800"


def test_opening_is_harmless_to_the_terminal(journal: Journal, tmp_path: Path) -> None:
    evil = "\x1b[31m\u202e\x9b"
    recording = happened(("run.started", {}))
    value = build_recording_envelope(recording, run={"complete": True, "dropped_events": 0, "tenant": evil, "run_id": "x" + evil})  # fmt: skip
    path = write(tmp_path / "x.json", value)
    for words in (("open",), ("check",)):
        shown = guardhook(journal, "archive", *words, str(path)).output
        assert "\x1b" not in shown and "\u202e" not in shown and "\x9b" not in shown


def changed(envelope: dict[str, Any], **run: Any) -> dict[str, Any]:
    return {**envelope, "run": {**envelope["run"], **run}}


def test_check_finds_what_does_not_add_up(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    good = json.loads(saved(journal, tmp_path / "o").read_text())
    name = f"{good['run']['runId']}.json"
    events = good["recording"]["events"]
    cases: list[tuple[dict[str, Any], str]] = [
        (changed(good, droppedEvents=3), "run.droppedEvents"), (changed(good, firstRetainedEventIndex=2), "run.firstRetainedEventIndex"),
        (changed(good, startedAt="soon"), "run.startedAt"), (changed(good, endedAt="2001-01-01T00:00:00Z"), "run.endedAt"),
        (changed(good, runId="other"), "run.runId"), ({**good, "recording": {**good["recording"], "events": events[::-1]}}, "recording.events"),
        ({**good, "recording": {**good["recording"], "events": [*events, 3]}}, f"recording.events[{len(events)}]"),
        ({**good, "privacy": {"mode": "redacted", "policyId": "x"}}, "privacy.mode"),
        ({**good, "recording": {**good["recording"], "events": [*events[:3], *events[5:]]}}, "run.droppedEvents"),
    ]  # fmt: skip
    for value, field in cases:
        path = write(tmp_path / name, value)
        found = told(guardhook(journal, "archive", "check", str(path), "--json"), 3)
        assert not found["ok"] and field in [f["field"] for f in found["findings"]]
        assert guardhook(journal, "archive", "open", str(path), "--verify").exit_code == 3
    write(tmp_path / "o" / name, good)
    write(tmp_path / "o" / "bad.json", {"format": "guardhook.recording.v2"})
    found = told(guardhook(journal, "archive", "check", str(tmp_path / "o"), "--json"), 3)
    assert found["checked"] == 2 and [f["file"] for f in found["findings"]] == ["bad.json"]


def test_zip_files_of_others(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    data = saved(journal, tmp_path / "o").read_bytes()
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("../../evil.json", data)
        file.writestr("a.json", data)
        file.writestr("readme.txt", "hi")
    rows = told(guardhook(journal, "archive", "open", str(path), "--json"))["items"]
    assert [r["file"] for r in rows] == ["../../evil.json", "a.json"]
    assert told(guardhook(journal, "archive", "check", str(path), "--json"), 3)["findings"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.json", b"0" * 5_000_000)
    result = guardhook(journal, "archive", "open", str(path), "--max-bytes", "1000000")
    assert result.exit_code == 1 and "at most" in result.output
    path.write_bytes(path.read_bytes()[:-30])
    assert guardhook(journal, "archive", "open", str(path)).exit_code == 1


def test_a_bundle_holds_one_archive(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    path = tmp_path / "b.zip"
    assert guardhook(journal, "bundle", trace_of(journal), "--no-doctor", "-o", str(path)).exit_code == 0
    assert guardhook(journal, "archive", "check", str(path)).stdout == "1 archive adds up.\n"


def test_hashes_of_bundles_are_checked(journal: Journal, tmp_path: Path) -> None:
    data = plain.encode(build_recording_envelope(happened(("run.started", {})), run={"complete": True, "dropped_events": 0}))  # fmt: skip
    path = tmp_path / "b.zip"

    def bundle(digest: str, **more: bytes) -> dict[str, Any]:
        rows = [{"name": f"{RUN}.json", "sha256": digest}]
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{RUN}.json", data)
            file.writestr("manifest.json", json.dumps({"format": "guardhook.bundle.v1", "archive": f"{RUN}.json", "files": rows}))  # fmt: skip
            for name, content in more.items():
                file.writestr(name, content)
        result = guardhook(journal, "archive", "check", str(path), "--json")
        found = json.loads(result.stdout)
        assert isinstance(found, dict) and result.exit_code == (0 if found["ok"] else 3)
        return found

    assert bundle(hashlib.sha256(data).hexdigest())["ok"]
    assert "hash" in bundle("0" * 64)["findings"][0]["message"]
    assert "does not name" in bundle(hashlib.sha256(data).hexdigest(), extra=b"")["findings"][0]["message"]


def test_importing_what_holds_no_trace(journal: Journal, tmp_path: Path) -> None:
    for snapshot in (None, {}, {"trace": {"id": "x\n"}}, {"trace": {"id": "x"}, "steps": 3}, {"trace": {"id": "x", "agent_name": 3}}):  # fmt: skip
        path = write(tmp_path / "x.json", {"snapshot": snapshot, "events": []})
        result = guardhook(journal, "archive", "open", str(path), "--import")
        assert result.exit_code == 1 and "Traceback" not in result.output
    assert not list(journal.base.glob("journal/imports/*.jsonl"))


def test_denied_calls_are_in_the_archive(journal: Journal, tmp_path: Path) -> None:
    journal.add(event("user_prompt", prompt="x"), opens=True)
    journal.add(event("pre_tool", tool="Bash", given={"command": "rm"}, call="c", verdict=said("deny")))
    shown = guardhook(journal, "archive", "open", str(saved(journal, tmp_path / "o", "--complete", "no")), "--events")
    assert any(json.loads(row)["type"] == "tool.call.blocked" for row in shown.stdout.splitlines())


def test_pipes_and_folders_are_no_archives(journal: Journal, tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for without end; what can't be read among others says nothing of them."""
    session(journal)
    folder = tmp_path / "several"
    name = saved(journal, folder).name
    os.mkfifo(tmp_path / "pipe.json")
    for words in (("check",), ("open",), ("unpack",), ("pack",)):
        assert "not a regular file" in guardhook(journal, "archive", *words, str(tmp_path / "pipe.json")).output
    os.mkfifo(folder / "pipe.json")
    (folder / "sub.json").mkdir()
    (folder / "gone.json").symlink_to("nowhere")
    found = told(guardhook(journal, "archive", "check", str(folder), "--json"), 3)
    assert [f["file"] for f in found["findings"]] == ["gone.json", "pipe.json", "sub.json"]
    items = told(guardhook(journal, "archive", "open", str(folder), "--json"))["items"]
    assert [i["file"] for i in items if i["error"] is None] == [name]


def test_a_pipe_under_the_name_of_an_archive_is_not_waited_for(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    name = saved(journal, tmp_path / "first").name
    (tmp_path / "second").mkdir()
    os.mkfifo(tmp_path / "second" / name)
    os.mkfifo(tmp_path / "pipe.zip")
    for target in ("second", "pipe.zip"):
        result = guardhook(journal, "archive", "save", trace_of(journal), "--complete", "no", "--to", str(tmp_path / target))  # fmt: skip
        assert result.exit_code == 1
        assert "no file" in result.output or "not a regular file" in result.output


def test_a_damaged_entry_of_a_zip_file(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    path = tmp_path / "runs.zip"
    saved(journal, path)
    data = bytearray(path.read_bytes())
    start = data.index(b".json") + 5
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)
    for words in (("check", str(path)), ("open", str(path), "--events"), ("save", trace_of(journal), "--to", str(path))):  # fmt: skip
        result = guardhook(journal, "archive", *words)
        assert result.exit_code in (1, 3) and "internal" not in result.output and result.output, result.output


def test_entries_of_a_zip_file_are_read_one_at_a_time(journal: Journal, tmp_path: Path) -> None:
    """Thousands of entries that are small in the file and large outside of it would fill the memory together."""
    with zipfile.ZipFile(tmp_path / "many.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(40):
            file.writestr(f"run-{number}.json", b" " * (8 << 20) + b"{}")
    tracemalloc.start()
    try:
        result = guardhook(journal, "archive", "check", str(tmp_path / "many.zip"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.exit_code == 3 and len(result.output.splitlines()) == 40
    assert most < 100 << 20


@pytest.mark.parametrize("row", [{"step_number": 1}, {"step_number": -1}, {"step_number": 10**30}, {"step_number": 1, "name": None, "step_type": "zzz"}, {}])  # fmt: skip
def test_steps_that_are_none(journal: Journal, tmp_path: Path, row: dict[str, Any]) -> None:
    session(journal)
    path = saved(journal, tmp_path)
    document = json.loads(path.read_bytes())
    document["recording"]["snapshot"]["steps"] = [7, row]
    other = tmp_path / "other"
    other.mkdir()
    result = guardhook(other, "archive", "open", str(write(path, document)), "--import")
    assert "internal" not in result.output and result.exit_code in (0, 1), result.output


def test_what_can_not_be_written_is_named(journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the temporary file beside it, of which nobody knows."""
    session(journal)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x.json.1.1.tmp")

    monkeypatch.setattr("guardhook.archive.sinks.os.rename", full)
    for target in (tmp_path / "folder", tmp_path / "runs.zip"):
        result = guardhook(journal, "archive", "save", trace_of(journal), "--to", str(target))
        assert result.exit_code == 1
        assert result.stderr == f"guardhook: {target}: can't be written: No space left on device\n"
        assert not target.is_file() and (not target.is_dir() or not list(target.iterdir()))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    path = saved(journal, tmp_path)
    for words in (("open", str(path), "--events"), ("unpack", str(path)), ("pack", str(path))):
        with open("/dev/full", "wb") as out:
            done = subprocess.run([sys.executable, "-m", "guardhook", "archive", *words], stdout=out, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
        assert (done.returncode, done.stderr) == (
            1,
            "guardhook: the output can't be written: No space left on device\n",
        )
