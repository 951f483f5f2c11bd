"""run: a program with a trace around it, with real processes, and at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from record_rig import command, environment, guardhook, only, opened, until

from guardhook import __main__, commands
from guardhook.core.folders import explicit
from guardhook.intake import child
from guardhook.intake import run as run_module
from guardhook.intake.channel import Channel
from guardhook.store import Appender

PYTHON = sys.executable


def say(*events: dict[str, object]) -> str:
    """A shell command that appends events to the channel."""
    lines = " ".join(f"'{json.dumps(event)}'" for event in events)
    return f"printf '%s\\n' {lines} >> \"$GUARDHOOK_EVENTS\"; "


def step(number: int, **more: object) -> dict[str, object]:
    return {"type": "step", "step_number": number, "step_type": "thought", "name": f"n{number}", **more}


def end(**more: object) -> dict[str, object]:
    return {"type": "trace_end", **more}


def run(tmp_path: Path, *words: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    return guardhook(tmp_path, "run", "--dir", str(tmp_path / "d"), *words, stdin=stdin, **more)


def sh(tmp_path: Path, script: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return run(tmp_path, "--", "sh", "-c", script, **more)


def here(tmp_path: Path, script: str, warn: Callable[[str], None] = print) -> run_module.Run:
    """The same without the command, in this process."""
    words = ["sh", "-c", script]
    folders = explicit(str(tmp_path / "d"))
    return run_module.Run(folders, words, agent=None, tags=(), root=None, redaction="redacted", warn=warn)


@pytest.mark.parametrize(
    ("script", "code", "status", "error"),
    [
        ("exit 0", 0, "completed", None),
        ("exit 3", 3, "failed", "child exited with code 3"),
        ("kill -9 $$", 137, "failed", "child killed by SIGKILL (exit 137)"),
        ("kill -TERM $$", 143, "failed", "child killed by SIGTERM (exit 143)"),
        (say(end()) + "exit 3", 3, "failed", "child exited with code 3"),
        (say(end(status="ok")), 0, "completed", None),
        (say(end(status="success", error="e")), 0, "completed", "e"),
        (say(end(status="error")), 0, "failed", None),
        (say(end(status="unreadable")), 0, "completed", None),
        (say(end(status="unreadable")) + "exit 1", 1, "failed", "child exited with code 1"),
        (say(end(status="running")), 0, "completed", None),
        (say(end(status="timeout")), 0, "timeout", None),
        (say(end(status="completed")) + "exit 7", 7, "completed", None),
    ],
)
def test_how_the_program_ended(tmp_path: Path, script: str, code: int, status: str, error: str | None) -> None:
    outcome = here(tmp_path, script).go(grace=None, directory=None)
    assert outcome.code == code
    trace, _ = only(tmp_path / "d")
    assert (trace.status, trace.error, trace.metadata["exit_code"]) == (status, error, code)
    assert trace.total_duration_ms is not None and trace.ended_at is not None


@pytest.mark.parametrize(("status", "told"), [("completed", "ended with 7"), ("failed", "failed, 1 event(s) recorded")])
def test_the_exit_status_and_the_last_line(tmp_path: Path, status: str, told: str) -> None:
    done = sh(tmp_path, say(end(status=status)) + "exit 7")
    assert done.returncode == 7
    last = done.stderr.decode().splitlines()[-1]
    assert only(tmp_path / "d")[0].id[:12] in last and status in last and told in last


def test_the_trace(tmp_path: Path) -> None:
    done = run(tmp_path, "--agent", "me", "--tags", "a,b", "--", "sh", "-c", "exit 0", "x y")
    assert done.returncode == 0
    trace, _ = only(tmp_path / "d")
    assert (trace.agent_name, trace.trigger, trace.tags) == ("me", "manual", ["a", "b"])
    assert trace.input == {"command": "sh", "args": ["-c", "exit 0", "x y"]}


def test_events_of_the_program(tmp_path: Path) -> None:
    script = say(
        {"type": "trace_start", "agent_name": "other", "trace_id": "theirs"}, step(1, trace_id="theirs"), step(2, output="é\x1b"),
        {"type": "step_start", "step_number": 3, "step_type": "tool_call", "name": "open"}, {"type": "nonsense"}, step(2),
        end(output={"o": 1}, total_tokens=5, total_duration_ms=42), step(4),
    ) + "printf 'no json\\n// fine\\n\\n' >> \"$GUARDHOOK_EVENTS\"; printf '%s' '" + json.dumps(step(5)) + "' >> \"$GUARDHOOK_EVENTS\""  # fmt: skip
    done = sh(tmp_path, script)
    trace, steps = only(tmp_path / "d")
    assert trace.agent_name == "sh" and [s.step_number for s in steps] == [1, 2, 3, 4, 5]
    assert steps[1].output == "é\x1b" and steps[2].metadata["interrupted"] is True
    assert (trace.status, trace.output, trace.total_tokens, trace.total_duration_ms) == ("completed", {"o": 1}, 5, 42)
    assert b"line 5: skipped" in done.stderr and b"no step" not in done.stderr
    assert b"5 event(s) recorded, 3 not stored" in done.stderr.splitlines()[-1]


def test_steps_can_be_seen_while_the_program_runs(tmp_path: Path) -> None:
    script = say(step(1)) + "while [ ! -e go ]; do sleep 0.05; done"
    process = subprocess.Popen(
        command("run", "--dir", str(tmp_path / "d"), "--", "sh", "-c", script), cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:

        def seen() -> bool:
            if not (tmp_path / "d" / "journal").exists():
                return False
            with opened(tmp_path / "d") as store:
                page = store.traces()
                return bool(page.items) and (page.items[0].status, page.items[0].step_count) == ("running", 1)

        until(seen)
    finally:
        (tmp_path / "go").touch()
        assert process.wait(30) == 0


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "no-such-program-\x1b[31m", "x")
    assert done.returncode == 127 and b"No such file" in done.stderr and b"\x1b" not in done.stderr
    trace, _ = only(tmp_path / "d")
    assert trace.status == "failed" and "No such file" in str(trace.error) and trace.metadata["exit_code"] == 127
    assert run(tmp_path, "--", str(tmp_path)).returncode == 127  # a folder


def test_a_script_without_an_interpreter_line_is_the_shells(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit 5\n")
    script.chmod(0o755)
    assert run(tmp_path, "--", str(script)).returncode == 5


def test_nothing_runs_without_its_trace(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("a file where the folder should be")
    done = sh(tmp_path, f"touch {tmp_path}/ran")
    assert done.returncode == 1 and b"was not started" in done.stderr and not (tmp_path / "ran").exists()


def test_trouble_with_the_journal_changes_no_exit_status(tmp_path: Path) -> None:
    done = sh(
        tmp_path,
        say(step(1))
        + 'sleep 0.5; rm -r "$GUARDHOOK_DIR/journal"; : > "$GUARDHOOK_DIR/journal"; '
        + say(step(2))
        + "exit 6",
    )
    assert done.returncode == 6 and b"could not be stored" in done.stderr and b"Traceback" not in done.stderr
    assert b"not stored" in done.stderr.splitlines()[-1]


def test_a_program_that_floods_the_events_file_does_not_flood_the_terminal(tmp_path: Path) -> None:
    done = sh(tmp_path, 'yes nonsense | head -n 2000 >> "$GUARDHOOK_EVENTS"')
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 22
    assert b"2,000 not stored" in done.stderr.splitlines()[-1]


def test_usage(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 2
    assert run(tmp_path, "--").returncode == 2
    assert run(tmp_path, "--nope", "--", "true").returncode == 2
    assert not (tmp_path / "d").exists()
    assert run(tmp_path, "true", "--version").returncode == 0  # options behind the command are the command's


def test_streams_arguments_and_descriptors_are_the_callers(tmp_path: Path) -> None:
    read, write = os.pipe()
    code = f"import os,sys; d=sys.stdin.buffer.read(); os.write(1, d[::-1]); os.write(2, b'err'); os.write({write}, b'more'); print(sys.argv[1:])"
    try:
        done = subprocess.run(
            command("run", "--quiet", "--dir", str(tmp_path / "d"), "--", PYTHON, "-c", code, "--dir", "--", "ü"),
            input=bytes(range(256)), capture_output=True, env=environment(tmp_path), timeout=60, pass_fds=(write,), check=False,
        )  # fmt: skip
        assert done.stdout.startswith(bytes(range(256))[::-1]) and done.stderr == b"err"
        assert done.stdout.decode("latin-1").endswith("['--dir', '--', '\xc3\xbc']\n")
        assert os.read(read, 10) == b"more"
    finally:
        os.close(read)
        os.close(write)


def test_what_the_program_finds_in_its_environment(tmp_path: Path) -> None:
    show = 'echo "$GUARDHOOK_TRACE_ID|$GUARDHOOK_DIR|$GUARDHOOK_EVENTS"; ls -l "$GUARDHOOK_EVENTS"; ls -ld "${GUARDHOOK_EVENTS%/*}"'
    out = sh(tmp_path, show, TMPDIR=str(tmp_path)).stdout.decode().splitlines()
    trace, folder, events = out[0].split("|")
    assert (trace, folder) == (only(tmp_path / "d")[0].id, str(tmp_path / "d"))
    assert out[1].startswith("-rw-------") and out[2].startswith("drwx------")
    assert not Path(events).parent.exists()
    assert sh(tmp_path, "env | grep -c '^GUARDHOOK_DIR='", GUARDHOOK_DIR="").stdout == b"1\n"
    plain = guardhook(tmp_path, "run", "--", "sh", "-c", show)
    assert plain.stdout.decode().split("|")[1] == ""


def test_a_record_inside_goes_to_the_same_store_and_leaves_the_trace_running(tmp_path: Path) -> None:
    record = f"{PYTHON} -m guardhook record >&2"
    line = json.dumps(step(1)).replace('"type"', '"trace_id": "\'$GUARDHOOK_TRACE_ID\'", "type"')
    done = sh(tmp_path, f"printf '%s\\n' '{line}' | {record}; exit 4")
    assert done.returncode == 4, done.stderr
    trace, steps = only(tmp_path / "d")
    assert (trace.status, [s.name for s in steps]) == ("failed", ["n1"])


def test_an_end_that_a_record_inside_told_is_kept(tmp_path: Path) -> None:
    line = '{"type": "trace_end", "status": "failed", "error": "inside", "trace_id": "\'$GUARDHOOK_TRACE_ID\'"}'
    assert sh(tmp_path, f"printf '%s\\n' '{line}' | {PYTHON} -m guardhook record >&2").returncode == 0
    trace, _ = only(tmp_path / "d")
    assert (trace.status, trace.error, trace.metadata["exit_code"]) == ("failed", "inside", 0)


# --- the channel -------------------------------------------------------------------------------------------------------


def test_the_channel_gives_complete_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "events"
    warnings: list[str] = []
    channel = Channel(str(path), warnings.append)
    assert list(channel.lines()) == [] and list(channel.lines()) == [] and len(warnings) == 1
    body = "é\nnext\nla".encode()
    path.write_bytes(body[:1])
    assert list(channel.lines()) == []
    path.write_bytes(body)
    assert list(channel.lines()) == ["é".encode(), b"next"] and channel.number == 2
    with path.open("ab") as file:
        file.write(b"st")
    assert list(channel.lines()) == [] and list(channel.lines(last=True)) == [b"last"] and len(warnings) == 1


@pytest.mark.parametrize("new", [b"x\n", b"other line\nmore\n"])
def test_a_channel_that_was_rewritten_is_told_and_goes_on_from_its_end(tmp_path: Path, new: bytes) -> None:
    path = tmp_path / "events"
    warnings: list[str] = []
    channel = Channel(str(path), warnings.append)
    path.write_bytes(b"first line\nhalf")
    assert list(channel.lines()) == [b"first line"]
    path.write_bytes(new)
    assert list(channel.lines()) == [] and "rewritten" in warnings[0]
    with path.open("ab") as file:
        file.write(b"new\n")
    assert list(channel.lines()) == [b"new"] and len(warnings) == 1


def test_a_channel_that_is_something_else_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "events"
    (tmp_path / "secret").write_text("line\n")
    for make in (lambda: path.symlink_to(tmp_path / "secret"), lambda: os.mkfifo(path), path.mkdir):
        warnings: list[str] = []
        channel = Channel(str(path), warnings.append)
        make()
        assert list(channel.lines()) == [] and list(channel.lines(last=True)) == [] and len(warnings) == 1
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_what_a_program_leaves_behind_is_not_held_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "CHUNK", 100_000)
    puts: list[int] = []
    put = Appender.put

    def counted(self: Appender, trace: str, lines: list[tuple[str, dict[str, object]]], **how: Any) -> None:
        puts.append(len(lines))
        put(self, trace, lines, **how)

    monkeypatch.setattr(Appender, "put", counted)
    (tmp_path / "events").write_text("".join(json.dumps(step(n, output="x" * 30_000)) + "\n" for n in range(1, 61)))
    wrapped = here(tmp_path, f'cat {tmp_path}/events > "$GUARDHOOK_EVENTS"')
    assert wrapped.go(grace=None, directory=None).events == 60
    assert max(puts) < 6 and len(only(tmp_path / "d")[1]) == 60


# --- signals -----------------------------------------------------------------------------------------------------------

TRAP = """
import os, signal, sys, time
got = []
for name in ("INT", "TERM", "HUP", "QUIT", "ALRM"):
    signal.signal(getattr(signal, "SIG" + name), lambda n, f: (got.append(n), os.write(1, f"got {n}\\n".encode())))
os.write(1, f"ready {os.getpid()}\\n".encode())
while not os.path.exists("stop"):
    time.sleep(0.02)
sys.exit(len(got))
"""


def usual_signals() -> None:
    """Whoever runs the tests may ignore signals (nohup, a job in the background), and `run` keeps what it was given."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)


class Started:
    """`guardhook run` of a Python program, in a process group of its own, with what it printed."""

    def __init__(self, tmp_path: Path, code: str, *words: str, **more: object) -> None:
        more.setdefault("preexec_fn", usual_signals)
        self.process = subprocess.Popen(
            command("run", "--dir", str(tmp_path / "d"), *words, "--", PYTHON, "-c", code), cwd=tmp_path, env=environment(tmp_path),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0, **more,  # type: ignore[call-overload]
        )  # fmt: skip
        self.out = b""
        self.limit = threading.Timer(60, self.process.kill)  # a line that never comes fails a test, and hangs none
        self.limit.daemon = True
        self.limit.start()
        self.child = int(self.line("ready").split()[1])

    def line(self, start: str) -> str:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, (self.out, self.process.stderr and self.process.stderr.read())
            self.out += line
            if line.decode().startswith(start):
                return line.decode()

    def over(self) -> int:
        out, self.err = self.process.communicate(timeout=30)
        self.limit.cancel()
        self.out += out
        return self.process.returncode


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGALRM])
def test_signals_to_the_wrapper_are_passed_on_once(tmp_path: Path, number: signal.Signals) -> None:
    started = Started(tmp_path, TRAP, "--grace", "0")
    os.kill(started.process.pid, number)
    assert started.line("got") == f"got {number.value}\n"
    (tmp_path / "stop").touch()
    assert started.over() == 1
    assert only(tmp_path / "d")[0].metadata["exit_code"] == 1


def test_a_program_that_goes_on_after_sigterm_is_killed(tmp_path: Path) -> None:
    started = Started(tmp_path, TRAP, "--grace", "0.3")
    os.kill(started.process.pid, signal.SIGTERM)
    assert started.over() == 137 and b"got 15" in started.out
    trace, _ = only(tmp_path / "d")
    assert (trace.status, trace.metadata["signal"]) == ("failed", "SIGKILL")


def test_a_wrapper_that_was_stopped_for_a_while_goes_on(tmp_path: Path) -> None:
    """Stopped longer than a look takes, at whatever it did just then: no signal is made up, and none is lost."""
    started = Started(tmp_path, TRAP, "--grace", "0")
    for _ in range(4):
        os.kill(started.process.pid, signal.SIGSTOP)
        time.sleep(child.POLL_SECONDS * 1.2)
        os.kill(started.process.pid, signal.SIGCONT)
        time.sleep(0.02)
    os.kill(started.process.pid, signal.SIGTERM)
    assert started.line("got") == "got 15\n"
    (tmp_path / "stop").touch()
    assert started.over() == 1, started.err  # as many as it got


def test_signal_settings_are_the_callers(tmp_path: Path) -> None:
    code = "import os,signal; os.write(1, f'ready {os.getpid()} {signal.getsignal(signal.SIGHUP)!r} {signal.pthread_sigmask(signal.SIG_BLOCK, [])}\\n'.encode())"
    started = Started(tmp_path, code, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert started.over() == 0
    assert b"SIG_IGN" in started.out and started.out.rstrip().endswith(b"set()")
    assert sh(tmp_path, "kill -PIPE $$").returncode == 128 + signal.SIGPIPE  # which Python ignores


def test_a_wrapper_that_is_killed_leaves_a_running_trace(tmp_path: Path) -> None:
    started = Started(tmp_path, TRAP)
    os.kill(started.process.pid, signal.SIGKILL)
    assert started.process.wait(30) == -9
    started.limit.cancel()
    os.kill(started.child, 0)  # the program goes on
    assert only(tmp_path / "d")[0].status == "running"
    (tmp_path / "stop").touch()


def test_where_signals_can_not_be_asked_for_they_are_handled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of systems that do not tell who sent a signal, in this process."""

    @contextlib.contextmanager
    def handled(numbers: list[int]) -> Iterator[child._Handled]:
        inbox = child._Handled(set(numbers))
        try:
            yield inbox
        finally:
            inbox.close()

    monkeypatch.setattr(child, "_inbox", handled)
    monkeypatch.chdir(tmp_path)
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    sent: list[int] = []

    def tick() -> None:
        if len(sent) < 2 and Path("ready").exists():
            sent.append(signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)

    code = "import signal,sys,time; signal.signal(15, signal.SIG_IGN); open('ready','w').close(); time.sleep(60)"
    ended, seconds = child.run([PYTHON, "-c", code], dict(os.environ), grace=0.3, tick=tick)
    assert (ended.code, ended.signal) == (137, "SIGKILL") and seconds > 0
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)] == before
    with pytest.raises(child.NotStarted, match="No such file"):
        child.run(["/no/such/program"], {}, grace=None, tick=lambda: None)


def test_a_caller_that_ignores_the_ends_of_its_children(tmp_path: Path) -> None:
    done = subprocess.run(
        command("run", "--dir", str(tmp_path / "d"), "--", "sh", "-c", "exit 5"), env=environment(tmp_path), timeout=60, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), capture_output=True,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert only(tmp_path / "d")[0].metadata["exit_code"] == 5


def test_a_signal_that_comes_when_the_program_has_ended_changes_nothing(tmp_path: Path) -> None:
    """Such as a second Ctrl-C: the status to pass on is the program's."""
    code = (
        "import os, sys; from guardhook.intake import child\n"
        "ended, _ = child.run(['sh', '-c', 'exit 9'], dict(os.environ), grace=None, tick=lambda: None, last=True)\n"
        "for number in (2, 15, 1, 3): os.kill(os.getpid(), number)\n"
        "sys.exit(ended.code)"
    )
    assert subprocess.run([PYTHON, "-c", code], env=environment(tmp_path), timeout=60, check=False).returncode == 9


def test_without_room_for_an_events_file_the_program_runs_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_module.tempfile, "mkdtemp", full)
    monkeypatch.setenv("GUARDHOOK_EVENTS", "of-another-wrapper")
    warnings: list[str] = []
    wrapped = here(tmp_path, 'test -z "$GUARDHOOK_EVENTS" && exit 6', warnings.append)
    assert wrapped.go(grace=None, directory=None).code == 6 and "No space left" in warnings[0]
    assert only(tmp_path / "d")[0].status == "failed"


def test_ctrl_c_before_a_command_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(words: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "main", interrupted)
    with pytest.raises(SystemExit) as end:
        __main__.run(["run", "--", "true"])
    assert end.value.code == 130


# --- at a terminal -------------------------------------------------------------------------------------------------------


class Terminal:
    """A shell with job control in a session of its own, on a pseudo-terminal."""

    def __init__(self, tmp_path: Path) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(tmp_path)
            env = {**environment(tmp_path), "PS1": "", "TERM": "dumb", "GUARDHOOK_DIR": str(tmp_path / "d")}
            os.execvpe("bash", ["bash", "--norc", "--noediting", "-i"], env)
        self.screen = ""
        self.type("stty -echo; bind -v 2>/dev/null | tail -0; echo rea''dy\n")
        self.wait("ready")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait(self, pattern: str) -> re.Match[str]:
        """Waits for a pattern on the screen, and forgets what stood before its end."""
        deadline = time.monotonic() + 30
        while not (match := re.search(pattern, self.screen)):
            assert time.monotonic() < deadline, self.screen
            if select.select([self.master], [], [], 0.1)[0]:
                self.screen += os.read(self.master, 65536).decode("utf-8", "replace")
        self.screen = self.screen[match.end() :]
        return match

    def close(self) -> None:
        os.close(self.master)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(tmp_path: Path) -> object:
    made = Terminal(tmp_path)
    yield made
    made.close()


def wrapped(code: str) -> str:
    return " ".join([*command("run"), "--", PYTHON, code]) + '; echo "status:$?"\n'


def test_a_terminal_stays_one_and_the_group_stays_the_same(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "p.py").write_text(
        "import os; print('tty', [os.isatty(n) for n in (0, 1, 2)], os.tcgetpgrp(0) == os.getpgrp() == os.getpgid(os.getppid()), os.ttyname(0).startswith('/dev/'))"
    )
    terminal.type(wrapped("p.py"))
    terminal.wait(r"tty \[True, True, True\] True True")
    terminal.wait("status:0")


def test_ctrl_c_reaches_the_program_once(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "p.py").write_text(TRAP)
    terminal.type(wrapped("p.py"))
    terminal.wait("ready")
    terminal.type("\x03")
    terminal.wait("got 2")
    (tmp_path / "stop").touch()
    terminal.wait("status:1")  # as many as it got
    assert only(tmp_path / "d")[0].metadata["exit_code"] == 1


def test_ctrl_c_on_a_program_without_a_handler(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "p.py").write_text(
        "import signal,time; signal.signal(2, signal.SIG_DFL); print('ready', flush=True); time.sleep(60)"
    )
    terminal.type(wrapped("p.py"))
    terminal.wait("ready")
    terminal.type("\x03")
    terminal.wait("status:130")
    assert only(tmp_path / "d")[0].metadata["signal"] == "SIGINT"


def test_ctrl_z_and_fg(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "p.py").write_text(TRAP)
    terminal.type(wrapped("p.py"))
    terminal.wait("ready")
    terminal.type("\x1a")
    terminal.wait("Stopped")
    terminal.type("fg\n")
    terminal.wait("p.py")
    (tmp_path / "stop").touch()
    terminal.type("echo aft''er\n")
    terminal.wait("after")
    terminal.type("jobs; echo jobs''-end\n")
    terminal.wait("jobs-end")
    until(lambda: only(tmp_path / "d")[0].status == "completed")


def test_a_program_that_stops_itself(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "p.py").write_text(
        "import os,signal; print('ready', flush=True); os.kill(os.getpid(), signal.SIGTSTP); print('on', flush=True)"
    )
    terminal.type(wrapped("p.py"))
    terminal.wait("ready")
    terminal.wait("Stopped")
    terminal.type("fg\n")
    terminal.wait("\\bon\\b")
    until(lambda: only(tmp_path / "d")[0].status == "completed")
