"""What reading the store costs: whole processes, medians, as multiples of a bare interpreter start. Figures only, nothing is asserted.

    python build/bench_store.py [--rounds 9] [--million] [--keep DIR] [--program "guardhook-command …"]

Shapes: 200 traces of 500 steps (100,000 steps), and one trace of 100,000 steps. --million adds 10,000 and 1,000,000 steps, to see how figures grow.
The floor is this interpreter with `-I -S -E -c pass`, started in the same round. Processor time is given too: on a busy machine it is the steadier one.
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import bench_store_data as data  # noqa: E402

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


def measure(name: str, argv: list[str], rounds: int) -> None:
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
    print(
        f"| {name} | {middle(walls) * 1000:.0f} ms | {middle(wall_ratios):.1f} | {middle(cpus) * 1000:.0f} ms"
        f" | {middle(cpu_ratios):.1f} | {peak // 1024} MB |",
        flush=True,
    )


def shape(base: Path, name: str, sessions: int, calls: int, program: list[str], rounds: int) -> None:
    folder = base / name
    lines = data.write(folder / "journal", sessions, calls)
    measure(f"{name}: catch up {lines} events", [*program, "stats", "--json", "--dir", str(folder)], 1)
    where = ["--dir", str(folder)]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often each case is run")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--keep", type=Path, help="write the stores here and leave them")
    parser.add_argument("--program", help="the command to measure instead of the source tree")
    options = parser.parse_args()
    program = shlex.split(options.program) if options.program else source()
    print("| case | wall | x floor | CPU | x floor CPU | peak memory |\n|---|---|---|---|---|---|")
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
