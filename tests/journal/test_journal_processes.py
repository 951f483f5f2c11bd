"""Many real processes at one journal, some of them killed."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from journal_tools import all_lines, put, spooled

from guardhook.journal import line, read, spool, write

WRITER = """
import sys, time
sys.path[:0] = [{where!r}]
from guardhook.journal import write
journal, name, count, session = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
for n in range(count):
    record = write.Record("hook.received", time.time_ns(), "codex", session, "/p", "/p", True, n % 50 == 49,
                          {{"event": "pre_tool", "id": name + "." + str(n), "text": "x" * (n * 37 % 3000)}})
    outcome = write.append(journal, record, budget=0.15)
    sys.stdout.write(name + "." + str(n) + " " + outcome.state + "\\n")
    sys.stdout.flush()
"""


def start(journal: str, name: str, count: int, session: str = "one") -> subprocess.Popen[str]:
    code = WRITER.format(where=str(Path(write.__file__).parents[2]))
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, journal, name, str(count), session], stdout=subprocess.PIPE, text=True
    )


def accepted(out: str) -> dict[str, str]:
    """What a writer said of each of its events; a killed writer's last word may be cut."""
    return dict(row.split() for row in out.splitlines(keepends=True) if row.endswith("\n") and len(row.split()) == 2)


def take_in_everything(journal: str) -> None:
    for _ in range(2000):
        if not spooled(journal):
            return
        folder = spool.folder_of(journal)
        for key in os.listdir(folder):
            spool.drain(journal, key)
    raise AssertionError("the spool does not get empty")


def ids(journal: str) -> list[str]:
    return [str(x.data["id"]) for x in all_lines(journal) if "id" in x.data]


def test_sixteen_processes_lose_and_tear_nothing(journal: str) -> None:
    writers = [start(journal, str(n), 200) for n in range(16)]
    said: dict[str, str] = {}
    for writer in writers:
        said.update(accepted(writer.communicate(timeout=120)[0]))
    assert len(said) == 3200
    assert set(said.values()) <= {"recorded", "spooled"}
    take_in_everything(journal)
    lines = all_lines(journal)  # fails on any line that can't be read
    assert sorted(ids(journal)) == sorted(said)
    assert [x.seq for x in lines] == list(range(1, 3201))
    assert not any(x.type == line.GAP for x in lines)


def test_the_same_while_other_writers_are_killed(journal: str) -> None:
    rng = random.Random(7)
    steady = [start(journal, f"s{n}", 60) for n in range(6)]
    doomed: list[subprocess.Popen[str]] = []
    said: dict[str, str] = {}
    killed = 0
    deadline = time.monotonic() + 12
    while killed < 25 and time.monotonic() < deadline:
        while len(doomed) < 3:
            doomed.append(start(journal, f"d{killed}-{len(doomed)}-{rng.random()}", 100_000))
        time.sleep(rng.uniform(0.02, 0.12))
        victim = doomed.pop(rng.randrange(len(doomed)))
        os.kill(victim.pid, signal.SIGKILL)
        said.update(accepted(victim.communicate(timeout=30)[0]))
        killed += 1
    for victim in doomed:
        victim.kill()
        said.update(accepted(victim.communicate(timeout=30)[0]))
    for writer in steady:
        said.update(accepted(writer.communicate(timeout=60)[0]))
    assert killed >= 10
    put(journal, dialect="codex", session="one", data={})
    take_in_everything(journal)
    (file,) = read.session_files(journal)
    fd = read.open_session(journal, file)
    try:
        entries = list(read.entries(fd))
    finally:
        os.close(fd)
    # A write that the kernel broke off at the kill is an unreadable line with a gap line right after it; nothing else is unreadable.
    for before, after in itertools.pairwise(entries):
        assert before.line is not None or (after.line is not None and after.line.type == line.GAP)
    lines = [e.line for e in entries if e.line is not None]
    tickets = [x.seq for x in lines]
    assert tickets == list(range(1, len(tickets) + 1))
    found = [str(x.data["id"]) for x in lines if "id" in x.data]
    assert len(found) == len(set(found)), "an event is in the journal twice"
    missing = {name for name, state in said.items() if state != "nowhere"} - set(found)
    assert not missing


def test_first_events_of_a_session_in_parallel_make_one_file(journal: str) -> None:
    writers = [start(journal, str(n), 1, session="fresh") for n in range(12)]
    said: dict[str, str] = {}
    for writer in writers:
        said.update(accepted(writer.communicate(timeout=60)[0]))
    take_in_everything(journal)
    assert len(read.session_files(journal)) == 1
    assert sorted(ids(journal)) == sorted(said)
    assert {x.data["segment"] for x in all_lines(journal)} == {1}


def test_draining_killed_anywhere_neither_loses_nor_doubles(journal: str) -> None:
    """Drainers are killed while they take in a full spool, again and again."""
    code = f"""
import sys
sys.path[:0] = [{str(Path(write.__file__).parents[2])!r}, {str(Path(__file__).parent)!r}]
from journal_tools import put
print("ready", flush=True)
while True:
    put(sys.argv[1], opens=False, data={{}})
"""
    key = line.key("claude-code", "s-1")
    for n in range(400):
        from journal_tools import record

        r = record(data={"id": str(n)}, ts=n)
        spool.put(spool.folder_of(journal), key, "claude-code", "s-1", r, line.body(r.data))
    rng = random.Random(3)
    for _ in range(25):
        drainer = subprocess.Popen([sys.executable, "-I", "-S", "-c", code, journal], stdout=subprocess.PIPE)
        assert drainer.stdout is not None
        drainer.stdout.readline()
        time.sleep(rng.uniform(0, 0.004))
        drainer.kill()
        drainer.wait()
        drainer.stdout.close()
        if not spooled(journal):
            break
    take_in_everything(journal)
    assert sorted(ids(journal), key=int) == [str(n) for n in range(400)]
    lines = all_lines(journal)
    assert [x.seq for x in lines] == list(range(1, len(lines) + 1))
