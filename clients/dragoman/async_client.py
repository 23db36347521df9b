"""The client for asyncio: the same calls as the blocking client's, awaited."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator
from functools import cached_property
from typing import Any, Self, Unpack, cast

import grpc
import grpc.aio

from dragoman import calls, errors
from dragoman.base_client import BaseClient, Call, Method, Request, Response
from dragoman.connection.channel import within_clock
from dragoman.settings import Options, Settings
from dragoman.stream import Stream
from dragoman.translation import Key, StreamResult
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc


class AsyncClient(BaseClient):
    """A connection to a Dragoman server, or to several. Use it in an `async with` block, or close it.

    In each event loop that calls it, it has a connection of its own.
    Every call raises a DragomanError where it fails. One that finds no server is tried again for a second or
    two first, of several servers at another; `translate_stream` and `health` are not, and fail at once.
    """

    def _open(self) -> None:
        self._channels: dict[asyncio.AbstractEventLoop, grpc.aio.Channel] = {}

    @property
    def _channel(self) -> grpc.Channel:
        """The channel of the loop that runs: a channel belongs to the loop in which it was made."""
        self._check_open()
        loop = asyncio.get_running_loop()
        if loop not in self._channels:
            # gRPC closes a channel that nobody holds any more.
            for ended in [channel for channel in list(self._channels) if channel.is_closed()]:
                del self._channels[ended]
            self._channels[loop] = self._route.open_async_channel()
        return cast(grpc.Channel, self._channels[loop])

    @property
    def _stub(self) -> pb_grpc.TranslationServiceStub:
        return pb_grpc.TranslationServiceStub(self._channel)

    @cached_property
    def _stream_channel(self) -> grpc.Channel:
        return self._route.open_channel()

    def _start(self, method: "Method[Request, Response]", request: Request, seconds: float | None) -> Call:
        return cast(Call, method(request, timeout=seconds, metadata=self._metadata))

    async def _answer(self, call: "grpc.aio.UnaryUnaryCall[Any, Any]") -> Any:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise await asyncio.to_thread(self._error, error) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # gRPC says so of its own calls, too: nobody has cancelled the caller.
            message = "the client was closed before the call was answered"
            raise errors.CallCancelledError(message, status="CANCELLED") from None

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

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

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    translate = calls.translate
    align = calls.align
    detect = calls.detect
    models = calls.models
    glossaries = calls.glossaries
    model = calls.model
    health = calls.health

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
        pulled: _Pulled[Key] | None = None
        if isinstance(texts, AsyncIterable):
            texts = pulled = _Pulled(texts, asyncio.get_running_loop())
        stream = Stream(
            texts, settings, in_order=in_order, window=window, texts_per_message=texts_per_message
        )
        return self._results(stream, pulled, timeout_seconds)

    async def _results(
        self, stream: Stream[Key], pulled: "_Pulled[Key] | None", timeout_seconds: float | None
    ) -> AsyncGenerator[StreamResult[Key], None]:
        # Over gRPC's blocking API, read by a thread: its asyncio API may replace the status that ended the
        # stream by an INTERNAL of its own, when a message was on its way at that moment (grpc/grpc#36066).
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[pb.TranslateStreamResponse | grpc.RpcError | None] = asyncio.Queue()
        self._check_open()
        call = pb_grpc.TranslationServiceStub(self._stream_channel).TranslateStream(
            stream, timeout=within_clock(timeout_seconds), metadata=self._metadata
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
                    raise await asyncio.to_thread(self._error, response) from response
                for result in stream.receive(response):
                    yield result
            stream.end()
        finally:
            call.cancel()
            stream.close()
            if pulled is not None:
                await pulled.close()


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
