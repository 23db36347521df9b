"""A connection of HTTP/1.1, held to limits: how many there are, and how long and large a request's head is.

uvicorn bounds neither. Of a body the exchange reads no more than it may; what comes after the answer is
thrown away here, for a while, so that a caller who still sends can read why it was refused.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman_server.web.endpoint import ABORT
from dragoman_server.web.exchange import CERTIFIED_NAMES
from dragoman_server.web.metrics import HttpMetrics
from dragoman_server.web.tls import certified_names

HEAD_SECONDS = 10.0
"""How long a request's head may take to come, or an unread body to be thrown away."""
MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of a request's head."""
KEEP_ALIVE_SECONDS = 30
"""How long a connection may wait for its next request."""

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b'connection: close\r\ncontent-length: 47\r\n\r\n{"error":"the server has too many connections"}'
)
# An answered caller may still send, and would lose the answer to a reset if nobody read.
_LARGE_HEAD = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of one connection, within limits."""

    def __init__(self, *args: Any, max_connections: int, metrics: HttpMetrics, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections = max_connections
        self._metrics = metrics
        self._patience: asyncio.TimerHandle | None = None
        self._num_head_bytes = 0
        self._is_in_head = False
        self._is_body_complete = True
        self._closes = False
        self._is_refused = False
        self._certified_names: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        if (secured := transport.get_extra_info("ssl_object")) is not None:
            self._certified_names = certified_names(secured.getpeercert())
        if len(self.connections) > self._max_connections:
            self._metrics.on_refused_connection()
            transport.write(_FULL)
            transport.close()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._is_refused:
            return
        if self._is_between_requests:
            # The body of a request that is answered counts, too.
            self._num_head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._is_between_requests:
            return
        self._wait()
        if (self.cycle is None or self._is_in_head) and self._num_head_bytes > MAX_HEAD_BYTES:
            self._is_refused = True
            self.transport.write(_LARGE_HEAD)
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._num_head_bytes = 0
        super().on_message_begin()
        scope = cast(dict[str, Any], self.scope)
        scope[ABORT], scope[CERTIFIED_NAMES] = self.transport.abort, self._certified_names

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._num_head_bytes = 0
        self._stop_waiting()
        self._is_body_complete = False
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = cast(asyncio.Transport, _Lingering(self))

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_body_complete = True
        if self._closes:
            self.transport.close()
        if self.cycle is not None and self.cycle.response_complete and not self.transport.is_closing():
            # An answered request's body has ended: the next one may come.
            self._stop_waiting()
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def close_once_read(self) -> None:
        """Hangs up when all that the caller sends is read and thrown away, for a while."""
        if self._is_body_complete:
            self.transport.close()
            return
        self._closes = True
        self._wait()

    @property
    def _is_between_requests(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self._is_in_head

    def _wait(self) -> None:
        """Hangs up after a while, unless the head of a request is complete by then."""
        if self._patience is None and self.timeout_keep_alive_task is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


class _Lingering:
    """The part of a connection that an answer needs; the connection is closed when its request is read."""

    def __init__(self, connection: LimitedProtocol) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        """Sends it."""
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        """Whether it is, or will be."""
        return self._connection.transport.is_closing()

    def close(self) -> None:
        """Closes it once the caller can have read its answer."""
        self._connection.close_once_read()
