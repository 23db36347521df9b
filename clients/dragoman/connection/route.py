"""Where a client's calls go: to one server, or to several that gRPC balances; and why no connection came."""

import re
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman.connection.channel import (
    PING_SECONDS,
    ClientCertificate,
    Options,
    channel_options,
    tls_credentials,
)
from dragoman.errors import DragomanError, InvalidRequestError, UnavailableError

TLS_SCHEME = "grpcs://"
"""The scheme of an address that is reached over TLS, with the roots that gRPC trusts by default."""

GRPC_SCHEMES = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "vsock:", "xds:")
"""The schemes of addresses that gRPC looks up in its own ways, without a port in some."""


ELSEWHERE = 2
"""Other servers that an overloaded request goes to where a name stands for an unknown number: if three are
full, further ones hardly are not."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """One server of those that an address stands for."""

    target: str
    """The address for gRPC, such as "ipv4:10.0.0.3:50051"."""
    name: str
    """HOST:PORT that it was found by. Over TLS its certificate must be for this host."""

    def __str__(self) -> str:
        return re.sub("^ipv[46]:", "", self.target)


@dataclass(frozen=True, kw_only=True)
class Route:
    """The options of a channel."""

    target: str
    """The target for gRPC: HOST:PORT, an address in a scheme of its own, or a list."""
    credentials: grpc.ChannelCredentials | None
    """None is without TLS."""
    options: Options
    listed: tuple[Server, ...] = ()
    """The servers of a list; empty where gRPC finds them itself."""
    is_balanced: bool = False
    """Whether there may be several servers, of which each call takes the next that serves."""

    @property
    def num_elsewhere(self) -> int:
        """How many other servers are worth a try by whom one has turned away."""
        return len(self.listed) - 1 if self.listed else ELSEWHERE * self.is_balanced

    def open_channel(self) -> grpc.Channel:
        """A channel of gRPC's blocking API."""
        if self.credentials is None:
            return grpc.insecure_channel(self.target, options=self.options)
        return grpc.secure_channel(self.target, self.credentials, options=self.options)

    def open_async_channel(self) -> grpc.aio.Channel:
        """Opens an asyncio channel, for the event loop that runs."""
        if self.credentials is None:
            return grpc.aio.insecure_channel(self.target, options=self.options)
        return grpc.aio.secure_channel(self.target, self.credentials, options=self.options)

    def servers(self) -> list[Server]:
        """All that it leads to, as known now.

        Raises UnavailableError for a name that is not known, InvalidRequestError for one without a port.
        """
        if self.listed:
            return list(self.listed)
        if self.target.startswith("dns:"):
            # dns:NAME:PORT, dns:///NAME:PORT or dns://AUTHORITY/NAME:PORT.
            return look_up(re.sub("^dns:(//[^/]*/)?", "", self.target))
        scheme, _, addresses = self.target.partition(":")
        if self.is_balanced:
            return [Server(target=f"{scheme}:{address}", name=address) for address in addresses.split(",")]
        return [Server(target=self.target, name=self.target)]


def read_route(
    address: "str | Sequence[str] | Server",
    credentials: grpc.ChannelCredentials | None,
    certificate: ClientCertificate | None = None,
    *,
    ping_seconds: float | None = PING_SECONDS,
) -> Route:
    """The way to an address, to a list of them, also in one string with commas, or to one server of a route.

    Raises InvalidRequestError for a web address, which gRPC would take for a host's name, for a host without
    a port, which it would call on 443, for a port that is none, which it would take modulo 65536, for a file
    of roots or a caller's `certificate` that is none, for an empty list, for one whose addresses are not
    alike, and for pings. Raises UnavailableError where a name of a list is not known.
    """
    if certificate is not None and credentials is not None:
        advice = "have the certificate in the credentials alone"
        raise InvalidRequestError(f"certificate and credentials are both given; {advice}")
    if isinstance(address, Server):
        return _alone(address, credentials, ping_seconds)
    addresses = _split(address) if isinstance(address, str) else list(address)
    if not addresses:
        raise InvalidRequestError("no address is given; write HOST:PORT, such as localhost:50051")
    over_tls = [written.startswith(TLS_SCHEME) for written in addresses]
    if any(over_tls):
        if not all(over_tls):
            rule = "all must be reached over TLS or none; write grpcs:// before each"
            raise InvalidRequestError(f"{', '.join(addresses)}: {rule}")
        addresses = [written.removeprefix(TLS_SCHEME).rstrip("/") for written in addresses]
        if credentials is None:
            credentials = tls_credentials(certificate)
    elif certificate is not None:
        raise InvalidRequestError("a certificate is shown over TLS alone; write grpcs:// before the address")
    for written in addresses:
        _check(written, is_alone=len(addresses) == 1)
    if len(addresses) > 1:
        return _of_list(addresses, credentials, ping_seconds)
    [address] = addresses
    is_balanced = address.startswith("dns:") or (address.startswith(("ipv4:", "ipv6:")) and "," in address)
    options = channel_options(address, is_balanced=is_balanced, ping_seconds=ping_seconds)
    return Route(target=address, credentials=credentials, options=options, is_balanced=is_balanced)


def _split(address: str) -> list[str]:
    """The addresses of a string; grpcs:// before the first holds for all."""
    bare = address.removeprefix(TLS_SCHEME)
    if bare.startswith(GRPC_SCHEMES) or "," not in bare:
        # Some of gRPC's own schemes have commas in them.
        return [address]
    scheme = TLS_SCHEME if address != bare else ""
    parts = [part.strip().removeprefix(scheme) for part in bare.split(",")]
    return [scheme + part for part in parts]


def _check(address: str, *, is_alone: bool) -> None:
    if address.startswith(("http://", "https://")):
        advice = "write HOST:PORT, such as localhost:50051, or grpcs://HOST:PORT for TLS"
        raise InvalidRequestError(f"{address!r} is a URL; {advice}")
    if address.startswith(GRPC_SCHEMES):
        if is_alone:
            return
        scheme = address.partition(":")[0]
        raise InvalidRequestError(f"{address!r} can't stand in a list; give it alone, or without {scheme}:")
    port = re.fullmatch(r".+:(\d+)", address)
    if port is None:
        raise InvalidRequestError(f"{address!r} has no port; write HOST:PORT, such as localhost:50051")
    if not 1 <= int(port[1]) <= 65535:
        raise InvalidRequestError(f"{address!r} has port {port[1]}; a port is 1 to 65535")


def _of_list(
    addresses: Iterable[str], credentials: grpc.ChannelCredentials | None, ping_seconds: float | None
) -> Route:
    """A list, for gRPC: it takes no names, so each is looked up, once."""
    names = list(dict.fromkeys(addresses))
    found = dict.fromkeys(server.target for name in names for server in look_up(name))
    options = channel_options(None, is_balanced=True, ping_seconds=ping_seconds)
    return Route(
        target=_joined(list(found)),
        credentials=credentials,
        # One channel has one name: over TLS every certificate must be for it.
        options=(*options, *_named(names[0], credentials)),
        listed=tuple(Server(target=name, name=name) for name in names),
        is_balanced=True,
    )


def _alone(server: Server, credentials: grpc.ChannelCredentials | None, ping_seconds: float | None) -> Route:
    """A route to one server, over a connection that no other channel shares."""
    options = (
        *channel_options(server.name, is_balanced=False, ping_seconds=ping_seconds),
        ("grpc.use_local_subchannel_pool", 1),
        *(_named(server.name, credentials) if server.target != server.name else ()),
    )
    return Route(target=server.target, credentials=credentials, options=options)


def _named(name: str, credentials: grpc.ChannelCredentials | None) -> Options:
    """A server that is called by its address keeps its name."""
    authority: Options = (("grpc.default_authority", name),)
    if credentials is None:
        return authority
    return (*authority, ("grpc.ssl_target_name_override", name.rpartition(":")[0].strip("[]")))


def look_up(name: str) -> list[Server]:
    """A server at each address of HOST:PORT, in the order of preference.

    Raises UnavailableError for a name that is not known, InvalidRequestError for one without a port.
    """
    host, _, port = name.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidRequestError(f"{name!r} has no port; write dns:///NAME:PORT")
    try:
        infos = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise UnavailableError(
            f"nobody knows a machine called {host!r} ({error.strerror}); all names of a list must be known, "
            "dns:///NAME:PORT is looked up again when its servers change"
        ) from error
    targets = (
        f"ipv6:[{address[0]}]:{port}" if family == socket.AF_INET6 else f"ipv4:{address[0]}:{port}"
        for family, *_, address in infos
    )
    return [Server(target=target, name=name) for target in dict.fromkeys(targets)]


def _joined(targets: Sequence[str]) -> str:
    """One target for all of them."""
    if all(target.startswith("ipv4:") for target in targets):
        return "ipv4:" + ",".join(target.removeprefix("ipv4:") for target in targets)
    # A list is of one kind; an address of the other is written as one of this (RFC 4291, section 2.5.5.2).
    mapped = [re.sub(r"^ipv4:(.+):(\d+)$", r"ipv6:[::ffff:\1]:\2", target) for target in targets]
    return "ipv6:" + ",".join(target.removeprefix("ipv6:") for target in mapped)


MAX_SECONDS = 2.0
"""Most time that looking for the cause takes after the name's addresses are known, as gRPC knows them."""
MAX_ADDRESSES = 8
"""Most addresses of a name that are tried: one that has more has no cause of its own."""
_LAST = "failed to connect to all addresses; last error: "
_LAST_OF_SEVERAL = "connections to all backends failing; last error: "
_HOST_AND_PORT = re.compile(r"(?P<host>[^:/]+):(?P<port>\d+)")


def cause_of(failure: str, route: Route) -> str | None:
    """The error at each of a name's addresses; None where gRPC's `failure` says it all.

    A name may stand for several addresses, and for gRPC `localhost` always does, for ::1 and 127.0.0.1. It
    tells of the last that it tried: that nothing listens there hides why the server at another was refused.
    So each is called alone, as the client would. So is each server of a list.
    """
    if not failure.startswith((_LAST, _LAST_OF_SEVERAL)):
        return None
    try:
        if route.is_balanced:
            names = dict.fromkeys(server.name for server in route.listed)
            subject, servers = f"no server of {', '.join(names) or route.target}", route.servers()
        else:
            named = _HOST_AND_PORT.fullmatch(route.target)
            if named is None:
                return None
            subject, servers = f"failed to connect to all addresses of {named['host']}", look_up(route.target)
    except DragomanError:
        return None
    # Without doubles, in the order of preference.
    servers = servers[:MAX_ADDRESSES]
    if not servers or [str(server) for server in servers] == [route.target]:
        # No name, but the address itself.
        return None
    with ThreadPoolExecutor(len(servers)) as pool:
        failures = list(pool.map(lambda server: _failure_at(server, route.credentials), servers))
    causes = [cause for cause in failures if cause is not None]
    if len(causes) < len(servers):
        # One of them answers by now.
        return None
    # A server that is there and refuses says more than a port where none is.
    causes.sort(key=lambda cause: "Connection refused" in cause)
    reasons = "; ".join(causes)
    return f"{subject} can be called: {reasons}" if route.is_balanced else f"{subject}: {reasons}"


def _failure_at(server: Server, credentials: grpc.ChannelCredentials | None) -> str | None:
    """Why one server can't be called; None where it serves, or fails by an error of its own."""
    with read_route(server, credentials).open_channel() as channel:
        try:
            check = health_pb2_grpc.HealthStub(channel).Check
            answer = check(health_pb2.HealthCheckRequest(), timeout=MAX_SECONDS)
        except grpc.RpcError as error:
            call = cast(grpc.Call, error)
            if call.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return f"{server.target}: no answer within {MAX_SECONDS:g} s"
            if call.code() is grpc.StatusCode.UNAVAILABLE:
                return (call.details() or "").removeprefix(_LAST).removeprefix("UNKNOWN: ")
            return None
    if answer.status == health_pb2.HealthCheckResponse.NOT_SERVING:
        return f"{server.target}: it is starting or stopping, or none of its models runs"
    return None
