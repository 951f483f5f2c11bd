"""Nothing that was acknowledged is lost, and nothing is there twice: many senders, a receiver that is killed and started again."""

from __future__ import annotations

import json
import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from pathlib import Path

from otel_rig import Json, Receiver, lines, protobuf, reading, span, traces

CLIENTS = 16
RUNS = 2  # per client
SPANS = 9  # per run, its root included
BATCH = 4


def run(client: int, number: int) -> list[Json]:
    """The children come before their root, which began first."""
    trace = f"{client + 1:016x}{number + 1:016x}"
    own: Json = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.usage.input_tokens": 1}
    children = [
        span("t", own, id=f"{i + 2:016x}", parent=f"{1:016x}", trace=trace, at=i * 1_000_000) for i in range(1, SPANS)
    ]
    return [
        *children,
        span("invoke_agent a", {"gen_ai.usage.input_tokens": 1}, id=f"{1:016x}", trace=trace, lasts=1 << 30),
    ]


def sender(client: int, port: int, told: Queue[int], done: Queue[int]) -> None:
    """Sends batches until each was acknowledged, every other one once more, as an exporter does whose connection broke after the answer was written."""
    import http.client

    waiting = [one for number in range(RUNS) for one in run(client, number)]
    headers = {"content-type": "application/x-protobuf" if client % 2 else "application/json"}
    for start in range(0, len(waiting), BATCH):
        request = traces(*waiting[start : start + BATCH])
        body = protobuf(request) if client % 2 else json.dumps(request).encode()
        for _ in range(1 + start // BATCH % 2):
            deadline = time.monotonic() + 60
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                try:
                    connection.request("POST", "/v1/traces", body, headers)
                    if connection.getresponse().status == 200:
                        break
                except (OSError, http.client.HTTPException):
                    pass
                finally:
                    connection.close()
                assert time.monotonic() < deadline
                time.sleep(0.02)
        told.put(client)
    done.put(client)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(queue: Queue[int], count: int) -> None:
    for _ in range(count):
        queue.get(timeout=60)


def test_sixteen_senders_and_a_receiver_that_dies(tmp_path: Path) -> None:
    folder, port = tmp_path / "gh", free_port()
    told: Queue[int] = multiprocessing.Queue()
    done: Queue[int] = multiprocessing.Queue()
    receiver = Receiver(folder, "--no-grpc", port=port)
    senders = [multiprocessing.Process(target=sender, args=(n, port, told, done)) for n in range(CLIENTS)]
    for process in senders:
        process.start()
    for kill in (signal.SIGKILL, signal.SIGTERM):
        wait_for(told, CLIENTS)
        receiver.stop(kill)
        receiver = Receiver(folder, "--no-grpc", port=port)
    wait_for(done, CLIENTS)
    for process in senders:
        process.join(60)
        assert process.exitcode == 0
    receiver.stop()
    complete(folder)


def complete(folder: Path) -> None:
    found = reading(folder)
    assert len(found) == CLIENTS * RUNS
    for one in found:
        assert one.trace.agent_name == "svc" and "synthetic_trace" not in one.trace.metadata
        assert one.trace.total_tokens == SPANS
        assert [step["metadata"]["otel_span_id"] for step in one.steps] == [f"{i + 2:016x}" for i in range(1, SPANS)]  # type: ignore[index]


def test_a_store_that_is_read_meanwhile_says_the_same_in_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    receiver = Receiver(folder, "--no-grpc")
    for start in range(0, SPANS, 2):
        for client in range(CLIENTS):
            for number in range(RUNS):
                assert receiver.post("/v1/traces", traces(*run(client, number)[start : start + 2]))[0] == 200
        assert reading(folder)
    receiver.stop()
    complete(folder)


def test_what_came_before_a_restart_is_recognised_after_it(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    for _ in range(2):
        receiver = Receiver(folder, "--no-grpc")
        for client in range(CLIENTS):
            for number in range(RUNS):
                for _ in range(2):
                    assert receiver.post("/v1/traces", traces(*run(client, number)))[0] == 200
        receiver.stop(signal.SIGKILL)
    complete(folder)
    assert len(lines(folder)) == 2 * CLIENTS * RUNS * SPANS  # once per receiver, not twice


def test_half_a_line_of_a_receiver_that_was_killed_costs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    receiver = Receiver(folder, "--no-grpc")
    assert receiver.post("/v1/traces", traces(*run(0, 0)[:5]))[0] == 200
    receiver.stop(signal.SIGKILL)
    (file,) = folder.glob("journal/*/*.jsonl")
    with file.open("ab") as out:
        out.write(file.read_bytes().splitlines()[-1][:70])  # the beginning of another one
    receiver = Receiver(folder, "--no-grpc")
    assert receiver.post("/v1/traces", traces(*run(0, 0)))[0] == 200
    receiver.stop()
    (found,) = reading(folder, problems=frozenset(("gap", "unreadable")))
    assert (found.trace.step_count, found.trace.total_tokens) == (SPANS - 1, SPANS)


def slow_journal(path: Path) -> Callable[[], None]:
    """Holds the lock of every session of the journal, as another process might. Gives what lets them go."""
    import fcntl

    held = [head.open("r+b") for head in (path / "journal" / "heads").iterdir()]
    for file in held:
        fcntl.flock(file, fcntl.LOCK_EX)

    def release() -> None:
        for file in held:
            file.close()

    return release


def test_what_waits_for_the_journal_is_not_taken_without_end(tmp_path: Path) -> None:
    """While the journal is locked, requests wait; when too much waits, senders are told to come later, and nothing is lost."""
    folder = tmp_path / "gh"
    receiver = Receiver(folder, "--no-grpc", "--max-body", "1500000")
    assert receiver.post("/v1/traces", traces(*run(0, 0)))[0] == 200
    release = slow_journal(folder)
    late = traces(span("late", id="f" * 16, trace=f"{1:016x}{1:016x}"))
    body = json.dumps(late).encode()
    full = threading.Event()
    statuses: list[int] = []

    def post() -> None:
        deadline = time.monotonic() + 60
        while not full.is_set() and time.monotonic() < deadline:
            status, headers, _ = receiver.post("/v1/traces", body + b" " * 1_400_000)
            statuses.append(status)
            if status == 429:
                assert int(headers["retry-after"]) > 0
                full.set()

    threads = [threading.Thread(target=post) for _ in range(10)]
    for thread in threads:
        thread.start()
    assert full.wait(60)
    release()
    for thread in threads:
        thread.join(60)
    assert set(statuses) <= {200, 429, 503}
    assert receiver.post("/v1/traces", late)[0] == 200
    receiver.stop()
    (found,) = reading(folder)
    assert "late" in found.names
