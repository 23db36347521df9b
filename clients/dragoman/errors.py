"""Every error that the client raises.

    DragomanError                   anything that went wrong between this client and its server
    ├── InvalidRequestError         the request is at fault, and says which field     (also a ValueError)
    ├── ModelNotFoundError          no such model, languages or aligner; what there is (also a LookupError)
    ├── AuthenticationError         the server wants other credentials
    ├── OverloadedError             the server is full, or its caller has had enough, and when to come back
    ├── UnavailableError            no server answers, or it is starting or stopping  (also a ConnectionError)
    ├── DeadlineExceededError       the time given for the call ran out               (also a TimeoutError)
    ├── CallCancelledError          the call was cancelled before it was answered
    ├── ClientClosedError           the client was closed before the call
    ├── UnsupportedError            the server is too old to know the call
    └── ServerError                 the server failed: a bug, not the caller's fault

Owns the way from a gRPC status and its rich details to one of these. Must not know the messages of calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

if TYPE_CHECKING:
    from dragoman.translation import Translation

Detail = TypeVar("Detail", bound=Message)


class DragomanError(Exception):
    """Anything that went wrong between this client and its server."""

    def __init__(self, message: str, *, status: str = "UNKNOWN") -> None:
        super().__init__(message)
        self.status = status
        """Name of the gRPC status code, such as "INVALID_ARGUMENT"."""
        self.reason: str | None = None
        """Which error of the server it is, such as "NOT_SERVING"; None where it is not the server's own."""
        self.translations: Mapping[int, Translation] = {}
        """The translations that `translate` had before it failed, by the text's position in the call."""


@dataclass(frozen=True, kw_only=True)
class FieldViolation:
    """One field of a request that is wrong."""

    field: str
    """The field, such as "options.beam_size"."""
    description: str
    """The value that it has, and the values that it may have."""


class InvalidRequestError(DragomanError, ValueError):
    """The request is at fault."""

    def __init__(
        self, message: str, *, violations: tuple[FieldViolation, ...] = (), status: str = "INVALID_ARGUMENT"
    ) -> None:
        super().__init__(message, status=status)
        self.violations = violations
        """Each field at fault, where the server reported any."""


class ModelNotFoundError(DragomanError, LookupError):
    """The server has no such model, language pair or aligner; the message names those it has."""


class AuthenticationError(DragomanError):
    """The server wants other credentials, or grants these no access."""


class OverloadedError(DragomanError):
    """The server is full, or the caller has had as much as it may: `reason` is "CALLER_LIMIT" then."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message, status="RESOURCE_EXHAUSTED")
        self.retry_after_seconds = retry_after_seconds
        """How long the server asks to wait, where it reported that."""


class UnavailableError(DragomanError, ConnectionError):
    """No server answers at the address, or it is starting or stopping."""

    def __init__(
        self, message: str, *, status: str = "UNAVAILABLE", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_seconds = retry_after_seconds
        """How long the server asks to wait, where it reported that."""


class DeadlineExceededError(DragomanError, TimeoutError):
    """The time given for the call ran out."""


class CallCancelledError(DragomanError):
    """The call was cancelled before it was answered."""


class ClientClosedError(DragomanError):
    """The client was closed before the call."""

    def __init__(self) -> None:
        super().__init__("the client is closed; make another", status="CANCELLED")


class UnsupportedError(DragomanError):
    """The server does not know the call: it is older than this client, or something else altogether."""


class ServerError(DragomanError):
    """The server failed; its log says more."""


_BY_CODE: dict[grpc.StatusCode, type[DragomanError]] = {
    grpc.StatusCode.NOT_FOUND: ModelNotFoundError,
    grpc.StatusCode.UNAUTHENTICATED: AuthenticationError,
    grpc.StatusCode.PERMISSION_DENIED: AuthenticationError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.CANCELLED: CallCancelledError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
}
"""Types that need nothing but the message. Codes that stand nowhere become ServerError."""

_CODE_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}


def from_call(error: grpc.RpcError) -> DragomanError:
    """The typed error of a call that failed."""
    call = cast(grpc.Call, error)
    try:
        rich = rpc_status.from_call(call)
    except (ValueError, DecodeError):
        # The details are of another status than the call ended with, as when a proxy has replaced that.
        rich = None
    return _typed(call.code(), call.details() or "", tuple(rich.details) if rich is not None else ())


def from_status(status: status_pb2.Status) -> DragomanError:
    """The typed error of one item of a stream."""
    code = _CODE_BY_NUMBER.get(status.code, grpc.StatusCode.UNKNOWN)
    return _typed(code, status.message, tuple(status.details))


def is_over_transport(error: Exception) -> bool:
    """Whether gRPC itself refused a message, as longer than the server takes."""
    return isinstance(error, InvalidRequestError) and error.status == grpc.StatusCode.RESOURCE_EXHAUSTED.name


def _typed(code: grpc.StatusCode, message: str, details: tuple[Any, ...]) -> DragomanError:
    error = _of_code(code, message, details)
    info = _detail(details, error_details_pb2.ErrorInfo)
    error.reason = None if info is None else str(info.reason)
    return error


def _of_code(code: grpc.StatusCode, message: str, details: tuple[Any, ...]) -> DragomanError:
    message = message or f"the server answered {code.name} and nothing more"
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in message:
        # gRPC itself says this of a message over the transport's limit. Coming back later does not help.
        return InvalidRequestError(f"a text is too long for the server: {message}", status=code.name)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return OverloadedError(message, retry_after_seconds=_retry_after_seconds(details))
    if code is grpc.StatusCode.UNAVAILABLE:
        return UnavailableError(message, retry_after_seconds=_retry_after_seconds(details))
    if code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE):
        return InvalidRequestError(message, violations=_violations(details), status=code.name)
    return _BY_CODE.get(code, ServerError)(message, status=code.name)


def _detail(details: Iterable[Any], kind: type[Detail]) -> Detail | None:
    """The first detail of a kind."""
    for packed in details:
        found = kind()
        if packed.Unpack(found):
            return found
    return None


def _violations(details: Iterable[Any]) -> tuple[FieldViolation, ...]:
    found = _detail(details, error_details_pb2.BadRequest)
    violations = () if found is None else found.field_violations
    return tuple(FieldViolation(field=each.field, description=each.description) for each in violations)


def _retry_after_seconds(details: Iterable[Any]) -> float | None:
    found = _detail(details, error_details_pb2.RetryInfo)
    return None if found is None else float(found.retry_delay.ToTimedelta().total_seconds())
