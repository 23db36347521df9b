"""Why no connection came about, where gRPC tells it of one address alone."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman.connection.channel import channel_options

MAX_SECONDS = 2.0
"""Most time that looking for the cause takes after the name's addresses are known, as gRPC knows them."""
MAX_ADDRESSES = 8
"""Most addresses of a name that are tried: one that has more has no cause of its own."""
_LAST = "failed to connect to all addresses; last error: "
_HOST_AND_PORT = re.compile(r"(?P<host>[^:/]+):(?P<port>\d+)")


def cause_of(failure: str, address: str, credentials: grpc.ChannelCredentials | None) -> str | None:
    """What went wrong at each of a name's addresses; None where gRPC's `failure` says it all.

    A name may stand for several addresses, and for gRPC `localhost` always does, for ::1 and 127.0.0.1. It
    tells of the last that it tried: that nothing listens there hides why the server at another was refused.
    So each is called alone, as the client would.
    """
    named = _HOST_AND_PORT.fullmatch(address)
    if not failure.startswith(_LAST) or named is None:
        return None
    try:
        found = socket.getaddrinfo(named["host"], int(named["port"]), type=socket.SOCK_STREAM)
    except OSError:
        return None
    # Without doubles, in the order of preference.
    places = list(dict.fromkeys((family, str(place[0])) for family, *_, place in found))[:MAX_ADDRESSES]
    if [host for _, host in places] == [named["host"]]:
        # No name, but the address itself.
        return None
    port = named["port"]
    targets = [
        f"ipv6:[{host}]:{port}" if family == socket.AF_INET6 else f"ipv4:{host}:{port}"
        for family, host in places
    ]
    with ThreadPoolExecutor(len(targets)) as pool:
        failures = list(pool.map(lambda target: _failure_at(target, address, credentials), targets))
    causes = [cause for cause in failures if cause is not None]
    if len(causes) < len(targets):
        # One of them answers by now.
        return None
    # A server that is there and refuses says more than a port where none is.
    causes.sort(key=lambda cause: "Connection refused" in cause)
    return f"failed to connect to all addresses of {named['host']}: {'; '.join(causes)}"


def _failure_at(target: str, address: str, credentials: grpc.ChannelCredentials | None) -> str | None:
    """Why the server at one address can't be called by its name; None where it answers, be it by an error."""
    options = (*channel_options(address), ("grpc.default_authority", address))
    if credentials is None:
        channel = grpc.insecure_channel(target, options=options)
    else:
        name = address.rpartition(":")[0]
        override = ("grpc.ssl_target_name_override", name)
        channel = grpc.secure_channel(target, credentials, options=(*options, override))
    with channel:
        try:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=MAX_SECONDS)
        except grpc.RpcError as error:
            call = cast(grpc.Call, error)
            if call.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return f"{target}: no answer within {MAX_SECONDS:g} s"
            if call.code() is grpc.StatusCode.UNAVAILABLE:
                return (call.details() or "").removeprefix(_LAST).removeprefix("UNKNOWN: ")
    return None
