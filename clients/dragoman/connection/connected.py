"""What both clients are made from: the way to their servers, and what each call takes along."""

from collections.abc import Sequence

import grpc

from dragoman.arguments import check_number
from dragoman.connection.channel import PING_SECONDS, ClientCertificate, call_metadata
from dragoman.connection.deadline import Deadline, within_clock
from dragoman.connection.route import Server, read_route
from dragoman.connection.tracing import Metadata, traced
from dragoman.errors import ClientClosedError


class Connected:
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
    def _metadata(self) -> Metadata:
        """A call's metadata: the caller's token, and the trace."""
        return traced(self._own_metadata)

    def _deadline(self, timeout_seconds: float | None) -> Deadline:
        """The deadline of a call that may take so long; None is the client's own time."""
        return Deadline(self._timeout_seconds if timeout_seconds is None else timeout_seconds)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosedError()
