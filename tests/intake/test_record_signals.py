"""record while it runs: what can be seen of a stream under way, and how it is ended from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from record_rig import STREAMS, command, environment, only, opened, until

START = {"type": "trace_start", "trace_id": "t1", "agent_name": "bot"}
STEP = {"type": "step_start", "trace_id": "t1", "step_number": 1, "step_type": "tool_call", "name": "Bash"}


class Live:
    """`guardhook record` at the end of a pipe that stays open."""

    def __init__(self, tmp_path: Path, *words: str) -> None:
        self.data = tmp_path / "d"
        self.process = subprocess.Popen(
            command("record", "--json", *words, "--dir", str(self.data)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(tmp_path),
        )  # fmt: skip

    def say(self, *lines: object, end: str = "\n") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join((x if isinstance(x, str) else json.dumps(x)) + end for x in lines).encode())
        self.process.stdin.flush()

    def seen(self, steps: int) -> bool:
        if not (self.data / "journal").exists():
            return False
        with opened(self.data) as store:
            page = store.traces()
            return bool(page.items) and page.items[0].step_count == steps

    def over(self) -> tuple[int, dict[str, object]]:
        out, err = self.process.communicate(timeout=30)
        assert b"Traceback" not in err
        found = json.loads(out)
        assert isinstance(found, dict)
        return self.process.returncode, found


def test_a_trace_can_be_followed_while_its_stream_is_open(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.say(START, STEP)
    until(lambda: live.seen(1))
    assert only(live.data)[0].status == "running"
    live.say({"type": "trace_end", "trace_id": "t1"})
    code, found = live.over()
    assert (code, found["finalized_as_timeout"], only(live.data)[0].status) == (0, 0, "completed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_ends_the_recording_at_once(tmp_path: Path, number: signal.Signals) -> None:
    live = Live(tmp_path)
    live.say(START, STEP, '{"type": "trace_e')
    until(lambda: live.seen(1))
    os.kill(live.process.pid, number)
    os.kill(live.process.pid, signal.SIGTERM if number != signal.SIGTERM else signal.SIGINT)
    live.process.wait(30)  # with its stdin open
    code, found = live.over()
    assert code in (128 + number, 128 + signal.SIGTERM, 128 + signal.SIGINT) and found["finalized_as_timeout"] == 1
    trace, (step,) = only(live.data)
    assert trace.status == "timeout" and "stopped by SIG" in str(trace.metadata["finalized"])
    assert step.metadata["interrupted"] is True


def test_after_one_signal_the_producer_may_say_its_last_words(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.say(START, STEP)
    until(lambda: live.seen(1))
    os.kill(live.process.pid, signal.SIGINT)
    live.say({"type": "trace_end", "trace_id": "t1", "status": "cancelled"})
    code, _ = live.over()
    assert (code, only(live.data)[0].status) == (0, "failed")


def test_silence_after_a_signal_ends_the_recording(tmp_path: Path) -> None:
    live = Live(tmp_path, "--format", "codex-exec")
    live.say((STREAMS / "codex-exec-json.sample.jsonl").read_text().partition('{"type":"turn.completed"')[0], end="")
    until(lambda: live.seen(10))
    os.kill(live.process.pid, signal.SIGTERM)
    assert live.process.wait(30) == 128 + signal.SIGTERM
    assert only(live.data)[0].status == "timeout"
    live.over()


def test_a_recording_that_is_killed_leaves_a_running_trace(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.say(START, STEP)
    until(lambda: live.seen(1))
    live.process.kill()
    live.process.communicate(timeout=30)
    assert only(live.data)[0].status == "running"
    with opened(live.data) as store:
        assert store.problems() == []


def test_times_of_reading_are_times_of_the_run_only_while_it_runs(tmp_path: Path) -> None:
    with (STREAMS / "codex-exec-json.sample.jsonl").open("rb") as file:
        subprocess.run(
            command("record", "--format", "codex-exec", "--dir", str(tmp_path / "d")), stdin=file, env=environment(tmp_path), check=True,
            stdout=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip
    trace, steps = only(tmp_path / "d")
    assert trace.effective_duration_ms is None and {s.duration_ms for s in steps} == {None}
