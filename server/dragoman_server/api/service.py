"""The TranslationService: messages in, messages out. What they mean is decided elsewhere."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc
from dragoman_server.api.call import Call, log_if_internal, open_call
from dragoman_server.api.callers import Callers
from dragoman_server.api.gate import Gate
from dragoman_server.api.interceptors.interception import Context
from dragoman_server.api.requests import RequestReader, read_priority
from dragoman_server.api.responses import (
    write_aligned_pair,
    write_glossary,
    write_model,
    write_reference,
    write_translation,
)
from dragoman_server.api.statuses import status_of
from dragoman_server.api.stream import TranslationStream, read_config
from dragoman_server.config import RequestLimits
from dragoman_server.glossaries import Glossaries
from dragoman_server.models.model import ServedModel
from dragoman_server.models.repository import Repository
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.pair import AlignedPair
from dragoman_server.text.translated import TranslatedText
from dragoman_server.text.translator import Translator


class TranslationService(translation_pb2_grpc.TranslationServiceServicer):
    """Answers for the models of a repository, once there is one, and each call for those of its beginning."""

    def __init__(
        self,
        *,
        gate: Gate,
        callers: Callers,
        translator: Translator,
        limits: RequestLimits,
        glossaries: Glossaries,
    ) -> None:
        self._gate = gate
        self._callers = callers
        self._translator = translator
        self._limits = limits
        self._glossaries = glossaries
        self._repository = Repository([], {})

    def open(self, repository: Repository) -> None:
        """Lets calls in from now on, to these models."""
        self._repository = repository
        self._gate.open()

    async def Translate(self, message: pb.TranslateRequest, context: Context) -> pb.TranslateResponse:
        """See the proto."""
        async with self._open_call("Translate", context) as call:
            reader = self._reader()
            model = reader.choose_model(message)
            call.model = model.key
            priority = read_priority(message)

            def write(translated: list[TranslatedText]) -> pb.TranslateResponse:
                call.count(model, priority, translated)
                return pb.TranslateResponse(
                    translations=map(write_translation, translated), model=write_reference(model)
                )

            with model.calls.inside(), call.request(model, priority):
                async with model.use() as loaded:
                    request = reader.read(message, loaded)
                    return await self._translator.translate(
                        request, write, timeout_seconds=context.time_remaining()
                    )

    async def AlignTexts(self, message: pb.AlignTextsRequest, context: Context) -> pb.AlignTextsResponse:
        """See the proto."""
        async with self._open_call("AlignTexts", context) as call:
            reader = self._reader()
            model = reader.choose_model(message)
            call.model = model.key
            priority = read_priority(message)

            def write(aligned: list[AlignedPair]) -> pb.AlignTextsResponse:
                call.count_pairs(model, aligned)
                return pb.AlignTextsResponse(
                    pairs=map(write_aligned_pair, aligned), model=write_reference(model)
                )

            with model.calls.inside(), call.request(model, priority):
                async with model.use() as loaded:
                    request = reader.read_pairs(message, loaded)
                    return await self._translator.align(
                        request, write, timeout_seconds=context.time_remaining()
                    )

    # grpc.aio takes a coroutine that writes as well as an iterator.
    async def TranslateStream(  # type: ignore[override]
        self, messages: AsyncIterator[pb.TranslateStreamRequest], context: Context
    ) -> None:
        """See the proto."""
        async with self._open_call("TranslateStream", context) as call:
            max_idle_seconds = self._limits.max_stream_idle_seconds
            config = await read_config(messages, self._gate.draining, max_idle_seconds=max_idle_seconds)
            reader = self._reader()
            model = reader.choose_model(config)
            call.model = model.key

            async def answer(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
                return await self._answer_item(item, model, options, call, context)

            stream = TranslationStream(
                answer,
                context=context,
                joins=config.join_results,
                max_items=self._limits.max_stream_items,
                max_idle_seconds=max_idle_seconds,
            )
            with model.calls.inside():
                async with model.use() as loaded:
                    options = reader.read_config(config, loaded)
                await stream.run(messages, self._gate.draining)

    async def ListModels(self, message: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        """See the proto."""
        async with self._open_call("ListModels", context):
            return pb.ListModelsResponse(
                models=[
                    write_model(model)
                    for model in self._repository.models
                    if model.distance(message.source_language, message.target_language) is not None
                ]
            )

    async def GetModel(self, message: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        """See the proto."""
        async with self._open_call("GetModel", context) as call:
            model = self._reader().find_model(message)
            call.model = model.key
            return pb.GetModelResponse(model=write_model(model))

    async def ListGlossaries(
        self, message: pb.ListGlossariesRequest, context: Context
    ) -> pb.ListGlossariesResponse:
        """See the proto."""
        async with self._open_call("ListGlossaries", context):
            return pb.ListGlossariesResponse(
                glossaries=map(write_glossary, self._glossaries.by_name.values())
            )

    async def _answer_item(
        self,
        item: pb.TranslateStreamItem,
        model: ServedModel,
        options: TranslationOptions,
        call: Call,
        context: Context,
    ) -> pb.TranslateStreamResponse:
        """An item waits for room in the queue, where a call is refused.

        The stream's window bounds how many wait. To refuse an item would make its caller send it again.
        """
        reference = write_reference(model)

        def write(translated: list[TranslatedText]) -> pb.TranslateStreamResponse:
            call.count(model, options.priority, translated)
            translation = write_translation(translated[0])
            return pb.TranslateStreamResponse(id=item.id, translation=translation, model=reference)

        try:
            with call.request(model, options.priority):
                async with model.use() as loaded:
                    request = self._reader().read_item(item, loaded, options)
                    return await self._translator.translate(
                        request, write, timeout_seconds=context.time_remaining(), waits=True
                    )
        except Exception as error:
            log_if_internal(error)
            call.count_failed_item()
            return pb.TranslateStreamResponse(id=item.id, error=status_of(error), model=reference)

    def _open_call(self, method: str, context: Context) -> AbstractAsyncContextManager[Call]:
        return open_call(
            method,
            context,
            gate=self._gate,
            callers=self._callers,
            max_idle_seconds=self._limits.max_stream_idle_seconds,
        )

    def _reader(self) -> RequestReader:
        return RequestReader(self._repository, self._limits, self._glossaries.by_name)
