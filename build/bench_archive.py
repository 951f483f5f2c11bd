"""What packing costs and gains. Figures only, nothing is asserted.

    python build/bench_archive.py [--iterations 20] [--rounds 3]

The session sends its whole history again at every iteration, as agents do: each iteration asks a tool that returns 1,000 rows, the model is sent all that
was said so far, and the step keeps the same as its context. Speeds are megabytes of plain JSON in a second of processor time: of values in memory, and from file to file.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from guardhook.archive import plain, stream  # noqa: E402
from guardhook.archive.packing import pack_recording  # noqa: E402
from guardhook.archive.unpacking import plain_size, unpack_recording  # noqa: E402


def session(iterations: int, rows: int = 1000) -> dict[str, Any]:
    """A recording; equal parts are one object, so that it fits into memory whatever its plain size."""
    said: list[Any] = []
    events: list[Any] = []
    steps: list[Any] = []
    for turn in range(iterations):
        found = [
            {"id": turn * rows + n, "name": f"customer {n} of {turn}", "city": "Somewhere", "amount": n * 1.25, "open": n % 3 == 0}
            for n in range(rows)
        ]  # fmt: skip
        said = [
            *said,
            {"role": "assistant", "content": f"I ask for page {turn} now."},
            {"role": "tool", "content": found},
        ]
        ts = f"2026-08-16T{turn // 60:02d}:{turn % 60:02d}:00Z"
        call = {"call_id": f"c{turn}", "tool": "query"}
        events += [
            {"ts": ts, "seq": 3 * turn, "type": "llm.turn.requested", "data": {"step": turn, "messages": said}},
            {"ts": ts, "seq": 3 * turn + 1, "type": "tool.call.started", "data": {**call, "arguments": f'{{"page":{turn}}}'}},
            {"ts": ts, "seq": 3 * turn + 2, "type": "tool.call.completed", "data": {**call, "result": found}},
        ]  # fmt: skip
        steps.append({"step_number": turn + 1, "name": "query", "output": found, "snapshot": {"context_window": said}})
    return {"snapshot": {"trace": {"id": "trc_bench"}, "steps": steps}, "events": events, "structure": None}


def speed(size: int, work: Callable[[], object], rounds: int) -> float:
    """Megabytes a second, the median. Without the collector of cycles, as the commands do."""
    gc.disable()
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return size / 1e6 / statistics.median(times)


def packed_to_file(source: str, target: str) -> None:
    with open(source, "rb") as file:
        value = stream.pack_file(file)
    with open(target, "wb") as out:
        stream.write(value, out.write)


def unpacked_to_file(source: str, target: str) -> None:
    value = unpack_recording(plain.loads(Path(source).read_bytes()), max_bytes=float("inf"), parsed=True)
    with open(target, "wb") as out:
        stream.write(value, out.write)


def peak(work: Callable[[], object]) -> float:
    """Most memory of a process that does this and nothing else, MB."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    _, _, usage = os.wait4(child, 0)
    return usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sizes = {}
    for iterations in (20, 80):
        packed = pack_recording(session(iterations))
        whole = plain_size(packed)
        sizes[iterations] = len(plain.encode(packed))
        print(f"{iterations} iterations: {whole / 1e6:.1f} MB plain, {sizes[iterations] / 1e6:.2f} MB packed: 1/{whole / sizes[iterations]:.0f}   goal at 80: 1/50")  # fmt: skip
    print(f"four times the iterations: {sizes[80] / sizes[20]:.2f} times the bytes   goal: 6")
    with tempfile.TemporaryDirectory() as folder:
        source, packed_file, back = (f"{folder}/{n}" for n in ("plain.json", "packed.json", "back.json"))
        with open(source, "wb") as out:
            stream.write(session(given.iterations), out.write)
        size = os.stat(source).st_size
        value = plain.loads(Path(source).read_bytes())
        made = pack_recording(value)
        print(
            f"values of {size / 1e6:.1f} MB, nothing shared: pack {speed(size, lambda: pack_recording(value), given.rounds):.1f} MB/s   goal: 8"
        )
        print(f"unpack {speed(size, lambda: unpack_recording(made), given.rounds):.0f} MB/s   goal: 25")
        base = peak(lambda: None)
        print(
            f"file to file: pack {speed(size, lambda: packed_to_file(source, packed_file), given.rounds):.1f} MB/s, {peak(lambda: packed_to_file(source, packed_file)) - base:.0f} MB of memory"
        )
        print(
            f"              unpack {speed(size, lambda: unpacked_to_file(packed_file, back), given.rounds):.1f} MB/s, {peak(lambda: unpacked_to_file(packed_file, back)) - base:.0f} MB of memory"
        )
        with open(source, "rb") as first, open(back, "rb") as second:
            print("the same bytes again:", first.read() == second.read())
    rows = [{"id": n, "name": f"customer {n}", "city": "Somewhere", "note": {"a": [n, n + 1]}} for n in range(60_000)]
    alone = {"snapshot": {}, "events": [{"seq": n, "data": row} for n, row in enumerate(rows)], "structure": None}
    data = plain.encode(alone)
    made = pack_recording(plain.loads(data))
    parsed = plain.loads(data)
    print(f"small values that never repeat, {len(data) / 1e6:.1f} MB: pack {speed(len(data), lambda: pack_recording(parsed), given.rounds):.1f} MB/s, unpack {speed(len(data), lambda: unpack_recording(made, parsed=True), given.rounds):.1f} MB/s, from bytes {speed(len(data), lambda: stream.pack_file(io.BytesIO(data)), given.rounds):.1f} MB/s")  # fmt: skip
    print(f"peak of all: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
