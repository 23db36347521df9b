"""Calls of the service as tests make them, and what their errors say."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from tests.server.conftest import RunningServer

from dragoman.v1 import translation_pb2 as pb

GERMAN = {"source_language": "de", "target_language": "en"}
DE_EN = {"source": "de", "target": "en"}
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def translate(running: RunningServer, *texts: str, **fields: object) -> list[pb.Translation]:
    request = pb.TranslateRequest(texts=texts, **(GERMAN | fields))
    return list((await running.stub.Translate(request)).translations)


async def health(running: RunningServer, model: str) -> int:
    stub = health_pb2_grpc.HealthStub(running.channel)
    service = health_pb2.HealthCheckRequest(service=f"dragoman.v1.model/{model}")
    return int((await stub.Check(service)).status)


def linked(source: str, translation: pb.Translation) -> list[tuple[str, str]]:
    """What stands on both ends of each link of the best hypothesis."""
    return [
        (source[link.source_start : link.source_end], translation.text[link.target_start : link.target_end])
        for link in translation.hypotheses[0].alignments
    ]


def item(id_: str, text: str) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id=id_, text=text))


async def held(
    *messages: pb.TranslateStreamRequest, goes_on: asyncio.Event | None = None
) -> AsyncIterator[pb.TranslateStreamRequest]:
    """The messages of a stream that stays open; or, once it may go on, the last of them and its end."""
    for message in messages[:-1] if goes_on else messages:
        yield message
    await (goes_on or asyncio.Event()).wait()
    if goes_on:
        yield messages[-1]


async def until(is_so: Callable[[], object]) -> None:
    """Until something is so, which must be within a minute."""
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


async def failure(call: grpc.aio.UnaryUnaryCall) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def detail(error: grpc.aio.AioRpcError, message: error_details_pb2.ErrorInfo) -> object:
    """The detail of that type in the error's rich status."""
    status = rpc_status.from_call(_Ended(error))
    assert status is not None
    found = [item for item in status.details if item.Unpack(message)]
    assert found, f"{status} has no {message.DESCRIPTOR.name}"
    return message


class _Ended:
    """An error as the call that grpc_status wants."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        self.code, self.details, self.trailing_metadata = error.code, error.details, error.trailing_metadata


def reason_of(caplog: pytest.LogCaptureFixture, message: str) -> str:
    """What the one record of this message in the log gives as its reason."""
    (record,) = [record for record in caplog.records if record.message == message]
    return str(vars(record)["reason"])


async def violated_fields(running: RunningServer, request: pb.TranslateRequest) -> list[str]:
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    bad_request = detail(error, error_details_pb2.BadRequest())
    for violation in bad_request.field_violations:
        assert violation.field in error.details()
        assert violation.description in error.details()
    return [violation.field for violation in bad_request.field_violations]
