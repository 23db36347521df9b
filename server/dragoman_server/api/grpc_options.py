"""What gRPC starts with. Where its own limits act, nobody is told why: ours come first."""

import resource

import grpc

from dragoman_server.certificate import Certificate
from dragoman_server.config import RequestLimits

_MAX_RESERVED = 256


def raise_limit() -> None:
    """Takes as many as the system lets this process have, which is often far more than it starts with."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def room_for_connections(wanted: int, *, others: int = 0) -> int:
    """The number of connections, up to `wanted`, that leaves descriptors for files, engines, the metrics
    and `others`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, soft - min(soft // 2, _MAX_RESERVED + others))


# How often a caller that says nothing is asked whether it is still there, and how long it may take to answer:
# a stream whose caller's machine is gone would hold its place among the calls for hours.
KEEPALIVE_MILLISECONDS = 60_000
KEEPALIVE_TIMEOUT_MILLISECONDS = 20_000
# Calls that wait until the event loop takes them, to be answered or refused. By default gRPC cancels calls
# from 1,000 on, at random, and where they wait for 30 seconds. Each takes some 16 KiB, so there is an end.
_MAX_PENDING_CALLS = 20_000
_MAX_PENDING_SECONDS = 3600
# Clients of other languages ask every few seconds whether the server is there. By default gRPC hangs up at
# the third time within five minutes; only a flood is a reason to.
_MIN_PING_MILLISECONDS = 100
_MAX_EARLY_PINGS = 100
# A connection that never says a word of HTTP/2 is one of the few that there may be.
_HANDSHAKE_MILLISECONDS = 20_000


def grpc_options(limits: RequestLimits, *, max_connections: int) -> list[tuple[str, int]]:
    """The arguments of a server that admits so many connections."""
    age = limits.max_connection_age_seconds
    return [
        # With it a second server on the same port would start and take half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_allowed_incoming_connections", max_connections),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MILLISECONDS),
        # Between the two gRPC would refuse at random.
        ("grpc.server.max_pending_requests", _MAX_PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING_CALLS),
        ("grpc.server_max_unrequested_time_in_server", _MAX_PENDING_SECONDS),
        ("grpc.max_receive_message_length", limits.max_message_bytes),
        # Answers are bounded by what was accepted; to refuse one would waste all that it took.
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MILLISECONDS),
        ("grpc.http2.ping_timeout_ms", KEEPALIVE_TIMEOUT_MILLISECONDS),
        # By default it stops asking, after two times, who sends nothing.
        ("grpc.http2.max_pings_without_data", 0),
        # Of the pings that it receives, whether calls are in progress or not.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_MILLISECONDS),
        ("grpc.http2.max_ping_strikes", _MAX_EARLY_PINGS),
        *([] if age is None else [("grpc.max_connection_age_ms", max(1, round(1000 * age)))]),
    ]


def credentials_of(certificate: Certificate) -> grpc.ServerCredentials:
    """The credentials that gRPC listens with: a connection has the pair that was read last."""
    shown = certificate.pair

    def configuration() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([shown], certificate.client_authorities)

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC's threads at every connection, one at a time; None where nothing has changed."""
        nonlocal shown
        if certificate.pair is shown:
            return None
        shown = certificate.pair
        return configuration()

    # Declared as if there were always another one, unlike grpc's own description.
    return grpc.dynamic_ssl_server_credentials(
        configuration(),
        renewed,  # type: ignore[arg-type]
        require_client_authentication=certificate.client_authorities is not None,
    )
