"""Mistakes that other gates and recorders made, as far as the other tests don't show that this one does not."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.conftest import Run, claude, codex, gemini, lines

CALL_KEYS = ("tool_name", "tool_input", "tool_use_id")


def without_call(payload: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in payload.items() if key not in CALL_KEYS}


def test_a_payload_in_pieces_that_split_a_character(place: Path) -> None:
    text = "ä" * 70_000 + " GH-DENY ä"
    data = json.dumps(claude(text), ensure_ascii=False).encode()
    command = [sys.executable, "-m", "guardhook", "hook", "PreToolUse", "--enforce", "--dir", str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    for at in range(0, len(data), 65_535):  # an odd number: pieces end within a character
        process.stdin.write(data[at : at + 65_535])
        process.stdin.flush()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 2 and b"no-marker" in out
    (line,) = lines(place)
    recorded = json.dumps(line, ensure_ascii=False)
    assert "\ufffd" not in recorded and "ä" * 1000 in recorded


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"])
def test_a_missing_folder_is_never_made_by_events_that_only_report(hook: Run, tmp_path: Path, event: str) -> None:
    nowhere = tmp_path / "nowhere"
    payload = without_call(claude("x", event, prompt="hello"))
    hook(payload, event, directory=nowhere)
    assert hook(claude("ls"), directory=nowhere).status == 2
    assert not nowhere.exists()


@pytest.mark.parametrize("name", [None, "", 7, ["Bash"]])
def test_capturing_a_call_without_a_usable_name_records_it(hook: Run, place: Path, name: object) -> None:
    assert hook(claude("ls", tool_name=name), "PreToolUse", enforce=False).silent
    (line,) = lines(place)
    assert line["data"]["event"] == "pre_tool"  # type: ignore[index]


def test_the_dialect_of_the_exit_code_has_no_stdout(hook: Run) -> None:
    payload = {"tool_name": "shell", "tool_input": {"command": "echo GH-DENY"}, "session_id": "s", "cwd": "/"}
    out = hook(payload, "PreToolUse", "--dialect", "other")
    assert (out.status, out.stdout) == (2, b"")
    assert out.stderr.strip()


def locked(place: Path) -> list[int]:
    """Locks all that is in the journal, as another process would."""
    held = []
    for path in sorted((place / "journal").rglob("*")):
        if path.is_file():
            fd = os.open(path, os.O_RDWR)
            fcntl.flock(fd, fcntl.LOCK_EX)
            held.append(fd)
    return held


def test_a_locked_journal_changes_no_verdict_and_loses_nothing(hook: Run, place: Path) -> None:
    assert hook(claude("echo first")).silent
    held = locked(place)
    assert held
    try:
        assert hook(claude("echo second")).silent
        assert hook(claude("echo GH-DENY third")).status == 2
        assert hook(claude("echo fourth", "PostToolUse", tool_response="x"), enforce=False).silent
        assert len(lines(place)) == 1
    finally:
        for fd in held:
            os.close(fd)
    for _ in range(4):
        assert hook(claude("echo last")).silent
    text = "".join(path.read_text() for path in (place / "journal").rglob("*.jsonl"))
    for word in ("echo second", "GH-DENY third", "echo fourth"):
        assert text.count(f'"command":"echo {word.removeprefix("echo ")}"') == 1, word


def test_a_locked_journal_does_not_hold_a_script_up(place: Path, hook: Run) -> None:
    assert hook(claude("echo first")).silent
    held = locked(place)
    try:
        step = json.dumps({"name": "x", "step_type": "tool_call", "input": {"command": "ls"}}).encode()
        command = [sys.executable, "-m", "guardhook", "guard", "check", "--dir", str(place)]
        done = subprocess.run(command, input=step, capture_output=True, timeout=30, check=False)
    finally:
        for fd in held:
            os.close(fd)
    assert (done.returncode, json.loads(done.stdout)["action"]) == (0, "allow")


def test_a_damaged_compiled_file_is_made_anew(hook: Run, place: Path) -> None:
    assert hook(claude("ls")).silent
    compiled = place / "compiled" / "policies.bin"
    compiled.write_bytes(b"\0" * 5000)
    assert hook(claude("echo GH-DENY")).status == 2
    assert hook(claude("ls")).silent
    assert compiled.read_bytes()[:1] != b"\0"


@pytest.mark.parametrize(
    "regex", ["^a*a*a*a*a*a*b$", "^(a?){28}a{28}$", "(a+)+$", "^(a|aa)+$", r"(\s*\w)*!$", "(.*,)*!$"]
)
def test_no_expression_delays_an_answer(hook: Run, place: Path, regex: str) -> None:
    """Expressions that are refused when added may still lie in a file; either way an answer comes, and not the watchdog's."""
    rule = f"[[policy]]\nname = 'slow'\naction = 'deny'\nmatch = {{ name_regex = '{regex}' }}\n"
    (place / "policies" / "slow.toml").write_text(rule)
    payload = claude("ls", tool_name="a" * 400)
    for _ in range(4):
        out = hook(payload)
        if (
            b"no verdict within" not in out.stderr
        ):  # a stall would end in the watchdog each time, a crowded machine does not
            break
    assert b"no verdict" not in out.stderr
    assert out.status == 2 or out.silent  # some of them the engine can answer at once


def test_the_reason_names_policy_remedy_and_says_not_to_retry(hook: Run, place: Path) -> None:
    (place / "policies" / "more.toml").write_text(
        '[[policy]]\nname = "no-prod"\naction = "deny"\nreason = "Production is off limits."\n'
        'suggest = "Use the staging database."\nmatch = { input_contains = "PRODDB" }\n'
    )
    for payload in (claude("echo PRODDB"), codex("echo PRODDB"), gemini("echo PRODDB")):
        said = hook(payload).stderr.decode()
        for part in ("no-prod", "Production is off limits.", "staging database", "not retry"):
            assert part in said, said
        assert len(said.strip().splitlines()) == 1


def test_a_denied_patch_says_not_to_retry(hook: Run) -> None:
    patch = "*** Begin Patch\n*** Add File: GH-DENY.txt\n+x\n*** End Patch\n"
    payload = {**codex(patch), "tool_name": "apply_patch"}
    out = hook(payload)
    assert out.status == 2 and b"not retry" in out.stderr


def test_other_events_that_can_block_do(hook: Run, place: Path) -> None:
    (place / "policies" / "more.toml").write_text(
        '[[policy]]\nname = "no-prompt"\naction = "deny"\nmatch = { event = "user_prompt", input_contains = "EVILPROMPT" }\n'
    )
    request = claude("echo GH-DENY", "PermissionRequest")
    del request["tool_use_id"]
    out = hook(request)
    inner = out.json["hookSpecificOutput"]
    assert isinstance(inner, dict)
    assert inner["hookEventName"] == "PermissionRequest" and inner["decision"]["behavior"] == "deny"
    blocked = hook(without_call(claude("x", "UserPromptSubmit", prompt="do EVILPROMPT")))
    assert blocked.status == 2
    assert hook(without_call(claude("x", "UserPromptSubmit", prompt="hello"))).silent


def test_sessions_without_an_id_are_kept_apart(hook: Run, place: Path, tmp_path: Path) -> None:
    """Two folders are two sessions; and none of them is one that has an id."""
    other = tmp_path / "other"
    other.mkdir()
    for payload in (
        claude("ls", session_id=None),
        claude("ls", session_id=None, cwd=str(other)),
        claude("ls"),
    ):
        assert hook(payload, "PreToolUse", "--dialect", "claude-code").silent
    assert len(list((place / "journal").rglob("*.jsonl"))) == 3


def test_results_in_parallel_are_all_recorded_in_one_file(place: Path, hook: Run) -> None:
    assert hook(claude("ls")).silent
    command = [sys.executable, "-m", "guardhook", "hook", "PostToolUse", "--dir", str(place)]
    running = []
    for number in range(8):
        payload = claude("ls", "PostToolUse", tool_use_id=f"toolu_{number}", tool_response={"stdout": str(number)})
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload).encode())
        process.stdin.close()
        running.append(process)
    assert [process.wait(timeout=60) for process in running] == [0] * 8
    for _ in range(4):  # what found the lock held too long is drained
        assert hook(claude("ls"), enforce=False).silent
    recorded = [line["data"] for line in lines(place)]
    calls = [data["call"] for data in recorded if data["native_event"] == "PostToolUse"]  # type: ignore[index]
    assert sorted(calls) == [f"toolu_{number}" for number in range(8)]
    assert len(list((place / "journal").rglob("*.jsonl"))) == 1


@pytest.mark.parametrize("error", ["plain", {"code": 7}, None, ["a"]])
def test_the_details_of_a_failure_are_kept_as_they_came(hook: Run, place: Path, error: object) -> None:
    assert hook(claude("ls", "PostToolUseFailure", error=error, duration_ms=0), enforce=False).silent
    (line,) = lines(place)
    payload = line["data"]["payload"]  # type: ignore[index]
    assert (payload["error"], payload["duration_ms"]) == (error, 0)


def test_a_gemini_session_start_is_geminis(hook: Run, place: Path) -> None:
    payload = without_call({**gemini("x", "SessionStart"), "source": "startup"})
    assert hook(payload, enforce=False).silent
    (line,) = lines(place)
    assert line["data"]["dialect"] == "gemini"  # type: ignore[index]


def test_prompts_are_recorded_in_order_with_their_line_ends(hook: Run, place: Path) -> None:
    for prompt in ("first\n", "second\r\n"):
        assert hook(without_call(claude("x", "UserPromptSubmit", prompt=prompt)), enforce=False).silent
    prompts = [line["data"]["payload"]["prompt"] for line in lines(place)]  # type: ignore[index]
    assert prompts == ["first\n", "second\r\n"]


@pytest.mark.parametrize("number", range(3))
def test_the_gate_never_gives_up_after_failures(hook: Run, place: Path, number: int) -> None:
    (place / "policies" / "zz.toml").write_text("[[policy\n")
    for _ in range(number + 2):
        assert hook(claude("ls")).status == 2
    (place / "policies" / "zz.toml").unlink()
    assert hook(claude("ls")).silent
    assert hook(claude("GH-DENY")).status == 2


def test_unknown_fields_and_values_change_no_verdict(hook: Run) -> None:
    more = {"brand_new": {"a": [1]}, "permission_mode": "telepathy", "effort": {"level": "x"}, "agent_type": "?"}
    assert hook(claude("echo fine", **more)).silent
    assert hook(claude("GH-DENY", **more)).status == 2


def test_nesting_beyond_what_is_analysed_is_never_passed_in_silence(hook: Run) -> None:
    assert not hook(claude("echo " + "$(echo " * 80 + "rm -rf ~/" + ")" * 80)).silent
    assert not hook(claude("echo " + "$(" * 80 + "true" + ")" * 80)).silent
    assert hook(claude("echo " + "$(" * 3 + "rm -rf ~/" + ")" * 3)).status == 2


def test_a_system_without_posix_blocks_and_is_not_registered(scratch_home: Path) -> None:
    def run(before: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        code = f"import sys\n{before}\nfrom guardhook.__main__ import main\nmain()"
        return subprocess.run(
            [sys.executable, "-c", code, *words], input=b"{}", capture_output=True, check=False, timeout=60
        )

    hidden = "sys.modules['posix'] = sys.modules['fcntl'] = None"
    blocked = run(hidden, "hook", "PreToolUse", "--enforce")
    assert (blocked.returncode, blocked.stdout) == (2, b"")
    assert blocked.stderr.startswith(b"guardhook: blocked") and blocked.stderr.count(b"\n") == 1
    watching = run(hidden, "hook", "PreToolUse")
    assert (watching.returncode, watching.stdout, watching.stderr) == (0, b"", b"")

    windows = "import dataclasses, guardhook.harness.machine as m\nhere = m.here\n"
    windows += "m.here = lambda *a, **k: dataclasses.replace(here(*a, **k), platform='win32')"
    refused = run(windows, "install", "claude-code", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["ok"] is False and b"WSL" in refused.stdout
    assert not (scratch_home / ".claude").exists()
