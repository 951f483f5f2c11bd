"""How fast the analyser is, printed: `python tests/analysis/bench_analysis.py`. Not a test: machines differ."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import analysing  # noqa: E402

from guardhook.analysis import quick, vocabulary  # noqa: E402

HOSTILE = {
    "nested substitutions": "$(" * 130_000,
    "nested groups": "{ " * 130_000,
    "nested conditions": "if a; then " * 24_000,
    "backticks": "`" * 260_000,
    "parentheses": "(" * 260_000,
    "quotes": "'" * 260_000,
    "one word": "echo " + "a" * 255_000,
    "many commands": "echo x;" * 30_000,
    "many words": "rm " + "/x " * 19_000,
    "doubling variables": "x=a;" + "x=$x$x;" * 80,
    "here-document": "cat <<'A'\n" + "x y z\n" * 40_000 + "A\n",
    "inline code": "python3 -c '" + "f(" * 120_000 + "'",
}


def best(work: Callable[[], object], rounds: int = 5) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def main() -> None:
    commands = analysing.commands()
    for command in commands:
        analysing.shell(command)
    times = sorted(best(lambda c=command: analysing.shell(c), 3) for command in commands)  # type: ignore[misc]
    print(
        f"analyse, {len(times)} commands: median {times[len(times) // 2]:.3f} ms, p99 {times[int(len(times) * 0.99)]:.3f} ms"
    )
    triggers = vocabulary.triggers()
    plain = "tree src | grep foo; wc README.md\n" * 31
    print(
        f"quick, {len(plain)} characters: {best(lambda: quick(plain, triggers), 50) * 1000:.0f} us, {len(triggers)} trigger words"
    )
    for name, text in HOSTILE.items():
        print(
            f"hostile, {name}, {len(text[:262144])} characters: {best(lambda t=text[:262144]: analysing.shell(t), 1):.1f} ms"
        )  # type: ignore[misc]


if __name__ == "__main__":
    main()
