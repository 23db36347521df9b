"""The client for asyncio: the same calls as the blocking client's, awaited."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload

import grpc
import grpc.aio
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
    _TranslateCall = grpc.aio.UnaryUnaryCall[pb.TranslateRequest, pb.TranslateResponse]

Answer = TypeVar("Answer")


class AsyncClient:
    """A connection to a Dragoman server, or to several. Use it in an `async with` block, or close it.

    In each event loop that calls it, it has a connection of its own.
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
        """Takes the server's HOST:PORT, grpcs://HOST:PORT over TLS.

        Of several servers it takes a list of these, or `dns:///NAME:PORT` of a name that stands for all:
        each call goes to the next that serves. The names of a list are looked up here, once.
        Connects at the first call.
        `timeout_seconds` is the default for every call but streams; None is no limit. `patience_seconds` is
        how long `translate` waits, within that, for a server that goes away when part of its texts are done.
        A server that is silent for `ping_seconds` during a call is asked whether it is there, and counts as
        gone where it does not answer for as long again, 20 seconds at most; None never asks.
        `credentials` also turn on TLS, with their own roots. `certificate` is for a server that asks for one:
        two PEM files, the caller's chain and its key. `token` identifies the caller; without TLS it travels
        unencrypted.
        """
        self._route = read_route(address, credentials, certificate, ping_seconds=ping_seconds)
        self._timeout_seconds = within_clock(timeout_seconds)
        check_number(patience_seconds, "patience_seconds")
        self._patience_seconds = patience_seconds
        self._own_metadata = call_metadata(token)
        self._closed = False
        self._channels: dict[asyncio.AbstractEventLoop, grpc.aio.Channel] = {}

    @property
    def _channel(self) -> grpc.aio.Channel:
        """The channel of the loop that runs: a channel belongs to the loop in which it was made."""
        loop = asyncio.get_running_loop()
        if loop not in self._channels:
            # gRPC closes a channel that nobody holds any more.
            for ended in [channel for channel in list(self._channels) if channel.is_closed()]:
                del self._channels[ended]
            self._channels[loop] = self._route.open_async_channel()
        return self._channels[loop]

    @cached_property
    def _stream_channel(self) -> grpc.Channel:
        return self._route.open_channel()

    async def _error(self, failure: grpc.RpcError) -> errors.DragomanError:
        """The typed error of a call that failed, with the cause where no connection came about."""
        error = errors.from_call(failure)
        cause = await asyncio.to_thread(cause_of, str(error), self._route)
        return error if cause is None else errors.UnavailableError(cause)

    @property
    def _stub(self) -> "pb_grpc.TranslationServiceAsyncStub":
        self._check_open()
        return pb_grpc.TranslationServiceStub(self._channel)

    async def close(self) -> None:
        """Ends the connection and every call on it; later ones raise ClientClosedError."""
        self._closed = True
        channel = self._channels.pop(asyncio.get_running_loop(), None)
        # Those of other loops: gRPC closes what nobody holds any more.
        self._channels.clear()
        if channel is not None:
            await channel.close()
        if "_stream_channel" in vars(self):
            self._stream_channel.close()

    @property
    def _metadata(self) -> Metadata:
        """A call's metadata: the caller's token, and the trace."""
        return traced(self._own_metadata)

    def _check_open(self) -> None:
        if self._closed:
            raise errors.ClientClosedError()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @overload
    async def translate(  # type: ignore[overload-overlap]
        self, texts: str, *, source: str, target: str, **options: Unpack[TranslateOptions]
    ) -> Translation: ...

    @overload
    async def translate(
        self, texts: Iterable[str], *, source: str, target: str, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    async def translate(
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
            translations = await self._translate_detected(checked, settings, pivot, deadline)
        else:
            translations = await self._translate(checked, settings, pivot, deadline)
        return translations[0] if isinstance(texts, str) else translations

    async def _translate_detected(
        self, texts: list[str], settings: Settings, pivot: str | None, deadline: Deadline
    ) -> list[Translation]:
        found = await self.detect(texts, target=settings.target, timeout_seconds=deadline.remaining_seconds())
        auto = AutoSource(texts, found, settings.target)
        for language, group in auto.groups():
            settings = replace(settings, source=language)
            auto.answer(language, await self._translate(group, settings, pivot, deadline))
        return auto.translations()

    async def _translate(
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
                    call = self._stub.Translate(
                        portion.request, timeout=deadline.remaining_seconds(), metadata=self._metadata
                    )
                    calls.append((portion, call))
                if not calls:
                    return portions.translations()
                portion, call = calls.popleft()
                try:
                    portions.answer(portion, await _answer(call))
                except grpc.aio.AioRpcError as failure:
                    error = await self._error(failure)
                    await asyncio.sleep(portions.refuse(portion, error, deadline.remaining_seconds()))
        finally:
            for _, call in calls:
                call.cancel()

    async def align(
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
                response = await _answer(
                    self._stub.AlignTexts(
                        request, timeout=deadline.remaining_seconds(), metadata=self._metadata
                    )
                )
            except grpc.aio.AioRpcError as error:
                raise await self._error(error) from error
            aligned += messages.aligned_texts(response)
        return aligned

    def translate_stream(
        self,
        texts: Iterable[tuple[Key, str]] | AsyncIterable[tuple[Key, str]],
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
    ) -> AsyncGenerator[StreamResult[Key], None]:
        """Translates a stream of (id, text) pairs; `enumerate(texts)` makes pairs of bare texts.

        Results come as they complete, or with `in_order` in the order of the texts. One bad text ends in a
        result with an error, not in the end of the stream. At most `window` texts are under way: sent, and
        their result not yet taken. A larger `texts_per_message` costs less per text, but nothing is sent
        until that many are read or the input ends: for texts at hand, not for texts that depend on earlier
        results. `timeout_seconds` holds for the whole stream; None is no limit: the client's own does not
        hold for streams.
        What reading `texts` raises is raised here, after the results of earlier texts. A server ends a stream
        that is idle for long, by default 5 minutes: ServerError, with the status ABORTED.
        A plain iterable is read in another thread. Leave the stream early through `contextlib.aclosing`: it
        cancels a read of `texts` that waits.
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
        pulled: _Pulled[Key] | None = None
        if isinstance(texts, AsyncIterable):
            texts = pulled = _Pulled(texts, asyncio.get_running_loop())
        feed = Feed(
            messages.stream_config(settings),
            texts,
            ledger,
            window=window,
            texts_per_message=texts_per_message,
        )
        return self._stream(feed, pulled, ledger, timeout_seconds)

    async def _stream(
        self,
        feed: Feed[Key],
        pulled: "_Pulled[Key] | None",
        ledger: Ledger[Key],
        timeout_seconds: float | None,
    ) -> AsyncGenerator[StreamResult[Key], None]:
        # Over gRPC's blocking API, read by a thread: its asyncio API may replace the status that ended the
        # stream by an INTERNAL of its own, when a message was on its way at that moment (grpc/grpc#36066).
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[pb.TranslateStreamResponse | grpc.RpcError | None] = asyncio.Queue()
        self._check_open()
        call = pb_grpc.TranslationServiceStub(self._stream_channel).TranslateStream(
            feed, timeout=within_clock(timeout_seconds), metadata=self._metadata
        )

        def read() -> None:
            with contextlib.suppress(RuntimeError):  # The loop was closed: nobody waits any more.
                try:
                    for response in call:
                        loop.call_soon_threadsafe(arrived.put_nowait, response)
                    loop.call_soon_threadsafe(arrived.put_nowait, None)
                except grpc.RpcError as error:
                    loop.call_soon_threadsafe(arrived.put_nowait, error)

        threading.Thread(target=read, name="dragoman-stream", daemon=True).start()
        try:
            while (response := await arrived.get()) is not None:
                if isinstance(response, grpc.RpcError):
                    raise await self._error(response) from response
                for result in ledger.receive(response):
                    feed.release()
                    yield result
            ledger.close()
        finally:
            call.cancel()
            feed.close()
            if pulled is not None:
                await pulled.close()

    async def detect(
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
                response = await _answer(
                    self._stub.DetectLanguage(
                        pb.DetectLanguageRequest(texts=portion, target_language=target or ""),
                        timeout=deadline.remaining_seconds(),
                        metadata=self._metadata,
                    )
                )
            except grpc.aio.AioRpcError as error:
                raise await self._error(error) from error
            detected += messages.detected_languages(response)
        return detected

    async def models(self, *, source: str = "", target: str = "") -> list[Model]:
        """The models being served, by name and version; only those of the languages that are given."""
        request = pb.ListModelsRequest(source_language=source, target_language=target)
        try:
            response = await _answer(
                self._stub.ListModels(request, timeout=self._timeout_seconds, metadata=self._metadata)
            )
        except grpc.aio.AioRpcError as error:
            raise await self._error(error) from error
        return [messages.model(model) for model in response.models]

    async def glossaries(self) -> list[Glossary]:
        """The glossaries of the server, by name."""
        try:
            response = await _answer(
                self._stub.ListGlossaries(
                    pb.ListGlossariesRequest(), timeout=self._timeout_seconds, metadata=self._metadata
                )
            )
        except grpc.aio.AioRpcError as error:
            raise await self._error(error) from error
        return [messages.glossary(glossary) for glossary in response.glossaries]

    async def model(self, name: str) -> Model:
        """One model, by "name" or "name/version". Raises ModelNotFoundError, which names those there are."""
        try:
            response = await _answer(
                self._stub.GetModel(
                    pb.GetModelRequest(name=name), timeout=self._timeout_seconds, metadata=self._metadata
                )
            )
        except grpc.aio.AioRpcError as error:
            raise await self._error(error) from error
        return messages.model(response.model)

    async def health(self, service: str = "") -> bool:
        """Whether the server, or one of its services by name, is serving. Not tried again: it tells of now.

        Raises UnavailableError where no server answers, ModelNotFoundError for a service it does not know.
        """
        self._check_open()
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            response = await _answer(
                health_pb2_grpc.HealthStub(self._channel).Check(
                    request, timeout=self._timeout_seconds, metadata=self._metadata
                )
            )
        except grpc.aio.AioRpcError as error:
            raise errors.of_health(await self._error(error), service) from error
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)


async def _answer(call: Awaitable[Answer]) -> Answer:
    """The answer of a call. Raises AioRpcError, and CallCancelledError where the client was closed."""
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # gRPC says so of its own calls, too: nobody has cancelled the caller.
        raise errors.CallCancelledError(
            "the client was closed before the call was answered", status="CANCELLED"
        ) from None


class _Pulled(Iterator[tuple[Key, str]]):
    """Reads from another thread what is made in the loop."""

    def __init__(self, texts: AsyncIterable[tuple[Key, str]], loop: asyncio.AbstractEventLoop) -> None:
        self._iterator = aiter(texts)
        self._loop = loop
        self._pulling: asyncio.Task[object] | None = None
        self._closed = False

    def __next__(self) -> tuple[Key, str]:
        pulled = asyncio.run_coroutine_threadsafe(self._pull(), self._loop).result()
        if not pulled:
            raise StopIteration
        return pulled[0]

    async def close(self) -> None:
        """Ends the read that waits for a text, which then stays where it is, and lets none begin."""
        self._closed = True
        if self._pulling is not None:
            self._pulling.cancel()
            await asyncio.wait({self._pulling})

    async def _pull(self) -> list[tuple[Key, str]]:
        """The next one; none at the end, which what is read can't be mistaken for."""
        if self._closed:
            return []
        self._pulling = asyncio.current_task()
        try:
            return [await anext(self._iterator)]
        except StopAsyncIteration:
            return []
        finally:
            self._pulling = None
