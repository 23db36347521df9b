"""Why no connection came about, where gRPC tells it of one address alone."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman.connection.route import Route, Server, look_up, read_route
from dragoman.errors import DragomanError

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
            subject, servers = "no server of " + _names(route), route.servers()
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


def _names(route: Route) -> str:
    names = dict.fromkeys(server.name for server in route.listed)
    return ", ".join(names) or route.target


def _failure_at(server: Server, credentials: grpc.ChannelCredentials | None) -> str | None:
    """Why one server can't be called; None where it serves, or fails by an error of its own."""
    with read_route(server, credentials).open_channel() as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=MAX_SECONDS
            )
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
