"""What reading the store costs: whole processes, medians, as multiples of a bare interpreter start. Figures only, nothing is asserted.

    python build/bench_store.py [--rounds 9] [--million] [--keep DIR] [--program "guardhook-command …"]

Shapes: 200 traces of 500 steps (100,000 steps), and one trace of 100,000 steps. --million adds 10,000 and 1,000,000 steps, to see how figures grow.
The floor is this interpreter with `-I -S -E -c pass`, started in the same round. Processor time is given too: on a busy machine it is the steadier one.
Two columns compare: `goal` is what the figure must not exceed, `of reference` is its share of what a comparable tool took for the same shape on the same kind of machine (REFERENCE).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import bench_store_data as data  # noqa: E402

from guardhook.journal import line, write  # noqa: E402

# Floors (wall) and peak memory (MB) of the comparable tool, by case.
REFERENCE: dict[str, tuple[float, int]] = {
    "100k: list --json": (16, 64),
    "100k: list": (20, 72),
    "100k: list --sort -tokens --json": (24, 83),
    "100k: stats --json": (19, 74),
    "100k: show (500 steps)": (50, 127),
    "one trace of 100k: show (100000 steps)": (7760, 847),
    "one trace of 100k: show --json": (173, 418),
    "one trace of 100k: show --from-step 100 --to-step 150": (128, 236),
}
GOALS = {
    "100k: list --json": "10 floors",
    "100k: list": "16 floors",
    "one trace of 100k: show (100000 steps)": "3 s, 150 MB",
    "one trace of 100k: show --from-step 100 --to-step 150": "0.3 s",
    "100k: catch up, per 100,000 events": "6 s",
    "watch, idle: share of a core": "2 %",
    "watch: event to line, worst": "100 ms",
}

FLOOR = [os.path.realpath(getattr(sys, "_base_executable", sys.executable)), "-I", "-S", "-E", "-c", "pass"]


def source() -> list[str]:
    """The source tree without what an environment's start-up files cost, as the frozen program does without them."""
    import click

    paths = [str(ROOT), str(Path(click.__file__).parents[1])]
    return [*FLOOR[:4], "-c", f"import sys; sys.path += {paths}; from guardhook.__main__ import main; main()"]


def run(argv: list[str]) -> tuple[float, float, int]:
    """Wall seconds, processor seconds and peak memory (KiB) of one process."""
    environment = {**os.environ, "COLUMNS": "80"}
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, environment, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - started
    if status != 0:
        sys.exit(f"bench_store: {shlex.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def measure(name: str, argv: list[str], rounds: int) -> float:
    """Prints a row and gives the median wall time in seconds."""
    walls, cpus, wall_ratios, cpu_ratios, peak = [], [], [], [], 0
    for _ in range(rounds):
        floor_wall, floor_cpu, _ = run(FLOOR)
        wall, cpu, memory = run(argv)
        walls.append(wall)
        cpus.append(cpu)
        wall_ratios.append(wall / floor_wall)
        cpu_ratios.append(cpu / max(floor_cpu, 0.001))
        peak = max(peak, memory)
    middle = statistics.median
    compared = ""
    if name in REFERENCE:
        floors, megabytes = REFERENCE[name]
        compared = f"{middle(wall_ratios) / floors:.2f} of the time, {peak / 1024 / megabytes:.2f} of the memory"
    row(
        name, f"{middle(walls) * 1000:.0f} ms", f"{middle(wall_ratios):.1f}", f"{middle(cpus) * 1000:.0f} ms",
        f"{middle(cpu_ratios):.1f}", f"{peak // 1024} MB", GOALS.get(name, ""), compared,
    )  # fmt: skip
    return middle(walls)


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def figure(name: str, value: str) -> None:
    """A row of a figure that is no process."""
    row(name, value, "", "", "", "", GOALS.get(name, ""), "")


def shape(base: Path, name: str, sessions: int, calls: int, program: list[str], rounds: int) -> None:
    folder = base / name
    lines = data.write(folder / "journal", sessions, calls)
    where = ["--dir", str(folder)]
    took = measure(f"{name}: catch up {lines} events", [*program, "stats", "--json", *where], 1)
    figure(f"{name}: catch up, per 100,000 events", f"{took * 100_000 / lines:.2f} s")
    measure(f"{name}: list --json", [*program, "list", "--json", *where], rounds)
    measure(f"{name}: list", [*program, "list", *where], rounds)
    measure(f"{name}: list --sort -tokens --json", [*program, "list", "--sort", "-tokens", "--json", *where], rounds)
    measure(f"{name}: stats --json", [*program, "stats", "--json", *where], rounds)
    listed = subprocess.run([*program, "list", "--json", *where], capture_output=True, check=True).stdout
    first = json.loads(listed)["items"][0]["id"]
    show = [*program, "show", first, *where]
    few = max(1, rounds // 3)
    measure(f"{name}: show ({calls} steps)", show, few)
    measure(f"{name}: show --tree", [*show, "--tree"], few)
    measure(f"{name}: show --json", [*show, "--json"], few)
    measure(f"{name}: show --from-step 100 --to-step 150", [*show, "--from-step", "100", "--to-step", "150"], rounds)
    if calls <= 500:
        measure(f"{name}: guard test ({calls} steps)", [*program, "guard", "test", first, *where], few)
    if name == "1M":
        return
    if calls <= 500:
        measure(f"{name}: backtest, 1 round", [*program, "backtest", "--since", "2020-01-01", "--json", *where], 1)
    for form in ("jsonl", "parquet"):
        target = ["--format", form, "--output", f"{folder}/out.{form}"]
        measure(f"{name}: export {form}, 1 round", [*program, "export", *target, *where], 1)
    if name == "100k":
        watch(folder, program)
        before = size(folder / "journal")
        for path in (folder / "journal").glob("20*/*.jsonl"):
            os.utime(path, (time.time() - 30 * 86_400,) * 2)
        measure(f"{name}: gc, compressing", [*program, "gc", "--compress-after", "1d", *where], 1)
        figure(f"{name}: the journal compressed", f"{size(folder / 'journal') / before:.2f} of its size")
        measure(f"{name}: catch up what is compressed", [*program, "stats", "--json", *where], 1)
        measure(f"{name}: list --json, compressed", [*program, "list", "--json", *where], rounds)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def watch(folder: Path, program: list[str]) -> None:
    """How long an event takes until `watch` prints it, and what looking costs while nothing happens."""
    session = "00000000-0000-4000-9000-000000000000"
    event(folder, session, 0)
    argv = [*program, "watch", "--follow", data.trace(session), "--dir", str(folder)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        waits = []
        for number in range(1, 31):
            time.sleep(0.11 + number % 7 / 100)
            until(process.stdout, f"echo {number - 1}")
            started = time.perf_counter()
            event(folder, session, number)
            until(process.stdout, f"echo {number}")
            waits.append(time.perf_counter() - started)
        figure("watch: event to line, median", f"{statistics.median(waits) * 1000:.0f} ms")
        figure("watch: event to line, worst", f"{max(waits) * 1000:.0f} ms")
        before, seconds = used(process.pid), 15
        time.sleep(seconds)
        figure("watch, idle: share of a core", f"{(used(process.pid) - before) / seconds * 100:.2f} %")
    finally:
        process.kill()
        process.wait()


_seen: list[str] = []


def until(lines: IO[str], word: str) -> None:
    """Reads until a line holds the word; what was read stays known."""
    while not any(word in line for line in _seen[-40:]):
        _seen.append(lines.readline())


def event(folder: Path, session: str, number: int) -> None:
    given = data.call(session, number)
    record = write.Record(line.RECEIVED, time.time_ns(), "claude-code", session, "/home/user/project", "/home/user/project", True, False, given)  # fmt: skip
    if write.append(str(folder / "journal"), record, budget=5.0).state != "recorded":
        sys.exit("bench_store: an event was not recorded")


def used(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often each case is run")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--keep", type=Path, help="write the stores here and leave them")
    parser.add_argument("--program", help="the command to measure instead of the source tree")
    options = parser.parse_args()
    program = shlex.split(options.program) if options.program else source()
    row("case", "wall", "x floor", "CPU", "x floor CPU", "peak memory", "goal", "of reference")
    row(*["---"] * 8)
    with tempfile.TemporaryDirectory() as temporary:
        base = options.keep or Path(temporary)
        if options.million:
            shape(base, "10k", 20, 500, program, options.rounds)
        shape(base, "100k", 200, 500, program, options.rounds)
        shape(base, "one trace of 100k", 1, 100_000, program, options.rounds)
        if options.million:
            shape(base, "1M", 2000, 500, program, options.rounds)
    print(f"\nlargest child: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
