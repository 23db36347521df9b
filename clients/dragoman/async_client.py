"""The client for asyncio: the same calls as the blocking client's, awaited."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import errors, messages
from dragoman.auto_source import AUTO, AutoSource
from dragoman.connection.connected import Connected
from dragoman.connection.deadline import Deadline, within_clock
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
    _TranslateCall = grpc.aio.UnaryUnaryCall[pb.TranslateRequest, pb.TranslateResponse]

Answer = TypeVar("Answer")
Request = TypeVar("Request")
Response = TypeVar("Response")


class AsyncClient(Connected):
    """A connection to a Dragoman server, or to several. Use it in an `async with` block, or close it.

    In each event loop that calls it, it has a connection of its own.
    Every call raises a DragomanError where it fails. One that finds no server is tried again for a second or
    two first, of several servers at another; `translate_stream` and `health` are not, and fail at once.
    """

    def _open(self) -> None:
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        seconds: float | None,
    ) -> Response:
        """The response of one call, which may take so long. Raises DragomanError."""
        try:
            return await _answer(method(request, timeout=seconds, metadata=self._metadata))
        except grpc.aio.AioRpcError as error:
            raise await self._error(error) from error

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
        pivot: str | None = None,
        timeout_seconds: float | None = None,
        **options: Unpack[Options],
    ) -> Translation | list[Translation]:
        """Translates texts, and returns one translation for each, as `Client.translate` says."""
        settings = Settings(source=source, target=target, **options)
        checked = check_texts([texts] if isinstance(texts, str) else texts)
        deadline = self._deadline(timeout_seconds)
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
        """Links the words of texts and of given translations, by a model or an aligner, as `Client.align`
        says."""
        deadline = self._deadline(timeout_seconds)
        aligned: list[AlignedTexts] = []
        for portion in text_pair_portions(check_text_pairs(pairs)):
            request = messages.align_request(
                portion, source=source, target=target, model=model, aligner=aligner, priority=priority
            )
            response = await self._ask(self._stub.AlignTexts, request, deadline.remaining_seconds())
            aligned += messages.aligned_texts(response)
        return aligned

    def translate_stream(
        self,
        texts: Iterable[tuple[Key, str]] | AsyncIterable[tuple[Key, str]],
        *,
        source: str,
        target: str,
        in_order: bool = False,
        window: int = 256,
        texts_per_message: int = 1,
        timeout_seconds: float | None = None,
        **options: Unpack[Options],
    ) -> AsyncGenerator[StreamResult[Key], None]:
        """Translates a stream of (id, text) pairs, as `Client.translate_stream` says.

        A plain iterable is read in another thread. Leave the stream early through `contextlib.aclosing`: it
        cancels a read of `texts` that waits.
        """
        settings = Settings(source=source, target=target, **options)
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
        """The language of each text, with what else it may be, as `Client.detect` says."""
        deadline = self._deadline(timeout_seconds)
        detected: list[DetectedLanguage] = []
        for portion in detection_portions(check_texts(texts)):
            request = pb.DetectLanguageRequest(texts=portion, target_language=target or "")
            response = await self._ask(self._stub.DetectLanguage, request, deadline.remaining_seconds())
            detected += messages.detected_languages(response)
        return detected

    async def models(self, *, source: str = "", target: str = "") -> list[Model]:
        """The models being served, by name and version; only those of the languages that are given."""
        request = pb.ListModelsRequest(source_language=source, target_language=target)
        response = await self._ask(self._stub.ListModels, request, self._timeout_seconds)
        return [messages.model(model) for model in response.models]

    async def glossaries(self) -> list[Glossary]:
        """The glossaries of the server, by name."""
        response = await self._ask(
            self._stub.ListGlossaries, pb.ListGlossariesRequest(), self._timeout_seconds
        )
        return [messages.glossary(glossary) for glossary in response.glossaries]

    async def model(self, name: str) -> Model:
        """One model, by "name" or "name/version". Raises ModelNotFoundError, which names those there are."""
        response = await self._ask(self._stub.GetModel, pb.GetModelRequest(name=name), self._timeout_seconds)
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
