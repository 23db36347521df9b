"""Calls over gRPC and HTTP: model, limits, deadline, answer. Messages in, messages out."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.aligners.folder import Aligners
from dragoman_server.aligners.linking import Linking
from dragoman_server.config import RequestLimits
from dragoman_server.detection import LanguageDetector
from dragoman_server.glossaries import Glossaries, Glossary
from dragoman_server.models.language_lookup import distance
from dragoman_server.models.model import ServedModel
from dragoman_server.models.repository import Repository
from dragoman_server.service.allowance import Allowances
from dragoman_server.service.call import Call, IncomingCall, log_if_internal, open_call
from dragoman_server.service.callers import Callers
from dragoman_server.service.gate import Gate
from dragoman_server.service.pivoting import first_request, joined, second_request
from dragoman_server.service.requests import RequestReader, read_priority
from dragoman_server.service.responses import (
    write_aligned_pair,
    write_detected,
    write_glossary,
    write_model,
    write_reference,
    write_translation,
)
from dragoman_server.service.statuses import Code, status_of
from dragoman_server.service.stream import TranslationStream, Write, read_config
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.pair import AlignedPair
from dragoman_server.text.translated import Timings, TranslatedText
from dragoman_server.text.translator import Translator
from dragoman_server.turns import FairThreads

if TYPE_CHECKING:
    from dragoman_server.tracing import Tracing

EMPTY = TranslatedText(
    text="",
    hypotheses=(),
    split=False,
    truncated=False,
    num_units=0,
    num_source_tokens=0,
    num_target_tokens=0,
    timings=Timings(queue=0.0, encode=0.0, decode=0.0),
)
"""The translation of an empty text."""
MAX_WAITING_DOCUMENTS = 16
"""Most documents that wait to be read or written, beside those that are."""
_DOCUMENT_THREADS = 2


class ServiceCore:
    """Answers for the models of a repository, once there is one, and each call for those of its beginning.

    Each of its methods but `open` and `open_call` answers the call of that name in the proto, and raises
    what `errors` has.
    """

    def __init__(
        self,
        *,
        gate: Gate,
        callers: Callers,
        allowances: Allowances,
        translator: Translator,
        limits: RequestLimits,
        glossaries: Glossaries,
        aligners: Aligners,
        linking: Linking,
        detector: LanguageDetector,
        pivot: str | None = None,
        tracing: "Tracing | None" = None,
    ) -> None:
        """`pivot`: a language that texts go through where no model is for theirs; None for none."""
        self._tracing = tracing
        self._gate = gate
        self.callers = callers
        """The callers that may call."""
        self._allowances = allowances
        self._translator = translator
        self.limits = limits
        """The limits of what they may ask for."""
        self._glossaries = glossaries
        self._aligners = aligners
        self._linking = linking
        self._detector = detector
        self._pivot = pivot
        self._repository = Repository([], {})
        self.documents = FairThreads(
            _DOCUMENT_THREADS, "dragoman-document", max_waiting=MAX_WAITING_DOCUMENTS
        )
        """Threads that read and write documents, which hold up nothing else."""

    @property
    def pivot(self) -> str | None:
        """The language that texts go through where no model is for theirs; None for none."""
        return self._pivot

    @property
    def models(self) -> list[ServedModel]:
        """Those that are served, by name and version."""
        return self._repository.models

    @property
    def glossaries(self) -> Mapping[str, Glossary]:
        """Those of the server, by name."""
        return self._glossaries.by_name

    def open(self, repository: Repository) -> None:
        """Lets calls in from now on, to these models."""
        self._repository = repository
        self._gate.open()

    def open_call(self, incoming: IncomingCall) -> AbstractAsyncContextManager[Call]:
        """Opens a call for its work."""
        return open_call(
            incoming,
            gate=self._gate,
            allowances=self._allowances,
            tracing=self._tracing,
            max_idle_seconds=self.limits.max_stream_idle_seconds,
        )

    async def translate(self, message: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        """All texts, or an error; through a language between where that is allowed and no model is direct."""
        async with call.characters(sum(map(len, message.texts)), field="texts"):
            return await self.translate_part(message, call)

    async def translate_part(self, message: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        """The same within `call.characters`: some of the texts that were let through there."""
        pivot = self._pivot_of(message)
        if pivot is None:
            return await self._translate(message, call)
        first = await self._translate(first_request(message, pivot), call)
        first_model = call.model
        second = await self._translate(second_request(message, pivot, first), call)
        call.model = f"{first_model} {call.model}"
        return joined(message, first, second)

    async def _translate(self, message: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        reader = self._reader()
        model = reader.choose_model(message)
        call.model = model.key
        priority = read_priority(message)

        def write(translated: list[TranslatedText]) -> pb.TranslateResponse:
            call.count(model, priority, translated)
            return pb.TranslateResponse(
                translations=map(write_translation, translated), model=write_reference(model)
            )

        with model.calls.inside(), call.request(model, priority) as stages:
            async with model.use() as loaded:
                request = reader.read(message, loaded)
                return await self._translator.translate(request, write, wanted=call.wanted, stages=stages)

    async def align_texts(self, message: pb.AlignTextsRequest, call: Call) -> pb.AlignTextsResponse:
        """All pairs, or an error; by a saved aligner where the request names one."""
        if message.aligner:
            return await self._link_texts(message, call)
        reader = self._reader()
        model = reader.choose_model(message)
        call.model = model.key
        priority = read_priority(message)

        def write(aligned: list[AlignedPair]) -> pb.AlignTextsResponse:
            call.count_pairs(model, aligned)
            return pb.AlignTextsResponse(pairs=map(write_aligned_pair, aligned), model=write_reference(model))

        async with call.characters(_num_characters(message), field="pairs"):
            with model.calls.inside(), call.request(model, priority) as stages:
                async with model.use() as loaded:
                    request = reader.read_pairs(message, loaded)
                    return await self._translator.align(request, write, wanted=call.wanted, stages=stages)

    async def _link_texts(self, message: pb.AlignTextsRequest, call: Call) -> pb.AlignTextsResponse:
        reader = self._reader()
        aligner = reader.choose_aligner(message)
        call.model = aligner.key

        response = pb.AlignTextsResponse(aligner=aligner.name)

        def write(aligned: AlignedPair) -> None:
            call.count_pairs(aligner, [aligned])
            response.pairs.append(write_aligned_pair(aligned))

        async with call.characters(_num_characters(message), field="pairs"):
            with call.request(aligner, read_priority(message)) as stages:
                request = reader.read_linking(message, aligner)
                await self._linking.link(request, write, wanted=call.wanted, stages=stages)
        return response

    async def translate_stream(
        self, messages: AsyncIterator[pb.TranslateStreamRequest], write: Write, call: Call
    ) -> None:
        """Writes the results as they complete."""
        max_idle_seconds = self.limits.max_stream_idle_seconds
        config = await read_config(messages, self._gate.draining, max_idle_seconds=max_idle_seconds)
        reader = self._reader()
        model = reader.choose_model(config)
        call.model = model.key

        async def answer(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
            return await self._answer_item(item, model, options, call)

        stream = TranslationStream(
            answer,
            write=write,
            joins=config.join_results,
            max_items=self.limits.max_stream_items,
            max_idle_seconds=max_idle_seconds,
        )
        with model.calls.inside():
            async with model.use() as loaded:
                options = reader.read_config(config, loaded)
            await stream.run(messages, self._gate.draining)

    async def detect_language(
        self, message: pb.DetectLanguageRequest, call: Call
    ) -> pb.DetectLanguageResponse:
        """Each text's language."""
        self._reader().check_texts(message.texts)
        served = {language for model in self.models for language in model.manifest_languages}
        wanted = self._sources_of(message.target_language)
        found = await self._detector.detect(message.texts, served, wanted=wanted, caller=call.wanted.caller)
        return pb.DetectLanguageResponse(texts=map(write_detected, found))

    def list_models(self, message: pb.ListModelsRequest) -> pb.ListModelsResponse:
        """Those of the languages."""
        return pb.ListModelsResponse(
            models=[
                write_model(model)
                for model in self._repository.models
                if model.distance(message.source_language, message.target_language) is not None
            ]
        )

    def get_model(self, message: pb.GetModelRequest, call: Call) -> pb.GetModelResponse:
        """One model."""
        model = self._reader().find_model(message)
        call.model = model.key
        return pb.GetModelResponse(model=write_model(model))

    def list_glossaries(self, message: pb.ListGlossariesRequest) -> pb.ListGlossariesResponse:
        """All of the server."""
        return pb.ListGlossariesResponse(glossaries=map(write_glossary, self._glossaries.by_name.values()))

    async def _answer_item(
        self, item: pb.TranslateStreamItem, model: ServedModel, options: TranslationOptions, call: Call
    ) -> pb.TranslateStreamResponse:
        """An item waits for room in the queue, and for its caller's next minute, where a call is refused.

        The stream's window bounds how many wait. To refuse an item would make its caller send it again.
        """
        reference = write_reference(model)

        def write(translated: list[TranslatedText]) -> pb.TranslateStreamResponse:
            call.count(model, options.priority, translated)
            translation = write_translation(translated[0])
            return pb.TranslateStreamResponse(id=item.id, translation=translation, model=reference)

        if not item.text and not item.protected_ranges:
            # No limit of characters holds such items, of which a small message has thousands.
            model.metrics.on_request(outcome=Code.OK.name, priority=options.priority, seconds=0.0)
            return write([EMPTY])

        try:
            async with call.characters(len(item.text), field="item.text", waits=True):
                with call.request(model, options.priority) as stages:
                    async with model.use() as loaded:
                        request = self._reader().read_item(item, loaded, options)
                        return await self._translator.translate(
                            request, write, wanted=call.wanted, waits=True, stages=stages
                        )
        except Exception as error:
            log_if_internal(error)
            call.count_failed_item()
            return pb.TranslateStreamResponse(id=item.id, error=status_of(error), model=reference)

    def _pivot_of(self, message: pb.TranslateRequest) -> str | None:
        """The language that texts go through; None where a model is direct, or there is no such way."""
        pivot = message.pivot_language if message.HasField("pivot_language") else self._pivot
        if not pivot or message.model or not (message.source_language and message.target_language):
            return None

        def has_model(source: str, target: str) -> bool:
            return any(model.distance(source, target) is not None for model in self.models)

        if has_model(message.source_language, message.target_language):
            return None
        is_way = has_model(message.source_language, pivot) and has_model(pivot, message.target_language)
        return pivot if is_way else None

    def _sources_of(self, target: str) -> set[str]:
        """The languages that texts are translated to a target from, by one model or two; to any for ""."""

        def direct(target: str) -> set[str]:
            models = [model for model in self.models if model.distance("", target) is not None]
            return {model.manifest_languages[0] for model in models}

        sources = direct(target)
        if target and self._pivot is not None and self._pivot in sources:
            sources |= direct(self._pivot)
        return {source for source in sources if not target or distance(source, target) is None}

    def _reader(self) -> RequestReader:
        return RequestReader(self._repository, self.limits, self._glossaries.by_name, self._aligners.by_name)


def _num_characters(message: pb.AlignTextsRequest) -> int:
    return sum(len(pair.source) + len(pair.target) for pair in message.pairs)
