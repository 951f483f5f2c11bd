"""What evaluating costs: whole processes over a store of hook sessions. Figures only, nothing is asserted.

    python build/bench_evals.py [--sessions 1000] [--steps 100] [--rounds 3] [--program "guardhook-command …"]

The store is caught up first; what is measured is `guardhook eval` over all of it: reading the steps, judging them, storing the results.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import tempfile
from pathlib import Path

from bench_store import ROOT, measure, source

RUBRIC = {
    "name": "bench",
    "criteria": [
        {"name": "fixes", "pattern": r"fix(ed|es)?\s+the\s+\w+", "expected": True},
        {"name": "no passwords", "pattern": r"passw(or)?d\s*[:=]", "expected": False},
        {"name": "no force", "pattern": r"push\s+(-f|--force)\b", "expected": False},
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", help="the command to measure instead of the source tree")
    options = parser.parse_args()
    import bench_store_data as data

    program = shlex.split(options.program) if options.program else source()
    print(f"{options.sessions} traces of {options.steps} steps; {ROOT.name}")
    print("| case | wall | x floor | CPU | x floor CPU | peak memory |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        data.write(base / "journal", options.sessions, options.steps)
        rubric = base / "rubric.json"
        rubric.write_text(json.dumps(RUBRIC))
        where = ["--dir", str(base)]
        subprocess.run([*program, "stats", "--json", *where], check=True, stdout=subprocess.DEVNULL)
        every = ["eval", "--status", "completed", "--fail-under", "0", *where]
        measure("three presets", [*program, *every, "--all"], options.rounds)
        measure("three presets, --json", [*program, *every, "--all", "--json"], options.rounds)
        measure("a rubric of three patterns", [*program, *every, "--rubric", str(rubric)], options.rounds)
        measure("safety-record", [*program, *every, "--preset", "safety-record"], options.rounds)


if __name__ == "__main__":
    main()
