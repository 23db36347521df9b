"""How both clients connect: retries, keepalive and message sizes, as gRPC channel arguments."""

import json
import os
import re
from pathlib import Path

import grpc

from dragoman.errors import InvalidRequestError

SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": "dragoman.v1.TranslationService", "method": method}
                for method in ("Translate", "ListModels", "GetModel")
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                # Only what is safe and has a point: the server took nothing, and may be back in a moment.
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}
"""gRPC's own retries, of calls with one answer.

TranslateStream has none: gRPC would keep a stream alive that waits for texts, where its server is gone before
the first result, and never end it. Health has none: it tells of now.
"""

CHANNEL_OPTIONS: tuple[tuple[str, str | int], ...] = (
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
    # A call whose request does not fit this buffer is never retried; the default is 256 KiB.
    ("grpc.per_rpc_retry_buffer_size", 8 << 20),
    # Many hypotheses with alignments outgrow the default of 4 MiB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Servers by default take pings more often than every 5 minutes for abuse. What was sent and is not
    # acknowledged within the timeout ends the connection sooner.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # By default a server that comes back is tried only after a second, then ever later, up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)


_LOOPBACK = re.compile(r"(localhost|127\.[0-9.]+|\[::1\])(:|$)")


def channel_options(address: str) -> tuple[tuple[str, str | int], ...]:
    """How to connect to HOST:PORT; to this machine itself never through a proxy that `http_proxy` names."""
    return (*CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0)) if _LOOPBACK.match(address) else CHANNEL_OPTIONS


def open_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """A channel of gRPC's blocking API, for what `read_address` gave."""
    options = channel_options(address)
    if credentials is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=options)


TLS_SCHEME = "grpcs://"
"""Before an address that is reached over TLS, with the roots that gRPC trusts by default."""

GRPC_SCHEMES = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "vsock:", "xds:")
"""Before an address that gRPC looks up in its own ways, without a port in some."""


def read_address(
    address: str, credentials: grpc.ChannelCredentials | None
) -> tuple[str, grpc.ChannelCredentials | None]:
    """HOST:PORT, and what to call it with: None is without TLS.

    Raises InvalidRequestError for a web address, which gRPC would take for a host's name, for a host without
    a port, which it would call on 443, for a port that is none, which it would take modulo 65536, and for
    a file of roots that is none.
    """
    if address.startswith(TLS_SCHEME):
        address = address.removeprefix(TLS_SCHEME).rstrip("/")
        if credentials is None:
            check_roots()
            credentials = grpc.ssl_channel_credentials()
    elif address.startswith(("http://", "https://")):
        raise InvalidRequestError(
            f"{address!r} is a URL; write HOST:PORT, such as localhost:50051, or grpcs://HOST:PORT for TLS"
        )
    if address.startswith(GRPC_SCHEMES):
        return address, credentials
    port = re.fullmatch(r".+:(\d+)", address)
    if port is None:
        raise InvalidRequestError(f"{address!r} has no port; write HOST:PORT, such as localhost:50051")
    if not 1 <= int(port[1]) <= 65535:
        raise InvalidRequestError(f"{address!r} has port {port[1]}; a port is 1 to 65535")
    return address, credentials


ROOTS_VARIABLE = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
"""Names a PEM file with the root certificates to trust."""


def check_roots() -> None:
    """Raises InvalidRequestError where the file of roots is none: gRPC would trust others and not tell."""
    path = os.environ.get(ROOTS_VARIABLE)
    if not path:
        return
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequestError(
            f"{ROOTS_VARIABLE} names {path!r}, which can't be read ({error.strerror}); name a PEM file with "
            "the root certificates to trust, or unset it to trust gRPC's own"
        ) from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise InvalidRequestError(
            f"{ROOTS_VARIABLE} names {path!r}, which holds no certificate in PEM; name a file with "
            "those of the roots to trust, or unset it to trust gRPC's own"
        )


def call_metadata(token: str | None) -> tuple[tuple[str, str], ...] | None:
    """What a call shows of who makes it (RFC 6750, section 2.1). Raises InvalidRequestError."""
    if token is None:
        return None
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidRequestError("the token is empty, or has a space or a character that is not ASCII")
    return (("authorization", f"Bearer {token}"),)
