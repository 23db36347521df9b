"""The frame of every request over HTTP: read, answered or refused, sent; its metrics, its line in the log.

Work that nobody waits for any more is cancelled, as is what takes longer than its deadline.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from dragoman_server.engine import DeadlineExpiredError
from dragoman_server.service.call import TRACE_RESPONSE, log_if_internal, refusal_fields
from dragoman_server.service.core import ServiceCore
from dragoman_server.service.statuses import code_of, status_of
from dragoman_server.web.connections import CONNECTION
from dragoman_server.web.events import EventStream
from dragoman_server.web.exchange import ID_HEADER, ClientGoneError, Exchange
from dragoman_server.web.metrics import HttpMetrics
from dragoman_server.web.statuses import CLIENT_GONE, http_status, message_of, retry_headers

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


class Endpoint:
    """A route as an ASGI application."""

    def __init__(
        self,
        route: str,
        handle: Handle,
        *,
        api: Api,
        core: ServiceCore,
        metrics: HttpMetrics,
        has_deadline: bool = True,
    ) -> None:
        """`route` names it in the log and in the metrics."""
        self._has_deadline = has_deadline
        self._route = route
        self._handle = handle
        self._api = api
        self._core = core
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, core=self._core, route=self._route, api=self._api.name)
        started = time.perf_counter()
        status = CLIENT_GONE

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []),
                    (ID_HEADER.lower().encode(), exchange.id.encode()),
                ]
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
            self._metrics.on_request(self._route, status, time.perf_counter() - started)

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
            await self._send(self._api.write_error(error), exchange, send)

    async def _respond(self, exchange: Exchange) -> Response:
        if self._core.callers.are_asked and not self._api.is_open:
            token = exchange.header_token
            if token is not None or not self._api.takes_token_in_body:
                # Nothing is read of what an unknown caller sends.
                self._core.callers.name(token)
        await exchange.read()
        if self._has_deadline:
            exchange.start_clock()
        try:
            async with asyncio.timeout(exchange.time_remaining()):
                return await self._handle(exchange)
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
            async with asyncio.timeout(self._core.limits.max_http_seconds):
                await response(scope, nothing, send)
        except TimeoutError:
            scope["state"][CONNECTION].abort()

    def _log(self, exchange: Exchange, error: Exception) -> None:
        if exchange.is_logged:
            return
        # It never became a call with a line of its own.
        exchange.is_logged = True
        log_if_internal(error)
        fields = {
            "method": self._route,
            "outcome": code_of(error).name,
            "api": self._api.name,
            "request_id": exchange.id,
            **refusal_fields(exchange.peer, message_of(error)),
        }
        logger.info("call", extra=fields)
