"""Messages that are not what the proto says, such as text that is not UTF-8: INVALID_ARGUMENT.

Left to itself grpc.aio answers UNKNOWN and writes a stack trace.
"""

import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from dragoman_server.api.interceptors.interception import (
    Behaviour,
    Context,
    Continuation,
    Handler,
    behaviour_of,
    make_handler,
)
from dragoman_server.errors import InvalidRequestError, Violation
from dragoman_server.service.call import refusal_fields
from dragoman_server.service.statuses import code_of, status_of

logger = logging.getLogger(__name__)


class MalformedMessages(grpc.aio.ServerInterceptor):
    """Refuses a unary call whose message is malformed; a stream's handler finds InvalidRequestError there."""

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """Wraps the handler of the call."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_deserializer is None:
            return handler
        deserialize = handler.request_deserializer

        def read(message: bytes) -> Any:
            try:
                return deserialize(message)
            except DecodeError as error:
                return InvalidRequestError([Violation(field="", description=f"malformed message: {error}")])

        behaviour = behaviour_of(handler)
        if handler.request_streaming:
            return make_handler(handler, _refuse_in_stream(behaviour), read)
        method = handler_call_details.method.rpartition("/")[2]
        return make_handler(handler, _refuse(behaviour, method), read)


def _refuse(behaviour: Behaviour, method: str) -> Behaviour:
    async def run(request: Any, context: Context) -> Any:
        if isinstance(request, InvalidRequestError):
            # It never becomes a call with a line of its own.
            outcome = code_of(request).name
            fields = {"method": method, "outcome": outcome, **refusal_fields(context.peer(), str(request))}
            logger.info("call", extra=fields)
            await context.abort_with_status(rpc_status.to_status(status_of(request)))
        return await behaviour(request, context)

    return run


def _refuse_in_stream(behaviour: Behaviour) -> Behaviour:
    async def read(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            if isinstance(request, InvalidRequestError):
                raise request
            yield request
            del request

    async def run(requests: AsyncIterator[Any], context: Context) -> Any:
        return await behaviour(read(requests), context)

    return run
