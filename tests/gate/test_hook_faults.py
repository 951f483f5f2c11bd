"""Nothing that goes wrong may end in silence while the gate enforces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guardhook.core.folders import explicit
from guardhook.policy import load
from tests.gate.conftest import Run, claude, codex, lines

BAD_STDIN = {
    "empty": b"",
    "blank": b" \n",
    "truncated": json.dumps(claude("ls")).encode()[:-20],
    "array": b"[]",
    "null": b"null",
    "number": b"7",
    "string": b'"PreToolUse"',
    "true": b"true",
    "empty object": b"{}",
    "invalid utf-8": json.dumps(claude("ls")).encode().replace(b"ls", b"l\xff"),
    "duplicate keys": json.dumps(claude("ls")).encode().replace(b'"tool_name"', b'"tool_name":"Read","tool_name"'),
    "deep": b"[" * 3000,
    "deep in the input": json.dumps(claude("ls")).encode().replace(b'"ls"', b"[" * 100 + b"]" * 100),
    "not a number": json.dumps(claude("ls")).encode().replace(b'"ls"', b"NaN"),
    "two documents": json.dumps(claude("ls")).encode() * 2,
    "garbage": os.urandom(200),
    "html": b"<html></html>",
}


@pytest.mark.parametrize("shape", BAD_STDIN)
@pytest.mark.parametrize("registered", [(), ("PreToolUse", "--dialect", "claude-code"), ("PreToolUse", "--dialect", "codex"), ("BeforeTool", "--dialect", "gemini")])  # fmt: skip
def test_a_payload_that_cannot_be_read_is_blocked(hook: Run, shape: str, registered: tuple[str, ...]) -> None:
    out = hook(BAD_STDIN[shape], *registered)
    assert out.status == 2
    assert out.stderr.strip()
    assert b"Traceback" not in out.stderr
    assert len(out.stderr.strip().splitlines()) == 1
    if "codex" in registered:
        assert out.stdout == b""
    if "gemini" in registered and shape != "empty object":
        assert out.json["decision"] == "deny"


@pytest.mark.parametrize(
    "change",
    [
        {"tool_name": None},
        {"tool_name": ""},
        {"tool_name": 7},
        {"tool_name": ["Bash"]},
        {"tool_input": {"command": {"a": 1}}},
        {"tool_input": {"command": None}},
        {"tool_input": {}},
        {"tool_input": "GH-DENY"},
        {"tool_input": None},
        {"tool_input": {"command": ["echo", "GH-DENY"]}},
        {"tool_input": {"command": "echo GH-DENY\x00 more"}},
        {"tool_input": {"command": "echo ＧＨ-DENY"}},
        {"tool_input": {"command": "echo G\u200bH-DENY"}},
        {"tool_input": {"command": "echo GH-DENY \ud83d"}},
        {"tool_name": "BASH", "tool_input": {"command": "echo GH-DENY"}},
        {"cwd": None, "tool_input": {"command": "echo GH-DENY"}},
        {"cwd": 7, "tool_input": {"command": "echo GH-DENY"}},
        {"session_id": None, "tool_input": {"command": "echo GH-DENY"}},
        {"session_id": {"a": []}, "tool_input": {"command": "echo GH-DENY"}},
        {"tool_input": {"command": "x" * 5_000_000 + " GH-DENY"}},
        {"tool_input": {"command": "GH-DENY " + "$(" * 80 + ")" * 80}},
    ],
)
def test_odd_but_dangerous_payloads_are_blocked(hook: Run, change: dict[str, object]) -> None:
    out = hook(claude("ls", **change), "PreToolUse", "--dialect", "claude-code")
    assert out.status == 2, out


def test_byte_order_mark_is_tolerated(hook: Run) -> None:
    assert hook(b"\xef\xbb\xbf" + json.dumps(claude("ls")).encode()).silent
    assert hook(b"\xef\xbb\xbf" + json.dumps(claude("GH-DENY")).encode()).status == 2


def test_a_payload_of_another_dialect_than_registered_is_blocked(hook: Run) -> None:
    assert hook(codex("ls"), "PreToolUse", "--dialect", "gemini").status == 2


def test_oversized_payloads_are_blocked_as_such(hook: Run) -> None:
    out = hook(claude("x" * (8 * 1024 * 1024 + 100)), "PreToolUse", "--dialect", "codex")
    assert out.status == 2
    assert b"larger" in out.stderr


@pytest.mark.parametrize("words", [["--enforec"], ["--dialect"], ["--dialect", "klingon"], ["--verdict-fd", "x"]])
def test_a_flag_typo_blocks(hook: Run, words: list[str]) -> None:
    assert hook(claude("ls"), *words).status == 2


def test_a_missing_folder_blocks_unless_emptiness_is_accepted(hook: Run, tmp_path: Path) -> None:
    assert hook(claude("ls"), directory=tmp_path / "nowhere").status == 2


def test_no_enabled_policy_blocks(hook: Run, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    found = load.load(explicit(str(bare)), time.time())
    off = "".join(f'[[override]]\npolicy = "{f.policy.name}"\nenabled = false\n' for f in found.policies)
    (bare / "overrides.toml").write_text(off)
    out = hook(claude("ls"), directory=bare)
    assert out.status == 2
    assert b"no policy" in out.stderr
    assert hook(claude("ls"), "--allow-empty", directory=bare).silent


def test_nowhere_to_record_blocks(hook: Run, place: Path) -> None:
    assert hook(claude("ls")).silent  # compiled by now
    for name in ("journal", "spool"):
        subprocess.run(["rm", "-rf", str(place / name)], check=True)
        (place / name).write_text("a file where the folder should be")
    out = hook(claude("ls"))
    assert out.status == 2
    assert b"record" in out.stderr
    assert hook(claude("ls"), "--allow-empty").silent


def test_closed_streams(hook: Run, place: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "guardhook",
        "hook",
        "PreToolUse",
        "--enforce",
        "--dialect",
        "codex",
        "--dir",
        str(place),
    ]
    shell = " ".join(command)
    assert subprocess.run(f"exec {shell} <&-", shell=True, capture_output=True, check=False).returncode == 2
    for redirect in (">&-", "2>&-", ">&- 2>&-"):
        dangerous = subprocess.run(
            f"exec {shell} {redirect}",
            shell=True,
            input=json.dumps(codex("GH-DENY")).encode(),
            check=False,
            capture_output=True,
        )
        assert dangerous.returncode == 2


def test_an_ask_that_cannot_be_written_blocks(place: Path) -> None:
    command = f"exec {sys.executable} -m guardhook hook PreToolUse --enforce --dir {place} >&-"
    done = subprocess.run(
        command, shell=True, input=json.dumps(claude("GH-ASK")).encode(), check=False, capture_output=True
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    "environment",
    [{}, {"HOME": "/nowhere"}, {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"}, {"SHLVL": ""}, {"TZ": "x" * 4000}],
)
def test_an_odd_environment_changes_nothing(hook: Run, environment: dict[str, str]) -> None:
    assert hook(claude("echo gh-deny"), env=environment).status == 2
    assert hook(claude("ls"), env=environment).silent


def test_stdin_that_never_closes_is_judged_once_it_is_whole(place: Path) -> None:
    command = [sys.executable, "-m", "guardhook", "hook", "PreToolUse", "--enforce", "--dir", str(place)]
    for text, expected in ((json.dumps(claude("GH-DENY")), 2), (json.dumps(claude("ls")), 0), ("{", 2), ("", 2)):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        process.stdin.write(text.encode())
        process.stdin.flush()
        started = time.monotonic()
        status = process.wait(timeout=20)
        process.stdin.close()
        assert status == expected
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("largest", [0, 100])
def test_a_journal_that_may_not_grow_is_told_as_that(place: Path, hook: Run, largest: int) -> None:
    """Where the interpreter leaves SIGXFSZ as it is, the signal ended the hook before it could say why."""
    hook(claude("ls"))  # compile first: the compiler writes too
    code = (
        "import signal, resource, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({largest}, {largest}))\n"
        "from guardhook.gate.hook import main\n"
        f"main(['hook', 'PreToolUse', '--enforce', '--dir', {str(place)!r}, *sys.argv[1:]])\n"
    )

    def run(*more: str) -> subprocess.CompletedProcess[bytes]:
        payload = json.dumps(claude("ls")).encode()
        return subprocess.run([sys.executable, "-c", code, *more], input=payload, capture_output=True, timeout=60)

    blocked = run()
    assert blocked.returncode == 2 and b"can't be recorded" in blocked.stderr and b"too large" in blocked.stderr
    assert run("--allow-empty").returncode == 0


@pytest.mark.parametrize("text", ["", "config=x\n", "junk", "config=/a\ndata=/b\n"])
def test_a_damaged_folders_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "folders").write_text(text)
    code = (
        "from guardhook.gate import hook\n"
        f"hook.PROGRAM = {str(tmp_path)!r}\n"
        "hook.main(['hook', 'PreToolUse', '--enforce', '--dialect', 'claude-code'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(claude("ls")).encode(), capture_output=True, timeout=60
    )
    assert done.returncode == 2 and b"file `folders`" in done.stderr and b"guardhook install" in done.stderr


def test_the_watchdog_says_how_long_it_waited(place: Path, hook: Run) -> None:
    (place / "config.toml").write_text("[gate]\nwatchdog = 0.5\n")
    assert hook(claude("ls")).silent
    code = (
        "import time\n"
        "from guardhook.gate import judge\n"
        "judge.decide = lambda *given, **more: time.sleep(60)\n"
        "from guardhook.gate.hook import main\n"
        f"main(['hook', 'PreToolUse', '--enforce', '--dir', {str(place)!r}])\n"
    )
    payload = json.dumps(claude("ls")).encode()
    done = subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True, timeout=50)
    assert done.returncode == 2 and b"no verdict within 0.5 seconds" in done.stderr


def test_a_blocked_alarm_does_not_stop_the_clock(place: Path) -> None:
    command = [sys.executable, "-m", "guardhook", "hook", "PreToolUse", "--enforce", "--dir", str(place)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM,)) and None,
    )
    try:
        assert process.wait(timeout=20) == 2
    finally:
        process.kill()
        assert process.stdin is not None
        process.stdin.close()


INJECT = """
import os, sys
sys.argv = ["guardhook"]
from guardhook.__main__ import hook
from guardhook.gate import hook as gate
from guardhook.policy import compiled, match
from guardhook.journal import write, redact
from guardhook.dialects import claude_code, table
payload = sys.stdin.buffer.read()
folder, most, stride = os.environ["GH_DIR"], int(os.environ["GH_MOST"]), int(os.environ["GH_STRIDE"])
argv = ["hook", "PreToolUse", "--enforce", "--dialect", "claude-code", "--dir", folder]
bad, reached = [], 0
def recorded():
    found = 0
    for place, _, names in os.walk(folder + "/journal"):
        for name in names:
            if name.endswith(".jsonl"):
                with open(place + "/" + name, "rb") as stream:
                    found += stream.read().count(b"\\n")
    return found
lines = recorded()
for number in range(0, most, stride):
    read, write_end = os.pipe()
    os.write(write_end, payload)
    os.close(write_end)
    pid = os.fork()
    if pid == 0:
        os.dup2(read, 0)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        count = 0
        def trace(frame, kind, value):
            global count
            if "guardhook/" not in frame.f_code.co_filename or "__main__" in frame.f_code.co_filename:
                return None
            # The last act writes with two system calls; an exception between them is covered by the launcher.
            if kind == "line":
                count += 1
                if count == number:
                    sys.settrace(None)
                    raise MemoryError("injected")
            return trace
        sys.settrace(trace)
        try:
            hook(argv)
        finally:
            os._exit(99)
    os.close(read)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    before, lines = lines, recorded()
    # A harmless call may pass after all where the fault was overcome: then it is on record.
    if status != 2 and not (b"GH-DENY" not in payload and status == 0 and lines > before):
        bad.append((number, status))
print(len(range(0, most, stride)), bad)
sys.exit(1 if bad else 0)
"""


@pytest.mark.parametrize(("command", "offset"), [*(("echo GH-DENY", n) for n in range(4)), ("ls", 0), ("ls", 2)])
def test_an_exception_at_any_line_blocks(place: Path, hook: Run, command: str, offset: int) -> None:
    hook(claude("ls"))  # compile first: what is injected into is the gate
    environment = {**os.environ, "GH_DIR": str(place), "GH_MOST": str(1600 + offset), "GH_STRIDE": "4"}
    done = subprocess.run(
        [sys.executable, "-c", INJECT.replace("range(0, most", f"range({offset}, most")],
        input=json.dumps(claude(command)).encode(),
        capture_output=True,
        env=environment,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_a_call_that_only_the_recording_fails_for_is_blocked(place: Path) -> None:
    """Judged harmless, then the recorder breaks: before, the call passed and left no trace."""
    code = (
        "import sys\n"
        "from guardhook.gate import record\n"
        "def broken(*a, **k): raise RecursionError\n"
        "record.data_of = broken\n"
        "from guardhook.gate.hook import main\n"
        f"main(['hook', 'PreToolUse', '--enforce', '--dir', {str(place)!r}, *sys.argv[1:]])\n"
    )

    def run(*more: str) -> int:
        payload = json.dumps(claude("ls")).encode()
        command = [sys.executable, "-c", code, *more]
        return subprocess.run(command, input=payload, capture_output=True, check=False, timeout=60).returncode

    assert run() == 2
    assert run("--allow-empty") == 0


@pytest.mark.parametrize("prompt", [None, 7, ["GH-DENY"], {"text": "GH-DENY"}])
def test_a_prompt_that_is_no_text_is_blocked(hook: Run, prompt: object) -> None:
    payload = claude("x", "UserPromptSubmit", prompt=prompt)
    for key in ("tool_name", "tool_input", "tool_use_id"):
        del payload[key]
    assert hook(payload, "UserPromptSubmit", "--dialect", "claude-code").status == 2


@pytest.mark.parametrize("event", ["PostToolUse", "Stop", "SessionEnd", "Notification", "UserPromptSubmit"])
def test_a_call_in_the_guise_of_another_event_is_judged(hook: Run, event: str) -> None:
    """What is registered for calls and told of something else is still a call that is about to happen."""
    payload = claude("echo GH-DENY", event, prompt="hello")
    for registered in ("PreToolUse", "PermissionRequest"):
        out = hook(payload, registered, "--dialect", "claude-code")
        assert out.status == 2 and registered.encode() in out.stdout
    assert hook(codex("echo GH-DENY", "PostToolUse"), "PreToolUse", "--dialect", "codex").status == 2


@pytest.mark.parametrize("name", [["Bash"], 7, {"a": "b"}, "", True])
def test_an_unknown_event_with_an_odd_tool_name_is_blocked(hook: Run, name: object) -> None:
    assert hook(claude("ls", "BeforeAnything", tool_name=name), "--dialect", "claude-code").status == 2


def test_faults_leave_a_trace(hook: Run, place: Path) -> None:
    hook(b"garbage", "PreToolUse", "--dialect", "claude-code")
    (line,) = lines(place)
    assert line["data"]["verdict"]["cause"] == "payload"  # type: ignore[index]


def test_a_fault_while_only_watching_is_recorded_as_no_block(place: Path) -> None:
    """The record said that the call was blocked, and `show` that it ran although it was."""
    code = (
        "import sys\n"
        "from guardhook.gate import record\n"
        "real = record.data_of\n"
        "def broken(*a, **k):\n"
        "    record.data_of = real\n"
        "    raise RuntimeError\n"
        "record.data_of = broken\n"
        "from guardhook.gate.hook import main\n"
        f"main(['hook', 'PreToolUse', '--dir', {str(place)!r}])\n"
    )
    command = [sys.executable, "-c", code]
    payload = json.dumps(claude("ls")).encode()
    done = subprocess.run(command, input=payload, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (line,) = lines(place)
    verdict = line["data"]["verdict"]  # type: ignore[index]
    assert (verdict["action"], verdict["mode"]) == ("deny", "observe")
