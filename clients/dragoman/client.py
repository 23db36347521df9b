"""The client for ordinary code: every call blocks until its answer is there."""

import time
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack, overload

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import errors, messages
from dragoman.arguments import check_number
from dragoman.auto_source import AUTO, AutoSource
from dragoman.connection.channel import PING_SECONDS, ClientCertificate, call_metadata
from dragoman.connection.deadline import Deadline, within_clock
from dragoman.connection.route import Server, read_route
from dragoman.connection.tracing import Metadata, traced
from dragoman.connection.unreachable import cause_of
from dragoman.feed import Feed
from dragoman.ledger import Ledger
from dragoman.model import Glossary, Model
from dragoman.portions import Portion, Portions
from dragoman.settings import (
    LengthPolicy,
    Priority,
    Segmentation,
    Settings,
    TextFormat,
    TranslateOptions,
)
from dragoman.texts import check_text_pairs, check_texts, detection_portions, text_pair_portions
from dragoman.translation import AlignedTexts, DetectedLanguage, Key, StreamResult, Translation
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc

if TYPE_CHECKING:
    # A name that only the type stubs of grpc have.
    _TranslateCall = grpc._CallFuture[pb.TranslateResponse]


class Client:
    """A connection to a Dragoman server, or to several. Threads may share it. Use it in a `with` block, or
    close it.

    Every call raises a DragomanError where it fails. One that finds no server is tried again for a second or
    two first, of several servers at another; `translate_stream` and `health` are not, and fail at once.
    """

    def __init__(
        self,
        address: str | Sequence[str] | Server = "localhost:50051",
        *,
        timeout_seconds: float | None = 600.0,
        patience_seconds: float = 30.0,
        ping_seconds: float | None = PING_SECONDS,
        credentials: grpc.ChannelCredentials | None = None,
        certificate: ClientCertificate | None = None,
        token: str | None = None,
    ) -> None:
        """Takes the server's HOST:PORT, grpcs://HOST:PORT over TLS; connects at the first call, not here.

        Of several servers it takes a list of these, or `dns:///NAME:PORT` of a name that stands for all:
        each call goes to the next that serves. The names of a list are looked up here, once.
        `timeout_seconds` is the default for every call but streams; None is no limit. `patience_seconds` is
        how long `translate` waits, within that, for a server that goes away when part of its texts are done.
        A server that is silent for `ping_seconds` during a call is asked whether it is there, and counts as
        gone where it does not answer for as long again, 20 seconds at most; None never asks.
        `credentials` also turn on TLS, with their own roots. `certificate` is for a server that asks for one:
        two PEM files, the caller's chain and its key. `token` identifies the caller; without TLS it travels
        unencrypted.
        """
        self._timeout_seconds = within_clock(timeout_seconds)
        check_number(patience_seconds, "patience_seconds")
        self._patience_seconds = patience_seconds
        self._own_metadata = call_metadata(token)
        self._token = token
        self._ping_seconds = ping_seconds
        self._route = read_route(address, credentials, certificate, ping_seconds=ping_seconds)
        self._channel = self._route.open_channel()
        self._translation_stub = pb_grpc.TranslationServiceStub(self._channel)
        self._closed = False
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

    @property
    def _metadata(self) -> Metadata:
        """A call's metadata: the caller's token, and the trace."""
        return traced(self._own_metadata)

    def _check_open(self) -> None:
        if self._closed:
            raise errors.ClientClosedError()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        model: str | None = None,
        beam_size: int | None = None,
        num_hypotheses: int | None = None,
        length_penalty: float | None = None,
        max_output_tokens: int | None = None,
        target_prefix: str | None = None,
        length_policy: LengthPolicy | None = None,
        segmentation: Segmentation | None = None,
        priority: Priority | None = None,
        text_format: TextFormat | None = None,
        protect: bool | None = None,
        do_not_translate: Sequence[str] | None = None,
        patterns: Sequence[str] | None = None,
        terms: Mapping[str, str] | None = None,
        glossaries: Sequence[str] | None = None,
        alignments: bool = False,
        pivot: str | None = None,
        timeout_seconds: float | None = None,
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
        settings = Settings(
            source=source,
            target=target,
            model=model,
            beam_size=beam_size,
            num_hypotheses=num_hypotheses,
            length_penalty=length_penalty,
            max_output_tokens=max_output_tokens,
            target_prefix=target_prefix,
            length_policy=length_policy,
            segmentation=segmentation,
            priority=priority,
            text_format=text_format,
            protect=protect,
            do_not_translate=do_not_translate,
            patterns=patterns,
            terms=terms,
            glossaries=glossaries,
            alignments=alignments,
        )
        checked = check_texts([texts] if isinstance(texts, str) else texts)
        deadline = Deadline(self._timeout_seconds if timeout_seconds is None else timeout_seconds)
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
        deadline = Deadline(self._timeout_seconds if timeout_seconds is None else timeout_seconds)
        aligned: list[AlignedTexts] = []
        for portion in text_pair_portions(check_text_pairs(pairs)):
            request = messages.align_request(
                portion, source=source, target=target, model=model, aligner=aligner, priority=priority
            )
            try:
                response = self._stub.AlignTexts(
                    request, timeout=deadline.remaining_seconds(), metadata=self._metadata
                )
            except grpc.RpcError as error:
                raise self._error(error) from error
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
        deadline = Deadline(self._timeout_seconds if timeout_seconds is None else timeout_seconds)
        detected: list[DetectedLanguage] = []
        for portion in detection_portions(check_texts(texts)):
            try:
                response = self._stub.DetectLanguage(
                    pb.DetectLanguageRequest(texts=portion, target_language=target or ""),
                    timeout=deadline.remaining_seconds(),
                    metadata=self._metadata,
                )
            except grpc.RpcError as error:
                raise self._error(error) from error
            detected += messages.detected_languages(response)
        return detected

    def translate_stream(
        self,
        texts: Iterable[tuple[Key, str]],
        *,
        source: str,
        target: str,
        model: str | None = None,
        beam_size: int | None = None,
        num_hypotheses: int | None = None,
        length_penalty: float | None = None,
        max_output_tokens: int | None = None,
        target_prefix: str | None = None,
        length_policy: LengthPolicy | None = None,
        segmentation: Segmentation | None = None,
        priority: Priority | None = None,
        text_format: TextFormat | None = None,
        protect: bool | None = None,
        do_not_translate: Sequence[str] | None = None,
        patterns: Sequence[str] | None = None,
        terms: Mapping[str, str] | None = None,
        glossaries: Sequence[str] | None = None,
        alignments: bool = False,
        in_order: bool = False,
        window: int = 256,
        texts_per_message: int = 1,
        timeout_seconds: float | None = None,
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
        settings = Settings(
            source=source,
            target=target,
            model=model,
            beam_size=beam_size,
            num_hypotheses=num_hypotheses,
            length_penalty=length_penalty,
            max_output_tokens=max_output_tokens,
            target_prefix=target_prefix,
            length_policy=length_policy,
            segmentation=segmentation,
            priority=priority,
            text_format=text_format,
            protect=protect,
            do_not_translate=do_not_translate,
            patterns=patterns,
            terms=terms,
            glossaries=glossaries,
            alignments=alignments,
        )
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
        try:
            response = self._stub.ListModels(request, timeout=self._timeout_seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._error(error) from error
        return [messages.model(model) for model in response.models]

    def glossaries(self) -> list[Glossary]:
        """The glossaries of the server, by name."""
        try:
            response = self._stub.ListGlossaries(
                pb.ListGlossariesRequest(), timeout=self._timeout_seconds, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise self._error(error) from error
        return [messages.glossary(glossary) for glossary in response.glossaries]

    def model(self, name: str) -> Model:
        """One model, by "name" or "name/version". Raises ModelNotFoundError, which names those there are."""
        try:
            response = self._stub.GetModel(
                pb.GetModelRequest(name=name), timeout=self._timeout_seconds, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise self._error(error) from error
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
