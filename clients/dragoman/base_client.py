"""What both clients are made of: the way to their servers, and what each call takes along.

A client is a transport: it begins calls and waits for their answers, blocking or not. The calls themselves
are written once, in `dragoman.calls`.
"""

import sys
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import grpc

from dragoman import errors
from dragoman.connection.channel import PING_SECONDS, ClientCertificate, Deadline, call_metadata, within_clock
from dragoman.connection.route import Server, cause_of, read_route
from dragoman.settings import check_number
from dragoman.v1 import translation_pb2_grpc as pb_grpc

Metadata = tuple[tuple[str, str], ...] | None
Request = TypeVar("Request")
Response = TypeVar("Response")
Method: TypeAlias = "grpc.UnaryUnaryMultiCallable[Request, Response]"
"""A call with one answer, of gRPC's own."""


class Call(Protocol):
    """A call that is under way, of gRPC's blocking API or of its asyncio API."""

    def cancel(self) -> bool:
        """Ends it, where it has not ended."""


class BaseClient:
    """A client's connection to a server, or to several."""

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
        self._token = token
        self._own_metadata = call_metadata(token)
        self._ping_seconds = ping_seconds
        self._route = read_route(address, credentials, certificate, ping_seconds=ping_seconds)
        self._closed = False
        self._open()

    def _open(self) -> None:
        """Prepares for calls of one kind, blocking or not."""
        raise NotImplementedError

    @property
    def _channel(self) -> grpc.Channel:
        """The channel for calls with one answer. Raises ClientClosedError."""
        raise NotImplementedError

    @property
    def _stub(self) -> pb_grpc.TranslationServiceStub:
        """The service over that channel. Raises ClientClosedError."""
        raise NotImplementedError

    def _start(self, method: "Method[Request, Response]", request: Request, seconds: float | None) -> Call:
        """Begins a call with one answer, which may take so long."""
        raise NotImplementedError

    async def _answer(self, call: Any) -> Any:
        """The answer of a call that was begun. Raises DragomanError."""
        raise NotImplementedError

    async def _sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def _ask(
        self, method: "Method[Request, Response]", request: Request, seconds: float | None
    ) -> Response:
        """The response of one call, which may take so long. Raises DragomanError."""
        call = self._start(method, request, seconds)
        try:
            response: Response = await self._answer(call)
            return response
        finally:
            # Nothing, where it has ended.
            call.cancel()

    def _error(self, failure: grpc.RpcError) -> errors.DragomanError:
        """The typed error of a call that failed, with the cause where no connection came about. May block."""
        error = errors.from_call(failure)
        cause = cause_of(str(error), self._route)
        return error if cause is None else errors.UnavailableError(cause)

    @property
    def _metadata(self) -> Metadata:
        """A call's metadata: the caller's token, and its trace where the program has one by OpenTelemetry."""
        if "opentelemetry.trace" not in sys.modules:
            return self._own_metadata
        # Loaded here: a program that traces nothing may not have it.
        from opentelemetry import propagate

        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        traced = ((key.lower(), value) for key, value in carrier.items())
        return (*(self._own_metadata or ()), *traced) or None

    def _deadline(self, timeout_seconds: float | None) -> Deadline:
        """The deadline of a call that may take so long; None is the client's own time."""
        return Deadline(self._timeout_seconds if timeout_seconds is None else timeout_seconds)

    def _check_open(self) -> None:
        if self._closed:
            raise errors.ClientClosedError()
