"""`guardhook otel serve`: receive OpenTelemetry from agents that know nothing of hooks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say

if TYPE_CHECKING:
    from guardhook.intake.otel.body import Limits, Memory
    from guardhook.intake.otel.rpc import GrpcServer
    from guardhook.intake.otel.writer import Account, Writer

HTTP_PORT, GRPC_PORT = 4318, 4317
_PORT = click.IntRange(0, 65535)


@click.group("otel")
def command() -> None:
    """Receive OpenTelemetry (OTLP) and record it as traces."""


@command.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen; beyond loopback only with --allow-remote.")  # fmt: skip
@click.option("--port", type=_PORT, default=HTTP_PORT, show_default=True, help="For OTLP/HTTP; 0 takes a free one.")
@click.option("--grpc-port", type=_PORT, help=f"For OTLP/gRPC; {GRPC_PORT} where gRPC is installed.")
@click.option("--no-grpc", is_flag=True, help="HTTP only.")
@click.option("--allow-remote", is_flag=True, help="Listen on an address that other machines can reach. Nobody is asked who they are.")  # fmt: skip
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name under which senders may address this machine.")  # fmt: skip
@click.option("--timeout", type=reading.Number(least=0.1, most=600, whole=False), default=15.0, show_default=True, metavar="SECONDS", help="How long a sender may be silent within a request.")  # fmt: skip
@click.option("--max-body", type=click.IntRange(1, 1 << 40), metavar="BYTES", help="Largest request as it is sent; twice that when inflated. 32 MiB unless given.")  # fmt: skip
@reading.as_json
@reading.directory
def serve(
    host: str,
    port: int,
    grpc_port: int | None,
    no_grpc: bool,
    allow_remote: bool,
    allow_host: tuple[str, ...],
    timeout: float,
    max_body: int | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Take spans, log records and metrics over HTTP and gRPC until stopped (Ctrl-C).

    What is acknowledged is in the journal. Traces are those of `guardhook list`.
    """
    from guardhook.intake.otel.body import MEMORY_LEAST, RAW_MOST, Limits, Memory
    from guardhook.intake.otel.ports import CannotBind, listen
    from guardhook.intake.otel.ports import resolve as address_of
    from guardhook.intake.otel.writer import Writer
    from guardhook.journal.files import open_root
    from guardhook.policy import settings

    folders = resolve(directory)
    if no_grpc and grpc_port is not None:
        fail("--no-grpc and --grpc-port contradict each other", as_json=as_json)
    try:
        mode = settings.read(folders).get("capture.mode", "redacted")
        address, local = address_of(host)
        if not local and not allow_remote:
            fail(
                f"{host} can be reached from other machines, and whoever reaches it can write traces",
                hints=["say --allow-remote as well if that is what you want, or leave --host away"],
                as_json=as_json,
            )
        listener = listen(address, port)
    except settings.SettingsError as error:
        fail(str(error), as_json=as_json)
    except CannotBind as error:
        fail(
            error.message,
            hints=[error.hint + (" (--port)" if "port" in error.hint else " (--host)")],
            code=1,
            as_json=as_json,
        )
    try:
        os.close(open_root(folders.journal))
    except OSError as error:
        fail(f"{folders.journal} can't be written: {error.strerror or error}", hints=["choose another folder with --dir"], code=1, as_json=as_json)  # fmt: skip
    raw = max_body or RAW_MOST
    limits, memory = Limits(raw, 2 * raw, timeout), Memory(max(6 * raw, MEMORY_LEAST))
    writer = Writer(folders, redaction=str(mode), on_error=_quietly())
    rpc = None if no_grpc else _grpc(writer, address, grpc_port, limits, memory, as_json)

    from guardhook.intake.otel.app import App
    from guardhook.intake.otel.hosts import Hosts
    from guardhook.intake.otel.server import serve as run

    app = App(writer, Hosts(allow_host, remote=not local), limits=limits, memory=memory)
    shown = f"[{address}]" if ":" in address else address
    http = f"http://{shown}:{listener.getsockname()[1]}"

    def ready() -> None:
        if as_json:
            with reading.heard():
                emit({"http": http, "grpc": None if rpc is None else f"{shown}:{rpc.port}", "journal": folders.journal})
        else:
            say(f"OTLP/HTTP on {http}" + ("" if rpc is None else f", OTLP/gRPC on {shown}:{rpc.port}") + f"; recording in {folders.journal}")  # fmt: skip

    try:
        run(app, listener, seconds=timeout, ready=ready)
    finally:
        if rpc is not None:
            rpc.stop(10)
        writer.close()
    with reading.heard():
        _account(writer.account, as_json)


def _grpc(
    writer: Writer, address: str, port: int | None, limits: Limits, memory: Memory, as_json: bool
) -> GrpcServer | None:
    """The gRPC server, None where grpcio is not installed and nobody asked for it."""
    from guardhook.intake.otel import rpc
    from guardhook.intake.otel.ports import CannotBind

    if not rpc.available():
        if port is not None:
            fail(
                "OTLP/gRPC needs grpcio, which is not installed",
                hints=["pip install 'guardhook[grpc]' (the single-file executable does not carry it)", "or let senders use OTLP/HTTP"],
                code=1,
                as_json=as_json,
            )  # fmt: skip
        say("without OTLP/gRPC: grpcio is not installed (pip install 'guardhook[grpc]'); senders must use OTLP/HTTP")
        return None
    try:
        return rpc.GrpcServer(writer, address, GRPC_PORT if port is None else port, limits=limits, memory=memory)
    except CannotBind as error:
        fail(error.message, hints=[error.hint + " (--grpc-port), or say --no-grpc"], code=1, as_json=as_json)


def _quietly() -> Callable[[str], None]:
    """Tells of trouble with the journal once, not with every request."""
    told: set[str] = set()
    lock = threading.Lock()

    def tell(message: str) -> None:
        with lock:
            if message in told or len(told) > 100:
                return
            told.add(message)
        say(f"guardhook: {message}")

    return tell


def _account(account: Account, as_json: bool) -> None:
    if as_json:
        emit({
            "requests": account.requests, "records": account.records, "rejected": account.rejected, "requests_refused": account.refused,
            "traces": len(account.traces), "parts": account.parts, "redelivered": account.again, "metrics": account.metrics.by_metric,
        })  # fmt: skip
        return
    records, rejected = account.records, sum(account.rejected.values())
    say(
        f"taken in: {records['traces']:,} spans, {records['logs']:,} log records, {records['metrics']:,} metric points;"
        f" {account.parts:,} parts of {len(account.traces):,} traces written, {account.again:,} had come before"
    )
    if rejected or account.refused:
        say(f"not taken in: {rejected:,} records, {account.refused:,} requests")
    for name, count in sorted(account.metrics.by_metric.items()):
        say(f"  {name}: {count:,} points")
