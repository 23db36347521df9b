"""Interceptors of grpc.aio: how a handler of any kind is wrapped, and one that reads nothing of strangers.

What they send is not read because a large message takes memory, and time to decode.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

from dragoman_server.errors import UnknownCallerError
from dragoman_server.service.callers import Callers

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
        """Wraps the handler of the call."""
        handler = await continuation(handler_call_details)
        is_asked = self._callers.are_asked and handler_call_details.method.startswith(self._prefix)
        if handler is None or not is_asked:
            return handler
        try:
            self._callers.identify(handler_call_details.invocation_metadata)
        except UnknownCallerError:
            # A unary call's handler would begin once all of its message is there, which may be never.
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.response_streaming
                else grpc.stream_unary_rpc_method_handler
            )
            return make(behaviour_of(handler), None, handler.response_serializer)
        return handler
