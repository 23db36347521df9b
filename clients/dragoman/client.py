"""The client for ordinary code: every call blocks until its answer is there."""

import time
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import errors, messages
from dragoman.auto_source import AUTO, AutoSource
from dragoman.connection.connected import Connected
from dragoman.connection.deadline import Deadline, within_clock
from dragoman.connection.route import Server
from dragoman.connection.unreachable import cause_of
from dragoman.feed import Feed
from dragoman.ledger import Ledger
from dragoman.model import Glossary, Model
from dragoman.portions import Portion, Portions
from dragoman.settings import Options, Priority, Settings, TranslateOptions
from dragoman.texts import check_text_pairs, check_texts, detection_portions, text_pair_portions
from dragoman.translation import AlignedTexts, DetectedLanguage, Key, StreamResult, Translation
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc

if TYPE_CHECKING:
    # A name that only the type stubs of grpc have.
    _TranslateCall = grpc._CallFuture[pb.TranslateResponse]

Request = TypeVar("Request")
Response = TypeVar("Response")


class Client(Connected):
    """A connection to a Dragoman server, or to several. Threads may share it. Use it in a `with` block, or
    close it.

    Every call raises a DragomanError where it fails. One that finds no server is tried again for a second or
    two first, of several servers at another; `translate_stream` and `health` are not, and fail at once.
    """

    def _open(self) -> None:
        self._channel = self._route.open_channel()
        self._translation_stub = pb_grpc.TranslationServiceStub(self._channel)
        self._health_stub = health_pb2_grpc.HealthStub(self._channel)

    def close(self) -> None:
        """Ends the connection and every call on it; later ones raise ClientClosedError."""
        self._closed = True
        self._channel.close()

    def servers(self) -> list[Server]:
        """All that its address leads to, as they are known now.

        Raises UnavailableError for a name that is not known, InvalidRequestError for one without a port.
        """
        return self._route.servers()

    def at(self, server: Server) -> "Client":
        """A client of one of its servers, with a connection of its own and all else as this one's."""
        return Client(
            server,
            timeout_seconds=self._timeout_seconds,
            patience_seconds=self._patience_seconds,
            ping_seconds=self._ping_seconds,
            credentials=self._route.credentials,
            token=self._token,
        )

    def _error(self, failure: grpc.RpcError) -> errors.DragomanError:
        """The typed error of a call that failed, with the cause where no connection came about."""
        error = errors.from_call(failure)
        cause = cause_of(str(error), self._route)
        return error if cause is None else errors.UnavailableError(cause)

    @property
    def _stub(self) -> pb_grpc.TranslationServiceStub:
        self._check_open()
        return self._translation_stub

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(
        self,
        method: "grpc.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        seconds: float | None,
    ) -> Response:
        """The response of one call, which may take so long. Raises DragomanError."""
        try:
            return method(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._error(error) from error

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, *, source: str, target: str, **options: Unpack[TranslateOptions]
    ) -> Translation: ...

    @overload
    def translate(
        self, texts: Iterable[str], *, source: str, target: str, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    def translate(
        self,
        texts: str | Iterable[str],
        *,
        source: str,
        target: str,
        pivot: str | None = None,
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
        `pivot` is a language that the texts may go through where no model is for their languages; "" is none.
        """
        settings = Settings(source=source, target=target, **options)
        checked = check_texts([texts] if isinstance(texts, str) else texts)
        deadline = self._deadline(timeout_seconds)
        if source == AUTO:
            translations = self._translate_detected(checked, settings, pivot, deadline)
        else:
            translations = self._translate(checked, settings, pivot, deadline)
        return translations[0] if isinstance(texts, str) else translations

    def _translate_detected(
        self, texts: list[str], settings: Settings, pivot: str | None, deadline: Deadline
    ) -> list[Translation]:
        found = self.detect(texts, target=settings.target, timeout_seconds=deadline.remaining_seconds())
        auto = AutoSource(texts, found, settings.target)
        for language, group in auto.groups():
            settings = replace(settings, source=language)
            auto.answer(language, self._translate(group, settings, pivot, deadline))
        return auto.translations()

    def _translate(
        self, texts: list[str], settings: Settings, pivot: str | None, deadline: Deadline
    ) -> list[Translation]:
        portions = Portions(
            texts,
            settings,
            pivot=pivot,
            patience_seconds=self._patience_seconds,
            num_elsewhere=self._route.num_elsewhere,
        )
        calls: deque[tuple[Portion, _TranslateCall]] = deque()
        try:
            while True:
                while (portion := portions.next()) is not None:
                    call = self._stub.Translate.future(
                        portion.request, timeout=deadline.remaining_seconds(), metadata=self._metadata
                    )
                    calls.append((portion, call))
                if not calls:
                    return portions.translations()
                portion, call = calls[0]
                try:
                    portions.answer(portion, call.result())
                except grpc.RpcError as failure:
                    error = self._error(failure)
                    time.sleep(portions.refuse(portion, error, deadline.remaining_seconds()))
                # Not before it has ended: what interrupts the wait finds it among those to cancel.
                calls.popleft()
        finally:
            for _, call in calls:
                call.cancel()

    def align(
        self,
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
            request = messages.align_request(
                portion, source=source, target=target, model=model, aligner=aligner, priority=priority
            )
            response = self._ask(self._stub.AlignTexts, request, deadline.remaining_seconds())
            aligned += messages.aligned_texts(response)
        return aligned

    def detect(
        self, texts: Iterable[str], *, target: str | None = None, timeout_seconds: float | None = None
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
            response = self._ask(self._stub.DetectLanguage, request, deadline.remaining_seconds())
            detected += messages.detected_languages(response)
        return detected

    def translate_stream(
        self,
        texts: Iterable[tuple[Key, str]],
        *,
        source: str,
        target: str,
        in_order: bool = False,
        window: int = 256,
        texts_per_message: int = 1,
        timeout_seconds: float | None = None,
        **options: Unpack[Options],
    ) -> Generator[StreamResult[Key], None, None]:
        """Translates a stream of (id, text) pairs; `enumerate(texts)` makes pairs of bare texts.

        Results come as they complete, or with `in_order` in the order of the texts. One bad text ends in a
        result with an error, not in the end of the stream. At most `window` texts are under way: sent, and
        their result not yet taken. A larger `texts_per_message` costs less per text, but nothing is sent
        until that many are read or the input ends: for texts at hand, not for texts that depend on earlier
        results. `timeout_seconds` holds for the whole stream; None is no limit: the client's own does not
        hold for streams.
        What reading `texts` raises is raised here, after the results of earlier texts. A server ends a stream
        that is idle for long, by default 5 minutes: ServerError, with the status ABORTED.
        Leave the stream early through `contextlib.closing`.
        """
        settings = Settings(source=source, target=target, **options)
        ledger = Ledger[Key](in_order=in_order)
        feed = Feed(
            messages.stream_config(settings),
            texts,
            ledger,
            window=window,
            texts_per_message=texts_per_message,
        )
        return self._stream(feed, ledger, timeout_seconds)

    def _stream(
        self, feed: Feed[Key], ledger: Ledger[Key], timeout_seconds: float | None
    ) -> Generator[StreamResult[Key], None, None]:
        call = self._stub.TranslateStream(
            feed, timeout=within_clock(timeout_seconds), metadata=self._metadata
        )
        try:
            for response in call:
                for result in ledger.receive(response):
                    feed.release()
                    yield result
            ledger.close()
        except grpc.RpcError as error:
            raise self._error(error) from error
        finally:
            call.cancel()
            feed.close()

    def models(self, *, source: str = "", target: str = "") -> list[Model]:
        """The models being served, by name and version; only those of the languages that are given."""
        request = pb.ListModelsRequest(source_language=source, target_language=target)
        response = self._ask(self._stub.ListModels, request, self._timeout_seconds)
        return [messages.model(model) for model in response.models]

    def glossaries(self) -> list[Glossary]:
        """The glossaries of the server, by name."""
        response = self._ask(self._stub.ListGlossaries, pb.ListGlossariesRequest(), self._timeout_seconds)
        return [messages.glossary(glossary) for glossary in response.glossaries]

    def model(self, name: str) -> Model:
        """One model, by "name" or "name/version". Raises ModelNotFoundError, which names those there are."""
        response = self._ask(self._stub.GetModel, pb.GetModelRequest(name=name), self._timeout_seconds)
        return messages.model(response.model)

    def health(self, service: str = "") -> bool:
        """Whether the server, or one of its services by name, is serving. Not tried again: it tells of now.

        Raises UnavailableError where no server answers, ModelNotFoundError for a service it does not know.
        """
        self._check_open()
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            response = self._health_stub.Check(
                request, timeout=self._timeout_seconds, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise errors.of_health(self._error(error), service) from error
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)
