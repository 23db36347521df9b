"""The base of our interceptors: it wraps a handler of grpc.aio, whatever its kind."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

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
