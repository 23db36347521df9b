"""The client for ordinary code: every call blocks until its answer is there."""

from collections.abc import Generator, Iterable
from functools import wraps
from time import sleep
from typing import Any, Self, Unpack, overload

import grpc

from dragoman import calls
from dragoman.base_client import BaseClient, Call, Method, Request, Response
from dragoman.connection.channel import within_clock
from dragoman.connection.route import Server
from dragoman.settings import Options, Settings, TranslateOptions
from dragoman.stream import Stream
from dragoman.translation import Key, StreamResult, Translation
from dragoman.v1 import translation_pb2_grpc as pb_grpc


class Client(BaseClient):
    """A connection to a Dragoman server, or to several. Threads may share it. Use it in a `with` block, or
    close it.

    Every call raises a DragomanError where it fails. One that finds no server is tried again for a second or
    two first, of several servers at another; `translate_stream` and `health` are not, and fail at once.
    """

    def _open(self) -> None:
        self._open_channel = self._route.open_channel()
        self._open_stub = pb_grpc.TranslationServiceStub(self._open_channel)

    @property
    def _channel(self) -> grpc.Channel:
        self._check_open()
        return self._open_channel

    @property
    def _stub(self) -> pb_grpc.TranslationServiceStub:
        self._check_open()
        return self._open_stub

    def _start(self, method: "Method[Request, Response]", request: Request, seconds: float | None) -> Call:
        return method.future(request, timeout=seconds, metadata=self._metadata)

    # The type's name is one that only the stubs of grpc have.
    async def _answer(self, call: "grpc._CallFuture[Any]") -> Any:
        try:
            return call.result()
        except grpc.RpcError as error:
            raise self._error(error) from error

    async def _sleep(self, seconds: float) -> None:
        sleep(seconds)

    def close(self) -> None:
        """Ends the connection and every call on it; later ones raise ClientClosedError."""
        self._closed = True
        self._open_channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, *, source: str, target: str, **options: Unpack[TranslateOptions]
    ) -> Translation: ...

    @overload
    def translate(
        self, texts: Iterable[str], *, source: str, target: str, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    @wraps(calls.translate)
    def translate(self, texts: Any, **options: Any) -> Any:
        return calls.run(calls.translate(self, texts, **options))

    align = calls.blocking(calls.align)
    detect = calls.blocking(calls.detect)
    models = calls.blocking(calls.models)
    glossaries = calls.blocking(calls.glossaries)
    model = calls.blocking(calls.model)
    health = calls.blocking(calls.health)

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
        stream = Stream(
            texts, settings, in_order=in_order, window=window, texts_per_message=texts_per_message
        )
        return self._results(stream, timeout_seconds)

    def _results(
        self, stream: Stream[Key], timeout_seconds: float | None
    ) -> Generator[StreamResult[Key], None, None]:
        seconds = within_clock(timeout_seconds)
        call = self._stub.TranslateStream(stream, timeout=seconds, metadata=self._metadata)
        try:
            for response in call:
                yield from stream.receive(response)
            stream.end()
        except grpc.RpcError as error:
            raise self._error(error) from error
        finally:
            call.cancel()
            stream.close()
