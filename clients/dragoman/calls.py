"""The calls with one answer that both clients have as methods, each written once.

They are coroutines over the transport of their client. Where that blocks they never suspend, and `blocking`
makes ordinary functions of them.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import errors, messages
from dragoman.base_client import BaseClient, Call
from dragoman.connection.channel import Deadline
from dragoman.model import Glossary, Model
from dragoman.portions import AUTO, AutoSource, Portion, Portions, detection_portions, text_pair_portions
from dragoman.settings import Options, Priority, Settings, TranslateOptions, check_text_pairs, check_texts
from dragoman.translation import AlignedTexts, DetectedLanguage, Translation
from dragoman.v1 import translation_pb2 as pb

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
AnyClient = TypeVar("AnyClient", bound=BaseClient)


def run(call: Coroutine[Any, Any, Result]) -> Result:
    """The result of a call over a transport that blocks."""
    try:
        call.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("a call over a transport that blocks never suspends")


def blocking(
    call: Callable[Concatenate[AnyClient, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[AnyClient, Parameters], Result]:
    """The method that runs a call to its end."""

    @wraps(call)
    def method(self: AnyClient, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return run(call(self, *args, **kwargs))

    return method


@overload
async def translate(  # type: ignore[overload-overlap]
    self: BaseClient, texts: str, *, source: str, target: str, **options: Unpack[TranslateOptions]
) -> Translation: ...


@overload
async def translate(
    self: BaseClient, texts: Iterable[str], *, source: str, target: str, **options: Unpack[TranslateOptions]
) -> list[Translation]: ...


async def translate(
    self: BaseClient,
    texts: str | Iterable[str],
    *,
    source: str,
    target: str,
    timeout_seconds: float | None = None,
    **options: Unpack[Options],
) -> Translation | list[Translation]:
    """Translates texts, and returns one translation for each, in their order: all of them, or an error.

    Of one string it returns the one translation. `source` may be "auto": the server detects each text's
    language, and a text in the target language stays as it is, with no hypotheses.
    A long list travels in several requests, a few at a time; `timeout_seconds` holds for all of it;
    None is the client's own. A server that goes away in the middle is waited for, up to the client's
    `patience_seconds`; the error then has the translations that are done, by their text's position.
    What is None is left to the model or the server. `dragoman.Settings` explains each option.
    """
    settings = Settings(source=source, target=target, **options)
    checked = check_texts([texts] if isinstance(texts, str) else texts)
    deadline = self._deadline(timeout_seconds)
    if source == AUTO:
        translations = await _translate_detected(self, checked, settings, deadline)
    else:
        translations = await _translate(self, checked, settings, deadline)
    return translations[0] if isinstance(texts, str) else translations


async def _translate_detected(
    self: BaseClient, texts: list[str], settings: Settings, deadline: Deadline
) -> list[Translation]:
    found = await detect(self, texts, target=settings.target, timeout_seconds=deadline.remaining_seconds())
    auto = AutoSource(texts, found, settings.target)
    for language, group in auto.groups():
        settings = replace(settings, source=language)
        auto.answer(language, await _translate(self, group, settings, deadline))
    return auto.translations()


async def _translate(
    self: BaseClient, texts: list[str], settings: Settings, deadline: Deadline
) -> list[Translation]:
    seconds, num_elsewhere = self._patience_seconds, self._route.num_elsewhere
    portions = Portions(texts, settings, patience_seconds=seconds, num_elsewhere=num_elsewhere)
    calls: deque[tuple[Portion, Call]] = deque()
    try:
        while True:
            while (portion := portions.next()) is not None:
                remaining = deadline.remaining_seconds()
                calls.append((portion, self._start(self._stub.Translate, portion.request, remaining)))
            if not calls:
                return portions.translations()
            portion, call = calls[0]
            try:
                portions.answer(portion, await self._answer(call))
            except errors.DragomanError as error:
                await self._sleep(portions.refuse(portion, error, deadline.remaining_seconds()))
            # Not before it has ended: what interrupts the wait finds it among those to cancel.
            calls.popleft()
    finally:
        for _, call in calls:
            call.cancel()


async def align(
    self: BaseClient,
    pairs: Iterable[tuple[str, str]],
    *,
    source: str | None = None,
    target: str | None = None,
    model: str | None = None,
    aligner: str | None = None,
    priority: Priority | None = None,
    timeout_seconds: float | None = None,
) -> list[AlignedTexts]:
    """Links the words of texts and of given translations: by what a model looks at when it says these, or
    by the server's saved `aligner` of that name.

    A model is named, or chosen by the languages, `source` and `target`; with an aligner neither is given.
    `pairs` are of a text and its translation; the answers come in their order: all of them, or an error,
    whose positions are those of its request where a long list travels in several. Where both sides have
    as many lines, they are linked line by line. `timeout_seconds` holds for all of it; None is the
    client's own.
    """
    deadline = self._deadline(timeout_seconds)
    aligned: list[AlignedTexts] = []
    for portion in text_pair_portions(check_text_pairs(pairs)):
        request = pb.AlignTextsRequest(
            pairs=[pb.TextPair(source=text, target=translated) for text, translated in portion],
            source_language=source or "",
            target_language=target or "",
            model=model or "",
            priority=messages.priority_of(priority),
            aligner=aligner or "",
        )
        response = await self._ask(self._stub.AlignTexts, request, deadline.remaining_seconds())
        aligned += messages.aligned_texts(response)
    return aligned


async def detect(
    self: BaseClient, texts: Iterable[str], *, target: str | None = None, timeout_seconds: float | None = None
) -> list[DetectedLanguage]:
    """The language of each text, of those that the server's models have, with what else it may be.

    Where that is uncertain, it is one that can be translated to `target`. Looked at text by text;
    `language` is None for one clearly in no such language. Raises UnsupportedError where the server lacks
    the library for it.
    """
    deadline = self._deadline(timeout_seconds)
    detected: list[DetectedLanguage] = []
    for portion in detection_portions(check_texts(texts)):
        request = pb.DetectLanguageRequest(texts=portion, target_language=target or "")
        response = await self._ask(self._stub.DetectLanguage, request, deadline.remaining_seconds())
        detected += messages.detected_languages(response)
    return detected


async def models(self: BaseClient, *, source: str = "", target: str = "") -> list[Model]:
    """The models being served, by name and version; only those of the languages that are given."""
    request = pb.ListModelsRequest(source_language=source, target_language=target)
    response = await self._ask(self._stub.ListModels, request, self._timeout_seconds)
    return [messages.model(model) for model in response.models]


async def glossaries(self: BaseClient) -> list[Glossary]:
    """The glossaries of the server, by name."""
    response = await self._ask(self._stub.ListGlossaries, pb.ListGlossariesRequest(), self._timeout_seconds)
    return [messages.glossary(glossary) for glossary in response.glossaries]


async def model(self: BaseClient, name: str) -> Model:
    """One model, by "name" or "name/version". Raises ModelNotFoundError, which names those there are."""
    response = await self._ask(self._stub.GetModel, pb.GetModelRequest(name=name), self._timeout_seconds)
    return messages.model(response.model)


async def health(self: BaseClient, service: str = "") -> bool:
    """Whether the server, or one of its services by name, is serving. Not tried again: it tells of now.

    Raises UnavailableError where no server answers, ModelNotFoundError for a service it does not know.
    """
    check = health_pb2_grpc.HealthStub(self._channel).Check
    request = health_pb2.HealthCheckRequest(service=service)
    try:
        response = await self._ask(check, request, self._timeout_seconds)
    except errors.ModelNotFoundError as error:
        # Of an unknown service the server says nothing.
        message = f"the server has no service {service!r}"
        raise errors.ModelNotFoundError(message, status="NOT_FOUND") from error.__cause__
    return bool(response.status == health_pb2.HealthCheckResponse.SERVING)
