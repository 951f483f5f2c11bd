"""What a hook costs, as whole processes: medians of ratios to a bare interpreter that was started in the same round.

    build/bench [--binary dist/guardhook] [--rounds 40] [--growth] [--check] [--out FILE]

Every variant runs once per round, in shuffled order, started by posix_spawn with a file as stdin and a pipe as stdout; its time
is divided by the floor's time of the same round. The floor is the interpreter that the executable carries, by its real
path, with `-I -S -E -c pass`. --check ends with status 1 when a limit is exceeded. The results are a markdown table.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import bench_data as data  # noqa: E402
import release  # noqa: E402

from guardhook.core.folders import Folders  # noqa: E402
from guardhook.harness import program  # noqa: E402
from guardhook.harness.contents import Item, launcher_item  # noqa: E402

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


class Variant(NamedTuple):
    """One command line and what must come of it: a wrong answer, however fast, is no result."""

    name: str
    argv: list[str]
    payload: Path
    status: int
    limit: float | None = None  # of the ratio to the floor
    milliseconds: float | None = None  # limit of the wall time


class Row(NamedTuple):
    name: str
    milliseconds: float
    ratio: float
    rss: float
    verdict: str


class Bench:
    """One temporary machine: installations with different policy sets, and payload files."""

    def __init__(self, work: Path, binary: Path) -> None:
        self.work = work
        self.binary = binary
        self.items: list[Item] = []
        self.floor = Variant("floor", [floor_interpreter(), "-I", "-S", "-E", "-c", "pass"], Path(os.devnull), 0)

    def build_items(self) -> None:
        built = self.work / "build"
        built.mkdir()
        self.items = release.hook_program(built, embedded=True)
        self.items += [launcher_item(), Item("guardhook", 0o500, self.binary.read_bytes())]

    def installed(self, name: str, policies: str, config: str = "") -> Folders:
        """A fresh installation below the work folder with these user policies and settings, compiled."""
        base = self.work / name
        folders = Folders(str(base / "config"), str(base / "data"), str(base / "system"))
        (base / "config" / "policies").mkdir(parents=True)
        (base / "config" / "policies" / "bench.toml").write_text(policies)
        if config:
            (base / "config" / "config.toml").write_text(config)
        placed = program.place(folders, self.items)
        words = ["--config", folders.config, "--data", folders.data, "--system", folders.system]
        subprocess.run(
            [f"{placed.folder}/guardhook", "policy", "compile", *words], check=True, stderr=subprocess.DEVNULL
        )
        return folders

    def payload(self, name: str, content: bytes) -> Path:
        path = self.work / f"{name}.json"
        path.write_bytes(content)
        return path

    def launched(self, folders: Folders, mode: str = "enforce", event: str = "PreToolUse") -> list[str]:
        return [program.launcher_path(folders, "claude-code", mode), event]


def floor_interpreter() -> str:
    """The real path of this interpreter. Version managers put scripts in its place that cost eight times as much."""
    path = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    with open(path, "rb") as file:
        if file.read(2) == b"#!":
            sys.exit(f"build/bench: {path} is a script in front of an interpreter; run with the real one")
    return path


def run(variant: Variant, *, again: int = 3) -> float:
    """Seconds from start to the end of the process and of its output. Ends the benchmark on a wrong answer.

    again: how often an answer that only a crowded machine gives (something took too long) is put down to the machine.
    """
    read_end, write_end = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(variant.payload), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, write_end, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    started = time.perf_counter()
    pid = os.posix_spawn(variant.argv[0], variant.argv, ENVIRONMENT, file_actions=actions)
    os.close(write_end)
    while os.read(read_end, 65536):
        pass
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - started
    os.close(read_end)
    if os.waitstatus_to_exitcode(status) != variant.status:
        complaint = subprocess.run(variant.argv, stdin=variant.payload.open(), capture_output=True, env=ENVIRONMENT)
        if again and (complaint.returncode == variant.status or b"seconds" in complaint.stderr):
            return run(variant, again=again - 1)
        sys.exit(f"build/bench: {variant.name} ended with {os.waitstatus_to_exitcode(status)}: {complaint.stderr!r}")
    return seconds


# A process started from this one would inherit this one's peak as its own; one forked from a bare interpreter does not.
_RSS = """
import posix, sys
fd = posix.open(sys.argv[1], posix.O_RDONLY)
null = posix.open("/dev/null", posix.O_WRONLY)
pid = posix.fork()
if pid == 0:
    posix.dup2(fd, 0); posix.dup2(null, 1); posix.dup2(null, 2)
    posix.execv(sys.argv[2], sys.argv[2:])
posix.write(1, str(posix.wait4(pid, 0)[2].ru_maxrss).encode())
"""


def peak_megabytes(variant: Variant) -> float:
    """Peak resident memory of the largest process that the variant starts."""
    command = [floor_interpreter(), "-I", "-S", "-E", "-c", _RSS, str(variant.payload), *variant.argv]
    said = subprocess.run(command, capture_output=True, check=True, env=ENVIRONMENT).stdout
    return int(said) / (1024.0 if sys.platform != "darwin" else 1024.0 * 1024.0)


def measure(floor: Variant, variants: list[Variant], rounds: int) -> list[Row]:
    """Interleaved, shuffled rounds."""
    times: dict[str, list[float]] = {v.name: [] for v in [floor, *variants]}
    for variant in [floor, *variants]:
        run(variant)  # warm caches, and find wrong answers early
    for number in range(rounds):
        order = [floor, *variants]
        random.shuffle(order)
        for variant in order:
            times[variant.name].append(run(variant))
        if sys.stderr.isatty():
            print(f"\rround {number + 1}/{rounds}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    rows = []
    for variant in [floor, *variants]:
        wall = statistics.median(times[variant.name])
        ratio = statistics.median(a / b for a, b in zip(times[variant.name], times[floor.name], strict=True))
        rows.append(Row(variant.name, wall * 1000, ratio, peak_megabytes(variant), judge(variant, wall * 1000, ratio)))
    return rows


def judge(variant: Variant, milliseconds: float, ratio: float) -> str:
    if variant.limit is not None:
        return f"{'ok' if ratio <= variant.limit else 'OVER'} (<= {variant.limit:g})"
    if variant.milliseconds is not None:
        return f"{'ok' if milliseconds <= variant.milliseconds else 'OVER'} (<= {variant.milliseconds:g} ms)"
    return ""


def main_variants(bench: Bench) -> list[Variant]:
    usual = bench.installed("usual", data.policies(200, regexes=60))
    shipped = bench.installed("shipped", "")
    fifty = bench.installed("fifty", data.policies(50, regexes=15))
    thousand = bench.installed("thousand", data.policies(1000, regexes=300))
    audited = bench.installed("audited", data.policies(200, regexes=60), "[forensics]\naudit_trail_enabled = true\n")
    unread = bench.installed("unread", data.policies(200, regexes=60), '[capture]\nmode = "full"\n')
    hostile = bench.installed("hostile", data.policies(200, regexes=60) + data.HOSTILE_POLICY)
    harmless = bench.payload("harmless", data.payload(data.QUICK, 4096))
    parsed = bench.payload("parsed", data.payload(data.PARSED, 4096))
    heavy = bench.payload("heavy", data.payload(data.HEAVY, 4096))
    effect = bench.payload("effect", data.payload(data.EFFECT_DENIED, 4096))
    output = bench.payload("output", data.output(data.PARSED, 100_000))
    denied = bench.payload("denied", data.payload(data.DENIED, 4096))
    large = bench.payload("large", data.payload(data.PARSED, 100_000))
    huge = bench.payload("huge", data.payload(data.PARSED, 5_000_000))
    trap = bench.payload("trap", data.payload(data.HOSTILE, 4096))
    plain = bench.payload("plain", data.output(data.QUICK, 100_000))
    secrets = bench.payload("secrets", data.output(data.SECRETS, 100_000))
    direct = ["hook", "PreToolUse", "--enforce", "--dialect", "claude-code", "--dir", usual.data]
    one_file = bench.work / "one-file"
    (one_file / "policies").mkdir(parents=True)
    (one_file / "policies" / "bench.toml").write_text(data.policies(200, regexes=60))
    subprocess.run([bench.binary, "policy", "compile", "--dir", one_file], check=True, stderr=subprocess.DEVNULL)
    direct[-1] = str(one_file)
    return [
        Variant("capture", bench.launched(usual, "observe"), harmless, 0, limit=1.6),
        Variant("no objection, quick", bench.launched(usual), harmless, 0, limit=1.6),
        Variant("no objection, parsed", bench.launched(usual), parsed, 0, limit=1.8),
        Variant("no objection, much to parse", bench.launched(usual), heavy, 0),
        Variant("deny", bench.launched(usual), denied, 2, limit=1.9),
        Variant("deny for an effect", bench.launched(usual), effect, 2, limit=1.9),
        Variant("capture, output of 100 KB", bench.launched(usual, "observe", "PostToolUse"), output, 0, limit=2.4),
        Variant("100 KB kept unread", bench.launched(unread, "observe", "PostToolUse"), plain, 0),
        Variant("100 KB redacted, nothing to find", bench.launched(usual, "observe", "PostToolUse"), plain, 0),
        Variant("100 KB redacted, some secrets", bench.launched(usual, "observe", "PostToolUse"), secrets, 0),
        Variant("no objection, parsed, audit trail", bench.launched(audited), parsed, 0),
        Variant("100 KB, 50 policies", bench.launched(fifty), large, 0, limit=2.4),
        Variant("1,000 policies", bench.launched(thousand), parsed, 0),
        Variant("one file, direct", [str(bench.binary), *direct], parsed, 0, limit=4.5),
        Variant("5 MB payload, shipped policies", bench.launched(shipped), huge, 0, milliseconds=150),
        Variant("5 MB payload, 200 policies more", bench.launched(usual), huge, 0),
        Variant("hostile regex", bench.launched(hostile), trap, 2, milliseconds=100),
    ]


def growth_variants(bench: Bench) -> list[Variant]:
    four = bench.payload("growth-4k", data.payload(data.PARSED, 4096))
    found = []
    for count in (0, 50, 200, 500, 1000):
        folders = bench.installed(f"growth-{count}", data.policies(count, regexes=count * 3 // 10))
        found.append(Variant(f"{count} policies, 4 KB", bench.launched(folders), four, 0))
        if count == 200:
            for size in (1_000, 16_000, 100_000, 1_000_000, 4_000_000, 8_000_000):
                path = bench.payload(f"growth-{size}", data.payload(data.PARSED, size))
                found.append(Variant(f"200 policies, {size // 1000} KB", bench.launched(folders), path, 0))
    return found


def table(title: str, rows: list[Row]) -> str:
    lines = [f"### {title}", "", "| variant | ms | x floor | peak MB | limit |", "|---|---|---|---|---|"]
    lines += [f"| {r.name} | {r.milliseconds:.1f} | {r.ratio:.2f} | {r.rss:.1f} | {r.verdict} |" for r in rows]
    return "\n".join(lines) + "\n"


def extra_checks(rows: list[Row]) -> list[str]:
    by_name = {row.name: row for row in rows}
    more = by_name["1,000 policies"].ratio - by_name["no objection, parsed"].ratio
    audit = by_name["no objection, parsed, audit trail"].ratio - by_name["no objection, parsed"].ratio
    looked = by_name["100 KB redacted, nothing to find"].ratio - by_name["100 KB kept unread"].ratio
    found = by_name["100 KB redacted, some secrets"].ratio - by_name["100 KB kept unread"].ratio
    memory = max(by_name[n].rss for n in ("capture", "no objection, quick", "no objection, parsed", "deny"))
    return [
        f"1,000 policies instead of 200: {more:+.2f} floors: {'ok' if more < 1 else 'OVER'} (< +1)",
        f"audit trail: {audit:+.2f} floors: {'ok' if audit <= 0.15 else 'OVER'} (<= 0.15)",
        f"looking for secrets in 100 KB: {looked:+.2f} floors: {'ok' if looked <= 0.15 else 'OVER'} (<= 0.15); taking some out: {found:+.2f}: {'ok' if found <= 0.5 else 'OVER'} (<= 0.5)",
        f"peak memory at 4 KB: {memory:.1f} MB: {'ok' if memory <= 20 else 'OVER'} (<= 20)",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="build/bench", description="Measure what a hook costs.")
    parser.add_argument("--binary", type=Path, default=ROOT / "dist" / "guardhook", help="the single-file executable")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--growth", action="store_true", help="also tables over policies and payload sizes")
    parser.add_argument("--check", action="store_true", help="status 1 when a limit is exceeded")
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    arguments = parser.parse_args()
    if not arguments.binary.is_file():
        sys.exit(f"build/bench: there is no {arguments.binary}; run build/release first")
    with tempfile.TemporaryDirectory(prefix="guardhook-bench-") as work:
        bench = Bench(Path(work), arguments.binary.resolve())
        bench.build_items()
        try:
            rows = measure(bench.floor, main_variants(bench), arguments.rounds)
            checks = extra_checks(rows)
            text = table(f"Hook, whole process, median of {arguments.rounds} paired rounds", rows)
            text += "\n" + "".join(f"- {line}\n" for line in checks)
            if arguments.growth:
                grown = measure(bench.floor, growth_variants(bench), max(5, arguments.rounds // 2))
                text += "\n" + table("Growth", grown)
        finally:
            for folder in Path(work).glob("*/data"):
                program.remove(Folders(str(folder.parent / "config"), str(folder), str(folder.parent / "system")))
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    if arguments.check and ("OVER" in text):
        sys.exit(1)


if __name__ == "__main__":
    main()
