"""OTLP over gRPC, the default of most exporters. Needs the extra `grpc`; generic handlers, so that no generated service code is imported."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent import futures
from typing import Any

from guardhook.intake.otel.body import Limits, Memory, Refusal
from guardhook.intake.otel.ports import CannotBind, cannot
from guardhook.intake.otel.writer import PROTOBUF, Writer

_SERVICES = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
# gRPC reads whole messages before anybody can say no. Its own default is half of this.
MESSAGE_MOST = 8 << 20
_WORKERS = 32


class Missing(Exception):
    """grpcio is not installed."""


def available() -> bool:
    """Whether grpcio is there."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when its C core is loaded, which writes to stderr by itself
    try:
        import grpc  # noqa: F401
    except ImportError:
        return False
    return True


class GrpcServer:
    """A running gRPC server."""

    def __init__(self, writer: Writer, address: str, port: int, *, limits: Limits, memory: Memory) -> None:
        """Binds and starts. Raises Missing, CannotBind."""
        if not available():
            raise Missing
        import grpc

        self._grpc = grpc
        self._writer = writer
        self._memory = memory
        self._server = grpc.server(
            futures.ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="otel-grpc"),
            maximum_concurrent_rpcs=_WORKERS * 2,
            options=[
                ("grpc.max_receive_message_length", min(limits.raw, MESSAGE_MOST)),
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", 64),
            ],
        )
        for service, signal in _SERVICES.items():
            method = grpc.unary_unary_rpc_method_handler(self._export(signal))  # bytes in, bytes out
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
        where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        try:
            self.port: int = self._server.add_insecure_port(where)
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise self._why(address, port)
        self._server.start()

    def _why(self, address: str, port: int) -> CannotBind:
        from guardhook.intake.otel.ports import listen

        try:
            listen(address, port).close()
        except CannotBind as error:
            return error
        return cannot(OSError(None, "gRPC can't listen there"), address, port)

    def _export(self, signal: str) -> Callable[[bytes, Any], bytes]:
        def export(request: bytes, context: Any) -> bytes:
            codes = self._grpc.StatusCode
            if any(key == "origin" for key, _ in context.invocation_metadata()):
                context.abort(codes.PERMISSION_DENIED, "requests of web pages are not taken")
            try:
                self._memory.take(len(request))
            except Refusal as error:
                context.abort(codes.UNAVAILABLE, error.why)
            try:
                reply = self._writer.submit(signal, PROTOBUF, request).result()
            finally:
                self._memory.give(len(request))
            if reply.state == "ok":
                from guardhook.intake.otel.decode_protobuf import answer

                return answer(signal, reply.rejected, reply.why).SerializeToString()  # type: ignore[no-any-return]
            states = {
                "malformed": codes.INVALID_ARGUMENT,
                "large": codes.INVALID_ARGUMENT,
                "unavailable": codes.UNAVAILABLE,
            }
            context.abort(states.get(reply.state, codes.INTERNAL), reply.why)
            raise AssertionError  # abort does not return

        return export

    def stop(self, seconds: float) -> None:
        """Takes no more requests and waits for those that were accepted."""
        self._server.stop(seconds).wait()
