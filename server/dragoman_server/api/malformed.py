"""Messages that are not what the proto says, such as text that is not UTF-8, or too much: INVALID_ARGUMENT.

Left to itself grpc.aio answers UNKNOWN and writes a stack trace, or makes a string of every two bytes in a
message of empty texts.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any

import grpc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from dragoman_server.api.interceptors import (
    Behaviour,
    Context,
    Continuation,
    Handler,
    behaviour_of,
    make_handler,
)
from dragoman_server.errors import InvalidRequestError, refusal
from dragoman_server.service.call import refusal_fields
from dragoman_server.service.statuses import code_of, status_of

logger = logging.getLogger(__name__)

MAX_FIELDS = 100_000
"""Fields that a message may have, those of messages within it included, however few texts are allowed."""
_MAX_FIELDS_PER_TEXT = 100
# A smaller message takes little memory whatever it holds.
_MAX_UNCOUNTED_BYTES = 1 << 16
_LENGTH_OF_WIRE_TYPE = {1: 8, 5: 4}


class MalformedMessages(grpc.aio.ServerInterceptor):
    """Refuses a unary call whose message is malformed; a stream's handler finds InvalidRequestError there."""

    def __init__(self, *, max_texts: int) -> None:
        """`max_texts`: the limit of a call's texts; fields are counted to a multiple of it."""
        self._max_fields = max(MAX_FIELDS, _MAX_FIELDS_PER_TEXT * max_texts)

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_deserializer is None:
            return handler
        deserialize: Any = handler.request_deserializer
        descriptor: Descriptor = deserialize.__self__.DESCRIPTOR

        def read(message: bytes) -> Any:
            is_large = len(message) > _MAX_UNCOUNTED_BYTES
            if is_large and has_more_fields(message, descriptor, self._max_fields):
                description = f"a message has at most {self._max_fields} fields; send several messages"
                return refusal("", description)
            try:
                return deserialize(message)
            except DecodeError as error:
                return refusal("", f"malformed message: {error}")

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


def has_more_fields(message: bytes, descriptor: Descriptor, max_fields: int) -> bool:
    """Whether a message holds more fields than that, at all depths. It is read that far, and none is made.

    What is malformed counts as far as it can be read: a parser gets no further.
    """
    unread = [(0, len(message), descriptor)]
    num_fields = 0
    try:
        while unread:
            position, end, descriptor = unread.pop()
            nested = _nested(descriptor)
            while position < end:
                num_fields += 1
                if num_fields > max_fields:
                    return True
                tag, position = _read_varint(message, position)
                wire_type = tag & 7
                if wire_type == 2:
                    length, position = _read_varint(message, position)
                    if (inner := nested.get(tag >> 3)) is not None:
                        unread.append((position, position + length, inner))
                    position += length
                elif wire_type == 0:
                    _, position = _read_varint(message, position)
                else:
                    # Groups, which no message of ours has, are read as if their fields were its own.
                    position += _LENGTH_OF_WIRE_TYPE.get(wire_type, 0)
    except IndexError:
        return False
    return False


@cache
def _nested(descriptor: Descriptor) -> Mapping[int, Descriptor]:
    """The fields that are messages, by number."""
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """The number there, and the position behind it. Raises IndexError at the message's end."""
    byte = message[position]
    if byte < 0x80:
        return byte, position + 1
    value, shift = byte & 0x7F, 7
    while True:
        position += 1
        byte = message[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
