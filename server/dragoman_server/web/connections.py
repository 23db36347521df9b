"""Connections of HTTP/1.1, held to limits: how many there are, and how long and large a request's head is.

uvicorn speaks HTTP, and bounds none of that. Connections count here from the moment they are accepted. Of a
body the exchange reads no more than it may; what else a caller still sends is read and thrown away for a
while, so that it can read why it was refused.
"""

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman_server.certificate import Certificate
from dragoman_server.metrics.callers import HttpMetrics

HEAD_SECONDS = 10.0
"""How long a TLS handshake may take, then a request's head to come, or an unread body to be thrown away."""
MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of a request's head, and of all else that is neither head nor body, such as trailers."""
KEEP_ALIVE_SECONDS = 30
"""How long a connection may wait for its next request."""
CONNECTION = "dragoman.connection"
"""Key of a scope's state: the connection that the request came by."""

# So many bytes are read at a time; those of a request's last piece count for the next one, too.
_PIECE_BYTES = 4096
# A body in chunks of a byte each has five more around it.
_MAX_FRAMING = 5
_BUSY_SECONDS = 1.0

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b'connection: close\r\ncontent-length: 47\r\n\r\n{"error":"the server has too many connections"}'
)
_LARGE_HEAD = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class Connections:
    """Those of one listening socket, which are accepted until `stop_accepting`."""

    def __init__(
        self,
        server: uvicorn.Server,
        *,
        listening: socket.socket,
        certificate: Certificate | None,
        max_connections: int,
        metrics: HttpMetrics,
    ) -> None:
        """`certificate`: what they are secured by; None for plain ones."""
        self._server = server
        self._listening = listening
        self._certificate = certificate
        self._max_connections = max_connections
        self._metrics = metrics
        self._open: set[asyncio.Task[None]] = set()
        metrics.connections.set_function(lambda: len(self._open))
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    async def stop_accepting(self) -> None:
        """Takes no further ones."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})
        self._listening.close()

    async def close(self) -> None:
        """Hangs up on those that are left."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError:
                # As many files are open as the process may have.
                await asyncio.sleep(_BUSY_SECONDS)
                continue
            if len(self._open) < self._max_connections:
                task = asyncio.create_task(self._serve(accepted))
                self._open.add(task)
                task.add_done_callback(self._open.discard)
            else:
                self._metrics.refused_connections.inc()
                with accepted, contextlib.suppress(OSError):
                    if self._certificate is None:
                        accepted.send(_FULL)
            # Many that come at once take turns with those that are there.
            await asyncio.sleep(0)

    async def _serve(self, accepted: socket.socket) -> None:
        """One connection, from before its handshake to its end."""
        context = None if self._certificate is None else self._certificate.context
        # A handshake that fails has nobody to be told of it.
        with contextlib.suppress(OSError):
            connect = asyncio.get_running_loop().connect_accepted_socket
            seconds = None if context is None else HEAD_SECONDS
            transport, connection = await connect(
                lambda: _Connection(self._server), accepted, ssl=context, ssl_handshake_timeout=seconds
            )
            try:
                await connection.has_ended.wait()
            finally:
                transport.abort()


class _Connection(HttpToolsProtocol):
    """uvicorn's protocol, with limits of time and size of what is no body."""

    def __init__(self, server: uvicorn.Server) -> None:
        super().__init__(config=server.config, server_state=server.server_state, app_state={CONNECTION: self})
        self.has_ended = asyncio.Event()
        self.certified_names: list[str] = []
        """The names of the certificate that the caller has shown."""
        self.num_requests = 0
        """Requests that are being answered."""
        self._is_in_body = False
        self._is_refused = False
        self._room = MAX_HEAD_BYTES
        self._clock: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self.certified_names = _certified_names(transport.get_extra_info("peercert"))
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)
        self.has_ended.set()

    def data_received(self, data: bytes) -> None:
        if not self._is_in_body:
            self._start_clock()
        start = 0
        while start < len(data) and not (self._is_refused or self.transport.is_closing()):
            if self._room <= 0:
                self._refuse()
                break
            piece = data[start : start + min(self._room, _PIECE_BYTES)]
            start += len(piece)
            self._room -= len(piece)
            super().data_received(piece)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_clock()

    def on_headers_complete(self) -> None:
        self._is_in_body = True
        self._stop_clock()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._room = min(MAX_HEAD_BYTES, self._room + (1 + _MAX_FRAMING) * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        # The next request may have begun with the rest of this piece.
        self._room = MAX_HEAD_BYTES - _PIECE_BYTES
        self._stop_clock()
        super().on_message_complete()

    def _refuse(self) -> None:
        """Says that a head is too large, and reads no more of it until the clock strikes."""
        if self._is_in_body:
            self.abort()
            return
        self._is_refused = True
        self.transport.write(_LARGE_HEAD)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _start_clock(self) -> None:
        if self._clock is None:
            self._clock = self.loop.call_later(HEAD_SECONDS, self._strike)

    def _strike(self) -> None:
        """Hangs up on a caller whose head is not complete, once nothing else of it is being answered."""
        self._clock = None
        if self.num_requests:
            self._start_clock()
        else:
            self.abort()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def _certified_names(certificate: Mapping[str, Any] | None) -> list[str]:
    """The names in a certificate as ssl describes it, the common name first."""
    found = certificate or {}
    pairs = [pair for part in found.get("subject", ()) for pair in part if pair[0] == "commonName"]
    return [str(name) for _, name in (*pairs, *found.get("subjectAltName", ()))]


class WholeRequests:
    """Wraps an application: an answer ends once its request's body has come, or had the time to.

    An answered caller may still send, and would lose the answer to a reset if nobody read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: _Connection = scope["state"][CONNECTION]
        is_read = False

        async def read() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = message["type"] == "http.disconnect" or not message.get("more_body")
            return message

        async def write(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body") and not is_read:
                await send({**message, "more_body": True})
                message = {"type": "http.response.body"}
                try:
                    async with asyncio.timeout(HEAD_SECONDS):
                        while not is_read:
                            await read()
                except TimeoutError:
                    connection.abort()
            await send(message)

        connection.num_requests += 1
        try:
            await self._app(scope, read, write)
        finally:
            connection.num_requests -= 1
