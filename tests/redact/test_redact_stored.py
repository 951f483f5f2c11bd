"""`guardhook redact`: what was recorded before is cleaned, and everything else stays as it was."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import Folders, explicit
from guardhook.journal import line, read, redact_stored, rules, verify, write
from guardhook.store import TraceRecorder, open_store

SECRET = "sk-abcdefghijklmnopqrstuvwxyz"
START = 1_790_000_000_000_000_000


class Machine:
    """A journal that was kept with mode `full`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folders: Folders = explicit(str(base))
        self.journal = self.folders.journal
        self.clock = START

    def put(self, text: str, session: str = "s-1", event: str = "pre_tool", **more: object) -> write.Outcome:
        self.clock += 1_000_000_000
        payload = {
            "hook_event_name": "PreToolUse",
            "session_id": session,
            "tool_name": "Bash",
            "tool_input": {"command": text},
            "tool_use_id": f"t{self.clock}",
        }
        data: dict[str, object] = {
            "session": session, "dialect": "claude-code", "client": None, "native_event": "PreToolUse", "event": event, "call": f"t{self.clock}", "agent": None,
            "cwd": "/p", "tool": "Bash", "kind": "shell", "payload": payload, "redacted": [], "effects": [{"kind": "run", "argv": ["echo", text]}],
            "verdict": {"action": "deny", "reason": f"because of {text}", "span": text, "mode": "enforce"}, "redaction": "full", **more,
        }  # fmt: skip
        record = write.Record(
            line.RECEIVED, self.clock, "claude-code", session, "/p", "/p", True, event == "session_end", data
        )
        return write.append(self.journal, record, budget=5.0)

    def lines(self) -> list[line.Line]:
        found = []
        for place in redact_stored.places(self.journal):
            fd = read.open_session(self.journal, place)
            found += [entry.line for entry in read.entries(fd)]
            os.close(fd)
        assert None not in found
        return [one for one in found if one is not None]

    def everything(self) -> bytes:
        return b"".join(p.read_bytes() for p in sorted(self.base.rglob("*")) if p.is_file())

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(
            main, ["redact", *words, "--dir", str(self.base)], env={"GUARDHOOK_ROLLOUT_DIR": "", "GUARDHOOK_DIR": ""}
        )

    def healthy(self) -> None:
        report = verify.verify(self.journal)
        assert not report.damaged, report.findings


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "gh")


def test_secrets_go_and_the_rest_stays(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    machine.put("echo harmless é \x1b <&> \u2028", number=1.5, big=1 << 70)
    machine.put(f"curl -H 'Authorization: Bearer {SECRET}'", session="s-2")
    before = machine.lines()
    with open_store(machine.folders) as store:
        assert SECRET in str([s.as_dict("t") for t in store.iterate() for s in store.steps(t)])
    out = machine.run("--all", "--json")
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)
    assert (found["files"], found["lines"], found["changed"]) == (2, 3, 2) and found["found"]["api_key"] >= 6
    assert SECRET.encode() not in machine.everything()
    after = machine.lines()
    assert [(a.ts, a.seq, a.type) for a in after] == [(b.ts, b.seq, b.type) for b in before]
    assert after[1].data == before[1].data
    for one in (after[0], after[2]):
        assert one.data["redacted"] == ["/tool_input/command"] and "redaction" not in one.data
        assert {k: one.data[k] for k in ("run", "segment", "session", "call")} == {
            k: before[after.index(one)].data[k] for k in ("run", "segment", "session", "call")
        }
    machine.healthy()
    assert read.generation(machine.journal) == 1
    again = json.loads(machine.run("--all", "--json").stdout)
    assert again["changed"] == 0 and read.generation(machine.journal) == 1


def test_a_dry_run_counts_and_changes_nothing(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    before = machine.everything()
    out = machine.run("--all", "--dry-run")
    assert out.exit_code == 0 and "1 line(s) in 1 of 1 file(s) would change: api_key" in out.stdout
    assert [p for p in machine.base.rglob("*") if "tmp" in p.name] == []
    assert {p.name for p in machine.base.iterdir()} <= {"journal", "traces.db", "traces.db-shm", "traces.db-wal"}
    assert before in machine.everything() or SECRET.encode() in machine.everything()
    assert json.loads(machine.run("--all", "--dry-run", "--json").stdout)["changed"] == 1


def test_writers_go_on_as_if_nothing_had_happened(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    machine.run("--all")
    outcome = machine.put("echo next")
    assert (outcome.state, outcome.seq) == ("recorded", 2)
    assert [one.type for one in machine.lines()] == [line.RECEIVED] * 2  # no gap
    machine.healthy()


def test_only_a_trace_with_its_copies_and_evaluations(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    machine.put(f"echo {SECRET}", session="s-2")
    with open_store(machine.folders) as store:
        one, other = sorted(store.iterate(), key=lambda t: t.session_id or "")
    CliRunner().invoke(main, ["fork", one.id, "--from-step", "1", "--dir", str(machine.base)])
    out = machine.run(one.id, "--json")
    assert out.exit_code == 0 and json.loads(out.stdout)["files"] >= 1
    left = [one_ for one_ in machine.lines() if SECRET in json.dumps(one_.data)]
    assert {str(found.data.get("session")) for found in left} == {"s-2"}
    assert machine.run("trc_none").exit_code == 1
    assert machine.run("trc").exit_code == 2
    assert other.id


def test_only_lines_since_a_time(machine: Machine) -> None:
    machine.put(f"echo {SECRET}1")
    machine.put(f"echo {SECRET}2")
    bound = machine.lines()[1].ts
    assert machine.run("--since", bound).exit_code == 0
    assert [SECRET in json.dumps(one.data) for one in machine.lines()] == [True, False]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--all", "--since", "3d"],
        ["trc_x", "--all"],
        ["--since", " "],
        ["--since", "whenever"],
        ["--mode", "full", "--all"],
    ],
)
def test_usage(machine: Machine, words: list[str]) -> None:
    machine.put("x")
    out = machine.run(*words)
    assert out.exit_code == 2
    assert SECRET not in out.output


def test_where_nothing_was_recorded(machine: Machine) -> None:
    assert machine.run("--all").exit_code == 1
    assert not machine.base.exists()


@pytest.mark.parametrize("mode", ["hashed", "none"])
def test_other_modes(machine: Machine, mode: str) -> None:
    machine.put("plain words")
    assert machine.run("--all", "--mode", mode).exit_code == 0
    assert b"plain words" not in machine.everything()
    (one,) = machine.lines()
    assert one.data["redaction"] == mode and one.data["event"] == "pre_tool"
    if mode == "none":
        assert one.data["payload"] == {}
    machine.healthy()
    assert json.loads(machine.run("--all", "--mode", mode, "--json").stdout)["changed"] == 0


def test_patterns_of_the_user_s_own_reach_what_was_recorded_before_them(machine: Machine) -> None:
    machine.put("deploy to ACME-12345")
    assert json.loads(machine.run("--all", "--json").stdout)["changed"] == 0
    (machine.base / "config.toml").write_text('[capture.redaction]\ncustom = ["ACME-[0-9]{5}"]\n')
    assert json.loads(machine.run("--all", "--json").stdout)["found"] == {"custom": 4}
    assert (
        b"ACME-12345"
        not in (machine.base / "journal")
        .joinpath(line.day(START))
        .joinpath(os.listdir(machine.base / "journal" / line.day(START))[0])
        .read_bytes()
    )


def test_recorded_and_imported_traces(machine: Machine) -> None:
    recorder = TraceRecorder(machine.folders)
    recorder._appender.redaction = "full" if hasattr(recorder, "_appender") else ""  # type: ignore[attr-defined]
    recorder.start_trace("agent", input={"key": SECRET})
    recorder.end_step(recorder.start_step("tool_call", "x", input={"a": SECRET}), output={"o": [SECRET]})
    recorder.end_trace(output={"t": SECRET})
    places = redact_stored.places(machine.journal)
    imports = machine.base / "journal" / "imports"
    imports.mkdir()
    os.rename(places[0].path(machine.journal), imports / f"{places[0].key}.jsonl")
    os.unlink(machine.base / "journal" / "heads" / places[0].key)
    assert machine.run("--all").exit_code == 0
    assert SECRET.encode() not in machine.everything()
    with open_store(machine.folders) as store:
        (trace,) = store.iterate()
        assert trace.status == "completed" and trace.input == {"key": "[REDACTED:api_key]"}


def test_lines_that_are_none_are_cleaned_as_text(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    (place,) = redact_stored.places(machine.journal)
    path = Path(place.path(machine.journal))
    path.write_bytes(path.read_bytes() + b"garbage " + SECRET.encode() + b" \xff\n" + b'{"half": "' + SECRET.encode())
    assert machine.run("--all").exit_code == 0
    data = path.read_bytes()
    assert SECRET.encode() not in data
    assert b"garbage [REDACTED:api_key] \xff\n" in data and not data.endswith(b"\n")
    machine.put("echo next")  # the writer marks the unfinished line as it always does
    assert [b'"reason":"torn"' in raw for raw in path.read_bytes().splitlines()][-2] is True


def test_when_a_session_was_last_heard_of_stays(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    (place,) = redact_stored.places(machine.journal)
    path = Path(place.path(machine.journal))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    machine.run("--all")
    assert path.stat().st_mtime == 1_700_000_000 and path.stat().st_mode & 0o777 == 0o600


def test_a_session_in_use_stays_as_it_is(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.put(f"echo {SECRET}")
    machine.put(f"echo {SECRET}", session="s-2")
    monkeypatch.setattr(redact_stored, "LOCK_SECONDS", 0.01)
    key = line.key("claude-code", "s-1")
    held = os.open(machine.base / "journal" / "heads" / key, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    out = machine.run("--all", "--json")
    os.close(held)
    assert out.exit_code == 1 and json.loads(out.stdout)["busy"] == [f"{line.day(START)}/{key}"]
    assert sum(SECRET in json.dumps(one.data) for one in machine.lines()) == 1
    assert machine.run("--all").exit_code == 0
    machine.healthy()


@pytest.mark.parametrize("at", [1, 2])
def test_killed_while_a_file_is_put_in_place(machine: Machine, at: int) -> None:
    machine.put(f"echo {SECRET}")
    machine.put("echo two")
    code = (
        "import os, sys; from guardhook.journal import redact_stored as r, rules\n"
        "count = 0; save = r._save\n"
        "def stop(held):\n    global count; count += 1\n    if count == int(sys.argv[2]): os._exit(9)\n    save(held)\n"
        "r._save = stop\n"
        "red = r.Redactor(sys.argv[1], r.Wanted(rules.freeze_rules()))\n"
        "[red.file(p) for p in r.places(sys.argv[1])]"
    )
    assert subprocess.run([sys.executable, "-c", code, machine.journal, str(at)], timeout=60).returncode == 9
    assert (SECRET in json.dumps(machine.lines()[0].data)) == (at == 1)
    machine.put("echo three")
    assert [(one.type, one.seq) for one in machine.lines()] == [(line.RECEIVED, n) for n in (1, 2, 3)]
    assert machine.run("--all").exit_code == 0
    assert SECRET not in json.dumps([one.data for one in machine.lines()])
    machine.healthy()
    assert list(machine.base.rglob("*.tmp")) == []


def test_hooks_that_write_meanwhile_lose_nothing(machine: Machine) -> None:
    for number in range(40):
        machine.put(f"echo {SECRET} {number}")
    code = (
        "import sys, time; from guardhook.journal import line, write\n"
        "for n in range(60):\n"
        "    data = {'event': 'pre_tool', 'dialect': 'claude-code', 'session': 's-1', 'payload': {'n': n}}\n"
        "    out = write.append(sys.argv[1], write.Record(line.RECEIVED, time.time_ns(), 'claude-code', 's-1', '/p', '/p', True, False, data), budget=5.0)\n"
        "    assert out.state == 'recorded', out\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, machine.journal])
    for number in range(8):
        wanted = redact_stored.Wanted(rules.freeze_rules((f"echo.*{number}$",)))
        redactor = redact_stored.Redactor(machine.journal, wanted)
        for place in redact_stored.places(machine.journal):
            redactor.file(place)
    assert writer.wait(60) == 0
    lines = machine.lines()
    assert sorted(one.seq for one in lines) == list(range(1, 101))
    assert {one.data["payload"].get("n") for one in lines if "n" in one.data["payload"]} == set(range(60))  # type: ignore[attr-defined, operator]
    assert SECRET not in json.dumps([one.data for one in lines])
    machine.healthy()


def test_the_audit_trail_is_left_alone_and_told_of(machine: Machine) -> None:
    from guardhook.journal import audit

    machine.put(f"echo {SECRET}")
    audit.Log(str(machine.base / "rollouts"), "2026-01-01").append(
        [("2026-01-01T00:00:00Z", "r", "audit.action", {"a": SECRET})]
    )
    out = machine.run("--all")
    assert out.exit_code == 0 and "audit trail keeps" in out.stderr
    assert SECRET in (machine.base / "rollouts" / "2026-01-01" / "audit.jsonl").read_text()


def test_files_that_can_t_be_read_are_named(machine: Machine) -> None:
    machine.put(f"echo {SECRET}")
    (place,) = redact_stored.places(machine.journal)
    path = Path(place.path(machine.journal))
    os.rename(path, machine.base / "elsewhere")
    path.symlink_to(machine.base / "elsewhere")
    out = machine.run("--all", "--json")
    assert out.exit_code == 1 and len(json.loads(out.stdout)["unread"]) == 1
    assert SECRET in (machine.base / "elsewhere").read_text()


def test_rollout_files_follow(machine: Machine, tmp_path: Path) -> None:
    (machine.base).mkdir()
    folder = tmp_path / "rollouts"
    (machine.base / "config.toml").write_text(f'[forensics]\nrollout_dir = "{folder}"\n')
    machine.put(f"echo {SECRET}")
    CliRunner().invoke(main, ["list", "--dir", str(machine.base)])
    (file,) = folder.rglob("run_*.jsonl")
    assert SECRET in file.read_text()
    assert machine.run("--all").exit_code == 0
    assert SECRET not in file.read_text() and "[REDACTED:api_key]" in file.read_text()


def test_compressed_files_in_which_nothing_is_found_stay_as_they_are(machine: Machine) -> None:
    """They were unpacked one and all: a journal grew to the tenfold, and the store was made anew."""
    from guardhook.journal import pack

    for number in range(12):
        machine.put(f"echo {number} " + "word " * 400)
    held = write.Session(machine.journal, line.key("claude-code", "s-1"), "", "")
    held.lock(float("inf"))
    assert pack.compress(held, line.day(START))
    held.close()
    (packed,) = machine.base.rglob("*.gz")
    before = packed.stat()
    found = json.loads(machine.run("--all", "--json").stdout)
    assert (found["files"], found["lines"], found["changed"]) == (0, 12, 0)
    assert packed.stat() == before and read.generation(machine.journal) == 0
    assert not list(machine.base.rglob("*.jsonl"))
    machine.healthy()


def test_compressed_files(machine: Machine) -> None:
    from guardhook.journal import pack

    for number in range(12):
        machine.put(f"echo {SECRET} {number} " + "word " * 400)
    held = write.Session(machine.journal, line.key("claude-code", "s-1"), "", "")
    held.lock(float("inf"))
    assert pack.compress(held, line.day(START)) is not None
    held.close()
    machine.put(f"echo {SECRET} after")
    assert json.loads(machine.run("--all", "--dry-run", "--json").stdout)["changed"] == 13
    assert json.loads(machine.run("--all", "--json").stdout)["changed"] == 13
    assert SECRET not in json.dumps([one.data for one in machine.lines()])
    assert not list(machine.base.rglob("*.gz"))
    assert machine.put("next").seq == 14
    machine.healthy()
