"""`guardhook coverage`: calls in session logs against hook events in the journal."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import FIXTURES, Ran, Rig

from guardhook.core.folders import explicit
from guardhook.intake.coverage import SessionCoverage, measure
from guardhook.journal import line, redact
from guardhook.store.instants import micros

AT = "2026-11-30T10:00:{:02d}.000Z"
ALWAYS = ("--since", "2020-01-01")


class Cover(Rig):
    """Logs, and a journal with what hooks told."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seq = 0

    def hook(
        self, dialect: str, session: str, event: str = "pre_tool", *, second: int = 0, at: str = AT, **data: object
    ) -> None:
        """One line of the journal. data: call, tool, agent, payload, verdict, canary …"""
        us = micros(at.format(second))
        assert us is not None
        key = line.key(dialect, session)
        path = self.data / "journal" / "2026-11-30" / f"{key}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.seq += 1
        own: dict[str, object] = {"v": 1, "run": line.run_id(dialect, session, 1), "segment": 1, "root": None}
        body = {"session": session, "dialect": dialect, "event": event, "payload": {}, "verdict": None, **data}
        with path.open("ab") as file:
            file.write(line.build(us * 1000, self.seq, line.RECEIVED, own, line.body(body)))
        path.chmod(0o600)

    def claude(
        self, *calls: tuple[str, str, object], session: str = "s-1", name: str | None = None, **more: object
    ) -> Path:
        """A transcript with these calls: id, tool, result (text; an exception's words make it a failure; None: no result)."""
        records: list[object] = [{"type": "user", "uuid": f"u{name}", "parentUuid": None, "sessionId": session, "cwd": "/w", "message": {"role": "user", "content": "go"}, **more}]  # fmt: skip
        for number, (call, tool, said) in enumerate(calls):
            base = {"parentUuid": "u", "sessionId": session, "timestamp": AT.format(number), **more}
            use = {"type": "tool_use", "id": call, "name": tool, "input": {"command": "ls"}}
            records.append(
                {
                    **base,
                    "type": "assistant",
                    "uuid": f"a{number}{name}",
                    "message": {"id": f"m{number}", "content": [use]},
                }
            )
            if said is not None:
                block = {
                    "type": "tool_result",
                    "tool_use_id": call,
                    "content": str(said),
                    "is_error": isinstance(said, Exception),
                }
                records.append(
                    {
                        **base,
                        "type": "user",
                        "uuid": f"r{number}{name}",
                        "timestamp": AT.format(number + 1),
                        "message": {"content": [block]},
                    }
                )
        return self.write(name or f"{session}.jsonl", *records)

    def cover(self, *words: object) -> Ran:
        return self.run("coverage", self.files, *ALWAYS, *words)

    def only(self) -> SessionCoverage:
        (found,) = measure(explicit(str(self.data)), paths=[str(self.files)])
        return found


@pytest.fixture
def rig(tmp_path: Path) -> Cover:
    return Cover(tmp_path)


def deny(policy: str = "no-rm", mode: str = "enforce") -> dict[str, object]:
    return {"action": "deny", "policy": policy, "mode": mode, "answer": {"exit": 2, "stdout": "", "stderr": "no"}}


ALLOW = {"action": "allow", "policy": None, "mode": "enforce", "answer": {"exit": 0, "stdout": "", "stderr": ""}}


def test_calls_are_matched_by_their_ids(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Write", "ok"), ("t3", "Bash", "ok"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", verdict=ALLOW)
    rig.hook("claude-code", "s-1", call="t3", tool="Bash", second=2)
    found = rig.only()
    assert (found.calls, found.reached, found.judged) == (3, 2, 1)
    assert [(m.tool, m.call, m.agent) for m in found.never] == [("Write", "t2", None)]
    assert found.percent == pytest.approx(66.67, abs=0.01)


def test_the_report(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Write", "ok"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", verdict=ALLOW)
    ran = rig.cover()
    assert ran.status == 0
    assert "1 of 2 calls never reached the gate" in ran.stdout and "Write" in ran.stdout
    assert "1 of 2 calls reached the gate (50.0%)" in ran.stdout
    assert all(len(text) <= 80 for text in ran.stdout.splitlines())


@pytest.mark.parametrize(("least", "status"), [("50", 0), ("50.1", 1), ("100", 1), ("0", 0)])
def test_fail_under(rig: Cover, least: str, status: int) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Write", "ok"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash")
    assert rig.cover("--fail-under", least).status == status
    assert rig.cover("--fail-under", least, "--json").json["ok"] is (status == 0)


def test_fail_under_with_nothing_to_measure_fails(rig: Cover) -> None:
    assert rig.cover("--fail-under", "1").status == 1
    assert rig.cover().status == 0


def test_a_session_without_any_hook(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"))
    assert "no hook ran in this session" in rig.cover().stdout
    rig.hook("claude-code", "s-1", "session_start")
    assert "only other events of the session did" in rig.cover().stdout
    assert rig.only().hook_events == 1


def test_forged_events_add_nothing(rig: Cover) -> None:
    """Another id, another session, a result alone, the canary, and a call told after it was over."""
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"))
    for number in range(20):
        rig.hook("claude-code", "s-1", call=f"x{number}", tool="Bash", verdict=ALLOW)
    rig.hook("claude-code", "s-2", call="t1", tool="Bash", verdict=ALLOW)
    rig.hook("claude-code", "s-1", "post_tool", call="t1", tool="Bash")
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", canary=True)
    assert rig.only().reached == 0
    path = rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"))
    path.write_text(path.read_text().replace("10:00", "09:00"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", verdict=ALLOW, second=5)
    found = rig.only()
    assert found.reached == 0 and "after the call was over" in found.never[0].why


def test_events_of_more_than_one_program_are_shown(rig: Cover) -> None:
    """The id of a call can be looked up while it runs, so an event that an agent told itself may count."""
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", verdict=ALLOW, caller={"pid": 7, "exe": "/opt/1/claude"})
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", event="post_tool", caller={"pid": 7, "exe": "/opt/2/claude"})
    rig.hook("claude-code", "s-1", call="t2", tool="Bash", verdict=ALLOW, second=1, caller={"pid": 8})
    assert "program" not in rig.cover().stdout
    rig.hook("claude-code", "s-1", "stop", second=2, caller={"pid": 9, "exe": "/usr/bin/ba\x1bsh"})
    ran = rig.cover()
    assert "claude (2), ba" in ran.stdout and "\x1b" not in ran.stdout
    assert rig.only().callers[1][1] == 1


def test_what_was_blocked_and_ran_all_the_same(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", OSError("PreToolUse:Bash hook error: no")), ("t3", "Bash", OSError("exit 1")), ("t4", "Bash", "ok"))  # fmt: skip
    for call in ("t1", "t2", "t3"):
        rig.hook("claude-code", "s-1", call=call, tool="Bash", verdict=deny())
    rig.hook("claude-code", "s-1", "post_tool_failure", call="t3", tool="Bash", second=3)
    rig.hook("claude-code", "s-1", call="t4", tool="Bash", verdict=deny(mode="observe"))
    found = rig.only()
    assert [(m.call, m.why) for m in found.ran_although_blocked] == [("t1", "no-rm"), ("t3", "no-rm")]
    assert found.reached == 4 and found.judged == 3
    ran = rig.cover("--fail-under", "100")
    assert ran.status == 1 and "2 ran although" in ran.stdout and "ran although" in ran.stderr


def test_sub_agents_are_told_apart(rig: Cover) -> None:
    rig.claude(("t1", "Agent", "done"))
    rig.claude(("t2", "Bash", "ok"), name="s-1/subagents/agent-7.jsonl", isSidechain=True, agentId="7")
    rig.hook("claude-code", "s-1", call="t1", tool="Agent")
    found = rig.only()
    assert found.calls == 2 and found.agent_calls == 1
    assert [(m.tool, m.agent) for m in found.never] == [("Bash", "7")]
    assert "(in sub-agents)" in rig.cover().stdout


def test_what_the_harness_itself_refused_is_not_counted(rig: Cover) -> None:
    rig.claude(("t1", "Bash", OSError("<tool_use_error>InputValidationError: x</tool_use_error>")), ("t2", "Bash", None), ("t3", "Bash", OSError("exit 1")))  # fmt: skip
    found = rig.only()
    assert found.refused == 2 and [m.call for m in found.never] == ["t3"]


@pytest.mark.parametrize("said", ["unsupported call: no_such_tool", "failed to parse function arguments: missing field `cmd`"])  # fmt: skip
def test_what_codex_itself_refused_is_not_counted(rig: Cover, said: str) -> None:
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
    rig.write("rollout-1.jsonl", *({"timestamp": AT.format(n), "type": kind, "payload": payload} for n, (kind, payload) in enumerate([
        ("session_meta", {"id": "cx-1"}), ("response_item", call), ("response_item", {"type": "function_call_output", "call_id": "c1", "output": said}),
    ])))  # fmt: skip
    found = measure(explicit(str(rig.data)), paths=[str(rig.files)])
    assert [(s.calls, s.refused) for s in found] == [(0, 1)]


def test_only_calls_since(rig: Cover) -> None:
    path = rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"), ("t3", "Bash", "ok"))
    os.utime(path, (2_000_000_000, 2_000_000_000))
    found = rig.run("coverage", rig.files, "--since", AT.format(1), "--json").json
    assert found["calls"] == 2
    assert rig.run("coverage", rig.files, "--since", "soon").status == 2


def test_a_log_that_was_touched_is_looked_at_all_the_same(rig: Cover) -> None:
    path = rig.claude(("t1", "Bash", "ok"))
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert [
        s.calls for s in measure(explicit(str(rig.data)), micros("2020-01-01T00:00:00Z"), paths=[str(rig.files)])
    ] == [1]


def test_only_a_project(rig: Cover, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    rig.claude(("t1", "Bash", "ok"), session="s-1", cwd=str(root / "src"))
    rig.claude(("t1", "Bash", "ok"), session="s-2")
    assert [s["session"] for s in rig.cover("--project", root, "--json").json["sessions"]] == ["s-1"]


def test_a_session_that_goes_on_from_another_counts_each_call_once(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"), session="s-1")
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"), ("t3", "Bash", "ok"), session="s-2")
    rig.hook("claude-code", "s-1", call="t1", tool="Bash")
    rig.hook("claude-code", "s-2", call="t2", tool="Bash", second=1)
    rig.hook("claude-code", "s-2", call="t3", tool="Bash", second=2)
    found = {s.session: (s.calls, s.reached) for s in measure(explicit(str(rig.data)), paths=[str(rig.files)])}
    assert found == {"s-1": (1, 1), "s-2": (2, 2)}


def test_a_log_that_lies_in_two_places_counts_once(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", None), name="a/s-1.jsonl")
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"), name="b/s-1.jsonl")
    rig.hook("claude-code", "s-1", call="t1", tool="Bash")
    found = rig.only()
    assert (found.calls, found.reached, [m.call for m in found.never]) == (2, 1, ["t2"])


def test_an_id_that_is_used_again_hides_no_call_of_the_session_that_goes_on(rig: Cover) -> None:
    """Model servers other than the vendors' number calls anew in each answer."""
    rig.claude(("c", "Bash", "ok"), session="s-1")
    rig.claude(("c", "Bash", "ok"), ("c", "Bash", "ok"), session="s-2")
    rig.hook("claude-code", "s-1", call="c", tool="Bash")
    found = {s.session: (s.calls, s.reached) for s in measure(explicit(str(rig.data)), paths=[str(rig.files)])}
    assert found == {"s-1": (1, 1), "s-2": (1, 0)}


def test_codex_calls_and_those_inside_scripts(rig: Cover) -> None:
    rig.fixture("codex/codemode.jsonl")
    rig.fixture("codex/rollout.jsonl")
    inner, plain = "00000000-0000-7000-8000-000000000018", "00000000-0000-7000-8000-000000000001"
    early = "2026-11-30T00:44:{:02d}.000Z"
    rig.hook(
        "codex",
        inner,
        call="exec-00000000-0000-7000-8000-000000000020",
        tool="Bash",
        verdict=ALLOW,
        at=early,
        second=33,
    )
    rig.hook("codex", plain, call="call_mock_3", tool="Bash", verdict=ALLOW, at=early, second=29)
    rig.hook("codex", plain, call="call_mock_4", tool="Bash", verdict=deny(), at=early, second=29)
    found = {s.session: s for s in measure(explicit(str(rig.data)), paths=[str(rig.files)])}
    # The script is no call of its own; the calls in it are.
    assert (found[inner].calls, found[inner].reached, found[inner].without_hook) == (3, 1, 1)
    assert [m.tool for m in found[inner].never] == ["apply_patch", "mcp__echo__echo"]
    assert (found[plain].calls, found[plain].reached, found[plain].refused) == (6, 2, 0)
    assert not found[plain].ran_although_blocked


def gemini(rig: Cover, *calls: tuple[str, dict[str, object]]) -> None:
    told = [{"id": f"c{n}", "name": name, "args": args, "status": "success", "timestamp": AT.format(n + 1), "result": []} for n, (name, args) in enumerate(calls)]  # fmt: skip
    rig.write(
        "session-1.jsonl", {"sessionId": "g-1", "projectHash": "ab", "startTime": AT.format(0)}, {"id": "u", "type": "user", "content": "go"},
        {"id": "a", "type": "gemini", "timestamp": AT.format(0), "content": "", "toolCalls": told},
    )  # fmt: skip


def test_gemini_calls_are_matched_by_tool_and_input_one_by_one(rig: Cover) -> None:
    listing: tuple[str, dict[str, object]] = ("run_shell_command", {"command": "ls", "n": 1})
    gemini(rig, listing, listing, ("write_file", {"file_path": "x"}))
    rig.hook("gemini", "g-1", tool="run_shell_command", payload={"tool_input": {"n": 1, "command": "ls"}})
    found = rig.only()
    assert found.by_input and (found.calls, found.reached) == (3, 1)
    assert sorted(m.tool for m in found.never) == ["run_shell_command", "write_file"]
    rig.hook("gemini", "g-1", tool="run_shell_command", payload={"tool_input": {"n": 1, "command": "ls"}})
    rig.hook("gemini", "g-1", tool="write_file", payload={"tool_input": {"file_path": "y"}})
    assert rig.only().reached == 2
    assert "by tool and input" in rig.cover().stdout


@pytest.mark.parametrize("how", ["redacted", "custom", "hashed", "none", "cut"])
def test_gemini_inputs_that_were_not_recorded_as_they_were(rig: Cover, how: str) -> None:
    from guardhook.journal import redact
    from guardhook.journal.rules import freeze_rules

    given: dict[str, object] = {"command": "curl -H 'Authorization: Bearer ghp_" + "a1B2" * 9 + "'"}
    if how == "custom":  # the user's own pattern, which the journal went through
        given["command"] = f"{given['command']} EMP123456"
        rig.data.mkdir(parents=True, exist_ok=True)
        (rig.data / "config.toml").write_text('[capture.redaction]\ncustom = ["EMP[0-9]{6}"]\n')
    gemini(rig, ("run_shell_command", given))
    rows = {"redacted": freeze_rules(), "custom": freeze_rules(("EMP[0-9]{6}",))}.get(how, ())
    payload = (
        redact.redact({"tool_input": given}, rows, how)[0] if how != "cut" else {"tool_input": {"command": "curl"}}
    )
    more: dict[str, object] = {"redaction": how} if how in ("hashed", "none") else {}
    rig.hook("gemini", "g-1", tool="run_shell_command", payload=payload, cut=["/tool_input/command"] if how == "cut" else [], **more)  # fmt: skip
    assert rig.only().reached == 1


def test_logs_are_found_where_the_harnesses_keep_them(
    rig: Cover, scratch_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No session logs" in rig.run("coverage").stdout
    claude = rig.claude(("t1", "Bash", "ok"))
    place = scratch_home / ".claude" / "projects" / "-w"
    place.mkdir(parents=True)
    claude.rename(place / "s-1.jsonl")
    codex = scratch_home / "elsewhere" / "sessions" / "2026"
    codex.mkdir(parents=True)
    rig.fixture("codex/rollout.jsonl").rename(codex / "rollout.jsonl")
    monkeypatch.setenv("CODEX_HOME", str(scratch_home / "elsewhere"))
    gemini(rig, ("x", {}))
    chats = scratch_home / ".gemini" / "tmp" / "p" / "chats"
    chats.mkdir(parents=True)
    (rig.files / "session-1.jsonl").rename(chats / "session-1.jsonl")
    found = rig.run("coverage", *ALWAYS, "--json").json
    assert {s["dialect"] for s in found["sessions"]} == {"claude-code", "codex", "gemini"}


def test_a_bad_log_stops_nothing_and_is_named(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"))
    bad = rig.write("bad.jsonl", "nonsense")
    ran = rig.run("coverage", rig.files, bad, *ALWAYS, "--json")
    assert ran.status == 0 and [p["path"] for p in ran.json["problems"]] == [str(bad)]
    assert ran.json["calls"] == 1
    assert rig.run("coverage", rig.files / "none", *ALWAYS).status == 1
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", verdict=ALLOW)
    assert rig.cover("--fail-under", "100").status == 0
    ran = rig.run("coverage", rig.files, bad, *ALWAYS, "--fail-under", "100")
    assert ran.status == 1 and "can't be read" in ran.stderr


def test_words_of_a_log_reach_no_terminal_as_they_are(rig: Cover) -> None:
    rig.claude(("t1", "Ba\x1b[31msh\n✔ all fine", "ok"), session="s\x1b[2J", cwd="/w\x1b]0;x\x07")
    ran = rig.cover()
    assert "\x1b" not in ran.stdout and "\x07" not in ran.stdout
    assert not any(text.startswith("✔") for text in ran.stdout.splitlines())


def test_a_damaged_journal_counts_what_can_be_read(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash", verdict=ALLOW)
    (file,) = (rig.data / "journal" / "2026-11-30").iterdir()
    file.write_bytes(
        b"{torn\n"
        + json.dumps({"ts": 1, "type": "hook.received", "data": []}).encode()
        + b"\n"
        + file.read_bytes()
        + b"{"
    )
    assert rig.only().reached == 1
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert rig.only().reached == 0


def test_a_terminal_without_unicode_and_a_reader_that_has_seen_enough(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "B\u00e4sh \u2603", "ok"))
    words = [sys.executable, "-m", "guardhook", "coverage", str(rig.files), *ALWAYS, "--dir", str(rig.data)]
    done = subprocess.run(
        words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1:strict"}, check=True
    )
    assert b"\\u2603" in done.stdout and not done.stderr
    cut = subprocess.run(["sh", "-c", '"$@" | true', "sh", *words], capture_output=True, check=True)
    assert not cut.stderr


def test_a_journal_file_that_was_compressed(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"), ("t2", "Bash", "ok"))
    rig.hook("claude-code", "s-1", call="t1", tool="Bash")
    (file,) = (rig.data / "journal" / "2026-11-30").iterdir()
    packed = file.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    packed.chmod(0o600)
    file.unlink()
    assert rig.only().reached == 1
    rig.hook("claude-code", "s-1", call="t2", tool="Bash", second=1)  # and the session went on
    assert rig.only().reached == 2


def test_nothing_is_made_by_looking(rig: Cover) -> None:
    rig.claude(("t1", "Bash", "ok"))
    assert rig.cover().status == 0 and not rig.data.exists()


def test_qwen_code_tells_hooks_two_ids(rig: Cover) -> None:
    shutil.copytree(FIXTURES / "qwen", rig.files / "qwen")
    session = "5e550001-0000-4000-8000-0000000000ff"
    for number in range(2):  # the model that was asked here uses one id twice
        at = f"2026-11-30T05:25:3{6 + number}.000Z"
        rig.hook(
            "qwen-code", session, call=f"toolu_{number}", payload={"tool_call_id": "call_qwen_1"}, verdict=ALLOW, at=at
        )
    found = rig.only()
    assert (found.calls, found.reached, found.agent_calls) == (2, 2, 1)


@pytest.mark.parametrize("mode", ["hashed", "none"])
def test_qwen_code_when_its_ids_were_not_kept(rig: Cover, mode: str) -> None:
    shutil.copytree(FIXTURES / "qwen", rig.files / "qwen")
    session = "5e550001-0000-4000-8000-0000000000ff"
    hashed = redact.redact({"tool_call_id": "call_qwen_1"}, (), "hashed")[0]
    payload = hashed if mode == "hashed" else {}
    for number, tool in enumerate(("agent", "run_shell_command")):
        for event in ("pre_tool", "permission_request"):
            at = f"2026-11-30T05:25:3{6 + number}.000Z"
            rig.hook("qwen-code", session, event, call=f"toolu_{number}", tool=tool, payload=payload, redaction=mode, verdict=ALLOW, at=at)  # fmt: skip
    found = rig.only()
    assert (found.calls, found.reached, found.hook_events) == (2, 2, 4)
    # Without any id, an event of another time is none of these calls.
    (file,) = (rig.data / "journal" / "2026-11-30").iterdir()
    file.write_text(file.read_text().replace("T05:25:3", "T05:20:3"))
    assert rig.only().reached == (2 if mode == "hashed" else 0)


def test_an_event_of_a_call_before_the_time_asked_for_is_not_lent_to_a_later_one(rig: Cover) -> None:
    listing: tuple[str, dict[str, object]] = ("run_shell_command", {"command": "ls"})
    gemini(rig, listing)
    log = rig.files / "session-1.jsonl"
    late = log.read_text().splitlines()[2].replace('"a"', '"b"').replace("T10:00:0", "T10:00:3").replace('"c0"', '"c1"')
    log.write_text(log.read_text() + late + "\n")
    rig.hook("gemini", "g-1", tool="run_shell_command", payload={"tool_input": {"command": "ls"}})
    os.utime(log, (2_000_000_000, 2_000_000_000))
    found = rig.run("coverage", rig.files, "--since", AT.format(20), "--json").json
    assert (found["calls"], found["reached"]) == (1, 0)


def test_an_event_from_long_before_a_call_is_none_of_it(rig: Cover) -> None:
    """Made up in advance, or of a call in a log that is no longer there."""
    gemini(rig, ("run_shell_command", {"command": "ls"}))
    rig.hook("gemini", "g-1", tool="run_shell_command", payload={"tool_input": {"command": "ls"}}, at="2026-11-30T09:50:00.000Z")  # fmt: skip
    assert rig.only().reached == 0
