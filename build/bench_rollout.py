"""How long rollouts take: loading and verifying a file of 100,000 events, rendering, and drift over 10,000 recorded calls.

    python build/bench_rollout.py [--events 100000] [--calls 10000]

Each figure is that of a process of its own, started once; peak memory is the process's own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "store"))

TARGETS = {"load": 2.5, "verify": 4.0, "drift": 15.0}
LOAD_MB = 400


def journal(base: Path, calls: int, prefix: str) -> None:
    """A recorded session: each call judged and with its result, a prompt for every hundred."""
    from store_rig import SESSION, Journal, event

    made = Journal(base)
    verdict = {
        "action": "allow", "policy": None, "layer": None, "reason": "", "span": None, "set": "s", "mode": "enforce", "cause": "policy", "degraded": None,
        "us": 90, "answer": {"exit": 0, "stdout": "", "stderr": ""},
    }  # fmt: skip
    common = {
        "transcript_path": f"/home/user/.claude/projects/p/{SESSION}.jsonl",
        "cwd": "/home/user/project",
        "permission_mode": "default",
    }
    path = made.path()
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for number in range(calls):
            if number % 100 == 0:
                file.write(
                    made.bytes_of(
                        event("user_prompt", prompt=f"Please do part {number} of the work.", **common), step=0.001
                    )
                )
            given = {
                "command": f"{prefix} -la src/module_{number} && grep -n 'def ' src/file_{number}.py",
                "description": "look",
            }
            call = f"toolu_{number:08d}"
            file.write(
                made.bytes_of(
                    event("pre_tool", tool="Bash", given=given, call=call, verdict=verdict, tool_use_id=call, **common),
                    step=0.001,
                )
            )
            answer = {
                "stdout": f"total {number}\n" + "drwxr-xr-x 2 user user 4096 Jan 1 00:00 name\n" * 5,
                "stderr": "",
                "interrupted": False,
            }
            file.write(
                made.bytes_of(
                    event(
                        "post_tool",
                        tool="Bash",
                        given=given,
                        call=call,
                        tool_use_id=call,
                        tool_response=answer,
                        **common,
                    ),
                    step=0.001,
                )
            )


def file_of(base: Path, path: Path, events: int) -> int:
    """The first so many events of the session's rollout, as a file."""
    from store_rig import SESSION

    from guardhook.core.folders import explicit
    from guardhook.rollout.export import lines
    from guardhook.rollout.render import render
    from guardhook.rollout.runs import find

    folders = explicit(str(base))
    count = 0
    with path.open("wb") as file:
        for raw in lines(render(folders, find(folders, SESSION))):
            if count == events:
                break
            file.write(raw)
            count += 1
    return count


CHILD = """
import resource, sys, time
started = time.perf_counter()
{code}
took = time.perf_counter() - started
print(f"{{took:.3f}} {{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}}")
"""


def child(code: str) -> tuple[float, float]:
    """Seconds (imports included) and MiB of Python code in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(code=code)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    seconds, size = done.stdout.split()[-2:]
    return float(seconds), float(size)


def command(*words: str, status: tuple[int, ...] = (0,)) -> tuple[float, str]:
    """Seconds of a command, from start to end, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "guardhook", *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    took = time.perf_counter() - started
    assert done.returncode in status, done.stderr
    return took, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        base, path = Path(folder) / "gh", Path(folder) / "r.jsonl"
        journal(base, options.events // 5 + 1, "ls")
        started = time.perf_counter()
        count = file_of(base, path, options.events)
        rendering = time.perf_counter() - started
        seconds, size = child(
            f"from guardhook.rollout.load import load; assert len(load({str(path)!r}).events) == {count}"
        )
        print(
            f"load      {count} events, {path.stat().st_size >> 20} MiB: {seconds:.2f} s (at most {TARGETS['load']}), {size:.0f} MiB (at most {LOAD_MB})"
        )
        seconds, _ = command("rollout", "verify", str(path), "--dir", str(Path(folder) / "none"))
        print(f"verify    {seconds:.2f} s (at most {TARGETS['verify']})")
        print(f"render    {rendering:.2f} s with the store made first")
        seconds, _ = command("rollout", "simulate", str(path), status=(0, 3))
        print(f"simulate  {seconds:.2f} s")
        other = Path(folder) / "other"
        journal(other, options.calls, "ls")
        command("list", "--dir", str(other))
        seconds, text = command("rollout", "drift", "00000000-0000", "--json", "--dir", str(other), status=(0, 3))
        found = json.loads(text)["drift"]
        print(
            f"drift     {found['policy']['evaluated']} calls: {seconds:.2f} s (at most {TARGETS['drift']}), pipeline matched: {found['matched']}"
        )
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
