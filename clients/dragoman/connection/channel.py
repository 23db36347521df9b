"""How both clients connect: retries, keepalive and message sizes, for gRPC; and how long they wait."""

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import grpc

from dragoman.errors import DragomanError, InvalidRequestError, OverloadedError, UnavailableError
from dragoman.settings import check_number

Options = tuple[tuple[str, str | int], ...]
"""Arguments of a gRPC channel."""
ClientCertificate = tuple[str | os.PathLike[str], str | os.PathLike[str]]
"""PEM files of a caller's certificate, followed by its intermediates, and of its key."""

_NEVER_MILLISECONDS = 2**31 - 1
_RETRIED = ("Translate", "ListModels", "GetModel")
_RETRIED_ELSEWHERE = (*_RETRIED, "AlignTexts", "DetectLanguage", "ListGlossaries")


def _method_config(methods: tuple[str, ...]) -> dict[str, object]:
    return {
        "name": [{"service": "dragoman.v1.TranslationService", "method": method} for method in methods],
        "retryPolicy": {
            "maxAttempts": 5,
            "initialBackoff": "0.1s",
            "maxBackoff": "2s",
            "backoffMultiplier": 2,
            # Only what is safe and has a point: the server took nothing, and may be back in a moment.
            "retryableStatusCodes": ["UNAVAILABLE"],
        },
    }


_SERVICE_CONFIG = {"methodConfig": [_method_config(_RETRIED)]}
"""gRPC's own retries, of calls with one answer.

TranslateStream has none: gRPC would keep a stream alive that waits for texts, where its server is gone before
the first result, and never end it. Health has none: it tells of now.
"""

_BALANCED_CONFIG = {
    "methodConfig": [_method_config(_RETRIED_ELSEWHERE)],
    "loadBalancingConfig": [{"round_robin": {}}],
    # Every server is watched by grpc.health.v1: one that loads or drains is no one's turn.
    "healthCheckConfig": {"serviceName": ""},
}
"""The retries where there are several servers: each attempt goes to the next server that serves."""

_COMMON_OPTIONS: Options = (
    # A call whose request does not fit this buffer is never retried; the default is 256 KiB.
    ("grpc.per_rpc_retry_buffer_size", 8 << 20),
    # Many hypotheses with alignments outgrow the default of 4 MiB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # By default gRPC stops to ask, after two times, where nothing is sent: a call that waits for its answer.
    ("grpc.http2.max_pings_without_data", 0),
    # By default a server that comes back is tried only after a second, then ever later, up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)

PING_SECONDS = 10.0
"""How long a server may be silent during a call before it is asked whether it is there.

gRPC's servers by default hang up on who asks more often than every 5 minutes; ours do not, and gRPC's client
asks half as often each time that one does.
"""
MAX_PONG_SECONDS = 20.0
"""Longest that it may take to answer."""


def ping_options(seconds: float | None) -> Options:
    """Channel options that notice a server which is silent for so long; it then has as long again to answer.
    None never asks.

    A machine that is gone, or a process that is stopped, says no more that a connection has ended.
    Raises InvalidRequestError for what is no such time.
    """
    if seconds is None:
        return (("grpc.keepalive_time_ms", _NEVER_MILLISECONDS),)
    check_number(seconds, "ping_seconds")
    if not 0.1 <= seconds <= 1e6:
        rule = "it must be from 0.1 to 1e6, or None for never"
        raise InvalidRequestError(f"ping_seconds is {seconds:g}; {rule}")
    pong_seconds = min(seconds, MAX_PONG_SECONDS)
    return (
        ("grpc.keepalive_time_ms", round(1000 * seconds)),
        ("grpc.keepalive_timeout_ms", round(1000 * pong_seconds)),
        # gRPC sends pings of its own while there is traffic. One that a server which hangs has not answered
        # stands for ours, and has a minute by default.
        ("grpc.http2.ping_timeout_ms", round(1500 * pong_seconds)),
    )


_LOOPBACK = re.compile(r"(localhost|127\.[0-9.]+|\[::1\])(:|$)")


def channel_options(
    address: str | None, *, is_balanced: bool, ping_seconds: float | None = PING_SECONDS
) -> Options:
    """How to connect to an address; None is a list of them. Raises InvalidRequestError as `ping_options`.

    What is listed is never called through a proxy that `http_proxy` names, which would stand for them all;
    nor is this machine itself.
    """
    config = json.dumps(_BALANCED_CONFIG if is_balanced else _SERVICE_CONFIG)
    # Where nobody asks, what is left of the pings is as by default.
    pings = dict(ping_options(PING_SECONDS)) | dict(ping_options(ping_seconds))
    options = [("grpc.service_config", config), *_COMMON_OPTIONS, *pings.items()]
    if is_balanced:
        # Where servers change, a lost one's name is looked up again; by default not twice in 30 seconds.
        options.append(("grpc.dns_min_time_between_resolutions_ms", 2_000))
    if address is None or _LOOPBACK.match(re.sub("^dns:(//[^/]*/)?", "", address)):
        options.append(("grpc.enable_http_proxy", 0))
    return tuple(options)


CHANNEL_OPTIONS = channel_options("", is_balanced=False)
"""How to connect to a single server."""


ROOTS_VARIABLE = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
"""Names a PEM file with the root certificates to trust."""


def check_roots() -> None:
    """Raises InvalidRequestError where the file of roots is none: gRPC would trust others and not tell."""
    path = os.environ.get(ROOTS_VARIABLE)
    if not path:
        return
    named, otherwise = f"{ROOTS_VARIABLE} names {path!r}, which", "or unset it to trust gRPC's own"
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        advice = f"name a PEM file with the root certificates to trust, {otherwise}"
        raise InvalidRequestError(f"{named} can't be read ({error.strerror}); {advice}") from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        advice = f"name a file with those of the roots to trust, {otherwise}"
        raise InvalidRequestError(f"{named} holds no certificate in PEM; {advice}")


def tls_credentials(certificate: ClientCertificate | None) -> grpc.ChannelCredentials:
    """TLS with the roots that gRPC trusts by default, and a certificate of the caller's own if there is one.

    Raises InvalidRequestError where a file can't be read.
    """
    check_roots()
    if certificate is None:
        return grpc.ssl_channel_credentials()
    chain, key = (_read(path) for path in certificate)
    return grpc.ssl_channel_credentials(certificate_chain=chain, private_key=key)


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        rule = "certificate is two PEM files, the chain and its key"
        raise InvalidRequestError(f"{path} can't be read: {error.strerror}; {rule}") from error
    if b"-----BEGIN " not in content:
        raise InvalidRequestError(f"{path} is no PEM file; certificate is two, the chain and its key")
    return content


def call_metadata(token: str | None) -> tuple[tuple[str, str], ...] | None:
    """The metadata with the caller's token (RFC 6750, section 2.1). Raises InvalidRequestError."""
    if token is None:
        return None
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidRequestError("the token is empty, or has a space or a character that is not ASCII")
    return (("authorization", f"Bearer {token}"),)


LONGEST_SECONDS = 1e8
"""About three years. gRPC treats a timeout that overflows its clock as already expired."""


def within_clock(timeout_seconds: float | None) -> float | None:
    """The timeout, or None (no limit) for one longer than LONGEST_SECONDS.

    Raises TypeError for what is no number, InvalidRequestError for nan.
    """
    if timeout_seconds is None:
        return None
    check_number(timeout_seconds, "timeout_seconds")
    return None if timeout_seconds > LONGEST_SECONDS else timeout_seconds


class Deadline:
    """A point in time that all requests of a call share."""

    def __init__(self, timeout_seconds: float | None) -> None:
        """Starts to count. None is no limit."""
        limit = within_clock(timeout_seconds)
        self._at = None if limit is None else time.monotonic() + limit

    def remaining_seconds(self) -> float | None:
        """Seconds left, never negative; None without a limit."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())


@dataclass
class RetryBudget:
    """Ever longer waits, and an end of them, counted from the first failure after an answer."""

    seconds: float
    _: KW_ONLY
    first_wait_seconds: float
    max_wait_seconds: float
    holds_waits: bool = True
    """Whether a wait ends within the budget, too, rather than begins there."""
    last_answer: Callable[[], float] = lambda: 0.0
    """When others were answered, on the clock of time.monotonic: the budget of all counts from then."""

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """The server has answered."""
        self._away_since: float | None = None
        self._wait_seconds = self.first_wait_seconds

    def wait_seconds(self, error: DragomanError, remaining_seconds: float | None = None) -> float | None:
        """Seconds before the next try; None where the budget is spent, or less time than that is left."""
        now = time.monotonic()
        self._away_since = now if self._away_since is None else self._away_since
        spent = now - max(self._away_since, self.last_answer())
        wait = self._wait_seconds
        if isinstance(error, OverloadedError | UnavailableError):
            wait = max(wait, error.retry_after_seconds or 0.0)
        self._wait_seconds = min(2 * self._wait_seconds, self.max_wait_seconds)
        is_spent = spent + wait > self.seconds if self.holds_waits else spent >= self.seconds
        is_late = remaining_seconds is not None and wait >= remaining_seconds
        return None if is_spent or is_late else wait
