"""The TranslationService over gRPC. What its calls mean is the core's."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc_status import rpc_status

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc
from dragoman_server.api.interceptors import Context
from dragoman_server.service.call import TRACE_RESPONSE, Call, IncomingCall
from dragoman_server.service.core import ServiceCore
from dragoman_server.service.statuses import status_of
from dragoman_server.service.stream import Write


def write_to(context: Context) -> Write:
    """The function that sends the messages of a stream."""

    async def write(response: pb.TranslateStreamResponse) -> None:
        # Fails where the caller has just gone away; that this ends the call is told in another way.
        with contextlib.suppress(grpc.aio.InternalError):
            await context.write(response)

    return write


def _certified_names(context: Context) -> list[str]:
    """The names in the certificate of the caller's connection, the common name first."""
    certificate = context.auth_context()
    names = [*certificate.get("x509_common_name", ()), *certificate.get("x509_subject_alternative_name", ())]
    # gRPC gives a certificate without a common name an empty one.
    return [name.decode(errors="replace") for name in names if name]


def _unary(method: str, answer: Callable[[ServiceCore, Any, Call], Awaitable[Message]]) -> Any:
    """The service's method of this name, whose one answer is the core's."""

    async def handle(self: "TranslationService", message: Message, context: Context) -> Message:
        async with self._open_call(method, context) as call:
            return await answer(self._core, message, call)

    return handle


class TranslationService(translation_pb2_grpc.TranslationServiceServicer):
    """Brings each call of the proto to the core, and an error back as its status; see `statuses`."""

    def __init__(self, core: ServiceCore) -> None:
        self._core = core

    Translate = _unary("Translate", ServiceCore.translate)
    AlignTexts = _unary("AlignTexts", ServiceCore.align_texts)
    DetectLanguage = _unary("DetectLanguage", ServiceCore.detect_language)
    ListModels = _unary("ListModels", ServiceCore.list_models)
    GetModel = _unary("GetModel", ServiceCore.get_model)
    ListGlossaries = _unary("ListGlossaries", ServiceCore.list_glossaries)

    # grpc.aio takes a coroutine that writes as well as an iterator.
    async def TranslateStream(  # type: ignore[override]
        self, messages: AsyncIterator[pb.TranslateStreamRequest], context: Context
    ) -> None:
        async with self._open_call("TranslateStream", context) as call:
            await self._core.translate_stream(messages, write_to(context), call)

    @asynccontextmanager
    async def _open_call(self, method: str, context: Context) -> AsyncIterator[Call]:
        identify = self._core.callers.identify
        incoming = IncomingCall(
            method=method,
            peer=context.peer(),
            identify=lambda: identify(context.invocation_metadata(), _certified_names(context)),
            time_remaining=context.time_remaining,
            # The callback is declared as taking a class that does not exist.
            carrier=lambda: {
                key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)
            },
            on_answered=lambda close: context.add_done_callback(lambda _: close()),  # type: ignore[arg-type]
        )
        try:
            async with self._core.open_call(incoming) as call:
                if call.trace is not None:
                    await context.send_initial_metadata(((TRACE_RESPONSE, call.trace.answer),))
                yield call
        except Exception as error:
            await context.abort_with_status(rpc_status.to_status(status_of(error)))
