"""Calls over gRPC and HTTP: model, limits, deadline, answer. Messages in, messages out."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.aligners.aligner import Aligners
from dragoman_server.aligners.linking import Linking
from dragoman_server.config import RequestLimits
from dragoman_server.detection import LanguageDetector
from dragoman_server.glossaries import Glossaries
from dragoman_server.models.language_lookup import distance
from dragoman_server.models.model import RequestedModel, ServedModel
from dragoman_server.models.repository import Repository
from dragoman_server.service.allowance import Allowances
from dragoman_server.service.call import Call, Gate, IncomingCall, log_if_internal, open_call
from dragoman_server.service.callers import Callers
from dragoman_server.service.pivoting import Settings, check_ranges, first_leg, join, second_leg
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
from dragoman_server.service.translating import Translator
from dragoman_server.text.align.pairs import AlignedPair
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.translated import NO_TIME, TranslatedText
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
    timings=NO_TIME,
)
"""The translation of an empty text."""
MAX_WAITING_DOCUMENTS = 16
"""Most documents that wait to be read or written, beside those that are."""
_DOCUMENT_THREADS = 2


@dataclass(kw_only=True, eq=False)
class ServiceCore:
    """Answers for the models of a repository, once there is one, and each call for those of its beginning.

    Each of its methods but `open` and `open_call` answers the call of that name in the proto, and raises
    what `errors` has.
    """

    gate: Gate
    callers: Callers
    allowances: Allowances
    translator: Translator
    limits: RequestLimits
    """The limits of what callers may ask for."""
    glossaries: Glossaries
    aligners: Aligners
    linking: Linking
    detector: LanguageDetector
    pivot: str | None = None
    """The language that texts go through where no model is for theirs; None for none."""
    tracing: "Tracing | None" = None

    def __post_init__(self) -> None:
        self._repository = Repository([], {})
        waiting = MAX_WAITING_DOCUMENTS
        self.documents = FairThreads(_DOCUMENT_THREADS, "dragoman-document", max_waiting=waiting)
        """Threads that read and write documents, which hold up nothing else."""

    @property
    def models(self) -> list[ServedModel]:
        """Those that are served, by name and version."""
        return self._repository.models

    def open(self, repository: Repository) -> None:
        """Lets calls in from now on, to these models."""
        self._repository = repository
        self.gate.open()

    def open_call(self, incoming: IncomingCall) -> AbstractAsyncContextManager[Call]:
        return open_call(
            incoming,
            gate=self.gate,
            allowances=self.allowances,
            tracing=self.tracing,
            max_idle_seconds=self.limits.max_stream_idle_seconds,
        )

    async def translate(self, message: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        """All texts, or an error; through a language between where that is allowed and no model is direct."""
        async with call.characters(sum(map(len, message.texts)), field="texts"):
            return await self.translate_part(message, call)

    async def translate_part(self, message: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        """The same within `call.characters`: some of the texts that were let through there."""
        first, *later = self._legs(message)
        answer = await self._translate(first, call)
        for leg in later:
            before, model = answer, call.model
            leg.texts.extend(translation.text for translation in before.translations)
            answer = await self._translate(leg, call)
            call.model = f"{model} {call.model}"
            for text, *both in zip(message.texts, before.translations, answer.translations, strict=True):
                join(text, *both)
            answer.path.extend([before.model, answer.model])
        return answer

    async def _translate(self, message: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        reader = self._reader()
        model = reader.choose_model(message)
        call.model = model.key
        priority = read_priority(message)

        def write(translated: list[TranslatedText]) -> pb.TranslateResponse:
            call.count(model, priority, translated)
            translations = map(write_translation, translated)
            return pb.TranslateResponse(translations=translations, model=write_reference(model))

        with model.calls.inside(), call.request(model, priority) as stages:
            async with model.use() as loaded:
                request = reader.read(message, loaded)
                return await self.translator.translate(request, write, wanted=call.wanted, stages=stages)

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
                    return await self.translator.align(request, write, wanted=call.wanted, stages=stages)

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
                await self.linking.link(request, write, wanted=call.wanted, stages=stages)
        return response

    async def translate_stream(
        self, messages: AsyncIterator[pb.TranslateStreamRequest], write: Write, call: Call
    ) -> None:
        """Writes the results as they complete."""
        max_idle_seconds = self.limits.max_stream_idle_seconds
        config = await read_config(messages, self.gate.draining, max_idle_seconds=max_idle_seconds)
        reader = self._reader()
        legs = self._legs(config)
        models = [reader.choose_model(leg) for leg in legs]
        call.model = " ".join(model.key for model in models)
        steps: list[tuple[RequestedModel, TranslationOptions]] = []

        async def answer(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
            return await self._answer_item(item, steps, call)

        stream = TranslationStream(
            answer,
            write=write,
            joins=config.join_results,
            max_items=self.limits.max_stream_items,
            max_idle_seconds=max_idle_seconds,
        )
        with ExitStack() as inside:
            for leg, model in zip(legs, models, strict=True):
                inside.enter_context(model.calls.inside())
                async with model.use() as loaded:
                    steps.append((model, reader.read_config(leg, loaded)))
            await stream.run(messages, self.gate.draining)

    async def detect_language(
        self, message: pb.DetectLanguageRequest, call: Call
    ) -> pb.DetectLanguageResponse:
        self._reader().check_texts(message.texts)
        wanted = self._sources_of(message.target_language)
        found = await self.detector.detect(
            message.texts, self._repository.languages, wanted=wanted, caller=call.wanted.caller
        )
        return pb.DetectLanguageResponse(texts=map(write_detected, found))

    async def list_models(self, message: pb.ListModelsRequest, call: Call) -> pb.ListModelsResponse:
        wanted = (message.source_language, message.target_language)
        models = [write_model(model) for model in self.models if model.distance(*wanted) is not None]
        return pb.ListModelsResponse(models=models)

    async def get_model(self, message: pb.GetModelRequest, call: Call) -> pb.GetModelResponse:
        model = self._reader().find_model(message)
        call.model = model.key
        return pb.GetModelResponse(model=write_model(model))

    async def list_glossaries(
        self, message: pb.ListGlossariesRequest, call: Call
    ) -> pb.ListGlossariesResponse:
        return pb.ListGlossariesResponse(glossaries=map(write_glossary, self.glossaries.by_name.values()))

    async def _answer_item(
        self, item: pb.TranslateStreamItem, steps: list[tuple[RequestedModel, TranslationOptions]], call: Call
    ) -> pb.TranslateStreamResponse:
        """An item goes through one model or two; its error is in the response.

        It waits for room in the queue, and for its caller's next minute, where a call is refused. The window
        bounds how many wait. To refuse an item would make its caller send it again.
        """
        path = [write_reference(model) for model, _ in steps] if len(steps) > 1 else []
        if not item.text and not item.protected_ranges:
            # No limit of characters holds such items, of which a small message has thousands.
            return self._translate_empty(item, steps, call, path)
        try:
            async with call.characters(len(item.text), field="item.text", waits=True):
                if path:
                    check_ranges(item.protected_ranges, "item.protected_ranges")
                answer = await self._translate_item(item, *steps[0], call)
                for step in steps[1:]:
                    before = answer.translation
                    between = pb.TranslateStreamItem(id=item.id, text=before.text)
                    answer = await self._translate_item(between, *step, call)
                    join(item.text, before, answer.translation)
                    answer.path.extend(path)
                return answer
        except Exception as error:
            log_if_internal(error)
            call.count_failed_item()
            reference = write_reference(steps[-1][0])
            return pb.TranslateStreamResponse(id=item.id, error=status_of(error), model=reference, path=path)

    def _translate_empty(
        self,
        item: pb.TranslateStreamItem,
        steps: list[tuple[RequestedModel, TranslationOptions]],
        call: Call,
        path: list[pb.ModelReference],
    ) -> pb.TranslateStreamResponse:
        for model, options in steps:
            model.metrics.on_request(outcome=Code.OK.name, priority=options.priority, seconds=0.0)
            call.count(model, options.priority, [EMPTY])
        translation, reference = write_translation(EMPTY), write_reference(steps[-1][0])
        return pb.TranslateStreamResponse(id=item.id, translation=translation, model=reference, path=path)

    async def _translate_item(
        self, item: pb.TranslateStreamItem, model: RequestedModel, options: TranslationOptions, call: Call
    ) -> pb.TranslateStreamResponse:
        def write(translated: list[TranslatedText]) -> pb.TranslateStreamResponse:
            call.count(model, options.priority, translated)
            translation, reference = write_translation(translated[0]), write_reference(model)
            return pb.TranslateStreamResponse(id=item.id, translation=translation, model=reference)

        with call.request(model, options.priority) as stages:
            async with model.use() as loaded:
                request = self._reader().read_item(item, loaded, options)
                translate = self.translator.translate
                return await translate(request, write, wanted=call.wanted, waits=True, stages=stages)

    def _legs(self, message: Settings) -> list[Settings]:
        """The request to each model: itself, or two over a language between.

        That is where two models are named, or none is and only two together have the languages.
        """
        source, target = message.source_language, message.target_language
        pivot = message.pivot_language if message.HasField("pivot_language") else self.pivot or ""
        first, _, second = message.model.partition(" ")

        def has_model(source: str, target: str) -> bool:
            return any(model.distance(source, target) is not None for model in self.models)

        if second:
            before, after = map(self._repository.by_name, (first, second))
            between = (before.manifest.targets, after.manifest.sources)
            pivot = next((languages[0] for languages in between if len(languages) == 1), pivot)
        elif (
            first
            or not (source and target and pivot)
            or has_model(source, target)
            or not (has_model(source, pivot) and has_model(pivot, target))
        ):
            return [message]
        return [first_leg(message, pivot, first), second_leg(message, pivot, second)]

    def _sources_of(self, target: str) -> set[str]:
        """The languages that texts are translated to a target from, by one model or two; to any for ""."""

        def direct(target: str) -> set[str]:
            models = [model for model in self.models if model.distance("", target) is not None]
            return {language for model in models for language in model.manifest.sources}

        sources = direct(target)
        if target and self.pivot is not None and self.pivot in sources:
            sources |= direct(self.pivot)
        return {source for source in sources if not target or distance(source, target) is None}

    def _reader(self) -> RequestReader:
        return RequestReader(self._repository, self.limits, self.glossaries.by_name, self.aligners.by_name)


def _num_characters(message: pb.AlignTextsRequest) -> int:
    return sum(len(pair.source) + len(pair.target) for pair in message.pairs)
