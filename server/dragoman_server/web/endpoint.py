"""The frame of every request over HTTP: read, answered or refused, sent; its metrics, its line in the log.

Owns which status of HTTP an error is; what the answer's body says is each API's. Work that nobody waits for
any more is cancelled, as is what takes longer than its deadline.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from dragoman_server.engine import DeadlineExpiredError
from dragoman_server.errors import BodyTooLargeError, MethodError, SlowRequestError
from dragoman_server.metrics.callers import HttpMetrics
from dragoman_server.service.call import TRACE_RESPONSE, log_if_internal, refusal_fields
from dragoman_server.service.core import ServiceCore
from dragoman_server.service.statuses import Code, code_of, status_of
from dragoman_server.web.connections import CONNECTION
from dragoman_server.web.exchange import ID_HEADER, ClientGoneError, Exchange

WriteEvent = Callable[[str, str], Awaitable[None]]
"""Sends one: its kind, and its data without a line end."""
LAST_EVENT_SECONDS = 10.0
"""How long the last event may take to be read before TimeoutError is raised."""


class EventStream(Response):
    """Sends what `produce` writes, as it comes, within limits that are that one's own."""

    media_type = "text/event-stream"

    def __init__(
        self, produce: Callable[[WriteEvent], Awaitable[None]], describe: Callable[[Exception], str]
    ) -> None:
        """An error that `produce` raises before it has written is raised; a later one becomes an event
        "error"."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        # It is not known yet.
        del self.headers["content-length"]
        self._produce = produce
        self._describe = describe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def begin() -> None:
            nonlocal is_begun
            if not is_begun:
                is_begun = True
                head = {"status": self.status_code, "headers": self.raw_headers}
                await send({"type": "http.response.start", **head})

        async def write(kind: str, data: str) -> None:
            await begin()
            event = f"event: {kind}\ndata: {data}\n\n".encode()
            await send({"type": "http.response.body", "body": event, "more_body": True})

        try:
            await self._produce(write)
        except Exception as error:
            if not is_begun:
                raise
            last = ("error", self._describe(error))
        else:
            last = ("end", "{}")
        # Where nobody reads, that is why it ended.
        async with asyncio.timeout(LAST_EVENT_SECONDS):
            await write(*last)
            await send({"type": "http.response.body", "body": b""})


CLIENT_GONE = 499
"""Client closed request, as nginx has it, for the log and the metrics: nobody reads the answer."""

_BY_CODE = {
    Code.OK: 200,
    Code.CANCELLED: CLIENT_GONE,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.ABORTED: 409,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}
_BY_ERROR: dict[type[Exception], int] = {BodyTooLargeError: 413, MethodError: 405, SlowRequestError: 408}


def http_status(error: Exception) -> int:
    """The status of an error, as HTTP means it."""
    return _BY_ERROR.get(type(error), _BY_CODE[code_of(error)])


def retry_headers(status: status_pb2.Status) -> dict[str, str]:
    """Retry-After, where the status says when to come again."""
    for detail in status.details:
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            delay: duration_pb2.Duration = info.retry_delay
            return {"Retry-After": str(max(1, math.ceil(delay.ToMilliseconds() / 1000)))}
    return {}


def message_of(error: Exception) -> str:
    """The message for the caller; an internal error says nothing more."""
    return str(status_of(error).message)


logger = logging.getLogger(__name__)

Handle = Callable[[Exchange], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Api:
    """The traits that all requests of one API share."""

    name: str
    """The API's name in the log."""
    status: Callable[[Exception], int] = http_status
    """The status of an error, as its clients read it."""
    error_field: str = "error"
    describe: Callable[[Exception], object] = message_of
    """What stands there in the answer to a request that failed."""
    takes_token_in_body: bool = False
    """Whether a token may come in the body, which then is read before anybody knows whose it is."""
    is_open: bool = False
    """Whether nobody needs a token."""

    def write_error(self, error: Exception) -> Response:
        """The answer that its clients expect."""
        status, headers = self.status(error), retry_headers(status_of(error))
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse({self.error_field: self.describe(error)}, status, headers=headers)


@dataclass(frozen=True, eq=False)
class Endpoint:
    route: str
    """Its name in the log and in the metrics."""
    handle: Handle
    api: Api
    core: ServiceCore
    metrics: HttpMetrics
    has_deadline: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, core=self.core, route=self.route, api=self.api.name)
        started = time.perf_counter()
        status = CLIENT_GONE

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = (ID_HEADER.lower().encode(), exchange.id.encode())
                message["headers"] = [*message.get("headers", []), named]
                if exchange.trace_response is not None:
                    message["headers"].append((TRACE_RESPONSE.encode(), exchange.trace_response.encode()))
            await send(message)

        answering = asyncio.create_task(self._answer(exchange, send_named))
        leaving = asyncio.create_task(exchange.wait_until_gone())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                # Also where the answer had begun: what came of it nobody has read.
                status = CLIENT_GONE
                answering.cancel()
                await asyncio.wait({answering})
            elif not answering.cancelled() and (error := answering.exception()) is not None:
                raise error
        finally:
            answering.cancel()
            leaving.cancel()
            exchange.close()
            self.metrics.on_request(self.route, status, time.perf_counter() - started)

    async def _answer(self, exchange: Exchange, send: Send) -> None:
        is_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        scope = exchange.request.scope
        try:
            response = await self._respond(exchange)
            await self._send(response, exchange, send_and_note)
        except ClientGoneError:
            return
        except Exception as error:
            self._log(exchange, error)
            if is_begun:
                scope["state"][CONNECTION].abort()
                return
            await self._send(self.api.write_error(error), exchange, send)

    async def _respond(self, exchange: Exchange) -> Response:
        if self.core.callers.are_asked and not self.api.is_open:
            token = exchange.header_token
            if token is not None or not self.api.takes_token_in_body:
                # Nothing is read of what an unknown caller sends.
                self.core.callers.name(token)
        await exchange.read()
        if self.has_deadline:
            exchange.start_clock()
        try:
            async with asyncio.timeout(exchange.time_remaining()):
                return await self.handle(exchange)
        except TimeoutError:
            raise DeadlineExpiredError("the request was not answered before its deadline") from None

    async def _send(self, response: Response, exchange: Exchange, send: Send) -> None:
        """Sends it, for as long as somebody reads."""
        scope = exchange.request.scope

        async def nothing() -> Message:
            await asyncio.Event().wait()
            return {}

        if isinstance(response, EventStream):
            await response(scope, nothing, send)
            return
        try:
            async with asyncio.timeout(self.core.limits.max_http_seconds):
                await response(scope, nothing, send)
        except TimeoutError:
            scope["state"][CONNECTION].abort()

    def _log(self, exchange: Exchange, error: Exception) -> None:
        if exchange.is_logged:
            return
        # It never became a call with a line of its own.
        exchange.is_logged = True
        log_if_internal(error)
        fields = {"method": self.route, "outcome": code_of(error).name, "api": self.api.name}
        refusal = refusal_fields(exchange.peer, message_of(error))
        logger.info("call", extra={**fields, "request_id": exchange.id, **refusal})
