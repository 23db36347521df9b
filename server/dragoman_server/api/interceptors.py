"""Interceptors of grpc.aio: how a handler of any kind is wrapped, the usual metrics, and strangers unread.

What strangers send is not read because a large message takes memory, and time to decode.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from prometheus_client import CollectorRegistry, Counter, Histogram

from dragoman_server.errors import UnknownCallerError
from dragoman_server.metrics.series import LATENCY_BUCKETS
from dragoman_server.service.callers import Callers
from dragoman_server.service.statuses import cancellation_code

Context = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]]"
Behaviour = Callable[[Any, Context], Awaitable[Any]]
"""Takes a request or an iterator of requests; returns its response or writes its responses to the context."""

_MAKERS: dict[tuple[bool, bool], Callable[..., Handler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def behaviour_of(handler: Handler) -> Behaviour:
    """The handler's function; one that yields its responses is made to write them."""
    # The declared types are those of grpc's threaded server.
    behaviour: Any = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )

    async def run(request: Any, context: Context) -> Any:
        answer = behaviour(request, context)
        if not inspect.isasyncgen(answer):
            return await answer
        async for response in answer:
            await context.write(response)
        return None

    return run


def make_handler(
    handler: Handler, behaviour: Behaviour, deserializer: Callable[[bytes], Any] | None
) -> Handler:
    """A handler of the same kind that does something else, or reads its requests otherwise."""
    make = _MAKERS[handler.request_streaming, handler.response_streaming]
    return make(behaviour, deserializer, handler.response_serializer)


class UnknownCallers(grpc.aio.ServerInterceptor):
    """Gives the handlers of a service an unknown caller's messages unread; to refuse the call is theirs."""

    def __init__(self, callers: Callers, service: str) -> None:
        self._callers = callers
        self._prefix = f"/{service}/"

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        handler = await continuation(handler_call_details)
        is_asked = self._callers.are_asked and handler_call_details.method.startswith(self._prefix)
        if handler is None or not is_asked:
            return handler
        try:
            self._callers.identify(handler_call_details.invocation_metadata)
        except UnknownCallerError:
            # A unary call's handler would begin once all of its message is there, which may be never.
            make = _MAKERS[True, handler.response_streaming]
            return make(behaviour_of(handler), None, handler.response_serializer)
        return handler


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
        counter, by_code = partial(Counter, registry=registry), (*_LABELS, "grpc_code")
        self._started = counter("grpc_server_started_total", "Calls started.", _LABELS)
        self._handled = counter("grpc_server_handled_total", "Calls ended.", by_code)
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
            kind = _TYPES[method.client_streaming, method.server_streaming]
            labels = (kind, service.full_name, method.name)
            self._started.labels(*labels)
            self._seconds.labels(*labels)
            for code in grpc.StatusCode:
                self._handled.labels(*labels, code.name)

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
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
