"""The usual metrics of a gRPC server, for every call of every service, as an interceptor of grpc.aio.

`grpc_server_started_total`, `grpc_server_handled_total{grpc_code}` and `grpc_server_handling_seconds`.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from prometheus_client import CollectorRegistry, Counter, Histogram

from dragoman_server.api.interception import (
    Context,
    Continuation,
    Handler,
    behaviour_of,
    make_handler,
)
from dragoman_server.metrics.series import LATENCY_BUCKETS
from dragoman_server.service.statuses import cancellation_code

_LABELS = ("grpc_type", "grpc_service", "grpc_method")
_TYPES = {
    (False, False): "unary",
    (True, False): "client_stream",
    (False, True): "server_stream",
    (True, True): "bidi_stream",
}


class CallMetrics(grpc.aio.ServerInterceptor):
    """Counts and times calls. Unknown methods are not counted: their names are the caller's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._started = Counter("grpc_server_started_total", "Calls started.", _LABELS, registry=registry)
        self._handled = Counter(
            "grpc_server_handled_total", "Calls ended.", (*_LABELS, "grpc_code"), registry=registry
        )
        self._seconds = Histogram(
            "grpc_server_handling_seconds",
            "From a call's start to its end.",
            _LABELS,
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )

    def prepare(self, service: ServiceDescriptor) -> None:
        """Brings the series of a service's methods into being at 0, so that a first call shows as a rise."""
        for method in service.methods:
            labels = (
                _TYPES[method.client_streaming, method.server_streaming],
                service.full_name,
                method.name,
            )
            self._started.labels(*labels)
            self._seconds.labels(*labels)
            for code in grpc.StatusCode:
                self._handled.labels(*labels, code.name)

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """Wraps the handler of the call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        _, service, method = handler_call_details.method.split("/")
        labels = (_TYPES[handler.request_streaming, handler.response_streaming], service, method)
        behaviour = behaviour_of(handler)

        async def observe(request: Any, context: Context) -> Any:
            with self._observed(labels, context):
                return await behaviour(request, context)

        return make_handler(handler, observe, handler.request_deserializer)

    @contextmanager
    def _observed(self, labels: tuple[str, str, str], context: Context) -> Iterator[None]:
        self._started.labels(*labels).inc()
        started = time.perf_counter()
        code = grpc.StatusCode.OK.name
        try:
            yield
            code = _name(context.code(), code)
        except asyncio.CancelledError:
            code = cancellation_code(context.time_remaining()).name
            raise
        except BaseException:
            code = _name(context.code(), grpc.StatusCode.UNKNOWN.name)
            raise
        finally:
            self._handled.labels(*labels, code).inc()
            self._seconds.labels(*labels).observe(time.perf_counter() - started)


def _name(code: grpc.StatusCode | None, default: str) -> str:
    return code.name if code else default
