"""How many spans a second the OTLP receiver takes on one core, with none lost: clients in processes of their own, the receiver killed in the middle.

    python build/bench_otlp.py                     # 16 clients, 2,000 spans a second for a minute, kill -9 and a new start halfway
    python build/bench_otlp.py --rate 0            # as fast as it goes
    python build/bench_otlp.py --encoding json --gzip

Each client sends batches as an exporter does: it tries again with the same batch until it is told 200. At the end the store is made from the journal and every
span is looked for. Status 1 when one is missing or there twice.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
STEPS = 20  # spans of one run
TEXT = "Look for the places where the configuration is read, and tell which of them follow links. " * 6


def spans(client: int, run: int, rng: random.Random) -> list[dict[str, object]]:
    """One run of an agent as OTLP/JSON: a root, model calls and tool calls, the children before their parent as exporters send them."""
    trace = f"{client:08x}{run:024x}"
    start = time.time_ns()
    root = f"{rng.getrandbits(64) | 1:016x}"
    out: list[dict[str, object]] = []
    for number in range(STEPS - 1):
        tool = number % 2 == 1
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "execute_tool" if tool else "chat",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.conversation.id": f"session-{client}-{run}",
            "gen_ai.request.model": "claude-opus-5-5",
            "gen_ai.usage.input_tokens": 1000 + number,
            "gen_ai.usage.output_tokens": 50,
            "gen_ai.response.finish_reasons": "tool_use",
            "gen_ai.response.id": f"msg_{rng.getrandbits(64):016x}",
            "server.address": "api.example.com",
            "server.port": 443,
        }
        if tool:
            attributes["gen_ai.tool.name"] = "shell"
            attributes["gen_ai.tool.call.id"] = f"call_{number}"
            attributes["gen_ai.tool.call.arguments"] = json.dumps({"command": "grep -rn config src/"})
        else:
            attributes["gen_ai.input.messages"] = json.dumps([{"role": "user", "parts": [{"type": "text", "content": TEXT}]}])  # fmt: skip
        out.append(span(trace, root, "chat claude" if not tool else "execute_tool shell", start + number * 1_000_000, attributes, rng))  # fmt: skip
    own = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bench"}
    out.append({**span(trace, "", "invoke_agent bench", start - 1, own, rng), "spanId": root})
    return out


def span(trace: str, parent: str, name: str, start: int, attributes: dict[str, object], rng: random.Random) -> dict[str, object]:  # fmt: skip
    return {
        "traceId": trace,
        "spanId": f"{rng.getrandbits(64) | 1:016x}",
        "parentSpanId": parent,
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 900_000),
        "attributes": [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in attributes.items()
        ],
        "status": {},
    }


MARK = "5a" * 16  # stands for the trace's id in a span that is encoded beforehand


def templates(client: int, encoding: str) -> list[bytes]:
    """The spans of one run, encoded one by one. Ids of spans need to be different within a run only, so that the trace's id is all that changes."""
    found = [{**one, "traceId": MARK} for one in spans(client, 0, random.Random(client))]
    if encoding == "json":
        return [json.dumps(one).encode() for one in found]
    import base64

    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    for one in found:  # protobuf's own JSON has ids in base64
        for key in ("traceId", "spanId", "parentSpanId"):
            one[key] = base64.b64encode(bytes.fromhex(str(one[key]))).decode()
    return [field(2, bytes(ParseDict(one, Span()).SerializeToString())) for one in found]


def field(number: int, inner: bytes) -> bytes:
    """A protobuf field that holds a message."""
    length, rest = bytearray(), len(inner)
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    return bytes((number << 3 | 2, *length, rest)) + inner


def encoded(batch: list[bytes], options: argparse.Namespace) -> bytes:
    """A request of these spans, from a service called bench."""
    if options.encoding == "json":
        resource = b'{"attributes":[{"key":"service.name","value":{"stringValue":"bench"}}]}'
        body = b'{"resourceSpans":[{"resource":%b,"scopeSpans":[{"spans":[%b]}]}]}' % (resource, b",".join(batch))
    else:
        name = field(1, field(1, b"service.name") + field(2, field(1, b"bench")))
        body = field(1, field(1, name) + field(2, b"".join(batch)))
    return gzip.compress(body, 1) if options.gzip else body


def batches(client: int, options: argparse.Namespace) -> Iterator[tuple[int, bytes]]:
    """Batches that cut through runs, so that a run comes in several."""
    made = templates(client, options.encoding)
    mark = MARK.encode() if options.encoding == "json" else bytes.fromhex(MARK)
    waiting: list[bytes] = []
    for run in range(1 << 40):
        trace = f"{client + 1:08x}{run + 1:024x}"
        own = trace.encode() if options.encoding == "json" else bytes.fromhex(trace)
        waiting += [one.replace(mark, own) for one in made]
        while len(waiting) >= options.batch:
            batch, waiting = waiting[: options.batch], waiting[options.batch :]
            yield len(batch), encoded(batch, options)


def client(number: int, port: int, options: argparse.Namespace, start: float, results: Queue[tuple[int, int, int, list[float]]]) -> None:  # fmt: skip
    os.sched_setaffinity(0, {options.client_core})
    headers = {"content-type": "application/json" if options.encoding == "json" else "application/x-protobuf"}
    if options.gzip:
        headers["content-encoding"] = "gzip"
    pace = options.batch * options.clients / options.rate if options.rate else 0.0
    sent = retries = 0
    took: list[float] = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    ready = list(zip(range(options.prepared), batches(number, options), strict=False)) if not options.rate else None
    due = start + pace * number / options.clients
    source = (item for _, item in ready) if ready is not None else batches(number, options)
    time.sleep(max(0.0, start - time.time()))
    for count, body in source:
        if time.time() >= start + options.seconds:
            break
        time.sleep(max(0.0, due - time.time()))
        due += pace
        while True:
            began = time.perf_counter()
            try:
                connection.request("POST", "/v1/traces", body, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    took.append(time.perf_counter() - began)
                    break
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            retries += 1
            time.sleep(0.05)
        sent += count
    results.put((number, sent, retries, took))


class Receiver:
    """The process under test, on a core of its own."""

    def __init__(self, folder: Path, port: int, core: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "guardhook", "otel", "serve", "--dir", str(folder), "--port", str(port), "--no-grpc", "--json"],
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )  # fmt: skip
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def usage(self) -> tuple[float, int]:
        """Processor seconds and peak memory in MB."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        peak = next(line for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))  # fmt: skip
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) // 1024

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2000, help="spans a second, all clients together; 0: as fast as it goes")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--prepared", type=int, default=60, help="batches per client made beforehand with --rate 0")
    parser.add_argument("--encoding", choices=("protobuf", "json"), default="protobuf")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--no-restart", action="store_true")
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    options = parser.parse_args()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), port, options)


def measure(folder: Path, port: int, options: argparse.Namespace) -> int:
    receiver = Receiver(folder, port, options.server_core)
    results: Queue[tuple[int, int, int, list[float]]] = multiprocessing.Queue()
    start = time.time() + (2.0 if options.rate else 2.0 + options.prepared * options.clients * 0.015)
    processes = [multiprocessing.Process(target=client, args=(n, port, options, start, results)) for n in range(options.clients)]  # fmt: skip
    for process in processes:
        process.start()
    used, peak = 0.0, 0
    if not options.no_restart:
        time.sleep(max(0.0, start + options.seconds / 2 - time.time()))
        used, peak = receiver.usage()
        receiver.stop(signal.SIGKILL)
        receiver = Receiver(folder, port, options.server_core)
    told = [results.get() for _ in processes]
    ended = time.time()
    for process in processes:
        process.join()
    last = receiver.usage()
    receiver.stop(signal.SIGTERM)
    sent = sum(one[1] for one in told)
    took = sorted(value for one in told for value in one[3])
    seconds = ended - start
    print(f"{sent} spans acknowledged in {seconds:.1f} s: {sent / seconds:.0f} a second; {sum(one[2] for one in told)} attempts again")  # fmt: skip
    print(f"answer: median {took[len(took) // 2] * 1000:.1f} ms, 99 % {took[int(len(took) * 0.99)] * 1000:.1f} ms, longest {took[-1] * 1000:.0f} ms")  # fmt: skip
    print(f"receiver: {used + last[0]:.1f} s of processor time ({(used + last[0]) / seconds:.0%} of one core), peak memory {max(peak, last[1])} MB")  # fmt: skip
    return verify(folder, sent)


def verify(folder: Path, sent: int) -> int:
    from guardhook.core.folders import explicit
    from guardhook.store import open_store

    began = time.time()
    with open_store(explicit(str(folder))) as store:
        roots = steps = 0
        for trace in store.iterate():
            roots += "synthetic_trace" not in trace.metadata
            steps += trace.step_count
        problems = sum(1 for p in store.problems() if p.kind != "gap")
        lines = store.connection.execute("SELECT COUNT(*) FROM agent_trace_parts").fetchone()[0]
    print(f"store: {lines} spans in {roots} whole runs, {steps} steps, {problems} problems; made in {time.time() - began:.1f} s")  # fmt: skip
    if lines != sent or problems or lines != steps + roots:
        print(f"LOST OR DOUBLED: {sent} were acknowledged, {lines} are there")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
