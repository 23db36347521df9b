"""/v1: the contract of proto/dragoman/v1 as JSON, by protobuf's own mapping, and as server-sent events."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.responses import Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import refusal
from dragoman_server.service.call import Call
from dragoman_server.service.core import ServiceCore
from dragoman_server.service.statuses import code_of, status_of
from dragoman_server.web.endpoint import Api, EventStream, Handle, WriteEvent, http_status
from dragoman_server.web.exchange import Exchange

M = TypeVar("M", bound=Message)


def describe_error(error: Exception) -> dict[str, object]:
    """The JSON of an error, in an answer or in a stream's last event, as Google's APIs write it (AIP-193)."""
    status = status_of(error)
    return {
        "code": http_status(error),
        "status": code_of(error).name,
        "message": status.message,
        "details": json_format.MessageToDict(status).get("details", []),
    }


API = Api(name="v1", describe=describe_error)


def _unary(
    method: str, make: Callable[[], M], answer: Callable[[ServiceCore, M, Call], Awaitable[Message]]
) -> Handle:
    """The handler of a call with one answer, whose message is the body."""

    async def handle(exchange: Exchange) -> Response:
        async with exchange.open_call(method) as call:
            message = await exchange.make_of_json(lambda value: parse_message(value, make(), ""))
            return _written(await answer(exchange.core, message, call))

    return handle


translate = _unary("Translate", pb.TranslateRequest, ServiceCore.translate)
align = _unary("AlignTexts", pb.AlignTextsRequest, ServiceCore.align_texts)
detect = _unary("DetectLanguage", pb.DetectLanguageRequest, ServiceCore.detect_language)


async def list_models(exchange: Exchange) -> Response:
    """GET /v1/models?sourceLanguage=&targetLanguage=."""
    async with exchange.open_call("ListModels") as call:
        query = await exchange.fields()
        message = pb.ListModelsRequest(
            source_language=query.string("sourceLanguage") or "",
            target_language=query.string("targetLanguage") or "",
        )
        return _written(await exchange.core.list_models(message, call))


async def get_model(exchange: Exchange) -> Response:
    """GET /v1/models/NAME or NAME/VERSION."""
    async with exchange.open_call("GetModel") as call:
        message = pb.GetModelRequest(name=exchange.request.path_params["name"])
        return _written(await exchange.core.get_model(message, call))


async def list_glossaries(exchange: Exchange) -> Response:
    async with exchange.open_call("ListGlossaries") as call:
        return _written(await exchange.core.list_glossaries(pb.ListGlossariesRequest(), call))


async def translate_stream(exchange: Exchange) -> Response:
    """POST /v1/translateStream: a list of the stream's messages; the answers are events as they complete."""
    messages = await exchange.make_of_json(_parse_stream)

    async def read() -> AsyncIterator[pb.TranslateStreamRequest]:
        for message in messages:
            yield message

    async def produce(write: WriteEvent) -> None:
        async def write_response(response: pb.TranslateStreamResponse) -> None:
            await write("result", _json(response))

        async with exchange.open_call("TranslateStream") as call:
            await exchange.core.translate_stream(read(), write_response, call)

    return EventStream(produce, lambda error: json.dumps({"error": describe_error(error)}))


def _parse_stream(values: object) -> list[pb.TranslateStreamRequest]:
    if not isinstance(values, list):
        raise refusal("", "the body must be a list of messages, the first of them a config")
    requests = enumerate(values)
    return [parse_message(value, pb.TranslateStreamRequest(), f"[{rank}]") for rank, value in requests]


def parse_message(value: object, message: M, field: str) -> M:
    """The message that an object of JSON is. Raises InvalidRequestError, of the field."""
    if not isinstance(value, dict):
        raise refusal(field, "must be an object of JSON")
    try:
        return json_format.ParseDict(value, message)
    except (json_format.ParseError, UnicodeEncodeError, ValueError, TypeError, RecursionError) as error:
        raise refusal(field, f"is no {message.DESCRIPTOR.name}: {str(error)[:500]}") from None


def _written(message: Message) -> Response:
    return Response(_json(message), media_type="application/json")


def _json(message: Message) -> str:
    return json_format.MessageToJson(
        message, indent=None, always_print_fields_with_no_presence=True, ensure_ascii=False
    )
